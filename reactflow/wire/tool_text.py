"""Tool calls as text, for models and servers whose native ones are no good.

Reading: a call is taken from ``<tool_call>`` tags, from a JSON object that is the whole reply, or from the envelope of
the JSON mode.  An ordinary answer is never turned into a call: only what stands where a call would stand and names an
offered tool is one.  Writing, in the JSON mode only: tools are described in the system message, and the calls and
results of a conversation become plain words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage, readable
from reactflow.model import ToolSpec
from reactflow.wire.calls import RawCall, is_object_text, settle_arguments, settle_name
from reactflow.wire.reply import Heard, decode

ToolMode: TypeAlias = Literal["native", "json_schema", "text"]
"""How tools are offered and called: by the API's own means, by a JSON Schema for the reply, or offered by the API's
means and called in whatever text the model writes."""

READ_FROM_TEXT: Final = "The model wrote a tool call as text; it was read as a call."
LOOKS_LIKE_CALL: Final = "The answer looks like a tool call written as text; tool_mode='text' would run it."
"""What a run is warned of."""

_TAGS = "tool_call|function_call|tools"
_TAGGED = re.compile(rf"^[ \t]*<({_TAGS})>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"```(?:json|tool_call)?\s*(.*?)\s*```\Z", re.DOTALL)
_NAMES: Final = ("name", "tool", "tool_name", "function")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")
_NAMED = re.compile(r"[\"'](?:name|tool|function)[\"']\s*:\s*[\"']([^\"']*)")


def read_tagged(text: str, offered: Collection[str]) -> tuple[list[RawCall], str]:
    """Calls between tags at the start of a line, outside code, and the text that is left.

    A reply that begins with a tag is meant as a call even where it cannot be read: it becomes a call that fails, so
    that the model is told.
    """
    calls: list[RawCall] = []
    rest: list[str] = []
    at = 0
    for block in _TAGGED.finditer(text):
        if text[: block.start()].count("```") % 2:
            continue
        call = _read_object(_decoded(block[2]), offered, bare=False)
        if call is None and not text[: block.start()].strip():
            named = _NAMED.search(block[2])
            call = RawCall(None, named[1] if named else None, block[2])
        if call is not None:
            calls.append(call)
            rest.append(text[at : block.start()])
            at = block.end()
    return calls, "".join([*rest, text[at:]]).strip() if calls else text


def read_bare(text: str, offered: Collection[str]) -> list[RawCall]:
    """The calls in a reply that is, as a whole or in one code block, a JSON object, a list of them, or one a line."""
    text = text.strip()
    fenced = _FENCED.match(text)
    calls: list[RawCall] = []
    for entry in _entries(fenced[1] if fenced else text):
        call = _read_object(entry, offered, bare=True)
        if call is None:
            return []
        if call not in calls:  # a small model repeats itself
            calls.append(call)
    return calls


def _entries(text: str) -> list[Any]:
    """The JSON values in *text*: one, those of a list, or one a line."""
    value = _decoded(text)
    if value is None:
        return [_decoded(line) for line in text.splitlines() if line.strip()]
    return value if isinstance(value, list) else [value]


def read_envelope(text: str, offered: Collection[str]) -> tuple[list[RawCall], str]:
    """A call or an answer from the envelope of the JSON mode; other text is an answer as it stands."""
    fenced = _FENCED.match(text.strip())
    value = _decoded(fenced[1] if fenced else text)
    if not isinstance(value, dict):
        return [], text
    if isinstance(value.get("tool"), str):
        return [RawCall(None, value["tool"], value.get("arguments"))], ""
    if "answer" in value and len(value) == 1:
        answer = value["answer"]
        return [], answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    call = _read_object(value, offered, bare=True)
    return ([call], "") if call else ([], text)


def _decoded(text: str) -> Any:
    try:
        return decode(readable(text).encode())
    except ValueError:
        return None


def _read_object(value: Any, offered: Collection[str], *, bare: bool) -> RawCall | None:
    """*value* as a call of an offered tool, or None; a bare one must have nothing but a name and its arguments."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if name is None or settle_name(name, offered) not in offered:
        return None
    readable = is_object_text(settle_arguments(arguments))
    if bare and (arguments is None or not readable or value.keys() - {*_NAMES, *_ARGUMENTS, "id", "type"}):
        return None
    return RawCall(None, name, arguments)


def uses_envelope(messages: Iterable[Message], tools: Collection[ToolSpec], mode: ToolMode) -> bool:
    """Whether the reply is to come in the envelope of the JSON mode: where there are calls to make, or were any."""
    if mode != "json_schema":
        return False
    return bool(tools) or any(isinstance(message, ToolMessage) for message in messages)


def read_text(heard: Heard, mode: ToolMode, offered: Collection[str]) -> str | None:
    """Take the calls out of a reply that wrote them as text; return what the run is to be warned of, if anything."""
    if mode == "json_schema":
        heard.calls, heard.text = read_envelope(heard.text, offered)
        return None
    heard.calls, heard.text = read_tagged(heard.text, offered)
    if not heard.calls and (calls := read_bare(heard.text, offered)):
        if mode == "native":
            return LOOKS_LIKE_CALL
        heard.calls, heard.text = calls, ""
    return READ_FROM_TEXT if heard.calls else None


GO_ON: Final = 'If this is enough, reply with {"answer": "..."}; do not repeat a call.'
"""Said behind results: a small model that is not told goes on calling."""


def describe(tools: Iterable[ToolSpec]) -> str:
    """What the system message says of the tools in the JSON mode."""
    listed = "\n".join(
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
            ensure_ascii=False,
        )
        for tool in tools
    )
    return (
        f"You can use these tools:\n<tools>\n{listed}\n</tools>\n"
        'Reply with one JSON object and nothing else: {"tool": "<name>", "arguments": {...}} to use a tool, '
        'or {"answer": "..."} once you know what is asked for.\nResults come in <tool_response>.'
    )


def describe_schema(schema: Mapping[str, Any]) -> str:
    """What the system message says of the form of the answer."""
    return (
        f"Answer with JSON that satisfies this JSON Schema, and nothing else:\n{json.dumps(schema, ensure_ascii=False)}"
    )


def envelope_schema(tools: Iterable[ToolSpec], choice: str | None, answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """The JSON Schema of a reply in the JSON mode: a call of one of *tools*, or an answer.

    Args:
        tools: What may be called.
        choice: The request's tool choice.
        answer: The schema of the answer; None for text.
    """
    calls = [
        _form(tool={"const": tool.name}, arguments=_nestable(tool.parameters))
        for tool in tools
        if choice in (None, "auto", "required", tool.name)
    ]
    answers = [_form(answer=_nestable(answer) if answer is not None else {"type": "string"})]
    return {"type": "object", "anyOf": [*calls, *(answers if not calls or choice in (None, "auto") else [])]}


def _form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _nestable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that may stand inside another: references point to its own root, so one with any is only an object."""
    return {"type": "object"} if '"$ref"' in json.dumps(schema) else {"type": "object", **schema}


def in_words(messages: Iterable[Message]) -> list[Message]:
    """The conversation with its tool calls and results as text; users and assistants take turns."""
    said: list[Message] = []
    for message in messages:
        spoken = _in_words(message)
        last = said[-1] if said else None
        if isinstance(spoken, UserMessage) and isinstance(last, UserMessage):
            said[-1] = UserMessage(f"{last.text}\n\n{spoken.text}", (*last.images, *spoken.images))
        else:
            said.append(spoken)
    return [_told_to_go_on(message) for message in said]


def _told_to_go_on(message: Message) -> Message:
    if isinstance(message, UserMessage) and message.text.endswith("</tool_response>"):
        return replace(message, text=f"{message.text}\n\n{GO_ON}")
    return message


def _in_words(message: Message) -> Message:
    if isinstance(message, ToolMessage):
        body = message.text.replace("</tool_response", "</ tool_response")
        return UserMessage(f'<tool_response name="{message.name}">\n{body}\n</tool_response>')
    if isinstance(message, AssistantMessage) and message.tool_calls:
        calls = [_call_in_words(call.name, call.arguments) for call in message.tool_calls]
        return AssistantMessage("\n".join(calls), extra=message.extra)
    return message


def _call_in_words(name: str, arguments: str) -> str:
    settled = arguments if is_object_text(arguments) else "{}"
    return f'{{"tool": {json.dumps(name)}, "arguments": {settled}}}'


def instructed(messages: Iterable[Message], *instructions: str) -> list[Message]:
    """The conversation with *instructions* added to its system message, which is made where there is none."""
    rest = list(messages)
    first = [rest.pop(0).text] if rest and isinstance(rest[0], SystemMessage) else []
    text = "\n\n".join(part for part in (*first, *instructions) if part.strip())
    return [SystemMessage(text), *rest] if text else rest
