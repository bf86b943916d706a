"""One question: run it, show it, and write the answer."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, redirect_stdout
from dataclasses import dataclass
from typing import IO, Any, Literal, TypeAlias

from rich.console import Console

from reactflow.cli.failures import tell
from reactflow.cli.narrator import Narrator
from reactflow.cli.reasons import ExitCode, code_of_error, code_of_result
from reactflow.cli.setup import budget_of
from reactflow.cli.terminal import clean, on_terminal, say, write_lines
from reactflow.cli.view import LiveView, PlainView, make_view
from reactflow.doors import Doors
from reactflow.errors import ConfigurationError, ReactflowError
from reactflow.event_json import event_to_json, result_to_json, run_failed
from reactflow.events import Event, RunFinished
from reactflow.result import AgentResult

Format: TypeAlias = Literal["text", "json", "events"]


@dataclass(frozen=True, slots=True)
class Screen:
    """Where a command writes: answers to standard output, all else to standard error.

    Args:
        out: Standard output.
        err: Standard error.
        quiet: Whether the run itself is not shown.
        debug: Whether errors come with their traceback.
    """

    out: Console
    err: Console
    quiet: bool = False
    debug: bool = False

    def view(self, agent: object) -> PlainView:
        """What shows a run of *agent*."""
        return _Unseen(self.err) if self.quiet else make_view(self.err, prices=budget_of(agent))

    def answer(self, text: str) -> None:
        """Write an answer: as it is into a pipe, made safe on a terminal."""
        if not on_terminal(self.out):
            self.out.file.write(text + "\n")
            self.out.file.flush()
            return
        if not self.quiet:
            self.err.print()
        self.out.print(clean(text), overflow="fold")
        if not self.quiet:
            self.err.print()

    def summary(self, result: AgentResult) -> None:
        """Say how the run went."""
        if not self.quiet:
            say(self.err, Narrator.on(self.err).summary(result), wrap=True)


class _Unseen(PlainView):
    __slots__ = ()

    def show(self, event: Event) -> None:
        self.progress.take(event)


async def watch(agent: Any, question: str, view: PlainView, settings: Mapping[str, Any]) -> AgentResult:
    """Run *question* and show its events; whatever ends this early ends the run too.

    Args:
        agent: An agent or a workflow.
        question: What to ask.
        view: What shows the events.
        settings: For ``astream``.

    Raises:
        ConfigurationError: The agent has no answer: its ``astream`` yields no ``RunFinished`` and no text.
    """
    result: AgentResult | None = None
    with redirect_stdout(sys.stderr):  # standard output is for answers; what a tool prints is none
        async with view.running(), aclosing(_stream(agent, question, view, settings)) as events:
            async for event in events:
                view.show(event)
                if isinstance(event, RunFinished):
                    result = event.result
    if result is not None:
        return result
    if not view.progress.text:
        raise ConfigurationError(f"{agent!r:.80} has ended without an answer; its astream() must yield RunFinished.")
    return AgentResult(text=view.progress.text)


def _stream(agent: Any, question: str, view: PlainView, settings: Mapping[str, Any]) -> Any:
    if isinstance(agent, Doors) and isinstance(view, LiveView):
        return agent.astream(question, drafts="tag", **settings)  # a draft is seen while it is written
    return agent.astream(question, **settings)


async def ask(agent: Any, question: str, screen: Screen, settings: Mapping[str, Any], format: Format) -> ExitCode:
    """Ask *question*, write what comes in *format*, and say with which code to end.

    A limit that leaves a best answer prints it, and so does an error that comes after a draft.

    Raises:
        ReactflowError: There is no answer.
    """
    view = screen.view(agent)
    if format == "events":
        agent = _Written(agent, screen.out.file)
    try:
        result = await watch(agent, question, view, settings)
    except Exception as error:
        partial = error.partial if isinstance(error, ReactflowError) else None
        if format == "events":
            write_lines(screen.out.file, [event_to_json(run_failed(error))])
        if partial is None:
            raise
        tell(screen.err, error, debug=screen.debug)
        _write_result(partial, screen, format)
        return code_of_error(error)
    _write_result(result, screen, format)
    screen.summary(result)
    return code_of_result(result.stop_reason)


def _write_result(result: AgentResult, screen: Screen, format: Format) -> None:
    match format:
        case "text":
            screen.answer(result.text)
        case "json":
            write_lines(screen.out.file, [result_to_json(result, indent=2)])


@dataclass(frozen=True, slots=True)
class _Written:
    """An agent whose events are written as JSON lines on their way."""

    agent: Any
    file: IO[str]

    async def astream(self, question: str, **settings: Any) -> AsyncGenerator[Event, None]:
        async with aclosing(self.agent.astream(question, **settings)) as events:
            async for event in events:
                write_lines(self.file, [event_to_json(event)])
                yield event
