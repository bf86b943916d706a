"""How near a job comes to the ideal: 100 calls in flight of 200 ms each.

Once with an agent that only waits, which shows what the job itself costs, and once with a model behind a server on
this machine, in a process of its own, where the client's own CPU is the limit.  Figures to read, not a test.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from reactflow import SimpleReactAgent
from reactflow.batch.job import JobSettings, run_batch
from reactflow.batch.journal import Journal
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import open_source
from reactflow.openai_model import OpenAIChatModel
from reactflow.specs.running import AgentRunner

ROWS, IN_FLIGHT, DELAY_S = 3000, 100, 0.2


async def waits(prompt: str) -> str:
    await asyncio.sleep(DELAY_S)
    return prompt


def measure(name: str, agent: Any, folder: Path, rows: int) -> None:
    with (folder / "in.jsonl").open("w") as file:
        for number in range(rows):
            file.write(json.dumps({"id": number, "prompt": f"row {number}"}) + "\n")
    journal = Journal(folder / f"{name}.cache")
    settings = JobSettings(concurrency=IN_FLIGHT, journal=journal, fingerprint=name)
    cpu, started = time.process_time(), time.monotonic()
    work = run_batch(
        AgentRunner(agent), open_source(folder / "in.jsonl"), Sink(folder / "out.jsonl"), settings=settings
    )
    report = asyncio.run(work)
    took, used = time.monotonic() - started, time.process_time() - cpu
    journal.close()
    ideal = rows / IN_FLIGHT * DELAY_S
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:<8} {rows} rows, {took:6.2f} s, ideal {ideal:.2f} s: {ideal / took:4.0%}; "
        f"{1000 * used / rows:.2f} ms CPU a row, {memory:.0f} MB, {dict(report.by_status)}"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure("waits", waits, folder, ROWS)
        command = [sys.executable, "-m", "reactflow.loopback", "--delay", str(DELAY_S), "--texts", "hello"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            try:
                agent = SimpleReactAgent(model=OpenAIChatModel("any", base_url=url, api_key="none"))
                measure("server", agent, folder, ROWS // 2)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
