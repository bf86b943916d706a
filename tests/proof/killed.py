"""``killed.py URL TENANT TIMES``: forks a child that takes turns, kills it in the middle, and again.

Each child first checks that all turns before it are whole, and takes one turn to the end; only then it is in danger.
Prints how many turns the last check found.
"""

import asyncio
import os
import random
import select
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from turns import agent_on, all_messages, check_turns

from reactflow.stores import open_store

PATIENCE_S = 300
PADDING = 200_000  # so that writing takes a while


async def take_turns(url: str, tenant: str, number: int, done: int) -> None:
    lease = {"lease_s": 0.3} if url.startswith("redis") else {}
    async with open_store(url, tenant=tenant, **lease) as store:
        agent, turn = agent_on(store, PADDING), 0
        async with store.turn("c"):  # else the one before might still be writing
            found = check_turns(await all_messages(store, "c"))
        await agent.arun(f"{number}.{turn}", conversation_id="c")
        os.write(done, f"{len(found)}\n".encode())
        while True:
            turn += 1
            await agent.arun(f"{number}.{turn}", conversation_id="c")
            if turn % 5 == 0:
                await store.replace_from("c", 5)  # keeps it short; what follows goes on with new numbers


def child(url: str, tenant: str, number: int) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            asyncio.run(take_turns(url, tenant, number, writing))
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writing)
    return pid, reading


def main(url: str, tenant: str, times: int) -> None:
    found = b""
    for number in range(times):
        pid, reading = child(url, tenant, number)
        ready, _, _ = select.select([reading], [], [], PATIENCE_S)
        found = os.read(reading, 100) if ready else b""
        if not found:
            os.kill(pid, signal.SIGKILL)
            sys.exit(f"child {number} found a broken turn, or could not take one")
        select.select([reading], [], [], random.uniform(0, 0.04))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
    print(found.decode().strip())


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
