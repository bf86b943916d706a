"""Where an MCP server is, and how one is reached: at a URL, by starting a command, or by a transport of the user's."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, cast
from urllib.parse import parse_qsl, urlsplit

from reactflow.errors import ConfigurationError
from reactflow.tooling.results import words_of

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Transport

Hear: TypeAlias = "Callable[[httpx2.Response], Awaitable[None]]"
"""Hears of each HTTP response before the package ``mcp`` does, which keeps the status to itself."""

MIN_SECRET = 8
"""From how many characters on a value is taken for a secret."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is.

    Args:
        label: What errors call it: without path, query and arguments, which may hold keys.
        connect: Makes the transport of one session.
        started: Whether it is a process of our own.
        secrets: What no error may show, the longest first.
    """

    label: str
    connect: Callable[[Hear], Transport] = field(repr=False)
    started: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def words(self, error: BaseException) -> str:
        """The message of *error* without what is secret."""
        text = words_of(error) or type(error).__name__
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def read_endpoint(
    server: str | Sequence[str] | Callable[[], Transport],
    *,
    timeout: float | None,
    headers: Mapping[str, str] | None,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
) -> Endpoint:
    """Make sense of what a user gives as a server; the arguments are those of ``mcp_tools``.

    Raises:
        ConfigurationError: It is no URL, command or function, or an argument is for another kind of server.
    """
    url = server.strip() if isinstance(server, str) and _is_url(server) else None
    if headers is not None and url is None:
        raise ConfigurationError("headers are for a server at a URL; a command gets its keys by env={...}.")
    if (env is not None or cwd is not None) and (url is not None or callable(server)):
        raise ConfigurationError("env and cwd are for a server that is started by a command.")
    if url is not None:
        return _at_url(url, dict(headers or {}), timeout)
    if callable(server):
        return Endpoint("The MCP server", lambda _: server())
    return _started_by(_split(server), dict(env or {}), cwd)


def _is_url(text: str) -> bool:
    return text.strip().lower().startswith(("http://", "https://"))


def _at_url(url: str, headers: dict[str, str], timeout: float | None) -> Endpoint:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2] if parts.hostname else ""
    except ValueError:
        host = ""
    if not host:
        raise ConfigurationError(
            "The URL of the MCP server names no host; give for instance http://127.0.0.1:8000/mcp."
        )
    tokens = (value.partition(" ")[2] for value in headers.values())  # of "Bearer ..."
    keys = (parts.path.strip("/"), parts.query, parts.password or "", *(value for _, value in parse_qsl(parts.query)))
    return Endpoint(
        f"MCP server {parts.scheme}://{host}",
        lambda hear: _http(url, headers, timeout, hear),
        secrets=_secrets((*keys, *headers.values(), *tokens)),
    )


def _split(server: str | Sequence[str]) -> list[str]:
    try:
        words = shlex.split(server, posix=os.name == "posix") if isinstance(server, str) else [*map(os.fspath, server)]
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{server!r:.80} is no URL and no command: {error}.") from error
    if not words or not words[0] or not all(isinstance(word, str) for word in words):
        raise ConfigurationError(f"{server!r:.80} is no URL and no command; give one of them, or a list of words.")
    return words


def _started_by(words: list[str], env: dict[str, str], cwd: str | os.PathLike[str] | None) -> Endpoint:
    label = f"MCP server {os.path.basename(words[0])!r}"
    return Endpoint(label, lambda _: _stdio(words, env, cwd), started=True, secrets=_secrets(env.values()))


def _secrets(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if len(value) >= MIN_SECRET}, key=len, reverse=True))


@contextlib.asynccontextmanager
async def _http(url: str, headers: dict[str, str], limit_s: float | None, hear: Hear) -> AsyncGenerator[Any, None]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    limits = httpx2.Timeout(limit_s, read=None)  # how long an answer may take is for the caller to say
    async with (
        httpx2.AsyncClient(headers=headers, timeout=limits, event_hooks={"response": [hear]}) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


@contextlib.asynccontextmanager
async def _stdio(
    words: list[str], env: dict[str, str], cwd: str | os.PathLike[str] | None
) -> AsyncGenerator[Any, None]:
    from mcp import StdioServerParameters, stdio_client

    folder = None if cwd is None else os.fspath(cwd)
    parameters = StdioServerParameters(command=words[0], args=words[1:], env=env, cwd=folder)
    with _error_output() as output:
        async with stdio_client(parameters, output) as streams:
            yield streams


def _error_output() -> contextlib.AbstractContextManager[TextIO]:
    """The program's standard error, where a process can write to it: not so in a notebook, or without a terminal."""
    try:
        cast(TextIO, sys.__stderr__).fileno()
    except (AttributeError, OSError, ValueError):
        return open(os.devnull, "w", encoding="utf-8")
    return contextlib.nullcontext(cast(TextIO, sys.__stderr__))
