"""Lets an agent remember: reads a conversation before the turn, and notes what to store after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from reactflow.chain import Handler, Order
from reactflow.errors import ConfigurationError
from reactflow.fair_lock import FairLocks
from reactflow.memory import ChatMemory
from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolMessage, last_question
from reactflow.model import ChatRequest, ChatResponse, Run
from reactflow.result import StopReason


@dataclass(frozen=True, slots=True)
class ChatMemoryAdvisor:
    """Puts the earlier turns of ``conversation_id`` before the question, and keeps this turn.

    What is kept is the question as it reached this place and the answer as it left it, so a redactor further out is
    honoured.  It is written once, by the agent, when the run has ended well: a turn that failed, was cancelled, was
    blocked or has a blank answer leaves no trace.  Without a conversation id this does nothing.

    Args:
        memory: What to read and to write.
        keep: ``"answer"`` keeps the question and the final answer; ``"turn"`` also the tool calls and their results
            in between.  Drafts, feedback and notices are never kept.
        overlap: ``"wait"`` lets turns of one conversation wait for each other; with ``"append"`` they run side by
            side, none sees the other, and each is appended whole.
        order: Its place, below 0: from 0 on it would run once for each model call.

    Raises:
        ConfigurationError: A setting is none of these; or, in a run, a sub-agent would wait for the very turn that
            it is a part of.
    """

    memory: ChatMemory
    keep: Literal["answer", "turn"] = field(default="answer", kw_only=True)
    overlap: Literal["wait", "append"] = field(default="wait", kw_only=True)
    order: int = field(default=Order.MEMORY, kw_only=True)

    def __post_init__(self) -> None:
        missing = [n for n in ("get", "add", "clear", "turn") if not callable(getattr(self.memory, n, None))]
        if missing or isinstance(self.memory, type):
            raise ConfigurationError(
                f"{self.memory!r:.80} is no chat memory ({', '.join(missing) or 'it is a class'}); "
                "give one such as WindowChatMemory()."
            )
        for name, allowed in (("keep", ("answer", "turn")), ("overlap", ("wait", "append"))):
            if getattr(self, name) not in allowed:
                raise ConfigurationError(f"ChatMemoryAdvisor({name}={getattr(self, name)!r}): give one of {allowed}.")
        if not self.order < 0:
            raise ConfigurationError(
                f"ChatMemoryAdvisor(order={self.order!r}) would run at each model call; give an order below 0."
            )

    async def advise(self, request: ChatRequest, call_next: Handler) -> ChatResponse:
        """Answer *request* with the conversation before it."""
        run, conversation_id = request.run, request.run.conversation_id
        if conversation_id is None:
            return await call_next(request)
        run.commit = None  # an earlier try of this run may have left a note, and this one may fail
        if self.overlap == "wait":
            await run.meter.cut(self._take_turn(run, conversation_id))
        history = await self._history(request, conversation_id)
        response = await call_next(request.replace(messages=_with_history(request.messages, history)))
        question = last_question(request.messages)
        if question is not None and response.text.strip() and response.stop_reason is not StopReason.BLOCKED:
            kept = (question, *self._exchanges(response), _answer(response))
            run.commit = partial(self.memory.add, conversation_id, kept)
        return response

    async def _history(self, request: ChatRequest, conversation_id: str) -> Sequence[Message]:
        recall = getattr(self.memory, "recall", None)
        if recall is None:
            return await request.run.meter.cut(self.memory.get(conversation_id))
        history: Sequence[Message] = await recall(request)  # not cut here: it recovers where its model call is cut
        return history

    async def _take_turn(self, run: Run, conversation_id: str) -> None:
        """Hold the conversation until the run is over, once a run: an outer advisor may come here again."""
        key = _turn_key(self.memory, conversation_id)
        async with _ENTRIES.hold((id(run), key)):  # two tries of one run at once must not wait for each other's turn
            if key in run.holds:
                return
            if any(key in ancestor.holds for ancestor in _ancestors(run)):
                raise ConfigurationError(
                    f"A sub-agent on the memory of its caller and on its conversation {conversation_id!r:.80} would "
                    "wait for itself; give it another conversation_id, or no memory."
                )
            await run.resources.enter_async_context(self.memory.turn(conversation_id))
            run.holds.add(key)

    def _exchanges(self, response: ChatResponse) -> Iterator[Message]:
        return _tool_exchanges(response.transcript) if self.keep == "turn" else iter(())


_ENTRIES = FairLocks()


def _turn_key(memory: ChatMemory, conversation_id: str) -> tuple[int, str]:
    """What a turn on *memory* holds: equal where two of them would wait for each other."""
    keeper = getattr(memory, "store", memory)
    named: Callable[[str], tuple[int, str]] | None = getattr(keeper, "turn_key", None)
    return (id(keeper), conversation_id) if named is None else named(conversation_id)


def _ancestors(run: Run) -> Iterator[Run]:
    parent = run.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _with_history(messages: tuple[Message, ...], history: Sequence[Message]) -> tuple[Message, ...]:
    """Put *history* between the system message and this turn."""
    head = next((n for n, message in enumerate(messages) if not isinstance(message, SystemMessage)), len(messages))
    return (*messages[:head], *_answered(history), *messages[head:])


def _answered(history: Sequence[Message]) -> tuple[Message, ...]:
    """Leave out system messages, and what nobody answered at the end: two user messages in a row are refused."""
    kept = [message for message in history if not isinstance(message, SystemMessage)]
    while kept and not (isinstance(kept[-1], AssistantMessage) and not kept[-1].tool_calls):
        kept.pop()
    return tuple(kept)


def _tool_exchanges(transcript: Sequence[Message]) -> Iterator[Message]:
    """The tool calls of a turn, each with its results; calls that were cut off half-way are left out."""
    for index, message in enumerate(transcript):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            results = transcript[index + 1 : index + 1 + len(message.tool_calls)]
            called = [call.id for call in message.tool_calls]
            if called == [result.call_id for result in results if isinstance(result, ToolMessage)]:
                yield message
                yield from results


def _answer(response: ChatResponse) -> AssistantMessage:
    return AssistantMessage(response.text, extra=response.message.extra)
