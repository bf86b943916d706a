"""One object per event loop: what connections need, because they belong to the loop that opened them."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

EXIT_S = 1.0
"""How long the end of the program may wait for a loop in another thread to close its object."""


@dataclass(frozen=True, slots=True)
class _Held(Generic[T]):
    value: T
    keeper: AsyncGenerator[None, None]


class PerLoop(Generic[T]):
    """Makes one object for each running event loop, and closes it before the loop ends.

    The loop itself does the closing: an async generator that it has seen is closed by ``shutdown_asyncgens``, which
    ``asyncio.run`` and every server call at their end.  Objects of a loop that was closed without it are closed when
    the next one is made, the rest at the program's exit.  A forked child leaves its parent's objects alone.

    Args:
        make: Makes one; called inside the loop.
        close: Closes one.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[Any]]) -> None:
        self._make = make
        self._close = close
        self._held: dict[asyncio.AbstractEventLoop, _Held[T]] = {}
        atexit.register(self._close_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._disown)

    async def get(self) -> T:
        """The object of the running loop."""
        held = self._held.get(asyncio.get_running_loop())
        return await self._add() if held is None else held.value

    async def _add(self) -> T:
        loop, value = asyncio.get_running_loop(), self._make()
        keeper = self._keep(loop, value)
        self._held[loop] = _Held(value, keeper)  # before any await: the loop's other tasks share it
        await anext(keeper)
        for other in list(self._held):
            if other.is_closed() and (held := self._held.pop(other, None)):
                with contextlib.suppress(Exception):  # its loop is gone; what can be freed is freed
                    await self._close(held.value)
        return value

    async def _keep(self, loop: asyncio.AbstractEventLoop, value: T) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._held.pop(loop, None)
            await self._close(value)

    def _close_all(self) -> None:
        for loop, held in list(self._held.items()):
            with contextlib.suppress(Exception):
                if loop.is_running():
                    asyncio.run_coroutine_threadsafe(_closed(held.keeper), loop).result(EXIT_S)
                elif not loop.is_closed():
                    loop.run_until_complete(_closed(held.keeper))

    def _disown(self) -> None:
        """In a forked child: never close what the parent uses, not even by forgetting it.

        Parent and child share the sockets, and the loop's list of them as well; the last reference is never given
        back, so that no clean-up at the child's exit can take the parent's connections from its loop.
        """
        for held in self._held.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
        self._held.clear()


async def _closed(keeper: AsyncGenerator[None, None]) -> None:
    await keeper.aclose()
