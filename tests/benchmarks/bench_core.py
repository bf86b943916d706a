"""What the agent itself costs: CPU per model call, all but the model client.

The model answers at once from prepared responses, so what is left is the chain, the loop, the tools, memory and
events.  Prints microseconds of CPU per model call for a three-round run, and how the cost of a round grows over a
long one.  Figures to read, not a test.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from itertools import pairwise

from reactflow import AssistantMessage, ChatResponse, SimpleReactAgent, ToolCall, Usage, WindowChatMemory
from reactflow.chain import advisor
from reactflow.model import ChatRequest

RUNS = 300


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def call(number: int) -> ToolCall:
    return ToolCall(f"call_{number}", "add", '{"a": 1, "b": 2}')


class Instant:
    """A model that costs nothing: *rounds* replies with tool calls, then an answer."""

    name = "instant"

    def __init__(self, rounds: int) -> None:
        usage = Usage(10, 5)
        first = ChatResponse(AssistantMessage("", (call(1), call(2))), usage, "tool_calls")
        more = [ChatResponse(AssistantMessage("", (call(n),)), usage, "tool_calls") for n in range(3, rounds + 2)]
        self.replies = [first, *more, ChatResponse(AssistantMessage("three"), usage, "stop")]
        self.times: list[float] = []

    async def complete(self, request: ChatRequest) -> ChatResponse:
        self.times.append(time.process_time())
        return self.replies[request.run.rounds - 1]


@advisor(order=10)
async def passing(request, call_next):
    return await call_next(request)


async def cpu_us_per_call(agent: SimpleReactAgent, calls: int, **settings: str) -> float:
    times = []
    for _ in range(RUNS):
        started = time.process_time()
        await agent.arun("What is 1 + 2?", **settings)
        times.append((time.process_time() - started) / calls * 1e6)
    return statistics.median(times)


async def main() -> None:
    bare = SimpleReactAgent(model=Instant(2), tools=[add])
    print(f"three rounds, bare agent:            {await cpu_us_per_call(bare, 3):6.0f} us of CPU per model call")
    full = SimpleReactAgent(
        model=Instant(2), tools=[add], advisors=[passing, passing], memory=WindowChatMemory(max_messages=1)
    )
    cost = await cpu_us_per_call(full, 3, conversation_id="c")
    print(f"three rounds, advisors and memory:   {cost:6.0f} us of CPU per model call")

    model = Instant(200)
    await SimpleReactAgent(model=model, tools=[add], max_rounds=None).arun("go on")
    gaps = [(later - earlier) * 1e6 for earlier, later in pairwise(model.times)]
    first, last = statistics.median(gaps[5:45]), statistics.median(gaps[-40:])
    print(f"200 rounds: {first:.0f} us a round at the start, {last:.0f} at the end (growth {last / first:.2f})")


if __name__ == "__main__":
    asyncio.run(main())
