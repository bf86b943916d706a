"""The e-mail demo: rules checked in code, before and after the loop."""

import pytest

from reactflow.demos._email_rules import CUSTOMERS, Customer, constraints, violations
from reactflow.demos._scripted_email import critique, mend, write
from reactflow.demos.customer_email import email_writer, main
from reactflow.messages import UserMessage
from reactflow.testing import ScriptedChatModel


def without_the_fixes(request):
    """What the refiner says where the fixes are taken out of its prompt."""
    kept = [line for line in request.messages[-1].text.splitlines() if not line.startswith("- [severity")]
    return mend(request.replace(messages=(UserMessage("\n".join(kept)),)))


def run(customer, refiner):
    writer, critic = ScriptedChatModel(write), ScriptedChatModel(*[critique] * 3)
    workflow = email_writer(customer, writer, critic, ScriptedChatModel(refiner, refiner))
    return workflow.run(f"Write an e-mail that tells {customer.name} of the news. Segment: {customer.segment}.")


@pytest.mark.parametrize("customer", CUSTOMERS)
def test_every_rule_holds_once_the_e_mail_is_mended(customer):
    result = run(customer, mend)

    assert len(violations(result.attempts[0].draft, customer)) >= 3
    assert violations(result.final_text, customer) == []
    assert (result.changed_outside, result.refused_edits) == (0.0, ())


@pytest.mark.parametrize("customer", CUSTOMERS)
def test_without_the_fixes_in_its_prompt_the_refiner_mends_nothing(customer):
    result = run(customer, without_the_fixes)

    assert (result.final_text, result.stopped_reason) == (result.attempts[0].draft, "no_progress")


def test_the_rules_are_checked_one_by_one():
    ana = Customer("Ana Lopez", "Pro", "new")

    assert violations("x" * 199, ana) == [
        "199 characters, not 200 to 300",
        "Ana Lopez is not named",
        "the Pro plan is not named",
        "no 'welcome' for a new customer",
    ]
    good = "Dear Ana Lopez, welcome to the Pro plan." + "." * 200
    assert violations(good, ana) == []
    assert violations(good + " Better than nimbusly.", ana) == ["Nimbusly is named"]
    assert violations(good + "." * 100, ana) == ["340 characters, not 200 to 300"]
    assert len(constraints(ana)) == 5


def test_the_demo_ends_with_the_violations_before_and_after(monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    main()

    assert capsys.readouterr().out.splitlines()[-1] == ("Violations in 3 e-mails: 12 at the first try, 0 once mended.")
