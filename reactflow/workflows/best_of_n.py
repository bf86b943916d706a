"""Best of n: draft several times, judge each, keep the best.  A whole workflow on the shared loop."""

from __future__ import annotations

from typing import Any

from reactflow.budget import Budget
from reactflow.errors import WorkflowError
from reactflow.judging.evaluators import as_evaluator
from reactflow.result import Judgement, StopReason
from reactflow.workflows.attempt import Trail, WorkflowResult
from reactflow.workflows.reply import Reply
from reactflow.workflows.role import as_role, hear
from reactflow.workflows.workflow import Workflow, checked_iterations, of_a_model


class BestOfN(Workflow[WorkflowResult]):
    """Makes *n* drafts of one task, each without knowing the others, and returns the one the judge ranks highest.

    Once a draft is judged no model's failure loses it: a later draft that cannot be made ends the run as
    ``revision_error``, one that cannot be judged stays unjudged.

    Args:
        drafter: Who drafts: an agent, a workflow, a ChatModel, or a function ``(prompt: str) -> str``.
        judge: Who judges: anything :func:`~reactflow.judging.evaluators.as_evaluator` takes.  A draft that passes
            ranks above one that does not; among equals the score decides.
        n: How many drafts, >= 1.
        budget: The limits of each run, all drafts together; None for none.
        name: What events and logs call it.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    def __init__(
        self, drafter: Any, judge: Any, n: int = 4, *, budget: Budget | None = None, name: str = "best-of-n"
    ) -> None:
        drafts = checked_iterations(n, "n")
        super().__init__(name=name, max_iterations=drafts, budget=budget, on_revision_error="return")
        self.drafter = as_role(drafter, "drafter")
        self.judge = as_evaluator(judge)

    async def _draft(self, trail: Trail) -> Reply:
        return await self.drafter.ask(trail.question, trail, drafting=True)

    async def _judge(self, trail: Trail) -> Judgement:
        try:
            return await hear(self.judge, trail, role="judge", what="Draft")
        except WorkflowError as error:
            if not of_a_model(error) or not any(attempt.reviewed for attempt in trail.attempts):
                raise
            trail.run.warn(f"Draft {trail.number} could not be judged: {error}")
            return Judgement(False, status="unjudged")

    def _ending(self, trail: Trail) -> StopReason | None:
        """Only the last draft ends the run: one that passed may be followed by a better one."""
        if trail.number < self.max_iterations:
            return None
        return StopReason.APPROVED if self._choose(trail).passed else StopReason.MAX_ITERATIONS
