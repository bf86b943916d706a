"""``writers.py URL TENANT PROCESSES TURNS CONVERSATIONS``: many processes take turns on shared conversations at once.

They are forked, which saves each the imports, and each opens a store of its own.
"""

import asyncio
import os
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from turns import agent_on

from reactflow.stores import open_store


async def write(url: str, tenant: str, number: int, turns: int, conversations: int) -> None:
    async with open_store(url, tenant=tenant, timeout_s=120) as store:
        agent = agent_on(store)
        for turn in range(turns):
            await agent.arun(f"{number}.{turn}", conversation_id=f"c{(number + turn) % conversations}")


def main(url: str, tenant: str, processes: int, turns: int, conversations: int) -> None:
    children = []
    for number in range(processes):
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(write(url, tenant, number, turns, conversations))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(pid)
    failed = [pid for pid in children if os.waitpid(pid, 0)[1] != 0]
    sys.exit(f"{len(failed)} of {processes} processes failed" if failed else 0)


main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
