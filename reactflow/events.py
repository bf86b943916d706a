"""What a run says while it happens.

Events are a side channel: they travel through ``request.emit`` while the answer itself travels as a return value.
A listener that watches or edits them wraps ``emit`` and passes on the request; no event is ever awaited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from reactflow.messages import Usage
from reactflow.result import AgentResult, StopReason


@dataclass(frozen=True, slots=True)
class Event:
    """The root of all events."""


Emit: TypeAlias = Callable[[Event], None]
"""Where events go.  Called from the run's own thread; must not block."""


def discard(event: Event) -> None:
    """Drop *event*: the ``emit`` of a run that nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run begins."""

    run_id: str
    question: str
    conversation_id: str | None = None
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStarted(Event):
    """A model is asked.  *round* counts the calls of *role* in this run, from 1."""

    round: int
    role: str
    model: str


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """A piece of visible text.  A model sends only *text*; round and role are stamped on the way."""

    text: str
    round: int = 0
    role: str = "agent"


@dataclass(frozen=True, slots=True)
class ReasoningDelta(Event):
    """A piece of the model's thinking; never part of the answer."""

    text: str
    round: int = 0
    role: str = "agent"


@dataclass(frozen=True, slots=True)
class TextWithdrawn(Event):
    """The text streamed in *round* is not the answer: forget it."""

    round: int = 0
    role: str = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFinished(Event):
    """A model has answered."""

    round: int
    role: str
    model: str
    usage: Usage
    elapsed_s: float
    finish_reason: str | None = None
    tool_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed(Event):
    """A model was asked and gave no answer; *error* is the class of what was raised, whoever deals with it."""

    round: int
    role: str
    model: str
    error: str
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """A tool begins to run."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Event):
    """A tool has ended; *text* is what the model will read."""

    call_id: str
    name: str
    text: str
    is_error: bool
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationStarted(Event):
    """A workflow begins another iteration.  *iteration* counts from 1."""

    iteration: int
    max_iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftReady(Event):
    """A complete answer that has yet to be judged.  *draft* counts from 1."""

    draft: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictGiven(Event):
    """A draft has been judged, or could not be (*status* ``"unjudged"``)."""

    draft: int
    passed: bool
    feedback: str | None = None
    score: float | None = None
    status: str = "judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonLearned(Event):
    """A failed attempt taught something for the next one.  *attempt* counts from 1."""

    attempt: int
    advice: str
    trigger: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionStarted(Event):
    """A rejected draft goes back to the model.  *revision* counts from 1."""

    revision: int
    feedback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRevised(Event):
    """The final text where an earlier draft was already shown (``drafts="tag"``)."""

    text: str
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningRaised(Event):
    """Something a careful caller should know; also in ``result.warnings``."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """The run is over; the last event of every stream that did not fail."""

    result: AgentResult

    @property
    def text(self) -> str:
        """The answer."""
        return self.result.text

    @property
    def stop_reason(self) -> StopReason:
        """Why the run ended."""
        return self.result.stop_reason
