"""A loopback server that answers from a script, and an agent just large enough to test the wire with."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reactflow.events import TextDelta, TextWithdrawn
from reactflow.loopback import LoopbackServer, Reply
from reactflow.messages import ToolCall, ToolMessage, UserMessage
from reactflow.model import ChatRequest, Run, ToolSpec, ask
from reactflow.openai_model import OpenAIChatModel


def spec(name: str, **properties: Any) -> ToolSpec:
    return ToolSpec(name, f"{name}.", {"type": "object", "properties": properties, "required": list(properties)})


TOOLS = (
    spec("add", a={"type": "integer"}, b={"type": "integer"}),
    spec("echo", text={"type": "string"}),
    spec("slow", s={"type": "number"}),
    *map(spec, ("ping", "boom", "nothing", "emptylist", "obj", "sysexit")),
    ToolSpec("opt", "opt.", {"type": "object", "properties": {"x": {"type": ["integer", "null"]}, "unit": {}}}),
)


@dataclass
class Outcome:
    text: str = ""
    finish_reason: str | None = None
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seen: str = ""  # what a user saw of the stream, less what was withdrawn
    run: Run | None = None


def execute(call: ToolCall, outcome: Outcome, finish_reason: str | None) -> ToolMessage:
    known = next((tool for tool in TOOLS if tool.name == call.name), None)
    try:
        if known is None or finish_reason == "length":
            raise ValueError("no such tool, or cut")
        arguments = call.read_arguments()
        Draft202012Validator(known.parameters).validate(arguments)
    except Exception as error:
        outcome.failed.append(call.name)
        return ToolMessage(f"error: {type(error).__name__}", call.id, call.name, is_error=True)
    outcome.ran.append((call.name, arguments))
    return ToolMessage(json.dumps(arguments, ensure_ascii=False), call.id, call.name)


async def converse(model: OpenAIChatModel, *, stream: bool = False, rounds: int = 5) -> Outcome:
    outcome = Outcome()

    def emit(event: Any) -> None:
        if isinstance(event, TextDelta):
            outcome.seen += event.text
        elif isinstance(event, TextWithdrawn):
            outcome.seen = ""

    question = UserMessage("What is 1 + 2?")
    outcome.run = Run(question=question)
    request = ChatRequest(messages=(question,), run=outcome.run, tools=TOOLS, stream=stream, emit=emit)
    for _ in range(rounds):
        response = await ask(model, request)
        outcome.text, outcome.finish_reason = response.text, response.finish_reason
        calls = response.message.tool_calls
        if not calls and response.text.strip():
            return outcome
        if calls:
            results = [execute(call, outcome, response.finish_reason) for call in calls]
            request = request.followed_by(response.message, *results)
    return outcome


@pytest.fixture(scope="session")
def talk() -> Callable[..., Any]:
    return converse


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    servers: list[LoopbackServer] = []

    def start(*replies: Any, **settings: Any) -> LoopbackServer:
        servers.append(LoopbackServer(*replies, **settings).start())
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def as_reply(scripted: dict[str, Any]) -> Reply:
    if "sse" not in scripted:
        return Reply(body=scripted["body"], status=scripted.get("status", 200))
    events = [event.get("data", event.get("raw")) for event in scripted["sse"] if "cut" not in event]
    cut = any("cut" in event for event in scripted["sse"])
    return Reply(events=events, end="drop" if cut else "done")


@pytest.fixture
def script() -> Callable[[Any], list[Reply]]:
    return lambda case: [as_reply(reply) for reply in case["replies"]]
