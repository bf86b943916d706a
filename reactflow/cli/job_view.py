"""How far a job is: a bar with rows, money and the time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Column

from reactflow.batch.job import Report
from reactflow.cli.narrator import counted, money, seconds, tokens
from reactflow.cli.terminal import is_live, say
from reactflow.specs.outcome import Status

EVERY_S = 10.0
"""Seconds between two lines where there is no terminal."""


class JobView(Protocol):
    """Shows how far a job is; a context manager."""

    def __enter__(self) -> JobView:
        """Begin."""
        ...

    def __exit__(self, *error: object) -> None:
        """End, and leave the screen as it was."""
        ...

    def show(self, report: Report) -> None:
        """Tell how far it is."""
        ...


def make_view(console: Console, *, quiet: bool) -> JobView:
    """The view that suits *console*."""
    if quiet:
        return Silent()
    return Bar(console) if is_live(console) else Lines(console)


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def show(self, report: Report) -> None:
        """Say nothing."""


class Lines:
    """A line now and then."""

    def __init__(self, console: Console, *, every_s: float = EVERY_S) -> None:
        self._console = console
        self._every_s = every_s
        self._next = time.monotonic() + every_s

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def show(self, report: Report) -> None:
        """Print a line where the last one is long enough ago."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every_s
            say(self._console, progress_words(report))


class Bar:
    """A bar that is drawn again in place."""

    def __init__(self, console: Console) -> None:
        facts = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
        self._progress = Progress(BarColumn(bar_width=20), TaskProgressColumn(), facts, console=console, transient=True)
        self._task = self._progress.add_task("0 rows", total=1.0)
        self._next = 0.0

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, report: Report) -> None:
        """Draw it, at most ten times a second: a job may have thousands of rows in that time."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 0.1
            self._progress.update(self._task, completed=report.fraction, description=progress_words(report))


def progress_words(report: Report) -> str:
    """Rows, failures, money and the time left, in one line."""
    parts = [counted(report.rows, "row")]
    if failed := report.by_status.get(Status.FAILED.value, 0):
        parts.append(f"{failed} failed")
    if report.spending.prices:
        parts.append(money(report.spending.cost_usd))
    left = time_left(report)
    return ", ".join([*parts, f"{seconds(left)} left"] if left is not None else parts)


def time_left(report: Report) -> float | None:
    """Seconds until the end if it goes on like this; None where that cannot be told yet."""
    if report.fraction <= 0 or report.elapsed_s < 1:
        return None
    return report.elapsed_s * (1 - report.fraction) / report.fraction


def summary(report: Report) -> str:
    """What a job came to, in one line."""
    parts = [f"{count} {status}" for status, count in sorted(report.by_status.items())]
    facts = [counted(report.rows, "row"), ", ".join(parts)]
    if report.from_journal:
        facts.append(f"{report.from_journal} from the answer cache")
    if report.spending.usage.model_calls:
        facts.append(f"{counted(report.spending.usage.model_calls, 'model call')}, {tokens(report.spending.usage)}")
    if report.spending.prices:
        facts.append(money(report.spending.cost_usd))
    return "; ".join([*(fact for fact in facts if fact), seconds(report.elapsed_s)])


def as_data(report: Report) -> dict[str, Any]:
    """The same for a program."""
    usage = report.spending.usage
    return {
        "rows": report.rows,
        "written": report.written,
        "by_status": dict(report.by_status),
        "from_cache": report.from_journal,
        "model_calls": usage.model_calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": round(report.spending.cost_usd, 6) if report.spending.prices else None,
        "elapsed_s": round(report.elapsed_s, 3),
        "warnings": report.warnings,
    }
