"""``reactflow sql``: a script with agents in it, on an engine inside this process."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import replace
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from reactflow.batch.rows import as_json
from reactflow.batch.sinks import csv_line
from reactflow.cli import flink_options
from reactflow.cli import job_options as options
from reactflow.cli.failures import telling
from reactflow.cli.job_view import make_view, summary
from reactflow.cli.logs import send_logs_to_stderr
from reactflow.cli.options import OUTPUT, Debug, option
from reactflow.cli.reasons import ExitCode
from reactflow.cli.terminal import clean, make_console, on_terminal, say, write_lines
from reactflow.errors import ConfigurationError, SqlError
from reactflow.sql.session import Result, SessionSettings, SqlSession

FILES = "Tables"

MAX_SHOWN = 1000
"""Rows of a result that are shown as a table; --format json or csv, or --output, gives them all."""


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Engine(StrEnum):
    """What runs the script."""

    DUCKDB = "duckdb"
    FLINK = "flink"


Tables = Annotated[
    list[str] | None,
    option("--table", metavar="NAME=FILE", help="Read a table from JSON lines, CSV or Parquet.", panel=FILES),
]
Outputs = Annotated[
    list[str] | None,
    option("--output", metavar="NAME=FILE", help="Write a table when the script has run.", panel=FILES),
]
Database = Annotated[
    str, option("--database", metavar="FILE", help="A DuckDB file in which tables stay; else they do not.", panel=FILES)
]
Cache = Annotated[
    str | None,
    option("--cache", metavar="FILE", help="Keep paid answers there, and do not pay twice.", panel=options.ROWS),
]
Execute = Annotated[
    list[str] | None, option("--execute", "-e", metavar="SQL", help="Run this, after the script.", panel=FILES)
]
EngineOption = Annotated[
    Engine, option("--engine", help="Run in this process, or on Flink.", panel=flink_options.FLINK)
]
FormatOption = Annotated[Format, option("--format", help="How results are printed.", panel=OUTPUT)]


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("sql")(sql)


def sql(
    context: typer.Context,
    script: Annotated[str | None, typer.Argument(metavar="SCRIPT", help="A file; '-' is standard input.")] = None,
    execute: Execute = None,
    table: Tables = None,
    output: Outputs = None,
    database: Database = ":memory:",
    concurrency: options.Concurrency = 100,
    on_exhausted: options.OnExhaustedOption = None,
    handle_exception: options.HandleExceptionOption = None,
    cache: Cache = None,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    budget_usd: options.BudgetUsd = None,
    price: options.Prices = None,
    function: options.Functions = None,
    endpoint: options.Endpoint = None,
    set: options.Overrides = None,
    engine: EngineOption = Engine.DUCKDB,
    parallelism: flink_options.Parallelism = 1,
    checkpoints: flink_options.Checkpoints = None,
    flink: flink_options.FlinkOptions = None,
    format: FormatOption = Format.TABLE,
    quiet: options.JobQuiet = False,
    debug: Debug = False,
) -> None:
    """Run a script with CREATE AGENT and AI_RUN_AGENT in it; results go to standard output."""
    send_logs_to_stderr(debug=debug)
    out, err, code = make_console(sys.stdout), make_console(sys.stderr), ExitCode.ANSWERED
    with telling(err, debug=debug), redirect_stdout(sys.stderr):  # what functions print is no result
        given = options.options_of(context.params)
        texts = [*([_read(script)] if script is not None else []), *(execute or ())]
        if not texts:
            raise ConfigurationError("There is nothing to run: name a script, or give -e 'SELECT ...'.")
        folder = Path(script).parent if script not in (None, "-") else Path()
        if engine is Engine.FLINK:
            on_flink = flink_options.read(context.params, _files("--table", table), _files("--output", output), folder)
            for result in flink_options.session(on_flink).run("\n;\n".join(texts)):
                _show(result, out, err, format, quiet=quiet)
            return
        flink_options.refuse(context.params)
        journal = options.open_journal(cache, None)
        settings = SessionSettings(
            database=database,
            tables=_files("--table", table),
            outputs=_files("--output", output),
            overrides=given.overrides,
            folder=folder,
            job=given.job(journal),
            workshop=given.workshop(),
            debug=debug,
        )
        try:
            code = _run(texts, settings, out, err, format, quiet=quiet)
        except SqlError as error:
            say(err, ("Error: ", "bold red"), clean(str(error)), wrap=True)
            code = ExitCode.WRONG_USE
        finally:
            if journal is not None:
                journal.close()
    raise typer.Exit(code)


def _run(
    texts: list[str], settings: SessionSettings, out: Console, err: Console, format: Format, *, quiet: bool
) -> ExitCode:
    outputs, code = settings.outputs, ExitCode.ANSWERED
    with make_view(err, quiet=quiet) as view, SqlSession(replace(settings, outputs={}), watch=view.show) as session:
        for number, text in enumerate(texts, 1):
            if number == len(texts):
                session.write_at_the_end(outputs)
            warned = len(session.catalog.warnings)
            for result in session.run(text):
                for warning in session.catalog.warnings[warned:]:
                    say(err, ("Warning: ", "yellow"), clean(warning), wrap=True)
                warned = len(session.catalog.warnings)
                _show(result, out, err, format, quiet=quiet)
                if any(report.all_failed for report in result.reports):
                    code = ExitCode.FAILED
    return code


def _show(result: Result, out: Console, err: Console, format: Format, *, quiet: bool) -> None:
    if result.columns:
        if format is Format.TABLE:
            _print_table(result, out, err)
        else:
            _write(result, out.file, format)
    elif not quiet:
        say(err, clean(result.message), wrap=True)
    for report in () if quiet else result.reports:
        say(err, (summary(report), "dim"), wrap=True)


def _print_table(result: Result, out: Console, err: Console) -> None:
    rows = iter(result.rows)
    shown = Table(*map(clean, result.columns))
    for row in islice(rows, MAX_SHOWN):
        shown.add_row(*(clean(_text(value)) for value in row))
    if on_terminal(out):
        out.print(shown)
    else:
        Console(file=out.file, width=10_000, markup=False, emoji=False, highlight=False).print(shown, crop=False)
    more = sum(1 for _ in rows)
    if more:
        say(err, f"{more} more rows; --format json prints them all.", wrap=True)


def _write(result: Result, file: IO[str], format: Format) -> None:
    if format is Format.JSON:
        write_lines(file, (as_json(dict(zip(result.columns, row, strict=True))) for row in result.rows))
        return
    rows = chain([result.columns], result.rows)
    write_lines(file, (csv_line(_plain(row)) for row in rows))


def _plain(row: Iterable[Any]) -> Iterable[Any]:
    return (value if value is None else str(value) for value in row)


def _text(value: Any) -> str:
    return "NULL" if value is None else value if isinstance(value, str) else str(value)


def _files(name: str, given: list[str] | None) -> dict[str, Path]:
    return {table: Path(place) for table, place in options.pairs(name, given, "claims=claims.jsonl")}


def _read(script: str) -> str:
    if script == "-":
        return sys.stdin.read()
    try:
        return Path(script).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{script} cannot be read: {error}") from error
