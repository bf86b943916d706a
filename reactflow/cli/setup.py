"""What the options of a command mean: an agent, and the settings of its runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import reactflow
from reactflow.agent import SimpleReactAgent
from reactflow.budget import NO_BUDGET, Budget
from reactflow.cli.loading import load, load_agent
from reactflow.doors import Doors
from reactflow.errors import ConfigurationError
from reactflow.memory import ChatMemory
from reactflow.model import ChatModel
from reactflow.offline_model import OfflineChatModel
from reactflow.reflection import ReflectionAgent
from reactflow.tools import search, weather

DEFAULT_MODEL = "gpt-5-mini"
OFFLINE = "offline"

OFFLINE_NOTICE = (
    "There is no model: set OPENAI_API_KEY (and OPENAI_BASE_URL for a server other than OpenAI's), or pass --base-url. "
    "Until then a few rules answer, offline, with sample data about weather and news."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The options that ``ask`` and ``chat`` share; None is what was not given.

    Args:
        agent: ``module:attribute`` of the user's own agent or workflow.
        model: The model's name; ``"offline"`` is the one that needs no server.
        base_url: The server.
        judge_model: Who judges, at the same server; implies one revision.
        system: The instructions.
        tool: ``module:attribute`` of each tool.
        max_rounds: Model calls that may use tools, for each attempt.
        reflect: How often a rejected answer is revised.
        budget_tokens: Tokens that one run may use.
        budget_seconds: Seconds that one run may take.
    """

    agent: str | None = None
    model: str | None = None
    base_url: str | None = None
    judge_model: str | None = None
    system: str | None = None
    tool: tuple[str, ...] = ()
    max_rounds: int | None = None
    reflect: int | None = None
    budget_tokens: int | None = None
    budget_seconds: float | None = None

    @property
    def is_offline(self) -> bool:
        """Whether no server is meant: none is named, and there is no key for OpenAI's."""
        if self.agent:
            return False
        named = self.model or self.base_url or env("OPENAI_BASE_URL") or env("OPENAI_API_KEY")
        return self.model == OFFLINE or not named

    def build(self) -> Any:
        """The agent to ask.

        Raises:
            ConfigurationError: An option is wrong, or goes with another one that it does not fit.
        """
        return self.prepare()(None)

    def prepare(self) -> Callable[[ChatMemory | None], Any]:
        """Load what the agent is made of, and return what makes it with a memory; the user's own has its own, or none.

        To be called while no event loop runs: the user's modules may run one themselves.

        Raises:
            ConfigurationError: As in :meth:`build`.
        """
        if self.agent:
            self._check_alone()
            own = load_agent(self.agent)
            return lambda memory: own
        reflect = (1 if self.judge_model else 0) if self.reflect is None else self.reflect
        if self.judge_model and not reflect:
            raise ConfigurationError("--judge-model judges nothing with --reflect 0; leave one of them out.")
        parts: dict[str, Any] = {
            "model": self.make_model(self.model),
            "tools": self._tools(),
            "system_prompt": self.system,
        }
        if not reflect:
            return lambda memory: SimpleReactAgent(**parts, memory=memory)
        judge = self.make_model(self.judge_model) if self.judge_model else None
        parts |= {"judge_model": judge, "max_reflection_rounds": reflect}
        return lambda memory: ReflectionAgent(**parts, memory=memory)

    def settings(self, agent: object) -> Mapping[str, Any]:
        """What each run of *agent* is told: only what was given, so that an agent's own settings hold."""
        settings: dict[str, Any] = {}
        if self.max_rounds is not None:
            settings["max_rounds"] = self.max_rounds
        if self.budget_tokens is not None or self.budget_seconds is not None:
            own = budget_of(agent) or NO_BUDGET  # its prices and other limits stay
            settings["budget"] = replace(
                own,
                max_tokens=own.max_tokens if self.budget_tokens is None else self.budget_tokens,
                max_seconds=own.max_seconds if self.budget_seconds is None else self.budget_seconds,
            )
        return settings

    def make_model(self, name: str | None) -> ChatModel:
        """The model called *name*, at the server of this setup.

        Raises:
            ConfigurationError: The key is missing, or the URL is none.
        """
        name = name or (OFFLINE if self.is_offline else env("REACTFLOW_MODEL") or DEFAULT_MODEL)
        return OfflineChatModel() if name == OFFLINE else reactflow.OpenAIChatModel(name, base_url=self.base_url)

    def _tools(self) -> list[Any]:
        if not self.tool and self.is_offline:
            return [weather, search]  # a real model gets only what it is given: these tools tell no truth
        return [load("--tool", spec) for spec in self.tool]

    def _check_alone(self) -> None:
        """An agent of the user's own was put together by the user."""
        own = {
            "--model": self.model,
            "--base-url": self.base_url,
            "--judge-model": self.judge_model,
            "--system": self.system,
            "--tool": self.tool or None,
            "--reflect": self.reflect,
        }
        if given := [option for option, value in own.items() if value is not None]:
            raise ConfigurationError(
                f"--agent {self.agent} brings its own model, tools and judge; leave out {', '.join(given)}."
            )


def env(name: str) -> str:
    """What the environment says, without blanks around it; an empty text where it says nothing."""
    return os.environ.get(name, "").strip()


def budget_of(agent: object) -> Budget | None:
    """The limits and prices that *agent* has of its own."""
    return agent.budget if isinstance(agent, Doors) else None
