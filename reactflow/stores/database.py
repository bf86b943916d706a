"""What all stores over a database share: ids and tenants as data, turns between processes, typed errors."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Literal, Self
from weakref import WeakValueDictionary

from reactflow.errors import ConfigurationError, StoreError
from reactflow.fair_lock import FairLocks
from reactflow.memory import check_conversation_id
from reactflow.store import StoredMessage
from reactflow.stores.codec import decode, decode_note
from reactflow.stores.turn_locks import ProcessLocks, held

LONGEST_ID_BYTES = 700
"""The longest conversation id in UTF-8, so that it fits into an index of every database."""

LONGEST_TENANT_BYTES = 190

Overlap = Literal["wait", "append", "conflict"]

_turns: WeakValueDictionary[str, FairLocks] = WeakValueDictionary()
"""The queues of this process by database, so that two stores over one database share them."""


@dataclass(frozen=True, slots=True)
class Key:
    """Names a conversation, as bytes: no collation can take two ids for one, and no character is special."""

    tenant: bytes
    id: bytes


def lock_number(*parts: bytes) -> int:
    """A lock number for *parts*.  Two that share one wait for each other without need, about never."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return int.from_bytes(digest.digest(), "big") >> 2


class DatabaseStore(ABC):
    """The part of a store that does not depend on the database.

    Args:
        database: Which database, without user and password.
        tenant: Whose conversations; those of another tenant are out of reach.
        overlap: What turns on one conversation in several processes do.  ``"wait"``: one at a time, in this process
            and between processes.  ``"append"``: one at a time in this process; between processes side by side, each
            appended whole.  ``"conflict"``: like that, but where another process has written meanwhile, appending
            raises a :class:`~reactflow.ConflictError`.
        ttl_seconds: Forget a conversation that nothing was appended to for so long, > 0; None for never.
        timeout_s: Seconds that one step may take, > 0.
    """

    def __init__(
        self, database: str, *, tenant: str, overlap: Overlap, ttl_seconds: float | None, timeout_s: float
    ) -> None:
        if not isinstance(tenant, str) or len(tenant.encode("utf-8", "surrogatepass")) > LONGEST_TENANT_BYTES:
            raise ConfigurationError(f"tenant={tenant!r:.80}: give a text of up to {LONGEST_TENANT_BYTES} bytes.")
        if overlap not in ("wait", "append", "conflict"):
            raise ConfigurationError(f"overlap={overlap!r}: give 'wait', 'append' or 'conflict'.")
        for name, value in (("ttl_seconds", ttl_seconds), ("timeout_s", timeout_s)):
            if not (value is None and name == "ttl_seconds") and not (isinstance(value, int | float) and value > 0):
                raise ConfigurationError(f"{name}={value!r}: give seconds above 0.")
        self.database = database
        self.tenant = tenant
        self.overlap: Overlap = overlap
        self.ttl_seconds = ttl_seconds
        self.timeout_s = timeout_s
        self._lock_scope = b""  # what tells databases apart that share the locks of one server
        self._tenant = tenant.encode("utf-8", "surrogatepass")
        self._turns = _turns.setdefault(database, FairLocks())
        self._expected: dict[Key, int] = {}  # by conversation whose turn this store has: the last number it saw

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.database!r}, tenant={self.tenant!r}, overlap={self.overlap!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections.  The store opens new ones when it is used again."""

    def turn(self, conversation_id: str) -> AbstractAsyncContextManager[None]:
        """Hold the conversation while one turn runs; others wait as *overlap* says.  Not re-entrant."""
        return self._turn(conversation_id, self.key(conversation_id))

    def turn_key(self, conversation_id: str) -> tuple[int, str]:
        """What :meth:`turn` holds: equal for all stores of this process over the same conversation."""
        return id(self._turns), f"{len(self.tenant)} {self.tenant} {conversation_id}"

    def key(self, conversation_id: str) -> Key:
        """The conversation as the database knows it.

        Raises:
            ConfigurationError: The id is blank, no string, or over 700 bytes long.
        """
        id = check_conversation_id(conversation_id).encode("utf-8", "surrogatepass")
        if len(id) > LONGEST_ID_BYTES:
            raise ConfigurationError(
                f"The conversation id {conversation_id!r:.40} has {len(id)} bytes; databases take up to "
                f"{LONGEST_ID_BYTES}. Shorten it, or use a hash of it."
            )
        return Key(self._tenant, id)

    @asynccontextmanager
    async def _turn(self, conversation_id: str, key: Key) -> AsyncGenerator[None]:
        async with self._turns.hold(key):
            if self.overlap == "wait":
                number = lock_number(self._lock_scope, key.tenant, key.id)
                async with held(partial(self._try_lock, number), partial(self._unlock, number)):
                    yield
            elif self.overlap == "conflict":
                self._expected[key] = await self._last(conversation_id)
                try:
                    yield
                finally:
                    del self._expected[key]
            else:
                yield

    async def _try_lock(self, number: int) -> bool:
        with self._failing("take the turn"):
            return await self._locks().try_lock(number)

    async def _unlock(self, number: int) -> None:
        with self._failing("give the turn back"):
            await self._locks().unlock(number)

    @abstractmethod
    def _failing(self, action: str) -> AbstractContextManager[None]:
        """Turn what the driver raises inside the block into a StoreError: the database failed to *action*."""

    @abstractmethod
    def _locks(self) -> ProcessLocks:
        """The locks that other processes see."""

    @abstractmethod
    async def _last(self, conversation_id: str) -> int:
        """The last sequence number that the conversation has given."""

    def _oldest_allowed_ms(self, now_ms: int) -> int:
        """When a conversation must have been appended to at the earliest; 0 without a time to live."""
        return 0 if self.ttl_seconds is None else now_ms - int(self.ttl_seconds * 1000)

    def _read(self, conversation_id: str, rows: Iterable[tuple[int, str | bytes]]) -> tuple[StoredMessage, ...]:
        return tuple(self._read_row(conversation_id, sequence, body) for sequence, body in rows)

    def _read_note(self, conversation_id: str, name: str, body: str | bytes | None) -> str | None:
        try:
            return None if body is None else decode_note(body)
        except ValueError as error:
            raise StoreError(
                f"The note {name!r:.80} of the conversation {conversation_id!r:.80} cannot be read; write it anew."
            ) from error

    def _read_row(self, conversation_id: str, sequence: int, body: str | bytes) -> StoredMessage:
        try:
            return StoredMessage(sequence, decode(body))
        except ValueError as error:
            raise StoreError(
                f"Message {sequence} of the conversation {conversation_id!r:.80} cannot be read: {error}. "
                f"Remove it and what follows with replace_from({conversation_id!r:.80}, {sequence})."
            ) from error


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def id_text(id: bytes) -> str:
    """A conversation id as it was given."""
    return id.decode("utf-8", "surrogatepass")


def after_prefix(prefix: bytes) -> bytes | None:
    """The least bytes above all that begin with *prefix*, or None for an empty one.  UTF-8 has no byte 0xff."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None
