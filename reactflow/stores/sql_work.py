"""What is done inside one transaction: plain functions over a connection, the same for every database.

A conversation's row is its lock.  Whoever appends raises ``last`` in it first, so that two transactions on one
conversation come one after the other, and those on different ones do not meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    LargeBinary,
    Select,
    bindparam,
    case,
    delete,
    exists,
    insert,
    select,
    update,
)

from reactflow.stores.database import Key, after_prefix
from reactflow.stores.sql_schema import conversations, messages, notes

Params = dict[str, Any]


class Conflict(Exception):
    """The conversation has moved on since it was looked at."""


class Race(Exception):
    """Somebody else made the conversation in this very moment; the transaction must be tried again."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction appends.

    Args:
        key: To which conversation.
        bodies: The messages as JSON, oldest first.
        token: Names this batch: the same one is appended once, however often that is tried.
        now_ms: The time, in ms since 1970.
        oldest_ms: A conversation that was used before is forgotten first.
        expected: The last sequence number that the conversation must have, or None.
    """

    key: Key
    bodies: Sequence[str]
    token: bytes
    now_ms: int
    oldest_ms: int = 0
    expected: int | None = None

    @property
    def where(self) -> Params:
        return where(self.key, self.oldest_ms)


def where(key: Key, oldest_ms: int = 0) -> Params:
    """The parameters that name a conversation."""
    return {"p_tenant": key.tenant, "p_id": key.id, "p_oldest": oldest_ms}


_TENANT = bindparam("p_tenant", type_=LargeBinary)
_ID = bindparam("p_id", type_=LargeBinary)
_OLDEST = bindparam("p_oldest", type_=BigInteger)
_LIMIT = bindparam("p_limit", type_=Integer)
_BEFORE = bindparam("p_before", type_=BigInteger)
_AFTER = bindparam("p_after", type_=BigInteger)
_NOW = bindparam("p_now", type_=BigInteger)
_TOKEN = bindparam("p_token", type_=LargeBinary)

_this = (conversations.c.tenant == _TENANT) & (conversations.c.id == _ID)
_live = _this & (conversations.c.used_ms >= _OLDEST)
_live_number = select(conversations.c.number).where(_live).scalar_subquery()
_stale_number = select(conversations.c.number).where(_this, conversations.c.used_ms < _OLDEST).scalar_subquery()

_rows = select(messages.c.sequence, messages.c.body).where(messages.c.conversation == _live_number)
_newest = _rows.order_by(messages.c.sequence.desc()).limit(_LIMIT)
_newest_before = _newest.where(messages.c.sequence < _BEFORE)
_oldest = _rows.where(messages.c.sequence > _AFTER).order_by(messages.c.sequence).limit(_LIMIT)

_state = select(conversations.c.number, conversations.c.last, conversations.c.token).where(_this)
_locked = select(conversations.c.number).where(_this).with_for_update()
_extended = (
    update(conversations)
    .where(_this, conversations.c.token != _TOKEN)
    .values(
        last=conversations.c.last + bindparam("p_count", type_=BigInteger),
        used_ms=case((conversations.c.used_ms > _NOW, conversations.c.used_ms), else_=_NOW),  # a clock may go back
        token=_TOKEN,
    )
)
_extended_as_expected = _extended.where(conversations.c.last == bindparam("p_expected", type_=BigInteger))
_place = (conversations.c.number, conversations.c.last)
_extended_returning = _extended.returning(*_place)
_extended_as_expected_returning = _extended_as_expected.returning(*_place)
_new_conversation = insert(conversations)
_new_messages = insert(messages)
_of = bindparam("p_number", type_=BigInteger)


def newest(connection: Connection, key: Key, limit: int, before: int | None, oldest_ms: int) -> list[tuple[int, str]]:
    """The last *limit* rows, oldest first."""
    params = {**where(key, oldest_ms), "p_limit": limit}
    if before is None:
        found = connection.execute(_newest, params)
    else:
        found = connection.execute(_newest_before, {**params, "p_before": before})
    return [(sequence, body) for sequence, body in found][::-1]


def oldest(connection: Connection, key: Key, limit: int, after: int, oldest_ms: int) -> list[tuple[int, str]]:
    """The first *limit* rows after sequence number *after*."""
    params = {**where(key, oldest_ms), "p_limit": limit, "p_after": after}
    return [(sequence, body) for sequence, body in connection.execute(_oldest, params)]


def last(connection: Connection, key: Key) -> int:
    """The last sequence number given."""
    row = connection.execute(_state, where(key)).first()
    return 0 if row is None else row.last


def append(connection: Connection, batch: Batch) -> int:
    """Append *batch*, and return the last sequence number.

    Raises:
        Conflict: The conversation does not end at the expected number.
    """
    if batch.oldest_ms:
        _forget(connection, _stale_number, batch.where)
    taken = _take(connection, batch)
    if taken is None:  # this very batch is there already
        return last(connection, batch.key)
    number, end = taken
    _insert(connection, number, end, batch)
    return end


def replace_from(connection: Connection, batch: Batch, sequence: int) -> int:
    """Drop message *sequence* and all after it, append *batch*, and return the number of the last message."""
    taken = _take(connection, batch)
    if taken is not None:
        number, end = taken
        kept = messages.c.sequence < sequence
        connection.execute(delete(messages).where(messages.c.conversation == number, ~kept))
        connection.execute(delete(notes).where(notes.c.conversation == number, notes.c.at >= sequence))
        _insert(connection, number, end, batch)
    found = newest(connection, batch.key, 1, None, 0)
    return found[0][0] if found else 0


def clear(connection: Connection, key: Key) -> None:
    """Remove the messages and notes of a conversation; its counter stays."""
    number = connection.scalar(_locked, where(key))
    if number is not None:
        _forget(connection, _of, {"p_number": number})


def note(connection: Connection, key: Key, name: bytes, oldest_ms: int) -> str | None:
    """The text of a note, or None."""
    wanted = select(notes.c.body).where(notes.c.conversation == _live_number, notes.c.name == bindparam("p_name"))
    body: str | None = connection.scalar(wanted, {**where(key, oldest_ms), "p_name": name})
    return body


def set_note(connection: Connection, batch: Batch, name: bytes, body: str, at: int | None) -> None:
    """Write or replace a note, if message *at* is there; *batch* is empty and names the conversation."""
    number = connection.scalar(_locked, batch.where)
    hangs = exists().where(messages.c.conversation == number, messages.c.sequence == at)
    if at is not None and (number is None or not connection.scalar(select(hangs))):
        return
    taken = _take(connection, batch)
    if taken is not None:
        number, _ = taken
        connection.execute(delete(notes).where(notes.c.conversation == number, notes.c.name == name))
        connection.execute(insert(notes), {"conversation": number, "name": name, "at": at, "body": body})


def listed(
    connection: Connection, tenant: bytes, prefix: bytes, after: bytes, limit: int, oldest_ms: int
) -> list[bytes]:
    """The ids of conversations with messages, in order."""
    wanted = (
        select(conversations.c.id)
        .where(conversations.c.tenant == tenant, conversations.c.used_ms >= oldest_ms)
        .where(conversations.c.id >= prefix, conversations.c.id > after)
        .where(exists().where(messages.c.conversation == conversations.c.number))
        .order_by(conversations.c.id)
        .limit(limit)
    )
    end = after_prefix(prefix)
    return list(connection.scalars(wanted if end is None else wanted.where(conversations.c.id < end)))


def purge(connection: Connection, tenant: bytes, oldest_ms: int, limit: int) -> int:
    """Remove up to *limit* conversations that were last used before *oldest_ms*, and return how many."""
    wanted: Select[tuple[int]] = (
        select(conversations.c.number)
        .where(conversations.c.tenant == tenant, conversations.c.used_ms < oldest_ms)
        .limit(limit)
        .with_for_update()
    )
    numbers = list(connection.scalars(wanted))
    for table in (messages, notes):
        connection.execute(delete(table).where(table.c.conversation.in_(numbers)))
    connection.execute(delete(conversations).where(conversations.c.number.in_(numbers)))
    return len(numbers)


def _take(connection: Connection, batch: Batch) -> tuple[int, int] | None:
    """Lock the conversation and reserve numbers: its row number and the last of them; None where that was done."""
    params = {**batch.where, "p_count": len(batch.bodies), "p_now": batch.now_ms, "p_token": batch.token}
    any_end = batch.expected is None
    if not any_end:
        params["p_expected"] = batch.expected
    if connection.dialect.update_returning:
        statement = _extended_returning if any_end else _extended_as_expected_returning
        row = connection.execute(statement, params).first()
    else:
        changed = connection.execute(_extended if any_end else _extended_as_expected, params).rowcount
        row = connection.execute(_state, params).first() if changed else None
    return _create(connection, batch) if row is None else (row.number, row.last)


def _create(connection: Connection, batch: Batch) -> tuple[int, int] | None:
    found = connection.execute(_state, batch.where).first()
    if found is not None and found.token == batch.token:
        return None
    if batch.expected is not None and (found is not None or batch.expected > 0):
        raise Conflict
    if found is not None:
        raise Race
    values = {
        "tenant": batch.key.tenant,
        "id": batch.key.id,
        "token": batch.token,
        "last": len(batch.bodies),
        "used_ms": batch.now_ms,
    }
    made = connection.execute(_new_conversation, values).inserted_primary_key
    assert made is not None
    return made[0], len(batch.bodies)


def _insert(connection: Connection, number: int, end: int, batch: Batch) -> None:
    first = end - len(batch.bodies) + 1
    rows = [
        {"conversation": number, "sequence": sequence, "written_ms": batch.now_ms, "body": body}
        for sequence, body in enumerate(batch.bodies, first)
    ]
    if rows:
        connection.execute(_new_messages, rows)


def _forget(connection: Connection, number: Any, params: Params) -> None:
    for table in (messages, notes):
        connection.execute(delete(table).where(table.c.conversation == number), params)
