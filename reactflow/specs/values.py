"""What connections, models, tools and agents are: frozen values without secrets.

Everything that is wrong with one is said when it is made, never when it runs.  A spec holds the specs it needs, so it
is a snapshot: what is changed in a catalogue later does not reach into a statement that already runs.

Source: Confluent, "Improve Agent Output with Reflection Workflows", and the statement reference that goes with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from reactflow.errors import SpecError, near
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.specs.options import REFERENCE, is_reference

OnExhausted: TypeAlias = Literal["return", "drop", "fail"]
HandleException: TypeAlias = Literal["continue", "fail"]

MAX_PROMPT_CHARS: Final = 65_536

MODEL_SERVERS: Final = ("openai", "azureopenai", "fireworksai")
"""Connection types whose servers speak the OpenAI chat API."""

OTHER_SERVERS: Final = (
    "anthropic",
    "azureml",
    "bedrock",
    "couchbase",
    "elastic",
    "googleai",
    "mongodb",
    "pinecone",
    "rest",
    "sagemaker",
    "vertexai",
)


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise SpecError(f"A {kind} is called {name!r}; give it a name that is not blank.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSpec:
    """Where a model or a tool server is, and which secret opens it.

    Args:
        name: What models and tools call it.
        type: ``"openai"``, ``"azureopenai"``, ``"fireworksai"`` or ``"mcp_server"``.
        endpoint: The URL; that of a chat completion may be given in full.  ``${NAME}`` in it is filled in late.
        api_key: ``${NAME}``, an environment variable or a secret of the catalogue; never the key itself.
        comment: For people.

    Raises:
        SpecError: A value cannot be; says which, and never shows a key.
    """

    name: str
    type: str
    endpoint: str
    api_key: str | None = None
    comment: str = ""

    def __post_init__(self) -> None:
        _check_name("connection", self.name)
        what = f"Connection {self.name!r}"
        _check_type(what, self.type)
        if self.api_key is not None and not is_reference(self.api_key):
            raise SpecError(f"{what}: api_key must be a reference such as ${{OPENAI_API_KEY}}.", where="api-key")
        if REFERENCE.search(self.endpoint):
            return
        parts = urlsplit(self.endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SpecError(f"{what}: endpoint = {_shown(self.endpoint)!r}; give a URL, https://...", where="endpoint")
        if parts.username or parts.password:
            raise SpecError(f"{what}: its endpoint holds a password; use 'api-key' = '${{NAME}}'.", where="endpoint")


def _shown(url: str) -> str:
    """*url* without what stands before an ``@``."""
    return url.rpartition("@")[2]


def _check_type(what: str, kind: str) -> None:
    if kind in OTHER_SERVERS:
        raise SpecError(
            f"{what}: type {kind!r} speaks a protocol of its own, which is not supported; put an OpenAI-compatible "
            "gateway before it and use 'type' = 'openai'.",
            where="type",
        )
    if kind == "a2a":
        raise SpecError(f"{what}: type 'a2a' is not supported; offer the agent as an MCP server.", where="type")
    if kind not in (*MODEL_SERVERS, "mcp_server"):
        raise SpecError(
            f"{what}: type {kind!r} is not known; {near(kind, (*MODEL_SERVERS, 'mcp_server'))}.", where="type"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model behind a connection.

    Args:
        name: What agents call it.
        connection: Where it is.
        version: Its name at the server, such as ``"gpt-4o"``.
        params: Model options such as ``temperature``, as JSON values.
        system_prompt: Put before the prompt of each agent that uses it.
        inputs: Names and types of the input columns, for people.
        outputs: The same of the output columns.
        comment: For people.
    """

    name: str
    connection: ConnectionSpec
    version: str
    params: Mapping[str, Any] = field(default=EMPTY)
    system_prompt: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    comment: str = ""

    def __post_init__(self) -> None:
        _check_name("model", self.name)
        if self.connection.type not in MODEL_SERVERS:
            raise SpecError(
                f"Model {self.name!r}: connection {self.connection.name!r} is of type {self.connection.type!r}, "
                f"which has no models; use one of type {' or '.join(MODEL_SERVERS)}.",
                where="connection",
            )
        if not self.version.strip():
            raise SpecError(f"Model {self.name!r}: model_version is blank.", where="model_version")
        object.__setattr__(self, "params", FrozenDict(self.params))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetSpec:
    """One function, or the tools of one MCP server.

    Args:
        name: What agents call it.
        function: ``"module:attribute"`` of a function, or the name of one that the caller hands over; or None.
        connection: The MCP server, or None.
        allowed: Which tools of the server may be used; others are neither shown nor callable.
        description: Says to the model when to use a function, in place of its docstring.
        request_timeout: Seconds that one call may take, > 0.
        side_effect: A call with the same arguments that worked is not repeated by a later draft of the same row.
        comment: For people.
    """

    name: str
    function: str | None = None
    connection: ConnectionSpec | None = None
    allowed: tuple[str, ...] = ()
    description: str = ""
    request_timeout: float = 30.0
    side_effect: bool = False
    comment: str = ""

    def __post_init__(self) -> None:
        _check_name("tool", self.name)
        what = f"Tool {self.name!r}"
        if (self.function is None) == (self.connection is None):
            raise SpecError(f"{what}: give either USING FUNCTION or USING CONNECTION.")
        if self.connection is not None and self.connection.type != "mcp_server":
            raise SpecError(
                f"{what}: connection {self.connection.name!r} is of type {self.connection.type!r}; a tool needs one "
                "of type 'mcp_server'.",
                where="connection",
            )
        if self.connection is not None and not self.allowed:
            raise SpecError(f"{what}: allowed_tools names the tools that may be used, such as 'search, read'.")
        if not self.request_timeout > 0:
            raise SpecError(f"{what}: request_timeout must be seconds above 0.", where="request_timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """A model with a prompt and tools.

    Args:
        name: What statements call it.
        model: Who answers.
        prompt: Its instructions, 1 to 65,536 characters.
        tools: What it may call.
        max_iterations: Rounds of tool calls in one invocation, >= 1.
        max_consecutive_failures: Failing model or tool steps in a row that end an invocation, >= 1.
        request_timeout: Seconds for one row, > 0; None for no limit.
        tokens_management_strategy: What happens to older rounds of a conversation over the threshold:
            ``"summarize"``, ``"trim"``, or None for nothing.
        max_tokens_threshold: Tokens of a conversation, by estimate, from which on that is done.
        summarization_prompt: How to summarise, or ``"concise"`` for the usual words.
        on_exhausted: What becomes of a row that reached a limit: ``"return"`` it with its last draft, ``"drop"`` it,
            or ``"fail"`` it.
        handle_exception: Whether a failing row ends the job (``"fail"``) or is a row with a status.
        comment: For people.
    """

    name: str
    model: ModelSpec
    prompt: str
    tools: tuple[ToolsetSpec, ...] = ()
    max_iterations: int = 10
    max_consecutive_failures: int = 3
    request_timeout: float | None = None
    tokens_management_strategy: Literal["summarize", "trim"] | None = None
    max_tokens_threshold: int = 100_000
    summarization_prompt: str = "concise"
    on_exhausted: OnExhausted = "return"
    handle_exception: HandleException = "continue"
    comment: str = ""

    def __post_init__(self) -> None:
        _check_name("agent", self.name)
        if not self.prompt.strip():
            raise SpecError(f"Agent {self.name!r}: its prompt is blank.", where="prompt")
        if len(self.prompt) > MAX_PROMPT_CHARS:
            raise SpecError(
                f"Agent {self.name!r}: its prompt has {len(self.prompt)} characters; {MAX_PROMPT_CHARS} are the most.",
                where="prompt",
            )
        for name in ("max_iterations", "max_consecutive_failures", "max_tokens_threshold"):
            _check_count(self, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionSpec:
    """Two agents in a loop: one drafts, the other reviews.

    Args:
        name: What statements call it.
        drafter: Who drafts.
        critic: Who reviews.
        pass_condition: ``"approval"`` reads the review's verdict, ``"confidence"`` its confidence.
        confidence_value: The least confidence that passes, 0 to 1; only with ``"confidence"``.
        max_iterations: Drafts, and reviews, at most, >= 1.
        request_timeout: Seconds for one row, > 0; None for no limit.
        on_exhausted: See :class:`AgentSpec`.
        handle_exception: See :class:`AgentSpec`.
        comment: For people.
    """

    name: str
    drafter: AnyAgentSpec
    critic: AnyAgentSpec
    pass_condition: Literal["approval", "confidence"] = "approval"
    confidence_value: float | None = None
    max_iterations: int = 20
    request_timeout: float | None = None
    on_exhausted: OnExhausted = "return"
    handle_exception: HandleException = "continue"
    comment: str = ""

    def __post_init__(self) -> None:
        _check_name("agent", self.name)
        _check_count(self, "max_iterations")
        value = self.confidence_value
        if value is None:
            return
        what = f"Agent {self.name!r}: confidence_value = {value:g}"
        if self.pass_condition == "approval":
            raise SpecError(
                f"{what} does nothing under 'pass_condition' = 'approval'; leave it out, or use 'confidence'.",
                where="confidence_value",
            )
        if not 0 <= value <= 1:
            raise SpecError(f"{what}; give a number from 0 to 1, such as '0.8'.", where="confidence_value")


AnyAgentSpec: TypeAlias = AgentSpec | ReflectionSpec


def _check_count(spec: Any, name: str) -> None:
    value = getattr(spec, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SpecError(f"Agent {spec.name!r}: {name} = {value!r}; give a whole number from 1.", where=name)


_NOT_HASHED = frozenset({"comment", "api_key", "on_exhausted", "handle_exception", "inputs", "outputs"})
"""What cannot change an answer; a job that is run again with another of these need not pay again."""


def as_data(spec: Any) -> Any:
    """*spec* as dicts, lists and plain values, without what cannot change an answer."""
    if isinstance(spec, tuple):
        return [as_data(each) for each in spec]
    if isinstance(spec, Mapping):
        return {key: as_data(value) for key, value in spec.items()}
    if not hasattr(spec, "__dataclass_fields__"):
        return spec
    return {each.name: as_data(getattr(spec, each.name)) for each in fields(spec) if each.name not in _NOT_HASHED}


def digest(spec: AnyAgentSpec) -> str:
    """A text of 16 characters that differs where the answers may: the same on every machine and in every process."""
    text = json.dumps(as_data(spec), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
