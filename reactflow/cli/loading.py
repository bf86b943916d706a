"""The user's own agents and tools, by ``module:attribute``."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from contextlib import redirect_stdout
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast, runtime_checkable

from reactflow.errors import ConfigurationError, ReactflowError


@runtime_checkable
class Streaming(Protocol):
    """An agent or a workflow: anything whose ``astream(question)`` yields events."""

    def astream(self, question: str) -> Any:
        """Ask, and yield events."""
        ...


def load_agent(spec: str) -> Any:
    """The agent or workflow at *spec*, or what the function there makes.

    Raises:
        ConfigurationError: There is none; says what was found and what to write.
    """
    found = load("--agent", spec)
    if callable(found) and (inspect.isclass(found) or not isinstance(found, Streaming)):
        found = made_by(found, spec)
    if not isinstance(found, Streaming):
        raise ConfigurationError(
            f"--agent {spec}: {found!r:.80} has no astream(); "
            "name an agent, a workflow, or a function without arguments that makes one."
        )
    return found


def made_by(make: Any, spec: str) -> Any:
    """What *make*, the function or the class at *spec*, makes of nothing.

    Raises:
        ConfigurationError: It fails, or is an async function.
    """
    try:
        with redirect_stdout(sys.stderr):  # standard output is for answers
            made = make()
    except ReactflowError:
        raise
    except Exception as error:  # user code: anything may come out
        raise ConfigurationError(f"--agent {spec}: calling it failed: {_facts(error)}. {DEBUG}") from error
    if inspect.iscoroutine(made):
        made.close()
        raise ConfigurationError(f"--agent {spec} is an async function; name one that is not, or an agent.")
    return made


def load(option: str, spec: str) -> Any:
    """The object at *spec*: ``package.module:name`` or ``path/to/file.py:name``.  The current folder is searched first.

    Args:
        option: What the user typed it for, for the error.
        spec: Module and attribute; the attribute may have dots.

    Raises:
        ConfigurationError: The module, or the attribute, is not there or fails.
    """
    place, _, path = spec.rpartition(":")
    if not place or not path:
        raise ConfigurationError(f"{option} {spec}: write module:attribute, such as my_agent:agent.")
    if sys.path[:1] != [str(Path.cwd())]:
        sys.path.insert(0, str(Path.cwd()))
    found: Any = _module(option, spec, place)
    for name in path.split("."):
        if not hasattr(found, name):
            near = get_close_matches(name, [each for each in dir(found) if not each.startswith("_")], cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else "."
            raise ConfigurationError(f"{option} {spec}: {place} has no {name!r}{hint}")
        found = getattr(found, name)
    return found


def _module(option: str, spec: str, place: str) -> ModuleType:
    try:
        with redirect_stdout(sys.stderr):  # standard output is for answers; what a module prints is none
            return _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except FileNotFoundError as error:
        raise ConfigurationError(f"{option} {spec}: there is no file {place}.") from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise ConfigurationError(f"{option} {spec}: {place} needs {error.name!r}; install it.") from error
        raise ConfigurationError(
            f"{option} {spec}: there is no module {error.name!r} in {Path.cwd()} or among the installed packages."
        ) from error
    except (Exception, SystemExit) as error:  # user code: anything may come out
        raise ConfigurationError(f"{option} {spec}: loading {place} failed: {_facts(error)}. {DEBUG}") from error


def _from_file(path: Path) -> ModuleType:
    path = path.resolve(strict=True)
    sys.path.insert(0, str(path.parent))  # what lies beside it can be imported, as where Python runs the file
    spec = cast(Any, importlib.util.spec_from_file_location(path.stem, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


DEBUG = "Run it again with --debug to see where."


def _facts(error: BaseException) -> str:
    return f"{type(error).__name__}{f': {error}' if str(error) else ''}"
