"""The command line: ``reactflow ask``, ``chat``, ``demo``, ``doctor``, ``memory``, ``batch`` and ``sql``.

It needs the extra ``reactflow[cli]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

EXTRA = ("typer", "rich", "prompt_toolkit", "platformdirs")
"""What the extra brings; one of them missing means that it was not installed."""

app: Callable[..., Any] | None = None
missing = ""
try:
    from reactflow.cli.app import app
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    if missing not in EXTRA:
        raise


def main() -> None:
    """Run the command that was typed.  Ends the program."""
    if app is None:
        print(f"reactflow: the command line needs {missing}; run: pip install 'reactflow[cli]'", file=sys.stderr)
        raise SystemExit(2)
    app(prog_name="reactflow")
