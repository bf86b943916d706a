"""A script, statement by statement: ours go to the catalogue, the others to the engine, calls of agents in between."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from reactflow.background import run_blocking
from reactflow.batch.job import Job, JobSettings, Report, in_flight
from reactflow.frozen import EMPTY
from reactflow.specs.building import Workshop
from reactflow.specs.catalog import Catalog
from reactflow.specs.outcome import Outcome
from reactflow.specs.running import AgentRunner
from reactflow.specs.values import AnyAgentSpec
from reactflow.sql.calls import AgentCall, check_calls, mentions, read_call
from reactflow.sql.commands import carry_out, is_ours
from reactflow.sql.dialect import Table, quoted, read_table, render
from reactflow.sql.engine import duckdb, explain
from reactflow.sql.files import connected_file, read_from, write_to
from reactflow.sql.lateral import Question, take_apart
from reactflow.sql.logs import COLUMNS, LogRow, RowLog
from reactflow.sql.tokens import Statement, split, tokenize

CHUNK: Final = 500
"""Rows that are read, and answers that are written, at a time."""

_SKIPPED: Final = (("BEGIN", "STATEMENT", "SET"), ("EXECUTE", "STATEMENT", "SET"), ("END",))
"""Statements that group others: here each one runs by itself, one after the other."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one statement gave.

    Args:
        statement: The statement.
        columns: Names; empty where there is nothing to show.
        rows: Read them before the next statement runs.
        message: What was done, in a few words; empty where there is something to show.
        reports: Of a statement that called agents, what each of the calls came to, in their order.
    """

    statement: Statement
    columns: tuple[str, ...] = ()
    rows: Iterable[tuple[Any, ...]] = ()
    message: str = ""
    reports: tuple[Report, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """How scripts run.

    Args:
        database: The engine's file; by default there is none, and tables live while the session does.
        tables: Files to read tables from, by the table's name.
        outputs: Files to write tables to when a script has run, by the table's name.
        overrides: Options that win over those of CREATE CONNECTION, by ``"name.option"``; ``"*.endpoint"`` is that of
            every model server.
        folder: What relative paths in the script start from.
        job: How rows are run: how many at a time, rates, journal, prices, policies.
        workshop: What agents are built with.
        debug: Whether errors are told with their message and trace, which may quote the row.
    """

    database: str = ":memory:"
    tables: Mapping[str, Path] = field(default=EMPTY)
    outputs: Mapping[str, Path] = field(default=EMPTY)
    overrides: Mapping[str, str] = field(default=EMPTY, repr=False)  # may hold a key
    folder: Path = field(default_factory=Path)
    job: JobSettings = field(default_factory=JobSettings)
    workshop: Workshop = field(default_factory=Workshop)
    debug: bool = False


class SqlSession:
    """Runs scripts on one engine and one catalogue.  A context manager; from one thread at a time.

    Args:
        settings: How.
        watch: Told how far a statement that calls agents is, after each row; must not block.

    Raises:
        ConfigurationError: The extra ``sql`` is missing, or a file is not there.
    """

    def __init__(
        self, settings: SessionSettings | None = None, *, watch: Callable[[Report], None] | None = None
    ) -> None:
        self.settings = settings or SessionSettings()
        workshop = self.settings.workshop
        self.catalog = Catalog(
            overrides=self.settings.overrides, functions=workshop.functions, environment=workshop.environment
        )
        self.engine = duckdb().connect(self.settings.database)
        self.engine.execute("SET preserve_insertion_order = true")  # answers stand beside their rows by position
        self.job_id = secrets.token_hex(8)
        self._outputs = dict(self.settings.outputs)
        self._unread = set(self.settings.tables)
        self._watch = watch
        self._statements = self._calls = 0
        self._made: list[str] = []  # tables of the last statement, which may still be read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.engine.close()

    def write_at_the_end(self, outputs: Mapping[str, Path]) -> None:
        """Write tables to files, by the table's name, when the next script has run."""
        self._outputs |= outputs

    def run(self, script: str) -> Iterator[Result]:
        """Run *script*, and yield what each statement gave.

        Raises:
            SqlError: A statement is wrong; those before it have run, and those after it do not.
            WorkflowError: A row failed, where that ends the job.
            JobStopped: The money was used up.
            StoreError: The journal failed.
        """
        statements = list(split(script))
        created = {table.bare for statement in statements if (table := read_table(statement)) is not None}
        for name in self._unread - created:
            self.engine.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS {read_from(self.settings.tables[name])}")
        self._unread.clear()
        for statement in statements:
            self._statements += 1
            yield self._run(statement)
        for name, path in self._outputs.items():
            self._write(name, path, statements)

    def _write(self, name: str, path: Path, statements: list[Statement]) -> None:
        try:
            write_to(self.engine, quoted(name), path)
        except duckdb().Error as error:
            if not statements:
                raise
            raise explain(error, statements[-1]) from error

    def _run(self, statement: Statement) -> Result:
        while self._made:
            self.engine.execute(f"DROP TABLE {self._made.pop()}")
        if is_ours(statement):
            answer = carry_out(statement, self.catalog)
            return Result(statement, answer.columns, answer.rows, answer.message)
        words = statement.words
        if any(words[: len(skipped)] == skipped for skipped in _SKIPPED) or _is_setting(statement):
            return Result(statement, message=f"{statement.text[:40]}: not needed here; nothing was done.")
        try:
            table = read_table(statement)
            return self._create(statement, table) if table is not None else self._query(statement)
        except duckdb().Error as error:
            raise explain(error, statement) from error

    def _create(self, statement: Statement, table: Table) -> Result:
        path = self.settings.tables.get(table.bare)
        own = connected_file(table, self.settings.folder)
        if path is None and own is not None and own.is_file():
            path = own
        elif own is not None:
            self._outputs.setdefault(table.bare, own)
        if path is None:
            self.engine.execute(table.sql)
            return Result(statement, message=f"Table {table.bare} created.")
        self.engine.execute(f"CREATE OR REPLACE VIEW {table.name} AS {read_from(path, table)}")
        return Result(statement, message=f"Table {table.bare} reads {path}.")

    def _query(self, statement: Statement) -> Result:
        agents = check_calls(statement, self.catalog)
        for at in mentions(statement.tokens):
            self._check_log(statement, read_call(statement, at))
        text, reports = render(statement.script, statement.tokens), []
        while (asked := self._next_question(text, agents)) is not None:
            self._calls += 1
            table = f"reactflow_{self._calls}"
            reports.append(self._answer(asked, agents[asked.call.agent], table))
            self._made.append(table)
            text = asked.answered(table)
        return self._executed(statement, text, tuple(reports))

    def _next_question(self, text: str, agents: Mapping[str, AnyAgentSpec]) -> Question | None:
        policy = self.settings.job.on_exhausted
        may_drop = {name: (policy or spec.on_exhausted) == "drop" for name, spec in agents.items()}
        return take_apart(Statement(text, tuple(tokenize(text))), self.engine, may_drop=may_drop)

    def _executed(self, statement: Statement, text: str, reports: tuple[Report, ...]) -> Result:
        done = self.engine.execute(text)
        columns = tuple(column[0] for column in done.description or ())
        verb = statement.words[0]
        if verb == "INSERT" or columns == ("Count",):
            (count,) = done.fetchone() or (0,)
            return Result(statement, message=f"{count} rows written.", reports=reports)
        if columns in ((), ("Success",)):
            return Result(statement, message="Done.", reports=reports)
        return Result(statement, columns, _rows(done), reports=reports)

    def _answer(self, asked: Question, spec: AnyAgentSpec, table: str) -> Report:
        """Ask what *asked* asks; the rows with their answers are then in *table*."""
        engine = self.engine
        engine.execute(f"CREATE TEMP TABLE {table}_asked AS {asked.rows}")
        engine.execute(f"CREATE TEMP TABLE {table}_said (number BIGINT, status VARCHAR, response VARCHAR)")
        (count,) = engine.execute(f"SELECT count(*) FROM {table}_asked").fetchone()
        report = run_blocking(_Answering(self, asked, spec, table, count).run())
        join = "LEFT JOIN" if asked.call.outer else "JOIN"
        engine.execute(
            f"CREATE TEMP TABLE {table} AS SELECT asked.*, said.status, said.response FROM {table}_asked AS asked "
            f"{join} {table}_said AS said ON asked.rowid = said.number ORDER BY asked.rowid"
        )
        engine.execute(f"DROP TABLE {table}_asked; DROP TABLE {table}_said")
        return report

    def _check_log(self, statement: Statement, call: AgentCall) -> None:
        if call.log_table is None:
            return
        place = statement.tokens[call.start].start
        try:
            described = self.engine.execute(f"SELECT * FROM {quoted(call.log_table)} LIMIT 0").description
        except duckdb().Error as error:
            raise statement.error(f"There is no log table {call.log_table!r}; create it first.", place) from error
        names = tuple(column[0] for column in described)
        if names != COLUMNS:
            words = f"Log table {call.log_table!r} must have the columns {', '.join(COLUMNS)}, in this order."
            raise statement.error(words, place)


def _is_setting(statement: Statement) -> bool:
    """``SET 'key' = 'value'``, which configures the source's own engine."""
    return statement.words[0] in ("SET", "RESET") and len(statement.tokens) > 1 and statement.tokens[1].kind == "text"


def _rows(done: Any) -> Iterator[tuple[Any, ...]]:
    while rows := done.fetchmany(CHUNK):
        yield from rows


class _Answering:
    """The rows of one call on their way through the agent."""

    def __init__(self, session: SqlSession, asked: Question, spec: AnyAgentSpec, table: str, count: int) -> None:
        self.engine, self.watch, self.call = session.engine, session._watch, asked.call
        self.table, self.count = table, count
        self.log_rows: list[LogRow] = []
        self.answers: list[tuple[int, str, str | None]] = []
        log = RowLog(spec, session.job_id, f"statement-{session._statements}", self.log_rows.append)
        self.log = log if asked.call.log_table is not None else None
        workshop = replace(session.settings.workshop, secrets=session.catalog.secrets)
        self.runner = AgentRunner(spec, workshop=workshop, debug=session.settings.debug)
        listen = None if self.log is None else self.log.listen
        self.job = Job(self.runner, replace(session.settings.job, listen=listen))
        self.report = Report(spending=self.job.settings.spending)

    async def run(self) -> Report:
        """Ask all rows, and put the answers into the engine."""
        started = time.monotonic()
        settings = self.job.settings
        try:
            answered = in_flight(self._asked(), self._ask, concurrency=settings.concurrency, ordered=settings.ordered)
            async with aclosing(answered):  # what fails here must end the calls under way: they cost money
                async for (number, _, key), outcome in answered:
                    self._note(number, key, outcome)
                    self.report.elapsed_s = time.monotonic() - started
                    self.report.fraction = self.report.rows / max(1, self.count)
                    if self.watch is not None:
                        self.watch(self.report)
            self.job.check_money(self.report.rows)
        except Exception:
            self._flush()  # not on a cancel: whoever waited has gone, and may have closed the engine
            raise
        finally:
            self.runner.close()
        self._flush()
        return self.report

    def _asked(self) -> Iterator[tuple[int, str | None, str | None]]:
        for first in range(0, self.count, CHUNK):
            rows = (
                f"SELECT rowid, prompt, request_id FROM {self.table}_asked WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
            )
            for row in self.engine.execute(rows, [first, first + CHUNK - 1]).fetchall():
                if self.job.spent_up():
                    return
                yield row

    async def _ask(self, row: tuple[int, str | None, str | None]) -> Outcome:
        _, prompt, key = row
        started = time.monotonic()
        outcome = await self.job.answer(prompt, key, debug=self.call.debug or None)
        if self.log is not None:
            self.log.finished(key, outcome, time.monotonic() - started)
        return outcome

    def _note(self, number: int, key: str | None, outcome: Outcome) -> None:
        self.report.rows += 1
        self.report.from_journal = self.job.from_journal
        settled = self.job.settle(outcome, key)
        if settled is None:
            self.report.by_status["dropped"] += 1
            return
        self.report.by_status[settled.status.value] += 1
        self.report.written += 1
        self.answers.append((number, settled.status.value, settled.text))
        if len(self.answers) >= CHUNK:
            self._flush()

    def _flush(self) -> None:
        if self.answers:
            columns = [list(column) for column in zip(*self.answers, strict=True)]
            unnested = "SELECT unnest(?::BIGINT[]), unnest(?::VARCHAR[]), unnest(?::VARCHAR[])"
            self.engine.execute(f"INSERT INTO {self.table}_said {unnested}", columns)
            self.answers.clear()
        if self.log_rows and self.call.log_table is not None:
            columns = [list(column) for column in zip(*self.log_rows, strict=True)]
            types = ["INTEGER[]" if name == "iteration" else "VARCHAR[]" for name in COLUMNS]
            unnested = ", ".join(f"unnest(?::{kind})" for kind in types)
            self.engine.execute(f"INSERT INTO {quoted(self.call.log_table)} SELECT {unnested}", columns)
            self.log_rows.clear()
