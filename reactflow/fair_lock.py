"""Keyed locks that queue fairly across tasks, event loops and threads.

``asyncio.Lock`` belongs to one event loop, and ``threading.Lock`` blocks the loop that waits for it.  Agents are
called from several loops at once (a synchronous door runs its own), and turns of one conversation must still come in
the order in which they were asked for.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager, suppress
from weakref import WeakSet


class _Waiter:
    """One task in the queue, on whatever loop it runs."""

    __slots__ = ("granted", "loop", "woken")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.woken: asyncio.Future[None] = self.loop.create_future()
        self.granted = False

    def grant(self) -> bool:
        """Hand the lock over; False where the waiter's loop is closed, so that nobody would ever take it."""
        try:
            self.loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            return False
        self.granted = True
        return True

    def _wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


_everywhere: WeakSet[FairLocks] = WeakSet()


def _forget_the_parent() -> None:
    """A forked child has none of the tasks that hold or wait for a lock: nobody there would ever give one back."""
    for locks in list(_everywhere):
        locks._start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parent)


class FairLocks:
    """Locks by key, first come first served.  A key costs nothing while nobody holds it.

    The lock goes straight from its holder to the one that has waited longest: nobody polls, and no newcomer can
    overtake.  A waiter that is cancelled leaves the queue, and passes the lock on where it had just been given it.
    """

    def __init__(self) -> None:
        self._start()
        _everywhere.add(self)

    def _start(self) -> None:
        self._queues: dict[Hashable, deque[_Waiter]] = {}  # a key that is here is held; its value waits for it
        # Re-entrant, because the garbage collector may close a forgotten waiter, which passes its lock on, while
        # this very thread is inside.
        self._guard = threading.RLock()

    def __contains__(self, key: object) -> bool:
        return key in self._queues

    def __len__(self) -> int:
        return len(self._queues)

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncGenerator[None]:
        """Wait for *key*, and hold it inside the ``async with`` block.  Not re-entrant."""
        await self._acquire(key)
        try:
            yield
        finally:
            self._release(key)

    async def _acquire(self, key: Hashable) -> None:
        waiter = _Waiter()
        with self._guard:
            try:
                self._queues[key].append(waiter)
            except KeyError:
                self._queues[key] = deque()
                return
        try:
            await waiter.woken
        except BaseException:
            self._give_up(key, waiter)
            raise

    def _give_up(self, key: Hashable, waiter: _Waiter) -> None:
        with self._guard:
            if waiter.granted:
                self._release(key)
            else:
                with suppress(KeyError, ValueError):  # already dropped, because its loop was closed
                    self._queues[key].remove(waiter)

    def _release(self, key: Hashable) -> None:
        with self._guard:
            queue = self._queues.get(key)
            if queue is None:  # held before the process was forked
                return
            while queue:
                if queue.popleft().grant():
                    return
            del self._queues[key]
