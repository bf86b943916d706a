"""Requests and tokens a minute, as servers count them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from reactflow.errors import ConfigurationError


class Rate:
    """So many units a minute, spread evenly, with a burst of one second's worth.

    Units are reserved at once and waited for afterwards, first come, first served, from any thread or event loop.

    Args:
        per_minute: Units a minute, > 0.
        clock: Seconds that only rise.

    Raises:
        ConfigurationError: *per_minute* is not above 0.
    """

    def __init__(self, per_minute: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        if not per_minute > 0:
            raise ConfigurationError(f"A rate of {per_minute} a minute lets nothing through; give one above 0.")
        self._per_second = per_minute / 60
        self._burst = max(1.0, self._per_second)
        self._level = self._burst
        self._clock = clock
        self._at = clock()
        self._lock = threading.Lock()

    def reserve(self, units: float) -> float:
        """Take *units* and return the seconds to wait before using them, >= 0.  Negative units give some back."""
        with self._lock:
            now = self._clock()
            self._level = min(self._burst, self._level + (now - self._at) * self._per_second)
            self._at = now
            self._level -= units
            return max(0.0, -self._level / self._per_second)


class Limits:
    """The rates of one job.

    Args:
        requests: Requests a minute, > 0; None for any number.
        tokens: Tokens a minute, read and written, > 0; None for any number.
    """

    def __init__(self, requests: float | None = None, tokens: float | None = None) -> None:
        self._requests = None if requests is None else Rate(requests)
        self._tokens = None if tokens is None else Rate(tokens)

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a request reads."""
        return self._tokens is not None

    async def admit(self) -> None:
        """Wait until a new row may make its first request.  Call it for one row at a time: what the rows under way
        still have to ask comes first, so that their own time limits do not run out in the queue."""
        await _wait(self._requests, 1)
        await _wait(self._tokens, 0)

    async def before(self, tokens: int, *, admitted: bool) -> None:
        """Wait until a request that is guessed to read *tokens* may go out."""
        if not admitted:
            await _wait(self._requests, 1)
        await _wait(self._tokens, tokens)

    def after(self, guessed: int, used: int) -> None:
        """Count what a request really used, in place of the guess."""
        if self._tokens is not None:
            self._tokens.reserve(used - guessed)


async def _wait(rate: Rate | None, units: float) -> None:
    seconds = 0.0 if rate is None else rate.reserve(units)
    if seconds > 0:
        await asyncio.sleep(seconds)
