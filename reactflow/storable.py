"""Messages in the form in which they may be kept: of the right types, read-only, and free of lone surrogates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reactflow.errors import ConfigurationError
from reactflow.frozen import FrozenDict, FrozenList
from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage, readable


def storable(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return *messages* as they may be kept; system messages are left out.

    Lone surrogates become U+FFFD, because no encoding can write them.  What ``extra`` holds is copied and made
    read-only, so that nobody can change a stored message from outside.

    Raises:
        ConfigurationError: *messages* is no series of messages; names the first bad one.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise ConfigurationError(f"Memory takes a list of messages, not {messages!r:.80}.")
    kept: list[Message] = []
    for index, message in enumerate(messages):
        if not isinstance(message, SystemMessage):
            try:
                kept.append(_storable(message))
            except (TypeError, AttributeError) as error:  # a field is of the wrong type
                raise ConfigurationError(
                    f"Memory cannot keep {message!r:.80} (number {index} of the list): {error}. "
                    "Give UserMessage, AssistantMessage or ToolMessage."
                ) from error
    return tuple(kept)


def _storable(message: Message) -> Message:
    text = readable(message.text)
    match message:
        case UserMessage():
            return replace(message, text=text, images=tuple(map(readable, message.images)))
        case AssistantMessage():
            if not isinstance(message.extra, Mapping):
                raise TypeError(f"{message.extra!r:.80} is no mapping")
            calls = tuple(map(_storable_call, message.tool_calls))
            return replace(message, text=text, tool_calls=calls, extra=frozen(message.extra))
        case ToolMessage():
            return replace(message, text=text, call_id=readable(message.call_id), name=readable(message.name))
    raise TypeError(f"it is a {type(message).__name__}")


def _storable_call(call: ToolCall) -> ToolCall:
    return replace(call, id=readable(call.id), name=readable(call.name), arguments=readable(call.arguments))


def frozen(value: Any) -> Any:
    """Copy *value*, dicts and lists within it included, into read-only ones with readable text."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, Mapping):
        return FrozenDict({frozen(key): frozen(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenList(map(frozen, value))
    return tuple(map(frozen, value)) if type(value) is tuple else value
