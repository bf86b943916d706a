"""One object per event loop and process: what connections need, because they belong to the loop that opened them."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Held(Generic[T]):
    pid: int
    value: T
    keeper: AsyncGenerator[None, None]


class PerLoop(Generic[T]):
    """Makes one object for each running event loop, and closes it before the loop ends.

    The loop itself does the closing: an async generator that it has seen is closed by ``shutdown_asyncgens``, which
    ``asyncio.run`` and every server call at their end.  Objects of a loop that was closed without it are closed when
    the next one is made.  A forked child leaves its parent's objects alone: they share sockets.

    Args:
        make: Makes one; called inside the loop.
        close: Closes one.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[Any]]) -> None:
        self._make = make
        self._close = close
        self._held: dict[asyncio.AbstractEventLoop, _Held[T]] = {}
        self._inherited: list[_Held[T]] = []

    async def get(self) -> T:
        """The object of the running loop."""
        held = self._held.get(asyncio.get_running_loop())
        if held is not None and held.pid == os.getpid():
            return held.value
        return await self._add()

    async def _add(self) -> T:
        await self._sweep()
        loop, value = asyncio.get_running_loop(), self._make()
        keeper = self._keep(loop, value)
        self._held[loop] = _Held(os.getpid(), value, keeper)  # before any await: the loop's other tasks share it
        await anext(keeper)
        return value

    async def _keep(self, loop: asyncio.AbstractEventLoop, value: T) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._held.pop(loop, None)
            await self._close(value)

    async def _sweep(self) -> None:
        for loop, held in list(self._held.items()):
            if held.pid != os.getpid():
                self._inherited.append(self._held.pop(loop))  # kept, so that nothing closes what the parent uses
            elif loop.is_closed():
                del self._held[loop]
                with contextlib.suppress(Exception):  # its loop is gone; what can be freed is freed
                    await self._close(held.value)
