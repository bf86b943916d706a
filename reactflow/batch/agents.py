"""The agent of a job: an object in Python, or a spec from a TOML, YAML or SQL file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reactflow.batch.journal import hash_of
from reactflow.errors import ConfigurationError
from reactflow.specs.catalog import Catalog
from reactflow.specs.files import read_file
from reactflow.specs.values import digest
from reactflow.sql.commands import carry_out, is_ours
from reactflow.sql.tokens import split

SPEC_FILES: Final = (".toml", ".yaml", ".yml", ".sql")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The agent of a job.

    Args:
        agent: A spec, or an object.
        fingerprint: What tells it from others in the journal.
        catalog: Where its secrets are; empty for an object.
    """

    agent: Any
    fingerprint: str
    catalog: Catalog


def choose(given: str, load: Callable[[str], Any], catalog: Catalog | None = None) -> Chosen:
    """The agent called *given*.

    Args:
        given: ``module:attribute``; or the path of a file of specs, with ``:name`` where it defines several agents.
        load: Finds an object at ``module:attribute``.
        catalog: What the file adds to.

    Raises:
        ConfigurationError: There is none, or it breaks a rule.
    """
    catalog = catalog or Catalog()
    path, name = _file_and_name(given)
    if path is None:
        agent = load(given)
        return Chosen(agent, hash_of(f"{given}\n{_source(given)}")[:16], catalog)
    if path.suffix.lower() == ".sql":
        _read_sql(path, catalog)
    else:
        read_file(path, catalog)
    spec = catalog.agent(name) if name else catalog.main_agent()
    return Chosen(spec, digest(spec), catalog)


def _file_and_name(given: str) -> tuple[Path | None, str]:
    path, _, name = given.rpartition(":")
    for file, agent in ((given, ""), (path, name)):
        if Path(file).suffix.lower() in SPEC_FILES:
            return Path(file), agent
    return None, ""


def _read_sql(path: Path, catalog: Catalog) -> None:
    """The definitions of a script; what else it says is left alone."""
    try:
        script = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    for statement in split(script):
        if is_ours(statement):
            carry_out(statement, catalog)


def _source(given: str) -> str:
    """The text of the module that *given* names: where it changes, earlier answers are not this agent's."""
    name = given.rpartition(":")[0]
    file = name if name.endswith(".py") else getattr(sys.modules.get(name), "__file__", None)
    try:
        return Path(file).read_text("utf-8") if file else ""
    except (OSError, ValueError):
        return ""
