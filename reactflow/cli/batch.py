"""``reactflow batch``: an agent over a file of rows."""

from __future__ import annotations

import asyncio
import inspect
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from reactflow.batch.agents import choose
from reactflow.batch.job import Report, check_files, run_batch
from reactflow.batch.rows import Asking
from reactflow.batch.rows import as_json as as_json_line
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import open_source
from reactflow.cli import job_options as options
from reactflow.cli.failures import telling
from reactflow.cli.job_view import as_data, make_view, summary
from reactflow.cli.loading import load, made_by
from reactflow.cli.logs import send_logs_to_stderr
from reactflow.cli.options import LIMITS, Debug, option
from reactflow.cli.reasons import ExitCode
from reactflow.cli.terminal import clean, make_console, say, write_lines
from reactflow.errors import ConfigurationError
from reactflow.specs.catalog import Catalog
from reactflow.specs.running import AgentRunner
from reactflow.workflows.role import is_agent, is_model

AgentOption = Annotated[
    str,
    option(
        "--agent",
        metavar="MODULE:ATTR|FILE",
        help="An agent, workflow, model or function in Python; or a .toml, .yaml or .sql file, with :name where it "
        "defines several agents.",
        panel=options.DEFINITIONS,
    ),
]
Prompt = Annotated[
    str,
    option("--prompt", metavar="TEXT", help="The column to ask, or a text with {column} in it.", panel=options.ROWS),
]
Key = Annotated[
    str | None,
    option("--key", metavar="COLUMN", help="What names a row; else 'id', else its number.", panel=options.ROWS),
]
OnlyApproved = Annotated[bool, option("--only-approved", help="Write only what was approved.", panel=options.ROWS)]
Unordered = Annotated[bool, option("--unordered", help="Write rows as they are done.", panel=options.ROWS)]
Cache = Annotated[
    str | None,
    option(
        "--cache",
        metavar="FILE",
        help="Where paid answers are kept; else OUTPUT.cache; 'none' for nowhere.",
        panel=options.ROWS,
    ),
]
CacheKey = Annotated[
    str | None,
    option(
        "--cache-key",
        metavar="TEXT",
        help="What tells this agent from others in the cache; else its spec, or its module's text.",
        panel=options.ROWS,
    ),
]
RowSeconds = Annotated[float | None, option("--row-seconds", metavar="S", help="Seconds for one row.", panel=LIMITS)]


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("batch")(batch)


def batch(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="JSON lines, CSV or Parquet, by its name.")],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Likewise; not there before it is whole.")],
    agent: AgentOption,
    prompt: Prompt = "prompt",
    key: Key = None,
    concurrency: options.Concurrency = 100,
    only_approved: OnlyApproved = False,
    on_exhausted: options.OnExhaustedOption = None,
    handle_exception: options.HandleExceptionOption = None,
    unordered: Unordered = False,
    cache: Cache = None,
    cache_key: CacheKey = None,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    row_seconds: RowSeconds = None,
    budget_usd: options.BudgetUsd = None,
    price: options.Prices = None,
    function: options.Functions = None,
    endpoint: options.Endpoint = None,
    set: options.Overrides = None,
    json: options.JobJson = False,
    quiet: options.JobQuiet = False,
    debug: Debug = False,
) -> None:
    """Put each row of a file to an agent, and write it with status, response and metadata.

    A job that was stopped, in whatever way, goes on with the same command: paid answers are kept and no row is there
    twice.  Rows that failed are tried again.
    """
    send_logs_to_stderr(debug=debug)
    err = make_console(sys.stderr)
    with telling(err, debug=debug):
        given = options.options_of(context.params)
        if row_seconds is not None and not row_seconds > 0:
            raise ConfigurationError(f"--row-seconds {row_seconds:g}: give seconds above 0.")
        rows, sink, asking = open_source(source), Sink(output), Asking(prompt, key)
        chosen = choose(agent, _load_agent, Catalog(overrides=given.overrides, functions=given.functions()))
        for warning in chosen.catalog.warnings:
            say(err, ("Warning: ", "yellow"), clean(warning), wrap=True)
        workshop = given.workshop(secrets=chosen.catalog.secrets)
        runner = AgentRunner(chosen.agent, workshop=workshop, timeout=row_seconds, debug=debug)
        fingerprint = cache_key or chosen.fingerprint
        settings = given.job(None, ordered=not unordered, only_approved=only_approved, fingerprint=fingerprint)
        check_files(rows, sink, asking)  # before there is a cache beside a file that cannot be
        journal = options.open_journal(cache, f"{output}.cache")
        settings = replace(settings, journal=journal)
        try:
            with make_view(err, quiet=quiet or json) as view, redirect_stdout(sys.stderr):  # tools may print
                work = run_batch(runner, rows, sink, asking=asking, settings=settings, watch=view.show)
                report = asyncio.run(work)
        finally:
            runner.close()
            if journal is not None:
                journal.close()
        _tell(report, make_console(sys.stdout), err, quiet=quiet, as_json=json)
    raise typer.Exit(_code(report))


def _load_agent(place: str) -> Any:
    """The object at *place*, or what the function without parameters there makes."""
    found = load("--agent", place)
    if is_agent(found) or is_model(found) or not callable(found):
        return found
    makes_one = inspect.isclass(found) or not inspect.signature(found).parameters
    return made_by(found, place) if makes_one else found


def _tell(report: Report, out: Console, err: Console, *, quiet: bool, as_json: bool) -> None:
    if as_json:
        write_lines(out.file, [as_json_line(as_data(report))])
        return
    for warning in report.warnings:
        say(err, ("Warning: ", "yellow"), clean(warning), wrap=True)
    if not quiet:
        say(err, summary(report), wrap=True)


def _code(report: Report) -> ExitCode:
    return ExitCode.FAILED if report.all_failed else ExitCode.ANSWERED
