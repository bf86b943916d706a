"""The advisor chain: ordered layers around a turn and around each model call.

An advisor sees the request on its way in and the response on its way out.  It may call the rest of the chain never
(answer from a cache), once (observe) or many times (retry, reflect).  Lower order is further out; order below 0
wraps the whole turn, order 0 and above wraps each model call.  The ReAct loop sits at that boundary.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Protocol, TypeAlias, cast, overload, runtime_checkable

from reactflow.errors import BudgetExceeded, ConfigurationError
from reactflow.frozen import FrozenDict
from reactflow.messages import AssistantMessage, ToolCall, ToolMessage
from reactflow.model import ChatRequest, ChatResponse
from reactflow.threads import blocking, run_in_thread

Handler: TypeAlias = Callable[[ChatRequest], Awaitable[ChatResponse]]
"""Turns one request into one response.  A model is one, the loop is one, and so is every tail of the chain."""


class Order(IntEnum):
    """Named places in the chain; any whole number is an order.

    Below 0 an advisor sees a turn once, from 0 on it sees every model call.  ``REVISE`` is the place of the handler
    that sends rejected drafts back; it is always the innermost of the turn.
    """

    GUARD = -400
    MEMORY = -300
    RETRIEVAL = -200
    REVISE = -100
    LOGGING = 0
    REFLECTION = 50
    VALIDATION = 100
    RETRY = 900


@runtime_checkable
class Advisor(Protocol):
    """One layer of the onion.  Any object with these two members is an advisor; subclass nothing."""

    @property
    def order(self) -> int:
        """Lower is further out; equal orders keep the sequence in which they were registered."""
        ...

    async def advise(self, request: ChatRequest, call_next: Handler) -> ChatResponse:
        """Answer *request*, as a rule with the help of ``await call_next(request)``."""
        ...


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One validated tool call on its way to the tool.

    Args:
        call: What the model asked for.
        request: The request that the model was answering.
    """

    call: ToolCall
    request: ChatRequest
    arguments: Mapping[str, Any] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", FrozenDict(self.call.read_arguments()))

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.call.name

    def replace(self, **changes: Any) -> ToolRequest:
        """Return a copy with *changes*; changed arguments go in as ``call=`` and are validated again."""
        return replace(self, **changes)


ToolHandler: TypeAlias = Callable[[ToolRequest], Awaitable[ToolMessage]]
"""Turns one tool call into its result."""


@runtime_checkable
class ToolAdvisor(Protocol):
    """A layer around each validated tool call, nested by order.  One object may be an Advisor too."""

    @property
    def order(self) -> int:
        """Lower is further out."""
        ...

    async def advise_tool(self, tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
        """Run *tool_request*, as a rule with the help of ``await call_next(tool_request)``."""
        ...


AnyAdvisor: TypeAlias = Advisor | ToolAdvisor


def compose(advisors: Iterable[Advisor], handler: Handler) -> Handler:
    """Wrap *handler* in *advisors*, lowest order outermost.  Holds no state: call the result as often as you like."""
    layers = sorted(advisors, key=lambda advisor: advisor.order)
    for layer in reversed(layers):  # not sorted(reverse=True): that would flip equal orders
        handler = _carrying(layer, handler)
    return handler


def compose_tools(advisors: Iterable[ToolAdvisor], handler: ToolHandler) -> ToolHandler:
    """Wrap a tool *handler* in *advisors*, lowest order outermost."""
    layers = sorted(advisors, key=lambda advisor: advisor.order)
    for layer in reversed(layers):
        handler = _checked_tool(layer, handler)
    return handler


def _carrying(layer: Advisor, inner: Handler) -> Handler:
    """Call *layer* around *inner*, and keep what the inner layers said even where *layer* builds a new response."""

    async def advised(request: ChatRequest) -> ChatResponse:
        said: list[ChatResponse] = []

        async def call_next(request: ChatRequest) -> ChatResponse:
            response = await inner(request)
            said.append(response)
            return response

        try:
            response = await layer.advise(request, call_next)
        except BudgetExceeded as limit:
            if not said or said[-1].message.tool_calls or not request.run.meter.raised(limit):
                raise
            return said[-1].replace(stop_reason=limit.reason)  # the answer is there: only this layer had no time
        if any(response is each for each in said):
            return response
        if not isinstance(response, ChatResponse) or not isinstance(response.message, AssistantMessage):
            raise _no_response(layer, response)
        return _filled(response, said)

    return advised


def _no_response(layer: Advisor, returned: object) -> ConfigurationError:
    """The error that says what *layer* returned instead of a response; a function is called by its own name."""
    name = repr(layer) if isinstance(layer, FunctionAdvisor) else type(layer).__name__
    advice = "advise() must return a ChatResponse with an AssistantMessage."
    if inspect.iscoroutine(returned):
        returned.close()  # or Python warns that nobody awaited it
        advice = "write await call_next(request)."
    return ConfigurationError(f"Advisor {name} returned {returned!r:.80}; {advice}")


def _filled(response: ChatResponse, said: list[ChatResponse]) -> ChatResponse:
    """Fill what *response* leaves unsaid from the inner response with its message, or else from the newest."""
    if not said:
        return response
    context: dict[str, Any] = {}
    for inner in said:
        context.update(inner.context)
    source = next((each for each in reversed(said) if each.message is response.message), said[-1])
    return replace(
        response,
        context=FrozenDict(context | dict(response.context)),
        usage=response.usage or source.usage,
        finish_reason=response.finish_reason or source.finish_reason,
        stop_reason=response.stop_reason or source.stop_reason,
        transcript=response.transcript or source.transcript,
        offered=source.offered if response.offered is None else response.offered,
    )


def _checked_tool(layer: ToolAdvisor, inner: ToolHandler) -> ToolHandler:
    async def advised(tool_request: ToolRequest) -> ToolMessage:
        message = await layer.advise_tool(tool_request, inner)
        if not isinstance(message, ToolMessage):
            raise ConfigurationError(
                f"Advisor {type(layer).__name__} returned {message!r:.80}; advise_tool() must return a ToolMessage."
            )
        return message

    return advised


def check_advisors(advisors: Iterable[object]) -> tuple[AnyAdvisor, ...]:
    """Return *advisors* as a tuple, or say what is wrong with the first that is none.

    Raises:
        ConfigurationError: An object has neither ``advise`` nor ``advise_tool``, or its order is no whole number.
    """
    if isinstance(advisors, str) or not isinstance(advisors, Iterable):
        raise ConfigurationError(f"advisors={advisors!r:.80}: give a list of advisors; write [...] around it.")
    checked: list[AnyAdvisor] = []
    for item in advisors:
        known = [name for name in ("advise", "advise_tool") if callable(getattr(item, name, None))]
        if isinstance(item, type) or not known:
            hint = (
                f"an instance, {item.__name__}(...)"
                if isinstance(item, type)
                else "an object with order and advise, or use @advisor(order=...)"
            )
            raise ConfigurationError(f"{item!r} is no advisor; give {hint}.")
        order = getattr(item, "order", None)
        if isinstance(order, bool) or not isinstance(order, int):
            raise ConfigurationError(f"{item!r} has order {order!r}; give a whole number such as Order.LOGGING.")
        checked.append(cast(AnyAdvisor, item))
    return tuple(checked)


AdvisorFunction: TypeAlias = Callable[[ChatRequest, Handler], Awaitable[ChatResponse]]
SyncAdvisorFunction: TypeAlias = Callable[[ChatRequest, Callable[[ChatRequest], ChatResponse]], ChatResponse]


@dataclass(frozen=True, slots=True)
class FunctionAdvisor:
    """An advisor made of a function; see :func:`advisor`."""

    function: Callable[..., Any]
    order: int

    async def advise(self, request: ChatRequest, call_next: Handler) -> ChatResponse:
        """Call the function; a plain one in a thread of its own, with a *call_next* that blocks there."""
        if inspect.iscoroutinefunction(self.function):
            return cast(ChatResponse, await self.function(request, call_next))
        wait_next = blocking(call_next, asyncio.get_running_loop())
        return await run_in_thread(lambda: cast(ChatResponse, self.function(request, wait_next)))

    def __repr__(self) -> str:
        return f"{getattr(self.function, '__name__', 'advisor')}(order={int(self.order)})"


@overload
def advisor(function: AdvisorFunction | SyncAdvisorFunction, /) -> FunctionAdvisor: ...


@overload
def advisor(*, order: int = ...) -> Callable[[AdvisorFunction | SyncAdvisorFunction], FunctionAdvisor]: ...


def advisor(
    function: AdvisorFunction | SyncAdvisorFunction | None = None, /, *, order: int = Order.LOGGING
) -> FunctionAdvisor | Callable[[AdvisorFunction | SyncAdvisorFunction], FunctionAdvisor]:
    """Make an advisor of a function ``(request, call_next)``, async or plain; with or without ``order``.

    Example::

        @advisor(order=Order.GUARD)
        async def shout(request, call_next):
            response = await call_next(request)
            return response.replace(message=AssistantMessage(response.text.upper()))
    """
    if isinstance(order, bool) or not isinstance(order, int):
        raise ConfigurationError(
            f"@advisor needs order=<whole number>, got {order!r}; write @advisor(order=Order.LOGGING)."
        )

    def wrap(function: AdvisorFunction | SyncAdvisorFunction) -> FunctionAdvisor:
        if not callable(function):
            raise ConfigurationError(
                f"@advisor(order=...) goes on a function (request, call_next), not on {function!r}."
            )
        return FunctionAdvisor(function, order)

    return wrap if function is None else wrap(function)
