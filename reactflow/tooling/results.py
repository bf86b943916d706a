"""What the model gets to read of what a tool returned or raised."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from reactflow.result import AgentResult

MAX_ERROR_CHARS = 1000
"""How much of an exception's own message the model gets to read."""

MAX_ITEMS = 100_000
"""How many items of an iterator are read before it counts as endless."""


def as_text(value: object) -> str:
    """Text passes unchanged; anything else is written as JSON once, non-ASCII readable.

    Models, dataclasses, enums, dates, decimals, sets, arrays with ``tolist`` and views become what JSON has for them;
    bytes become text where they are UTF-8, else base64; NaN and infinity become words.  The result of an agent is
    its answer; an iterator is read like a list.

    Raises:
        Exception: The value, or something in it, has no JSON form, or an iterator does not end.
    """
    if isinstance(value, str):
        return str.__str__(value)  # the plain text of a subclass too, such as a str enum
    if isinstance(value, AgentResult):
        return value.text
    if isinstance(value, Iterator):
        value = _items(value)
    try:
        return to_json(value, inf_nan_mode="strings", fallback=_plain).decode()
    except PydanticSerializationError:  # bytes that are no UTF-8, or a lone surrogate: both have a JSON form
        readable = to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="strings", fallback=_plain)
        return json.dumps(readable, ensure_ascii=False, separators=(",", ":"))


def _items(iterator: Iterator[Any]) -> list[Any]:
    items = list(islice(iterator, MAX_ITEMS + 1))
    if len(items) > MAX_ITEMS:
        raise TypeError(f"an iterator of more than {MAX_ITEMS} items; return a list of those that matter")
    return items


def _plain(value: Any) -> Any:
    """What pydantic does not know: arrays and numbers of numpy, ranges, views, mappings."""
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Collection) and not isinstance(value, type):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def shorten(text: str, limit: int | None) -> str:
    """The first *limit* characters of *text*, with a note of how many were left out."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit} of {len(text)} characters were left out]"


def words_of(error: BaseException, limit: int | None = MAX_ERROR_CHARS) -> str:
    """The message of *error*, shortened; empty where it has none or cannot say it."""
    try:
        return shorten(str(error).strip(), limit)
    except Exception:  # a broken __str__ must not hide that the tool failed
        return ""
