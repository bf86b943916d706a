"""What a role said, whatever kind of thing plays it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from reactflow.errors import ModelBehaviorError
from reactflow.messages import Message, readable
from reactflow.model import ChatResponse, cut_short
from reactflow.result import AgentResult, StopReason

NO_WHOLE_ANSWER = frozenset(
    {StopReason.TRUNCATED, StopReason.REFUSED, StopReason.FILTERED, StopReason.BLOCKED, StopReason.PAUSED}
)
"""Stop reasons of a text that must not pass for a good draft."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a role said.  ``str(reply)`` is the text.

    Args:
        text: The words, never blank.
        value: What was returned where that is no plain text: an agent's ``output``, a dict; else the text.
        flaw: Why this is no whole answer (cut, refused, filtered, blocked, paused); None where it is one.
        messages: The whole turn of an agent; it holds the evidence, its tool calls and results.
        warnings: What the agent warned of.
    """

    text: str
    value: Any = None
    flaw: StopReason | None = None
    messages: tuple[Message, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def read_reply(value: Any) -> Reply:
    """Make a reply of what a role returned.

    Texts, ``AgentResult`` and ``ChatResponse`` are read as what they are; any other value but None becomes JSON text.

    Raises:
        ModelBehaviorError: It is None, or it has no text.
    """
    if isinstance(value, Reply):
        reply = value
    elif isinstance(value, AgentResult):
        flaw = value.stop_reason if value.stop_reason in NO_WHOLE_ANSWER else None
        output = value.text if value.output is None else value.output
        reply = Reply(value.text, output, flaw, value.messages, value.warnings)
    elif isinstance(value, ChatResponse):
        reply = Reply(value.text, value.text, cut_short(value))
    else:
        reply = Reply(as_text(value), value)
    if not reply.text.strip():
        raise ModelBehaviorError(f"It returned {'nothing' if value is None else 'a blank text'}; a role must answer.")
    text = readable(reply.text)
    return (
        reply
        if text is reply.text
        else replace(reply, text=text, value=text if reply.value == reply.text else reply.value)
    )


def as_text(value: Any) -> str:
    """*value* as text: a string as it is, None as nothing, the rest as JSON, or by ``str`` where that cannot be."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return to_json(value).decode()
    except PydanticSerializationError:
        return str(value)
