"""From a spec to an agent that runs."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from reactflow.agent import SimpleReactAgent
from reactflow.budget import Budget, Price
from reactflow.chain import AnyAdvisor
from reactflow.doors import Doors
from reactflow.errors import ConfigurationError, near
from reactflow.frozen import EMPTY
from reactflow.mcp_tools import mcp_tools
from reactflow.model import ChatModel
from reactflow.openai_model import OpenAIChatModel
from reactflow.specs.options import resolve
from reactflow.specs.steps import FailureLimit, ShortHistory
from reactflow.specs.values import AgentSpec, AnyAgentSpec, ConnectionSpec, ModelSpec, ReflectionSpec, ToolsetSpec
from reactflow.toolbox import Tool, tool
from reactflow.workflows.drafter_critic import DrafterCritic

ToolServer: TypeAlias = Callable[..., Iterable[Tool]]
"""``(url, *, allowed, timeout, headers) -> tools`` of an MCP server; closed by its ``close()`` where it has one."""

MakeModel: TypeAlias = Callable[[ModelSpec, str, str | None], ChatModel]
"""``(spec, base_url, api_key) -> model``."""


def openai_model(spec: ModelSpec, base_url: str, api_key: str | None) -> ChatModel:
    """The model behind an OpenAI-compatible connection."""
    return OpenAIChatModel(spec.version, base_url=base_url, api_key=api_key, **spec.params)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What building needs and a spec does not hold.

    Args:
        secrets: What ``${NAME}`` stands for, before the environment is asked.
        environment: Where else ``${NAME}`` is looked up.
        functions: Functions and Tools that the caller hands over, by the name that tools use.
        make_model: Makes the model of a spec.
        tool_server: Connects to an MCP server; the client of the extra ``mcp`` by default.
        prices: By model name, as in :class:`~reactflow.budget.Budget`; they give each row its cost.
    """

    secrets: Mapping[str, str] = field(default=EMPTY, repr=False)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    functions: Mapping[str, Any] = field(default=EMPTY)
    make_model: MakeModel = openai_model
    tool_server: ToolServer | None = None
    prices: Mapping[str, Price] = field(default=EMPTY)
    opened: list[Any] = field(default_factory=list, repr=False)  # tool servers, to be closed

    def build(self, spec: AnyAgentSpec) -> Doors[Any]:
        """The agent that *spec* describes.

        Raises:
            ConfigurationError: An environment variable, a function or an extra is missing.
        """
        if isinstance(spec, ReflectionSpec):
            return DrafterCritic(
                self.build(spec.drafter),
                self.build(spec.critic),
                spec.pass_condition,
                spec.confidence_value,
                spec.max_iterations,
                on_judge_error="reject",  # what nobody could judge is not approved, and the next draft may be
                budget=self._budget(spec),
                name=spec.name,
            )
        model = self._model(spec.model)
        tools = [each for toolset in spec.tools for each in self._tools(toolset)]
        return SimpleReactAgent(
            model=model,
            tools=tools,
            advisors=_advisors(spec, model),
            system_prompt="\n\n".join(part for part in (spec.model.system_prompt, spec.prompt) if part.strip()),
            react_prompt=None,  # the prompt stays the user's own
            max_rounds=spec.max_iterations,
            budget=self._budget(spec),
            name=spec.name,
        )

    def close(self) -> None:
        """End the sessions with tool servers."""
        while self.opened:
            server = self.opened.pop()
            if callable(getattr(server, "close", None)):
                server.close()

    def known_secrets(self, spec: AnyAgentSpec) -> set[str]:
        """The keys that *spec* uses, to keep them out of what is shown."""
        found = set(self.secrets.values())
        for connection in connections_of(spec):
            if connection.api_key is not None:
                found.add(resolve(connection.api_key, self.secrets, self.environment, "api-key"))
        return {secret for secret in found if len(secret) >= 4}

    def _budget(self, spec: AnyAgentSpec) -> Budget:
        return Budget(max_seconds=spec.request_timeout, prices=self.prices)

    def _model(self, spec: ModelSpec) -> ChatModel:
        url, key = self._opened(spec.connection)
        base_url = url.rstrip("/").removesuffix("/chat/completions")
        return self.make_model(spec, base_url, key)

    def _opened(self, connection: ConnectionSpec) -> tuple[str, str | None]:
        what = f"Connection {connection.name!r}"
        url = resolve(connection.endpoint, self.secrets, self.environment, what)
        key = connection.api_key
        return url, None if key is None else resolve(key, self.secrets, self.environment, what)

    def _tools(self, spec: ToolsetSpec) -> list[Tool]:
        if spec.connection is None:
            return [self._function(spec)]
        connect = self.tool_server or mcp_tools
        url, key = self._opened(spec.connection)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        server = connect(url, allowed=list(spec.allowed), timeout=spec.request_timeout, headers=headers)
        self.opened.append(server)
        return [replace(each, side_effect=True) for each in server] if spec.side_effect else list(server)

    def _function(self, spec: ToolsetSpec) -> Tool:
        reference = spec.function or ""
        found = self.functions[reference] if reference in self.functions else load(reference, spec.name)
        made = found if isinstance(found, Tool) else tool(found, name=_tool_name(spec.name))
        changes: dict[str, Any] = {
            "name": _tool_name(spec.name),
            "timeout_s": spec.request_timeout,
            "side_effect": spec.side_effect or made.side_effect,
            "description": spec.description or made.description,
        }
        return replace(made, **changes)


def _tool_name(name: str) -> str:
    """What models call a tool: its own name, with ``_`` for what they do not take."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64]


def load(reference: str, name: str) -> Any:
    """The object at ``module:attribute``.

    Raises:
        ConfigurationError: It is not there, or the module fails.
    """
    module, _, path = reference.partition(":")
    what = f"Tool {name!r}: function {reference!r}"
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # user code: anything may come out
        reason = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"{what} cannot be loaded ({reason}); is its folder on PYTHONPATH?") from error
    for part in path.split("."):
        if not hasattr(found, part):
            names = [each for each in dir(found) if not each.startswith("_")]
            raise ConfigurationError(f"{what}: {module} has no {part!r}; {near(part, names)}.")
        found = getattr(found, part)
    return found


def connections_of(spec: AnyAgentSpec) -> list[ConnectionSpec]:
    """Every connection that *spec* uses."""
    if isinstance(spec, ReflectionSpec):
        return connections_of(spec.drafter) + connections_of(spec.critic)
    return [spec.model.connection, *(each.connection for each in spec.tools if each.connection is not None)]


def _advisors(spec: AgentSpec, model: ChatModel) -> list[AnyAdvisor]:
    advisors: list[AnyAdvisor] = [FailureLimit(spec.max_consecutive_failures)]
    if spec.tokens_management_strategy is not None:
        strategy, prompt = spec.tokens_management_strategy, spec.summarization_prompt
        advisors.append(ShortHistory(model, spec.max_tokens_threshold, strategy, prompt))
    return advisors
