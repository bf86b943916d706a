"""Why runs end, in words, and the exit code that a script sees."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from reactflow.errors import (
    BudgetExceeded,
    ConfigurationError,
    ModelBehaviorError,
    ProviderError,
    ReactflowError,
    WorkflowError,
)
from reactflow.result import StopReason


class ExitCode(IntEnum):
    """What ``reactflow`` ends with."""

    ANSWERED = 0
    FAILED = 1
    WRONG_USE = 2
    PROVIDER = 3
    LIMIT = 4
    INTERRUPTED = 130
    NO_READER = 141


REASONS: Mapping[StopReason, str] = {
    StopReason.ANSWERED: "The model answered.",
    StopReason.APPROVED: "The judge passed the answer.",
    StopReason.CONFIDENCE_MET: "The judge was confident enough of the answer.",
    StopReason.NO_ISSUES: "The critic found nothing to mend.",
    StopReason.BELOW_THRESHOLD: "The critic found only what is too small to mend.",
    StopReason.MAX_REFLECTION_ROUNDS: "The judge still rejects the answer, and no revision is left (--reflect).",
    StopReason.MAX_ITERATIONS: "The last iteration is over, and the draft has not passed.",
    StopReason.MAX_ROUNDS: "The last round with tools is over, so the model had to answer without (--max-rounds).",
    StopReason.TOKEN_BUDGET: "The tokens are used up; this is the best answer so far (--budget-tokens).",
    StopReason.TIME_BUDGET: "The time is up; this is the best answer so far (--budget-seconds).",
    StopReason.COST_BUDGET: "The money is spent; this is the best answer so far.",
    StopReason.CALL_BUDGET: "The model calls are used up; this is the best answer so far.",
    StopReason.NO_PROGRESS: "The revisions stopped changing anything, and the draft has not passed.",
    StopReason.OSCILLATION: "The revisions go back and forth, and the draft has not passed.",
    StopReason.JUDGE_ERROR: "The judge failed, so nobody has judged this answer.",
    StopReason.REVISION_ERROR: "A revision failed; this is the best draft before it.",
    StopReason.RETURN_DIRECT: "A tool gave the answer itself.",
    StopReason.BLOCKED: "A guard blocked the question or the answer.",
    StopReason.TRUNCATED: "The answer was cut at the model's output limit.",
    StopReason.REFUSED: "The model refused.",
    StopReason.FILTERED: "The provider's content filter stopped the answer.",
    StopReason.PAUSED: "The run waits for somebody.",
}

LIMITS = frozenset(
    {
        StopReason.MAX_REFLECTION_ROUNDS,
        StopReason.MAX_ITERATIONS,
        StopReason.MAX_ROUNDS,
        StopReason.TOKEN_BUDGET,
        StopReason.TIME_BUDGET,
        StopReason.COST_BUDGET,
        StopReason.CALL_BUDGET,
        StopReason.TRUNCATED,
    }
)
"""A limit ended the run; what is printed is the best there was."""

NO_ANSWER = frozenset({StopReason.BLOCKED, StopReason.REFUSED, StopReason.FILTERED, StopReason.PAUSED})


def code_of_result(reason: StopReason) -> ExitCode:
    """0 for an answer, 4 where a limit ended the run, 1 where what came is no answer."""
    if reason in LIMITS:
        return ExitCode.LIMIT
    return ExitCode.FAILED if reason in NO_ANSWER else ExitCode.ANSWERED


def code_of_error(error: BaseException) -> ExitCode:
    """Whose fault it was: 2 the user's, 3 the provider's or the model's, 4 a limit, 1 anything else."""
    if isinstance(error, WorkflowError) and error.__cause__ is not None:
        return code_of_error(error.__cause__)
    match error:
        case ConfigurationError():
            return ExitCode.WRONG_USE
        case ProviderError() | ModelBehaviorError():
            return ExitCode.PROVIDER
        case BudgetExceeded():
            return ExitCode.LIMIT
        case KeyboardInterrupt():
            return ExitCode.INTERRUPTED
    return ExitCode.FAILED


def _next_step(error: ReactflowError) -> str:
    """What helps on the command line, where the error itself speaks of code."""
    if isinstance(error, ProviderError):
        return "'reactflow doctor' checks the server."
    options = {StopReason.TOKEN_BUDGET: "--budget-tokens", StopReason.TIME_BUDGET: "--budget-seconds"}
    option = options.get(error.reason) if isinstance(error, BudgetExceeded) else None
    return f"On the command line that is {option}." if option else ""


def explain_error(error: BaseException) -> str:
    """One readable paragraph: what happened and what to do next."""
    facts = " ".join(str(error).split())
    if isinstance(error, ReactflowError):
        return " ".join(filter(None, (facts or type(error).__name__, _next_step(error))))
    return f"{type(error).__name__}{f': {facts}' if facts else ''}. Run it again with --debug to see where."
