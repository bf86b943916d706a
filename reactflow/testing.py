"""Tools for testing agents without a model: a scripted one, and a check for your own advisors.

Example::

    model = ScriptedChatModel(calls("add", a=2, b=3), says("five"))
    result = await SimpleReactAgent(model=model, tools=[add]).arun("What is 2 + 3?")
    assert (result.text, result.rounds) == ("five", 2)
    model.assert_finished()
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from reactflow.chain import Advisor, AnyAdvisor, check_advisors, compose
from reactflow.events import Event, TextDelta, WarningRaised
from reactflow.loopback import LoopbackServer
from reactflow.messages import AssistantMessage, ToolCall, Usage, UserMessage
from reactflow.model import ChatRequest, ChatResponse, Run

__all__ = ["LoopbackServer", "Reply", "ScriptedChatModel", "UnexpectedModelCall", "calls", "check_advisor", "says"]


class UnexpectedModelCall(AssertionError):
    """The model was asked more often than the script has replies."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted reply; join several with ``+`` to make one reply with several tool calls.

    Args:
        text: The visible words.
        calls: Tool names and arguments, in order; the model gives them ids.
        usage: Tokens to report; None reports nothing.
        finish_reason: As in :class:`~reactflow.model.ChatResponse`.
    """

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None

    def __add__(self, other: Reply) -> Reply:
        return Reply(
            self.text + other.text,
            (*self.calls, *other.calls),
            self.usage or other.usage,
            self.finish_reason or other.finish_reason,
        )


Script: TypeAlias = Reply | str | AssistantMessage | ChatResponse | BaseException | Callable[[ChatRequest], Any]
"""What a scripted model may be given for one call; a function of the request gives any of the others."""


def says(text: str, *, usage: Usage | None = None, finish_reason: str | None = None) -> Reply:
    """A reply of *text*."""
    return Reply(text, usage=usage, finish_reason=finish_reason)


def calls(name: str, /, **arguments: Any) -> Reply:
    """A reply that calls tool *name* with *arguments*."""
    return Reply(calls=((name, json.dumps(arguments, ensure_ascii=False)),))


class ScriptedChatModel:
    """A chat model that answers from a script, in order, and remembers what it was asked.

    Args:
        replies: One for each call: ``says(...)``, ``calls(...)``, a text, an AssistantMessage, a ChatResponse, an
            exception to raise, or a function (plain or async) of the request that gives one of these.
        name: What events call it.

    Attributes:
        seen: The requests, oldest first.
    """

    def __init__(self, *replies: Script, name: str = "scripted") -> None:
        self.name = name
        self.seen: list[ChatRequest] = []
        self._replies = replies
        self._ids: Counter[str] = Counter()
        self._lock = threading.Lock()

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """Give the next reply.

        Raises:
            UnexpectedModelCall: The script has ended.
        """
        with self._lock:
            self.seen.append(request)
            number = len(self.seen)
        if number > len(self._replies):
            raise UnexpectedModelCall(f"Call {number}, but the script has {len(self._replies)} replies.")
        response = self._as_response(await self._chosen(self._replies[number - 1], request))
        if request.stream:
            for piece in re.findall(r"\s*\S+\s*", response.text):
                request.emit(TextDelta(piece))
                await asyncio.sleep(0)
        return response

    async def _chosen(self, reply: Any, request: ChatRequest) -> Any:
        while callable(reply) and not isinstance(reply, BaseException):
            reply = reply(request)
            if inspect.isawaitable(reply):
                reply = await reply
        return reply

    def _as_response(self, reply: Any) -> ChatResponse:
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, ChatResponse):
            return reply
        if isinstance(reply, AssistantMessage):
            return ChatResponse(reply)
        if isinstance(reply, str):
            reply = says(reply)
        if not isinstance(reply, Reply):
            raise TypeError(f"A script holds says(...), calls(...), messages, exceptions or functions, not {reply!r}.")
        tool_calls = tuple(ToolCall(self._new_id(name), name, arguments) for name, arguments in reply.calls)
        finish_reason = reply.finish_reason or ("tool_calls" if tool_calls else "stop")
        return ChatResponse(AssistantMessage(reply.text, tool_calls), reply.usage, finish_reason)

    def _new_id(self, name: str) -> str:
        """``call_add``, then ``call_add_2``, ...: unique in this model's life, and easy to write down in a test."""
        with self._lock:
            self._ids[name] += 1
            return f"call_{name}" + (f"_{self._ids[name]}" if self._ids[name] > 1 else "")

    def assert_finished(self) -> None:
        """Raise AssertionError unless every reply was used, and no more were asked for."""
        if len(self.seen) != len(self._replies):
            raise AssertionError(
                f"The script has {len(self._replies)} replies, the model was asked {len(self.seen)} times."
            )


def check_advisor(advisor: AnyAdvisor) -> None:
    """Try *advisor* against the rules of the chain; works in plain and in async tests.

    It needs a readable order, must return one whole ChatResponse, the same text in both modes, let exceptions through
    unwrapped, be safe under 50 concurrent calls, and pass events on where it wraps ``emit``.

    Raises:
        ConfigurationError: It is no advisor.
        AssertionError: A rule is broken; says which.
    """
    (checked,) = check_advisors([advisor])
    assert isinstance(checked, Advisor), f"{advisor!r} has no advise(); this checks advisors around requests."
    errors: list[BaseException] = []

    def in_a_loop_of_its_own() -> None:
        try:
            asyncio.run(_check(checked))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=in_a_loop_of_its_own)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


_MARK = WarningRaised(text="check_advisor")


async def _check(advisor: Advisor) -> None:
    whole = await _ask(advisor, "question 0")
    heard: list[Event] = []
    streamed = await _ask(advisor, "question 0", heard=heard)
    assert whole == streamed, f"{advisor!r} answers {whole!r} when called and {streamed!r} when streamed."

    for cause in (ValueError("check_advisor"), asyncio.CancelledError("check_advisor")):
        try:
            await _ask(advisor, "question 0", error=cause)
        except asyncio.CancelledError:  # a cancel is passed on, and is never the same object on its way out of a thread
            assert isinstance(cause, asyncio.CancelledError), f"{advisor!r} turned {cause!r} into a cancel."
        except BaseException as error:
            assert error is cause, f"{advisor!r} turned {cause!r} into {error!r}; let exceptions through unwrapped."
        else:
            reached = getattr(cause, "reached", False)
            swallowed = reached and isinstance(cause, asyncio.CancelledError)
            assert not swallowed, f"{advisor!r} swallows a cancel; let it through."

    questions = [f"question {number}" for number in range(50)]
    alone = [await _ask(advisor, question) for question in questions]
    together = list(await asyncio.gather(*(_ask(advisor, question) for question in questions)))
    assert alone == together, f"{advisor!r} mixes up concurrent calls; keep nothing of a call on the advisor."


async def _ask(
    advisor: Advisor, question: str, *, heard: list[Event] | None = None, error: BaseException | None = None
) -> str:
    reached = False

    async def model(request: ChatRequest) -> ChatResponse:
        nonlocal reached
        reached = True
        await asyncio.sleep(0)
        if error is not None:
            error.reached = True  # type: ignore[attr-defined]
            raise error
        request.emit(_MARK)
        text = f"answer to {request.messages[-1].text}"
        if request.stream:
            request.emit(TextDelta(text, 1))
        return ChatResponse(AssistantMessage(text), Usage(1, 1), "stop")

    message, events = UserMessage(question), heard if heard is not None else []
    request = ChatRequest(messages=(message,), run=Run(question=message), stream=heard is not None, emit=events.append)
    response = await compose([advisor], model)(request)
    assert isinstance(response, ChatResponse), f"{advisor!r} returned {response!r}, not a ChatResponse."
    if heard is not None and reached:
        assert _MARK in events, f"{advisor!r} wraps emit and swallows events; pass on those it does not know."
    return response.text
