"""What stands between the roles of one row and their models: the journal, the limits, the count, the log."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from reactflow.batch.journal import Journal, RowId
from reactflow.batch.limits import Limits
from reactflow.budget import Price
from reactflow.frozen import EMPTY
from reactflow.messages import NO_USAGE, AssistantMessage, Message, Usage, UserMessage, estimate_tokens
from reactflow.model import ChatModel, ChatRequest, ChatResponse

Listen = Callable[[ChatRequest, str, ChatResponse | BaseException, float], None]
"""Told of each call of a model, replayed or not: the request, the role, what came of it, and the seconds."""

_MARK: Final = re.compile(r"[0-9a-f]{16,}")
"""The marks that fence data in prompts are new each time; all else of a prompt is the same when a row is run again."""


class Spending:
    """What a job has used so far, answers from the journal not counted.  Safe to use from several threads.

    Args:
        prices: By model name; ``"*"`` stands for every model not named.
    """

    def __init__(self, prices: Mapping[str, Price] = EMPTY) -> None:
        self.prices = prices
        self.usage = NO_USAGE
        self.cost_usd = 0.0
        self.replayed = 0
        self._lock = threading.Lock()

    def add(self, model: str, usage: Usage | None, *, guess: Usage = NO_USAGE) -> None:
        """Count one call; where the server reported nothing, *guess* is what it is taken to cost."""
        price = self.prices.get(model) or self.prices.get("*")
        known = usage is not None and not usage.unknown_calls
        with self._lock:
            self.usage += usage or Usage(0, 0, unknown_calls=1)
            self.cost_usd += price.of(usage if usage is not None and known else guess) if price else 0.0


class RowCalls:
    """The way from one row to its models; set as :data:`reactflow.model.call_model` while the row runs.

    A request that the journal has an answer to gets that one, in the time and at the price of a look-up; so a row
    that was cut off goes on where it was.  Requests are told apart by what they say and how often it was said.

    Args:
        row: Which row.
        journal: Where answers are kept; None for nowhere.
        limits: The job's rates.
        spending: The job's count.
        listen: Told of each call, or None.
        admitted: Whether the first request has been waited for.
    """

    def __init__(
        self,
        row: RowId,
        *,
        journal: Journal | None,
        limits: Limits,
        spending: Spending,
        listen: Listen | None = None,
        admitted: bool = False,
    ) -> None:
        self._row = row
        self._journal = journal
        self._limits = limits
        self._spending = spending
        self._listen = listen
        self._admitted = admitted
        self._asked: Counter[str] = Counter()

    async def __call__(self, model: ChatModel, request: ChatRequest, role: str) -> ChatResponse:
        """Answer *request*: from the journal, or by the model."""
        started = time.perf_counter()
        try:
            response = await self._answer(model, request, role)
        except BaseException as error:
            if self._listen is not None:
                self._listen(request, role, error, time.perf_counter() - started)
            raise
        if self._listen is not None:
            self._listen(request, role, response, time.perf_counter() - started)
        return response

    async def _answer(self, model: ChatModel, request: ChatRequest, role: str) -> ChatResponse:
        if self._journal is None:
            return await self._ask(model, request)
        step = self._step(model, request, role)
        known = self._journal.step(self._row, step)
        if known is not None:
            self._spending.replayed += 1
            return known
        response = await self._ask(model, request)
        if isinstance(response, ChatResponse):
            self._journal.note(self._row, step, response)
        return response

    async def _ask(self, model: ChatModel, request: ChatRequest) -> ChatResponse:
        guessed = sum(estimate_tokens(message.text) for message in request.messages)
        admitted, self._admitted = self._admitted, False
        await self._limits.before(guessed, admitted=admitted)
        response = await model.complete(request)
        if isinstance(response, ChatResponse):
            guess, usage = Usage(guessed, estimate_tokens(response.text)), response.usage
            known = usage if usage is not None and not usage.unknown_calls else guess
            self._limits.after(guessed, known.total_tokens)
            self._spending.add(model.name, usage, guess=guess)
        return response

    def _step(self, model: ChatModel, request: ChatRequest, role: str) -> str:
        said = [_said(message) for message in request.messages]
        tools = [[tool.name, tool.description] for tool in request.tools]
        rest = [
            model.name,
            role,
            tools,
            request.tool_choice,
            sorted((key, repr(value)) for key, value in request.options.items()),
            bool(request.response_schema),
        ]
        text = _MARK.sub("*", json.dumps([said, rest]))
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        self._asked[digest] += 1
        return f"{digest}/{self._asked[digest]}"


def _said(message: Message) -> list[object]:
    parts: list[object] = [type(message).__name__, message.text]
    if isinstance(message, AssistantMessage):
        parts += [[call.name, call.arguments] for call in message.tool_calls]
    if isinstance(message, UserMessage):
        parts += message.images
    return parts
