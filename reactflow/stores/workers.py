"""Where database work is done: in a thread that owns the connections.

A connection belongs to one thread or one event loop, while agents are called from many.  So a store has a thread of
its own, which starts when it is first needed, and anew in a forked child.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

CLOSING_S = 2.0
"""How long the end of a program waits to close what was left open: drivers complain of connections that it finds."""

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


_Job: TypeAlias = tuple["Future[Any]", Callable[[R], Any]]


class WorkThread(Generic[R]):
    """Runs plain functions of a resource, one after the other.

    Args:
        name: What the thread is called.
        open: Makes the resource (a connection); called in the thread, again where it failed.
        close: Closes it; called there too.
    """

    def __init__(self, name: str, open: Callable[[], R], close: Callable[[R], None]) -> None:
        self._jobs = PerProcess(partial(_start_worker, name, open, close))
        weakref.finalize(self, _end_worker, self._jobs)

    async def run(self, work: Callable[[R], T]) -> T:
        """Run *work*.  A cancel does not stop it once it has begun."""
        outcome: Future[T] = Future()
        self._jobs.get().put((outcome, work))
        return await asyncio.wrap_future(outcome)

    async def aclose(self) -> None:
        """Finish what was begun, close the resource and end the thread."""
        await asyncio.to_thread(_end_worker, self._jobs, None)


def _start_worker(name: str, open: Callable[[], R], close: Callable[[R], None]) -> SimpleQueue[_Job[R] | Future[None]]:
    jobs: SimpleQueue[_Job[R] | Future[None]] = SimpleQueue()
    threading.Thread(target=_work, args=(jobs, PerProcess(open), close), name=name, daemon=True).start()
    return jobs


def _end_worker(state: PerProcess[SimpleQueue[_Job[R] | Future[None]]], timeout_s: float | None = CLOSING_S) -> None:
    if (jobs := state.take()) is not None:
        ended: Future[None] = Future()
        jobs.put(ended)
        with suppress(TimeoutError):
            ended.result(timeout_s)


def _work(jobs: SimpleQueue[_Job[R] | Future[None]], resource: PerProcess[R], close: Callable[[R], None]) -> None:
    while isinstance(job := jobs.get(), tuple):
        outcome, work = job
        if outcome.set_running_or_notify_cancel():
            try:
                outcome.set_result(work(resource.get()))
            except BaseException as error:  # whatever comes out belongs to the one who waits
                outcome.set_exception(error)
        del job, outcome, work  # else the last one would live until the next comes
    try:
        if (opened := resource.take()) is not None:
            close(opened)
    finally:
        job.set_result(None)


class LoopThread(Generic[R]):
    """Runs coroutines of a resource on an event loop of its own.

    Args:
        name: What the thread is called.
        open: Makes the resource (an engine, a client).
        close: Closes it, on that loop.
    """

    def __init__(self, name: str, open: Callable[[], R], close: Callable[[R], Coroutine[Any, Any, None]]) -> None:
        self._close = close
        self._state = PerProcess(lambda: (_started(name), open()))
        weakref.finalize(self, _close_unclosed, self._state, close)

    def submit(self, work: Callable[[R], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begin *work* there, also from plain code; a cancel of the future cancels it."""
        loop, resource = self._state.get()
        return asyncio.run_coroutine_threadsafe(work(resource), loop)

    async def run(self, work: Callable[[R], Coroutine[Any, Any, T]]) -> T:
        """Run *work* there; a cancel here cancels it there."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> Future[None]:
        """Begin to close the resource and to end the thread."""
        return _begin_to_close(self._state, self._close)

    async def aclose(self) -> None:
        """Close the resource and end the thread."""
        await asyncio.wrap_future(self.close())


def _begin_to_close(
    state: PerProcess[tuple[asyncio.AbstractEventLoop, R]], close: Callable[[R], Coroutine[Any, Any, None]]
) -> Future[None]:
    if (opened := state.take()) is None:
        closed: Future[None] = Future()
        closed.set_result(None)
        return closed
    loop, resource = opened
    closing = asyncio.run_coroutine_threadsafe(close(resource), loop)
    closing.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
    return closing


def _close_unclosed(
    state: PerProcess[tuple[asyncio.AbstractEventLoop, R]], close: Callable[[R], Coroutine[Any, Any, None]]
) -> None:
    """What ``aclose`` does, for those who did not call it: waits a moment, and never fails."""
    with suppress(Exception):
        _begin_to_close(state, close).exception(CLOSING_S)


def _started(name: str) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_serve, args=(loop,), name=name, daemon=True).start()
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
