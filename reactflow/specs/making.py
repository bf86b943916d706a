"""From clauses and options, as a statement or a file gives them, to specs: every rule of creation is checked here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from reactflow.errors import SpecError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.specs import options as read
from reactflow.specs.values import (
    AgentSpec,
    AnyAgentSpec,
    ConnectionSpec,
    HandleException,
    ModelSpec,
    OnExhausted,
    ReflectionSpec,
    ToolsetSpec,
)

Kind: TypeAlias = Literal["connection", "model", "tool", "agent", "function"]

KINDS: Final[tuple[Kind, ...]] = ("connection", "model", "tool", "agent", "function")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One CREATE statement as data; other definitions are named, not held.

    Args:
        kind: What is defined.
        name: What it is called.
        clauses: By name in lower case: ``model``, ``prompt``, ``tools``, ``agents`` (the last two are tuples of
            names), ``function``, ``connection``, ``input``, ``output``, ``reference``.
        options: The options of WITH; keys in lower case, secrets replaced by references.
        comment: For people.
    """

    kind: Kind
    name: str
    clauses: Mapping[str, Any] = field(default=EMPTY)
    options: Mapping[str, str] = field(default=EMPTY)
    comment: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "clauses", FrozenDict(self.clauses))
        object.__setattr__(self, "options", FrozenDict(read.read_options(self.options, self.title)))

    @property
    def title(self) -> str:
        """The words for an error."""
        return f"{self.kind.capitalize()} {self.name!r}"

    def uses(self) -> set[tuple[str, str]]:
        """Kind and name of each definition that this one names."""
        found = {("agent", name) for name in self.clauses.get("agents", ())}
        found |= {("tool", name) for name in self.clauses.get("tools", ())}
        found |= {(kind, self.clauses[kind]) for kind in ("model", "connection", "function") if self.clauses.get(kind)}
        if self.kind == "model":
            found |= {
                ("connection", value) for key, value in self.options.items() if key.split(".")[-1] == "connection"
            }
        return found


Find: TypeAlias = Callable[[str, str], Any]
"""Finds the spec of a kind by its name, or raises SpecError."""


def make_connection(given: Definition) -> ConnectionSpec:
    """A connection; the options are those of CREATE CONNECTION."""
    options, what = given.options, given.title
    read.check_known(options, ("type", "endpoint", "api-key"), what)
    for name in ("type", "endpoint"):
        if not options.get(name, "").strip():
            raise SpecError(f"{what} needs the option '{name}'.", where=name)
    return ConnectionSpec(
        name=given.name,
        type=options["type"].strip().lower(),
        endpoint=options["endpoint"].strip(),
        api_key=options.get("api-key"),
        comment=given.comment,
    )


def make_model(given: Definition, find: Find) -> ModelSpec:
    """A model; ``openai.connection`` and ``connection`` are the same option, likewise the others."""
    options, what = given.options, given.title
    provider = options.get("provider", "openai").strip().lower()
    bare: dict[str, str] = {}
    for key, value in options.items():
        name = key.removeprefix(f"{provider}.")
        if name in bare:
            raise SpecError(f"{what}: option {name!r} is given twice; keep one of them.", where=key)
        bare[name] = value
    params = {name: bare.pop(name) for name in list(bare) if name.startswith("params.")}
    known = ("provider", "task", "connection", "model_version", "system_prompt")
    read.check_known(bare, (*known, *(f"{provider}.{each}" for each in known[2:])), what)
    for name in known[2:4]:
        if not bare.get(name, "").strip():
            raise SpecError(f"{what} needs the option '{provider}.{name}'.", where=f"{provider}.{name}")
    if bare.get("task", "text_generation").strip().lower() != "text_generation":
        raise SpecError(f"{what}: task = {bare['task']!r}; an agent needs 'text_generation'.", where="task")
    connection = find("connection", bare["connection"].strip())
    if provider != connection.type and connection.type in ("openai", "azureopenai", "fireworksai"):
        raise SpecError(
            f"{what}: provider is {provider!r}, but connection {connection.name!r} is of type {connection.type!r}.",
            where="provider",
        )
    return ModelSpec(
        name=given.name,
        connection=connection,
        version=bare["model_version"].strip(),
        params={name.removeprefix("params."): _json_value(value) for name, value in params.items()},
        system_prompt=bare.get("system_prompt", ""),
        inputs=given.clauses.get("input", ()),
        outputs=given.clauses.get("output", ()),
        comment=given.comment,
    )


def _json_value(text: str) -> Any:
    """``'0.2'`` is a number, ``'["a", "b"]'`` a list, anything that is no JSON a text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else FrozenDict(value) if isinstance(value, dict) else value


def make_tool(given: Definition, find: Find) -> ToolsetSpec:
    """A function tool, or the tools of an MCP server."""
    options, clauses, what = given.options, given.clauses, given.title
    known = ("type", "allowed_tools", "description", "request_timeout", "side_effect")
    if options.get("type", "").strip().lower() == "a2a":
        raise SpecError(f"{what}: type 'a2a' is not supported; offer the agent as an MCP server.", where="type")
    read.check_known(options, known, what)
    if "type" not in options:
        raise SpecError(f"{what} needs the option 'type': 'function' or 'mcp'.", where="type")
    kind = read.choice(options, "type", "", ("function", "mcp"), what)
    clause = "function" if kind == "function" else "connection"
    if not clauses.get(clause):
        raise SpecError(f"{what} is of type {kind!r}, so it needs USING {clause.upper()}.", where="type")
    if kind == "function" and "allowed_tools" in options:
        raise SpecError(f"{what}: allowed_tools is for type 'mcp'; a function is one tool.", where="allowed_tools")
    allowed = tuple(name.strip() for name in options.get("allowed_tools", "").split(",") if name.strip())
    return ToolsetSpec(
        name=given.name,
        function=find("function", clauses["function"]) if kind == "function" else None,
        connection=find("connection", clauses["connection"]) if kind == "mcp" else None,
        allowed=tuple(dict.fromkeys(allowed)),
        description=options.get("description", ""),
        request_timeout=read.seconds(options, "request_timeout", what) or 30.0,
        side_effect=read.flag(options, "side_effect", what),
        comment=given.comment,
    )


_COMMON: Final = ("type", "max_iterations", "request_timeout", "on_exhausted", "handle_exception")
_STANDARD: Final = (
    *_COMMON,
    "max_consecutive_failures",
    "tokens_management_strategy",
    "max_tokens_threshold",
    "summarization_prompt",
)
_REFLECTION: Final = (*_COMMON, "pass_condition", "confidence_value")


def make_agent(given: Definition, find: Find) -> AnyAgentSpec:
    """A standard agent, or one that reflects."""
    kind = read.choice(given.options, "type", "standard", ("standard", "reflection"), given.title)
    agents = given.clauses.get("agents")
    if agents is not None and kind != "reflection":
        raise SpecError(f"{given.title}: USING AGENTS needs the option 'type' = 'reflection'.", where="agents")
    if kind == "reflection":
        return _reflection(given, agents, find)
    return _standard(given, find)


def _standard(given: Definition, find: Find) -> AgentSpec:
    options, clauses, what = given.options, given.clauses, given.title
    for name in ("pass_condition", "confidence_value"):
        if name in options:
            raise SpecError(f"{what}: {name} is for 'type' = 'reflection'; this is a standard agent.", where=name)
    read.check_known(options, _STANDARD, what)
    for clause, example in (("model", "USING MODEL my_model"), ("prompt", "USING PROMPT 'You are ...'")):
        if not clauses.get(clause):
            raise SpecError(f"{what} needs a {clause}: {example}.", where=clause)
    tools = tuple(clauses.get("tools", ()))
    if len(set(tools)) < len(tools):
        raise SpecError(f"{what}: a tool is listed twice in USING TOOLS.", where="tools")
    strategy = None
    if "tokens_management_strategy" in options:
        strategy = read.choice(options, "tokens_management_strategy", "", ("summarize", "trim"), what)
    return AgentSpec(
        name=given.name,
        model=find("model", clauses["model"]),
        prompt=clauses["prompt"],
        tools=tuple(find("tool", name) for name in tools),
        max_iterations=read.whole(options, "max_iterations", 10, what),
        max_consecutive_failures=read.whole(options, "max_consecutive_failures", 3, what),
        tokens_management_strategy=cast(Any, strategy),
        max_tokens_threshold=read.whole(options, "max_tokens_threshold", 100_000, what),
        summarization_prompt=options.get("summarization_prompt", "concise"),
        comment=given.comment,
        **_common(options, what),
    )


def _reflection(given: Definition, agents: Sequence[str] | None, find: Find) -> ReflectionSpec:
    options, what = given.options, given.title
    for clause in ("model", "prompt", "tools"):
        if given.clauses.get(clause):
            raise SpecError(
                f"{what} reflects, so it has no model, prompt or tools of its own: leave out USING {clause.upper()} "
                "and give it to the sub-agents.",
                where=clause,
            )
    if agents is None:
        raise SpecError(f"{what} reflects, so it needs USING AGENTS drafter, critic.", where="type")
    if len(agents) != 2:
        raise SpecError(f"{what}: USING AGENTS takes two, drafter and critic, not {len(agents)}.", where="agents")
    read.check_known(options, _REFLECTION, what)
    condition = read.choice(options, "pass_condition", "approval", ("approval", "confidence"), what)
    if given.name in agents:
        raise SpecError(f"{what} cannot be its own sub-agent.", where="agents")
    drafter, critic = (find("agent", name) for name in agents)
    return ReflectionSpec(
        name=given.name,
        drafter=drafter,
        critic=critic,
        pass_condition=cast(Any, condition),
        confidence_value=read.number(options, "confidence_value", what),
        max_iterations=read.whole(options, "max_iterations", 20, what),
        comment=given.comment,
        **_common(options, what),
    )


def _common(options: Mapping[str, str], what: str) -> dict[str, Any]:
    on_exhausted = read.choice(options, "on_exhausted", "return", ("return", "drop", "fail"), what)
    handle_exception = read.choice(options, "handle_exception", "continue", ("continue", "fail"), what)
    return {
        "request_timeout": read.seconds(options, "request_timeout", what),
        "on_exhausted": cast(OnExhausted, on_exhausted),
        "handle_exception": cast(HandleException, handle_exception),
    }
