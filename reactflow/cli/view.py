"""A run as it happens, on a terminal or as plain lines.

What is over is printed and stays; what is under way (the call, running tools, the text so far) is drawn below it and
drawn again until it is over.  Without a terminal only the first is there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from reactflow.budget import Budget
from reactflow.cli.narrator import Narrator, called, counted, money, seconds, tokens
from reactflow.cli.progress import Progress
from reactflow.cli.terminal import clean, is_live, join, one_line, shown_size
from reactflow.events import Event, ToolFinished

REDRAWS_A_SECOND = 10


@dataclass(slots=True)
class PlainView:
    """One line for each thing that happened, for logs and pipes.

    Args:
        console: Where to print.
        progress: What the run has done so far.
    """

    console: Console
    progress: Progress = field(default_factory=Progress)
    narrator: Narrator = field(init=False)

    def __post_init__(self) -> None:
        self.narrator = Narrator.on(self.console)

    def show(self, event: Event) -> None:
        """Print what *event* says, if it says anything."""
        for line in self._lines(event):
            self.console.print(line, soft_wrap=True)

    def _lines(self, event: Event) -> Iterator[RenderableType]:
        arguments = ""
        if isinstance(event, ToolFinished) and event.call_id in self.progress.tools:
            arguments = self.progress.tools[event.call_id][0].arguments
        self.progress.take(event)
        return self.narrator.lines(event, self.progress, arguments)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Wrap this around the run."""
        yield


@dataclass(slots=True)
class LiveView(PlainView):
    """The same lines, and below them what is under way."""

    _live: Live | None = None

    def show(self, event: Event) -> None:
        """Print what *event* says above the moving part."""
        for line in self._lines(event):
            if isinstance(line, Text) and line.overflow != "fold":
                self.console.print(line, overflow="ellipsis", no_wrap=True)
            else:
                self.console.print(line)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Draw what is under way until the run is over; it leaves nothing behind."""
        with Live(
            console=self.console,
            get_renderable=self._moving,
            auto_refresh=False,
            transient=True,
            vertical_overflow="crop",
        ) as self._live:
            clock = asyncio.create_task(self._redraw())  # no thread: what is drawn is changed by this loop only
            try:
                yield
            finally:
                clock.cancel()
                await asyncio.wait([clock])

    async def _redraw(self) -> None:
        assert self._live is not None
        while True:
            self._live.refresh()
            await asyncio.sleep(1 / REDRAWS_A_SECOND)

    def _moving(self) -> RenderableType:
        return Group(*self._text_so_far(), *self._tools(), self._status())

    def _text_so_far(self) -> list[Text]:
        """The end of what is being written, as much as fits."""
        columns, lines = shown_size(self.console)
        room = max(1, min(12, lines - 4 - len(self.progress.tools)))
        text = self.progress.text
        if not text.strip():
            return []
        tail = Text(clean(text[-columns * room :]), overflow="fold", style="italic")
        return list(tail.wrap(self.console, columns))[-room:]

    def _tools(self) -> list[Text]:
        return [
            _cut((self._frame(), "cyan"), f" {called(tool.name, tool.arguments)}", (f" {ago(since)}", "dim"))
            for tool, since in self.progress.tools.values()
        ]

    def _status(self) -> Text:
        progress, dot = self.progress, self.narrator.symbols.dot
        facts = [
            *(f"{_who(started.role)}round {started.round}" for started in progress.models.values()),
            "thinking" if progress.thinking and progress.models and not progress.text else "",
            tokens(progress.usage),
            counted(progress.calls, "call") if progress.calls else "",
            money(progress.cost_usd),
            seconds(progress.elapsed_s),
        ]
        return _cut((self._frame(), "cyan"), (" " + f" {dot} ".join(fact for fact in facts if fact), "dim"))

    def _frame(self) -> str:
        frames = self.narrator.symbols.frames
        return frames[int(time.monotonic() * REDRAWS_A_SECOND) % len(frames)]


def make_view(console: Console, *, prices: Budget | None = None) -> PlainView:
    """The view that *console* can show."""
    return (LiveView if is_live(console) else PlainView)(console, Progress(prices))


def ago(since: float) -> str:
    """How long it is since *since* of the monotonic clock."""
    return seconds(time.monotonic() - since)


def _who(role: str) -> str:
    return "" if role == "agent" else f"{one_line(role)} "


def _cut(*parts: str | tuple[str, str]) -> Text:
    line = join(parts)
    line.overflow, line.no_wrap = "ellipsis", True
    return line
