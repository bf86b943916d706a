"""The port to language models, and the one place where a model is called.

``ChatRequest`` and ``ChatResponse`` travel through the whole chain, from the outermost advisor to the model and
back.  :func:`ask` is the only caller of a model: it checks the budget, cuts at the deadline, counts tokens and tells
the listeners, so that no role can escape the budget and neither the loop nor the agent sums anything.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, Protocol, TypeAlias, runtime_checkable
from uuid import uuid4

from reactflow.budget import Meter
from reactflow.errors import BudgetExceeded, ModelBehaviorError
from reactflow.events import (
    Emit,
    Event,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ReasoningDelta,
    TextDelta,
    TextWithdrawn,
    WarningRaised,
    discard,
)
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    estimate_tokens,
    readable,
)
from reactflow.result import Reflection, StopReason
from reactflow.threads import cancels


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of one tool.

    Args:
        name: What the model calls it by: 1 to 64 letters, digits, ``_`` or ``-``.
        description: When to use it and what comes back.
        parameters: The JSON Schema of its arguments, an object.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default=EMPTY, hash=False)


current_run: ContextVar[Run | None] = ContextVar("reactflow_run", default=None)
"""The run that the current code is a part of; a run started inside it counts toward its budget."""

acting_as: ContextVar[str | None] = ContextVar("reactflow_role", default=None)
"""The role that a workflow is playing; a run started for it is counted under that name."""


Effects: TypeAlias = dict[tuple[str, str], tuple[tuple[str, int], "ToolMessage"]]
"""Side effects done for one answer: by tool and arguments the run and attempt that had it, and what came back."""

drafting_for: ContextVar[Effects | None] = ContextVar("reactflow_drafting_for", default=None)
"""The effects of the answer that the current code drafts; a run started for it repeats none of an earlier draft."""

CallModel: TypeAlias = Callable[["ChatModel", "ChatRequest", str], Awaitable["ChatResponse"]]
"""Carries a request of a role to its model; may wait before it, note the answer, or know it already."""

call_model: ContextVar[CallModel | None] = ContextVar("reactflow_call_model", default=None)
"""Stands between the current code's roles and their models, whoever they are; None lets them through."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class Run:
    """What one run knows of itself; the same object in every request of the run.

    Usage, calls and judgements are kept here and not in responses, so that no advisor can lose them.

    Args:
        question: What the user asked, as it stood at ``Order.MEMORY``: a redactor further out is honoured, and
            what retrieval adds further in is not taken for the question.
        meter: Counts what the run uses.
        conversation_id: Whose memory to read and write, or None for no memory.
        max_rounds: Model calls that may use tools, for each attempt; None for no limit.
        emit: Where the run's events go.
        run_id: Names the run in events and logs.
        parent: The run that this one is a part of, or None.
    """

    question: UserMessage
    meter: Meter = field(default_factory=Meter)
    conversation_id: str | None = None
    max_rounds: int | None = 10
    emit: Emit = discard
    run_id: str = field(default_factory=lambda: uuid4().hex)
    parent: Run | None = None
    calls: Counter[str] = field(default_factory=Counter)  # model calls, by role
    tool_calls: Counter[str] = field(default_factory=Counter)  # by tool; feedback does not reset them
    attempt: int = 0  # which draft of this run is in the making, from 1; no number is given twice
    effects: Effects = field(default_factory=dict)  # side effects done
    drafts: dict[int, ChatResponse] = field(default_factory=dict)  # complete answers by attempt, judged or not
    reflections: list[Reflection] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    model_error: BaseException | None = None  # what the last failed model call raised, whatever its type
    commit: Callable[[], Awaitable[None]] | None = None  # what memory noted to store once the run has ended well
    holds: set[tuple[int, str]] = field(default_factory=set)  # the conversations whose turn this run has
    resources: AsyncExitStack = field(default_factory=AsyncExitStack)  # closed when the run is over

    @property
    def rounds(self) -> int:
        """The agent's own model calls so far."""
        return self.calls["agent"]

    def warn(self, text: str) -> None:
        """Note something that a careful caller should know; the same sentence is noted once."""
        if text not in self.warnings:
            self.warnings.append(text)
            self.emit(WarningRaised(text=text))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """What one layer hands to the next, from the outermost advisor to the model.

    Args:
        messages: Oldest first; the model answers the last one.
        run: The same object in every request of a run.
        tools: What the model may call.
        tool_choice: ``"auto"``, ``"none"``, ``"required"`` or a tool's name; None leaves it to the server.
        response_schema: The JSON Schema that the answer's text should satisfy, or None.
        options: Model options such as ``temperature``; they win over the model's own.
        stream: Whether the model sends deltas to *emit* while it writes.
        context: What the caller and the layers know; read-only, carried on by the framework.
        emit: Where events go while the run is under way.
    """

    messages: tuple[Message, ...]
    run: Run
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str | None = None
    response_schema: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = EMPTY
    stream: bool = False
    context: Mapping[str, Any] = EMPTY
    emit: Emit = discard

    def replace(self, **changes: Any) -> ChatRequest:
        """Return a copy with *changes*."""
        return replace(self, **changes)

    def followed_by(self, *messages: Message) -> ChatRequest:
        """Return a copy with *messages* added at the end."""
        return replace(self, messages=(*self.messages, *messages))

    def with_context(self, entries: Mapping[str, Any] = EMPTY, /, **keys: Any) -> ChatRequest:
        """Return a copy whose context has *entries* and *keys* added or replaced."""
        return replace(self, context=FrozenDict({**self.context, **entries, **keys}))

    def aside(self, *messages: Message) -> ChatRequest:
        """Return a fresh request on the same run, without history, tools or options: what a judge uses."""
        return ChatRequest(messages=messages, run=self.run, stream=self.stream, context=self.context, emit=self.emit)


@dataclass(frozen=True, slots=True)
class ChatResponse:
    """What comes back.  All but the message is optional; what is left out means "not said", and is filled in.

    Args:
        message: The answer, or the tool calls.
        usage: Tokens of that one call, or None where the server reported nothing.
        finish_reason: ``"stop"``, ``"tool_calls"``, ``"length"``, ``"content_filter"``, ``"refusal"``, or None.
        context: What the layers want each other and the caller to know.
        stop_reason: Set by whoever ends the turn; None leaves it to the agent.
        transcript: What was appended to the request on the way to this answer, oldest first.
        offered: The tools that the model was really shown, where it calls some; a layer inside may have hidden or
            added tools.
    """

    message: AssistantMessage
    usage: Usage | None = None
    finish_reason: str | None = None
    context: Mapping[str, Any] = field(default=EMPTY, hash=False)
    stop_reason: StopReason | None = None
    transcript: tuple[Message, ...] = ()
    offered: tuple[ToolSpec, ...] | None = None

    @property
    def text(self) -> str:
        """The visible words of the answer."""
        return self.message.text

    def replace(self, **changes: Any) -> ChatResponse:
        """Return a copy with *changes*."""
        return replace(self, **changes)

    def with_context(self, entries: Mapping[str, Any] = EMPTY, /, **keys: Any) -> ChatResponse:
        """Return a copy whose context has *entries* and *keys* added or replaced."""
        return replace(self, context=FrozenDict({**self.context, **entries, **keys}))


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers a conversation.  Subclass nothing.

    ``complete`` returns the whole response in either mode; where ``request.stream`` is true it also sends
    ``TextDelta(text)`` to ``request.emit`` while it writes.
    """

    @property
    def name(self) -> str:
        """What logs, events and price lists call it."""
        ...

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """Answer ``request.messages``."""
        ...


CUT_SHORT: Mapping[str, StopReason] = FrozenDict(
    length=StopReason.TRUNCATED, content_filter=StopReason.FILTERED, refusal=StopReason.REFUSED
)
"""Finish reasons of a reply that is not a whole answer, and the stop reason each one means."""


def cut_short(response: ChatResponse) -> StopReason | None:
    """Why *response* is not a whole answer (cut, filtered, refused), or None where it is one."""
    return CUT_SHORT.get(response.finish_reason or "")


class _Speaker:
    """Stamps a model's deltas with its round and role, and remembers whether any were sent."""

    __slots__ = ("_emit", "_role", "_round", "spoke")

    def __init__(self, emit: Emit, round: int, role: str) -> None:
        self._emit, self._round, self._role = emit, round, role
        self.spoke = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            if event.text:
                self.spoke = True
                self._emit(TextDelta(event.text, self._round, self._role))
        elif isinstance(event, TextWithdrawn):
            self.withdraw()
        elif isinstance(event, ReasoningDelta):
            self._emit(ReasoningDelta(event.text, self._round, self._role))
        else:
            self._emit(event)

    def withdraw(self) -> None:
        if self.spoke:
            self.spoke = False
            self._emit(TextWithdrawn(self._round, self._role))


async def ask(model: ChatModel, request: ChatRequest, *, role: str) -> ChatResponse:
    """Call *model* once, inside the run's budget.

    Args:
        model: Who answers.
        request: What to answer.
        role: Who asks; its usage, rounds and events are counted under this name.

    Returns:
        The model's response; ``usage`` is filled in where the model said nothing.

    Raises:
        BudgetExceeded: A limit was reached before the call, or the deadline came during it.
        ModelBehaviorError: What came back is not a :class:`ChatResponse`.
    """
    run, emit = request.run, request.emit
    run.meter.begin_call(model.name)
    run.calls[role] += 1
    round = run.calls[role]
    emit(ModelStarted(round=round, role=role, model=model.name))
    speaker = _Speaker(emit, round, role)
    started = time.perf_counter()
    try:
        response = await run.meter.cut(_complete(model, request.replace(emit=speaker), role))
        response = _checked(response, model.name)
    except BaseException as error:
        speaker.withdraw()
        if isinstance(error, (BudgetExceeded, TimeoutError, asyncio.CancelledError)):  # cut, and paid for
            _count_unknown(model, request, role, UNKNOWN_USAGE, 0)
        failure = _failure(error, model.name)
        if not isinstance(failure, (BudgetExceeded, asyncio.CancelledError)):
            run.model_error = failure
        kind, took = type(failure).__name__, time.perf_counter() - started
        emit(ModelFailed(round=round, role=role, model=model.name, error=kind, elapsed_s=took))
        if failure is error:
            raise
        raise failure from error
    response = _counted(model, request, role, response)
    if request.stream and not speaker.spoke and response.text:
        speaker(TextDelta(response.text))  # a model that cannot stream still has a streamed answer
    if response.message.tool_calls:
        speaker.withdraw()
    emit(
        ModelFinished(
            round=round,
            role=role,
            model=model.name,
            usage=response.usage or UNKNOWN_USAGE,
            elapsed_s=time.perf_counter() - started,
            finish_reason=response.finish_reason,
            tool_calls=len(response.message.tool_calls),
        )
    )
    return response


def _failure(error: BaseException, model: str) -> BaseException:
    """*error*, or what to say instead where a model cancelled itself: only a run's owner may cancel it."""
    if isinstance(error, asyncio.CancelledError) and not cancels():
        return ModelBehaviorError(f"Model {model!r} was cancelled from within and gave no answer.")
    return error


def _complete(model: ChatModel, request: ChatRequest, role: str) -> Awaitable[ChatResponse]:
    between = call_model.get()
    return model.complete(request) if between is None else between(model, request, role)


UNKNOWN_USAGE = Usage(0, 0, unknown_calls=1)


def _counted(model: ChatModel, request: ChatRequest, role: str, response: ChatResponse) -> ChatResponse:
    usage = response.usage
    if usage is not None and not usage.unknown_calls:
        request.run.meter.record(usage, role=role, model=model.name)
        return response
    guess = _tokens_of(response.message) if request.run.meter.needs_estimate else 0
    _count_unknown(model, request, role, usage or UNKNOWN_USAGE, guess)
    return response.replace(usage=UNKNOWN_USAGE) if usage is None else response


def _checked(response: object, model: str) -> ChatResponse:
    """*response* with readable text.  Here, and not somewhere in a loop, it shows that a model breaks the protocol."""
    if not isinstance(response, ChatResponse) or not isinstance(response.message, AssistantMessage):
        raise ModelBehaviorError(
            f"Model {model!r} returned {type(response).__name__}; "
            "complete() must return a ChatResponse with an AssistantMessage."
        )
    message = response.message
    calls = message.tool_calls
    if (
        not isinstance(message.text, str)
        or not isinstance(calls, tuple)
        or not all(isinstance(call, ToolCall) and isinstance(call.arguments, str) for call in calls)
        or not isinstance(response.usage, (Usage, NoneType))
        or not isinstance(response.finish_reason, (str, NoneType))
        or not isinstance(response.context, Mapping)
    ):
        raise ModelBehaviorError(
            f"Model {model!r} returned a response with a field of the wrong type; text, arguments and finish_reason "
            "are texts, tool_calls is a tuple of ToolCall, usage a Usage or None, context a mapping."
        )
    text = readable(message.text)
    return response if text is message.text else response.replace(message=replace(message, text=text))


def _count_unknown(model: ChatModel, request: ChatRequest, role: str, usage: Usage, written: int) -> None:
    meter = request.run.meter
    read = sum(map(_tokens_of, request.messages)) if meter.needs_estimate else 0
    meter.record(usage, role=role, model=model.name, estimate=Usage(read, written, model_calls=0))
    if meter.needs_estimate:
        request.run.warn(
            f"Model {model.name!r} did not report its tokens; the budget counts an estimate for those calls."
        )


def _tokens_of(message: Message) -> int:
    """An estimate of what *message* costs, the arguments of its tool calls included."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return estimate_tokens(message.text) + sum(estimate_tokens(call.name + call.arguments) for call in calls)


def answering(model: ChatModel) -> Callable[[ChatRequest], Awaitable[ChatResponse]]:
    """The innermost handler of an agent's chain: *model*, held to the protocol.

    Tool calls that answer a request without tools are dropped.  A reply that then has neither text nor tool calls is
    asked for once more, so that no layer further out ever sees a blank one.
    """

    async def answer(request: ChatRequest) -> ChatResponse:
        request = _with_one_system_message(request)
        for _ in range(2):
            response = await ask(model, request, role="agent")
            if response.message.tool_calls and not request.tools:
                response = response.replace(message=replace(response.message, tool_calls=()), finish_reason="stop")
            if response.message.tool_calls:
                return response.replace(offered=request.tools)
            if response.text.strip():
                return response
        ending = f" (finish reason {response.finish_reason!r})" if response.finish_reason else ""
        raise ModelBehaviorError(
            f"Model {model.name!r} twice gave neither text nor tool calls{ending}. "
            "Ask it something it can answer, raise its output limit, or use another model."
        )

    return answer


def _with_one_system_message(request: ChatRequest) -> ChatRequest:
    """Merge what advisors added: many servers accept one system message only, and only at the front."""
    if not any(type(message) is SystemMessage for message in request.messages[1:]):
        return request
    texts = [message.text for message in request.messages if isinstance(message, SystemMessage)]
    others = (message for message in request.messages if not isinstance(message, SystemMessage))
    return request.replace(messages=(SystemMessage("\n\n".join(texts)), *others))
