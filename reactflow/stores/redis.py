"""Conversations in Redis or Valkey.

Each change is one script, which the server runs whole or not at all.  What a crash of the server costs depends on its
settings: with ``appendonly yes`` about the last second.  The server must not evict keys (``noeviction``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import RedisError

from reactflow.errors import ConfigurationError, ConflictError, StoreError
from reactflow.messages import Message
from reactflow.storable import storable
from reactflow.store import StoredMessage, check_whole
from reactflow.stores.codec import encode, encode_note
from reactflow.stores.database import DatabaseStore, Key, Overlap, after_prefix, id_text
from reactflow.stores.turn_locks import ProcessLocks
from reactflow.stores.workers import LoopThread, PerProcess

T = TypeVar("T")

RETRIES = 6
DAY_MS = 86_400_000

APPEND = """
local last = tonumber(redis.call('HGET', KEYS[2], 'last') or '0')
local token, expected, ttl, cut, id = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
if redis.call('HGET', KEYS[2], 'token') ~= token then
    if expected >= 0 and last ~= expected then return -1 end
    if cut > 0 then
        redis.call('ZREMRANGEBYSCORE', KEYS[1], cut, '+inf')
        for _, name in ipairs(redis.call('HKEYS', KEYS[3])) do
            local at = tonumber(string.match(redis.call('HGET', KEYS[3], name), '^(%d*):'))
            if at and at >= cut then redis.call('HDEL', KEYS[3], name) end
        end
    end
    for i = 6, #ARGV do
        last = last + 1
        local number = string.format('%.0f', last)
        redis.call('ZADD', KEYS[1], number, number .. ':' .. ARGV[i])
    end
    redis.call('HSET', KEYS[2], 'last', string.format('%.0f', last), 'token', token)
    if redis.call('EXISTS', KEYS[1]) == 1 then
        redis.call('ZADD', KEYS[4], 0, id)
    else
        redis.call('ZREM', KEYS[4], id)
    end
    if ttl > 0 then
        redis.call('PEXPIRE', KEYS[1], ttl)
        redis.call('PEXPIRE', KEYS[3], ttl)
        redis.call('PEXPIRE', KEYS[2], ttl + %d)
    end
end
local newest = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
return tonumber(newest[2] or '0')
""".replace("%d)", f"{DAY_MS})")
"""Appends, and first drops message *cut* and all after it; returns the last number, or -1 for a conflict.  The token
names the call, so that one whose reply was lost can be sent again.  The counter outlives the messages by a day."""

SET_NOTE = """
local at, ttl = ARGV[2], tonumber(ARGV[4])
if at ~= '' and redis.call('ZCOUNT', KEYS[1], at, at) == 0 then return 0 end
redis.call('HSET', KEYS[3], ARGV[1], at .. ':' .. ARGV[3])
if ttl > 0 then redis.call('PEXPIRE', KEYS[3], ttl) end
return 1
"""

CLEAR = """
redis.call('DEL', KEYS[1], KEYS[3])
redis.call('ZREM', KEYS[4], ARGV[1])
return 0
"""

FORGET = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
return redis.call('ZREM', KEYS[4], ARGV[1])
"""

RENEW = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisStore(DatabaseStore):
    """Keeps conversations in Redis.  Safe to use from several tasks, event loops, threads and processes.

    Args:
        url: ``redis://user:password@host:6379/0``, ``rediss://...`` for TLS, or ``valkey://...``.
        tenant: Whose conversations; those of another tenant are out of reach.
        overlap: What turns on one conversation in several processes do: ``"wait"``, ``"append"`` or ``"conflict"``;
            see :class:`~reactflow.stores.database.DatabaseStore`.
        ttl_seconds: Forget a conversation that nothing was appended to for so long, > 0; None for never.  The server
            removes it.
        timeout_s: Seconds that one step may take, > 0.
        pool_size: Connections at most, >= 1.
        lease_s: Seconds after which the turn of a process that crashed is free again, >= 0.1; a living one renews
            its lease in time.

    Raises:
        ConfigurationError: A setting is wrong.
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
        lease_s: float = 10.0,
    ) -> None:
        check_whole("RedisStore", "pool_size", pool_size)
        if not lease_s >= 0.1:
            raise ConfigurationError(f"RedisStore(lease_s={lease_s!r}): give seconds from 0.1.")
        self._url = _redis_url(url)
        super().__init__(_name(self._url), tenant=tenant, overlap=overlap, ttl_seconds=ttl_seconds, timeout_s=timeout_s)
        self._thread = LoopThread("reactflow-redis", partial(_open, self._url, pool_size, timeout_s), _close)
        self._leases = PerProcess(partial(Leases, self._thread, lease_s))
        self._base = b"reactflow:%d:%s:" % (len(self._tenant), self._tenant)
        self._ids = self._base + b"ids"

    async def aclose(self) -> None:
        """Close all connections.  The store opens new ones when it is used again."""
        self._leases.take()
        await self._thread.aclose()

    async def append(self, conversation_id: str, messages: Sequence[Message]) -> int:
        """Append *messages* (one or more), all or none, and return the sequence number of the last.

        Raises:
            ConfigurationError: The id is blank, no string or too long, or a message cannot be written as JSON.
            ConflictError: Another process has written during this turn, and *overlap* is ``"conflict"``.
            StoreError: The server failed.
        """
        return await self._append(conversation_id, messages, 0)

    async def newest(self, conversation_id: str, limit: int, *, before: int | None = None) -> tuple[StoredMessage, ...]:
        """The last *limit* messages (>= 1) before sequence number *before*, oldest first."""
        key = self._keys(self.key(conversation_id))[0]
        highest = "+inf" if before is None else f"({before}"
        found = await self._run("read", lambda r: r.zrevrangebyscore(key, highest, "-inf", start=0, num=limit))
        return self._read(conversation_id, map(_row, reversed(found)))

    async def oldest(self, conversation_id: str, limit: int, *, after: int = 0) -> tuple[StoredMessage, ...]:
        """The first *limit* messages (>= 1) after sequence number *after*, oldest first."""
        key = self._keys(self.key(conversation_id))[0]
        found = await self._run("read", lambda r: r.zrangebyscore(key, f"({after}", "+inf", start=0, num=limit))
        return self._read(conversation_id, map(_row, found))

    async def clear(self, conversation_id: str) -> None:
        """Remove the messages and notes; an unknown conversation is no error."""
        key = self.key(conversation_id)
        await self._script("clear", CLEAR, self._keys(key), key.id)

    async def note(self, conversation_id: str, name: str) -> str | None:
        """The note called *name*, or None."""
        key = self._keys(self.key(conversation_id))[2]
        found: bytes | None = await self._run("read", lambda r: r.hget(key, _encoded(name)))
        return self._read_note(conversation_id, name, None if found is None else found.partition(b":")[2])

    async def set_note(self, conversation_id: str, name: str, text: str, *, at: int | None = None) -> None:
        """Write or replace a note; does nothing where message *at* is gone."""
        hangs_on = "" if at is None else str(at)
        arguments = (_encoded(name), hangs_on, encode_note(text), self._ttl_ms)
        await self._script("write a note", SET_NOTE, self._keys(self.key(conversation_id)), *arguments)

    async def replace_from(self, conversation_id: str, sequence: int, messages: Sequence[Message] = ()) -> int:
        """Drop message *sequence* (>= 1) and all after it, and append *messages*, as one step.

        Returns the sequence number of the last message, 0 where there is none.  Dropped numbers are not given again.
        """
        check_whole("replace_from", "sequence", sequence)
        return await self._append(conversation_id, storable(messages), sequence)

    async def conversations(self, prefix: str = "", *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """The ids of conversations that hold messages and begin with *prefix*, in the order of their code points."""
        start, begin = _encoded(prefix), _encoded(after)
        end = after_prefix(start)
        lowest = b"(" + begin if begin >= start and begin else b"[" + start if start else b"-"
        found: list[bytes] = []
        while len(found) < limit:
            page = await self._listed(lowest, b"+" if end is None else b"(" + end, limit)
            found += [id for id, there in page if there]
            if len(page) < limit:
                break
            lowest = b"(" + page[-1][0]
        return tuple(map(id_text, found[:limit]))

    async def purge(self) -> int:
        """Take the conversations that the server has dropped off the list, and return how many."""
        removed, lowest = 0, b"-"
        while page := await self._listed(lowest, b"+", 500):
            for id in (id for id, there in page if not there):
                removed += await self._script("purge", FORGET, self._keys(Key(self._tenant, id)), id)
            lowest = b"(" + page[-1][0]
        return removed

    @property
    def _ttl_ms(self) -> int:
        return int((self.ttl_seconds or 0) * 1000)

    def _keys(self, key: Key) -> tuple[bytes, bytes, bytes, bytes]:
        """Messages, counter, notes, and the list of ids."""
        messages, counter, notes = (self._base + kind + key.id for kind in (b"m:", b"c:", b"n:"))
        return messages, counter, notes, self._ids

    async def _append(self, conversation_id: str, messages: Sequence[Message], cut: int) -> int:
        key = self.key(conversation_id)
        expected = self._expected.get(key, -1)
        bodies = [encode(message) for message in messages]
        arguments = (os.urandom(16), expected, self._ttl_ms, cut, key.id, *bodies)
        end = await self._script("append", APPEND, self._keys(key), *arguments)
        if end < 0:
            raise ConflictError(conversation_id)
        if key in self._expected:
            self._expected[key] = await self._last(conversation_id)
        return end

    async def _last(self, conversation_id: str) -> int:
        key = self._keys(self.key(conversation_id))[1]
        return int(await self._run("read", lambda r: r.hget(key, "last")) or 0)

    async def _listed(self, lowest: bytes, highest: bytes, limit: int) -> list[tuple[bytes, bool]]:
        """Ids in order, and whether each conversation still holds messages."""

        async def look(redis: Redis) -> list[tuple[bytes, bool]]:
            ids = cast(list[bytes], await redis.zrangebylex(self._ids, lowest, highest, start=0, num=limit))
            async with redis.pipeline(transaction=False) as pipeline:
                for id in ids:
                    pipeline.exists(self._keys(Key(self._tenant, id))[0])
                there = await pipeline.execute()
            return [(id, bool(each)) for id, each in zip(ids, there, strict=True)]

        return cast(list[tuple[bytes, bool]], await self._run("list conversations", look))

    async def _script(self, action: str, script: str, keys: Sequence[bytes], *arguments: Any) -> int:
        return int(await self._run(action, lambda r: r.register_script(script)(keys=keys, args=arguments)))

    async def _run(self, action: str, work: Callable[[Redis], Awaitable[Any]]) -> Any:
        async def timed(redis: Redis) -> Any:
            async with asyncio.timeout(self.timeout_s):
                return await work(redis)

        with self._failing(action):
            return await self._thread.run(timed)

    @contextmanager
    def _failing(self, action: str) -> Generator[None]:
        try:
            yield
        except (RedisError, OSError, TimeoutError) as error:
            said = next(iter(str(error).splitlines()), "")
            raise StoreError(f"{self.database} failed to {action}: {type(error).__name__}: {said:.200}.") from error

    def _locks(self) -> ProcessLocks:
        return self._leases.get()


def _open(url: str, pool_size: int, timeout_s: float) -> Redis:
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=pool_size,
        timeout=timeout_s,
        socket_connect_timeout=min(5.0, timeout_s),
        retry=Retry(ExponentialBackoff(cap=1.0, base=0.02), RETRIES),
    )
    return Redis.from_pool(pool)


async def _close(redis: Redis) -> None:
    await redis.aclose()


class Leases:
    """Locks that end by themselves when their process no longer renews them."""

    def __init__(self, thread: LoopThread[Redis], lease_s: float) -> None:
        self._thread = thread
        self._lease_s = lease_s
        self._held: dict[int, tuple[bytes, asyncio.Task[None]]] = {}  # touched on the store's own loop only

    async def try_lock(self, number: int) -> bool:
        """Take lock *number* if it is free, without waiting."""
        return await self._thread.run(partial(self._take, number=number))

    async def unlock(self, number: int) -> None:
        """Give it back; where it ran out, it is free already."""
        await self._thread.run(partial(self._give_back, number=number))

    async def _take(self, redis: Redis, number: int) -> bool:
        token = os.urandom(16)
        if not await redis.set(_lease(number), token, nx=True, px=int(self._lease_s * 1000)):
            return False
        self._held[number] = token, asyncio.create_task(self._renew(redis, number, token))
        return True

    async def _renew(self, redis: Redis, number: int, token: bytes) -> None:
        renew = redis.register_script(RENEW)
        while True:
            await asyncio.sleep(self._lease_s / 3)
            with suppress(RedisError, OSError):  # the next try may come in time
                if not await renew(keys=[_lease(number)], args=[token, int(self._lease_s * 1000)]):
                    return

    async def _give_back(self, redis: Redis, number: int) -> None:
        token, renewing = self._held.pop(number, (b"", None))
        if renewing is None:  # the store was closed meanwhile, and the lease runs out
            return
        renewing.cancel()
        with suppress(RedisError, OSError):  # it runs out by itself
            await redis.register_script(RELEASE)(keys=[_lease(number)], args=[token])


def _lease(number: int) -> str:
    return f"reactflow:turn:{number}"


def _row(member: bytes) -> tuple[int, bytes]:
    sequence, _, body = member.partition(b":")
    return int(sequence), body


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _redis_url(url: str) -> str:
    scheme, colon, rest = url.partition("://")
    scheme = scheme.lower().replace("valkey", "redis")
    if scheme not in ("redis", "rediss") or not colon:
        raise ConfigurationError(f"{url.split('@')[-1]!r:.80} is no address of Redis; give redis://host:6379/0.")
    return f"{scheme}://{rest}"


def _name(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"
