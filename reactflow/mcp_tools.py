"""Tools of MCP servers, for agents and for the roles of workflows.  Needs the extra ``reactflow[mcp]``::

    async with mcp_tools("https://example.org/mcp", allowed=["search"]) as tools:
        agent = SimpleReactAgent(model=model, tools=tools)

A session with a server belongs to the event loop that opened it, while agents are called from many.  So each server
gets a loop of its own in a thread, which calls from anywhere are handed over to.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import TYPE_CHECKING, Any, Self

from reactflow.errors import ConfigurationError
from reactflow.mcp_endpoint import Endpoint, read_endpoint
from reactflow.mcp_session import CLOSE_S, Line
from reactflow.stores.workers import LoopThread
from reactflow.toolbox import Tool
from reactflow.tooling.mcp_text import legal_names

if TYPE_CHECKING:
    from mcp import Tool as RemoteTool
    from mcp.client import Transport

__all__ = ["McpTools", "mcp_tools"]

MAX_NAMES = 50
"""How many tool names one error lists."""


def mcp_tools(
    server: str | Sequence[str] | Callable[[], Transport],
    *,
    allowed: Iterable[str] | None = None,
    timeout: float | None = 30,
    max_result_chars: int | None = None,
    prefix: str = "",
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> McpTools:
    """The tools of an MCP server, to be given to an agent as its ``tools``.  Nothing is opened yet.

    Args:
        server: The URL of a server that speaks streamable HTTP; or a command that starts one which speaks over its
            standard input and output, as a list of words or as one text; or, for any other way, a function that makes
            a transport of the package ``mcp``, called for each session.
        allowed: Which tools may be used, by the server's own names; others are neither shown nor callable.  None for
            all.
        timeout: Seconds for one call, and for opening a session, > 0; None for no limit.
        max_result_chars: Characters of a result that the model gets to read, > 0; None for all.
        prefix: What the model's names for the tools begin with, so that two servers may have tools of one name.
        headers: Sent with each request to a URL, for instance ``{"Authorization": "Bearer ..."}``.
        env: Environment variables for a command.  Of this program's own it gets only ``PATH``, ``HOME`` and the like.
        cwd: The folder that a command runs in.

    Raises:
        ConfigurationError: The package ``mcp`` is not installed, or a value cannot be.
    """
    _check_installed()
    _check_timeout(timeout)
    endpoint = read_endpoint(server, timeout=timeout, headers=headers, env=env, cwd=cwd)
    return McpTools(endpoint, _checked_names(allowed), prefix, timeout, max_result_chars)


class McpTools(Iterable[Tool]):
    """The tools of one MCP server; made by :func:`mcp_tools`.  Safe to use from any thread and event loop.

    Iterating over it opens the session and blocks until the tools are listed, once.  ``async with`` does that without
    blocking the event loop, and ends the session afterwards; ``with`` is for plain code.  A call that finds no session,
    because it was lost or closed, opens one.

    Raises:
        ConfigurationError: An allowed tool does not exist, the schema of one is not valid, or the command cannot be
            started.
        ProviderError: The server cannot be reached, or breaks the protocol.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        allowed: tuple[str, ...] | None,
        prefix: str,
        timeout_s: float | None,
        max_result_chars: int | None,
    ) -> None:
        self._endpoint, self._allowed, self._prefix = endpoint, allowed, prefix
        self._timeout_s, self._max_result_chars = timeout_s, max_result_chars
        self._thread = LoopThread("reactflow-mcp", lambda: Line(endpoint, timeout_s), Line.close)
        self._tools: tuple[Tool, ...] | None = None
        weakref.finalize(self, self._thread.close).atexit = False  # does not wait, as the end of the program must

    def __iter__(self) -> Iterator[Tool]:
        if self._tools is None:
            with self._closed_on_error():
                self._tools = self._made(_wait(self._thread))
        return iter(self._tools)

    def __enter__(self) -> Self:
        iter(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        if self._tools is None:
            with self._closed_on_error():
                self._tools = self._made(await self._thread.run(Line.list_tools))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """End the session and its thread, and a process that was started.  Blocks until that is done."""
        with contextlib.suppress(TimeoutError):
            self._thread.close().result(2 * CLOSE_S)

    async def aclose(self) -> None:
        """As :meth:`close`, without blocking the event loop."""
        await self._thread.aclose()

    def __repr__(self) -> str:
        return f"<tools of {self._endpoint.label}>"

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._thread.close()
            raise

    def _made(self, found: Sequence[RemoteTool]) -> tuple[Tool, ...]:
        known: dict[str, RemoteTool] = {}
        for one in found:
            known.setdefault(one.name, one)
        names = known if self._allowed is None else self._allowed
        missing = [name for name in names if name not in known]
        if missing:
            raise ConfigurationError(f"{self._endpoint.label} has no tool {_unknown(missing, list(known))}")
        shown = legal_names(names, self._prefix)
        return tuple(self._tool(known[name], shown[name]) for name in names)

    def _tool(self, remote: RemoteTool, shown: str) -> Tool:
        async def call(arguments: dict[str, Any]) -> str:
            return await self._thread.run(lambda line: line.call(remote.name, arguments))

        hints = remote.annotations
        try:
            return Tool.from_schema(
                shown,
                remote.description or remote.title or "",
                remote.input_schema,
                call,
                pass_dict=True,
                timeout=self._timeout_s,
                max_result_chars=self._max_result_chars,
                side_effect=hints is not None and hints.read_only_hint is False and not hints.idempotent_hint,
            )
        except ConfigurationError as error:
            raise ConfigurationError(f"{self._endpoint.label}: {error} Leave it out by allowed=[...].") from error


def _wait(thread: LoopThread[Line]) -> Sequence[RemoteTool]:
    listing = thread.submit(Line.list_tools)
    try:
        return listing.result()
    except BaseException:  # an interrupt, for instance: nobody waits any more
        listing.cancel()
        raise


def _unknown(missing: Sequence[str], known: Sequence[str]) -> str:
    near = dict.fromkeys(each for name in missing for each in get_close_matches(name, known, n=3))
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    more = f" and {len(known) - MAX_NAMES} more" if len(known) > MAX_NAMES else ""
    return f"{' and no '.join(map(repr, missing))}{hint} It has: {', '.join(known[:MAX_NAMES]) or 'none'}{more}."


def _check_installed() -> None:
    try:
        from mcp import Client  # noqa: F401 - older versions have none
    except ImportError as error:
        raise ConfigurationError("MCP tools need the package mcp, 2.3 or newer: pip install reactflow[mcp]") from error


def _check_timeout(timeout: object) -> None:
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not isfinite(timeout) or timeout <= 0:
        raise ConfigurationError(f"timeout={timeout!r}: give a finite number of seconds above 0, or None for no limit.")


def _checked_names(allowed: object) -> tuple[str, ...] | None:
    if allowed is None:
        return None
    if isinstance(allowed, (str, bytes)) or not isinstance(allowed, Iterable):
        raise ConfigurationError(f"allowed={allowed!r:.80}: give a list of names, [...].")
    names = tuple(dict.fromkeys(allowed))
    if not names or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"allowed={list(names)!r:.80}: name at least one tool, or leave it out for all.")
    return names
