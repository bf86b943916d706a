"""Where a server is, and the key it wants: checked when a model is made."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from reactflow.errors import ConfigurationError

ENDPOINT: Final = "/chat/completions"

Key: TypeAlias = str | Callable[[], Awaitable[str]]
"""An API key, or an async function that gives one."""


def checked_url(url: str) -> str:
    """The base URL *url*, tidied.

    Raises:
        ConfigurationError: It is none.
    """
    url = url.strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"The base URL {url!r} must begin with http:// or https:// and name a host.")
    if parts.path.endswith(ENDPOINT):
        raise ConfigurationError(f"The base URL {url!r} must end before {ENDPOINT}, as a rule in /v1.")
    return url


def endpoint_of(base_url: str) -> str:
    """Where requests go; a query that some gateways want stays behind the path."""
    parts = urlsplit(base_url)
    return parts._replace(path=parts.path + ENDPOINT).geturl()


def checked_key(key: Key | None, base_url: str) -> Key:
    """The key that was given, or that of the environment; ``"none"`` for a server on this machine.

    Raises:
        ConfigurationError: There is none, or no header can carry it.
    """
    if callable(key):
        return key
    key = (key or os.environ.get("OPENAI_API_KEY") or "").strip()
    if not key and _is_this_machine(urlsplit(base_url).hostname or ""):
        return "none"
    if not key:
        raise ConfigurationError(
            f"There is no API key for {base_url}. Set OPENAI_API_KEY or pass api_key='...'; "
            "for a server that wants none pass any word."
        )
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError("The API key has characters that no HTTP header can carry; copy it again.")
    return key


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
