"""An agent or a workflow that plays a part in the run of another: asked, and heard under the name of the part."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from reactflow.events import (
    AnswerRevised,
    DraftReady,
    Event,
    IterationStarted,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ReasoningDelta,
    RevisionStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    TextWithdrawn,
    VerdictGiven,
    WarningRaised,
)
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest
from reactflow.result import AgentResult


@runtime_checkable
class Delegate(Protocol):
    """An agent or a workflow of this package, which can be watched at its work; see :class:`reactflow.doors.Doors`."""

    holds_back: bool  # tells it from what has doors of the same names elsewhere

    def arun(self, question: UserMessage, /, **settings: Any) -> Awaitable[AgentResult]:
        """Answer *question*."""
        ...

    def astream(self, question: UserMessage, /, **settings: Any) -> AsyncGenerator[Event, None]:
        """Answer *question*, and tell what happens on the way."""
        ...


async def ask_delegate(
    agent: Delegate, question: UserMessage, request: ChatRequest, *, role: str, draft: int = 0, **settings: Any
) -> AgentResult:
    """Let *agent* answer *question*, and where *request* is streamed let its listener hear what happens.

    Its own warnings are not passed on: they are in the result, for whoever asks to repeat under the role's name.

    Args:
        agent: Who answers.
        question: All it gets to know.
        request: A request of the run that it plays a part in.
        role: The part; its model calls are told under this name, and those of roles inside it under theirs, each
            counted on in the run of *request*.
        draft: Which draft of the answer its text is, from 1; 0 where it is none.
        settings: See :class:`reactflow.doors.Settings`.
    """
    if not request.stream:
        return await agent.arun(question, **settings)
    part, result = _Part(role, draft, request), None
    async with aclosing(agent.astream(question, **settings)) as events:
        async for event in events:
            if isinstance(event, RunFinished):
                result = event.result
            part.pass_on(event)
    assert result is not None  # the last event of every stream that did not fail
    return result


_OWN_TURN = (
    RunStarted,
    RunFinished,
    IterationStarted,
    DraftReady,
    VerdictGiven,
    RevisionStarted,
    AnswerRevised,
    WarningRaised,
)
"""Events that say how far an agent's own turn has come; in the stream of the outer run they would mislead."""

_OF_A_CALL = (ModelStarted, ModelFinished, ModelFailed, ReasoningDelta, TextDelta, TextWithdrawn)


@dataclass(frozen=True, slots=True)
class _Part:
    """Says who speaks, in the terms of the outer run.

    Text of a draft goes on as the outer run's own (role ``"agent"``, the draft's number as its round), so that it is
    shown by the same rules as an agent's drafts; other text keeps the role's name and is no part of the answer.
    """

    role: str
    draft: int
    request: ChatRequest
    rounds: dict[tuple[str, int], int] = field(default_factory=dict)  # in the outer run, by role and round in its own

    def pass_on(self, event: Event) -> None:
        if isinstance(event, (TextDelta, TextWithdrawn)) and event.role == "agent" and self.draft:
            event = replace(event, round=self.draft)
        elif isinstance(event, _OF_A_CALL):
            event = self._counted(event)
        if not isinstance(event, _OWN_TURN):
            self.request.emit(event)

    def _counted(
        self, event: ModelStarted | ModelFinished | ModelFailed | ReasoningDelta | TextDelta | TextWithdrawn
    ) -> Event:
        """*event* with the number of its call among all calls of its role in the outer run."""
        own = (event.role, event.round)
        role = self.role if event.role == "agent" else event.role
        if isinstance(event, ModelStarted):
            calls = self.request.run.calls
            calls[role] += 1
            self.rounds[own] = calls[role]
        return replace(event, role=role, round=self.rounds.get(own, event.round))
