"""The body of a chat request: what one request of the framework becomes for one server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

from reactflow.errors import ConfigurationError
from reactflow.frozen import EMPTY
from reactflow.messages import AssistantMessage, Message
from reactflow.model import ChatRequest, Run, ToolSpec
from reactflow.wire.encode import MessageWriter, Written, dump, join_body, write_options, write_tools
from reactflow.wire.tool_text import (
    ToolMode,
    describe,
    describe_schema,
    envelope_schema,
    in_words,
    instructed,
    uses_envelope,
)

ResponseFormat: TypeAlias = Literal["json_schema", "json_object", "none"]

STREAM_OPTIONS: Final[Mapping[str, Any]] = {"include_usage": True}


class RunNotes:
    """What was written for each run; goes with the run, and stays behind when a model is copied or pickled."""

    def __init__(self) -> None:
        self._notes: WeakKeyDictionary[Run, Written] = WeakKeyDictionary()

    def of(self, run: Run) -> Written:
        """The notes of *run*, empty at first."""
        notes = self._notes.get(run)
        if notes is None:
            notes = self._notes[run] = Written()
        return notes

    def __reduce__(self) -> tuple[type[RunNotes], tuple[()]]:
        return RunNotes, ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestWriter:
    """Writes request bodies for one model.

    Args:
        model: Its name at the server.
        options: Fields of every request.
        tool_mode: How tools are offered.
        response_format: How a schema is sent; see :class:`~reactflow.openai_model.OpenAIChatModel`.
        keep_tools_on_final: Whether a conversation with tool calls keeps its tools where a request takes them away.
        replay_reasoning: Whether thinking goes back; see :class:`~reactflow.wire.encode.MessageWriter`.
        written: What was written already, by run.
    """

    model: str
    options: Mapping[str, Any] = EMPTY
    tool_mode: ToolMode = "native"
    response_format: ResponseFormat = "json_schema"
    keep_tools_on_final: bool = False
    replay_reasoning: bool | None = None
    written: RunNotes = field(default_factory=RunNotes, repr=False, compare=False)

    def __post_init__(self) -> None:
        write_options(self.options, with_tools=True)  # what cannot be sent is refused at once

    def streams(self, request: ChatRequest) -> bool:
        """Whether the reply is to be streamed: an envelope of JSON is nothing to show while it comes."""
        return request.stream and not uses_envelope(request.messages, request.tools, self.tool_mode)

    def write(self, request: ChatRequest) -> bytes:
        """The body for *request*.

        Raises:
            ConfigurationError: An option or a tool's schema cannot be sent, or there is nothing to send.
        """
        if self.tool_mode != "json_schema":
            return self._write(request, self.written.of(request.run))
        return self._write(self._in_words(request), Written())

    def _write(self, request: ChatRequest, written: Written) -> bytes:
        tools, choice = self._tools(request, written)
        options = {"stream_options": STREAM_OPTIONS, **self.options, **request.options}
        if not request.stream:
            del options["stream_options"]
        fields = {"model": dump(self.model), **write_options(options, with_tools=bool(tools))}
        schema = request.response_schema
        if schema is not None and self.response_format != "none" and _is_object(schema):
            fields["response_format"] = self._format(schema)
        if request.stream:
            fields["stream"] = b"true"
        if tools:
            fields["tools"] = write_tools(tools)
            if choice is not None:
                fields["tool_choice"] = dump(_choice(choice))
        messages = MessageWriter(self.replay_reasoning).write(self._messages(request, written), written)
        if not messages:
            raise ConfigurationError("The request has no message with any text in it; ask something.")
        return join_body(fields, messages)

    def _tools(self, request: ChatRequest, written: Written) -> tuple[tuple[ToolSpec, ...], str | None]:
        if request.tools or not self.keep_tools_on_final:
            written.tools = request.tools or written.tools
            return request.tools, request.tool_choice
        names = {
            call.name: None
            for message in request.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        }
        return (written.tools or tuple(map(ToolSpec, names))) if names else (), "none"

    def _messages(self, request: ChatRequest, written: Written) -> Sequence[Message]:
        """The messages; a schema that the server is not told of otherwise is put into words."""
        schema = request.response_schema
        if schema is None or (self.response_format == "json_schema" and _is_object(schema)):
            return request.messages
        system, *rest = instructed(request.messages, describe_schema(schema))
        return [written.systems.setdefault(system, system), *rest]

    def _format(self, schema: Mapping[str, Any]) -> bytes:
        if self.response_format == "json_object":
            return b'{"type":"json_object"}'
        named: dict[str, Any] = {"name": "answer", "schema": dict(schema)}
        if is_strict(schema):
            named["strict"] = True
        return dump({"type": "json_schema", "json_schema": named})

    def _in_words(self, request: ChatRequest) -> ChatRequest:
        """The same request with its tools, calls and results in words."""
        messages = in_words(request.messages)
        schema = request.response_schema
        # what cannot be enforced need not be shown: the words on the tools say as much
        if self.response_format == "json_schema" and uses_envelope(request.messages, request.tools, self.tool_mode):
            schema = envelope_schema(request.tools, request.tool_choice, schema)
        if request.tools:
            messages = instructed(messages, describe(request.tools))
        return request.replace(messages=tuple(messages), tools=(), tool_choice=None, response_schema=schema)


_STRICT: Final = frozenset(
    {"$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "items", "properties"}
    | {"required", "title", "type"}
)


def is_strict(schema: Any) -> bool:
    """Whether OpenAI would take *schema* with ``strict``: every object closed, every property required, no more.

    With it the server guarantees the form; a schema that does not qualify would be refused with it.
    """
    if not isinstance(schema, dict) or not schema.keys() <= _STRICT:
        return False
    properties = schema.get("properties", {})
    closed = schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(properties)
    if "object" in (schema.get("type"), *_listed(schema.get("type"))) and not closed:
        return False
    inner = [*properties.values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    return all(map(is_strict, [*inner, *([schema["items"]] if "items" in schema else [])]))


def _is_object(schema: Mapping[str, Any]) -> bool:
    """Servers take no other schema for a whole answer."""
    return schema.get("type") == "object"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _choice(choice: str) -> Any:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
