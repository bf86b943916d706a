"""Any server that speaks the OpenAI chat API.

The openai library supplies the connections, the credentials and the names of what goes wrong; what is in the bytes is
the business of ``reactflow.wire``.  Requests go straight to the library's HTTP client, because its way there costs as
much as the exchange itself.  Each reply is read once and by its payload, so that odd servers and broken streams end in
a right answer or in an error that says what happened.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, Final, TypeVar, get_args
from weakref import WeakKeyDictionary

import aiohttp
import httpx2
import openai

from reactflow.errors import ConfigurationError, ProviderError
from reactflow.frozen import FrozenDict
from reactflow.messages import AssistantMessage
from reactflow.model import ChatRequest, ChatResponse
from reactflow.wire.address import checked_key, checked_url, endpoint_of
from reactflow.wire.encode import in_pieces
from reactflow.wire.failure import (
    LONGEST_RETRY_AFTER_S,
    Refusal,
    backoff,
    explain,
    explain_redirect,
    message_of,
    wanted_wait,
)
from reactflow.wire.loops import PerLoop
from reactflow.wire.receive import Reception
from reactflow.wire.redirect import MAX_REDIRECTS, redirected, unfollowed
from reactflow.wire.reply import BadReply, Heard, decode, settle
from reactflow.wire.request import RequestWriter, ResponseFormat
from reactflow.wire.tool_text import ToolMode, read_text, uses_envelope

T = TypeVar("T")

LARGE_BODY_BYTES: Final = 1 << 20
MAX_ERROR_BYTES: Final = 1 << 16
"""How much of the body of a refusal is read."""

CONNECT_S: Final = 10.0

_STATUS_ERRORS: Final[Mapping[int, type[openai.APIStatusError]]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
}
_OF_THE_BODY: Final = frozenset(("content-encoding", "content-length", "transfer-encoding"))
_TRANSPORT_ERRORS: Final = (
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    OSError,  # TimeoutError too
    EOFError,
)


@lru_cache(maxsize=1)
def _ssl_context() -> Any:
    """Loading the certificates costs more than all else about a client; they are the same for every one."""
    return httpx2.create_ssl_context()


@dataclass(frozen=True, slots=True)
class _Line:
    """What one model sends its requests through on one event loop."""

    http: httpx2.AsyncClient
    url: httpx2.URL
    headers: httpx2.Headers


@dataclass(slots=True)
class _Connections:
    """The connections of one event loop, shared by all models."""

    http: httpx2.AsyncClient = field(
        default_factory=lambda: openai.DefaultAioHttpClient(
            verify=_ssl_context(),
            limits=httpx2.Limits(max_connections=10_000, keepalive_expiry=4.0),  # many servers hang up after 5 s
        )
    )
    lines: WeakKeyDictionary[OpenAIChatModel, _Line] = field(default_factory=WeakKeyDictionary)


_connections: PerLoop[_Connections] = PerLoop(_Connections, lambda held: held.http.aclose())


class OpenAIChatModel:
    """A model behind an OpenAI-compatible server: OpenAI, vLLM, llama.cpp, Ollama, DashScope, DeepSeek, gateways.

    One object serves any number of event loops, threads and forked processes, at the same time or one after the
    other.  It alone repeats failed requests; what cannot succeed is not repeated.  A redirect is followed by 307 and
    308 only, and only to the same server or its https.

    Args:
        model: The model's name at the server.
        base_url: The server, as a rule ending in ``/v1``; else ``OPENAI_BASE_URL``, else OpenAI's own.
        api_key: The key, or an async function that gives one; else ``OPENAI_API_KEY``.  A server on this machine
            needs none.
        timeout: Seconds for a whole reply, and for the first event of a streamed one, > 0.
        stream_read_timeout: Seconds of silence that a stream may have once it has begun, > 0.
        retries: How often a failed request is repeated, >= 0.
        keep_tools_on_final: Send the tools along with ``tool_choice: "none"`` where a conversation that has tool
            calls goes on without tools, for servers that insist on it.
        replay_reasoning: Whether the model's thinking goes back to the server with later requests: True, False, or
            None for "with messages that call tools", which suits the servers that care.
        tool_mode: How tools are called: ``"native"``; ``"text"``, where calls that the model writes as text (in
            ``<tool_call>`` tags, or as JSON that is the whole reply) are run and flagged too; or ``"json_schema"``,
            for weak models and servers that know no tools: tools, calls and results are put into words, and each
            reply is a JSON object with a call or an answer, enforced by the server (see *response_format*).
        response_format: How a wanted schema is sent: ``"json_schema"``, ``"json_object"`` for servers that know no
            schema, or ``"none"``; in the latter two the schema is put into words.
        headers: More headers for every request.
        options: Sent with every request as they are (``temperature``, ``max_tokens``, ``extra_body``, ...); None
            leaves one out.

    Raises:
        ConfigurationError: The key is missing, or a value is out of its bounds.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | Callable[[], Awaitable[str]] | None = None,
        timeout: float = 600.0,
        stream_read_timeout: float = 60.0,
        retries: int = 2,
        keep_tools_on_final: bool = False,
        replay_reasoning: bool | None = None,
        tool_mode: ToolMode = "native",
        response_format: ResponseFormat = "json_schema",
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise ConfigurationError(f"OpenAIChatModel({model!r}): give the model's name at the server.")
        _check_number("timeout", timeout, timeout > 0)
        _check_number("stream_read_timeout", stream_read_timeout, stream_read_timeout > 0)
        _check_number("retries", retries, retries >= 0)
        self._model = model.strip()
        self._base_url = checked_url(base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")
        self._api_key = checked_key(api_key, self._base_url)
        self._timeout, self._stream_read_timeout, self._retries = timeout, stream_read_timeout, retries
        self._headers = dict(headers or {})
        self._writer = RequestWriter(
            model=self._model,
            options=FrozenDict(options),
            tool_mode=_one_of("tool_mode", tool_mode, get_args(ToolMode)),
            response_format=_one_of("response_format", response_format, get_args(ResponseFormat)),
            keep_tools_on_final=keep_tools_on_final,
            replay_reasoning=replay_reasoning,
        )

    @property
    def name(self) -> str:
        """The model's name at the server."""
        return self._model

    def __repr__(self) -> str:
        return f"OpenAIChatModel({self._model!r}, base_url={self._base_url!r})"

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """Ask the server; repeat what may succeed when repeated, within the run's deadline.

        Raises:
            ProviderError: The service failed; the openai error is the cause.
            ConfigurationError: An option cannot be sent.
        """
        request = request if self._writer.streams(request) == request.stream else request.replace(stream=False)
        body = self._writer.write(request)
        for attempt in count(1):
            try:
                heard = await self._attempt(request, body)
                return self._settled(heard, request)
            except ProviderError as error:
                wait = self._wait(error, attempt, request.run.meter.deadline)
                if wait is None:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    def _settled(self, heard: Heard, request: ChatRequest) -> ChatResponse:
        offered = {tool.name for tool in request.tools}
        mode = self._writer.tool_mode
        as_text = offered or uses_envelope(request.messages, request.tools, mode)
        if as_text and heard.text and not heard.calls and (warning := read_text(heard, mode, offered)):
            request.run.warn(warning)
        used = (
            call.id
            for message in request.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        )
        return settle(heard, offered=offered, used=used)

    def _wait(self, error: ProviderError, attempt: int, deadline: float | None) -> float | None:
        """Seconds until the next attempt, or None where there is to be none."""
        if not error.retryable or attempt > self._retries:
            return None
        response = getattr(error.__cause__, "response", None)
        wanted = (wanted_wait(response.headers) if response is not None else None) or 0.0
        wait = max(wanted, backoff(attempt))
        too_late = deadline is not None and time.monotonic() + wait >= deadline
        return None if too_late or wanted > LONGEST_RETRY_AFTER_S else wait

    # -- the exchange --------------------------------------------------------------------------------------------

    async def _attempt(self, request: ChatRequest, body: bytes) -> Heard:
        """Send the request once.

        Raises:
            ProviderError: With the openai error as its cause.
        """
        until = asyncio.get_running_loop().time() + self._timeout
        try:
            async with asyncio.timeout_at(until):
                response = await self._send(body)
        except _TRANSPORT_ERRORS as error:
            raise self._lost(error) from self._connection_error(error)
        try:
            reception = Reception(request, timeout=self._timeout, pause=self._stream_read_timeout, until=until)
            return await reception.read(response.aiter_bytes())
        except BadReply as error:
            raise self._unreadable(error, response) from _bad_reply_cause(error, response)
        except _TRANSPORT_ERRORS as error:
            raise self._lost(error, response) from self._connection_error(error)
        finally:
            with suppress(*_TRANSPORT_ERRORS):  # what counts is what was read
                await response.aclose()

    async def _send(self, body: bytes) -> httpx2.Response:
        """Send the request; the body of the reply is still to be read.

        Raises:
            ProviderError: The server refused.
        """
        line = await self._line()
        headers = await self._headers_for(body, line.headers)
        response = await _post(line.http, line.url, headers, body)
        for _ in range(MAX_REDIRECTS):
            target = redirected(response.status_code, str(response.url), response.headers.get("location"))
            if target is None:
                break
            await response.aclose()
            response = await _post(line.http, target, headers, body)
        if response.is_error or response.has_redirect_location:
            raise self._refused(await _short_enough(response))
        return response

    async def _headers_for(self, body: bytes, headers: httpx2.Headers) -> httpx2.Headers:
        if callable(self._api_key) or len(body) > LARGE_BODY_BYTES:
            headers = headers.copy()
        if callable(self._api_key):
            headers["Authorization"] = f"Bearer {await self._api_key()}"
        if len(body) > LARGE_BODY_BYTES:
            headers["Content-Length"] = str(len(body))
        return headers

    async def _line(self) -> _Line:
        held = await _connections.get()
        line = held.lines.get(self)
        if line is None:
            line = held.lines[self] = _Line(held.http, httpx2.URL(endpoint_of(self._base_url)), self._headers_of(held))
        return line

    def _headers_of(self, held: _Connections) -> httpx2.Headers:
        """What the openai client would send, less the facts about this machine that it tells every server."""
        client = openai.AsyncOpenAI(
            api_key=self._api_key, base_url=self._base_url, http_client=held.http, default_headers=self._headers
        )
        named = {**client.auth_headers, **client.default_headers}
        return httpx2.Headers(
            {
                name: value
                for name, value in named.items()
                if isinstance(value, str) and not name.startswith("X-Stainless-")
            }
        )

    # -- what went wrong -----------------------------------------------------------------------------------------

    def _refused(self, response: httpx2.Response) -> ProviderError:
        said: Any = response.text
        with suppress(ValueError):
            said = decode(response.content)
        error = said["error"] if isinstance(said, dict) and said.get("error") else said
        status = response.status_code
        if response.has_redirect_location:
            error = unfollowed(status, str(response.url), response.headers["location"], self._base_url)
        kind = openai.InternalServerError if status >= 500 else _STATUS_ERRORS.get(status, openai.APIStatusError)
        refused = self._explain(response, error, response.text)
        refused.__cause__ = kind(f"Error code: {status} - {message_of(error)}", response=response, body=error)
        return refused

    def _unreadable(self, error: BadReply, response: httpx2.Response) -> ProviderError:
        if error.error:
            return self._explain(response, error.error, error.body)
        return ProviderError(
            self._without_key(f"{error} (model {self._model!r} at {self._base_url}); it begins {error.body!r:.100}."),
            status=response.status_code,
            request_id=_request_id(response),
            body=self._without_key(error.body or ""),
            retryable=error.retryable,
        )

    def _lost(self, error: Exception, response: httpx2.Response | None = None) -> ProviderError:
        what = "did not answer in time" if _is_timeout(error) else "could not be reached, or hung up"
        if response is not None:
            what = "stopped in the middle of its reply" if _is_timeout(error) else "hung up in the middle of its reply"
        facts = str(error) or (f"{self._timeout:g} s are over" if _is_timeout(error) else type(error).__name__)
        return ProviderError(
            self._without_key(f"Model {self._model!r} at {self._base_url} {what}: {facts[:200]}."),
            status=None if response is None else response.status_code,
            request_id=None if response is None else _request_id(response),
            retryable=True,
        )

    def _explain(self, response: httpx2.Response, error: Any, body: str | None) -> ProviderError:
        refusal = Refusal(
            status=response.status_code,
            error=error,
            request_id=_request_id(response),
            body=body,
            should_retry={"true": True, "false": False}.get(response.headers.get("x-should-retry", "")),
        )
        say = explain_redirect if response.has_redirect_location else explain
        return say(refusal, model=self._model, base_url=self._base_url, hide=self._without_key)

    def _connection_error(self, error: Exception) -> openai.APIConnectionError:
        """The openai error that the client would have raised, had it been the one that noticed."""
        request = httpx2.Request("POST", endpoint_of(self._base_url))
        if _is_timeout(error):
            wrapped: openai.APIConnectionError = openai.APITimeoutError(request)
        else:
            wrapped = openai.APIConnectionError(message=str(error) or type(error).__name__, request=request)
        wrapped.__cause__ = error
        return wrapped

    def _without_key(self, text: str) -> str:
        """Some servers repeat the key in their error."""
        return text.replace(self._api_key, "***") if isinstance(self._api_key, str) else text


async def _post(
    http: httpx2.AsyncClient, url: httpx2.URL | str, headers: httpx2.Headers, body: bytes
) -> httpx2.Response:
    """Send *body*; what comes back is still to be read, and timed by who reads it."""
    timeout = {"connect": CONNECT_S, "read": None, "write": None, "pool": None}
    content = in_pieces(body) if len(body) > LARGE_BODY_BYTES else body
    request = httpx2.Request("POST", url, headers=headers, content=content, extensions={"timeout": timeout})
    return await http.send(request, stream=True, follow_redirects=False)


async def _short_enough(response: httpx2.Response) -> httpx2.Response:
    """A refusal with its body, or with the beginning of one that is too long or has no end."""
    body = bytearray()
    try:
        async for data in response.aiter_bytes():
            body += data
            if len(body) >= MAX_ERROR_BYTES:
                break
    finally:
        with suppress(*_TRANSPORT_ERRORS):
            await response.aclose()
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _OF_THE_BODY]
    return httpx2.Response(
        response.status_code, headers=headers, content=bytes(body[:MAX_ERROR_BYTES]), request=response.request
    )


def _is_timeout(error: Exception) -> bool:
    """Whether nothing came in time; the transport calls a lost connection a time-out too, and it is none."""
    if isinstance(error, httpx2.TimeoutException):
        return error.__cause__ is None or isinstance(error.__cause__, TimeoutError)
    return isinstance(error, TimeoutError)


def _request_id(response: httpx2.Response) -> str | None:
    return response.headers.get("x-request-id") or response.headers.get("request-id")


def _bad_reply_cause(error: BadReply, response: httpx2.Response) -> openai.APIError:
    if error.error:
        return openai.APIError(message_of(error.error) or str(error), response.request, body=error.error)
    return openai.APIResponseValidationError(response, error.body, message=str(error))


def _one_of(name: str, value: T, known: Collection[Any]) -> T:
    if value not in known:
        raise ConfigurationError(f"OpenAIChatModel({name}={value!r}): give one of {', '.join(map(repr, known))}.")
    return value


def _check_number(name: str, value: float, good: bool) -> None:
    if not good or not math.isfinite(value):
        bound = ">= 0" if name == "retries" else "> 0"
        raise ConfigurationError(f"OpenAIChatModel({name}={value!r}): give a finite number {bound}.")
