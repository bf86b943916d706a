"""What a run costs beside a loop written by hand on the openai client: CPU of the client's process.

The server runs in a process of its own and is not counted.  The hand-written loop does the least that works: it checks
no arguments, keeps no events and has no limits.  Figures to read, not a test; give the numbers of the rows to run.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import openai

from reactflow import OpenAIChatModel, ReflectionAgent, SimpleReactAgent, tool

Run = Callable[[], Awaitable[Any]]

COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

SYSTEM = "You are a careful assistant. Use the tools for what you do not know, and answer in one sentence."
QUESTION = "Add up the numbers of the last three quarters, and say which was the best."
NOTE = "x" * 2000
NUMBER = {"type": "integer", "description": "A whole number."}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {"a": NUMBER, "b": NUMBER},
                "required": ["a", "b"],
            },
        },
    }
    for name, description in (("add", "Add two numbers."), ("multiply", "Multiply two numbers."))
]
VERDICTS = [
    '{"issues": [{"description": "no source", "severity": 3}], "feedback": "name the source", "score": 0.4, '
    '"passed": false}',
    '{"issues": [], "feedback": null, "score": 0.9, "passed": true}',
]


async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{a + b}"


async def multiply(a: int, b: int) -> str:
    """Multiply two numbers."""
    return f"{a * b}"


times: list[float] = []


@tool(name="add")
async def add_at_length(a: int, b: int) -> str:
    """Add two numbers."""
    times.append(time.process_time())
    return f"{a + b}{NOTE}"


async def by_hand(client: openai.AsyncOpenAI, function: Any = add) -> str:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    while True:
        reply = await client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
        message = reply.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            await run_by_hand(messages, call.id, call.function.arguments, function)


async def by_hand_streamed(client: openai.AsyncOpenAI) -> str:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    while True:
        stream = await client.chat.completions.create(
            model="m", messages=messages, tools=TOOLS, stream=True, stream_options={"include_usage": True}
        )
        text, calls = "", {}
        async for chunk in stream:
            if not chunk.choices:
                continue
            text += chunk.choices[0].delta.content or ""
            for part in chunk.choices[0].delta.tool_calls or ():
                call = calls.setdefault(part.index, {"id": part.id, "name": part.function.name, "arguments": ""})
                call["arguments"] += part.function.arguments or ""
        if not calls:
            return text
        functions = [(call["id"], {"name": call["name"], "arguments": call["arguments"]}) for call in calls.values()]
        tool_calls = [{"id": id, "type": "function", "function": function} for id, function in functions]
        messages.append({"role": "assistant", "content": None, "tool_calls": tool_calls})
        for id, function in functions:
            await run_by_hand(messages, id, function["arguments"])


async def run_by_hand(messages: list[Any], call_id: str, arguments: str, function: Any = add) -> None:
    result = await function(**json.loads(arguments))
    messages.append({"role": "tool", "tool_call_id": call_id, "content": result})


async def reflect_by_hand(client: openai.AsyncOpenAI) -> str:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    for _ in range(2):
        draft = (await client.chat.completions.create(model="m", messages=messages)).choices[0].message.content
        criteria = f"Judge the answer; reply with JSON.\nQuestion: {QUESTION}\nAnswer: {draft}"
        judged = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": criteria}])
        verdict = json.loads(judged.choices[0].message.content)
        if verdict["passed"]:
            break
        messages += [{"role": "assistant", "content": draft}, {"role": "user", "content": verdict["feedback"]}]
    return draft


@asynccontextmanager
async def server(*arguments: str) -> AsyncIterator[str]:
    command = [sys.executable, "-m", "reactflow.loopback", "--no-check", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


async def cpu_ms(run: Run, runs: int) -> float:
    started = time.process_time()
    for _ in range(runs):
        await run()
    return (time.process_time() - started) / runs * 1000


async def compare(title: str, hand: Run, ours: Run, *, runs: int, turns: int = 7) -> None:
    """Both in turn, so that a busy machine hits both; the medians are compared."""
    await hand(), await ours()
    pairs = [(await cpu_ms(hand, runs), await cpu_ms(ours, runs)) for _ in range(turns)]
    by_hand_ms, ours_ms = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{title:<44}{by_hand_ms:10.2f}{ours_ms:10.2f}{ours_ms / by_hand_ms:8.2f}", flush=True)


def make_agent(url: str, *tools: Any) -> SimpleReactAgent:
    model = OpenAIChatModel("m", base_url=url)
    return SimpleReactAgent(
        model=model, tools=tools or (add, multiply), system_prompt=SYSTEM, react_prompt=None, max_rounds=None
    )


async def drain(agent: SimpleReactAgent) -> None:
    async for _ in agent.astream(QUESTION):
        pass


async def three_rounds() -> None:
    async with server() as url, openai.AsyncOpenAI(api_key="x", base_url=url) as client:
        agent = make_agent(url)
        await compare("three-round tool run", lambda: by_hand(client), lambda: agent.arun(QUESTION), runs=30)


async def three_rounds_streamed() -> None:
    async with server("--deltas", "200") as url, openai.AsyncOpenAI(api_key="x", base_url=url) as client:
        agent = make_agent(url)
        await compare("the same, 200 streamed deltas", lambda: by_hand_streamed(client), lambda: drain(agent), runs=10)


async def many_at_once() -> None:
    async with server("--delay", "0.2") as url, openai.AsyncOpenAI(api_key="x", base_url=url) as client:
        agent = make_agent(url)

        async def thousand(run: Run) -> None:
            await asyncio.gather(*(run() for _ in range(1000)))

        for title, run in (
            ("by hand", lambda: by_hand(client)),
            ("ours", lambda: agent.arun(QUESTION)),
        ):
            started, wall = time.process_time(), time.perf_counter()
            await thousand(run)
            cpu_s, wall_s = time.process_time() - started, time.perf_counter() - wall
            print(f"1,000 concurrent runs, 200 ms a call: {title:<8} {cpu_s:6.2f} s of CPU in {wall_s:6.2f} s")


async def hundred_rounds() -> None:
    async with server("--tool-rounds", "100") as url, openai.AsyncOpenAI(api_key="x", base_url=url) as client:
        agent = make_agent(url, add_at_length, multiply)
        hand, ours = lambda: by_hand(client, add_at_length), lambda: agent.arun(QUESTION)
        await compare("100 tool rounds of 2 KB", hand, ours, runs=1, turns=3)
        for title, run, runs in (("by hand", hand, 5), ("ours", ours, 25)):
            rounds = await round_ms(run, runs)
            first, last = statistics.mean(rounds[5:25]), statistics.mean(rounds[-20:])
            print(
                f"    {title:<8} {first:.2f} ms for an early round, {last:.2f} for a late one: {last / first:.2f} times"
            )


async def round_ms(run: Run, runs: int) -> list[float]:
    """What each round takes, the least of several runs: what a neighbour adds falls on other rounds each time."""
    gaps = []
    for _ in range(runs):
        times.clear()
        await run()
        gaps.append([(later - earlier) * 1000 for earlier, later in pairwise(times)])
    return [min(column) for column in zip(*gaps, strict=True)]


async def reflection() -> None:
    texts = ("The third.", VERDICTS[0], "The third, by the report.", VERDICTS[1])
    async with server("--texts", *texts) as url, openai.AsyncOpenAI(api_key="x", base_url=url) as client:
        model, judge = OpenAIChatModel("m", base_url=url), OpenAIChatModel("m", base_url=url)
        agent = ReflectionAgent(model=model, judge_model=judge, system_prompt=SYSTEM, memory=None)
        result = await agent.arun(QUESTION)
        assert (result.approved, len(result.reflections)) == (True, 2), result
        await compare(
            "draft, rejection, revision, approval",
            lambda: reflect_by_hand(client),
            lambda: agent.arun(QUESTION),
            runs=20,
        )


FIRST_BY_HAND = """
import asyncio, time, openai
begun = time.process_time()
async def main():
    client = openai.AsyncOpenAI(api_key="x", base_url={url!r})
    await client.chat.completions.create(model="m", messages=[{{"role": "user", "content": "hi"}}])
asyncio.run(main())
print(time.process_time() - begun, time.process_time())
"""
FIRST_OURS = """
import asyncio, time
from reactflow import OpenAIChatModel, SimpleReactAgent
begun = time.process_time()
asyncio.run(SimpleReactAgent(model=OpenAIChatModel("m", base_url={url!r})).arun("hi"))
print(time.process_time() - begun, time.process_time())
"""


async def first_call() -> None:
    async with server("--tool-rounds", "0") as url:
        programs = FIRST_BY_HAND.format(url=url), FIRST_OURS.format(url=url)
        run_program(programs[1])  # writes the bytecode, as an installation does
        hand, ours = zip(*([run_program(program) for program in programs] for _ in range(15)), strict=True)
    for column, title in enumerate(("a first agent and question, once imported", "the same, imports included")):
        pair = [statistics.median(times[column] for times in program) * 1000 for program in (hand, ours)]
        print(f"{title:<44}{pair[0]:10.2f}{pair[1]:10.2f}{pair[1] - pair[0]:+8.0f} ms")


def run_program(program: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", program], env=COMPILED, stdout=subprocess.PIPE, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


ROWS = (three_rounds, three_rounds_streamed, many_at_once, hundred_rounds, reflection, first_call)


async def main() -> None:
    print(f"{'CPU in ms':<44}{'by hand':>10}{'ours':>10}{'ratio':>8}")
    for number, row in enumerate(ROWS, 1):
        if len(sys.argv) < 2 or str(number) in sys.argv[1:]:
            await row()


if __name__ == "__main__":
    asyncio.run(main())
