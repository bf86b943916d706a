"""What the strictest real servers refuse in a chat request.

Every rule here is one that some server answers with a 400: a program whose requests pass all of them can talk to
each of those servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

_FIELDS = """audio enable_thinking frequency_penalty function_call functions logit_bias logprobs max_completion_tokens
max_tokens messages metadata min_p modalities model n parallel_tool_calls prediction presence_penalty prompt_cache_key
reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature
tool_choice tools top_k top_logprobs top_p user verbosity web_search_options"""

KNOWN_FIELDS = frozenset(_FIELDS.split())
"""The fields of a chat request that OpenAI or the common servers document."""

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


def read_request(data: bytes) -> tuple[Any, list[str]]:
    """Decode a request body as a strict server does.

    Returns:
        The decoded body, or None where it is no JSON, and what is wrong with its encoding.
    """
    try:
        body = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        return None, [f"the body is not UTF-8: {error}"]
    except (ValueError, RecursionError) as error:
        return None, [f"the body is not JSON: {error}"]
    if re.search(rb"\\u[dD][89a-fA-F]", data) and _has_lone_surrogate(body):
        return body, ["the body holds a lone surrogate"]
    return body, []


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _has_lone_surrogate(body: Any) -> bool:
    try:
        json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def check_request(body: Any, *, strict_fields: bool = False) -> list[str]:
    """Say what is illegal in a decoded chat request.

    Args:
        body: The decoded JSON.
        strict_fields: Whether a top-level field outside :data:`KNOWN_FIELDS` is illegal too.

    Returns:
        One sentence for each violation; empty for a legal request.
    """
    if not isinstance(body, dict):
        return ["the body is not a JSON object"]
    return [*_fields(body, strict_fields), *_tools(body), *_messages(body.get("messages"))]


def _fields(body: Mapping[str, Any], strict: bool) -> Iterator[str]:
    if not _is_text(body.get("model")):
        yield "model must be a non-empty string"
    if not isinstance(body.get("stream", False), bool):
        yield "stream must be a boolean"
    if "stream_options" in body and body.get("stream") is not True:
        yield "stream_options is only allowed when stream is true"
    if strict:
        yield from (f"unknown field {name!r}" for name in sorted(body.keys() - KNOWN_FIELDS))


def _tools(body: Mapping[str, Any]) -> Iterator[str]:
    if "tools" not in body:
        yield from (
            f"{name} is only allowed beside tools" for name in ("tool_choice", "parallel_tool_calls") if name in body
        )
        return
    tools = body["tools"]
    if not isinstance(tools, list) or not tools:
        yield "tools must be a non-empty list"
        return
    names: set[str] = set()
    for index, tool in enumerate(tools):
        yield from _tool(f"tools[{index}]", tool, names)
    yield from _tool_choice(body, names)


def _tool(place: str, tool: Any, names: set[str]) -> Iterator[str]:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type") != "function":
        yield f"{place} must have the type 'function' and a function"
        return
    name = function.get("name")
    if not isinstance(name, str) or not NAME.match(name):
        yield f"{place}.function.name {name!r} must be 1 to 64 of a-z, A-Z, 0-9, _ and -"
    elif name in names:
        yield f"{place}: two tools are called {name!r}"
    else:
        names.add(name)
    if not isinstance(function.get("description", ""), str):
        yield f"{place}.function.description must be a string"
    yield from _schema(f"{place}.function.parameters", function.get("parameters", {"type": "object"}))


def _schema(place: str, schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield f"{place} must be a JSON Schema of the type object"
        return
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        yield f"{place} is no JSON Schema: {error.message}"


def _tool_choice(body: Mapping[str, Any], names: set[str]) -> Iterator[str]:
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, dict):
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if choice.get("type") != "function" or name not in names:
            yield f"tool_choice names {name!r}, which is not among the tools"
    elif choice not in ("auto", "none", "required"):
        yield f"tool_choice {choice!r} is unknown"


def _messages(messages: Any) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "messages must be a non-empty list"
        return
    previous: str | None = None
    open_ids: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            yield f"{place}: unknown role {role!r}"
            return
        if role == "tool":
            yield from _result(place, message, open_ids)
        elif open_ids:
            yield f"{place}: the calls {open_ids} have no tool message directly after them"
            open_ids = []
        if role == "assistant":
            if previous == "assistant":
                yield f"{place}: two assistant messages in a row"
            open_ids = []
            yield from _assistant(place, message, open_ids, seen)
        elif role in ("system", "developer") and index:
            yield f"{place}: a {role} message is only allowed first"
        if role != "assistant":
            yield from _content(place, message.get("content"))
        previous = role
    if open_ids:
        yield f"the calls {open_ids} have no tool message"
    elif previous not in ("user", "tool"):
        yield f"the last message must be the user's or a tool's, not {previous!r}"


def _result(place: str, message: Mapping[str, Any], open_ids: list[str]) -> Iterator[str]:
    call_id = message.get("tool_call_id")
    if not open_ids:
        yield f"{place}: a tool message for {call_id!r} that no call asked for"
    elif call_id != open_ids.pop(0):
        yield f"{place}: a tool message for {call_id!r} out of order"


def _assistant(place: str, message: Mapping[str, Any], open_ids: list[str], seen: set[str]) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls is None:
        yield from _content(place, message.get("content"))
        return
    if not isinstance(calls, list) or not calls:
        yield f"{place}.tool_calls must be a non-empty list"
        return
    if message.get("content") is not None:
        yield from _content(place, message["content"])
    for number, call in enumerate(calls):
        yield from _call(f"{place}.tool_calls[{number}]", call, open_ids, seen)


def _call(place: str, call: Any, open_ids: list[str], seen: set[str]) -> Iterator[str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or call.get("type") != "function":
        yield f"{place} must have the type 'function' and a function"
        return
    call_id = call.get("id")
    if not _is_text(call_id) or len(call_id) > 64:
        yield f"{place}.id {call_id!r} must be a string of 1 to 64 characters"
    elif call_id in seen:
        yield f"{place}.id {call_id!r} is not unique"
    open_ids.append(call_id)
    seen.add(str(call_id))
    if not isinstance(function.get("name"), str) or not NAME.match(function["name"]):
        yield f"{place}.function.name {function.get('name')!r} must be 1 to 64 of a-z, A-Z, 0-9, _ and -"
    if not _is_object_text(function.get("arguments")):
        yield f"{place}.function.arguments {function.get('arguments')!r:.80} is not the JSON text of an object"


def _is_object_text(arguments: Any) -> bool:
    if not isinstance(arguments, str):
        return False
    try:
        return isinstance(json.loads(arguments, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def _content(place: str, content: Any) -> Iterator[str]:
    if isinstance(content, list):
        if not content:
            yield f"{place}.content is empty"
        for number, part in enumerate(content):
            yield from _part(f"{place}.content[{number}]", part)
    elif not _is_text(content):
        yield f"{place}.content {content!r:.40} must be a non-empty string or a list of parts"


def _part(place: str, part: Any) -> Iterator[str]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        if not _is_text(part.get("text")):
            yield f"{place}.text is empty"
    elif kind == "image_url":
        image = part.get("image_url")
        if not isinstance(image, dict) or not _is_text(image.get("url")):
            yield f"{place}.image_url has no url"
    else:
        yield f"{place}: unknown kind of part {kind!r}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
