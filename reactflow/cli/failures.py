"""Errors as a user should meet them: one paragraph with the next step, and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from reactflow.cli.reasons import ExitCode, code_of_error, explain_error
from reactflow.cli.terminal import clean, say


def tell(console: Console, error: BaseException, *, debug: bool = False) -> None:
    """Print *error* as a paragraph; with *debug* after its traceback."""
    if debug:
        console.print(clean("".join(traceback.format_exception(error))), style="dim", soft_wrap=True)
    say(console, ("Error: ", "bold red"), clean(explain_error(error)), wrap=True)


@contextmanager
def telling(console: Console, *, debug: bool = False) -> Iterator[None]:
    """Turn whatever comes out into a message on *console* and the exit code for it."""
    try:
        yield
    except KeyboardInterrupt:
        say(console, ("Interrupted.", "yellow"))
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except BrokenPipeError:
        _close_quietly()
        raise typer.Exit(ExitCode.NO_READER) from None
    except Exception as error:
        tell(console, error, debug=debug)
        raise typer.Exit(code_of_error(error)) from error


def _close_quietly() -> None:
    """Nobody reads any more: give Python something to flush into at exit, or it complains."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.__stdout__.fileno() if sys.__stdout__ else 1)
