"""The demos that come with the package."""

from __future__ import annotations

import ast
import runpy
import sys
from collections.abc import Sequence
from importlib import resources

from reactflow.errors import ConfigurationError

PACKAGE = "reactflow.demos"


def demo_names() -> list[str]:
    """The demos, sorted."""
    files = (each.name for each in resources.files(PACKAGE).iterdir())
    return sorted(name.removesuffix(".py") for name in files if name.endswith(".py") and not name.startswith("_"))


def about(name: str) -> str:
    """The first line of a demo's docstring."""
    source = resources.files(PACKAGE).joinpath(f"{name}.py").read_text("utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def run_demo(name: str, arguments: Sequence[str]) -> None:
    """Run a demo as ``python -m`` does.

    Raises:
        ConfigurationError: There is no such demo.
    """
    if name not in demo_names():
        raise ConfigurationError(f"There is no demo {name!r}; there are {', '.join(demo_names())}.")
    sys.argv = [name, *arguments]
    runpy.run_module(f"{PACKAGE}.{name}", run_name="__main__", alter_sys=True)
