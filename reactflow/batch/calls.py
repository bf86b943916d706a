"""What stands between the roles of one row and their models and tools: journal, limits, count, log."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from reactflow.batch.journal import Journal, RowId
from reactflow.batch.limits import Limits
from reactflow.budget import Price
from reactflow.frozen import EMPTY
from reactflow.messages import (
    NO_USAGE,
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    estimate_tokens,
)
from reactflow.model import ChatModel, ChatRequest, ChatResponse, call_model
from reactflow.toolbox import run_tool

Listen = Callable[[ChatRequest, str, ChatResponse | BaseException, float], None]
"""Told of each call of a model, replayed or not: the request, the role, what came of it, and the seconds."""

_MARK: Final = re.compile(r"[0-9a-f]{16,}")
"""The marks that fence data in prompts are new each time; all else of a prompt is the same when a row is run again."""


_inside: ContextVar[list[str] | None] = ContextVar("reactflow_batch_inside", default=None)
"""The steps that were asked inside the tool that the current code is a part of."""


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

    def add(self, model: str, usage: Usage | None, *, taken: Usage) -> None:
        """Count one call: *usage* as the server reported it, the money by what it is *taken* to have used."""
        price = self.prices.get(model) or self.prices.get("*")
        with self._lock:
            self.usage += usage or Usage(0, 0, unknown_calls=1)
            self.cost_usd += price.of(taken) if price else 0.0


class RowCalls:
    """The way from one row to its models and tools while the row runs in :meth:`installed`.

    What the journal has an answer to gets that one, in the time and at the price of a look-up; so a row that was cut
    off goes on where it was.  Requests are told apart by what they say and how often it was said.  A tool's result
    is kept too: with another one the next request would be another, and be paid for again.

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

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let the calls that the current code makes inside pass here."""
        model, tool = call_model.set(self), run_tool.set(self.run_tool)
        try:
            yield
        finally:
            call_model.reset(model)
            run_tool.reset(tool)

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
        step = self._numbered(_content(model, request, role))
        if (inside := _inside.get()) is not None:
            inside.append(step)
        known = self._journal.step(self._row, step)
        if isinstance(known, ChatResponse):
            self._spending.replayed += 1
            return known
        response = await self._ask(model, request)
        if isinstance(response, ChatResponse):
            self._journal.note(self._row, step, response)
        return response

    async def _ask(self, model: ChatModel, request: ChatRequest) -> ChatResponse:
        guessed = _read_tokens(request) if self._limits.counts_tokens else 0
        admitted, self._admitted = self._admitted, False
        await self._limits.before(guessed, admitted=admitted)
        response = await model.complete(request)
        if isinstance(response, ChatResponse):
            taken = response.usage
            if taken is None or taken.unknown_calls:
                taken = Usage(_read_tokens(request), estimate_tokens(response.text))
            self._limits.after(guessed, taken.total_tokens)
            self._spending.add(model.name, response.usage, taken=taken)
        return response

    async def run_tool(self, call: ToolCall, work: Callable[[], Awaitable[ToolMessage]]) -> ToolMessage:
        """The result of *call*: from the journal, or by *work*.

        That of a tool that asks models is not kept, because their answers are: it runs again and gets them, so that
        the row's count is the same.
        """
        if self._journal is None:
            return await work()
        step = self._numbered(json.dumps(["tool", call.id, call.name, call.arguments]))
        known = self._journal.step(self._row, step)
        if isinstance(known, ToolMessage):
            return known
        asked: list[str] = []
        token = _inside.set(asked)
        try:
            result = await work()
        finally:
            _inside.reset(token)
        if not asked:
            self._journal.note(self._row, step, result)
        return result

    def _numbered(self, content: str) -> str:
        """The name of a step: a digest of its *content*, and for how many times it is taken."""
        digest = hashlib.sha256(content.encode()).hexdigest()[:32]
        self._asked[digest] += 1
        return f"{digest}/{self._asked[digest]}"


def _read_tokens(request: ChatRequest) -> int:
    return sum(estimate_tokens(message.text) for message in request.messages)


def _content(model: ChatModel, request: ChatRequest, role: str) -> str:
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
    return _MARK.sub("*", json.dumps([said, rest]))


def _said(message: Message) -> list[object]:
    parts: list[object] = [type(message).__name__, message.text]
    if isinstance(message, AssistantMessage):
        parts += [[call.name, call.arguments] for call in message.tool_calls]
    if isinstance(message, UserMessage):
        parts += message.images
    return parts
