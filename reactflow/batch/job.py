"""The job: rows in, outcomes out, so many at a time, in the order of the input, in bounded memory."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from reactflow.batch.calls import Listen, RowCalls, Spending
from reactflow.batch.journal import Journal, RowId
from reactflow.batch.limits import Limits
from reactflow.batch.rows import Asking, Record, Row
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import Source
from reactflow.errors import BudgetExceeded, ConfigurationError, WorkflowError
from reactflow.frozen import FrozenDict
from reactflow.result import StopReason
from reactflow.specs.outcome import Outcome, Status, exhausted
from reactflow.specs.running import AgentRunner
from reactflow.specs.values import HandleException, OnExhausted, digest

T = TypeVar("T")
R = TypeVar("R")


async def in_flight(
    items: Iterable[T],
    work: Callable[[T], Awaitable[R]],
    *,
    concurrency: int,
    ordered: bool = True,
    window: int | None = None,
) -> AsyncGenerator[tuple[T, R], None]:
    """Do *work* on each of *items*, so many at a time, and yield each with what came of it.

    Iterate inside ``aclosing``: an error of the reader's own ends the iteration, and the work, only there.

    Args:
        items: Taken one by one, as they are needed.
        work: What it raises ends the iteration, after the rest was cancelled.
        concurrency: How many at a time, >= 1.
        ordered: Yield in the order of *items*; else as they are done.
        window: How many may be under way or wait to be yielded, >= *concurrency*; 20 times that by default.  With
            *ordered* one slow item lets so many others pass before they wait for it.
    """
    numbered = enumerate(items)
    slots = asyncio.Semaphore(max(window or 20 * concurrency, concurrency))
    done: asyncio.Queue[tuple[int, T, R] | None] = asyncio.Queue()

    async def worker() -> None:
        while True:
            await slots.acquire()
            found = next(numbered, None)
            if found is None:
                slots.release()
                return
            done.put_nowait((*found, await work(found[1])))

    async def all_workers() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(worker())
        finally:
            done.put_nowait(None)

    running = asyncio.create_task(all_workers())
    waiting: dict[int, tuple[T, R]] = {}
    following = 0
    try:
        while (ready := await done.get()) is not None:
            number, item, result = ready
            waiting[number if ordered else following + len(waiting)] = (item, result)
            while following in waiting:
                yield waiting.pop(following)
                following += 1
                slots.release()
        await running
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """How a job runs.

    Args:
        concurrency: Rows under way at a time, >= 1.
        ordered: Whether rows come out in the order of the input.
        on_exhausted: What becomes of a row that reached a limit; None leaves it to the agent, which returns it.
        handle_exception: Whether a failing row ends the job; None leaves it to the agent, which goes on.
        only_approved: Write only what a reviewer approved.
        max_cost_usd: Dollars after which no new row is begun, > 0; needs prices.
        limits: Requests and tokens a minute.
        spending: The count; give one with prices to know the money.
        journal: Where answers are kept; None for nowhere.
        fingerprint: What tells this agent from others in the journal; that of the spec by default.
        listen: For one row, who is told of each model call.
    """

    concurrency: int = 100
    ordered: bool = True
    on_exhausted: OnExhausted | None = None
    handle_exception: HandleException | None = None
    only_approved: bool = False
    max_cost_usd: float | None = None
    limits: Limits = field(default_factory=Limits)
    spending: Spending = field(default_factory=Spending)
    journal: Journal | None = None
    fingerprint: str | None = None
    listen: Callable[[str | None], Listen] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.concurrency, bool) or not isinstance(self.concurrency, int) or self.concurrency < 1:
            raise ConfigurationError(f"concurrency={self.concurrency!r}: give a whole number from 1.")
        if self.max_cost_usd is not None and not self.spending.prices:
            raise ConfigurationError(
                "A limit in dollars needs prices: --price 'model=0.25/2' (in/out, a million tokens)."
            )


class JobStopped(BudgetExceeded):
    """The job's money was used up; what is finished is kept, and the same command goes on with the rest."""


class Job:
    """Runs one agent on rows.

    Args:
        runner: The agent.
        settings: How.
    """

    def __init__(self, runner: AgentRunner, settings: JobSettings) -> None:
        spec = runner.spec
        self.runner = runner
        self.settings = settings
        self.fingerprint = settings.fingerprint or ("" if spec is None else digest(spec))
        self.on_exhausted = settings.on_exhausted or ("return" if spec is None else spec.on_exhausted)
        self.handle_exception = settings.handle_exception or ("continue" if spec is None else spec.handle_exception)
        self.from_journal = 0
        self.stopped = False
        self._gate = asyncio.Lock()
        if settings.journal is not None and not self.fingerprint:
            raise ConfigurationError("An answer cache needs a fingerprint of the agent; give fingerprint='...'.")
        if settings.only_approved and runner.reviews is False:
            raise ConfigurationError("Nobody reviews this agent's answers, so none would be written as approved.")

    async def answer(self, prompt: str | None, key: str | None, *, debug: bool | None = None) -> Outcome:
        """What became of one row: from the journal, or by the agent.

        Raises:
            StoreError: The journal failed.
        """
        settings = self.settings
        if not prompt or not prompt.strip():  # fails without a call, so it need not wait for one
            return await self.runner.run(prompt, key, debug=debug)
        row = RowId.of(self.fingerprint, key or "", prompt)
        known = settings.journal.finished(row) if settings.journal is not None else None
        if known is not None:
            self.from_journal += 1
            return known
        await self._admit()
        listen = settings.listen(key) if settings.listen is not None else None
        calls = RowCalls(
            row,
            journal=settings.journal,
            limits=settings.limits,
            spending=settings.spending,
            listen=listen,
            admitted=True,
        )
        with calls.installed():
            outcome = await self.runner.run(prompt, key, debug=debug)
        if settings.journal is not None:
            settings.journal.finish(row, outcome)
        return outcome

    async def _admit(self) -> None:
        """Wait until a row may begin: one at a time waits for the limits, those under way come first.

        One row begins in each turn of the loop.  A request leaves a turn after it was prepared: of many rows that
        begin in one turn the first request would wait for the last, the answers come all at once, and so again.
        """
        await self._gate.acquire()
        try:
            await self.settings.limits.admit()
        finally:
            asyncio.get_running_loop().call_soon(self._gate.release)

    def settle(self, outcome: Outcome, key: str | None) -> Outcome | None:
        """Apply the policies: what is written, None for nothing.

        Raises:
            WorkflowError: The row failed, and a failing row ends the job.
        """
        settled = exhausted(outcome, self.on_exhausted)
        if settled is not None and settled.status is Status.FAILED and self.handle_exception == "fail":
            words = f"Row {key!r} failed, and handle_exception is 'fail': {settled.metadata.get('error')}"
            raise WorkflowError(words, role="row", iteration=1)
        return settled

    def spent_up(self) -> bool:
        """Whether no new row may begin."""
        limit = self.settings.max_cost_usd
        self.stopped = self.stopped or (limit is not None and self.settings.spending.cost_usd >= limit)
        return self.stopped

    def check_money(self, rows: int) -> None:
        """Raise JobStopped where rows were left because the money was used up after *rows* of them."""
        if self.stopped:
            spent, limit = self.settings.spending.cost_usd, self.settings.max_cost_usd
            words = f"{spent:.4f} of {limit} dollars are spent after {rows} rows; start it again to go on."
            raise JobStopped(words, reason=StopReason.COST_BUDGET)


@dataclass(slots=True)
class Report:
    """How far a job is, and what it has come to.

    Args:
        rows: Rows answered.
        written: Rows written.
        by_status: Rows by their status as written.
        from_journal: Rows that an earlier run had finished.
        spending: What was used in this run.
        fraction: How much of the input has been read, 0 to 1.
        elapsed_s: Seconds since the start.
        warnings: What a careful caller should know.
    """

    rows: int = 0
    written: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    from_journal: int = 0
    spending: Spending = field(default_factory=Spending)
    fraction: float = 0.0
    elapsed_s: float = 0.0
    warnings: list[str] = field(default_factory=list)

    @property
    def all_failed(self) -> bool:
        """Whether there were rows and every one failed, which hints at the server or the agent and not at the rows."""
        return 0 < self.by_status.get(Status.FAILED.value, 0) == self.rows


async def run_batch(
    runner: AgentRunner,
    source: Source,
    sink: Sink,
    *,
    asking: Asking | None = None,
    settings: JobSettings | None = None,
    watch: Callable[[Report], None] | None = None,
) -> Report:
    """Answer each row of *source* and write it to *sink* with ``status``, ``response`` and ``metadata``.

    Args:
        runner: The agent.
        source: Where rows come from.
        sink: Where they go; it has its name only when all of them are there.
        asking: What of a row is asked.
        settings: How the job runs.
        watch: Told how far it is, after each row; must not block.

    Returns:
        What it came to.

    Raises:
        ConfigurationError: Something was put together wrongly; no row was asked.
        JobStopped: The money was used up; start it again to go on.
        StoreError: A file cannot be written, or the input breaks off.
        WorkflowError: A row failed, where that ends the job.
    """
    job, asking = Job(runner, settings or JobSettings()), asking or Asking()
    report = Report(spending=job.settings.spending)
    started = time.monotonic()
    check_files(source, sink, asking)
    with sink:
        answered = in_flight(
            _rows(source, asking, job),
            lambda row: _outcome(job, row),
            concurrency=job.settings.concurrency,
            ordered=job.settings.ordered,
        )
        async with aclosing(answered):  # what fails here must end the calls under way: they cost money
            async for row, outcome in answered:
                _write(job, sink, report, row, outcome)
                report.from_journal, report.elapsed_s = job.from_journal, time.monotonic() - started
                if watch is not None:
                    report.fraction = source.fraction()
                    watch(report)
        report.fraction = 1.0
        job.check_money(report.rows)
    report.warnings += sink.warnings
    report.elapsed_s = time.monotonic() - started
    return report


def check_files(source: Source, sink: Sink, asking: Asking) -> None:
    """See whether the rows of *source* can be asked, and written to *sink*; :func:`run_batch` begins with it.

    Raises:
        ConfigurationError: They cannot.
    """
    if source.columns:
        asking.check(Record(0, dict.fromkeys(source.columns)))
    sink.check(source)


def _rows(source: Source, asking: Asking, job: Job) -> Iterator[Row]:
    for record in source:
        if job.spent_up():
            return
        yield asking.read(record)


async def _outcome(job: Job, row: Row) -> Outcome:
    if row.flaw is not None:
        return Outcome(Status.FAILED, None, FrozenDict(error=row.flaw, error_type="BadRow", model_calls=0))
    return await job.answer(row.prompt, row.key)


def _write(job: Job, sink: Sink, report: Report, row: Row, outcome: Outcome) -> None:
    report.rows += 1
    settled = job.settle(outcome, row.key)
    if settled is None:
        report.by_status["dropped"] += 1
        return
    report.by_status[settled.status.value] += 1
    if job.settings.only_approved and not settled.approved:
        return
    report.written += 1
    sink.write({**sink.renamed(row.record.data), **_as_written(settled)})


def _as_written(outcome: Outcome) -> dict[str, Any]:
    metadata = {key: value for key, value in outcome.metadata.items() if key != "transient"}
    return {"status": outcome.status.value, "response": outcome.response, "metadata": metadata}
