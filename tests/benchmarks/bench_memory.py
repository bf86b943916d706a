"""What memory costs: a turn on each store, short and long, and a conversation beside one written by hand.

A turn here is what an agent does with its memory: hold the conversation, read the newest 20 messages, append two.
Servers are measured where their addresses are set (``tests/proof/services.sh start`` prints them).  Figures to read,
not a test; ``bench_memory.py 1`` or ``2`` runs one of the two parts.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from uuid import uuid4

import openai

from reactflow import OpenAIChatModel, SimpleReactAgent, WindowChatMemory
from reactflow.messages import AssistantMessage, Message, UserMessage
from reactflow.store import ConversationStore
from reactflow.stores import open_store

SIZES = (10, 1_000, 100_000)
MEASURED = 200
SYSTEM = "You are a careful assistant. Answer in one sentence."


def turn(number: int) -> tuple[Message, ...]:
    return UserMessage(f"What is {number} plus {number}?"), AssistantMessage(f"It is {2 * number}. " + "x" * 200)


async def turn_cost(store: ConversationStore, conversation_id: str) -> tuple[float, float]:
    """Median milliseconds, and CPU milliseconds of this process, of one turn."""
    memory = WindowChatMemory(20, store)
    walls = []
    for number in range(20):
        await memory.add(conversation_id, turn(number))
    started_cpu = time.process_time()
    for number in range(MEASURED):
        started = time.perf_counter()
        async with memory.turn(conversation_id):
            assert len(await memory.get(conversation_id)) == 20
            await memory.add(conversation_id, turn(number))
        walls.append((time.perf_counter() - started) * 1000)
    return statistics.median(walls), (time.process_time() - started_cpu) / MEASURED * 1000


async def stores(folder: str) -> None:
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{folder}/chat.db"}
    urls |= {
        name: os.environ.get(f"REACTFLOW_TEST_{name.upper()}_URL", "") for name in ("postgres", "mariadb", "redis")
    }
    print(f"{'one turn':<12}" + "".join(f"{f'{size:,} turns stored':>26}" for size in SIZES))
    for name, url in urls.items():
        if not url:
            print(f"{name:<12}{'no server':>26}")
            continue
        store = open_store(url, **({} if name == "memory" else {"tenant": uuid4().hex, "timeout_s": 300}))
        print(f"{name:<12}", end="", flush=True)
        for size in SIZES:
            for start in range(0, size, 5_000):
                batch = [m for number in range(start, min(start + 5_000, size)) for m in turn(number)]
                await store.append(f"c{size}", batch)
            wall, cpu = await turn_cost(store, f"c{size}")
            print(f"{f'{wall:.2f} ms, {cpu:.2f} ms CPU':>26}", end="", flush=True)
            await store.clear(f"c{size}")
        print()
        if name != "memory":
            await store.aclose()


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    command = [sys.executable, "-m", "reactflow.loopback", "--no-check", "--tool-rounds", "0"]
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


async def by_hand(client: openai.AsyncOpenAI, database: sqlite3.Connection, conversation_id: str) -> None:
    for number in range(50):
        question = f"What is {number} plus {number}?"
        rows = database.execute(
            "select role, content from messages where conversation = ? order by id desc limit 20", (conversation_id,)
        ).fetchall()
        history = [{"role": role, "content": content} for role, content in reversed(rows)]
        messages = [{"role": "system", "content": SYSTEM}, *history, {"role": "user", "content": question}]
        reply = await client.chat.completions.create(model="m", messages=messages)
        answer = reply.choices[0].message.content
        database.executemany(
            "insert into messages (conversation, role, content) values (?, ?, ?)",
            [(conversation_id, "user", question), (conversation_id, "assistant", answer)],
        )
        database.commit()


async def ours(agent: SimpleReactAgent, conversation_id: str) -> None:
    for number in range(50):
        await agent.arun(f"What is {number} plus {number}?", conversation_id=conversation_id)


async def conversation(folder: str) -> None:
    database = sqlite3.connect(f"{folder}/hand.db")
    database.execute("create table messages (id integer primary key, conversation text, role text, content text)")
    database.execute("create index by_conversation on messages (conversation, id)")
    names = (f"c{number}" for number in count())
    async with (
        server() as url,
        openai.AsyncOpenAI(api_key="x", base_url=url) as client,
        open_store(f"sqlite:///{folder}/ours.db") as store,
    ):
        agent = SimpleReactAgent(
            model=OpenAIChatModel("m", base_url=url),
            system_prompt=SYSTEM,
            react_prompt=None,
            memory=WindowChatMemory(20, store),
        )
        await by_hand(client, database, next(names))
        await ours(agent, next(names))
        times: list[tuple[float, float]] = []
        for _ in range(7):  # in turn, so that a busy machine hits both
            started = time.process_time()
            await by_hand(client, database, next(names))
            between = time.process_time()
            await ours(agent, next(names))
            times.append((between - started, time.process_time() - between))
    hand_ms, ours_ms = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
    print(
        f"50 turns on SQLite, window 20: {hand_ms:.0f} ms of CPU by hand, {ours_ms:.0f} ours: {ours_ms / hand_ms:.2f}"
    )
    database.close()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate((stores, conversation), 1):
            if len(sys.argv) < 2 or str(number) in sys.argv[1:]:
                await part(folder)


if __name__ == "__main__":
    asyncio.run(main())
