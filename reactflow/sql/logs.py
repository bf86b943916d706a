"""The log of agents at work: one row for each message to a model, reply, tool call, tool result and error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reactflow.batch.calls import Listen
from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolMessage
from reactflow.model import ChatRequest, ChatResponse, Run
from reactflow.specs.outcome import Outcome, Status
from reactflow.specs.values import AnyAgentSpec, ReflectionSpec

COLUMNS: Final = ("agent_name", "job_id", "request_id", "statement_name", "iteration", "type", "data", "metrics")
"""The columns of a log table, in order: all text but ``iteration``; only ``metrics`` may be NULL."""

LogRow = tuple[str, str, str, str, int, str, str, str | None]


@dataclass(frozen=True, slots=True)
class RowLog:
    """Writes the log of the rows of one statement.

    Args:
        spec: The agent that is called.
        job_id: Names the session.
        statement_name: Names the statement.
        add: Where rows go.
    """

    spec: AnyAgentSpec
    job_id: str
    statement_name: str
    add: Callable[[LogRow], None]

    def listen(self, key: str | None) -> Listen:
        """A listener for one row; it counts how often each sub-agent was asked."""
        return _Steps(self, key or "")

    def row(self, key: str, name: str, iteration: int, kind: str, data: Any, metrics: Mapping[str, Any] | None) -> None:
        """Add one row."""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        numbers = None if metrics is None else json.dumps(metrics)
        self.add((name, self.job_id, key, self.statement_name, iteration, kind, text, numbers))

    def finished(self, key: str | None, outcome: Outcome, elapsed_s: float) -> None:
        """Say how a row ended, with the exact reason."""
        facts = dict(outcome.metadata)
        iteration = facts.get("iterations", 0)
        metrics = {name: facts[name] for name in _NUMBERS if name in facts} | {"elapsed_s": round(elapsed_s, 3)}
        if outcome.status is Status.FAILED:
            self.row(key or "", self.spec.name, iteration, "error", facts.get("error", ""), metrics)
        told = {name: value for name, value in facts.items() if name not in (*_NUMBERS, "draft", "error", "transient")}
        self.row(key or "", self.spec.name, iteration, "outcome", {"status": outcome.status.value, **told}, metrics)


_NUMBERS: Final = ("model_calls", "input_tokens", "output_tokens", "cost_usd")


class _Steps:
    """Listens to the model calls of one row."""

    def __init__(self, log: RowLog, key: str) -> None:
        self._log = log
        self._key = key
        self._logged: dict[str, int] = {}  # messages by run
        self._rounds: dict[str, int] = {}
        self._runs: dict[str, list[str]] = {}  # by agent

    def __call__(self, request: ChatRequest, role: str, said: ChatResponse | BaseException, elapsed_s: float) -> None:
        """Note one call."""
        run = request.run
        name = _name_at(self._log.spec, _path(run))
        runs = self._runs.setdefault(name, [])
        if run.run_id not in runs:
            runs.append(run.run_id)
        self._rounds[run.run_id] = self._rounds.get(run.run_id, 0) + 1
        iteration = self._rounds[run.run_id] if run.parent is None else runs.index(run.run_id) + 1
        for message in self._new(request):
            self._note(name, iteration, *_as_sent(message))
        metrics: dict[str, Any] = {"elapsed_s": round(elapsed_s, 3)}
        if isinstance(said, BaseException):
            self._note(name, iteration, "error", type(said).__name__, metrics)
            return
        if said.usage is not None:
            metrics |= {"input_tokens": said.usage.input_tokens, "output_tokens": said.usage.output_tokens}
        self._note(name, iteration, "model_response", said.text, metrics)
        for call in said.message.tool_calls:
            self._note(name, iteration, "tool_call", {"id": call.id, "name": call.name, "arguments": call.arguments})

    def _note(self, name: str, iteration: int, kind: str, data: Any, metrics: Mapping[str, Any] | None = None) -> None:
        self._log.row(self._key, name, iteration, kind, data, metrics)

    def _new(self, request: ChatRequest) -> list[Message]:
        """What this call says that the last one of the run did not; replies were noted when they came."""
        known = self._logged.get(request.run.run_id, 0)
        self._logged[request.run.run_id] = len(request.messages)
        return [message for message in request.messages[known:] if not isinstance(message, AssistantMessage)]


def _as_sent(message: Message) -> tuple[str, Any]:
    if isinstance(message, ToolMessage):
        return "tool_response", {"id": message.call_id, "name": message.name, "text": message.text}
    return "model_message", {"role": "system" if isinstance(message, SystemMessage) else "user", "text": message.text}


def _path(run: Run) -> list[str]:
    """The parts that lead from the called agent to the run's, such as ``["critic"]``."""
    parts: list[str] = []
    while run.parent is not None:
        parts.insert(0, run.meter.role)
        run = run.parent
    return parts


def _name_at(spec: AnyAgentSpec, path: list[str]) -> str:
    for part in path:
        if isinstance(spec, ReflectionSpec):
            spec = spec.critic if part == "critic" else spec.drafter
    return spec.name
