"""The command line as a user meets it: typed words in, two streams and an exit code out."""

import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog
from typer.testing import CliRunner

from reactflow.cli.app import app


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder of this test's own, and nothing left behind in the process."""
    monkeypatch.setenv("REACTFLOW_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["reactflow"])
    yield tmp_path / "state"
    structlog.reset_defaults()


@pytest.fixture
def reactflow() -> Callable[..., Ended]:
    """Run a command in this process, with no terminal at either end."""

    def run(*arguments: str, input: str | None = None) -> Ended:
        ended = CliRunner().invoke(app, [*arguments], input=input, prog_name="reactflow")
        assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
        return Ended(ended.exit_code, ended.stdout, ended.stderr)

    return run


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put things into a module called ``own``, so that ``--agent own:name`` finds them."""
    module = types.ModuleType("own")
    monkeypatch.setitem(sys.modules, "own", module)

    def put(**things: Any) -> None:
        for name, thing in things.items():
            setattr(module, name, thing)

    return put
