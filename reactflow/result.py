"""What a run comes back with: why it stopped, what was judged, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Literal

from typing_extensions import TypeVar

from reactflow.frozen import EMPTY
from reactflow.messages import NO_USAGE, Message, Usage

DraftT = TypeVar("DraftT")
OutputT = TypeVar("OutputT", default=Any)


class StopReason(StrEnum):
    """Why a run ended.  One closed set for agents and workflows, made for charting."""

    ANSWERED = "answered"
    APPROVED = "approved"
    CONFIDENCE_MET = "confidence_met"
    NO_ISSUES = "no_issues"
    BELOW_THRESHOLD = "below_threshold"
    MAX_REFLECTION_ROUNDS = "max_reflection_rounds"
    MAX_ITERATIONS = "max_iterations"
    MAX_ROUNDS = "max_rounds"
    TOKEN_BUDGET = "token_budget"
    TIME_BUDGET = "time_budget"
    COST_BUDGET = "cost_budget"
    CALL_BUDGET = "call_budget"
    NO_PROGRESS = "no_progress"
    OSCILLATION = "oscillation"
    JUDGE_ERROR = "judge_error"
    REVISION_ERROR = "revision_error"
    RETURN_DIRECT = "return_direct"
    BLOCKED = "blocked"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    FILTERED = "filtered"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing wrong with a draft.

    Args:
        description: What is wrong, and how to mend it.
        severity: 1 (trivial) to 5 (critical).
        category: The field, section or kind of problem; may be empty.
        snippet: The words of the draft it is about; may be empty.
        suggestion: What to write instead; may be empty.
    """

    description: str
    severity: int = 3
    category: str = ""
    snippet: str = ""
    suggestion: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an evaluator says of one draft.

    Args:
        passed: Whether the draft may go out.
        feedback: What to change, for the drafter; None where there is nothing to say.
        score: Quality in 0..1, or None where none was given.
        confidence: How sure the evaluator is, in 0..1, or None.
        issues: The single problems.
        status: ``"judged"``, or ``"unjudged"`` where the evaluator failed and *passed* is only a policy.
        flags: What was odd about the verdict and how it was read, one short sentence each.
    """

    passed: bool
    feedback: str | None = None
    score: float | None = None
    confidence: float | None = None
    issues: tuple[Issue, ...] = ()
    status: Literal["judged", "unjudged"] = "judged"
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvalResult:
    """What a check found, in short; wherever a judgement is wanted it stands for one.

    Args:
        passed: Whether the attempt passed; False where nothing could be checked.
        detail: What failed, in the check's own words, such as the message of the failing test.
        score: How good it is, in 0..1, or None.
    """

    passed: bool
    detail: str = ""
    score: float | None = None

    def as_judgement(self) -> Judgement:
        """The same as a judgement."""
        return Judgement(self.passed, self.detail or None, self.score)


def rank(judgement: Judgement | None) -> tuple[bool, float]:
    """How good a draft is: approved before not approved, then by score; no score is below every score.

    A draft that was let through unjudged is not approved, and has no score: *passed* is only a policy there.
    """
    if judgement is None or judgement.status == "unjudged":
        return False, -1.0
    return judgement.passed, -1.0 if judgement.score is None else judgement.score


def best(drafts: Iterable[DraftT], judgement_of: Callable[[DraftT], Judgement | None]) -> DraftT:
    """The draft of the highest rank; of equals, and where none has a score, the latest.

    Raises:
        ValueError: There is no draft.
    """
    chosen: tuple[tuple[bool, float], DraftT] | None = None
    for draft in drafts:
        place = rank(judgement_of(draft))
        if chosen is None or place >= chosen[0]:
            chosen = place, draft
    if chosen is None:
        raise ValueError("there is no attempt to choose from")
    return chosen[1]


@dataclass(frozen=True, slots=True)
class Reflection:
    """One draft and what was said of it."""

    draft: str
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult(Generic[OutputT]):
    """What one run of an agent gives back.  ``str(result)`` is the answer's text.

    Args:
        text: The answer.
        output: The value read from it, where the agent has an ``output_type``.
        stop_reason: Why the run ended.
        approved: Whether an evaluator passed this very text.
        reviewed: Whether an evaluator gave a verdict on this very text.
        messages: The whole turn: the question, tool calls and results, drafts, feedback, notices, the answer.
        usage: Tokens of all roles together.
        usage_by_role: The same, by role (``agent``, ``judge``, ...).
        cost_usd: What *usage* cost by the budget's prices, or None where it has none.
        rounds: The agent's own model calls, the forced one included, judges not.
        reflections: Each judged draft with its judgement, oldest first.
        warnings: What a careful caller should know, one sentence each.
        context: The run's context at the end.
        elapsed_s: Seconds from the call to the answer.
        run_id: Names the run in events and logs.
        conversation_id: The conversation it belongs to, or None.
    """

    text: str
    output: OutputT | None = None
    stop_reason: StopReason = StopReason.ANSWERED
    approved: bool = False
    reviewed: bool = False
    messages: tuple[Message, ...] = ()
    usage: Usage = NO_USAGE
    usage_by_role: Mapping[str, Usage] = field(default=EMPTY)
    cost_usd: float | None = None
    rounds: int = 0
    reflections: tuple[Reflection, ...] = ()
    warnings: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default=EMPTY)
    elapsed_s: float = 0.0
    run_id: str = ""
    conversation_id: str | None = None

    def __str__(self) -> str:
        return self.text
