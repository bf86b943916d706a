"""A server on 127.0.0.1 that speaks the OpenAI chat API, for tests of programs that talk to one.

It answers from a script, records every request, and refuses with a 400 what the strictest real servers refuse::

    with LoopbackServer(reply_calls(("add", {"a": 1, "b": 2})), reply_text("3")) as server:
        model = OpenAIChatModel("any", base_url=server.base_url)
        ...
        server.assert_legal()

``python -m reactflow.loopback --delay 0.2`` runs one in a process of its own and prints its base URL.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

from aiohttp import web

from reactflow.frozen import EMPTY
from reactflow.wire.legality import check_request, read_request

USAGE: Final[Mapping[str, int]] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
"""What every ready-made reply says it cost."""

End: TypeAlias = Literal["done", "close", "drop", "hang"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of the server.

    Args:
        body: A dict is sent as JSON, bytes and text as they are.  Ignored where there are *events*.
        events: What a stream consists of: a dict becomes ``data: {...}``, bytes and text go out as they are, a
            number is a pause in seconds.
        status: The HTTP status.
        headers: More headers.
        delay: Seconds to wait before anything is sent.
        end: How the reply ends: ``"done"`` (a stream sends ``[DONE]``), ``"close"`` (a stream ends without it),
            ``"drop"`` (the connection is cut) or ``"hang"`` (nothing more comes).
    """

    body: Any = None
    events: Sequence[Any] | None = None
    status: int = 200
    headers: Mapping[str, str] = EMPTY
    delay: float = 0.0
    end: End = "done"


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """What the server was sent.

    Args:
        method: The HTTP method.
        path: The path, such as ``/v1/chat/completions``.
        headers: By lower-case name, without the credentials.
        body: The decoded JSON, or None where it was none.
        raw: The bytes of the body.
        peer: The client's port; requests on one connection share it.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes = field(repr=False)
    peer: int = 0


Responder: TypeAlias = Callable[[ReceivedRequest], Reply]
"""Answers a request; called in the server's thread."""


def completion(message: Mapping[str, Any], *, finish_reason: str = "stop", usage: Any = USAGE) -> dict[str, Any]:
    """The body of a whole reply that consists of *message*."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "loopback",
        "choices": [choice],
        "usage": usage,
    }


def chunk(delta: Mapping[str, Any], *, finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """One event of a stream that adds *delta*."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "loopback",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        **fields,
    }


def as_events(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Turn a whole reply into the events of a stream: one for the message, one for its end, one for the usage."""
    choice = body["choices"][0]
    delta = dict(choice["message"])
    if delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(delta["tool_calls"])]
    return [
        chunk(delta),
        chunk({}, finish_reason=choice["finish_reason"]),
        {**chunk({}), "choices": [], "usage": body["usage"]},
    ]


def reply_text(text: str, *, finish_reason: str = "stop", usage: Any = USAGE, **reply: Any) -> Reply:
    """A reply that is just *text*; it is streamed where the request asks for a stream."""
    return Reply(body=completion({"content": text}, finish_reason=finish_reason, usage=usage), **reply)


def reply_calls(*calls: tuple[str, Any], text: str | None = None, usage: Any = USAGE, **reply: Any) -> Reply:
    """A reply that calls tools, streamed where the request asks for a stream.

    Args:
        calls: ``(name, arguments)`` each; arguments that are no text are written as JSON.  The ids are ``call_1``,
            ``call_2``, ... .
        text: What is said beside the calls.
        usage: What the server says it cost.
        reply: Fields of :class:`Reply`.
    """
    tool_calls = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": _as_text(arguments)}}
        for number, (name, arguments) in enumerate(calls, 1)
    ]
    message = {"content": text, "tool_calls": tool_calls}
    return Reply(body=completion(message, finish_reason="tool_calls", usage=usage), **reply)


def stream_text(*pieces: str, finish_reason: str | None = "stop", usage: Any = USAGE, **reply: Any) -> Reply:
    """A reply that streams *pieces* one by one.

    Args:
        pieces: The text, cut as it is to arrive.
        finish_reason: Said after the last piece; None leaves the stream without an end.
        usage: Sent after the end; None leaves it out.
        reply: Fields of :class:`Reply`.
    """
    events: list[Any] = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": piece}) for piece in pieces]
    if finish_reason is not None:
        events.append(chunk({}, finish_reason=finish_reason))
    if usage is not None:
        events.append({**chunk({}), "choices": [], "usage": usage})
    return Reply(events=events, **reply)


def reply_error(status: int, message: str, *, code: str | None = None, kind: str | None = None, **reply: Any) -> Reply:
    """An error in OpenAI's form."""
    return Reply(
        status=status, body={"error": {"message": message, "type": kind, "param": None, "code": code}}, **reply
    )


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


class LoopbackServer:
    """A chat server in a daemon thread; a context manager, sync and async.

    Args:
        replies: What to answer, in order: a :class:`Reply`, or a function of the request that gives one.  When they
            are used up every further request is a violation and gets a 400.
        respond: Answers every request in place of *replies*.
        delay: Seconds to wait before each reply, on top of its own.
        check: Whether illegal requests are refused.
        strict_fields: Whether unknown top-level fields are illegal.

    Attributes:
        requests: Every request so far, oldest first.
        violations: What was illegal about them, one sentence each.
    """

    def __init__(
        self,
        *replies: Reply | Responder,
        respond: Responder | None = None,
        delay: float = 0.0,
        check: bool = True,
        strict_fields: bool = False,
    ) -> None:
        self.requests: list[ReceivedRequest] = []
        self.violations: list[str] = []
        self._replies: Iterator[Reply | Responder] = iter(replies)
        self._respond = respond
        self._delay, self._check, self._strict_fields = delay, check, strict_fields
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loopback", daemon=True)
        self._port = 0

    @property
    def base_url(self) -> str:
        """What to give a client as its base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    def assert_legal(self) -> None:
        """Raise an :class:`AssertionError` that lists what was illegal about the requests so far."""
        if self.violations:
            raise AssertionError("illegal requests:\n" + "\n".join(self.violations))

    def start(self) -> Self:
        """Start to listen.  ``with`` does it for you."""
        self._thread.start()
        self._ready.wait()
        return self

    def stop(self) -> None:
        """Cut all connections and end the thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.01)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=2048)
        await site.start()
        self._port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        reply, streams = await self._reply_to(request)
        if self._delay or reply.delay:
            await asyncio.sleep(self._delay + reply.delay)
        events = reply.events
        if events is None and streams and isinstance(reply.body, dict) and "choices" in reply.body:
            with contextlib.suppress(LookupError, TypeError, ValueError):  # an odd body goes out whole, as it is
                events = as_events(reply.body)
        if events is not None:
            return await self._send_stream(request, reply, events)
        return await self._send_whole(request, reply)

    async def _reply_to(self, request: web.Request) -> tuple[Reply, bool]:
        raw = await request.read()
        body, wrong = read_request(raw) if raw else (None, ["the body is empty"])
        headers = {name.lower(): value for name, value in request.headers.items() if name.lower() != "authorization"}
        peer = request.transport.get_extra_info("peername")[1] if request.transport is not None else 0
        received = ReceivedRequest(request.method, request.path, headers, body, raw, peer)
        self.requests.append(received)
        if self._check:
            wrong = wrong or check_request(body, strict_fields=self._strict_fields)
            if not request.path.endswith("/v1/chat/completions"):
                wrong = [f"there is nothing at {request.path}"]
            if wrong:
                self.violations += [f"request {len(self.requests)}: {fault}" for fault in wrong]
                return reply_error(400, "; ".join(wrong), kind="invalid_request_error"), False
        return self._next(received), isinstance(body, dict) and body.get("stream") is True

    def _next(self, received: ReceivedRequest) -> Reply:
        answer = self._respond or next(self._replies, None)
        if answer is None:
            self.violations.append(f"request {len(self.requests)}: the script has no reply left")
            return reply_error(400, "the script has no reply left")
        return answer if isinstance(answer, Reply) else answer(received)

    async def _send_whole(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        if reply.end == "hang":
            await asyncio.Event().wait()
        body = reply.body
        kind = "text/plain" if isinstance(body, (str, bytes)) else "application/json"
        data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        headers = {"Content-Type": kind, **reply.headers}
        if reply.end != "drop":
            return web.Response(status=reply.status, body=data, headers=headers)
        response = web.StreamResponse(status=reply.status, headers={**headers, "Content-Length": str(len(data) + 1)})
        await response.prepare(request)
        await response.write(data)
        return _cut(request, response)

    async def _send_stream(self, request: web.Request, reply: Reply, events: Sequence[Any]) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream", **reply.headers}
        response = web.StreamResponse(status=reply.status, headers=headers)
        await response.prepare(request)
        with contextlib.suppress(ConnectionResetError):  # the client has heard enough
            for event in events:
                if isinstance(event, (int, float)):
                    await asyncio.sleep(event)
                else:
                    await response.write(_event_bytes(event))
            if reply.end == "done":
                await response.write(b"data: [DONE]\n\n")
            elif reply.end == "hang":
                await asyncio.Event().wait()
            elif reply.end == "drop":
                return _cut(request, response)
            await response.write_eof()
        return response


def _event_bytes(event: Any) -> bytes:
    if isinstance(event, bytes):
        return event
    return event.encode() if isinstance(event, str) else b"data: " + json.dumps(event).encode() + b"\n\n"


def _cut(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()  # sends what is written, then nothing more: no end of the body
    return response


def respond_with_rounds(rounds: int, *, result_chars: int = 0, deltas: int = 1) -> Responder:
    """Answer by how many tool results a request holds: *rounds* times a call of ``add``, then a text.

    Args:
        rounds: How many tool rounds come before the answer, >= 0.
        result_chars: How long a text each call passes along as ``note``; 0 for none.
        deltas: Into how many pieces a streamed answer is cut, >= 1.
    """

    def respond(request: ReceivedRequest) -> Reply:
        done = sum(message["role"] == "tool" for message in request.body["messages"])
        streams = request.body.get("stream") is True
        if done < rounds:
            arguments = {"a": done, "b": 1} | ({"note": "x" * result_chars} if result_chars else {})
            call = {
                "id": f"call_{done}",
                "type": "function",
                "function": {"name": "add", "arguments": json.dumps(arguments)},
            }
            return Reply(body=completion({"content": None, "tool_calls": [call]}, finish_reason="tool_calls"))
        return stream_text(*["word "] * deltas) if streams and deltas > 1 else reply_text("word " * deltas)

    return respond


def respond_in_turn(*texts: str) -> Responder:
    """Answer with *texts* one after the other, over and over."""
    turns = itertools.cycle(texts)
    return lambda request: reply_text(next(turns))


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until standard input is closed; print the base URL first."""
    parser = argparse.ArgumentParser(prog="python -m reactflow.loopback", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--tool-rounds", type=int, default=2, help="calls of add before the answer")
    parser.add_argument("--result-chars", type=int, default=0, help="length of the note each call passes along")
    parser.add_argument("--deltas", type=int, default=1, help="pieces of a streamed answer")
    parser.add_argument("--texts", nargs="+", help="answer with these in turn, instead of all that")
    parser.add_argument("--no-check", action="store_true", help="do not check the requests")
    options = parser.parse_args(arguments)
    respond = respond_with_rounds(options.tool_rounds, result_chars=options.result_chars, deltas=options.deltas)
    if options.texts:
        respond = respond_in_turn(*options.texts)
    with LoopbackServer(respond=respond, delay=options.delay, check=not options.no_check) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
