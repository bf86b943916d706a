"""The event loop behind the plain doors: one in the background, shared, so that connections stay open between calls."""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from reactflow.threads import wait_for

T = TypeVar("T")


class _Background:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.blocked = 0  # how often its own thread waits in a plain door that an async tool called
        self.thread = threading.Thread(target=self._serve, name="reactflow-loop", daemon=True)
        self.thread.start()

    @property
    def alive(self) -> bool:
        """Whether it can take work; a forked child has no such thread."""
        return self.pid == os.getpid() and self.thread.is_alive() and not self.loop.is_closed()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            while not self._run():
                pass
        finally:
            unfinished = asyncio.all_tasks(self.loop)
            for task in unfinished:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*unfinished, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def _run(self) -> bool:
        """Run until the loop is stopped; False where one task's exit came out here, which is not for the others."""
        try:
            self.loop.run_forever()
        except (SystemExit, KeyboardInterrupt):  # asyncio has given it to whoever waits for that task
            return False
        return True

    def close(self) -> None:
        """Stop the loop, cancelling what still runs on it."""
        if self.alive:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(timeout=5)


_shared: _Background | None = None
_starting = threading.Lock()


def _shared_loop() -> _Background:
    global _shared
    with _starting:
        if _shared is None or not _shared.alive:
            _shared = _Background()
            atexit.register(_shared.close)
        return _shared


@contextmanager
def _loop_to_wait_for() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that this thread may block on: the shared one, or a new one where that would wait for itself."""
    shared = _shared_loop()
    on_it = threading.get_ident() == shared.thread.ident
    if not on_it and not shared.blocked:
        yield shared.loop
        return
    own = _Background()
    shared.blocked += on_it  # only its own thread counts, so that the count needs no lock
    try:
        yield own.loop
    finally:
        shared.blocked -= on_it
        own.close()


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* to its end from plain code and return what it returns.  An interrupt cancels it."""
    with _loop_to_wait_for() as loop:
        return wait_for(work, loop)


_END = object()


def stream_blocking(items: AsyncGenerator[T, None]) -> Iterator[T]:
    """Iterate over *items* from plain code.  Ending the iteration early closes them."""
    buffer: queue.SimpleQueue[Any] = queue.SimpleQueue()

    async def pump() -> None:
        try:
            async for item in items:
                buffer.put(item)
        finally:
            await items.aclose()
            buffer.put(_END)

    with _loop_to_wait_for() as loop:
        pumping = asyncio.run_coroutine_threadsafe(pump(), loop)
        try:
            while (item := buffer.get()) is not _END:
                yield item
            pumping.result()
        finally:
            pumping.cancel()
