"""One row, one agent, one outcome: the coroutine that every engine calls, and that knows none of them."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any, cast

from reactflow.agent import SimpleReactAgent
from reactflow.budget import Budget, Price
from reactflow.doors import Doors, Settings
from reactflow.errors import BudgetExceeded, ConfigurationError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.result import AgentResult, StopReason
from reactflow.specs.building import Workshop
from reactflow.specs.outcome import Outcome, Status, failure, outcome_of
from reactflow.specs.values import AgentSpec, AnyAgentSpec, ReflectionSpec
from reactflow.workflows.reply import as_text
from reactflow.workflows.role import call, is_agent, is_model

REQUEST_ID = "request_id"
"""The key under which tools find the row's own key in their ``ToolContext``: use it as an idempotency key."""


class AgentRunner:
    """Runs one agent on any number of rows, at the same time if you like.

    Args:
        agent: A spec, an agent or a workflow, a ChatModel, or a function ``(prompt: str)``, plain or async, that
            returns a text, an AgentResult or an :class:`Outcome`.
        workshop: What a spec needs to be built.
        timeout: Seconds for one row, > 0, on top of the agent's own limits; None for no limit.
        debug: Whether errors are told with their message and trace, which may quote the row.

    Raises:
        ConfigurationError: It cannot be built, or nothing it has can answer.
    """

    def __init__(
        self, agent: Any, *, workshop: Workshop | None = None, timeout: float | None = None, debug: bool = False
    ) -> None:
        self.workshop = workshop or Workshop()
        self.timeout = timeout
        self.debug = debug
        self.spec: AnyAgentSpec | None = agent if isinstance(agent, (AgentSpec, ReflectionSpec)) else None
        self._secrets = frozenset[str]()
        if self.spec is not None:
            agent = self.workshop.build(self.spec)
            self._secrets = frozenset(self.workshop.known_secrets(self.spec))
        elif is_model(agent):
            agent = SimpleReactAgent(model=agent, react_prompt=None)
        self.agent = _checked(agent)

    @property
    def reviews(self) -> bool | None:
        """Whether answers are reviewed before they go out; None where that cannot be known."""
        return self.agent.holds_back if isinstance(self.agent, Doors) else None

    async def run(self, prompt: str | None, key: str | None = None, *, debug: bool | None = None) -> Outcome:
        """Put *prompt* to the agent.

        Args:
            prompt: The row's text; None and blank ones fail without a call.
            key: Names the row in tools, logs and caches.
            debug: Instead of the runner's own.

        Returns:
            What became of it.  An error is an outcome, so that no row can end a job; only a cancel comes out.
        """
        if prompt is None or not isinstance(prompt, str) or not prompt.strip():
            return _no_prompt(prompt)
        try:
            async with asyncio.timeout(self.timeout):
                value = await self._ask(prompt, key)
            return _read(value)
        except TimeoutError as error:
            limit = BudgetExceeded(f"The row took over {self.timeout} s.", reason=StopReason.TIME_BUDGET)
            return self._failed(limit if self.timeout is not None else error, debug)
        except Exception as error:  # whatever it was, it is this row's failure and no other's
            return self._failed(error, debug)

    def close(self) -> None:
        """End the sessions with tool servers."""
        self.workshop.close()

    async def _ask(self, prompt: str, key: str | None) -> Any:
        if not is_agent(self.agent):
            return await call(self.agent, prompt)
        settings: dict[str, Any] = {}
        if isinstance(self.agent, Doors):
            settings["context"] = FrozenDict({REQUEST_ID: key}) if key is not None else EMPTY
            if self.workshop.prices and self.spec is None:
                settings["budget"] = _priced(self.agent.budget, self.workshop.prices)
        return await self.agent.arun(prompt, **cast(Settings, settings))

    def _failed(self, error: BaseException, debug: bool | None) -> Outcome:
        return failure(error, debug=self.debug if debug is None else debug, secrets=self._secrets)


def _priced(budget: Budget | None, prices: Any) -> Budget:
    limits = {} if budget is None else {name: getattr(budget, name) for name in _LIMITS}
    known: dict[str, Price] = {} if budget is None else dict(budget.prices)
    return Budget(**limits, prices={**prices, **known})


_LIMITS = ("max_tokens", "max_seconds", "max_cost_usd", "max_model_calls")


def _no_prompt(prompt: object) -> Outcome:
    what = "NULL" if prompt is None else "blank" if isinstance(prompt, str) else f"a {type(prompt).__name__}, no text"
    words = f"The prompt is {what}, so nothing was asked."
    return Outcome(Status.FAILED, None, FrozenDict(error=words, error_type="NoPrompt", model_calls=0))


def _read(value: Any) -> Outcome:
    if isinstance(value, Outcome):
        return value
    if isinstance(value, AgentResult):
        return outcome_of(value)
    text = as_text(value)
    if not text.strip():
        words = "It returned nothing; an agent must return a text."
        return Outcome(Status.FAILED, None, FrozenDict(error=words, error_type="NoAnswer"))
    return Outcome(Status.SUCCESS, text, FrozenDict(stop_reason=StopReason.ANSWERED.value))


def _checked(agent: Any) -> Any:
    if isinstance(agent, type) or not (is_agent(agent) or callable(agent)):
        raise ConfigurationError(
            f"{agent!r:.80} cannot answer; give a spec, an agent, a workflow, a ChatModel, or a function (prompt: str)."
        )
    return agent


@lru_cache(maxsize=64)
def _runner(spec: AnyAgentSpec) -> AgentRunner:
    return AgentRunner(spec)


async def run_agent(agent: Any, prompt: str | None, key: str | None = None) -> Outcome:
    """Put *prompt* to *agent*, and say what became of it.

    Args:
        agent: As for :class:`AgentRunner`; the agent of a spec is built once in a process, with keys from the
            environment.
        prompt: The row's text; None fails without a call.
        key: Names the row.

    Returns:
        Status, response and metadata.  An error is an outcome; only a cancel comes out.

    Raises:
        ConfigurationError: The agent cannot be built, or nothing it has can answer.
    """
    known = isinstance(agent, (AgentSpec, ReflectionSpec))
    runner = _runner(agent) if known else AgentRunner(agent)
    return await runner.run(prompt, key)
