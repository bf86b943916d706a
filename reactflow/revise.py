"""Send a rejected draft back: the short handler around the ReAct loop.

The loop's last reply carries flags that a :class:`~reactflow.advisors.ReflectionAdvisor` put there.  Where they say
that a revision is required, the draft goes into the conversation as the assistant's message and the feedback after it
as a user message that no user wrote; then the loop runs again, tools allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from reactflow.chain import Handler
from reactflow.errors import BudgetExceeded, ModelBehaviorError, ProviderError
from reactflow.events import RevisionStarted
from reactflow.frozen import FrozenDict
from reactflow.judge import FEEDBACK, FLAGS, REQUIRED, SKIP, judgement_of
from reactflow.messages import Message
from reactflow.model import ChatRequest, ChatResponse, Run, cut_short
from reactflow.phrases import feedback_message, generic_feedback
from reactflow.progress import stalled
from reactflow.result import StopReason, best


def best_draft(drafts: Iterable[ChatResponse]) -> ChatResponse:
    """The highest by (approved, score); of equals, and where none has a score, the latest."""
    return best(drafts, judgement_of)


@dataclass(frozen=True, slots=True)
class Revise:
    """Runs *attempt* again while its answers are rejected.

    Args:
        attempt: The ReAct loop.
        rounds: How often a rejected answer is sent back, >= 0.
        judge_final: Whether the last revision is judged too; else it is returned as the latest, unreviewed.
        on_error: What a provider's or model's error in a revision does: ``"return"`` the best draft, or ``"raise"``.
    """

    attempt: Handler
    rounds: int = 1
    judge_final: bool = True
    on_error: Literal["return", "raise"] = "return"

    async def __call__(self, request: ChatRequest) -> ChatResponse:
        """Answer *request*, with at most ``rounds`` revisions.

        Returns:
            The best draft.  Its ``transcript`` is all that was said in the turn before it, losing drafts included.
        """
        run, start = request.run, len(request.messages)
        drafts: list[ChatResponse] = []
        while True:
            run.attempt += 1
            try:
                draft = await self.attempt(self._fresh(request, revisions=len(drafts)))
            except Exception as error:
                if not drafts or not self._recovers(run, error):
                    raise
                return _answer(drafts, request.messages[start:], _given_up(run, error))
            request = request.followed_by(*draft.transcript)
            draft = draft.replace(transcript=request.messages[start:])
            if drafts and cut_short(draft):  # no whole answer, so it never replaces a draft that is one
                run.warn(f"A revision ended with {draft.finish_reason!r}, so the best whole draft is returned.")
                return _answer(drafts, (*draft.transcript, draft.message), StopReason.REVISION_ERROR)
            drafts.append(draft)
            run.drafts[run.attempt] = draft
            reason = self._ending(drafts)
            if reason is not None:
                latest_wins = self._unjudged(revisions=len(drafts) - 1)
                return _answer([draft] if latest_wins else drafts, (*draft.transcript, draft.message), reason)
            request = _sent_back(request, draft, revision=len(drafts))

    def _unjudged(self, revisions: int) -> bool:
        """Whether this is the last revision, and nobody is to judge it."""
        return bool(revisions) and revisions == self.rounds and not self.judge_final

    def _fresh(self, request: ChatRequest, revisions: int) -> ChatRequest:
        """Clear the flags of an earlier draft, and say where this one need not be judged."""
        context = {key: value for key, value in request.context.items() if key not in FLAGS}
        if self._unjudged(revisions):
            context[SKIP] = True
        return request if context == request.context else request.replace(context=FrozenDict(context))

    def _ending(self, drafts: list[ChatResponse]) -> StopReason | None:
        """Why the newest draft ends the turn, or None where it goes back."""
        draft, revisions = drafts[-1], len(drafts) - 1
        judgement = judgement_of(draft)
        if draft.stop_reason is not None:
            return draft.stop_reason
        if self._unjudged(revisions):
            return StopReason.MAX_REFLECTION_ROUNDS
        if not draft.context.get(REQUIRED):
            if judgement is not None and judgement.status == "unjudged":
                return StopReason.JUDGE_ERROR
            return StopReason.APPROVED if REQUIRED in draft.context else StopReason.ANSWERED
        if revisions >= self.rounds:
            return StopReason.MAX_REFLECTION_ROUNDS
        judgements = [judgement_of(each) for each in drafts]
        counts = [0 if each is None else len(each.issues) for each in judgements]
        return stalled([each.text for each in drafts], [_complaint(each) for each in drafts], counts)

    def _recovers(self, run: Run, error: Exception) -> bool:
        """Whether *error* only ends the revising: a limit of this run, or a failure of the model in the revision."""
        if isinstance(error, BudgetExceeded):
            return run.meter.raised(error)
        of_the_model = isinstance(error, (ModelBehaviorError, ProviderError)) or error is run.model_error
        in_judging = run.attempt in run.drafts  # whose policy has been applied already
        return of_the_model and not in_judging and self.on_error == "return"


def _given_up(run: Run, error: Exception) -> StopReason:
    if isinstance(error, BudgetExceeded):
        return error.reason
    run.warn(f"A revision failed, so the best draft is returned: {error}")
    return StopReason.REVISION_ERROR


def _answer(drafts: list[ChatResponse], said: tuple[Message, ...], reason: StopReason) -> ChatResponse:
    """The best of *drafts*, with all that was *said* in the turn before it and all that the attempts added."""
    chosen = best_draft(drafts)
    before = said[:-1] if said[-1] is chosen.message else said
    context: dict[str, object] = {}
    for draft in (*drafts, chosen):  # the flags are those of the draft that is returned
        context = {key: value for key, value in context.items() if key not in FLAGS} | dict(draft.context)
    context.pop(SKIP, None)
    return chosen.replace(transcript=before, context=FrozenDict(context), stop_reason=reason)


def _sent_back(request: ChatRequest, draft: ChatResponse, revision: int) -> ChatRequest:
    """The request for a revision: the draft as the assistant's message, the feedback as a user's."""
    question = request.run.question.text
    feedback = draft.context.get(FEEDBACK) or generic_feedback(question)
    request.emit(RevisionStarted(revision=revision, feedback=feedback))
    request = request.with_context(draft.context)
    return request.followed_by(draft.message, feedback_message(question, feedback))


def _complaint(draft: ChatResponse) -> str:
    """The evaluator's own words; the sentence that stands in for none says nothing about progress."""
    judgement = judgement_of(draft)
    return (judgement.feedback if judgement else draft.context.get(FEEDBACK)) or ""
