"""Plain blocking functions beside the event loop.

Each call gets a thread of its own.  A shared pool would starve: a tool that calls a sub-agent whose tools block too
would wait for a worker that only its own end can free.  The threads are daemons, so a tool that hangs cannot keep
the program from ending.

Python cannot stop a thread.  What can be stopped is the async work that it waits for: a cancel of the one who started
the thread goes on to every loop on which the thread started something.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Errand:
    """What one thread has started on event loops and waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given_up = False
        self._pending: set[concurrent.futures.Future[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> concurrent.futures.Future[T]:
        with self._lock:
            if self._given_up:
                work.close()
                raise asyncio.CancelledError("the run that this thread works for was cancelled")
            future = asyncio.run_coroutine_threadsafe(work, loop)
            self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def give_up(self) -> None:
        with self._lock:
            self._given_up = True
            pending = list(self._pending)
        for future in pending:
            future.cancel()


_errand: contextvars.ContextVar[_Errand | None] = contextvars.ContextVar("reactflow_errand", default=None)


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run *function* in a new daemon thread, in a copy of the caller's context.

    A cancel returns at once.  The thread goes on and its outcome is dropped; what it waits for is cancelled.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    context, errand = contextvars.copy_context(), _Errand()
    context.run(_errand.set, errand)

    def settle(value: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(value)  # type: ignore[arg-type]
        elif isinstance(error, StopIteration):  # a future refuses it
            outcome.set_exception(RuntimeError(f"StopIteration: {error}"))
        else:
            outcome.set_exception(error)

    def work() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except BaseException as raised:  # whatever comes out belongs to the one who waits
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name="reactflow-call", daemon=True).start()
    try:
        return await outcome
    finally:
        if outcome.cancelled():
            errand.give_up()


def wait_for(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Run *work* on *loop*, which runs in another thread, and block until it is done.

    Raises:
        CancelledError: It was cancelled, or the run was that this thread works for.
    """
    errand = _errand.get()
    future = errand.start(work, loop) if errand is not None else asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except concurrent.futures.CancelledError as error:  # an ordinary Exception, which code that recovers would swallow
        raise asyncio.CancelledError(*error.args) from None
    except BaseException:
        future.cancel()
        raise


def blocking(function: Callable[..., Awaitable[T]], loop: asyncio.AbstractEventLoop) -> Callable[..., T]:
    """Make an async *function* of *loop* callable from another thread, which waits for the outcome."""

    async def awaited(*args: object) -> T:
        return await function(*args)

    return lambda *args: wait_for(awaited(*args), loop)


def cancels() -> int:
    """How many cancels of the running task are under way; 0 where the code it awaits raised one by itself."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0
