"""What a workflow keeps of each attempt, and what it comes back with."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from reactflow.errors import ConfigurationError
from reactflow.events import DraftReady, IterationStarted, VerdictGiven
from reactflow.judging.verdict import issues_text
from reactflow.messages import AssistantMessage, Message, UserMessage
from reactflow.model import ChatRequest
from reactflow.result import AgentResult, Issue, Judgement, Reflection, StopReason, rank
from reactflow.result import best as best_draft
from reactflow.workflows.reply import Reply

APPROVED = "APPROVED"
REQUIRED_CHANGES = "REQUIRED_CHANGES"


@dataclass(frozen=True, slots=True)
class Critique(Judgement):
    """A judgement with the critic's own verdict, which need not be what the draft passed or failed by.

    Args:
        verdict: ``"APPROVED"``, ``"REQUIRED_CHANGES"``, or None where the critic gave none.
    """

    verdict: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One draft and what was said of it.

    Args:
        draft: The text.
        output: What the role returned, where that is no plain text (an agent's ``output``, a dict); else the text.
        judgement: What the evaluator said of this very draft; None where nobody judged it.
        seconds: Wall-clock seconds for the draft, its judgement and what was learnt from it.
        tokens: Tokens read and written for all that, as the models reported them.
    """

    draft: str
    output: Any = None
    judgement: Judgement | None = None
    seconds: float = 0.0
    tokens: int = 0

    @property
    def verdict(self) -> str | None:
        """The critic's own ``"APPROVED"`` or ``"REQUIRED_CHANGES"``; by *passed* where it has no such words."""
        if self.judgement is None or self.judgement.status == "unjudged":
            return None
        if isinstance(self.judgement, Critique):
            return self.judgement.verdict
        return APPROVED if self.judgement.passed else REQUIRED_CHANGES

    @property
    def reviewed(self) -> bool:
        """Whether an evaluator gave a verdict on this draft."""
        return self.judgement is not None and self.judgement.status == "judged"

    @property
    def passed(self) -> bool:
        """Whether this draft met the pass condition; one let through unjudged did not."""
        return self.judgement is not None and self.reviewed and self.judgement.passed

    @property
    def score(self) -> float | None:
        """The evaluator's score in 0..1, or None."""
        return None if self.judgement is None else self.judgement.score

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What the evaluator found wrong."""
        return () if self.judgement is None else self.judgement.issues

    @property
    def feedback(self) -> str | None:
        """What the evaluator said to change, or None."""
        return None if self.judgement is None else self.judgement.feedback

    @property
    def complaint(self) -> str:
        """Issues and feedback as one text; blank where no reason was given."""
        said = self.feedback or ""
        issues = issues_text(issue for issue in self.issues if issue.description not in said)
        return "\n".join(part for part in (issues, said) if part.strip())

    @property
    def rank(self) -> tuple[bool, float]:
        """How good it is: passed before not passed, then by score; no score is below every score."""
        return rank(self.judgement)


def best(attempts: Iterable[Attempt]) -> Attempt:
    """The highest by rank; of equals, and where none has a score, the latest, judged or not."""
    return best_draft(attempts, lambda attempt: attempt.judgement)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowResult(AgentResult):
    """What one run of a workflow gives back: an agent's result, and every attempt.

    ``approved`` and ``reviewed`` speak of the text that is returned.  ``rounds`` counts the model calls made for
    drafts, those for judging and learning left out.

    Args:
        iterations: How many iterations were begun, 1 to the workflow's limit.
        attempts: Every draft that was finished, oldest first.
    """

    iterations: int = 0
    attempts: tuple[Attempt, ...] = ()


class Trail:
    """What a workflow's run knows so far; every step gets it.

    Attributes:
        request: The caller's request; its only message is the task.
        run: The run it belongs to, with the meter.
        attempts: Every draft so far, oldest first.
        number: Which draft is in the making, or was made last, from 1.
        iteration: The one under way, from 1.
        reply: What the drafting role last returned.
        notes: Anything a workflow wants to keep for its result.
    """

    def __init__(self, request: ChatRequest) -> None:
        if not request.messages or not isinstance(request.messages[-1], UserMessage):
            raise ConfigurationError("A workflow is asked with one user message, the task.")
        self.request = request
        self.run = request.run
        self.question = request.messages[-1]
        self.attempts: list[Attempt] = []
        self.number = 0
        self.iteration = 0
        self.reply: Reply | None = None
        self.draft_calls = 0
        self.notes: dict[str, Any] = {}
        self._mark()

    @property
    def task(self) -> str:
        """What was asked."""
        return self.question.text

    @property
    def latest(self) -> Attempt:
        """The newest attempt; there must be one."""
        return self.attempts[-1]

    def message(self, text: str) -> UserMessage:
        """*text* with the task's images."""
        return replace(self.question, text=text)

    def begin(self, number: int) -> None:
        """Note that the making of a draft begins; time and tokens count for it from here."""
        self.settle()
        self._mark()
        self.number = number

    def enter(self, iteration: int, limit: int) -> None:
        """Note which iteration is under way, and say so where it is a new one."""
        if iteration != self.iteration:
            self.iteration = iteration
            self.request.emit(IterationStarted(iteration=iteration, max_iterations=limit))

    def drafted(self, reply: Reply) -> Attempt:
        """Note a finished draft at once, so that a limit or an error while it is judged cannot lose it."""
        self.reply = reply
        self.draft_calls += self.run.meter.usage.model_calls - self._calls
        self.attempts.append(Attempt(draft=reply.text, output=reply.value))
        self.settle()
        self.request.emit(DraftReady(draft=len(self.attempts), text=reply.text))
        return self.latest

    def judged(self, judgement: Judgement) -> Attempt:
        """Note what was said of the newest draft."""
        self.attempts[-1] = replace(self.latest, judgement=judgement)
        self.settle()
        self.run.reflections.append(Reflection(self.latest.draft, judgement))
        self.request.emit(
            VerdictGiven(
                draft=len(self.attempts),
                passed=judgement.passed,
                feedback=judgement.feedback if judgement.passed else self.latest.complaint or None,
                score=judgement.score,
                status=judgement.status,
            )
        )
        return self.latest

    def settle(self) -> None:
        """Count seconds and tokens since :meth:`begin` for the newest attempt, where that is the draft begun."""
        if self.attempts and len(self.attempts) == self.number:
            seconds = time.perf_counter() - self._started
            tokens = self.run.meter.usage.total_tokens - self._tokens
            self.attempts[-1] = replace(self.latest, seconds=seconds, tokens=tokens)

    def transcript(self, answer: Attempt) -> tuple[Message, ...]:
        """The turn as a conversation: the task, drafts with what was said of them, the answer last."""
        said: list[Message] = [self.question]
        for attempt in self.attempts:
            said.append(AssistantMessage(attempt.draft))
            if attempt is not self.attempts[-1] and attempt.complaint:
                said.append(UserMessage(attempt.complaint, synthetic="reflection"))
        if answer is not self.attempts[-1]:
            said.append(AssistantMessage(answer.draft))
        return tuple(said)

    def _mark(self) -> None:
        self._started = time.perf_counter()
        self._tokens = self.run.meter.usage.total_tokens
        self._calls = self.run.meter.usage.model_calls


def failed_with(trail: Trail) -> StopReason:
    """The stop reason of the best draft of a run that ended in an error."""
    return StopReason.REVISION_ERROR if trail.latest.reviewed else StopReason.JUDGE_ERROR
