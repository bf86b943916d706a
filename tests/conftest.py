"""What every test relies on: no key of the developer's is used, and a test that needs a server says so."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from hypothesis import settings

FULL = os.environ.get("REACTFLOW_CI") == "1"
"""The machine has every service, so a skip there would hide a failure."""

settings.register_profile("reactflow", deadline=None, print_blob=True)  # a busy machine is no failure
settings.load_profile("reactflow")


@dataclass
class Clock:
    """Stands still until a test moves it."""

    now: float = 1_000_000.0

    def monotonic(self) -> float:
        return self.now

    def late(self, value: object) -> Callable[[object], object]:
        """A model's reply or an evaluator that gives *value*, and leaves 0.1 s of a minute to what comes next."""

        def give(_: object) -> object:
            self.now += 59.9
            return value

        return give


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of budgets and of stores in memory.

    On a slow machine work uses up no budget then, and what hangs is still cut: the timer that cuts it is a real one,
    and gets what is left of the budget when the work begins.  So a budget of a minute and a step that is late let all
    before it succeed, and what hangs after it is cut at once.
    """
    clock = Clock()
    for module in ("budget", "store"):
        monkeypatch.setattr(f"reactflow.{module}.time", clock)
    return clock


@pytest.fixture
def unhurried(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run inside another has all the time it needs to hand over what it has."""
    monkeypatch.setattr("reactflow.budget.RECOVERY_S", 300.0)


@pytest.fixture
def until() -> Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]:
    """Waits for a condition, and not for a time; what needs a minute for it is stuck."""

    async def wait(condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(60):
            while not await condition():  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    return wait


@pytest.fixture
def quickest() -> Callable[..., Awaitable[float]]:
    """Measures in up to three runs whether one takes less than so many seconds.

    What waits too long does so each time; a machine that is busy for a moment delays one.
    """

    async def measure(run: Callable[[], Awaitable[object]], *, below: float) -> float:
        took: list[float] = []
        while len(took) < 3 and (not took or took[-1] >= below):
            started = time.monotonic()
            await run()
            took.append(time.monotonic() - started)
        return min(took)

    return measure


def pytest_configure() -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "REACTFLOW_GGUF", "REACTFLOW_MODEL"):
        os.environ.pop(name, None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("service"):
        (variable,) = marker.args
        if not os.environ.get(variable):
            (pytest.fail if FULL else pytest.skip)(f"needs a server: set {variable} to its address")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not FULL:
        terminalreporter.write_line(
            "Not in this run: tests/proof (long, on real servers, on Flink and on Ray) and tests/benchmarks; "
            ".ci/run runs both."
        )
