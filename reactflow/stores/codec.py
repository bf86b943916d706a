"""Messages as JSON text: what databases keep and files carry.

One object a message: ``role`` (``user``, ``assistant``, ``tool``) and its fields, those with their usual value left
out.  Text stays readable; a NUL is escaped, so that every database takes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from reactflow.errors import ConfigurationError
from reactflow.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage, readable
from reactflow.storable import frozen


def encode(message: Message) -> str:
    """Write *message* as one line of JSON.

    Raises:
        ConfigurationError: It is a system message, which no store keeps, or its ``extra`` holds what JSON cannot.
    """
    try:
        return readable(json.dumps(_as_object(message), ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"A database cannot keep {message!r:.80}: {error}.") from error


def _as_object(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage(text, images, synthetic):
            optional: dict[str, Any] = {"images": images, "synthetic": synthetic}
            role = "user"
        case AssistantMessage(text, tool_calls, extra):
            calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in tool_calls]
            optional = {"tool_calls": calls, "extra": extra}
            role = "assistant"
        case ToolMessage(text, call_id, name, is_error):
            optional = {"call_id": call_id, "name": name, "is_error": is_error}
            role = "tool"
        case _:
            raise TypeError(f"{type(message).__name__} is not kept")
    return {"role": role, "text": text, **{key: value for key, value in optional.items() if value}}


def decode(line: str | bytes) -> Message:
    """Read what :func:`encode` wrote.

    Raises:
        ValueError: It is no such line; the text says why, without quoting it.
    """
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is no JSON") from error
    if not isinstance(fields, dict):
        raise ValueError("it is no JSON object")
    try:
        return _as_message(**fields)
    except (TypeError, AttributeError) as error:
        raise ValueError("it has a field too many, too few, or of the wrong type") from error


def _as_message(role: str, text: str, **fields: Any) -> Message:
    match role:
        case "user":
            return UserMessage(_text(text), *_user_fields(**fields))
        case "assistant":
            return AssistantMessage(_text(text), *_assistant_fields(**fields))
        case "tool":
            return ToolMessage(_text(text), *_tool_fields(**fields))
    raise TypeError(f"role {role!r:.20}")


def _user_fields(images: Iterable[str] = (), synthetic: str | None = None) -> tuple[tuple[str, ...], str | None]:
    return tuple(map(_text, images)), None if synthetic is None else _text(synthetic)


def _assistant_fields(
    tool_calls: Iterable[dict[str, str]] = (), extra: dict[str, Any] | None = None
) -> tuple[tuple[ToolCall, ...], Any]:
    return tuple(_call(**call) for call in tool_calls), frozen({} if extra is None else extra.copy())


def _call(id: str, name: str, arguments: str) -> ToolCall:
    return ToolCall(_text(id), _text(name), _text(arguments))


def _tool_fields(call_id: str, name: str, is_error: bool = False) -> tuple[str, str, bool]:
    return _text(call_id), _text(name), is_error is True


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} in place of text")
    return value


def encode_note(text: str) -> str:
    """Write a note so that every database takes it.

    Raises:
        ConfigurationError: *text* is no text.
    """
    if not isinstance(text, str):
        raise ConfigurationError(f"A note is a text, not {text!r:.80}.")
    return readable(json.dumps(text, ensure_ascii=False))


def decode_note(body: str | bytes) -> str:
    """Read what :func:`encode_note` wrote.

    Raises:
        ValueError: It is no such text.
    """
    text = json.loads(body)
    if not isinstance(text, str):
        raise ValueError("it is no text")
    return text
