"""Tool calls as text, for models and servers that have no native ones.

Writing: tools are described in the system message, and the calls and results of a conversation become plain words.
Reading: a call is taken from ``<tool_call>`` tags, from a JSON object that is the whole reply, or from the envelope of
the JSON mode.  An ordinary answer is never turned into a call: only what stands where a call would stand and names an
offered tool is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from reactflow.model import ToolSpec
from reactflow.wire.calls import RawCall, is_object_text, settle_arguments, settle_name
from reactflow.wire.reply import Heard, decode

ToolMode: TypeAlias = Literal["native", "json_schema", "text"]
"""How tools are offered: by the API's own means, by a JSON Schema for the reply, or by words."""

READ_FROM_TEXT: Final = "The model wrote a tool call as text; it was read as a call."
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
    """The calls in a reply that is, as a whole or in one code block, a JSON object or a list of such objects."""
    text = text.strip()
    fenced = _FENCED.match(text)
    value = _decoded(fenced[1] if fenced else text)
    entries = value if isinstance(value, list) else [value]
    calls = [_read_object(entry, offered, bare=True) for entry in entries]
    return [call for call in calls if call is not None] if all(calls) else []


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
        return decode(text.encode("utf-8", "replace"))
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


def read_text(heard: Heard, mode: ToolMode, offered: Collection[str]) -> bool:
    """Take the calls out of a reply that wrote them as text; whether they are to be flagged as read from text."""
    if mode == "json_schema":
        heard.calls, heard.text = read_envelope(heard.text, offered)
        return False
    heard.calls, heard.text = read_tagged(heard.text, offered)
    if mode == "text" and not heard.calls and (calls := read_bare(heard.text, offered)):
        heard.calls, heard.text = calls, ""
    return bool(heard.calls)


def describe(tools: Iterable[ToolSpec], mode: ToolMode) -> str:
    """What the system message says of the tools."""
    listed = "\n".join(
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
            ensure_ascii=False,
        )
        for tool in tools
    )
    if mode == "json_schema":
        how = (
            'Reply with one JSON object and nothing else: {"tool": "<name>", "arguments": {...}} to use a tool, '
            'or {"answer": "..."} once you can answer.'
        )
    else:
        how = (
            "To use one, reply with nothing but\n<tool_call>\n"
            '{"name": "<name>", "arguments": {...}}\n</tool_call>\n'
            "once for each call. Once you can answer, reply in plain words."
        )
    return f"You can use these tools:\n<tools>\n{listed}\n</tools>\n{how}\nResults come to you in <tool_response>."


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
    forms = [
        _form(tool={"const": tool.name}, arguments=_nestable(tool.parameters))
        for tool in tools
        if choice in (None, "auto", "required", tool.name)
    ]
    if not forms or choice in (None, "auto", "none"):
        forms.append(_form(answer=_nestable(answer) if answer is not None else {"type": "string"}))
    return {"type": "object", "anyOf": forms}


def _form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _nestable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that may stand inside another: references point to its own root, so one with any is only an object."""
    return {"type": "object"} if '"$ref"' in json.dumps(schema) else {"type": "object", **schema}


def in_words(messages: Iterable[Message], mode: ToolMode) -> list[Message]:
    """The conversation with its tool calls and results as text; users and assistants take turns."""
    said: list[Message] = []
    for message in messages:
        spoken = _in_words(message, mode)
        last = said[-1] if said else None
        if isinstance(spoken, UserMessage) and isinstance(last, UserMessage):
            said[-1] = UserMessage(f"{last.text}\n\n{spoken.text}", (*last.images, *spoken.images))
        else:
            said.append(spoken)
    return said


def _in_words(message: Message, mode: ToolMode) -> Message:
    if isinstance(message, ToolMessage):
        body = message.text.replace("</tool_response", "</ tool_response")
        return UserMessage(f'<tool_response name="{message.name}">\n{body}\n</tool_response>')
    if isinstance(message, AssistantMessage) and message.tool_calls:
        calls = [_call_in_words(call.name, call.arguments, mode) for call in message.tool_calls]
        words = [message.text] if message.text.strip() and mode == "text" else []
        return AssistantMessage("\n".join([*words, *calls]), extra=message.extra)
    return message


def _call_in_words(name: str, arguments: str, mode: ToolMode) -> str:
    settled = arguments if is_object_text(arguments) else "{}"
    if mode == "json_schema":
        return f'{{"tool": {json.dumps(name)}, "arguments": {settled}}}'
    return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {settled}}}\n</tool_call>'


def instructed(messages: Iterable[Message], *instructions: str) -> list[Message]:
    """The conversation with *instructions* added to its system message, which is made where there is none."""
    rest = list(messages)
    first = [rest.pop(0).text] if rest and isinstance(rest[0], SystemMessage) else []
    text = "\n\n".join(part for part in (*first, *instructions) if part.strip())
    return [SystemMessage(text), *rest] if text else rest
