"""``reactflow batch``: an agent over a file of rows."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from reactflow.batch.agents import Chosen, choose
from reactflow.batch.job import Report, run_batch
from reactflow.batch.rows import Asking
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import open_source
from reactflow.cli import job_options as options
from reactflow.cli.failures import telling
from reactflow.cli.job_view import as_data, make_view, summary
from reactflow.cli.loading import load
from reactflow.cli.logs import send_logs_to_stderr
from reactflow.cli.options import LIMITS, Debug, option
from reactflow.cli.reasons import ExitCode
from reactflow.cli.terminal import make_console, say
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
        chosen = choose(agent, _load_agent, Catalog(overrides=given.overrides, functions=given.functions()))
        for warning in chosen.catalog.warnings:
            say(err, ("Warning: ", "yellow"), warning, wrap=True)
        workshop = given.workshop(secrets=chosen.catalog.secrets)
        runner = AgentRunner(chosen.agent, workshop=workshop, timeout=row_seconds, debug=debug)
        rows = open_source(source)
        journal = options.open_journal(cache, f"{output}.cache")
        try:
            settings = given.job(
                journal,
                ordered=not unordered,
                only_approved=only_approved,
                fingerprint=_fingerprint(chosen, cache_key),
            )
            with make_view(err, quiet=quiet or json) as view:
                work = run_batch(
                    runner,
                    rows,
                    Sink(output, rows.schema),
                    asking=Asking(prompt, key),
                    settings=settings,
                    watch=view.show,
                )
                report = asyncio.run(work)
        finally:
            runner.close()
            if journal is not None:
                journal.close()
        _tell(err, report, quiet=quiet, as_json=json)
    raise typer.Exit(_code(report))


def _load_agent(place: str) -> Any:
    """The object at *place*, or what the function without parameters there makes."""
    found = load("--agent", place)
    if is_agent(found) or is_model(found) or not callable(found):
        return found
    made = inspect.isclass(found) or not inspect.signature(found).parameters
    return found() if made else found


def _fingerprint(chosen: Chosen, cache_key: str | None) -> str:
    return cache_key or chosen.fingerprint


def _tell(err: Any, report: Report, *, quiet: bool, as_json: bool) -> None:
    if as_json:
        print(json.dumps(as_data(report), ensure_ascii=False))
        return
    for warning in report.warnings:
        say(err, ("Warning: ", "yellow"), warning, wrap=True)
    if not quiet:
        say(err, summary(report), wrap=True)


def _code(report: Report) -> ExitCode:
    return ExitCode.FAILED if report.all_failed else ExitCode.ANSWERED
