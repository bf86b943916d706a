"""The commands."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Any

import typer

from reactflow.cli import batch, sql
from reactflow.cli.ask import Format, Screen, ask
from reactflow.cli.chat import WORDS, converse
from reactflow.cli.conversation import Conversation
from reactflow.cli.demos import about, demo_names, run_demo
from reactflow.cli.doctor import examine
from reactflow.cli.failures import telling
from reactflow.cli.logs import send_logs_to_stderr
from reactflow.cli.memory import app as memory
from reactflow.cli.options import (
    Agent,
    BaseUrl,
    BudgetSeconds,
    BudgetTokens,
    Debug,
    Events,
    Json,
    JudgeModel,
    MaxRounds,
    Model,
    Quiet,
    Reflect,
    System,
    Tools,
    setup_of,
)
from reactflow.cli.reader import make_reader
from reactflow.cli.reasons import ExitCode
from reactflow.cli.session import Chat
from reactflow.cli.setup import OFFLINE_NOTICE, Setup
from reactflow.cli.state import kept_conversations, state_folder
from reactflow.cli.terminal import interactive, make_console, say
from reactflow.errors import ConfigurationError

app = typer.Typer(
    name="reactflow",
    help="Ask agents, talk to them, and watch them work.",
    epilog="Exit codes: 0 answered, 1 failed, 2 wrong use, 3 provider or model error, 4 limit, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they print the values of variables, and those may be secrets
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(memory)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reactflow {version('reactflow')}")
        raise typer.Exit


@app.callback()
def _main(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    pass


@app.command("ask")
def _ask(
    context: typer.Context,
    question: Annotated[str | None, typer.Argument(help="What to ask; without it, or with -, standard input.")] = None,
    agent: Agent = None,
    model: Model = None,
    base_url: BaseUrl = None,
    judge_model: JudgeModel = None,
    system: System = None,
    tool: Tools = None,
    reflect: Reflect = None,
    max_rounds: MaxRounds = None,
    budget_tokens: BudgetTokens = None,
    budget_seconds: BudgetSeconds = None,
    json: Json = False,
    events: Events = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Ask one question and print the answer; all else goes to standard error."""
    screen = _screen(quiet=quiet, debug=debug)
    with telling(screen.err, debug=debug):
        setup, words, format = setup_of(context), _question(question), _format(json=json, events=events)
        asked = setup.build()
        _notice(screen, setup)
        code = asyncio.run(ask(asked, words, screen, setup.settings(asked), format))
    raise typer.Exit(code)


@app.command("chat")
def _chat(
    context: typer.Context,
    conversation: Annotated[
        str, typer.Option("--conversation", "-c", metavar="NAME", help="Which one to go on with.")
    ] = "chat",
    agent: Agent = None,
    model: Model = None,
    base_url: BaseUrl = None,
    judge_model: JudgeModel = None,
    system: System = None,
    tool: Tools = None,
    reflect: Reflect = None,
    max_rounds: MaxRounds = None,
    budget_tokens: BudgetTokens = None,
    budget_seconds: BudgetSeconds = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Talk to an agent.  The conversation is kept and goes on next time; /help lists the commands."""
    screen = _screen(quiet=quiet, debug=debug)
    with telling(screen.err, debug=debug):
        setup = setup_of(context)
        make = setup.prepare()  # before the loop runs: the user's module may run one itself
        code = asyncio.run(_converse(setup, conversation, screen, make))
    raise typer.Exit(code)


async def _converse(setup: Setup, name: str, screen: Screen, make: Callable[[Any], Any]) -> ExitCode:
    async with kept_conversations() as (store, place):
        conversation = None if setup.agent else Conversation(store, name)
        agent = make(conversation)
        _notice(screen, setup)
        chat = Chat(
            agent=agent,
            screen=screen,
            conversation_id=name,
            settings=setup.settings(agent),
            interactive=interactive(),
            conversation=conversation,
            place=place if conversation else None,
        )
        reader = make_reader(interactive=chat.interactive, commands=WORDS, history=state_folder() / "typed")
        return await converse(chat, reader)


@app.command("demo", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def _demo(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Which one; else they are listed.", autocompletion=demo_names)
    ] = None,
    debug: Debug = False,
) -> None:
    """Run a demo; what follows its name goes to the demo."""
    screen = _screen(debug=debug)
    with telling(screen.err, debug=debug):
        if name is not None:
            run_demo(name, context.args)
            return
        for each in demo_names():
            say(screen.out, (f"{each:<20}", "bold"), about(each))
        say(screen.err, ("Run one with: reactflow demo NAME", "dim"))


@app.command("doctor")
def _doctor(
    model: Model = None,
    base_url: BaseUrl = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="S", help="Seconds to wait for each reply.")] = 60.0,
    debug: Debug = False,
) -> None:
    """Check what is configured, which server answers and what it can do, and say how to mend what it cannot."""
    screen = _screen(debug=debug)
    with telling(screen.err, debug=debug):
        code = asyncio.run(examine(Setup(model=model, base_url=base_url), screen.out, timeout_s=timeout))
    raise typer.Exit(code)


batch.register(app)
sql.register(app)


def _screen(*, quiet: bool = False, debug: bool = False) -> Screen:
    send_logs_to_stderr(debug=debug)
    return Screen(make_console(sys.stdout), make_console(sys.stderr), quiet, debug)


def _question(words: str | None) -> str:
    """What was typed, or what is piped in."""
    if words not in (None, "-"):
        return str(words)
    if sys.stdin.isatty():
        raise ConfigurationError("There is no question: reactflow ask 'What is the weather in Beijing?'")
    return sys.stdin.read()


def _format(*, json: bool, events: bool) -> Format:
    if json and events:
        raise ConfigurationError("--json and --events both want standard output; the last event holds the result.")
    return "json" if json else "events" if events else "text"


def _notice(screen: Screen, setup: Setup) -> None:
    if setup.is_offline and not screen.quiet:
        say(screen.err, (OFFLINE_NOTICE, "yellow"), wrap=True)
