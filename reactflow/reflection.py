"""ReflectionAgent: a SimpleReactAgent whose answers are judged and, where they fail, revised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import EllipsisType, UnionType
from typing import Any, Generic, Literal, Self

from reactflow.advisors.chat_memory import ChatMemoryAdvisor
from reactflow.advisors.reflection import OnJudgeError, ReflectionAdvisor
from reactflow.agent import REACT_PROMPT, SimpleReactAgent, check_model
from reactflow.budget import Budget
from reactflow.builder import AgentBuilder
from reactflow.chain import AnyAdvisor, check_advisors
from reactflow.doors import Doors
from reactflow.errors import ConfigurationError
from reactflow.judge import LLMJudge
from reactflow.memory import ChatMemory, WindowChatMemory
from reactflow.model import ChatModel, ChatRequest
from reactflow.result import AgentResult, OutputT


class ReflectionAgent(Doors[AgentResult[OutputT]], Generic[OutputT]):
    """A ReAct agent that reviews each answer before it goes out.  Has all the doors of its ``delegate``.

    Args:
        model: Who drafts and revises.
        judge_model: Who judges; the drafting model where it is None.  A cheaper one does as a rule, and another one
            sees what the drafter overlooks.
        evaluator: What judges instead of a model with the default criteria: anything
            :func:`~reactflow.judging.evaluators.as_evaluator` takes.  Give this or *judge_model*, not both.
        max_reflection_rounds: How often a rejected answer is sent back, >= 0: 1 means at most one revision, 0 switches
            the judge off.
        on_judge_error: When the judge itself fails: ``"accept"``, ``"reject"`` or ``"raise"``.
        memory: A window of 20 messages where it is left out; None for none.

    The other arguments are those of :class:`~reactflow.agent.SimpleReactAgent`.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    def __init__(
        self,
        *,
        model: ChatModel,
        judge_model: ChatModel | None = None,
        evaluator: Any = None,
        tools: Iterable[Any] = (),
        advisors: Iterable[AnyAdvisor] = (),
        system_prompt: str | None = None,
        react_prompt: str | None = REACT_PROMPT,
        memory: ChatMemory | EllipsisType | None = ...,
        max_rounds: int | None = 10,
        max_reflection_rounds: int = 1,
        judge_final: bool = True,
        on_judge_error: OnJudgeError = "accept",
        on_revision_error: Literal["return", "raise"] = "return",
        budget: Budget | None = None,
        output_type: type[OutputT] | Mapping[str, Any] | UnionType | None = None,
        options: Mapping[str, Any] | None = None,
        max_parallel_tools: int = 8,
        max_tool_calls: int | None = None,
        name: str = "reflection-agent",
    ) -> None:
        if judge_model is not None and evaluator is not None:
            raise ConfigurationError(
                "Give judge_model=... or evaluator=..., not both: there is one owner of the verdict."
            )
        given = check_advisors(advisors)
        check_model(model)
        if evaluator is None:
            evaluator = LLMJudge(model) if judge_model is None else judge_model
        if any(getattr(each, "reflects", False) for each in given):
            raise ConfigurationError(
                "ReflectionAgent brings its own reflection advisor, and two would judge each answer twice; "
                "give evaluator=... or judge_model=... instead."
            )
        reflection = ReflectionAdvisor(evaluator, on_judge_error=on_judge_error)
        if isinstance(memory, EllipsisType):
            owned = any(isinstance(each, ChatMemoryAdvisor) for each in given)
            memory = None if owned else WindowChatMemory()
        self.delegate: SimpleReactAgent[OutputT] = SimpleReactAgent(
            model=model,
            tools=tools,
            advisors=(*given, reflection),
            system_prompt=system_prompt,
            react_prompt=react_prompt,
            memory=memory,
            max_rounds=max_rounds,
            max_reflection_rounds=max_reflection_rounds,
            judge_final=judge_final,
            on_revision_error=on_revision_error,
            budget=budget,
            output_type=output_type,
            options=options,
            max_parallel_tools=max_parallel_tools,
            max_tool_calls=max_tool_calls,
            name=name,
        )
        self.name, self.budget = self.delegate.name, self.delegate.budget
        self.max_rounds, self.holds_back = self.delegate.max_rounds, self.delegate.holds_back

    @classmethod
    def builder(cls) -> ReflectionAgentBuilder:
        """Build one step by step; the keyword constructor is the real thing."""
        return ReflectionAgentBuilder(make=cls)

    def explain(self) -> str:
        """The chain in words; see :meth:`SimpleReactAgent.explain <reactflow.agent.SimpleReactAgent.explain>`."""
        return self.delegate.explain()

    def __repr__(self) -> str:
        return repr(self.delegate).replace(type(self.delegate).__name__, type(self).__name__, 1)

    async def _perform(self, request: ChatRequest) -> AgentResult[OutputT]:
        return await self.delegate._perform(request)


@dataclass(frozen=True, kw_only=True)
class ReflectionAgentBuilder(AgentBuilder[ReflectionAgent]):
    """The steps of :class:`~reactflow.builder.AgentBuilder`, and the judge."""

    def judge_model(self, model: ChatModel | None) -> Self:
        """Set who judges."""
        return self._with(judge_model=model)
