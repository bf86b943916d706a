"""The program's own searches: several queries at once, each with an end of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from reactflow.errors import ConfigurationError
from reactflow.frozen import FrozenDict
from reactflow.messages import AssistantMessage, ToolCall, ToolMessage
from reactflow.model import ChatResponse
from reactflow.toolbox import Tool, ToolRunner
from reactflow.workflows.attempt import Trail
from reactflow.workflows.role import call, playing
from reactflow.workflows.sources import Source, read_sources

_QUERY: Mapping[str, Any] = FrozenDict(
    type="object",
    properties={"query": {"type": "string", "minLength": 1}},
    required=["query"],
    additionalProperties=False,
)


class Found(NamedTuple):
    """What one query brought.

    Args:
        query: What was asked.
        sources: What was found, the best first.
        problem: Why there is nothing, where the search failed; else None.
    """

    query: str
    sources: tuple[Source, ...] = ()
    problem: str | None = None


class Searcher(NamedTuple):
    """Runs queries; made by :func:`as_searcher`.

    Args:
        tool: What searches.
        argument: The name of its parameter for the query.
        max_results: Sources taken of each query, the first ones.
    """

    tool: Tool
    argument: str
    max_results: int

    async def search(self, queries: Sequence[str], trail: Trail, numbered_from: int) -> list[Found]:
        """Run all *queries* at the same time; one that fails does not stop the others.

        They are tool calls like a model's own: checked, cut at the deadline, told to listeners.

        Args:
            queries: At least one.
            trail: The run so far.
            numbered_from: The number of the first one in this run, for the ids of the calls.

        Raises:
            BudgetExceeded: The run's time was up; what still ran was cancelled.
        """
        calls = tuple(
            ToolCall(f"search_{number}", self.tool.name, json.dumps({self.argument: query}, ensure_ascii=False))
            for number, query in enumerate(queries, numbered_from)
        )
        request = trail.request.aside(trail.question).replace(tools=(self.tool,))
        with playing("search", trail):
            messages = await ToolRunner().run(ChatResponse(AssistantMessage("", calls)), request)
        return [self._found(query, message) for query, message in zip(queries, messages, strict=True)]

    def _found(self, query: str, message: ToolMessage) -> Found:
        if message.is_error:
            return Found(query, problem=message.text)
        try:
            return Found(query, read_sources(message.text, self.max_results))
        except ValueError as error:
            return Found(query, problem=f"What it returned cannot be read: {error}.")


def as_searcher(search: Any, *, max_results: int, timeout_s: float | None) -> Searcher:
    """Let *search* look things up.

    Args:
        search: A function of the query, plain or async, or a tool with one text parameter that must be given.
        max_results: Sources taken of each query, > 0.
        timeout_s: Seconds a query may take, > 0, unless the tool has a limit of its own; None for no limit.

    Raises:
        ConfigurationError: It is neither.
    """
    if isinstance(search, Tool):
        tool, argument = search, _query_parameter(search)
    elif callable(search) and not isinstance(search, type):
        tool, argument = Tool.from_schema("search", "Search for a query.", _QUERY, _looking_up(search)), "query"
    else:
        raise ConfigurationError(f"search={search!r:.80}: give a function of the query, or a tool.")
    if tool.timeout_s is None and timeout_s is not None:
        tool = replace(tool, timeout_s=timeout_s)
    return Searcher(tool, argument, max_results)


def _looking_up(search: Any) -> Any:
    async def look_up(query: str) -> Any:
        return await call(search, query)

    return look_up


def _query_parameter(tool: Tool) -> str:
    required = [str(name) for name in tool.parameters.get("required", ())]
    if "query" in required and len(required) == 1:
        return "query"
    if len(required) == 1 or (not required and "query" in tool.parameters.get("properties", {})):
        return required[0] if required else "query"
    raise ConfigurationError(f"search={tool!r}: it must be callable with the query alone, but requires {required}.")
