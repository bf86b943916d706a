"""The ReAct loop: ask the model, run the tools it calls, ask again, until it answers.

    question -> model -> tool calls -> results -> model -> ... -> answer

The loop knows nothing of reflection, memory or budgets.  Those are advisors around it (a whole turn) or inside
*think* (each model call), and a revision is simply the loop run again on a longer conversation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from reactflow.chain import Handler
from reactflow.frozen import FrozenDict
from reactflow.messages import AssistantMessage, Message, ToolMessage
from reactflow.model import ChatRequest, ChatResponse, cut_short
from reactflow.phrases import max_rounds_notice
from reactflow.result import StopReason
from reactflow.toolbox import ToolRunner, answers_directly


@dataclass(frozen=True, slots=True)
class ReactLoop:
    """Turns a question into an answer, calling tools on the way.

    Args:
        think: One model call, wrapped in the advisors of order 0 and above.
        tools: Runs the calls of one reply, concurrently, and gives exactly one result for each.
    """

    think: Handler
    tools: ToolRunner

    async def __call__(self, request: ChatRequest) -> ChatResponse:
        """Answer *request* in at most ``run.max_rounds`` model calls with tools, and one without where they run out.

        Returns:
            The answer; its ``transcript`` holds the tool calls and results that led to it, its ``context`` what the
            rounds added.  ``stop_reason`` is set where this is no ordinary answer (cut, filtered, refused, given by
            a tool, or forced).

        Raises:
            BudgetExceeded: A limit came before an answer.
            ModelBehaviorError: The model twice gave neither text nor tool calls.
        """
        turn = _Turn(request)
        for round in count(1):
            limit = request.run.max_rounds
            if limit is not None and round > limit:
                return await self._forced_answer(turn)
            response = turn.heard(await self.think(turn.request))
            calls = response.message.tool_calls
            if not calls:
                return turn.ended(response, cut_short(response))
            results = await self.tools.run(response, turn.request)
            turn.said(response.message, *results)
            if answers_directly(calls, results, turn.request.tools):
                return turn.ended(_direct_answer(results), StopReason.RETURN_DIRECT)
        raise AssertionError("count() never ends")  # pragma: no cover

    async def _forced_answer(self, turn: _Turn) -> ChatResponse:
        """Take the tools away and ask for an answer from what is there."""
        turn.said(max_rounds_notice(turn.request.run.question.text))
        response = turn.heard(await self.think(turn.request.replace(tools=(), tool_choice="none")))
        return turn.ended(response, cut_short(response) or StopReason.MAX_ROUNDS)


class _Turn:
    """The request as it grows, and what the rounds added to the context."""

    __slots__ = ("added", "request", "start")

    def __init__(self, request: ChatRequest) -> None:
        self.request = request
        self.start = len(request.messages)
        self.added: dict[str, object] = {}

    def said(self, *messages: Message) -> None:
        self.request = self.request.followed_by(*messages)

    def heard(self, response: ChatResponse) -> ChatResponse:
        """Keep what a round brought beside its message: what it appended, and its context."""
        if response.transcript:
            self.said(*response.transcript)
        if response.context:
            self.added.update(response.context)
            self.request = self.request.with_context(**response.context)
        return response

    def ended(self, response: ChatResponse, reason: StopReason | None) -> ChatResponse:
        return response.replace(
            transcript=self.request.messages[self.start :],
            context=FrozenDict(self.added),
            stop_reason=response.stop_reason or reason,
        )


def _direct_answer(results: tuple[ToolMessage, ...]) -> ChatResponse:
    return ChatResponse(AssistantMessage("\n".join(result.text for result in results)))
