"""Plain blocking functions beside the event loop.

Each call gets a thread of its own.  A shared pool would starve: a tool that calls a sub-agent whose tools block too
would wait for a worker that only its own end can free.  The threads are daemons, so a tool that hangs cannot keep
the program from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run *function* in a new daemon thread, in a copy of the caller's context.

    A cancel returns at once; the thread goes on and its outcome is dropped, because Python cannot stop a thread.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

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
    return await outcome


def blocking(function: Callable[..., Awaitable[T]], loop: asyncio.AbstractEventLoop) -> Callable[..., T]:
    """Make an async *function* of *loop* callable from another thread, which waits for the outcome."""

    async def awaited(*args: object) -> T:
        return await function(*args)

    def call(*args: object) -> T:
        return asyncio.run_coroutine_threadsafe(awaited(*args), loop).result()

    return call
