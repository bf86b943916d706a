"""Catalogues from TOML and YAML files: the same clauses and options as in SQL, one table for each definition.

[connections.openai]
type = "openai"
endpoint = "https://api.openai.com/v1"
api-key = "${OPENAI_API_KEY}"

[models.claims]
connection = "openai"
model_version = "gpt-4o"

[agents.extractor]
model = "claims"
prompt = "Extract a JSON object ..."

[agents.intake]
type = "reflection"
agents = ["extractor", "critic"]
max_iterations = 3
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from reactflow.errors import ConfigurationError, SpecError, near
from reactflow.specs.catalog import Catalog, known_kind
from reactflow.specs.making import KINDS, Definition, Kind

_CLAUSES: Final[Mapping[Kind, tuple[str, ...]]] = {
    "connection": (),
    "model": ("input", "output"),
    "tool": ("function", "connection"),
    "agent": ("model", "prompt", "tools", "agents"),
    "function": ("reference",),
}

_TABLES: Final = tuple(f"{kind}s" for kind in KINDS)


def read_file(path: str | Path, catalog: Catalog) -> None:
    """Add what the file at *path* defines to *catalog*.

    Raises:
        ConfigurationError: It cannot be read, or breaks a rule of creation; says which table and why.
    """
    path = Path(path)
    try:
        data = _load_yaml(path) if path.suffix.lower() in (".yaml", ".yml") else tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    read_data(data, catalog, name=path.name)


def _load_yaml(path: Path) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ConfigurationError("YAML files need the extra 'batch': pip install 'reactflow[batch]'.") from error
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def read_data(data: Any, catalog: Catalog, *, name: str = "the data") -> None:
    """Add what *data* defines to *catalog*: ``{"connections": {name: {...}}, "models": ..., ...}``.

    Args:
        data: As a TOML or YAML file gives it.
        catalog: Where it goes; definitions may be in any order.
        name: What errors call the data.

    Raises:
        ConfigurationError: It breaks a rule of creation, or is not of this form.
    """
    given = _definitions(data, name)
    while given:
        ready = [each for each in given if not any((kind, used) in _ids(given) for kind, used in each.uses())]
        if not ready:
            names = ", ".join(each.title for each in given)
            raise ConfigurationError(f"{name}: {names} need each other in a circle.")
        for each in ready:
            try:
                catalog.create(each)
            except SpecError as error:
                raise SpecError(f"{name}: {error}", where=error.where) from error
        given = [each for each in given if each not in ready]


def _ids(given: list[Definition]) -> set[tuple[str, str]]:
    return {(each.kind, each.name) for each in given}


def _definitions(data: Any, name: str) -> list[Definition]:
    if not isinstance(data, Mapping) or not all(isinstance(table, Mapping) for table in data.values()):
        raise ConfigurationError(f"{name} must hold tables called {', '.join(_TABLES)}.")
    found = []
    for title, table in data.items():
        kind = known_kind(str(title))
        if kind is None:
            raise ConfigurationError(f"{name} has a table {title!r}; {near(str(title), _TABLES)}.")
        found += [_definition(kind, str(each), fields, name) for each, fields in table.items()]
    return found


def _definition(kind: Kind, title: str, fields: Any, name: str) -> Definition:
    if kind == "function" and isinstance(fields, str):
        fields = {"reference": fields}
    if not isinstance(fields, Mapping):
        raise ConfigurationError(f"{name}: {kind} {title!r} must be a table of its own.")
    clauses: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in fields.items():
        field = str(key).lower()
        if field in _CLAUSES[kind]:
            clauses[field] = _clause(field, value, f"{name}: {kind} {title!r}")
        elif field == "allowed_tools" and isinstance(value, list):
            options[field] = ", ".join(map(str, value))
        elif field == "params" and isinstance(value, Mapping):
            options |= {f"params.{option}": _option(setting) for option, setting in value.items()}
        elif field != "comment":
            options[field] = value
    if kind == "tool" and "type" not in options:
        options["type"] = "function" if "function" in clauses else "mcp"
    comment = str(fields.get("comment", ""))
    return Definition(kind=kind, name=title, clauses=clauses, options=options, comment=comment)


def _option(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _clause(field: str, value: Any, what: str) -> Any:
    if field in ("tools", "agents"):
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise ConfigurationError(f"{what}: {field} must be a list of names.")
        return tuple(names)
    if field in ("input", "output"):
        if not isinstance(value, Mapping):
            raise ConfigurationError(f"{what}: {field} must be a table of columns and types.")
        return tuple((str(column), str(kind)) for column, kind in value.items())
    if not isinstance(value, str):
        raise ConfigurationError(f"{what}: {field} must be a text.")
    return value
