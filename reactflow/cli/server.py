"""A server put to the test: does it answer, and can it do what agents need?"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from http.client import HTTPException
from importlib.metadata import version
from typing import Any, TypeAlias
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from reactflow.budget import Budget, Meter
from reactflow.cli.findings import Finding, State
from reactflow.cli.narrator import seconds
from reactflow.cli.reasons import code_of_error
from reactflow.cli.setup import env
from reactflow.errors import BudgetExceeded, ReactflowError
from reactflow.events import Event, TextDelta
from reactflow.messages import ToolCall, ToolMessage, UserMessage
from reactflow.model import ChatModel, ChatRequest, ChatResponse, Run, ToolSpec, ask
from reactflow.threads import run_in_thread

ADD = ToolSpec(
    "add",
    "Add two whole numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)
SUM = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}

MAX_BODY_BYTES = 4 << 20

UNREACHABLE = "Is it running, and is the address right? Proxies (HTTPS_PROXY) and firewalls count too."
TOOLS_FIX = (
    "Choose a model that was trained for tools; vLLM needs --enable-auto-tool-choice and --tool-call-parser. "
    "Else OpenAIChatModel(..., tool_mode='json_schema' or 'text') offers tools in words."
)
SCHEMA_FIX = "Use OpenAIChatModel(..., response_format='json_object' or 'none'): it puts the schema into words."


async def list_models(base_url: str, model: str, timeout_s: float) -> Finding:
    """Ask the server for its models: that is cheap, and it tells most mistakes apart."""
    url = f"{base_url.rstrip('/')}/models"
    try:
        status, body = await run_in_thread(lambda: _get(url, timeout_s))
    except (OSError, HTTPException, ValueError) as error:
        facts = str(error) or type(error).__name__
        return Finding("server", "bad", f"{base_url} does not answer: {facts}", UNREACHABLE)
    return _judge_list(status, _model_names(body) if status == 200 else None, model, url)


def _get(url: str, timeout_s: float) -> tuple[int, bytes]:
    """The status and the body at *url*; the key goes to this server only, so no redirect is followed."""
    headers = {"User-Agent": f"reactflow/{version('reactflow')}"}
    if key := env("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    try:
        with build_opener(_StayHere).open(Request(url, headers=headers), timeout=timeout_s) as reply:
            return reply.status, reply.read(MAX_BODY_BYTES)
    except HTTPError as error:
        return error.code, b""


class _StayHere(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _judge_list(status: int, names: list[str] | None, model: str, url: str) -> Finding:
    if status in (401, 403):
        fix = "Set OPENAI_API_KEY to a key of this server."
        return Finding("server", "bad", f"{url} refused the key ({status})", fix)
    if names is None:
        return Finding("server", "note", f"answers, but lists no models ({status} from {url})")
    if model in names or not names:
        return Finding("server", "good", f"answers and lists {len(names)} models")
    near = get_close_matches(model, names, n=3, cutoff=0.3) or names[:3]
    fix = f"It has {', '.join(near)}; choose with --model."
    return Finding("server", "note", f"answers, but does not list {model!r}", fix)


def _model_names(body: bytes) -> list[str] | None:
    try:
        return [str(each["id"]) for each in json.loads(body)["data"]]
    except (ValueError, KeyError, TypeError):
        return None


async def try_features(model: ChatModel, timeout_s: float) -> AsyncIterator[Finding]:
    """Try what agents need, one after the other; without a first answer the rest would tell nothing."""
    first = await _try("answers", _answers, model, timeout_s)
    yield first
    if first.state == "bad":
        return
    for name, check in (("streaming", _streams), ("tools", _calls_tools), ("JSON schema", _keeps_schema)):
        yield await _try(name, check, model, timeout_s)


async def _try(name: str, check: Check, model: ChatModel, timeout_s: float) -> Finding:
    try:
        return Finding(name, *await check(Asking(model, timeout_s)))
    except BudgetExceeded:
        return Finding(name, "bad", f"no reply within {seconds(timeout_s)}", "Wait longer with --timeout.")
    except ReactflowError as error:
        return Finding(name, "bad", str(error), code=code_of_error(error))


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks *model* one thing, within *timeout_s* seconds."""

    model: ChatModel
    timeout_s: float

    async def __call__(self, question: str, **changes: Any) -> ChatResponse:
        """The reply to *question*, asked by a request with *changes*."""
        message = UserMessage(question)
        run = Run(question=message, meter=Meter(Budget(max_seconds=self.timeout_s)))
        return await ask(self.model, ChatRequest(messages=(message,), run=run).replace(**changes), role="doctor")


Check: TypeAlias = Callable[[Asking], Awaitable[tuple[State, str, str]]]
"""Tries one thing; gives the state, what was found, and the fix."""


async def _answers(asking: Asking) -> tuple[State, str, str]:
    started = time.perf_counter()
    response = await asking("Reply with the word OK.")
    took = seconds(time.perf_counter() - started)
    if not response.text.strip():
        return "bad", "an empty reply", "Try another model, or give it a larger output limit."
    if response.usage is None or response.usage.unknown_calls:
        return "note", f"in {took}, without token counts", "Token budgets will count an estimate."
    return "good", f"in {took}, with token counts", ""


async def _streams(asking: Asking) -> tuple[State, str, str]:
    heard: list[Event] = []
    await asking("Count from 1 to 20, one number a line.", stream=True, emit=heard.append)
    pieces = sum(isinstance(event, TextDelta) for event in heard)
    if pieces > 1:
        return "good", f"in {pieces} pieces", ""
    return "note", "the reply came in one piece", "Answers will appear at once; a proxy may hold the words back."


async def _calls_tools(asking: Asking) -> tuple[State, str, str]:
    question = "Use the tool add to add 2 and 3."
    response = await asking(question, tools=(ADD,))
    if not response.message.tool_calls:
        return "bad", "the model answered in words and called no tool", TOOLS_FIX
    call = response.message.tool_calls[0]
    if _arguments(call) != {"a": 2, "b": 3}:
        return "bad", f"the call came as {call.name}({call.arguments})", TOOLS_FIX
    results = tuple(ToolMessage("5", call_id=each.id, name=each.name) for each in response.message.tool_calls)
    await asking(question, tools=(ADD,), messages=(UserMessage(question), response.message, *results))
    return "good", "called, and the result was taken back", ""


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        return call.read_arguments()
    except ValueError:
        return None


async def _keeps_schema(asking: Asking) -> tuple[State, str, str]:
    response = await asking("What is 2 + 3? Answer as JSON.", response_schema=SUM)
    try:
        fits = isinstance(json.loads(response.text)["sum"], int)
    except (ValueError, KeyError, TypeError):
        fits = False
    return ("good", "kept", "") if fits else ("bad", f"not kept: {response.text[:60]!r}", SCHEMA_FIX)
