"""Send a rejected draft back: the short handler around the ReAct loop.

The loop's last reply carries flags that a :class:`~reactflow.advisors.ReflectionAdvisor` put there.  Where they say
that a revision is required, the draft goes into the conversation as the assistant's message and the feedback after it
as a user message that no user wrote; then the loop runs again, tools allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from reactflow.advisors.reflection import FEEDBACK, JUDGEMENT, REQUIRED, SKIP
from reactflow.chain import Handler
from reactflow.errors import BudgetExceeded, ModelBehaviorError, ProviderError
from reactflow.events import RevisionStarted
from reactflow.frozen import FrozenDict
from reactflow.messages import Message
from reactflow.model import ChatRequest, ChatResponse, cut_short
from reactflow.phrases import feedback_message, generic_feedback
from reactflow.progress import stalled
from reactflow.result import Judgement, StopReason

FLAGS = (REQUIRED, FEEDBACK, JUDGEMENT, SKIP)


def judgement_of(response: ChatResponse) -> Judgement | None:
    """What the evaluator said of this very draft, or None where nobody judged it."""
    return response.context.get(JUDGEMENT)


def best(drafts: Iterable[ChatResponse]) -> ChatResponse:
    """The highest by (approved, score); of equals, and where none has a score, the latest."""

    def rank(draft: ChatResponse) -> tuple[bool, float]:
        judgement = judgement_of(draft)
        if judgement is None:
            return False, -1.0
        return judgement.passed, -1.0 if judgement.score is None else judgement.score

    chosen: ChatResponse | None = None
    for draft in drafts:
        if chosen is None or rank(draft) >= rank(chosen):
            chosen = draft
    if chosen is None:
        raise ValueError("there is no draft to choose from")
    return chosen


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
            run.attempt = len(drafts) + 1
            try:
                draft = await self.attempt(self._fresh(request, revisions=len(drafts)))
            except (BudgetExceeded, ModelBehaviorError, ProviderError) as error:
                if not drafts or (self.on_error == "raise" and not isinstance(error, BudgetExceeded)):
                    raise
                return self._chosen(drafts, request.messages[start:], self._given_up(request, error))
            said = request.followed_by(*draft.transcript)
            if drafts and cut_short(draft):  # no whole answer, so it never replaces a draft that is one
                run.warn(f"A revision ended with {draft.finish_reason!r}, so the best whole draft is returned.")
                said = said.followed_by(draft.message)
                return self._chosen(drafts, said.messages[start:], StopReason.REVISION_ERROR)
            drafts.append(draft)
            run.drafts[run.attempt] = draft
            reason = self._ending(drafts)
            if reason is not None:
                return self._chosen(drafts, said.messages[start:], reason)
            request = _sent_back(said, draft, revision=len(drafts))

    def _fresh(self, request: ChatRequest, revisions: int) -> ChatRequest:
        """Clear the flags of an earlier draft, and say where this one need not be judged."""
        context = {key: value for key, value in request.context.items() if key not in FLAGS}
        if revisions and revisions == self.rounds and not self.judge_final:
            context[SKIP] = True
        return request if context == request.context else request.replace(context=FrozenDict(context))

    def _ending(self, drafts: list[ChatResponse]) -> StopReason | None:
        """Why the newest draft ends the turn, or None where it goes back."""
        draft, revisions = drafts[-1], len(drafts) - 1
        if draft.stop_reason is not None:
            return draft.stop_reason
        if REQUIRED not in draft.context:
            return StopReason.MAX_REFLECTION_ROUNDS if revisions else StopReason.ANSWERED
        if not draft.context[REQUIRED]:
            return StopReason.APPROVED
        if revisions >= self.rounds:
            return StopReason.MAX_REFLECTION_ROUNDS
        return stalled([each.text for each in drafts], [_complaint(each) for each in drafts])

    def _given_up(self, request: ChatRequest, error: Exception) -> StopReason:
        if isinstance(error, BudgetExceeded):
            return error.reason
        request.run.warn(f"A revision failed, so the best draft is returned: {error}")
        return StopReason.REVISION_ERROR

    def _chosen(self, drafts: list[ChatResponse], said: tuple[Message, ...], reason: StopReason) -> ChatResponse:
        latest = drafts[-1]
        unjudged = not self.judge_final and len(drafts) > self.rounds
        chosen = latest if unjudged else best(drafts)
        if chosen is not latest and latest.message not in said:
            said = (*said, latest.message)
        context: dict[str, object] = {}
        for draft in (*drafts, chosen):  # the flags are those of the draft that is returned
            context = {key: value for key, value in context.items() if key not in FLAGS} | dict(draft.context)
        return chosen.replace(transcript=said, context=FrozenDict(context), stop_reason=reason)


def _sent_back(request: ChatRequest, draft: ChatResponse, revision: int) -> ChatRequest:
    """The request for a revision: the draft as the assistant's message, the feedback as a user's."""
    question = request.run.question.text
    feedback = draft.context.get(FEEDBACK) or generic_feedback(question)
    request.emit(RevisionStarted(revision=revision, feedback=feedback))
    request = request.with_context(**draft.context)
    return request.followed_by(draft.message, feedback_message(question, feedback))


def _complaint(draft: ChatResponse) -> str:
    """The evaluator's own words; the sentence that stands in for none says nothing about progress."""
    judgement = judgement_of(draft)
    return (judgement.feedback if judgement else draft.context.get(FEEDBACK)) or ""
