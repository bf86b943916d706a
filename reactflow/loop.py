"""The ReAct loop: ask the model, run the tools it calls, ask again, until it answers.

    question -> model -> tool calls -> results -> model -> ... -> answer

The loop knows nothing of reflection, memory or budgets.  Those are advisors around it (a whole turn) or inside
*think* (each model call), and a revision is simply the loop run again on a longer conversation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from reactflow.chain import Handler
from reactflow.messages import AssistantMessage, ToolMessage
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
            The answer; its ``transcript`` holds the tool calls and results that led to it, its ``context`` the
            request's with what the rounds added.  ``stop_reason`` is set where this is no ordinary answer
            (cut, filtered, refused, given by a tool, or forced).

        Raises:
            BudgetExceeded: A limit came before an answer.
            ModelBehaviorError: The model twice gave neither text nor tool calls.
        """
        start, limit = len(request.messages), request.run.max_rounds
        for _ in count() if limit is None else range(limit):
            response, request = await self._round(request)
            calls = response.message.tool_calls
            if not calls:
                return _ended(response, request, start, cut_short(response))
            offered = request.tools if response.offered is None else response.offered
            results = await self.tools.run(response, request.replace(tools=offered))
            request = request.followed_by(response.message, *results)
            if answers_directly(calls, results, offered):
                return _ended(_direct_answer(results), request, start, StopReason.RETURN_DIRECT)
        notice = max_rounds_notice(request.run.question.text)
        response, request = await self._round(request.replace(tools=(), tool_choice="none").followed_by(notice))
        return _ended(response, request, start, cut_short(response) or StopReason.MAX_ROUNDS)

    async def _round(self, request: ChatRequest) -> tuple[ChatResponse, ChatRequest]:
        """One model call, and the request as it goes on: with what the round appended and added to the context."""
        response = await self.think(request)
        if response.transcript or response.context:
            request = request.followed_by(*response.transcript).with_context(response.context)
        return response, request


def _ended(response: ChatResponse, request: ChatRequest, start: int, reason: StopReason | None) -> ChatResponse:
    return response.replace(
        transcript=request.messages[start:],
        context=request.context,
        stop_reason=response.stop_reason or reason,
    )


def _direct_answer(results: tuple[ToolMessage, ...]) -> ChatResponse:
    return ChatResponse(AssistantMessage("\n".join(result.text for result in results)))
