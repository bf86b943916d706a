"""What a conversation is made of: messages, tool calls and token counts.

Every value here is frozen; a change is a copy (``dataclasses.replace``).  The messages follow the roles of the
OpenAI chat API, because every server that reactflow talks to speaks it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reactflow.frozen import EMPTY


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Standing instructions.  An agent sends exactly one, first."""

    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person asked, or what the framework says in the user's place.

    Args:
        text: The words.
        images: ``https:`` or ``data:`` URLs shown beside the text, in order.
        synthetic: Who wrote a message that no user wrote (``"reflection"``, ``"max_rounds"``); None for a real
            one.  Every rule about "the user's message" skips synthetic ones.
    """

    text: str
    images: tuple[str, ...] = ()
    synthetic: str | None = None


def readable(text: str) -> str:
    """Return *text* with surrogate pairs joined and each lone surrogate replaced by U+FFFD, which UTF-8 can carry."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.80} is no text")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool the model asks for.

    Args:
        id: Links the call to its :class:`ToolMessage`; unique within a conversation.
        name: The tool's name.
        arguments: The JSON text as the model wrote it; blank means ``{}``.
    """

    id: str
    name: str
    arguments: str = "{}"

    def read_arguments(self) -> dict[str, Any]:
        """Decode the arguments; ``null`` and blank text are ``{}``.

        Raises:
            ValueError: The text is not strict JSON (``NaN`` is none), or not a JSON object.
        """
        try:
            value = json.loads(self.arguments, parse_constant=_refuse_constant) if self.arguments.strip() else {}
        except RecursionError:
            raise ValueError("the arguments are nested too deeply") from None
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ValueError(
                f"the arguments must be a JSON object, not {type(value).__name__}: {self.arguments[:200]!r}"
            )
        return value


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model said.

    Args:
        text: The visible words; may be empty where there are tool calls.
        tool_calls: The tools it asks for, in order.
        extra: Fields of the provider (reasoning content, signatures), replayed unchanged.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    extra: Mapping[str, Any] = field(default=EMPTY, hash=False)


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of one tool call, or an error that tells the model what to do next."""

    text: str
    call_id: str
    name: str
    is_error: bool = False


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage
"""Anything that can stand in a conversation."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server reported them; adds with ``+``.

    Args:
        input_tokens: Tokens read, cached ones included, >= 0.
        output_tokens: Tokens written, reasoning included, >= 0.
        cached_tokens: The part of *input_tokens* that came from a prompt cache.
        model_calls: How many calls this counts.
        unknown_calls: How many of them the server reported nothing for.  Their tokens are unknown, not 0.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    model_calls: int = 1
    unknown_calls: int = 0

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.model_calls + other.model_calls,
            self.unknown_calls + other.unknown_calls,
        )


NO_USAGE = Usage(0, 0, model_calls=0)


def is_real_user(message: Message) -> bool:
    """Whether a person wrote this message."""
    return isinstance(message, UserMessage) and message.synthetic is None


def last_question(messages: Sequence[Message]) -> UserMessage | None:
    """The newest message that a person wrote, or None."""
    for message in reversed(messages):
        if isinstance(message, UserMessage) and message.synthetic is None:
            return message
    return None


def this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """What came after the newest message that a person wrote, oldest first."""
    for index in range(len(messages) - 1, -1, -1):
        if is_real_user(messages[index]):
            return messages[index + 1 :]
    return messages


def estimate_tokens(text: str) -> int:
    """Guess the tokens of *text*: one per four ASCII characters, one per other character, rounded up.

    Errs on the high side for Chinese and most European text; used only where a server reports nothing.
    """
    ascii_chars = len(text.encode("ascii", "ignore"))
    return -(-ascii_chars // 4) + len(text) - ascii_chars
