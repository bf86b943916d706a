"""Tools: what a model may call, and how its calls are run.

``@tool`` makes a :class:`Tool` of a function; the :class:`ToolRunner` of an agent runs what one reply asks for.  Every
call gets exactly one result, in the order of the calls.  Whatever goes wrong with one of them becomes an error
message that tells the model what to do, while the others keep their results.  Only what is nobody's to swallow
comes out: a real cancel, an interrupt, and an error of a tool advisor.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from reactflow.chain import ToolAdvisor, ToolHandler, ToolRequest, compose_tools
from reactflow.errors import ConfigurationError, DuplicateToolError, ToolError, nearest
from reactflow.events import ToolFinished, ToolStarted
from reactflow.messages import ToolCall, ToolMessage
from reactflow.model import ChatRequest, ChatResponse, Run, ToolSpec, cut_short
from reactflow.tooling.call import failed, run_function
from reactflow.tooling.context import ToolContext
from reactflow.tooling.definition import Tool, as_tool, tool

__all__ = ["Tool", "ToolContext", "ToolRunner", "answers_directly", "as_tool", "check_tools", "tool"]

T = TypeVar("T")

RunTool: TypeAlias = Callable[[ToolCall, Callable[[], Awaitable[ToolMessage]]], Awaitable[ToolMessage]]
"""Has the tool of a call run by the function beside it; may note the result, or know it already."""

run_tool: ContextVar[RunTool | None] = ContextVar("reactflow_run_tool", default=None)
"""Stands between the current code's checked calls and their tools, whosever they are; None lets them through."""

MAX_NAMES = 50
"""How many tool names one error lists."""


def check_tools(objects: Iterable[object]) -> tuple[Tool, ...]:
    """Make tools of *objects*, in order.

    Raises:
        DuplicateToolError: Two have the same name.
        ConfigurationError: One cannot be a tool, or *objects* is not a list of them.
    """
    if isinstance(objects, (str, bytes, Mapping)) or not isinstance(objects, Iterable):
        raise ConfigurationError(
            f"tools must be a list of tools or functions, not {objects!r:.80}; write [...] around it."
        )
    tools = tuple(as_tool(obj) for obj in objects)
    known: set[str] = set()
    for one in tools:
        if one.name in known:
            raise DuplicateToolError(one.name, [each.name for each in tools])
        known.add(one.name)
    return tools


def answers_directly(calls: Sequence[ToolCall], results: Sequence[ToolMessage], tools: Iterable[ToolSpec]) -> bool:
    """Whether *results* are the answer: each of *calls* is of a ``return_direct`` tool, and none failed.

    Args:
        calls: What one reply of the model asked for; without any the answer is no.
        results: One for each call, in order.
        tools: What the model was offered.
    """
    direct = {one.name for one in tools if isinstance(one, Tool) and one.return_direct}
    return (
        bool(direct and calls)
        and all(call.name in direct for call in calls)
        and not any(result.is_error for result in results)
    )


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """Runs the tool calls of a reply, for one agent.  Holds no state: use it from any number of runs at once.

    Args:
        tool_advisors: Layers around each call that passed its checks, nested by order.
        max_parallel: How many calls of one reply run at the same time, > 0.
        max_tool_calls: How many calls may run in one turn, drafts and revisions together, > 0; None for no limit.

    Raises:
        ConfigurationError: A number is not a whole number above 0.
    """

    tool_advisors: Sequence[ToolAdvisor] = ()
    max_parallel: int = 8
    max_tool_calls: int | None = None
    _advised: ToolHandler | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("max_parallel", "max_tool_calls"):
            value = getattr(self, name)
            if value is None and name == "max_tool_calls":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
                raise ConfigurationError(f"{name}={value!r}: give a whole number above 0.")
        advised = compose_tools(self.tool_advisors, self._run_advised) if self.tool_advisors else None
        object.__setattr__(self, "_advised", advised)

    async def run(self, response: ChatResponse, request: ChatRequest) -> tuple[ToolMessage, ...]:
        """Run what *response* asks for.

        Args:
            response: The model's reply.  Of one that was cut nothing runs, because nobody knows what is missing.
            request: What it answers; only the tools offered there exist.

        Returns:
            One message for each call, in order.

        Raises:
            BudgetExceeded: The run's time was up; what still ran was cancelled and awaited.
            Exception: What a tool advisor or a tool's ``on_error`` raised, as it is; the other calls are cancelled
                and awaited.
        """
        calls = response.message.tool_calls
        if cut_short(response) is not None:
            return tuple(_refuse(call, request, _cut_reply(response)) for call in calls)
        return await request.run.meter.cut(self._run_all(calls, request), recovers=True)

    async def _run_all(self, calls: Sequence[ToolCall], request: ChatRequest) -> tuple[ToolMessage, ...]:
        if len(calls) == 1:  # no need for a task
            return (await self._answer(calls[0], request),)
        slots = asyncio.Semaphore(self.max_parallel)

        async def answer(call: ToolCall) -> ToolMessage:
            async with slots:
                return await self._answer(call, request)

        return await _together([answer(call) for call in calls])

    async def _answer(self, call: ToolCall, request: ChatRequest) -> ToolMessage:
        """One call with its advisors around it, and the listeners told of it."""
        started = time.perf_counter()
        request.emit(_started(call))
        if self._advised is None:
            message = await self._run_one(call, request)
        else:
            message = await self._advise(self._advised, call, request)
        request.emit(_finished(message, time.perf_counter() - started))
        return message

    async def _advise(self, advised: ToolHandler, call: ToolCall, request: ChatRequest) -> ToolMessage:
        """Advisors see only calls that passed their checks; what they change is checked again further in."""
        try:
            _find(call.name, request.tools).read_arguments(call.arguments)
            tool_request = _tool_request(call, request)
        except ToolError as error:
            return failed(call, str(error))
        message = await advised(tool_request)
        # an advisor may have built a message of its own, and the model needs one that answers this call
        return replace(message, call_id=call.id, name=call.name)

    async def _run_advised(self, tool_request: ToolRequest) -> ToolMessage:
        return await self._run_one(tool_request.call, tool_request.request)

    async def _run_one(self, call: ToolCall, request: ChatRequest) -> ToolMessage:
        run = request.run
        try:
            tool = _find(call.name, request.tools)
            arguments = tool.read_arguments(call.arguments)
            effect = _effect(call, arguments) if tool.side_effect else None
            earlier = run.effects.get(effect) if effect is not None else None
            if earlier is not None and earlier[0] != (run.run_id, run.attempt):
                return replace(earlier[1], call_id=call.id)
            invoke = tool.bind(call, arguments, request)
            self._check_limits(tool, run)
        except ToolError as error:
            return failed(call, str(error))
        run.tool_calls[call.name] += 1
        work, between = partial(run_function, tool, invoke, call), run_tool.get()
        message = await (work() if between is None else between(call, work))
        if effect is not None and not message.is_error:
            run.effects[effect] = ((run.run_id, run.attempt), message)
        return message

    def _check_limits(self, tool: Tool, run: Run) -> None:
        if tool.max_calls is not None and run.tool_calls[tool.name] >= tool.max_calls:
            raise ToolError(
                f"{tool.name!r} may run {tool.max_calls} times for one question and has done so. "
                "Go on with the results you have."
            )
        if self.max_tool_calls is not None and run.tool_calls.total() >= self.max_tool_calls:
            raise ToolError(
                f"All {self.max_tool_calls} tool calls for one question are used up. Answer with the results you have."
            )


_TOO_DEEP = "The arguments are nested too deeply. Nothing was run. Call again with flatter ones."
"""What could just be read may be too deep to be read or written again: the stack is not always equally full."""


def _tool_request(call: ToolCall, request: ChatRequest) -> ToolRequest:
    try:
        return ToolRequest(call if call.arguments else replace(call, arguments="{}"), request)
    except ValueError as error:
        raise ToolError(_TOO_DEEP) from error


def _effect(call: ToolCall, arguments: dict[str, Any]) -> tuple[str, str]:
    """What makes two calls the same: the name, and the arguments whatever their order and spacing."""
    try:
        return call.name, json.dumps(arguments, sort_keys=True)
    except RecursionError as error:
        raise ToolError(_TOO_DEEP) from error


def _find(name: str, offered: Sequence[ToolSpec]) -> Tool:
    for each in offered:
        if each.name == name:
            if isinstance(each, Tool):
                return each
            raise ConfigurationError(f"{name!r} was offered to the model but cannot run; offer a Tool, not a ToolSpec.")
    raise ToolError(_unknown(name, [each.name for each in offered]))


def _unknown(name: str, known: Sequence[str]) -> str:
    if not known:
        return f"There is no tool {name[:80]!r}: no tools are offered. Answer in text."
    near = " or ".join(map(repr, nearest(name[:80], known)))
    hint = f" Did you mean {near}?" if near else ""
    more = f" and {len(known) - MAX_NAMES} more" if len(known) > MAX_NAMES else ""
    return f"There is no tool {name[:80]!r}.{hint} Offered: {', '.join(known[:MAX_NAMES])}{more}."


def _started(call: ToolCall) -> ToolStarted:
    return ToolStarted(call_id=call.id, name=call.name, arguments=call.arguments)


def _finished(message: ToolMessage, elapsed_s: float) -> ToolFinished:
    return ToolFinished(
        call_id=message.call_id, name=message.name, text=message.text, is_error=message.is_error, elapsed_s=elapsed_s
    )


def _refuse(call: ToolCall, request: ChatRequest, why: str) -> ToolMessage:
    """Answer *call* without running it; listeners see a pair of events for every call."""
    message = failed(call, why)
    request.emit(_started(call))
    request.emit(_finished(message, 0.0))
    return message


def _cut_reply(response: ChatResponse) -> str:
    return (
        f"Your reply was cut before it was complete (finish reason {response.finish_reason!r}), so nothing was run. "
        "Call again, shorter: fewer calls, or less text in the arguments."
    )


async def _together(work: Sequence[Coroutine[Any, Any, T]]) -> tuple[T, ...]:
    """Await all of *work*; where one fails or all are cancelled, none is left running.

    Not a TaskGroup: that wraps errors in a group, and it may lose a cancel that meets an error.
    """
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        unfinished = [task for task in tasks if not task.done()]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
