"""Customer e-mails under hard rules: how many break them at the first try, and how many once mended?

python -m reactflow.demos.customer_email

After the e-mail agent of "Building Self-Critiquing Agents with Gemini API".  The rules are checked in code.  Without a
key the roles are scripted: they read their prompts, and say only what follows from them.
"""

from __future__ import annotations

import os

from reactflow import ChatModel
from reactflow.demos._common import choose_model
from reactflow.demos._email_rules import CUSTOMERS, Customer, constraints, violations
from reactflow.demos._scripted_email import critique, mend, write
from reactflow.testing import ScriptedChatModel
from reactflow.workflows.critic_refiner import CriticRefiner
from reactflow.workflows.loop_config import LoopConfig, LoopResult


def email_writer(customer: Customer, writer: ChatModel, critic: ChatModel, refiner: ChatModel) -> CriticRefiner:
    """The workflow for one customer: two revisions at most, and only what is at least of medium severity is mended."""
    config = LoopConfig(max_iterations=2, severity_threshold=3)
    return CriticRefiner(writer, critic, refiner, constraints(customer), config, name="customer-email")


def write_to(customer: Customer, model: ChatModel | None) -> LoopResult:
    """Write one e-mail, with *model* in all roles, or with scripted roles where it is None."""
    writer, critic = model or ScriptedChatModel(write), model or ScriptedChatModel(*[critique] * 3)
    refiner = model or ScriptedChatModel(mend, mend)
    task = f"Write an e-mail that tells {customer.name} of the new dashboard. Segment: {customer.segment}."
    return email_writer(customer, writer, critic, refiner).run(task)


def main() -> None:
    """Write to every customer; print each e-mail, and the violations before and after."""
    model = choose_model() if os.environ.get("OPENAI_API_KEY", "").strip() else None
    if model is None:
        print("Scripted roles, because OPENAI_API_KEY is not set. For a real model: export OPENAI_API_KEY=...")
    first = refined = 0
    for customer in CUSTOMERS:
        result = write_to(customer, model)
        before, after = violations(result.attempts[0].draft, customer), violations(result.final_text, customer)
        first, refined = first + len(before), refined + len(after)
        print(f"\n{customer.name}, {customer.plan} plan, {customer.segment}\n{result}\n")
        print(f"  at the first try: {'; '.join(before) or 'no violation'}")
        print(f"  {result.stopped_reason} after {result.iterations}: {'; '.join(after) or 'no violation'}")
        print(f"  text changed where nothing was flagged: {result.changed_outside:.0%}")
    print(f"\nViolations in {len(CUSTOMERS)} e-mails: {first} at the first try, {refined} once mended.")


if __name__ == "__main__":
    main()
