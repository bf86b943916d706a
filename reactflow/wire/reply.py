"""Replies of chat servers: decode them, say what they hold, and make a response of it.

A reply is read by what it carries, not by what it says of itself: ``finish_reason`` decides nothing that the payload
can decide.  What cannot be read raises :class:`BadReply`; nothing is silently empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_core import from_json

from reactflow.frozen import FrozenDict
from reactflow.messages import AssistantMessage, Usage, readable
from reactflow.model import ChatResponse
from reactflow.wire.calls import RawCall, read_calls, settle_calls
from reactflow.wire.text import PairJoiner, ThinkSplitter, clean_value

THINK: Final = "think"
"""Where ``AssistantMessage.extra`` keeps thinking that came inside the text, between ``<think>`` tags."""

CALL_FIELDS: Final = "call_fields"
"""Where ``AssistantMessage.extra`` keeps the vendor's fields of single calls, by call id."""

REASONING: Final = ("reasoning_content", "reasoning")
"""Fields that carry thinking as text."""

_VENDOR = re.compile(r"reason|think|thought|signature|encrypted|extra_content|provider_specific")

_FINISH: Final[Mapping[str, str]] = FrozenDict(
    {
        "length": "length",
        "max_tokens": "length",
        "max_output_tokens": "length",
        "model_length": "length",
        "model_context_window_exceeded": "length",
        "content_filter": "content_filter",
        "content_filtered": "content_filter",
        "safety": "content_filter",
        "sensitive": "content_filter",
        "prohibited_content": "content_filter",
        "recitation": "content_filter",
        "blocklist": "content_filter",
        "refusal": "refusal",
    }
)
"""Finish reasons that say more than the payload does.  All others mean: finished."""

_BROKEN: Final = frozenset(
    {"error", "abort", "network_error", "insufficient_system_resource", "malformed_function_call"}
)
"""Finish reasons of a reply that the server itself gave up."""


class BadReply(ValueError):
    """A reply that is an error, or no reply at all.

    Attributes:
        error: The error that the server reported, or None.
        retryable: Whether asking again may help, where *error* does not tell.
        body: The beginning of the reply, once it is known.
    """

    body: str | None = None

    def __init__(self, what: str, *, error: Any = None, retryable: bool = True) -> None:
        super().__init__(what)
        self.error = error
        self.retryable = retryable


@dataclass(slots=True)
class Heard:
    """All that one reply said, before it is settled.

    Args:
        text: The visible words.
        think: Thinking that came inside the text.
        refusal: What the model said in refusing.
        calls: The tool calls.
        extra: The provider's own fields, reasoning included.
        finish: The finish reason as the server wrote it, or None.
        usage: Tokens, or None where the server said nothing.
    """

    text: str = ""
    think: str = ""
    refusal: str = ""
    calls: list[RawCall] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    finish: str | None = None
    usage: Usage | None = None


def decode(data: bytes, joiner: PairJoiner | None = None) -> Any:
    """Decode JSON bytes; lone surrogates become U+FFFD.

    Args:
        data: The bytes.
        joiner: Of the series that they are a part of; a half that ends a text may belong to the next one.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        value = from_json(data)
        return joiner.join(value) if joiner is not None and joiner.held else value
    except ValueError:
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"), strict=False)
        return clean_value(value) if joiner is None else joiner.join(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_reply(data: bytes) -> Heard:
    """Read a whole reply.

    Raises:
        BadReply: It is an error, or cannot be read.
    """
    text = data.strip()
    if not text:
        raise BadReply("The reply is empty")
    if text.startswith(b"<"):
        raise BadReply("The reply is a web page, not JSON", retryable=False)
    try:
        body = decode(text)
    except ValueError as error:
        raise BadReply(f"The reply is not JSON ({error})") from None
    try:
        return hear(body)
    except RecursionError:
        raise BadReply("The reply is nested too deeply", retryable=False) from None


def hear(body: Any) -> Heard:
    """Read the decoded body of a whole reply.

    Raises:
        BadReply: It is an error, or cannot be read.
    """
    if isinstance(body, list) and len(body) == 1:
        body = body[0]  # Google wraps its errors so
    choice = first_choice(body)
    if choice is None:
        raise BadReply("The reply has no choices")
    message = choice.get("message") or choice.get("delta")
    if message is None and isinstance(choice.get("text"), str):
        message = {"content": choice["text"]}
    if not isinstance(message, dict):
        raise BadReply("The reply has no message")
    heard = Heard(finish=read_finish(choice), usage=read_usage(body.get("usage")))
    try:
        words, thought = read_content(message.get("content"))
        heard.calls = read_calls(message)
    except ValueError as error:
        raise BadReply(f"The reply cannot be read: {error}") from None
    heard.text, heard.think = split_thinking(words)
    heard.think = thought + heard.think
    refusal = message.get("refusal")
    heard.refusal = refusal if isinstance(refusal, str) else ""
    heard.extra = vendor_fields(message)
    return heard


def first_choice(body: Any) -> Mapping[str, Any] | None:
    """The choice that counts in a body or an event: the one with index 0, or the first; None where there is none.

    Raises:
        BadReply: The body is an error, or no object.
    """
    if not isinstance(body, dict):
        raise BadReply(f"The reply is {type(body).__name__}, not an object")
    refuse_error(body)
    choices = body.get("choices")
    if isinstance(choices, dict):
        choices = [choices]
    if not isinstance(choices, list):
        if choices is None and any(key in body for key in ("detail", "message", "errors", "error_msg")):
            raise BadReply("The reply is an error", error=body)
        if choices is not None:
            raise BadReply(f"The reply's choices are {choices!r:.80}")
        return None
    known = [choice for choice in choices if isinstance(choice, dict)]
    if choices and not known and any(choice is not None for choice in choices):
        raise BadReply(f"The reply's choices are {choices!r:.80}")
    choice = next((choice for choice in known if choice.get("index") in (0, None)), known[0] if known else None)
    if choice is not None:
        refuse_error(choice)
    return choice


def refuse_error(body: Mapping[str, Any]) -> None:
    """Raise the error that a body reports in spite of its status 200.

    Raises:
        BadReply: There is one.
    """
    error = body.get("error")
    if error and isinstance(error, (dict, str, list)):
        raise BadReply("The reply is an error", error=error)


def read_content(content: Any) -> tuple[str, str]:
    """The words and the thinking of a message's content: text, or a list of parts.

    Raises:
        ValueError: It is neither.
    """
    if content is None or isinstance(content, str):
        return content or "", ""
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        raise ValueError(f"its content is {content!r:.80}")
    words: list[str] = []
    thoughts: list[str] = []
    for part in content:
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, dict):
            kind = str(part.get("type"))
            text = _part_text(part)
            (thoughts if kind in ("thinking", "reasoning") else words).append(text)
        elif part is not None:
            raise ValueError(f"a part of its content is {part!r:.80}")
    return "".join(words), "".join(thoughts)


def _part_text(part: Mapping[str, Any]) -> str:
    for key in ("text", "thinking", "reasoning", "refusal", "content"):
        value = part.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return "".join(_part_text(inner) for inner in value if isinstance(inner, dict))
    return ""


def split_thinking(text: str) -> tuple[str, str]:
    """The answer and the thinking of a whole text."""
    if "<" not in text:
        return (text if text.strip() else ""), ""
    splitter = ThinkSplitter()
    words: list[str] = []
    thoughts: list[str] = []
    for kind, piece in (*splitter.feed(text), *splitter.close()):
        if kind == "withdrawn":
            thoughts, words = [*words, *thoughts], []
        else:
            (words if kind == "text" else thoughts).append(piece)
    return "".join(words), "".join(thoughts)


def vendor_fields(message: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the provider wants back: reasoning, signatures, envelopes of its own."""
    return {
        name: value
        for name, value in message.items()
        if value not in (None, "", [], {}) and _VENDOR.search(name) and name != THINK
    }


def read_finish(choice: Mapping[str, Any]) -> str | None:
    """The finish reason as the server wrote it, or None.

    Raises:
        BadReply: The server says that it gave up.
    """
    finish = choice.get("finish_reason")
    if not isinstance(finish, str) or not finish:
        return None
    if finish.lower() in _BROKEN:
        raise BadReply(f"The server gave up its reply (finish_reason {finish!r})", error=choice.get("error"))
    return finish


def read_usage(usage: Any) -> Usage | None:
    """The tokens of one call, or None where the server did not say, or said 0 of everything."""
    if not isinstance(usage, dict):
        return None
    read = _count(usage, "prompt_tokens", "input_tokens")
    written = _count(usage, "completion_tokens", "output_tokens")
    total = _count(usage, "total_tokens")
    if total is not None and (read is None) != (written is None):
        read, written = (
            (max(0, total - written), written) if written is not None else (read, max(0, total - (read or 0)))
        )
    if read is None or written is None or read + written == 0:
        return None
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else None
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens", "cached_tokens") or 0
    return Usage(read, written, min(cached, read))


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 and value == value // 1:
            return int(value)
    return None


def settle(heard: Heard, *, offered: Collection[str], used: Iterable[str]) -> ChatResponse:
    """Make a response of what was heard.

    Args:
        heard: The reply.
        offered: The names of the tools that the request offered.
        used: The call ids that the conversation has already.
    """
    calls, call_fields = settle_calls(heard.calls, offered=offered, used=set(used)) if heard.calls else ((), {})
    text = readable(heard.text)
    refused = bool(heard.refusal.strip())
    if refused and not text.strip():
        text = readable(heard.refusal)
    extra = clean_value(heard.extra) if heard.extra else {}
    if heard.think:
        extra[THINK] = readable(heard.think)
    if call_fields:
        extra[CALL_FIELDS] = clean_value(call_fields)
    finish = _FINISH.get((heard.finish or "").lower())
    if refused and finish is None:
        finish = "refusal"
    message = AssistantMessage(text, calls, FrozenDict(extra))
    return ChatResponse(message, heard.usage, finish or ("tool_calls" if calls else "stop"))
