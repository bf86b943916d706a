"""What may be written to a terminal, and how it looks there.

Answers, tool results and file names come from outside.  Before they reach a terminal, control characters in them are
made visible: an escape sequence could rename the window, fill the clipboard or rewrite what was printed.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from reactflow.messages import readable

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """*text* without anything that could steer a terminal: a control character becomes its picture, ESC is ``␛``."""
    return _CONTROL.sub(_picture, readable(text).replace("\r\n", "\n"))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def one_line(text: str, limit: int = 2_000) -> str:
    """*text* on one line, at most *limit* characters."""
    flat = " ".join(clean(text[: 2 * limit]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


@dataclass(frozen=True, slots=True)
class Symbols:
    """The signs at the start of a line, in a form that the terminal's encoding has."""

    good: str = "✓"
    bad: str = "✗"
    draft: str = "◆"
    again: str = "↻"
    model: str = "●"
    warning: str = "▲"
    dot: str = "·"
    frames: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


ASCII = Symbols(good="+", bad="x", draft="=", again="~", model="*", warning="!", dot="-", frames="|/-\\")


def symbols_for(console: Console) -> Symbols:
    """Signs that *console* can write."""
    return Symbols() if "utf" in console.encoding.lower() else ASCII


def make_console(file: IO[str] | None) -> Console:
    """A console that takes every text literally.  Colours, ``NO_COLOR`` and the width are rich's business.

    Args:
        file: Where it writes; nowhere where it is None, as in a program whose stream was closed from the start.
    """
    file = io.StringIO() if file is None else file
    if hasattr(file, "reconfigure"):
        file.reconfigure(errors="replace")  # an answer must not fail because a terminal lacks a character
    return Console(file=file, markup=False, emoji=False, highlight=False, legacy_windows=False)


def write_lines(file: IO[str], lines: Iterable[str]) -> None:
    """Write *lines* for a program, each with an end.  They are UTF-8, whatever the terminal's encoding."""
    raw: IO[bytes] = getattr(file, "buffer", io.BytesIO())  # there is none where the stream was closed from the start
    file.flush()
    for line in lines:
        raw.write(f"{line}\n".encode())
    file.flush()


def on_terminal(console: Console) -> bool:
    """Whether a person reads this: lines are cut and wrapped to the width only then.

    Not rich's ``is_terminal``, which ``FORCE_COLOR`` switches on in a pipe too.
    """
    return console.file.isatty()


def is_live(console: Console) -> bool:
    """Whether a part of the screen can be rewritten: a real terminal that can move its cursor."""
    return on_terminal(console) and console.is_terminal and not console.is_dumb_terminal


def say(console: Console, *parts: Any, wrap: bool = False) -> None:
    """Print *parts* as one line, cut to the terminal's width unless *wrap*; whole where there is no terminal."""
    line = join(parts)
    if wrap or not on_terminal(console):
        console.print(line, soft_wrap=not on_terminal(console))
    else:
        console.print(line, overflow="ellipsis", no_wrap=True)


def folding(text: Text) -> Text:
    """*text*, told to go on in the next line where it is too long."""
    text.overflow, text.no_wrap = "fold", False
    return text


def indented(text: Text, columns: int, *, fold: bool) -> RenderableType:
    """*text* so many columns in.

    Args:
        text: One paragraph or more.
        columns: How far in, >= 0.
        fold: Whether long lines go on in the next; without a terminal each stays one.
    """
    if fold:
        return Padding(folding(text), (0, 0, 0, columns))
    return Text("\n").join(Text(" " * columns).append_text(line) for line in text.split("\n"))


def join(parts: Iterable[Any]) -> Text:
    """One text of texts and of ``(words, style)``."""
    return Text.assemble(*parts)


def shown_size(console: Console) -> tuple[int, int]:
    """Columns and lines of the terminal, never so few that nothing fits."""
    return max(10, console.width), max(5, console.height)


def interactive() -> bool:
    """Whether a person sits at both ends: input and output are a terminal that can edit a line."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
