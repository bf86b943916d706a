"""Names of columns: those of an input in the output, and those that would become one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from reactflow.messages import readable

RESULT: Final = ("status", "response", "metadata")
"""The columns that are added to those of the input."""


def output_names(columns: Iterable[str]) -> dict[str, str]:
    """What the *columns* of an input are called in the output: as they are, except those that a job adds.

    Such a one gets ``input_`` before it, as often as it takes to be a name that no other column has.
    """
    names = {name: name for name in columns}
    for name in RESULT:
        if name in names:
            names[name] = input_name(name, names)
    return names


def input_name(name: str, taken: Collection[str] = ()) -> str:
    """What the input column *name* is called in the output, where the others are called as in *taken*."""
    if name not in RESULT:
        return name
    own = f"input_{name}"
    while own in taken:
        own = f"input_{own}"
    return own


def readable_names(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The members of a JSON object with names that UTF-8 can carry; two that would become one are numbered."""
    data = dict(pairs)
    whole = {name for name in data if readable(name) == name}
    found: dict[str, Any] = {}
    for name, value in data.items():
        found[name if name in whole else _free(readable(name), whole | found.keys())] = value
    return found


def _free(name: str, taken: Collection[str]) -> str:
    own, number = name, 1
    while own in taken:
        number += 1
        own = f"{name}_{number}"
    return own


def warn_of_extra(row: Mapping[str, Any], columns: Collection[str], warnings: list[str]) -> None:
    """Say where *row* has more than the *columns* of the output."""
    extra = [name for name in row if name not in columns]
    warning = f"The first row has no column {', '.join(map(repr, extra))}, so it was left out; JSON lines keep it."
    if extra and warning not in warnings and len(warnings) < 20:
        warnings.append(warning)
