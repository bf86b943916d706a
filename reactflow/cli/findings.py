"""What the doctor finds, and how it is printed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.console import Console
from rich.text import Text

from reactflow.cli.reasons import ExitCode
from reactflow.cli.terminal import clean, indented, on_terminal, say, symbols_for

State: TypeAlias = Literal["good", "note", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Args:
        name: What.
        state: Whether it is as it should be; a ``"note"`` is worth knowing and nothing is broken.
        words: What was found.
        fix: What to do, where something is to be done.
        code: What the command ends with where this is bad.
    """

    name: str
    state: State
    words: str
    fix: str = ""
    code: ExitCode = ExitCode.PROVIDER


def show(console: Console, finding: Finding) -> None:
    """Print *finding*, and its fix below it."""
    signs = symbols_for(console)
    looks = {"good": (signs.good, "green"), "note": (signs.warning, "yellow"), "bad": (signs.bad, "red")}
    sign, style = looks[finding.state]
    words = re.sub(r"(?<=//)[^/\s@]+@", "***@", clean(finding.words))  # a URL may hold a password
    say(console, (f"{sign} {finding.name:<12}", style), words, wrap=True)
    if finding.fix:
        fix = indented(Text(clean(finding.fix)), 4, fold=on_terminal(console))
        console.print(fix, soft_wrap=not on_terminal(console))
