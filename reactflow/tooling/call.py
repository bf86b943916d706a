"""One call of a tool's function: what comes out of it, whatever that is, becomes a message for the model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import structlog

from reactflow.errors import ToolError
from reactflow.messages import ToolCall, ToolMessage
from reactflow.threads import cancels, run_in_thread
from reactflow.tooling.definition import Tool
from reactflow.tooling.results import as_text, shorten, words_of

log = structlog.get_logger("reactflow")


async def run_function(tool: Tool, invoke: Callable[[], Any], call: ToolCall) -> ToolMessage:
    """Run what :meth:`Tool.bind` made ready, within the tool's time-out.

    Returns:
        The result, or in words for the model what went wrong.

    Raises:
        CancelledError: The run is being cancelled; one that the tool itself raised is only an error.
        Exception: What the tool's ``on_error`` raised.
    """
    before = cancels()
    message = await _outcome(tool, invoke, call)
    if cancels() > before:  # a tool that catches everything does not keep its run alive
        raise asyncio.CancelledError
    return message


async def _outcome(tool: Tool, invoke: Callable[[], Any], call: ToolCall) -> ToolMessage:
    scope = asyncio.timeout(tool.timeout_s)
    try:
        async with scope:
            value = await invoke() if tool.is_async else await _in_thread(invoke)
    except ToolError as error:
        return failed(call, words_of(error, tool.max_result_chars) or f"{tool.name!r} failed.")
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # a tool is user code: anything may come out
        if isinstance(error, asyncio.CancelledError) and cancels():
            raise
        log.warning("tool.failed", tool=tool.name, call_id=call.id, error=type(error).__name__)
        return failed(call, _too_slow(tool) if scope.expired() else _explain(tool, error))
    return _read(tool, value, call)


async def _in_thread(invoke: Callable[[], Any]) -> Any:
    value = await run_in_thread(invoke)
    return await value if inspect.isawaitable(value) else value


def _too_slow(tool: Tool) -> str:
    doubt = " It may have taken effect all the same: check before you repeat it." if tool.side_effect else ""
    return (
        f"{tool.name!r} did not finish within {tool.timeout_s:g} s and was given up.{doubt} "
        "Ask for less, or do without it."
    )


def _explain(tool: Tool, error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return f"{tool.name!r} was cancelled from within and has no result. Try again, or do without it."
    if tool.on_error is not None and isinstance(error, Exception):
        return tool.on_error(error)
    words = words_of(error)
    what = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return f"{tool.name!r} failed with {what}\nCorrect the call if that is the cause, else try another way."


def _read(tool: Tool, value: object, call: ToolCall) -> ToolMessage:
    """Make the result a message; of a ToolMessage that a tool returned, the text and the flag count."""
    is_error = isinstance(value, ToolMessage) and value.is_error
    try:
        text = value.text if isinstance(value, ToolMessage) else as_text(value)
    except Exception as error:  # serialisers are user code too
        log.warning("tool.unreadable_result", tool=tool.name, call_id=call.id, error=type(error).__name__)
        kind = type(value).__name__
        return failed(call, f"{tool.name!r} ran, but its result, a {kind}, has no JSON form. Do without it.")
    return ToolMessage(shorten(text, tool.max_result_chars), call.id, call.name, is_error)


def failed(call: ToolCall, text: str) -> ToolMessage:
    """An error message in answer to *call*."""
    return ToolMessage(text, call.id, call.name, is_error=True)
