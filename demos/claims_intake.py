"""A claims intake that a critic sends back until no field is missing.

python -m reactflow.demos.claims_intake

After the claims example of Confluent, "Improve Agent Output with Reflection Workflows".  Without a key the roles are
scripted: they read their prompts, and say only what follows from them.
"""

from __future__ import annotations

import os

from reactflow import ChatModel, SimpleReactAgent
from reactflow.demos._common import choose_model, watch
from reactflow.demos._scripted_claims import extract, review
from reactflow.testing import ScriptedChatModel
from reactflow.workflows.drafter_critic import DrafterCritic

CLAIM = "description=broken windshield; lat=37.7749; lon=-122.4194"
FIELDS = "incident_type, damage_summary, estimated_severity, estimated_cost, location, missing_fields"
EXTRACTOR = f"You take in insurance claims. Answer with one JSON object only, with the fields {FIELDS}."
REVIEWER = (
    f"You review claims that were turned into JSON. Every field must be there ({FIELDS}), estimated_cost must be a "
    "likely number of US dollars, and what the description does not say must be in missing_fields, not made up."
)


def intake(drafter: ChatModel, critic: ChatModel) -> DrafterCritic:
    """The workflow: two agents with instructions of their own, at most three drafts."""
    extractor = SimpleReactAgent(model=drafter, system_prompt=EXTRACTOR, react_prompt=None, name="claim-extractor")
    reviewer = SimpleReactAgent(model=critic, system_prompt=REVIEWER, react_prompt=None, name="claim-critic")
    return DrafterCritic(extractor, reviewer, pass_condition="approval", max_iterations=3, name="claims-intake")


def main() -> None:
    """Take in one claim, and show drafts and verdicts on the way."""
    if any(os.environ.get(name, "").strip() for name in ("OPENAI_API_KEY", "REACTFLOW_GGUF")):
        drafter = critic = choose_model()
    else:
        print("Scripted roles, because OPENAI_API_KEY is not set. For a real model: export OPENAI_API_KEY=...")
        drafter, critic = ScriptedChatModel(*[extract] * 3), ScriptedChatModel(*[review] * 3)
    print(f"Claim: {CLAIM}")
    watch(intake(drafter, critic).stream(CLAIM))


if __name__ == "__main__":
    main()
