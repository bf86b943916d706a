"""The options that commands share."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from reactflow.cli.setup import Setup

AGENT, LIMITS, OUTPUT = "The agent", "Limits", "Output"


def option(*names: str, help: str, panel: str, metavar: str | None = None) -> Any:
    """An option, listed under the heading *panel*."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel)


Agent = Annotated[
    str | None,
    option(
        "--agent",
        metavar="MODULE:ATTR",
        help="Your own agent or workflow; looked for in the current folder first.",
        panel=AGENT,
    ),
]
Model = Annotated[
    str | None,
    option(
        "--model",
        "-m",
        metavar="NAME",
        help="The model; 'offline' needs no server.  Else REACTFLOW_MODEL.",
        panel=AGENT,
    ),
]
BaseUrl = Annotated[
    str | None, option("--base-url", metavar="URL", help="The server.  Else OPENAI_BASE_URL.", panel=AGENT)
]
JudgeModel = Annotated[
    str | None,
    option("--judge-model", metavar="NAME", help="Who judges the answers; implies --reflect 1.", panel=AGENT),
]
System = Annotated[str | None, option("--system", "-s", metavar="TEXT", help="The instructions.", panel=AGENT)]
Tools = Annotated[
    list[str] | None,
    option("--tool", "-t", metavar="MODULE:ATTR", help="A tool; may be given again.", panel=AGENT),
]
Reflect = Annotated[
    int | None,
    option("--reflect", metavar="N", help="Judge answers, and revise a rejected one up to N times.", panel=AGENT),
]
MaxRounds = Annotated[
    int | None,
    option("--max-rounds", metavar="N", help="Model calls that may use tools, for each draft.", panel=LIMITS),
]
BudgetTokens = Annotated[
    int | None,
    option("--budget-tokens", metavar="N", help="Tokens for one answer, judges included.", panel=LIMITS),
]
BudgetSeconds = Annotated[
    float | None, option("--budget-seconds", metavar="S", help="Seconds for one answer.", panel=LIMITS)
]
Quiet = Annotated[bool, option("--quiet", "-q", help="Only the answer.", panel=OUTPUT)]
Debug = Annotated[bool, option("--debug", help="Tracebacks and debug logs.", panel=OUTPUT)]
Json = Annotated[bool, option("--json", help="The whole result as JSON.", panel=OUTPUT)]
Events = Annotated[bool, option("--events", help="The run's events as JSON lines.", panel=OUTPUT)]


def setup_of(context: typer.Context) -> Setup:
    """What was typed for the options that make an agent."""
    names = {field.name for field in dataclasses.fields(Setup)}
    given = {name: value for name, value in context.params.items() if name in names}
    return Setup(**{**given, "tool": tuple(given.get("tool") or ())})
