"""Names of columns: those of an input in the output, and those that would become one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from reactflow.frozen import EMPTY
from reactflow.messages import readable

RESULT: Final = ("status", "response", "metadata")
"""The columns that are added to those of the input."""


def output_names(columns: Iterable[str], known: Mapping[str, str] = EMPTY) -> dict[str, str]:
    """What the *columns* of an input are called in the output: as they are, except those that a job adds.

    Such a one gets ``input_`` before it, as often as it takes to be a name that no other column has.  Those in *known*
    have their names already and keep them, whatever comes later.
    """
    names = {**known, **{name: name for name in columns if name not in known}}
    taken = {*known.values(), *RESULT}
    for name in sorted(names.keys() - known.keys(), key=lambda name: (name in RESULT, name)):
        while names[name] in taken:
            names[name] = f"input_{names[name]}"
        taken.add(names[name])
    return names


def readable_names(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The members of a JSON object with names that UTF-8 can carry; two that would become one are numbered."""
    data = dict(pairs)
    taken = {name for name in data if readable(name) == name}
    last: Counter[str] = Counter()
    return {name if name in taken else _free(readable(name), taken, last): value for name, value in data.items()}


def _free(name: str, taken: set[str], last: Counter[str]) -> str:
    """*name*, with the next number where it is *taken*; takes it."""
    own = name
    while own in taken:
        last[name] += 1
        own = f"{name}_{last[name] + 1}"
    taken.add(own)
    return own


def warn_of_extra(
    row: Mapping[str, Any], columns: Collection[str], warnings: list[str], names: Mapping[str, str] = EMPTY
) -> None:
    """Say where *row* has more than the *columns* of the output; *names* are those of the input's, by which it is told.

    Args:
        row: By the names of the output.
        columns: Those of the output.
        warnings: Where to say it, once, and 20 in all.
        names: What columns of the input are called in the output, where that is another name.
    """
    extra = [name for name in row if name not in columns]
    if not extra or len(warnings) >= 20:
        return
    asked = {own: name for name, own in names.items()}
    told = ", ".join(repr(asked.get(name, name)) for name in extra)
    warning = f"The output has no column for {told}, so it was left out; JSON lines keep it."
    if warning not in warnings:
        warnings.append(warning)
