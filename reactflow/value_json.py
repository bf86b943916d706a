"""The frozen values of a run as plain JSON data, and back: messages, usage, judgements, results, events.

A value is an object of its fields.  Where its place allows several types (a message, an event), ``type`` names it in
snake case.  Fields of any type (a context, an output) keep what JSON knows as it is; an object whose only key starts
with ``$`` marks the rest:

* ``{"$value": {...}}`` is one of reactflow's own values;
* ``{"$tuple": [...]}``, ``{"$pairs": [[key, value], ...]}`` and ``{"$float": "nan"}`` come back as what they were;
* ``{"$opaque": "Connection"}`` stands for what nothing can write, and comes back as the text ``<Connection>``.

All else (dates, sets, pydantic models, your own dataclasses) is written as pydantic writes it, and comes back plain.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic_core import to_jsonable_python

from reactflow.errors import ConfigurationError
from reactflow.frozen import FrozenDict
from reactflow.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage, readable
from reactflow.result import AgentResult, Issue, Judgement, Reflection

MESSAGES = (SystemMessage, UserMessage, AssistantMessage, ToolMessage)
VALUES = (*MESSAGES, ToolCall, Usage, Issue, Judgement, Reflection, AgentResult)
"""What is recognised where any type may stand; subclasses too."""

MAX_DEPTH = 64
"""How deep a value of any type is written; what lies deeper, as in a circle, is opaque."""


def tag(cls: type) -> str:
    """The name of *cls* in JSON: ``TextDelta`` is ``text_delta``."""
    return _snake_case(cls.__name__)


@cache
def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def to_data(value: Any, hint: Any = Any) -> Any:
    """Write *value* as JSON data: dicts, lists, texts, finite numbers, bools and None.

    Args:
        value: What to write.
        hint: The type of its place; where *value* is of another one, ``type`` names it.
    """
    classes = _classes(hint)
    if classes and isinstance(value, classes):
        return _value_to_data(value, hint)
    if isinstance(value, list | tuple) and (items := _item_hints(hint, len(value))) is not None:
        return [to_data(item, item_hint) for item, item_hint in zip(value, items, strict=True)]
    if isinstance(value, Mapping) and _classes(item_hint := _value_hint(hint)):
        return {readable(str(key)): to_data(item, item_hint) for key, item in value.items()}
    return _loose_to_data(value)


def from_data(data: Any, hint: Any = Any, where: str = "the value") -> Any:
    """Read what :func:`to_data` wrote.  Fields that this version does not know are left out.

    Args:
        data: JSON data, from a source that need not be trusted.
        hint: The type of the place, as in :func:`to_data`.
        where: What the place is called in errors.

    Raises:
        ConfigurationError: The data do not fit *hint*; names the place and what is there.
    """
    if members := _members(hint):
        return _from_union(data, members, where)
    if classes := _classes(hint):
        return _value_from_data(data, classes, where)
    if hint in (str, bool, int, float, NoneType):
        return _scalar_from_data(data, hint, where)
    if isinstance(hint, type) and issubclass(hint, Enum):
        values = [member.value for member in hint]
        _check(data in values, data, f"one of {values}", where)
        return hint(data)
    if get_origin(hint) is Literal:
        _check(data in get_args(hint), data, f"one of {list(get_args(hint))}", where)
        return data
    if get_origin(hint) in (tuple, list, Sequence):
        return _series_from_data(data, hint, where)
    if get_origin(hint) in (Mapping, dict):
        return _mapping_from_data(data, hint, where)
    return _loose_from_data(data, where)


def _value_to_data(value: Any, hint: Any) -> dict[str, Any]:
    cls: Any = type(value)
    named = {} if cls is hint else {"type": tag(cls)}
    return named | {name: to_data(getattr(value, name), field) for name, field in _fields(cls).items()}


def _value_from_data(data: Any, bases: Sequence[Any], where: str) -> Any:
    """Read one of *bases* or what derives from them; a single one stands for those that this program has not loaded."""
    _check(isinstance(data, dict), data, "an object", where)
    known = {tag(cls): cls for base in bases for cls in _with_subclasses(base)}
    cls = known.get(str(data.get("type")), bases[0] if len(bases) == 1 else None)
    if cls is None:
        raise _misfit(data.get("type"), f"one of {sorted(known)}", f"{where}.type")
    fields = _fields(cls)
    given = {name: from_data(data[name], fields[name], f"{where}.{name}") for name in fields if name in data}
    try:
        return cls(**given)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The JSON of a run cannot be read: {where} is no {tag(cls)}: {error}.") from error


def _with_subclasses(cls: Any) -> Iterator[Any]:
    """*cls* and what derives from it, later ones last: a slotted dataclass leaves its first draft behind."""
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)


@cache
def _fields(cls: type) -> dict[str, Any]:
    """The types of the fields that the constructor takes, by name."""
    try:
        hints = get_type_hints(cls)
    except NameError:  # a type that exists only while types are checked
        hints = {}
    return {field.name: hints.get(field.name, Any) for field in dataclasses.fields(cls) if field.init}


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else ()


@cache
def _classes(hint: Any) -> tuple[type, ...]:
    """The dataclasses that *hint* names."""
    return tuple(
        each for each in _members(hint) or (hint,) if isinstance(each, type) and dataclasses.is_dataclass(each)
    )


def _from_union(data: Any, members: tuple[Any, ...], where: str) -> Any:
    if data is None and NoneType in members:
        return None
    others = tuple(member for member in members if member is not NoneType)
    if len(others) > 1 and isinstance(data, dict) and (classes := [each for each in others if _classes(each)]):
        return _value_from_data(data, classes, where)
    for member in others[:-1]:
        try:
            return from_data(data, member, where)
        except ConfigurationError:
            continue
    return from_data(data, others[-1], where)


_WORDS: Mapping[Any, str] = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def _scalar_from_data(data: Any, hint: Any, where: str) -> Any:
    if hint is float and _marker(data) == "$float":
        return _loose_from_data(data, where)
    accepted = (int, float) if hint is float else hint
    fits = isinstance(data, accepted) and (hint is bool or not isinstance(data, bool))
    _check(fits, data, _WORDS.get(hint, "null"), where)
    return data


def _item_hints(hint: Any, length: int) -> Sequence[Any] | None:
    """The types of the items of a series of that length, or None where *hint* allows no such series."""
    for each in _members(hint) or (hint,):
        origin, args = get_origin(each), get_args(each)
        if origin is tuple and args[-1:] != (Ellipsis,):
            if len(args) == length:
                return args
        elif origin in (tuple, list, Sequence):
            return args[:1] * length
    return None


def _series_from_data(data: Any, hint: Any, where: str) -> Any:
    _check(isinstance(data, list), data, "a list", where)
    hints = _item_hints(hint, len(data))
    if hints is None:
        raise _misfit(data, f"a list of {len(get_args(hint))}", where)
    items = (from_data(item, hint, f"{where}[{at}]") for at, (item, hint) in enumerate(zip(data, hints, strict=True)))
    return list(items) if get_origin(hint) is list else tuple(items)


def _value_hint(hint: Any) -> Any:
    return get_args(hint)[1] if get_origin(hint) in (Mapping, dict) else Any


def _mapping_from_data(data: Any, hint: Any, where: str) -> FrozenDict[Any, Any]:
    _check(isinstance(data, dict), data, "an object", where)
    if not _classes(item_hint := _value_hint(hint)):
        data = _loose_from_data(data, where)
        _check(isinstance(data, dict), data, "an object", where)
        return FrozenDict(data)
    return FrozenDict({key: from_data(item, item_hint, f"{where}.{key}") for key, item in data.items()})


def _loose_to_data(value: Any, path: tuple[int, ...] = ()) -> Any:
    """Write a value whose type nothing says; *path* are the ids of what it lies in."""
    if value is None or isinstance(value, bool | int | float | str):
        return _loose_scalar(value)
    if id(value) in path or len(path) == MAX_DEPTH:
        return {"$opaque": type(value).__name__}
    try:
        return _loose_container(value, (*path, id(value)))
    except Exception:  # user code writes a user's value: anything may come out, and an event must not fail for it
        return {"$opaque": type(value).__name__}


def _loose_container(value: Any, path: tuple[int, ...]) -> Any:
    if isinstance(value, VALUES):
        return {"$value": _value_to_data(value, Any)}
    if isinstance(value, Mapping):
        items = [[_loose_to_data(key, path), _loose_to_data(item, path)] for key, item in value.items()]
        plain = all(isinstance(key, str) and not key.startswith("$") for key, _ in items)
        return dict(items) if plain else {"$pairs": items}
    if isinstance(value, list | tuple):
        written = [_loose_to_data(item, path) for item in value]
        return {"$tuple": written} if isinstance(value, tuple) else written
    # Never a repr, which may tell secrets.
    return _loose_to_data(to_jsonable_python(value, inf_nan_mode="constants", bytes_mode="base64"), path)


def _loose_scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return readable(value)
    return value if not isinstance(value, float) or math.isfinite(value) else {"$float": str(value)}


def _marker(data: Any) -> str | None:
    """The key of an object that marks a value JSON does not know."""
    key = next(iter(data)) if isinstance(data, dict) and len(data) == 1 else ""
    return key if key.startswith("$") else None


def _loose_from_data(data: Any, where: str) -> Any:
    if isinstance(data, list):
        return [_loose_from_data(item, where) for item in data]
    if not isinstance(data, dict):
        return data
    marker = _marker(data)
    if marker is None:
        return {key: _loose_from_data(item, f"{where}.{key}") for key, item in data.items()}
    return _marked_from_data(marker, data[marker], where)


def _marked_from_data(marker: str, content: Any, where: str) -> Any:
    try:
        match marker:
            case "$value":
                return _value_from_data(content, VALUES, where)
            case "$tuple":
                return tuple(_loose_from_data(item, where) for item in content)
            case "$pairs":
                return {_loose_from_data(key, where): _loose_from_data(item, where) for key, item in content}
            case "$float":
                return float(content)
            case "$opaque":
                return f"<{content}>"
    except (TypeError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise _misfit(content, f"what {marker} stands for", where) from error
    raise _misfit(marker, "one of $value, $tuple, $pairs, $float, $opaque", where)


def _check(fits: bool, data: Any, wanted: str, where: str) -> None:
    if not fits:
        raise _misfit(data, wanted, where)


def _misfit(data: Any, wanted: str, where: str) -> ConfigurationError:
    return ConfigurationError(f"The JSON of a run cannot be read: {where} is {data!r:.80}; it must be {wanted}.")
