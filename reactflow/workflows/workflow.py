"""The one bounded loop behind every workflow.

    draft -> judge -> passed? stop : learn, and draft again

It ends when a draft passes, when the iterations, the tokens, the seconds, the money or the model calls are used up,
when another round would lead nowhere, or when a role fails.  Whichever comes first, what comes back is the best draft
so far with the reason, and a record of every attempt.  A workflow says only how a draft is made and how it is judged;
:mod:`reactflow.workflows.best_of_n` is a whole one in a few lines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeVar, cast

from reactflow.budget import Budget
from reactflow.doors import Doors
from reactflow.errors import (
    BudgetExceeded,
    ConfigurationError,
    ReactflowError,
    WorkflowError,
    of_a_model,
)
from reactflow.frozen import FrozenDict
from reactflow.judge import Evaluator
from reactflow.model import ChatRequest
from reactflow.progress import stalled
from reactflow.result import Judgement, StopReason
from reactflow.workflows.attempt import Attempt, Trail, WorkflowResult, best, failed_with
from reactflow.workflows.reply import Reply
from reactflow.workflows.role import hear

ResultT = TypeVar("ResultT", bound=WorkflowResult)

OnJudgeError: TypeAlias = Literal["accept", "reject", "raise"]
OnRevisionError: TypeAlias = Literal["return", "raise"]


class Workflow(Doors[ResultT]):
    """Makes drafts and has them judged until one passes or a limit comes.  A base to build workflows on.

    A subclass gives ``_draft`` and ``_judge``, and may give ``_learn``, ``_ending``, ``_choose`` and ``_extras``.  All
    get the run's :class:`~reactflow.workflows.attempt.Trail`; a workflow itself holds nothing of a run, so it is safe
    for concurrent use.

    Args:
        name: What events and logs call it.
        max_iterations: Drafts that are judged at most, >= 1.
        budget: The limits of each run, all roles together; None for none.
        on_judge_error: When a verdict cannot be had: end with the draft, unjudged, as ``judge_error``
            (``"accept"``), go on as if it were rejected (``"reject"``), or raise.
        on_revision_error: What a model's or provider's error, or a role's own limit, in a later draft does:
            ``"return"`` the best draft so far as ``revision_error``, or ``"raise"``.
        stop_when_stalled: Whether drafts that stopped changing, or go back and forth, end the run.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    max_rounds = None  # each role keeps its own; one given to a call holds for all of them
    holds_back = True
    extra_drafts = 0
    """Drafts beyond *max_iterations*: 1 where the first draft is made before the first revision is counted."""
    judges_first = False
    """Whether an iteration is a judgement and then a revision, and not a draft and then its judgement."""

    def __init__(
        self,
        *,
        name: str,
        max_iterations: int,
        budget: Budget | None = None,
        on_judge_error: OnJudgeError = "raise",
        on_revision_error: OnRevisionError = "raise",
        stop_when_stalled: bool = True,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise ConfigurationError(f"name={name!r}: give a text that is not blank.")
        if budget is not None and not isinstance(budget, Budget):
            raise ConfigurationError(f"budget={budget!r}: give Budget(...), or None for no limit.")
        if on_judge_error not in ("accept", "reject", "raise"):
            raise ConfigurationError(f"on_judge_error={on_judge_error!r}: give 'accept', 'reject' or 'raise'.")
        if on_revision_error not in ("return", "raise"):
            raise ConfigurationError(f"on_revision_error={on_revision_error!r}: give 'return' or 'raise'.")
        self.name = name
        self.max_iterations = checked_iterations(max_iterations)
        self.budget = budget
        self.on_judge_error = on_judge_error
        self.on_revision_error = on_revision_error
        self.stop_when_stalled = stop_when_stalled

    async def _draft(self, trail: Trail) -> Reply | StopReason:
        """Make the next draft, or say why there is none to make."""
        raise NotImplementedError  # abstract

    async def _judge(self, trail: Trail) -> Judgement:
        """Judge ``trail.latest``."""
        raise NotImplementedError  # abstract

    def _judges_last(self, trail: Trail) -> bool:
        """Whether the draft just made, which is beyond *max_iterations*, is judged too."""
        return True

    async def _learn(self, trail: Trail) -> None:
        """Do what is to be done after a draft that did not end the run, the last one included."""

    def _ending(self, trail: Trail) -> StopReason | None:
        """Why the draft just judged ends the run, or None where it does not."""
        accepted = self._accepted(trail, trail.latest)
        if accepted is not None:
            return accepted
        if not self.stop_when_stalled or trail.number >= self.max_iterations + self.extra_drafts:
            return None
        told = [(each.draft, each.complaint, len(each.issues)) for each in trail.attempts]
        return stalled(*zip(*told, strict=True))

    def _accepted(self, trail: Trail, attempt: Attempt) -> StopReason | None:
        """Why *attempt* may end the run: it passed, or goes out unjudged.  None where it was rejected."""
        if attempt.judgement is None or not attempt.judgement.passed:
            return None
        return self._approval(trail) if attempt.reviewed else StopReason.JUDGE_ERROR

    def _approval(self, trail: Trail) -> StopReason:
        """The stop reason of a draft that passed."""
        return StopReason.APPROVED

    def _choose(self, trail: Trail) -> Attempt:
        """The attempt whose draft is returned."""
        return best(trail.attempts)

    def _extras(self, trail: Trail, chosen: Attempt) -> dict[str, Any]:
        """More fields for the result."""
        return {}

    def _result_type(self) -> type[ResultT]:
        return cast(type[ResultT], WorkflowResult)

    async def _perform(self, request: ChatRequest) -> ResultT:
        trail = Trail(request)
        try:
            reason = await self._iterate(trail)
        except ReactflowError as error:
            limit = isinstance(error, BudgetExceeded) and trail.run.meter.raised(error)
            if not limit or not trail.attempts:
                error.partial = self._result(trail, failed_with(trail)) if trail.attempts else None
                raise
            reason = cast(BudgetExceeded, error).reason
        return self._result(trail, reason)

    async def _iterate(self, trail: Trail) -> StopReason:
        for number in range(1, self.max_iterations + self.extra_drafts + 1):
            trail.begin(number)
            trail.enter(max(1, number - self.extra_drafts), self.max_iterations)
            reply = await self._next_draft(trail)
            if isinstance(reply, StopReason):
                return reply
            trail.drafted(reply)
            if reply.flaw is not None:
                return reply.flaw
            if number > self.max_iterations and not self._judges_last(trail):
                break
            if self.judges_first:
                trail.enter(min(number, self.max_iterations), self.max_iterations)
            trail.judged(await self._judge(trail))
            reason = self._ending(trail)
            if reason is not None:
                return reason
            await self._learn(trail)
        return StopReason.MAX_ITERATIONS

    async def _next_draft(self, trail: Trail) -> Reply | StopReason:
        """The next draft.  Once there is one, a failed or cut one never replaces it."""
        try:
            reply = await self._draft(trail)
        except WorkflowError as error:
            if not trail.attempts or self.on_revision_error == "raise" or not of_a_model(error):
                raise
            trail.run.warn(f"A revision failed, so the best draft is returned: {error}")
            return StopReason.REVISION_ERROR
        if trail.attempts and isinstance(reply, Reply) and reply.flaw is not None:
            trail.run.warn(f"A revision was no whole answer ({reply.flaw}), so the best whole draft is returned.")
            return StopReason.REVISION_ERROR
        return reply

    async def _heard(self, evaluator: Evaluator, trail: Trail, *, role: str, what: str) -> Judgement:
        """What :func:`~reactflow.workflows.role.hear` hears, or what stands for it where its model fails."""
        try:
            return await hear(evaluator, trail, role=role, what=what)
        except WorkflowError as error:
            if not of_a_model(error):
                raise
            return self._unjudged(trail, error)

    def _unjudged(self, trail: Trail, error: Exception) -> Judgement:
        """What stands for the judgement where none could be had, by *on_judge_error*."""
        if self.on_judge_error == "raise":
            raise error
        trail.run.warn(f"Draft {len(trail.attempts)} could not be judged: {error}")
        return Judgement(passed=self.on_judge_error == "accept", status="unjudged")

    def _result(self, trail: Trail, reason: StopReason) -> ResultT:
        trail.settle()
        run, meter, chosen = trail.run, trail.run.meter, self._choose(trail)
        made = self._result_type()(
            text=chosen.draft,
            output=None if isinstance(chosen.output, str) else chosen.output,
            stop_reason=reason,
            approved=chosen.passed,
            reviewed=chosen.reviewed,
            messages=trail.transcript(chosen),
            usage=meter.usage,
            usage_by_role=FrozenDict(meter.usage_by_role),
            cost_usd=meter.cost_usd if meter.budget.prices else None,
            rounds=trail.draft_calls,
            reflections=tuple(run.reflections),
            warnings=tuple(run.warnings),
            context=trail.request.context,
            elapsed_s=meter.elapsed_s,
            run_id=run.run_id,
            conversation_id=run.conversation_id,
            iterations=trail.iteration,
            attempts=tuple(trail.attempts),
        )
        return replace(made, **self._extras(trail, chosen))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, max_iterations={self.max_iterations})"


def checked_iterations(value: Any, name: str = "max_iterations") -> int:
    """Return *value*, or raise ConfigurationError where it is no whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{name}={value!r}: give a whole number from 1.")
    return value
