"""Locks that other processes see too, so that turns on one conversation wait for each other between processes.

Each has ``try_lock`` and ``unlock``; the queue inside a process is a FairLocks, so at most one task of a process
asks for a key at a time.  All of them end with their process: a crash leaves nothing locked.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

try:
    import fcntl
except ImportError:  # no POSIX: processes do not wait for each other there
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

FIRST_WAIT_S = 0.002
LONGEST_WAIT_S = 0.05


class ProcessLocks(Protocol):
    """Locks by number, between processes."""

    async def try_lock(self, number: int) -> bool:
        """Take lock *number* (0 to 2**62 - 1) if it is free, without waiting."""
        ...

    async def unlock(self, number: int) -> None:
        """Give it back; no error where it was lost meanwhile."""
        ...


@asynccontextmanager
async def held(try_lock: Callable[[], Awaitable[bool]], unlock: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Wait until no other process has the lock, and hold it inside the block."""
    await _wait(try_lock, unlock)
    try:
        yield
    finally:
        await finished(unlock())


async def _wait(try_lock: Callable[[], Awaitable[bool]], unlock: Callable[[], Awaitable[None]]) -> None:
    pause = FIRST_WAIT_S
    while True:
        trying = asyncio.ensure_future(try_lock())
        try:
            if await finished(trying):
                return
        except asyncio.CancelledError:
            if trying.done() and not trying.cancelled() and not trying.exception() and trying.result():
                await finished(unlock())
            raise
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # else two that wait would ask in step for ever
        pause = min(2 * pause, LONGEST_WAIT_S)


async def finished(work: Awaitable[T]) -> T:
    """Await *work* to its end even where the waiting task is cancelled, and only then go on with the cancel."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody asks for it any more, and that is no cause for a log line
        raise


class FileLocks:
    """Locks on single bytes of one file that stays empty: nothing to clean up, and free after a crash at once.

    POSIX gives such a lock to a process and not to an open file, and drops all of them when the process closes the
    file anywhere.  So there is one of these for a file in each process, shared by all stores; see :meth:`of`.  It
    stays open as long as the process lives: a late close of an unused one would drop the locks of its successor.
    """

    _guard = threading.Lock()
    _by_path: ClassVar[dict[tuple[int, str], FileLocks]] = {}

    def __init__(self, file: int) -> None:
        self._file = file

    @classmethod
    def of(cls, path: Path, *, like: Path | None = None) -> FileLocks:
        """The locks of *path* in this process.

        Args:
            path: The file; made where it is not there.
            like: Whoever may write this file may take the locks too.

        Raises:
            OSError: The file cannot be made or opened.
        """
        key = (os.getpid(), str(path.resolve()))
        with cls._guard:
            found = cls._by_path.get(key)
            if found is None:
                found = cls._by_path[key] = cls(_open_like(path, like or path))
            return found

    async def try_lock(self, number: int) -> bool:
        """Take lock *number* if it is free, without waiting."""
        if fcntl is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):  # the two ways to say that it is taken
            return False
        return True

    async def unlock(self, number: int) -> None:
        """Give it back."""
        if fcntl is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)


def _open_like(path: Path, like: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        with suppress(OSError):
            os.chmod(path, like.stat().st_mode & 0o777)
        return file
