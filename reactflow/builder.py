"""A builder for people who come from the Java original: a door to the keyword constructor, with no rule of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

from reactflow.budget import Budget
from reactflow.chain import AnyAdvisor
from reactflow.errors import ConfigurationError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.memory import ChatMemory
from reactflow.model import ChatModel

AgentT = TypeVar("AgentT")


@dataclass(frozen=True, kw_only=True)
class AgentBuilder(Generic[AgentT]):
    """Settings so far.  Each step returns a copy, so a half-built agent can be shared as a template.

    ``tools`` and ``advisors`` add; every other step replaces.

    Args:
        make: The class to build; everything is checked there, once, for every way of building.
        settings: Its keyword arguments so far.
    """

    make: Callable[..., AgentT]
    settings: Mapping[str, Any] = field(default=EMPTY)

    def _with(self, **settings: Any) -> Self:
        return replace(self, settings=FrozenDict({**self.settings, **settings}))

    def name(self, name: str) -> Self:
        """Set what events and logs call it."""
        return self._with(name=name)

    def chat_model(self, model: ChatModel) -> Self:
        """Set who answers."""
        return self._with(model=model)

    def tools(self, *tools: Any) -> Self:
        """Add tools."""
        return self._with(tools=(*self.settings.get("tools", ()), *tools))

    def advisors(self, *advisors: AnyAdvisor) -> Self:
        """Add advisors."""
        return self._with(advisors=(*self.settings.get("advisors", ()), *advisors))

    def system_prompt(self, prompt: str | None) -> Self:
        """Set the agent's instructions."""
        return self._with(system_prompt=prompt)

    def max_rounds(self, rounds: int | None) -> Self:
        """Set the model calls that may use tools."""
        return self._with(max_rounds=rounds)

    def max_reflection_rounds(self, rounds: int | None) -> Self:
        """Set how often a rejected answer is sent back."""
        return self._with(max_reflection_rounds=rounds)

    def chat_memory(self, memory: ChatMemory | None) -> Self:
        """Set the memory."""
        return self._with(memory=memory)

    def budget(self, budget: Budget | None) -> Self:
        """Set the limits of each run."""
        return self._with(budget=budget)

    def build(self) -> AgentT:
        """Make the agent.

        Raises:
            ConfigurationError: A setting is wrong, or there is no model.
        """
        if self.settings.get("model") is None:
            raise ConfigurationError("The agent has no model; add .chat_model(OpenAIChatModel('...')).")
        return self.make(**self.settings)
