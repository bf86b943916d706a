"""SimpleReactAgent: a model, its tools and an ordered chain of advisors, put together once and run many times.

turn advisors (order < 0)  ->  revise  ->  ReAct loop  ->  call advisors (order >= 0)  ->  model
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, Generic, Literal, cast

import structlog

from reactflow.advisors.chat_memory import ChatMemoryAdvisor
from reactflow.advisors.output import OutputAdvisor
from reactflow.advisors.reflection import ReflectionAdvisor
from reactflow.budget import Budget
from reactflow.builder import AgentBuilder
from reactflow.chain import Advisor, AnyAdvisor, FunctionAdvisor, Handler, Order, ToolAdvisor, check_advisors, compose
from reactflow.doors import Doors, check_mapping, check_max_rounds
from reactflow.errors import BudgetExceeded, ConfigurationError, ReactflowError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.judge import judgement_of
from reactflow.loop import ReactLoop
from reactflow.memory import ChatMemory
from reactflow.messages import SystemMessage, last_question, readable
from reactflow.model import ChatModel, ChatRequest, ChatResponse, Run, answering
from reactflow.output_schema import output_schema
from reactflow.result import AgentResult, OutputT, StopReason
from reactflow.revise import Revise, best_draft
from reactflow.toolbox import ToolRunner, check_tools

log = structlog.get_logger("reactflow")

REACT_PROMPT = (
    "Answer the user's question. Where tools are offered, use them for what you do not know, read their results, and "
    "go on until you can answer. Say what is missing instead of guessing."
)


class SimpleReactAgent(Doors[AgentResult[OutputT]], Generic[OutputT]):
    """A ReAct agent.  Stateless per call and safe for concurrent use.

    Args:
        model: Who answers: any :class:`~reactflow.model.ChatModel`.
        tools: Functions, ``@tool`` functions or Tools; names must differ.
        advisors: Layers around the turn (order below 0) and around each model call (0 and above).
        system_prompt: The agent's instructions, joined with *react_prompt* into the one system message.
        react_prompt: How to work; None for none.
        memory: Short for ``ChatMemoryAdvisor(memory)`` among the advisors.
        max_rounds: Model calls that may use tools, for each attempt, >= 1; None for no limit.
        max_reflection_rounds: How often a rejected answer is sent back, >= 0.  None means 1 where the chain holds a
            ReflectionAdvisor, else 0.  With 0 no judge is called.
        judge_final: Whether the last revision is judged too.
        on_revision_error: What a provider's or model's error in a revision does: ``"return"`` the best draft or
            ``"raise"``.
        budget: The limits of each run; None for none.
        output_type: A type or a JSON Schema that the answer must satisfy; ``result.output`` is the value.
        options: Model options for the agent's own calls, such as ``temperature``.
        max_parallel_tools: Calls of one reply that run at the same time, >= 1.
        max_tool_calls: Tool calls in one turn, revisions included; None for no limit.
        name: What events and logs call it.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    def __init__(
        self,
        *,
        model: ChatModel,
        tools: Iterable[Any] = (),
        advisors: Iterable[AnyAdvisor] = (),
        system_prompt: str | None = None,
        react_prompt: str | None = REACT_PROMPT,
        memory: ChatMemory | None = None,
        max_rounds: int | None = 10,
        max_reflection_rounds: int | None = None,
        judge_final: bool = True,
        on_revision_error: Literal["return", "raise"] = "return",
        budget: Budget | None = None,
        output_type: type[OutputT] | Mapping[str, Any] | UnionType | None = None,
        options: Mapping[str, Any] | None = None,
        max_parallel_tools: int = 8,
        max_tool_calls: int | None = None,
        name: str = "react-agent",
    ) -> None:
        self.name = _checked_name(name)
        self.model = check_model(model)
        self.tools = check_tools(tools)
        self.budget = _checked_budget(budget)
        check_max_rounds(max_rounds)
        self.max_rounds = max_rounds
        self.options = FrozenDict(check_mapping("options", options))
        self._output = output_schema(output_type)
        self._system = _system_message(react_prompt, system_prompt)

        given = check_advisors(advisors)
        if memory is not None:
            given = (ChatMemoryAdvisor(memory), *given)
        _check_owners(given)
        self.max_reflection_rounds = _reflection_rounds(max_reflection_rounds, given)
        self.advisors = given if self.max_reflection_rounds else tuple(each for each in given if not _reflects(each))
        self.holds_back = self.max_reflection_rounds > 0
        _warn_of_self_judgement(self.advisors, self.model)

        tool_advisors = tuple(cast(ToolAdvisor, each) for each in given if hasattr(each, "advise_tool"))
        loop = ReactLoop(
            think=compose(self._around_calls(), answering(self.model)),
            tools=ToolRunner(
                tool_advisors=tool_advisors, max_parallel=max_parallel_tools, max_tool_calls=max_tool_calls
            ),
        )
        if on_revision_error not in ("return", "raise"):
            raise ConfigurationError(f"on_revision_error={on_revision_error!r}: give 'return' or 'raise'.")
        revise = Revise(loop, self.max_reflection_rounds, judge_final=judge_final, on_error=on_revision_error)
        self._answer: Handler = compose((_pin_question, *self._around_turn()), revise)

    @classmethod
    def builder(cls) -> AgentBuilder[SimpleReactAgent]:
        """Build one step by step; the keyword constructor is the real thing."""
        return AgentBuilder(make=cls)

    def explain(self) -> str:
        """The chain in words, one layer a line, outermost first."""
        turn = [f"{_describe(each):<42} around the turn" for each in _sorted(self._around_turn())]
        calls = [f"{_describe(each):<42} around each model call" for each in _sorted(self._around_calls())]
        sent_back = f"sends a rejected answer back, up to {self.max_reflection_rounds} times"
        revise = [f"{'revise':<42} {sent_back}"] if self.max_reflection_rounds else []
        rounds = "any number of" if self.max_rounds is None else f"up to {self.max_rounds}"
        tools = ", ".join(tool.name for tool in self.tools) or "no tools"
        loop = [f"{'ReAct loop':<42} {rounds} rounds with {tools}"]
        return "\n".join((f"{self.name}:", *turn, *revise, *loop, *calls, f"model {self.model.name}"))

    def __repr__(self) -> str:
        turn = [_describe(each) for each in _sorted(self._around_turn())]
        calls = [_describe(each) for each in _sorted(self._around_calls())]
        revise = [f"revise(rounds={self.max_reflection_rounds})"] if self.max_reflection_rounds else []
        chain = " > ".join((*turn, *revise, "[ReAct loop]", *calls, f"model {self.model.name!r}"))
        return f"{type(self).__name__}({self.name!r}: {chain})"

    def _around_turn(self) -> tuple[Advisor, ...]:
        return tuple(cast(Advisor, each) for each in self.advisors if hasattr(each, "advise") and each.order < 0)

    def _around_calls(self) -> tuple[Advisor, ...]:
        own = (OutputAdvisor(self._output),) if self._output else ()
        return (*own, *(cast(Advisor, each) for each in self.advisors if hasattr(each, "advise") and each.order >= 0))

    async def _perform(self, request: ChatRequest) -> AgentResult[OutputT]:
        request = request.replace(
            messages=(*self._system, *request.messages),
            tools=self.tools,
            options=FrozenDict({**self.options, **request.options}),
            response_schema=self._output.schema if self._output else None,
        )
        try:
            response = await self._answer(request)
        except ReactflowError as error:
            error.partial = self._partial(request.run, error)
            raise
        return self._result(request.run, response, request.context)

    def _partial(self, run: Run, error: ReactflowError) -> AgentResult[OutputT] | None:
        """The best draft of a run that failed, as it was inside: advisors further out have not seen it."""
        if not run.drafts:
            return None
        draft = best_draft(run.drafts.values())
        reason = error.reason if isinstance(error, BudgetExceeded) else StopReason.REVISION_ERROR
        if judgement_of(draft) is None and not isinstance(error, BudgetExceeded):
            reason = StopReason.JUDGE_ERROR if self.holds_back else StopReason.ANSWERED
        return self._result(run, draft.replace(stop_reason=reason), EMPTY)

    def _result(self, run: Run, response: ChatResponse, seed: Mapping[str, Any]) -> AgentResult[OutputT]:
        meter, judgement = run.meter, judgement_of(response)
        judged = next((each.draft for each in reversed(run.reflections) if each.judgement is judgement), None)
        reason = response.stop_reason or StopReason.ANSWERED
        if judgement is not None and judged != response.text:  # what was approved is not what goes out
            run.warn("An advisor changed the answer after it was judged, so it counts as not reviewed.")
            judgement = None
            reason = StopReason.ANSWERED if reason is StopReason.APPROVED else reason
        reviewed = judgement is not None and judgement.status == "judged"
        return AgentResult(
            text=readable(response.text),
            output=self._value(run, response.text),
            stop_reason=reason,
            approved=reviewed and judgement is not None and judgement.passed,
            reviewed=reviewed,
            messages=(run.question, *response.transcript, response.message),
            usage=meter.usage,
            usage_by_role=FrozenDict(meter.usage_by_role),
            cost_usd=meter.cost_usd if meter.budget.prices else None,
            rounds=run.rounds,
            reflections=tuple(run.reflections),
            warnings=tuple(run.warnings),
            context=FrozenDict({**seed, **response.context}),
            elapsed_s=meter.elapsed_s,
            run_id=run.run_id,
            conversation_id=run.conversation_id,
        )

    def _value(self, run: Run, text: str) -> OutputT | None:
        if self._output is None:
            return None
        try:
            return cast(OutputT, self._output.read(text))
        except ValueError:
            run.warn("The answer does not fit output_type, so there is no output.")
            return None


async def _pin(request: ChatRequest, call_next: Handler) -> ChatResponse:
    """Note the question as it stands here: a redactor further out is honoured, retrieval further in is not asked."""
    question = last_question(request.messages)
    if question is not None:
        request.run.question = question
    return await call_next(request)


_pin_question = FunctionAdvisor(_pin, Order.MEMORY)


def _sorted(advisors: Sequence[Advisor]) -> list[Advisor]:
    return sorted(advisors, key=lambda advisor: advisor.order)


def _describe(advisor: Advisor) -> str:
    if isinstance(advisor, FunctionAdvisor):
        return repr(advisor)
    return f"{type(advisor).__name__}(order={int(advisor.order)})"


def _reflects(advisor: object) -> bool:
    return bool(getattr(advisor, "reflects", False))


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"name={name!r}: give a text that is not blank.")
    return name


def check_model(model: Any) -> ChatModel:
    """Return *model*, or raise ConfigurationError where it is no ChatModel."""
    if isinstance(model, type) or not callable(getattr(model, "complete", None)) or not hasattr(model, "name"):
        raise ConfigurationError(
            f"model={model!r:.80} is no ChatModel; give one such as OpenAIChatModel('gpt-5-mini')."
        )
    return cast(ChatModel, model)


def _checked_budget(budget: object) -> Budget | None:
    if budget is not None and not isinstance(budget, Budget):
        raise ConfigurationError(f"budget={budget!r}: give Budget(...), or None for no limit.")
    return budget


def _system_message(*parts: str | None) -> tuple[SystemMessage, ...]:
    """One message of the parts that are not blank, or none."""
    for part in parts:
        if part is not None and not isinstance(part, str):
            raise ConfigurationError(f"A prompt must be a text or None, not {part!r:.80}.")
    text = "\n\n".join(part.strip() for part in parts if part and part.strip())
    return (SystemMessage(text),) if text else ()


def _check_owners(advisors: Sequence[AnyAdvisor]) -> None:
    memories = [each for each in advisors if isinstance(each, ChatMemoryAdvisor)]
    if len(memories) > 1:
        raise ConfigurationError(
            f"{len(memories)} memories would store each turn twice; give memory=... or one ChatMemoryAdvisor, not both."
        )
    reflections = [each for each in advisors if _reflects(each)]
    if len(reflections) > 1:
        raise ConfigurationError(
            f"{len(reflections)} reflection advisors would judge each answer twice; "
            "give one, with a list of evaluators: ReflectionAdvisor([first, second])."
        )


def _reflection_rounds(rounds: object, advisors: Sequence[AnyAdvisor]) -> int:
    reflecting = any(_reflects(each) for each in advisors)
    if rounds is None:
        return 1 if reflecting else 0
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
        raise ConfigurationError(
            f"max_reflection_rounds={rounds!r}: give a whole number from 0; 1 means at most one revision, 0 no judge."
        )
    if rounds and not reflecting:
        raise ConfigurationError(
            f"max_reflection_rounds={rounds} without a judge does nothing; add "
            "advisors=[ReflectionAdvisor(judge_model)], use ReflectionAgent, or leave it out."
        )
    return rounds


def _warn_of_self_judgement(advisors: Sequence[AnyAdvisor], model: ChatModel) -> None:
    if any(isinstance(each, ReflectionAdvisor) and each.given is model for each in advisors):
        log.warning(
            "judge.same_model", model=model.name, advice="a model overlooks its own mistakes; use another judge"
        )
