"""Where database work is done: in a thread that owns the connections.

A connection belongs to one thread or one event loop, while agents are called from many.  So a store has a thread of
its own, which starts when it is first needed, and anew in a forked child.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

R = TypeVar("R")
T = TypeVar("T")

_inherited: list[object] = []
"""What a forked child got from its parent.  It is never collected: closing it here would close it there."""


class PerProcess(Generic[T]):
    """A value that is made when it is first needed, once in each process.  Safe to use from several threads."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._guard = threading.Lock()
        self._made: tuple[int, T] | None = None

    def get(self) -> T:
        """The value of this process."""
        made = self._made
        if made is not None and made[0] == os.getpid():
            return made[1]
        with self._guard:
            if self._made is None or self._made[0] != os.getpid():
                _inherited.extend(self._made or ())
                self._made = os.getpid(), self._make()
            return self._made[1]

    def take(self) -> T | None:
        """Give the value away to be closed; None where this process has none.  ``get`` makes a new one."""
        with self._guard:
            made, self._made = self._made, None
        return made[1] if made is not None and made[0] == os.getpid() else None


class WorkThread(Generic[R]):
    """Runs plain functions of a resource, one after the other.

    Args:
        name: What the thread is called.
        open: Makes the resource (a connection); called in the thread.
        close: Closes it; called there too.
    """

    def __init__(self, name: str, open: Callable[[], R], close: Callable[[R], None]) -> None:
        self._close = close
        self._state = PerProcess(lambda: (ThreadPoolExecutor(1, name), PerProcess(open)))

    async def run(self, work: Callable[[R], T]) -> T:
        """Run *work*.  A cancel does not stop it once it has begun."""
        executor, resource = self._state.get()
        return await asyncio.wrap_future(executor.submit(lambda: work(resource.get())))

    async def aclose(self) -> None:
        """Close the resource and end the thread."""
        if (state := self._state.take()) is not None:
            executor, resource = state
            await asyncio.wrap_future(executor.submit(self._close_resource, resource))
            executor.shutdown(wait=False)

    def _close_resource(self, resource: PerProcess[R]) -> None:
        if (opened := resource.take()) is not None:
            self._close(opened)


class LoopThread(Generic[R]):
    """Runs coroutines of a resource on an event loop of its own.

    Args:
        name: What the thread is called.
        open: Makes the resource (an engine, a client).
        close: Closes it, on that loop.
    """

    def __init__(self, name: str, open: Callable[[], R], close: Callable[[R], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._close = close
        self._state = PerProcess(lambda: (self._start(), open()))

    def submit(self, work: Callable[[R], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begin *work* there, also from plain code; a cancel of the future cancels it."""
        loop, resource = self._state.get()
        return asyncio.run_coroutine_threadsafe(work(resource), loop)

    async def run(self, work: Callable[[R], Coroutine[Any, Any, T]]) -> T:
        """Run *work* there; a cancel here cancels it there."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> Future[None]:
        """Begin to close the resource and to end the thread."""
        if (state := self._state.take()) is None:
            closed: Future[None] = Future()
            closed.set_result(None)
            return closed
        loop, resource = state
        closing = asyncio.run_coroutine_threadsafe(self._close(resource), loop)
        closing.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        return closing

    async def aclose(self) -> None:
        """Close the resource and end the thread."""
        await asyncio.wrap_future(self.close())

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=_serve, args=(loop,), name=self._name, daemon=True).start()
        return loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)  # such as the renewal of a lease that nobody gave back
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    finally:
        loop.close()
