"""Events as JSON lines and as server-sent events, and back.

Each event is one JSON object on one line; ``type`` names it: ``{"type": "text_delta", "text": "Hel", "round": 1,
"role": "agent"}``.  See :mod:`reactflow.value_json` for how values are written.  A stream that failed ends with a
:class:`RunFailed`, so that a reader at the other end of a wire can tell it from one that broke off.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from reactflow.errors import ConfigurationError, ReactflowError
from reactflow.events import Event, RunFinished
from reactflow.frozen import EMPTY
from reactflow.result import AgentResult
from reactflow.value_json import from_data, tag, to_data

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed(Event):
    """The run ended with an error: the last event of a written stream that failed.

    Args:
        error: The name of the error's class.
        message: What to tell the reader.  Only reactflow's own errors are quoted; any other may hold secrets.
        partial: The best draft so far, where there was one.
    """

    error: str
    message: str
    partial: AgentResult | None = None


def run_failed(error: BaseException) -> RunFailed:
    """The event that tells of *error*."""
    if isinstance(error, ReactflowError):
        return RunFailed(error=type(error).__name__, message=str(error), partial=error.partial)
    return RunFailed(error=type(error).__name__, message="The run failed; the server's log says why.")


def without_context(event: Event) -> Event:
    """*event* without the run's context, which may hold what only the server should know."""
    if isinstance(event, RunFinished):
        return replace(event, result=replace(event.result, context=EMPTY))
    if isinstance(event, RunFailed) and event.partial is not None:
        return replace(event, partial=replace(event.partial, context=EMPTY))
    return event


def event_to_json(event: Event) -> str:
    """Write *event* as one line of JSON, without the line's end."""
    return _dump(to_data(event, Event))


def event_from_json(text: str | bytes) -> Event:
    """Read one event.

    An event of your own class is found by its name, once its module is loaded.

    Raises:
        ConfigurationError: It is no JSON, or no event; says what is wrong where.
    """
    event: Event = _read(text, Event, "the event")
    if type(event) is Event:
        raise ConfigurationError(f"The JSON of a run cannot be read: nothing is known of the event {text[:80]!r}.")
    return event


def result_to_json(result: AgentResult, *, indent: int | None = None) -> str:
    """Write *result* as JSON, on one line unless there is an *indent*; ``type`` names a workflow's result."""
    return _dump(to_data(result, AgentResult), indent=indent)


def result_from_json(text: str | bytes) -> AgentResult:
    """Read one result; see :func:`event_from_json`."""
    result: AgentResult = _read(text, AgentResult, "the result")
    return result


def event_to_sse(event: Event) -> str:
    """Write *event* as a server-sent event, so that a page can listen to each type by its name."""
    return f"event: {tag(type(event))}\ndata: {event_to_json(event)}\n\n"


_LINE_ENDS = {character: f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}
"""Characters that JSON allows in a text and that some readers take for the end of a line."""


def _dump(data: Any, *, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else None
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    return re.sub("[\x85\u2028\u2029]", lambda match: _LINE_ENDS[match[0]], text)


def _read(text: str | bytes, hint: type, where: str) -> Any:
    try:
        return from_data(json.loads(text), hint, where)
    except ConfigurationError:
        raise
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"The JSON of a run cannot be read: {text[:80]!r}: {error}.") from error


def read_json_lines(lines: Iterable[str | bytes]) -> Iterator[Event]:
    """Read events from lines, such as an open file; blank lines are skipped."""
    return (event_from_json(line) for line in lines if line.strip())


class SseReader:
    """Reads server-sent events from pieces of a response that end anywhere, also within a character.

    Example::

        reader = SseReader()
        async for chunk in response.content.iter_any():
            for event in reader.feed(chunk):
                ...
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._rest = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that *chunk* completes, as a rule none or one.

        Raises:
            ConfigurationError: A server-sent event holds no event of reactflow's.
        """
        *lines, self._rest = re.split(r"\r\n|\n|\r(?!\Z)", self._rest + self._decoder.decode(chunk))
        return [event_from_json(text) for line in lines if (text := self._take(line))]

    def _take(self, line: str) -> str:
        """The data of the event that *line* ends, or an empty text."""
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        if line:
            return ""
        text, self._data = "\n".join(self._data), []
        return text


async def json_lines(events: AsyncIterable[Event]) -> AsyncGenerator[str, None]:
    """Each event as a line of JSON, its end included; a failure becomes the last line.  Closing it ends the run."""
    async with aclosing(_with_failure(events)) as watched:
        async for event in watched:
            yield event_to_json(event) + "\n"


async def sse_stream(
    events: AsyncIterable[Event], *, keep_alive_s: float = 15.0, keep_context: bool = False
) -> AsyncGenerator[bytes, None]:
    """The body of a ``text/event-stream`` response.

    A failure becomes the last event.  Closing it, as a server does when the reader has gone, ends the run.

    Args:
        events: A run, such as ``agent.astream(question)``.
        keep_alive_s: How long to be silent, > 0.  Then a comment is sent, which keeps proxies from closing the
            connection and lets the server notice that nobody reads any more.
        keep_context: Whether the results carry the run's context to the reader.
    """
    async with aclosing(_pulsed(_with_failure(events), keep_alive_s)) as pulsed:
        async for event in pulsed:
            shown = event if keep_context or event is None else without_context(event)
            yield b": still here\n\n" if shown is None else event_to_sse(shown).encode()


async def _with_failure(events: AsyncIterable[Event]) -> AsyncGenerator[Event, None]:
    iterator = aiter(events)
    try:
        async for event in iterator:
            yield event
    except Exception as error:  # whatever ended the run, the reader at the other end must hear of it
        yield run_failed(error)
    finally:
        if isinstance(iterator, AsyncGenerator):
            await iterator.aclose()


async def _pulsed(items: AsyncGenerator[T, None], seconds: float) -> AsyncGenerator[T | None, None]:
    """Pass *items* on, and None wherever none came for that long."""
    coming: asyncio.Task[T] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(items))
            if not (await asyncio.wait([coming], timeout=seconds))[0]:
                yield None
                continue
            done, coming = coming, None
            try:
                item = done.result()
            except StopAsyncIteration:
                return
            yield item
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.wait([coming])
        await items.aclose()
