"""Conversations in SQLite, PostgreSQL, MySQL or MariaDB, through SQLAlchemy."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from reactflow.errors import ConfigurationError, ConflictError, StoreError
from reactflow.messages import Message
from reactflow.storable import storable
from reactflow.store import StoredMessage, check_whole
from reactflow.stores import sql_work
from reactflow.stores.codec import encode, encode_note
from reactflow.stores.database import DatabaseStore, Key, Overlap, id_text, now_ms
from reactflow.stores.sql_engines import Backend, ServerBackend, SqliteBackend, Work, sqlite_path
from reactflow.stores.turn_locks import ProcessLocks

T = TypeVar("T")

PURGE_BATCH = 500
"""How many conversations one transaction removes, so that it does not hold others up for long."""


class SqlStore(DatabaseStore):
    """Keeps conversations in a SQL database.  Safe to use from several tasks, event loops, threads and processes.

    Tables are made, and brought to the newest version, when the store is first used.  Each append is one
    transaction: it is there whole or not at all.  A turn reads and writes by index from the end, so it costs the
    same however long the conversation is.

    Args:
        url: ``sqlite:///chat.db`` (a path after three slashes; four for an absolute one), ``postgresql://...``,
            ``mysql://...`` or ``mariadb://...``.
        tenant: Whose conversations; those of another tenant are out of reach.
        overlap: What turns on one conversation in several processes do: ``"wait"``, ``"append"`` or ``"conflict"``;
            see :class:`~reactflow.stores.database.DatabaseStore`.
        ttl_seconds: Forget a conversation that nothing was appended to for so long, > 0; None for never.  It is out
            of sight at once; call :meth:`purge` now and then to remove it from the disk.
        timeout_s: Seconds that one step may take, > 0.
        pool_size: Connections to a server at most, >= 2: one of them holds the turns.
        connect_args: What else the driver should be told.

    Raises:
        ConfigurationError: A setting is wrong, or the URL names no such database.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str = "",
        overlap: Overlap = "wait",
        ttl_seconds: float | None = None,
        timeout_s: float = 30.0,
        pool_size: int = 10,
        connect_args: dict[str, Any] | None = None,
    ) -> None:
        check_whole("SqlStore", "pool_size", pool_size)
        if pool_size < 2:
            raise ConfigurationError("SqlStore(pool_size=1): give at least 2, as one connection holds the turns.")
        parsed = _driver_url(url)
        sqlite = parsed.get_backend_name() == "sqlite"
        super().__init__(_name(parsed), tenant=tenant, overlap=overlap, ttl_seconds=ttl_seconds, timeout_s=timeout_s)
        self._lock_scope = (parsed.database or "").encode() if parsed.get_backend_name() != "sqlite" else b""
        self._backend: Backend = (
            SqliteBackend(parsed, timeout_s)
            if sqlite
            else ServerBackend(parsed, timeout_s, pool_size, connect_args or {})
        )

    async def aclose(self) -> None:
        """Close all connections.  The store opens new ones when it is used again."""
        await self._backend.aclose()

    async def append(self, conversation_id: str, messages: Sequence[Message]) -> int:
        """Append *messages* (one or more) in one transaction, and return the sequence number of the last.

        Raises:
            ConfigurationError: The id is blank, no string or too long, or a message cannot be written as JSON.
            ConflictError: Another process has written during this turn, and *overlap* is ``"conflict"``.
            StoreError: The database failed; nothing was stored.
        """
        batch = self._batch(self.key(conversation_id), messages)
        end = await self._write("append", conversation_id, partial(sql_work.append, batch=batch))
        if batch.key in self._expected:
            self._expected[batch.key] = end
        return end

    async def newest(self, conversation_id: str, limit: int, *, before: int | None = None) -> tuple[StoredMessage, ...]:
        """The last *limit* messages (>= 1) before sequence number *before*, oldest first."""
        arguments = (self.key(conversation_id), limit, before, self._oldest_ms())
        rows = await self._query("read", lambda c: sql_work.newest(c, *arguments))
        return self._read(conversation_id, rows)

    async def oldest(self, conversation_id: str, limit: int, *, after: int = 0) -> tuple[StoredMessage, ...]:
        """The first *limit* messages (>= 1) after sequence number *after*, oldest first."""
        arguments = (self.key(conversation_id), limit, after, self._oldest_ms())
        rows = await self._query("read", lambda c: sql_work.oldest(c, *arguments))
        return self._read(conversation_id, rows)

    async def clear(self, conversation_id: str) -> None:
        """Remove the messages and notes; an unknown conversation is no error.  Its id stays, with its counter."""
        await self._write("clear", conversation_id, partial(sql_work.clear, key=self.key(conversation_id)))

    async def note(self, conversation_id: str, name: str) -> str | None:
        """The note called *name*, or None."""
        arguments = (self.key(conversation_id), _note_name(name), self._oldest_ms())
        body = await self._query("read", lambda c: sql_work.note(c, *arguments))
        return self._read_note(conversation_id, name, body)

    async def set_note(self, conversation_id: str, name: str, text: str, *, at: int | None = None) -> None:
        """Write or replace a note; does nothing where message *at* is gone."""
        batch = self._batch(self.key(conversation_id), (), check=False)
        arguments = (batch, _note_name(name), encode_note(text), at)
        await self._write("write a note", conversation_id, lambda c: sql_work.set_note(c, *arguments))

    async def replace_from(self, conversation_id: str, sequence: int, messages: Sequence[Message] = ()) -> int:
        """Drop message *sequence* (>= 1) and all after it, and append *messages*, in one transaction.

        Returns the sequence number of the last message, 0 where there is none.  Dropped numbers are not given again.
        """
        check_whole("replace_from", "sequence", sequence)
        batch = self._batch(self.key(conversation_id), storable(messages))
        work = partial(sql_work.replace_from, batch=batch, sequence=sequence)
        end = await self._write("replace", conversation_id, work)
        if batch.key in self._expected:
            self._expected[batch.key] = await self._last(conversation_id)
        return end

    async def conversations(self, prefix: str = "", *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """The ids of conversations that hold messages and begin with *prefix*, in the order of their code points."""
        start, begin = (each.encode("utf-8", "surrogatepass") for each in (prefix, after))
        arguments = (self._tenant, start, begin, limit, self._oldest_ms())
        found = await self._query("list conversations", lambda c: sql_work.listed(c, *arguments))
        return tuple(map(id_text, found))

    async def purge(self) -> int:
        """Remove the conversations whose time to live is over, and return how many."""
        oldest_ms = self._oldest_ms()
        if not oldest_ms:
            return 0
        work = partial(sql_work.purge, tenant=self._tenant, oldest_ms=oldest_ms, limit=PURGE_BATCH)
        removed = some = await self._write("purge", None, work)
        while some == PURGE_BATCH:
            some = await self._write("purge", None, work)
            removed += some
        return removed

    def _batch(self, key: Key, messages: Sequence[Message], *, check: bool = True) -> sql_work.Batch:
        now = now_ms()
        expected = self._expected.get(key) if check else None
        bodies = [encode(message) for message in messages]
        return sql_work.Batch(key, bodies, os.urandom(16), now, self._oldest_allowed_ms(now), expected)

    def _oldest_ms(self) -> int:
        return self._oldest_allowed_ms(now_ms())

    def _locks(self) -> ProcessLocks:
        return self._backend.locks.get()

    async def _last(self, conversation_id: str) -> int:
        return await self._query("read", partial(sql_work.last, key=self.key(conversation_id)))

    async def _query(self, action: str, work: Work[T]) -> T:
        return await self._run(action, None, work, write=False)

    async def _write(self, action: str, conversation_id: str | None, work: Work[T]) -> T:
        return await self._run(action, conversation_id, work, write=True)

    async def _run(self, action: str, conversation_id: str | None, work: Work[T], *, write: bool) -> T:
        try:
            with self._failing(action):
                return await self._backend.run(work, write=write)
        except sql_work.Conflict:
            raise ConflictError(str(conversation_id)) from None

    @contextmanager
    def _failing(self, action: str) -> Generator[None]:
        try:
            yield
        except (SQLAlchemyError, sql_work.Race, OSError, TimeoutError) as error:
            raise StoreError(f"The database {self.database} failed to {action}: {_said(error)}.") from error


def _said(error: BaseException) -> str:
    """What went wrong in one line, without the values that SQLAlchemy would quote."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    first_line = next(iter(str(cause).splitlines()), "")
    return f"{type(cause).__name__}: {first_line:.200}" if first_line else type(cause).__name__


def _note_name(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "mysql": "mysql+asyncmy",
    "mariadb": "mariadb+asyncmy",
}
"""The driver of each kind of URL; one that names its own (``postgresql+psycopg``) keeps it."""


def _driver_url(url: str) -> URL:
    try:
        parsed = make_url(url)
        known = DRIVERS.get(parsed.drivername) or (parsed.drivername if parsed.get_dialect() else "")
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigurationError(
            f"There is no database at {str(url).split('@')[-1]!r:.80}; give a URL such as 'sqlite:///chat.db' or "
            "'postgresql://user:password@host/name'."
        ) from error
    parsed = parsed.set(drivername=DRIVERS["sqlite"] if parsed.get_backend_name() == "sqlite" else known)
    if known.endswith("asyncpg") and "sslmode" in parsed.query:  # libpq's word for it, which everybody writes
        query = {**parsed.query, "ssl": parsed.query["sslmode"]}
        query.pop("sslmode")
        parsed = parsed.set(query=query)
    return parsed


def _name(url: URL) -> str:
    """The database without user, password and driver: the same for all who mean the same one."""
    kind = url.get_backend_name()
    if kind == "sqlite":
        path = sqlite_path(url)
        return "sqlite:///" + (os.path.realpath(path) if path else f":memory:{uuid4()}")
    return f"{kind}://{url.host or 'localhost'}:{url.port or ''}/{url.database or ''}"
