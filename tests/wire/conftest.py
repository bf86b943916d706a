"""A loopback server that answers from a script, and an agent with the tools that the scripts speak of."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import pytest

from reactflow import tool
from reactflow.agent import SimpleReactAgent
from reactflow.events import RunFinished, TextDelta, TextWithdrawn
from reactflow.loopback import LoopbackServer, Reply
from reactflow.messages import ToolMessage
from reactflow.openai_model import OpenAIChatModel
from reactflow.result import AgentResult

RAN: ContextVar[list[tuple[str, dict[str, Any]]]] = ContextVar("ran")


def noted(name: str, **arguments: Any) -> None:
    RAN.get().append((name, arguments))


@tool
async def add(a: int, b: int) -> int:
    noted("add", a=a, b=b)
    return a + b


@tool
async def echo(text: str) -> str:
    noted("echo", text=text)
    return text


@tool
async def ping() -> str:
    noted("ping")
    return "pong"


@tool
async def boom() -> None:
    noted("boom")
    raise RuntimeError("boom")


@tool
async def nothing() -> None:
    noted("nothing")


@tool
async def emptylist() -> list[int]:
    noted("emptylist")
    return []


@tool
async def obj() -> dict[str, Any]:
    return {"城市": "北京", "温度": 21.5}


@tool
def sysexit() -> None:
    noted("sysexit")
    raise SystemExit(1)


@tool
async def slow(s: float) -> str:
    noted("slow", s=s)
    await asyncio.sleep(s)
    return "done"


@tool
async def opt(x: int | None, unit: str = "C") -> str:
    return f"{x} {unit}"


TOOLS = (add, echo, ping, boom, nothing, emptylist, obj, sysexit, slow, opt)


@dataclass
class Outcome:
    """What came of one run: the tools that ran, those that gave the model an error, and the answer."""

    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    seen: str = ""  # what a user saw of the stream, less what was withdrawn
    result: AgentResult | None = None

    @property
    def text(self) -> str:
        return self.result.text

    @property
    def failed(self) -> list[str]:
        return [each.name for each in self.result.messages if isinstance(each, ToolMessage) and each.is_error]


async def converse(model: OpenAIChatModel, *, stream: bool = False, **settings: Any) -> Outcome:
    outcome = Outcome()
    RAN.set(outcome.ran)
    agent = SimpleReactAgent(model=model, tools=TOOLS, **settings)
    if not stream:
        outcome.result = await agent.arun("What is 1 + 2?")
        return outcome
    async for event in agent.astream("What is 1 + 2?"):
        if isinstance(event, TextDelta):
            outcome.seen += event.text
        elif isinstance(event, TextWithdrawn):
            outcome.seen = ""
        elif isinstance(event, RunFinished):
            outcome.result = event.result
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
