"""Exit codes, and errors in words."""

from reactflow import (
    BudgetExceeded,
    ConfigurationError,
    ModelBehaviorError,
    ProviderError,
    StopReason,
    StoreError,
    WorkflowError,
)
from reactflow.cli.reasons import REASONS, code_of_error, code_of_result, explain_error


def test_every_stop_reason_has_words_and_an_exit_code():
    assert set(REASONS) == set(StopReason)
    assert {reason for reason in StopReason if code_of_result(reason) == 4} == {
        StopReason.MAX_REFLECTION_ROUNDS,
        StopReason.MAX_ITERATIONS,
        StopReason.MAX_ROUNDS,
        StopReason.TOKEN_BUDGET,
        StopReason.TIME_BUDGET,
        StopReason.COST_BUDGET,
        StopReason.CALL_BUDGET,
        StopReason.TRUNCATED,
    }
    assert {reason for reason in StopReason if code_of_result(reason) == 1} == {
        StopReason.BLOCKED,
        StopReason.REFUSED,
        StopReason.FILTERED,
        StopReason.PAUSED,
    }


def test_errors_have_the_exit_code_of_who_can_mend_them():
    caused = WorkflowError("drafter failed", role="drafter", iteration=1)
    caused.__cause__ = ProviderError("gone")
    errors = (
        ConfigurationError("x"),
        ProviderError("x"),
        ModelBehaviorError("x"),
        BudgetExceeded("x", reason=StopReason.TIME_BUDGET),
        caused,
        WorkflowError("x", role="critic", iteration=1),
        StoreError("x"),
        KeyboardInterrupt(),
        OSError("x"),
    )

    assert [code_of_error(error) for error in errors] == [2, 3, 3, 4, 3, 1, 1, 130, 1]


def test_an_error_is_told_with_what_helps_on_the_command_line():
    assert explain_error(ProviderError("Gone.")) == "Gone. 'reactflow doctor' checks the server."
    spent = BudgetExceeded("Spent.", reason=StopReason.TIME_BUDGET)
    assert explain_error(spent) == "Spent. On the command line that is --budget-seconds."
    assert explain_error(BudgetExceeded("Spent.", reason=StopReason.COST_BUDGET)) == "Spent."


def test_an_error_without_words_is_told_by_its_name():
    assert explain_error(ModelBehaviorError("")) == "ModelBehaviorError"
    assert explain_error(KeyError()) == "KeyError. Run it again with --debug to see where."
