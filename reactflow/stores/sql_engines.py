"""How a transaction is carried out: on SQLite in a thread, on the servers by an async driver.

Both take the same plain functions of a connection, try again what may be tried again, and let nothing half done
stand.  SQLite has no async driver worth its hops between threads: one hop for a whole transaction costs less.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from reactflow.stores.sql_schema import upgrade
from reactflow.stores.sql_work import Race
from reactflow.stores.turn_locks import FileLocks, ProcessLocks
from reactflow.stores.workers import LoopThread, PerProcess, WorkThread

T = TypeVar("T")
Work = Callable[[Connection], T]

PAUSES_S = (0.01, 0.05, 0.2, 0.5, 1.0)
"""Seconds before each further try: enough for a server that restarts."""


class Backend(Protocol):
    """Carries out transactions."""

    locks: PerProcess[ProcessLocks]

    async def run(self, work: Work[T], *, write: bool) -> T:
        """Do *work* in one transaction; what does not *write* is a single query."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


async def persist(once: Callable[[], Awaitable[T]]) -> T:
    """Call *once* until it is no longer a passing trouble that makes it fail."""
    for pause in PAUSES_S:
        try:
            return await once()
        except Exception as error:
            if not passes(error):
                raise
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
    return await once()


SAID_BY_PASSING_TROUBLE = ("deadlock", "could not serialize")


def passes(error: Exception) -> bool:
    """Whether the same transaction may succeed a moment later.

    A batch has a token, so that even one whose commit was not confirmed can be tried again.
    """
    if isinstance(error, (Race, IntegrityError, ConnectionError)):
        return True
    if not isinstance(error, DBAPIError):
        return False
    said = str(error.orig).lower()
    return error.connection_invalidated or "connect" in said or any(word in said for word in SAID_BY_PASSING_TROUBLE)


@dataclass(slots=True)
class _Sqlite:
    engine: Engine
    connection: Connection

    def close(self) -> None:
        self.connection.close()
        self.engine.dispose()


class SqliteBackend:
    """One connection in a thread of its own.

    The journal is a write-ahead log, so readers in other processes do not wait; each commit is on the disk when it
    returns.
    """

    def __init__(self, url: URL, timeout_s: float) -> None:
        self._thread = WorkThread("reactflow-sqlite", partial(_open_sqlite, url, timeout_s), _Sqlite.close)
        self.locks: PerProcess[ProcessLocks] = PerProcess(partial(_file_locks, sqlite_path(url)))

    async def run(self, work: Work[T], *, write: bool) -> T:
        """Do *work* in one transaction; what does not *write* is a single query."""
        carry_out = _written if write else _queried
        return await persist(lambda: self._thread.run(lambda opened: carry_out(opened.connection, work)))

    async def aclose(self) -> None:
        """Close the connection."""
        await self._thread.aclose()


def _open_sqlite(url: URL, timeout_s: float) -> _Sqlite:
    # "AUTOCOMMIT" leaves BEGIN to us: the driver's own would ask for the write lock too late, and then fail
    engine = create_engine(url, isolation_level="AUTOCOMMIT", hide_parameters=True, connect_args={"timeout": timeout_s})
    event.listen(engine, "connect", lambda connection, _: _set_up_sqlite(connection, timeout_s))
    connection = engine.connect()
    try:
        _written(connection, upgrade)
    except BaseException:
        connection.close()
        engine.dispose()
        raise
    return _Sqlite(engine, connection)


def sqlite_path(url: URL) -> str | None:
    """The file of a SQLite database, or None for one in memory."""
    path = (url.database or "").removeprefix("file:")
    return path if path and not path.startswith(":memory:") else None


def _file_locks(path: str | None) -> ProcessLocks:
    return NoLocks() if path is None else FileLocks.of(Path(f"{path}-turns"), like=Path(path))


class NoLocks:
    """For a database that no other process can see."""

    async def try_lock(self, number: int) -> bool:
        """It is free."""
        return True

    async def unlock(self, number: int) -> None:
        """Nothing to do."""


def _set_up_sqlite(connection: sqlite3.Connection, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while connection.execute("PRAGMA journal_mode").fetchone() == ("delete",):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:  # here SQLite itself does not wait for another process
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = FULL")


def _queried(connection: Connection, work: Work[T]) -> T:
    return work(connection)


def _written(connection: Connection, work: Work[T]) -> T:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        raw = connection.connection.driver_connection
        if raw is not None and raw.in_transaction:  # a full disk may have ended it already
            connection.exec_driver_sql("ROLLBACK")
        raise
    return result


@dataclass(slots=True)
class _Server:
    """What belongs to one process: the pool, and the one connection that holds all its turn locks."""

    engine: AsyncEngine
    reading: AsyncEngine
    ready: bool = False
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    locking: asyncio.Lock = field(default_factory=asyncio.Lock)
    lock_connection: AsyncConnection | None = None


class ServerBackend:
    """A pool of connections on an event loop of its own, so that it serves agents on any other."""

    def __init__(self, url: URL, timeout_s: float, pool_size: int, connect_args: dict[str, Any]) -> None:
        self._timeout_s = timeout_s
        opened = partial(_open_server, url, timeout_s, pool_size, connect_args)
        self._thread = LoopThread("reactflow-sql", opened, _close_server)
        self.locks: PerProcess[ProcessLocks] = PerProcess(lambda: SessionLocks(self._thread))

    async def run(self, work: Work[T], *, write: bool) -> T:
        """Do *work* in one transaction; what does not *write* is a single query."""

        async def once(server: _Server) -> T:
            async with asyncio.timeout(self._timeout_s):
                await _prepare(server)
                async with server.engine.begin() if write else server.reading.connect() as connection:
                    return await connection.run_sync(work)

        return await persist(lambda: self._thread.run(once))

    async def aclose(self) -> None:
        """Close all connections."""
        self.locks.take()
        await self._thread.aclose()


def _open_server(url: URL, timeout_s: float, pool_size: int, connect_args: dict[str, Any]) -> _Server:
    engine = create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=timeout_s,
        pool_recycle=1800,
        isolation_level="READ COMMITTED",
        hide_parameters=True,
        connect_args=connect_args,
    )
    return _Server(engine, engine.execution_options(isolation_level="AUTOCOMMIT"))


async def _prepare(server: _Server) -> None:
    if server.ready:
        return
    async with server.opening:
        if not server.ready:
            async with server.engine.begin() as connection:
                await connection.run_sync(upgrade)
            server.ready = True


async def _close_server(server: _Server) -> None:
    if server.lock_connection is not None:
        await server.lock_connection.close()
    await server.engine.dispose()


TAKE = {
    "postgresql": text("select pg_try_advisory_lock(:number)"),
    "mysql": text("select get_lock(concat('reactflow ', :number), 0)"),
}
GIVE_BACK = {
    "postgresql": text("select pg_advisory_unlock(:number)"),
    "mysql": text("select release_lock(concat('reactflow ', :number))"),
}


class SessionLocks:
    """Locks of the database server.  One connection of the process holds them all; they end with it."""

    def __init__(self, thread: LoopThread[_Server]) -> None:
        self._thread = thread

    async def try_lock(self, number: int) -> bool:
        """Take lock *number* if it is free, without waiting."""
        return bool(await persist(lambda: self._thread.run(lambda server: _ask(server, TAKE, number))))

    async def unlock(self, number: int) -> None:
        """Give it back; where the connection was lost, it is free already."""
        await self._thread.run(lambda server: _ask(server, GIVE_BACK, number, reconnect=False))


async def _ask(server: _Server, statements: dict[str, Any], number: int, *, reconnect: bool = True) -> Any:
    async with server.locking:
        connection = server.lock_connection
        if connection is None:
            if not reconnect:
                return None
            connection = server.lock_connection = await server.reading.connect()
        try:
            dialect = connection.dialect.name
            statement = statements["mysql" if dialect == "mariadb" else dialect]
            return await connection.scalar(statement, {"number": number})
        except BaseException:
            server.lock_connection = None  # nobody knows what it holds: end it, and with it all its locks
            await connection.invalidate()
            await connection.close()
            if reconnect:
                raise
            return None
