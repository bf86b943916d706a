"""Requests as bytes.

A conversation only grows, so each message is written once and its bytes are used again in every later request of the
run; the messages come last in the body, so that a request is a prefix of the next one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pydantic_core import to_json

from reactflow.errors import ConfigurationError
from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from reactflow.model import ToolSpec
from reactflow.wire.calls import is_object_text
from reactflow.wire.reply import CALL_FIELDS, REASONING, THINK
from reactflow.wire.text import clean_value

RESERVED: Final = frozenset({"messages", "model", "stream", "tools"})
OF_THE_CLIENT: Final = {
    "max_retries": "say OpenAIChatModel(retries=...)",
    "default_headers": "say OpenAIChatModel(headers=...)",
    "extra_headers": "say OpenAIChatModel(headers=...)",
    "timeout": "say OpenAIChatModel(timeout=...)",
    "default_query": "put it into the base_url",
    "extra_query": "put it into the base_url",
    "organization": 'say OpenAIChatModel(headers={"OpenAI-Organization": ...})',
    "project": 'say OpenAIChatModel(headers={"OpenAI-Project": ...})',
    "http_client": "the framework keeps its own connections, leave it out",
}
"""Settings of the openai library's client and calls, which are no part of a request's body, and what to do instead."""
NEEDS_TOOLS: Final = frozenset({"parallel_tool_calls", "tool_choice"})
EMPTY_RESULT: Final = "(no output)"
EMPTY_QUESTION: Final = "(no text)"
"""What is sent in place of a text that servers would refuse as empty."""

PIECE_BYTES: Final = 1 << 18


@dataclass(slots=True)
class Written:
    """What was already written in one run.

    Args:
        messages: The bytes of each message, by the message's identity; the message is kept so that this stays its.
        tools: The tools that the run offered last.
        systems: System messages with instructions added, so that an equal one is the same one.
    """

    messages: dict[int, tuple[Message, bytes]] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()
    systems: dict[Message, Message] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MessageWriter:
    """Writes messages.

    Args:
        replay_reasoning: Whether thinking goes back to the server: True, False, or None for "with tool calls only",
            which is what servers want that care.
    """

    replay_reasoning: bool | None = None

    def write(self, messages: Iterable[Message], written: Written) -> list[bytes]:
        """The bytes of each message that has something to say, in order."""
        known = written.messages
        pieces: list[bytes] = []
        for message in messages:
            entry = known.get(id(message))
            if entry is None:
                known[id(message)] = entry = (message, self._bytes(message))
            if entry[1]:
                pieces.append(entry[1])
        return pieces

    def _bytes(self, message: Message) -> bytes:
        fields = self._fields(message)
        return dump(fields) if fields else b""

    def _fields(self, message: Message) -> dict[str, Any]:
        match message:
            case SystemMessage(text):
                return {"role": "system", "content": text} if text.strip() else {}
            case UserMessage(text, images):
                return {"role": "user", "content": _parts(text, images) if images else text_or(text, EMPTY_QUESTION)}
            case ToolMessage(text, call_id):
                return {"role": "tool", "tool_call_id": call_id, "content": text_or(text, EMPTY_RESULT)}
            case AssistantMessage():
                return self._assistant(message)

    def _assistant(self, message: AssistantMessage) -> dict[str, Any]:
        replays = bool(message.tool_calls) if self.replay_reasoning is None else self.replay_reasoning
        text = message.text
        if replays and (think := message.extra.get(THINK)):
            text = f"<think>{think}</think>\n\n{text}"
        if not text.strip() and not message.tool_calls:
            return {}
        fields: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else None}
        if message.tool_calls:
            vendor = message.extra.get(CALL_FIELDS, {})
            fields["tool_calls"] = [
                {"id": call.id, "type": "function", "function": _function(call.name, call.arguments)}
                | vendor.get(call.id, {})
                for call in message.tool_calls
            ]
        for name, value in message.extra.items():
            if name not in (THINK, CALL_FIELDS, *fields) and (replays or name not in REASONING):
                fields[name] = value
        return fields


def _function(name: str, arguments: str) -> dict[str, str]:
    """What cannot be read is not sent back: many servers decode the arguments, and fail."""
    return {"name": name, "arguments": arguments if is_object_text(arguments) else "{}"}


def _parts(text: str, images: Iterable[str]) -> list[dict[str, Any]]:
    words = [{"type": "text", "text": text}] if text.strip() else []
    return [*words, *({"type": "image_url", "image_url": {"url": url}} for url in images)]


def text_or(text: str, default: str) -> str:
    """*text*, or *default* where it is blank."""
    return text if text.strip() else default


def dump(value: Any) -> bytes:
    """JSON bytes; lone surrogates become U+FFFD, and numbers that JSON has none for become null.

    Raises:
        ValueError: The value cannot be written as JSON.
    """
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError:  # pydantic's own error is one too
        return to_json(clean_value(value), inf_nan_mode="null")


@lru_cache(maxsize=1024)
def _tool(spec: ToolSpec) -> bytes:
    parameters = spec.parameters or {"type": "object", "properties": {}}
    function: dict[str, Any] = {"name": spec.name, "parameters": dict(parameters)}
    if spec.description.strip():
        function["description"] = spec.description
    return dump({"type": "function", "function": function})


def write_tools(tools: Iterable[ToolSpec]) -> bytes:
    """The ``tools`` of a request.

    Raises:
        ConfigurationError: A tool's parameters cannot be written as JSON.
    """
    try:
        return b"[" + b",".join(map(_tool, tools)) + b"]"
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"The parameters of a tool cannot be written as JSON: {error}") from None


def write_options(options: Mapping[str, Any], *, with_tools: bool) -> dict[str, bytes]:
    """The fields that model options add to a request; an option that is None is left out.

    Raises:
        ConfigurationError: An option is no JSON, or is one that only the framework sets.
    """
    written: dict[str, bytes] = {}
    for name, value in options.items():
        if value is None or (name in NEEDS_TOOLS and not with_tools):
            continue
        if name in RESERVED:
            raise ConfigurationError(
                f"The option {name!r} is set by the framework; leave it out of the model's options."
            )
        if name in OF_THE_CLIENT:
            raise ConfigurationError(f"{name!r} is no option of a model, but of a client: {OF_THE_CLIENT[name]}.")
        if name == "extra_body":
            written.update(write_options(value, with_tools=with_tools))
            continue
        try:
            written[name] = json.dumps(value, ensure_ascii=True, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"The option {name}={value!r:.80} cannot be written as JSON: {error}") from None
    return written


def join_body(fields: Mapping[str, bytes], messages: Sequence[bytes]) -> bytes:
    """The body of a request, the messages (one or more) last."""
    head = b"".join(b"%s:%s," % (json.dumps(name).encode(), value) for name, value in fields.items())
    pieces = list(messages)
    pieces[0] = b"{" + head + b'"messages":[' + pieces[0]
    pieces[-1] += b"]}"
    return b",".join(pieces)  # nothing is added to what is joined: each time all would be copied again


async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
    """*body* in pieces: writing a large one at a stroke would hold up the event loop."""
    for at in range(0, len(body), PIECE_BYTES):
        yield body[at : at + PIECE_BYTES]
