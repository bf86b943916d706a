"""Tool calls as servers send them, made into what an agent can rely on.

Three rules: an id is unique in its conversation, a name can be sent back, and arguments are either the JSON text of
an object or what the model wrote, untouched.  Nothing is repaired: a tool never runs on a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from pydantic_core import from_json

from reactflow.messages import ToolCall, readable
from reactflow.wire.text import clean_value

UNNAMED: Final = "unnamed"
"""The name of a call that came without one; no tool has it, so the model is told."""

MAX_ID_CHARS: Final = 64
PREFIXES: Final = ("functions.", "default_api.", "default_api:")
"""What some models put before a tool's name: the namespace of their prompt format."""

_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
_UNREADABLE: Final = object()


@dataclass(slots=True)
class RawCall:
    """A tool call as a server sent it, whole or put together from fragments.

    Args:
        id: Text, or anything else where the server did not care.
        name: As written.
        arguments: Text, an object, or anything else.
        extra: The vendor's own fields of the call, such as signatures.
    """

    id: Any = None
    name: Any = None
    arguments: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


def settle_arguments(raw: Any) -> str:
    """The JSON text of one object where *raw* can be read as one without guessing, else what the model wrote.

    Read are: nothing (``null``, blank, absent, an empty list), an object, its JSON text, that text inside a JSON
    string or a code fence, and the same text several times over.
    """
    if not isinstance(raw, str):
        return "{}" if raw is None or raw == [] else json.dumps(raw, ensure_ascii=False)
    text = raw.strip()
    if fenced := _FENCED.match(text):
        text = fenced[1]
    if text in ("", "null", "[]"):
        return "{}"
    value = _decode(text)
    if isinstance(value, str):
        text = value.strip() or "{}"
        value = _decode(text)
    if isinstance(value, dict):
        return text if is_object_text(text) else json.dumps(clean_value(value), ensure_ascii=False)
    return _said_once(text) or readable(raw)


def is_object_text(text: str) -> bool:
    """Whether *text* is strict JSON of an object, so that every server accepts it back."""
    try:
        return isinstance(from_json(text, allow_inf_nan=False), dict)
    except ValueError:
        return False


def _decode(text: str) -> Any:
    """Decode JSON that a careful reader would take in one way only: raw line breaks in strings are all right."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        pass
    try:
        return json.loads(text, strict=False, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _said_once(text: str) -> str | None:
    """The first of several objects in a row that are all equal, or None: some servers repeat the whole at the end."""
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
    values, at, first_end = [], 0, 0
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            first_end = first_end or at
            at += len(text[at:]) - len(text[at:].lstrip())
    except (ValueError, RecursionError):
        return None
    if not isinstance(values[0], dict) or any(value != values[0] for value in values):
        return None
    return settle_arguments(text[:first_end])


def settle_name(raw: Any, offered: Collection[str]) -> str:
    """The offered name that *raw* means, or a name that servers accept back."""
    name = raw.strip() if isinstance(raw, str) else ""
    if name in offered:
        return name
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    if name in offered:
        return name
    return _NOT_IN_NAMES.sub("_", name)[:64] or UNNAMED


def settle_calls(
    calls: Iterable[RawCall], *, offered: Collection[str], used: Collection[str]
) -> tuple[tuple[ToolCall, ...], dict[str, dict[str, Any]]]:
    """Make tool calls of raw ones.

    Args:
        calls: In the order in which the model asked for them.
        offered: The names of the tools that the request offered.
        used: The ids that the conversation has already.

    Returns:
        The calls, and the vendor's fields by call id.
    """
    taken = set(used)
    settled: list[ToolCall] = []
    extras: dict[str, dict[str, Any]] = {}
    for call in calls:
        call_id = readable(call.id).strip() if isinstance(call.id, str) else ""
        if not call_id or call_id in taken or len(call_id) > MAX_ID_CHARS:
            call_id = fresh_id(taken)
        taken.add(call_id)
        settled.append(ToolCall(call_id, settle_name(call.name, offered), settle_arguments(call.arguments)))
        if call.extra:
            extras[call_id] = call.extra
    return tuple(settled), extras


def fresh_id(taken: Collection[str]) -> str:
    """An id that is not among *taken*: nine letters and digits, the one form that every server accepts."""
    while (call_id := uuid4().hex[:9]) in taken:
        pass
    return call_id


def read_calls(message: Mapping[str, Any]) -> list[RawCall]:
    """The calls of a whole message, the legacy ``function_call`` included.

    Raises:
        ValueError: Something stands where the calls should be and is none.
    """
    raw = message.get("tool_calls")
    if isinstance(raw, dict):
        raw = [raw]
    if raw and not isinstance(raw, list):
        raise ValueError(f"tool_calls is {raw!r:.80}")
    if not raw:
        legacy = message.get("function_call")
        raw = [legacy] if isinstance(legacy, dict) and legacy.get("name") else []
    return [read_call(call) for call in raw if call is not None]


def read_call(call: Any) -> RawCall:
    """One call; its function may be nested, as it should be, or flat.

    Raises:
        ValueError: It is no object.
    """
    if not isinstance(call, dict):
        raise ValueError(f"a tool call is {call!r:.80}")
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    arguments = function.get("arguments")
    if arguments is None:
        arguments = function.get("parameters")
    extra = {key: value for key, value in call.items() if key in VENDOR_FIELDS and value is not None}
    name = function.get("name") or call.get("function")  # {"function": "add", "arguments": ...} is seen too
    return RawCall(call.get("id"), name, arguments, extra)


VENDOR_FIELDS: Final = frozenset({"extra_content", "thought_signature", "provider_specific_fields", "signature"})
"""Fields of a single call that a server wants back unchanged."""
