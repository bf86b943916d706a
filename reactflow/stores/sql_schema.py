"""The tables, and the steps from each version of them to the next.

Ids and tenants are bytes, because text would be compared by a collation: to MySQL ``A``, ``a`` and ``a `` are one.
Messages are JSON text, one row each, found by conversation and sequence number in one index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

from reactflow.errors import ConfigurationError
from reactflow.stores.database import LONGEST_ID_BYTES, LONGEST_TENANT_BYTES

metadata = MetaData()


def _bytes(length: int) -> TypeEngine[bytes]:
    return LargeBinary(length).with_variant(mysql.VARBINARY(length), "mysql", "mariadb")


_LONG_TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER counts up by itself there
_MYSQL: dict[str, Any] = {
    f"{name}_{option}": value
    for name in ("mysql", "mariadb")
    for option, value in (("charset", "utf8mb4"), ("engine", "InnoDB"))
}

schema = Table(
    "reactflow_schema", metadata, Column("version", Integer, primary_key=True, autoincrement=False), **_MYSQL
)
"""One row for each step that was taken."""

conversations = Table(
    "reactflow_conversations",
    metadata,
    Column("number", _NUMBER, primary_key=True),
    Column("tenant", _bytes(LONGEST_TENANT_BYTES), nullable=False),
    Column("id", _bytes(LONGEST_ID_BYTES), nullable=False),
    Column("last", BigInteger, nullable=False),  # the last sequence number; outlives the messages
    Column("used_ms", BigInteger, nullable=False),  # when something was last appended, in ms since 1970
    Column("token", _bytes(16), nullable=False),  # names the last append, so that it can be tried again safely
    UniqueConstraint("tenant", "id", name="reactflow_conversations_id"),
    **_MYSQL,
)

messages = Table(
    "reactflow_messages",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("written_ms", BigInteger, nullable=False),
    Column("body", _LONG_TEXT, nullable=False),
    **_MYSQL,
)

notes = Table(
    "reactflow_notes",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("name", _bytes(190), primary_key=True),
    Column("at", BigInteger),  # the message it hangs on
    Column("body", _LONG_TEXT, nullable=False),
    **_MYSQL,
)

by_age = Index("reactflow_conversations_age", conversations.c.tenant, conversations.c.used_ms)
conversations.indexes.discard(by_age)  # made by its own step, not with the table


def _add_conversations(connection: Connection) -> None:
    conversations.create(connection, checkfirst=True)
    messages.create(connection, checkfirst=True)


def _add_notes_and_ages(connection: Connection) -> None:
    notes.create(connection, checkfirst=True)
    by_age.create(connection, checkfirst=True)


STEPS: tuple[Callable[[Connection], None], ...] = (_add_conversations, _add_notes_and_ages)
"""Step n leads from version n to version n + 1.  Each can be taken again where it was broken off half-way, because
MySQL commits after every change of a table.  A step is never changed once it was released."""

_LOCK = 7_305_219_837_402_113
"""Any number that nobody else uses: the lock that one process holds while it changes tables."""


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest version, one process at a time.

    Raises:
        ConfigurationError: A newer reactflow has written them.
    """
    if _version(connection) == len(STEPS):
        return
    _lock(connection)
    try:
        schema.create(connection, checkfirst=True)
        for number in range(_version(connection), len(STEPS)):
            STEPS[number](connection)
            connection.execute(insert(schema), {"version": number + 1})
    finally:
        _unlock(connection)


def _version(connection: Connection) -> int:
    if not inspect(connection).has_table(schema.name):
        return 0
    version = connection.scalar(select(func.max(schema.c.version))) or 0
    if version > len(STEPS):
        raise ConfigurationError(
            f"The database has version {version} of the tables, and this reactflow knows {len(STEPS)}; upgrade it."
        )
    return version


def _lock(connection: Connection) -> None:
    match connection.dialect.name:
        case "postgresql":  # ends with the transaction
            connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        case "mysql" | "mariadb":
            connection.execute(text("select get_lock(:lock, 60)"), {"lock": f"reactflow {_LOCK}"})


def _unlock(connection: Connection) -> None:
    if connection.dialect.name in ("mysql", "mariadb"):
        connection.execute(text("select release_lock(:lock)"), {"lock": f"reactflow {_LOCK}"})
