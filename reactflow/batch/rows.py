"""Rows of a file, and what of a row is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from reactflow.errors import ConfigurationError
from reactflow.messages import readable

_COLUMN: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Record:
    """One row as it was read.

    Args:
        number: Its place in the file, from 1.
        data: Its columns; what could be read of it where it has a flaw.
        flaw: Why it cannot be used, or None.
    """

    number: int
    data: Mapping[str, Any]
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row, ready to be asked.

    Args:
        record: What was read.
        key: Names it; the same in a later run over the same file.
        prompt: What is asked; None where it cannot be said.
        flaw: Why not.
    """

    record: Record
    key: str
    prompt: str | None
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """Makes prompts and keys of rows.

    Args:
        prompt: A column's name, or a text with ``{column}`` in it; ``{{`` and ``}}`` stand for braces.
        key: The column that names a row; None for ``id`` where there is one, else the row's number.
    """

    prompt: str = "prompt"
    key: str | None = None

    def read(self, record: Record) -> Row:
        """The row of *record*.  What is wrong with it is its flaw; nothing is raised."""
        key, flaw = self._key(record)
        if record.flaw or flaw:
            return Row(record, key, None, record.flaw or flaw)
        try:
            return Row(record, key, self._prompt(record.data))
        except _NoText as error:
            return Row(record, key, None, str(error))

    def check(self, first: Record) -> None:
        """Raise ConfigurationError where the first row lacks a column that is asked for: a mistake in the call."""
        needed = [self.key] if self.key is not None else []
        missing = [name for name in (*needed, *self._columns()) if name not in first.data]
        if missing and not first.flaw:
            known = ", ".join(map(str, first.data)) or "none"
            raise ConfigurationError(
                f"There is no column {missing[0]!r}; the first row has: {known}. "
                "Say what to ask with --prompt, a column or a text such as 'Claim: {description}'."
            )

    def _columns(self) -> list[str]:
        if "{" not in self.prompt:
            return [self.prompt]
        return [found[1] for found in _COLUMN.finditer(self.prompt) if found[1] is not None]

    def _key(self, record: Record) -> tuple[str, str | None]:
        name = "id" if self.key is None else self.key
        value = record.data.get(name)
        if value is None or value == "":
            flaw = None if self.key is None else f"Column {name!r}, the key, is empty."
            return f"#{record.number}", flaw
        return as_text(value), None

    def _prompt(self, data: Mapping[str, Any]) -> str | None:
        if "{" not in self.prompt:
            return _text_of(data, self.prompt)
        found = [_text_of(data, name) for name in self._columns()]
        if None in found:
            return None  # as in SQL: a text with an unknown part is unknown
        texts = iter(found)

        def replaced(match: re.Match[str]) -> str:
            return match[0][0] if match[1] is None else next(texts) or ""

        return _COLUMN.sub(replaced, self.prompt)


class _NoText(Exception):
    pass


def _text_of(data: Mapping[str, Any], name: str) -> str | None:
    if name not in data:
        raise _NoText(f"The row has no column {name!r}.")
    value = data[name]
    return None if value is None else as_text(value)


def as_text(value: Any) -> str:
    """*value* as a prompt shows it: a text as it is, what JSON knows as JSON, anything else (a date) as its text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return json.dumps(value)  # NaN is a text, but no JSON
    return as_json(value) if isinstance(value, bool | int | None | Mapping | list | tuple) else str(value)


def as_json(value: Any) -> str:
    """*value* as one line of JSON that UTF-8 can carry.

    Null stands for a number that JSON does not know (NaN, infinity), a text for anything else without a form there.
    """
    try:
        line = json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except (TypeError, ValueError):  # a name that is no text, or such a number: look at each
        line = json.dumps(_known(value), ensure_ascii=False, default=str, allow_nan=False)
    return readable(line)


def _known(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key if isinstance(key, str | int | None) else str(key): _known(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_known(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
