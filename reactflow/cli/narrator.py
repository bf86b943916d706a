"""The lines that a run leaves behind: one or a few for each event that says something."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from reactflow.cli.diff import diff_text
from reactflow.cli.progress import Progress
from reactflow.cli.reasons import ExitCode, code_of_result
from reactflow.cli.terminal import Symbols, clean, folding, indented, join, on_terminal, one_line, symbols_for
from reactflow.event_json import RunFailed
from reactflow.events import (
    AnswerRevised,
    DraftReady,
    Event,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ReasoningDelta,
    RevisionStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    TextWithdrawn,
    ToolFinished,
    ToolStarted,
    VerdictGiven,
    WarningRaised,
)
from reactflow.messages import Usage
from reactflow.result import AgentResult, StopReason
from reactflow.value_json import tag

SILENT = (
    RunStarted,
    ModelStarted,
    ModelFailed,
    TextDelta,
    ReasoningDelta,
    TextWithdrawn,
    ToolStarted,
    AnswerRevised,
    RunFinished,
    RunFailed,
)
"""Events that are seen while they are under way, in the answer itself, or in the error that ends the run."""


@dataclass(frozen=True, slots=True)
class Narrator:
    """Puts events into words.

    Args:
        symbols: The signs at the start of a line.
        coloured: Whether a diff may tell by colour what went and what came.
        terminal: Whether this is for a terminal, where drafts and changes are shown and lines are cut to its width.
    """

    symbols: Symbols
    coloured: bool = False
    terminal: bool = False

    @classmethod
    def on(cls, console: Console) -> Narrator:
        """One that says what *console* can show."""
        colours = console.color_system is not None and not console.no_color
        return cls(symbols_for(console), coloured=colours, terminal=on_terminal(console))

    def lines(self, event: Event, progress: Progress, arguments: str = "") -> Iterator[RenderableType]:
        """What to print for *event*.

        Args:
            event: What happened; *progress* has taken it already.
            progress: The run so far.
            arguments: Of a tool that has ended: the JSON it was called with.
        """
        match event:
            case ModelFinished():
                yield self._model(event)
            case ToolFinished():
                yield from self._tool(event, arguments)
            case DraftReady():
                yield from self._draft(event, progress.drafts)
            case VerdictGiven():
                yield from self._verdict(event, progress.drafts)
            case RevisionStarted():
                yield join([(f"{self.symbols.again} revision {event.revision}", "bold")])
            case WarningRaised():
                yield folding(join([(f"{self.symbols.warning} {one_line(event.text)}", "yellow")]))
            case _ if not isinstance(event, SILENT):
                yield self._other(event)

    def _model(self, event: ModelFinished) -> Text:
        who = "" if event.role == "agent" else f"{one_line(event.role)} "
        facts = (f"{who}round {event.round}", one_line(event.model), tokens(event.usage), seconds(event.elapsed_s))
        return join([(f"{self.symbols.model} {self._dotted(facts)}", "dim")])

    def _tool(self, event: ToolFinished, arguments: str) -> Iterator[Text]:
        sign, style = (self.symbols.bad, "red") if event.is_error else (self.symbols.good, "green")
        yield join(
            [
                (sign, style),
                f" {called(event.name, arguments)}",
                (f" {self.symbols.dot} {seconds(event.elapsed_s)}", "dim"),
            ]
        )
        said = one_line(event.text, 2_000 if self.terminal else 300)
        yield join([(f"  {said}", "red" if event.is_error else "dim")])

    def _draft(self, event: DraftReady, drafts: Sequence[str]) -> Iterator[RenderableType]:
        yield join([(f"{self.symbols.draft} draft {event.draft}", "bold"), f" {self.symbols.dot} {size(event.text)}"])
        if not self.terminal or len(drafts) < 2:
            return
        changed = diff_text(drafts[-2], drafts[-1], coloured=self.coloured)
        if changed is not None:
            yield self._indented(changed)
        elif drafts[-2] == drafts[-1]:
            yield self._indented(Text("the same text again", style="yellow"))
        else:
            yield self._indented(Text("written anew", style="dim"))

    def _verdict(self, event: VerdictGiven, drafts: Sequence[str]) -> Iterator[RenderableType]:
        if self.terminal and not event.passed and len(drafts) == 1:
            yield self._indented(Text(excerpt(drafts[0]), style="dim"))  # later ones are seen by what they changed
        word, sign, style = self._outcome(event)
        score = "" if event.score is None else f" {self.symbols.dot} score {event.score:.2f}"
        yield join([(f"{sign} {word}", style), score])
        if event.feedback and not event.passed:
            yield self._indented(Text(clean(event.feedback.strip())))

    def _outcome(self, event: VerdictGiven) -> tuple[str, str, str]:
        if event.status != "judged":
            return "not judged", self.symbols.warning, "yellow"
        if event.passed:
            return "approved", self.symbols.good, "bold green"
        return "rejected", self.symbols.bad, "bold red"

    def _other(self, event: Event) -> Text:
        """An event of a workflow, or of the user's own: its name and its short facts."""
        facts = ((field.name, getattr(event, field.name)) for field in dataclasses.fields(event))
        shown = (f"{name.replace('_', ' ')} {one_line(str(fact), 60)}" for name, fact in facts if _is_short(fact))
        return join([(f"{self.symbols.model} {self._dotted((tag(type(event)).replace('_', ' '), *shown))}", "dim")])

    def _indented(self, text: Text) -> RenderableType:
        """A paragraph under its line."""
        return indented(text, 2, fold=self.terminal)

    def _dotted(self, facts: Sequence[str]) -> str:
        return f" {self.symbols.dot} ".join(fact for fact in facts if fact)

    def summary(self, result: AgentResult) -> Text:
        """One line on how a run went: why it stopped, rounds, tokens, money where prices are known, time."""
        good = code_of_result(result.stop_reason) is ExitCode.ANSWERED and result.stop_reason not in UNSURE
        revisions = max(0, len(result.reflections) - 1)
        facts = [
            counted(result.rounds, "round") if result.rounds else "",
            counted(revisions, "revision") if revisions else "",
            self._tokens_by_role(result),
            money(result.cost_usd),
            seconds(result.elapsed_s),
        ]
        reason = result.stop_reason.value.replace("_", " ")
        rest = f" {self.symbols.dot} {self._dotted(facts)}" if any(facts) else ""
        return join([(reason, "bold green" if good else "bold yellow"), (rest, "dim")])

    def _tokens_by_role(self, result: AgentResult) -> str:
        total = tokens(result.usage)
        if len(result.usage_by_role) < 2 or not result.usage.total_tokens:
            return total
        parts = (f"{one_line(role)} {usage.total_tokens:,}" for role, usage in result.usage_by_role.items())
        return f"{total} ({', '.join(parts)})"


UNSURE = frozenset({StopReason.NO_PROGRESS, StopReason.OSCILLATION, StopReason.JUDGE_ERROR, StopReason.REVISION_ERROR})
"""There is an answer, and its reader should look at it twice."""


def excerpt(text: str, lines: int = 6, characters: int = 400) -> str:
    """The beginning of *text*, for those who want to know what it is about."""
    start = "\n".join(clean(text).strip().splitlines()[:lines])[:characters]
    return start if len(start) == len(text.strip()) else f"{start} …"


def called(name: str, arguments: str) -> str:
    """A tool call on one line: ``weather(city="Paris")``."""
    return f"{one_line(name)}({call_arguments(arguments)})"


def call_arguments(arguments: str) -> str:
    """A tool call's JSON arguments as a person would write them: ``city="Paris", days=2``."""
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return one_line(arguments)
    if not isinstance(values, dict):
        return one_line(arguments)
    return ", ".join(f"{one_line(str(name))}={one_line(_json(value))}" for name, value in values.items())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def tokens(usage: Usage) -> str:
    """How many tokens; calls that the server said nothing about are not taken for 0."""
    if usage.unknown_calls and not usage.total_tokens:
        return "tokens unknown"
    more = "over " if usage.unknown_calls else ""
    return f"{more}{usage.total_tokens:,} tokens" if usage.model_calls else ""


def money(cost_usd: float | None) -> str:
    """US dollars, or nothing where no prices are known."""
    return "" if cost_usd is None else f"${cost_usd:.4f}" if cost_usd < 1 else f"${cost_usd:,.2f}"


def seconds(elapsed_s: float) -> str:
    """A length of time, short."""
    if elapsed_s < 60:
        return f"{elapsed_s:.2f} s" if elapsed_s < 1 else f"{elapsed_s:.1f} s"
    return f"{int(elapsed_s // 60)} min {int(elapsed_s % 60):02d} s"


def counted(number: int, word: str) -> str:
    """``1 round``, ``2 rounds``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def size(text: str) -> str:
    """How long a text is."""
    return counted(len(text), "character")


def _is_short(fact: object) -> bool:
    return isinstance(fact, bool | int | float | str) and len(str(fact)) <= 60
