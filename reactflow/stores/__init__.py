"""Stores that survive a restart: SQL databases and Redis, chosen by URL."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from reactflow.errors import ConfigurationError
from reactflow.store import ConversationStore, InMemoryStore

__all__ = ["open_store"]

SCHEMES = {
    "sqlite": ("reactflow.stores.sql", "SqlStore", ("sqlalchemy", "greenlet"), "sqlite"),
    "postgresql": ("reactflow.stores.sql", "SqlStore", ("sqlalchemy", "greenlet", "asyncpg"), "postgres"),
    "postgres": ("reactflow.stores.sql", "SqlStore", ("sqlalchemy", "greenlet", "asyncpg"), "postgres"),
    "mysql": ("reactflow.stores.sql", "SqlStore", ("sqlalchemy", "greenlet", "asyncmy"), "mysql"),
    "mariadb": ("reactflow.stores.sql", "SqlStore", ("sqlalchemy", "greenlet", "asyncmy"), "mysql"),
    "redis": ("reactflow.stores.redis", "RedisStore", ("redis",), "redis"),
    "rediss": ("reactflow.stores.redis", "RedisStore", ("redis",), "redis"),
    "valkey": ("reactflow.stores.redis", "RedisStore", ("redis",), "redis"),
}
"""By the first word of a URL: the module and class, what must be installed, and the extra that brings it."""


def open_store(url: str, **settings: Any) -> ConversationStore:
    """Make the store that *url* names.  It connects when it is first used.

    Args:
        url: ``memory://``, ``sqlite:///chat.db``, ``postgresql://user:password@host/name``, ``mysql://...``,
            ``mariadb://...``, ``redis://host:6379/0``, ``rediss://...`` (TLS) or ``valkey://...``.
        settings: As :class:`~reactflow.stores.sql.SqlStore`, :class:`~reactflow.stores.redis.RedisStore` or
            :class:`~reactflow.memory.InMemoryStore` take them.

    Raises:
        ConfigurationError: The URL names no known kind of store, its driver is not installed, or a setting is wrong.
    """
    kind = url.partition(":")[0].partition("+")[0].lower() if isinstance(url, str) else ""
    if kind == "memory":
        return InMemoryStore(**settings)
    if kind not in SCHEMES:
        raise ConfigurationError(
            f"There is no store for {str(url).split('@')[-1]!r:.80}; a URL begins with memory, {', '.join(SCHEMES)}."
        )
    module, name, needed, extra = SCHEMES[kind]
    for package in needed:
        _check_installed(package, kind, extra)
    return cast(ConversationStore, getattr(import_module(module), name)(url, **settings))


def _check_installed(package: str, kind: str, extra: str) -> None:
    try:
        import_module(package)
    except ImportError as error:
        raise ConfigurationError(
            f"A {kind} store needs the package {package!r}: pip install 'reactflow[{extra}]'."
        ) from error
