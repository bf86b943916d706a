"""Best of n: draft several times, judge each, keep the best.  A whole workflow on the shared loop."""

from __future__ import annotations

from typing import Any, Literal

from reactflow.budget import Budget
from reactflow.judging.evaluators import as_evaluator
from reactflow.result import Judgement, StopReason
from reactflow.workflows.attempt import Trail, WorkflowResult
from reactflow.workflows.reply import Reply
from reactflow.workflows.role import as_role
from reactflow.workflows.workflow import Workflow, checked_iterations


class BestOfN(Workflow[WorkflowResult]):
    """Makes *n* drafts of one task, each without knowing the others, and returns the one the judge ranks highest.

    A later draft that cannot be made ends the run as ``revision_error``.

    Args:
        drafter: Who drafts: an agent, a workflow, a ChatModel, or a function ``(prompt: str) -> str``.
        judge: What ``as_evaluator`` takes.  A draft that passes ranks above one that does not; then the score decides.
        n: How many drafts, >= 1.
        on_judge_error: Where the judge's model fails: ``"accept"`` leaves that draft unjudged, below all that were
            judged (``judge_error`` where none was), ``"raise"`` raises.
        budget: The limits of each run, all drafts together; None for none.
        name: What events and logs call it.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    def __init__(
        self,
        drafter: Any,
        judge: Any,
        n: int = 4,
        *,
        on_judge_error: Literal["accept", "raise"] = "accept",
        budget: Budget | None = None,
        name: str = "best-of-n",
    ) -> None:
        checked_iterations(n, "n")
        super().__init__(
            name=name, max_iterations=n, budget=budget, on_judge_error=on_judge_error, on_revision_error="return"
        )
        self.drafter = as_role(drafter, "drafter")
        self.judge = as_evaluator(judge)

    async def _draft(self, trail: Trail) -> Reply:
        return await self.drafter.ask(trail.question, trail, drafting=True)

    async def _judge(self, trail: Trail) -> Judgement:
        return await self._heard(self.judge, trail, role="judge", what="Draft")

    def _ending(self, trail: Trail) -> StopReason | None:
        """Only the last draft ends the run: one that passed may be followed by a better one."""
        return None if trail.number < self.max_iterations else self._accepted(trail, self._choose(trail))
