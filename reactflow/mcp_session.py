"""The session with an MCP server: opened when it is first needed, and again when it was lost.

All of it runs on one event loop.  anyio, which the package ``mcp`` is built on, wants a session to be closed by the
task that opened it; so each has a task of its own, and calls come to it from other tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextvars import Context
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self, cast

import structlog

from reactflow.errors import ConfigurationError, ProviderError, ReactflowError, ToolError
from reactflow.mcp_endpoint import Endpoint
from reactflow.tooling.mcp_text import answer_text

if TYPE_CHECKING:
    import httpx2
    from mcp import Client, MCPError
    from mcp import Tool as RemoteTool

log = structlog.get_logger("reactflow")

MAX_PAGES = 100
"""How many pages the list of a server's tools may have."""

CLOSED = "Connection closed"
"""What the package ``mcp`` says where it can neither send nor receive any more."""

CLOSE_S = 5.0
"""Seconds that a server gets to end its session; a process that does not end itself is killed within them."""


class Line:
    """The way to a server: its present session, on the loop that owns it.

    Args:
        endpoint: Where the server is.
        timeout: Seconds for opening a session and listing its tools, > 0; None for no limit.
    """

    def __init__(self, endpoint: Endpoint, timeout: float | None) -> None:
        self._endpoint, self._timeout = endpoint, timeout
        self._session: _Session | None = None
        self._open: set[_Session] = set()  # the present one, and lost ones that still wait for an answer
        self._closed = False

    async def list_tools(self) -> Sequence[RemoteTool]:
        """The server's tools, all pages of them.

        Raises:
            ConfigurationError: The command cannot be started.
            ProviderError: The server cannot be reached, or breaks the protocol.
        """
        return (await self._opened()).tools

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """The text of what tool *name* answers; a cancel is passed on to the server.

        Raises:
            ToolError: The tool or the server failed, or the session was lost; says what to do, for the model.
        """
        try:
            return await self._call(name, arguments)
        except _Forgotten:  # the server has not looked at the call, so it may be sent again
            return await self._call(name, arguments)

    async def close(self) -> None:
        """End the session for good; what still waits for an answer is told so."""
        self._closed = True
        await asyncio.gather(*(session.close() for session in self._open))

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        try:
            session = await self._opened()
        except (ConfigurationError, ProviderError) as error:
            raise ToolError(f"{name!r} was not run. {error} Try again later, or do without it.") from error
        return await session.call(name, arguments)

    async def _opened(self) -> _Session:
        if self._closed:
            raise ProviderError(f"The session with {self._endpoint.label} was closed.")
        if self._session is None or self._session.over:
            self._session = _Session(self._endpoint, self._timeout, self._open.discard)
            self._open.add(self._session)
        session = self._session
        await session.settled()
        return session


class _Forgotten(ToolError):
    """The server does not know the session any more: it has restarted, or the session was idle for too long."""


class _Session:
    """One session, and the task that holds it.

    Attributes:
        tools: What the server has.
        over: Nothing more can be sent; what was sent may still be answered.
    """

    def __init__(self, endpoint: Endpoint, timeout: float | None, ended: Callable[[_Session], None]) -> None:
        import anyio

        self.tools: Sequence[RemoteTool] = ()
        self.over = False
        self._endpoint, self._timeout = endpoint, timeout
        self._client: Client | None = None
        self._error: ReactflowError | None = None
        self._status: int | None = None
        self._forgotten = self._closing = False
        self._calls = 0
        self._settled, self._stop = asyncio.Event(), asyncio.Event()
        self._scope = anyio.CancelScope(deadline=math.inf if timeout is None else anyio.current_time() + timeout)
        # in an empty context: the run that happens to be the first must not be kept alive
        self._task = asyncio.get_running_loop().create_task(self._live(), context=Context())
        self._task.add_done_callback(lambda _: ended(self))

    async def settled(self) -> None:
        """Wait until the tools are listed; raises what prevented it."""
        await self._settled.wait()
        if self._error is not None:
            raise self._error

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        from mcp import MCPError

        self._calls += 1
        try:
            result = await cast("Client", self._client).call_tool(name, arguments)
        except MCPError as error:
            raise self._failed(name, error) from error
        except (RuntimeError, ValueError) as error:  # of the package mcp, and of pydantic
            raise self._illegal(name, error) from error
        finally:
            self._calls -= 1
            if self.over:
                self._retire()
        return answer_text(result)

    async def close(self) -> None:
        import anyio

        self._closing = True
        self._end()
        self._scope.deadline = anyio.current_time() + CLOSE_S
        if self._client is None:
            self._scope.cancel()
        await asyncio.wait([self._task])

    # -------------------------------------------------------------------------------------------- its life

    async def _live(self) -> None:
        from mcp import Client, Implementation

        me = Implementation(name="reactflow", version=version("reactflow"))
        try:
            with self._scope:
                async with Client(self._transport(), client_info=me, cache=None) as client:
                    self.tools = await self._list_tools(client)
                    self._client, self._scope.deadline = client, math.inf
                    self._settled.set()
                    await self._stop.wait()
            if self._client is None:
                self._error = self._not_opened()
        except Exception as error:
            self._error = self._cannot_open(_first_of(error))
        finally:
            self.over = True
            self._settled.set()
            if self._client is not None and not self._closing:
                log.warning("mcp.session_lost", server=self._endpoint.label)

    @contextlib.asynccontextmanager
    async def _transport(self) -> AsyncGenerator[Any, None]:
        async with self._endpoint.connect(self._hear) as (reading, writing):
            yield _Watched(reading, self._end), writing

    async def _list_tools(self, client: Client) -> Sequence[RemoteTool]:
        found: list[RemoteTool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                return found
        raise ProviderError(f"{self._endpoint.label} lists its tools on more than {MAX_PAGES} pages without an end.")

    async def _hear(self, response: httpx2.Response) -> None:
        """A server that does not know a session says 404; not all do as the protocol wants, and say another error."""
        if not response.is_error or response.request.method != "POST":
            return
        self._status = response.status_code
        if "mcp-session-id" in response.request.headers:
            self._forgotten = self._forgotten or response.status_code == 404
            self._retire()

    def _retire(self) -> None:
        """Send nothing more, and end when nothing is waited for."""
        self.over = True
        if not self._calls:
            self._stop.set()

    def _end(self) -> None:
        self.over = True
        self._stop.set()

    # -------------------------------------------------------------------------------------------- what went wrong

    def _failed(self, name: str, error: MCPError) -> ToolError:
        from mcp.types import CONNECTION_CLOSED

        words = self._endpoint.words(error)
        if self._forgotten and error.code != CONNECTION_CLOSED:
            return _Forgotten(f"{name!r} was not run: {self._endpoint.label} has forgotten the session. Call it again.")
        if error.code == CONNECTION_CLOSED:  # also what many servers call any error of their own
            self.over = self.over or error.message == CLOSED
            return ToolError(
                f"{self._endpoint.label} broke off {name!r} ({words}). It may have taken effect all the same: check "
                "before you repeat it."
            )
        return ToolError(
            f"{name!r} failed at {self._endpoint.label}: {words}. Correct the call if that is the cause, else try "
            "another way."
        )

    def _illegal(self, name: str, error: Exception) -> ToolError:
        words = self._endpoint.words(error).partition("\n")[0]
        return ToolError(
            f"{self._endpoint.label} answered {name!r} against its own rules ({words}). The call may have taken effect "
            "all the same; go on without the answer."
        )

    def _not_opened(self) -> ProviderError:
        if self._closing:
            return ProviderError(f"The session with {self._endpoint.label} was closed before it was open.")
        return ProviderError(f"{self._endpoint.label} did not answer within {self._timeout:g} s.", retryable=True)

    def _cannot_open(self, error: BaseException) -> ReactflowError:
        if isinstance(error, ReactflowError):
            return error
        words = " ".join(self._endpoint.words(error).split())
        label, status, started = self._endpoint.label, self._status, self._endpoint.started
        if started and isinstance(error, OSError):
            return ConfigurationError(f"{label} cannot be started: {words}. Give a command that runs in a shell.")
        if started and words == CLOSED:
            hint = " It has ended; run the command by hand to see why."
        elif status in (401, 403):
            hint = " Give a valid key with headers={'Authorization': 'Bearer ...'}."
        else:
            hint = ""
        answer = "" if status is None else f"HTTP {status}, "
        retryable = status is None or status == 429 or status >= 500
        return ProviderError(f"{label} cannot be used: {answer}{words}.{hint}", status=status, retryable=retryable)


def _first_of(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Watched:
    """The messages of a server, with a word when there are no more: nothing else tells that the server is gone."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream, self._ended = stream, ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)
