"""How near a job comes to the ideal: 100 calls in flight of 200 ms each, 500 rows a second.

First an agent that only waits, which shows what the job itself costs; then an agent whose model is behind HTTP on this
machine, in a process of its own that also checks each request; then the same by the commands, their start included.
*whole* is from beginning to end, with the first calls being prepared and the last ones running out; *middle* is the
rate without the first and the last tenth.  Figures to read, not a test; anything else that runs here lowers them.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reactflow import SimpleReactAgent
from reactflow.batch.job import JobSettings, Report, run_batch
from reactflow.batch.journal import Journal
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import open_source
from reactflow.openai_model import OpenAIChatModel
from reactflow.specs.running import AgentRunner

ROWS, IN_FLIGHT, DELAY_S = 3000, 100, 0.2

SCRIPT = """
CREATE CONNECTION house WITH ('type' = 'openai', 'endpoint' = 'https://example.org/v1', 'api-key' = 'none');
CREATE MODEL m WITH ('connection' = 'house', 'model_version' = 'any');
CREATE AGENT greeter USING MODEL m USING PROMPT 'You greet.';
CREATE TABLE asked (id INT, prompt STRING);
CREATE TABLE answered (id INT, status STRING, response STRING);
INSERT INTO answered SELECT a.id, r.status, r.response FROM asked AS a,
LATERAL TABLE(AI_RUN_AGENT('greeter', a.prompt, CAST(a.id AS STRING))) AS r(status, response);
"""


async def waits(prompt: str) -> str:
    await asyncio.sleep(DELAY_S)
    return prompt


def write_rows(folder: Path, rows: int) -> Path:
    with (folder / "in.jsonl").open("w") as file:
        for number in range(rows):
            file.write(json.dumps({"id": number, "prompt": f"row {number}"}) + "\n")
    return folder / "in.jsonl"


def tell(name: str, rows: int, took_s: float, cpu_s: float, more: str) -> None:
    ideal = rows / IN_FLIGHT * DELAY_S
    print(
        f"{name:<15} {rows:>5} rows, whole {took_s:6.2f} s of {ideal:.2f}: {ideal / took_s:4.0%}; "
        f"{1000 * cpu_s / rows:.2f} ms CPU a row; {more}"
    )


def measure_job(name: str, agent: Any, folder: Path, rows: int) -> None:
    source = open_source(write_rows(folder, rows))
    journal = Journal(folder / f"{name}-{rows}.cache")
    settings = JobSettings(concurrency=IN_FLIGHT, journal=journal, fingerprint=name)
    done_s = []

    def watch(report: Report) -> None:
        done_s.append(report.elapsed_s)

    cpu, started = time.process_time(), time.monotonic()
    report = asyncio.run(
        run_batch(AgentRunner(agent), source, Sink(folder / "out.jsonl"), settings=settings, watch=watch)
    )
    took, used = time.monotonic() - started, time.process_time() - cpu
    journal.close()
    middle = rows * 0.8 / (done_s[rows * 9 // 10 - 1] - done_s[rows // 10 - 1])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    part = middle * DELAY_S / IN_FLIGHT
    tell(name, rows, took, used, f"middle {part:.0%}; {memory:.0f} MB; {dict(report.by_status)}")


def measure_command(name: str, folder: Path, rows: int, *arguments: Any) -> None:
    write_rows(folder, rows)
    cpu, started = _cpu_of_children_s(), time.monotonic()
    command = [sys.executable, "-m", "reactflow", name, *map(str, arguments), "-j", str(IN_FLIGHT), "--quiet"]
    subprocess.run(command, check=True, cwd=folder)
    took = time.monotonic() - started
    out = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    good = sum(row["status"] == "SUCCESS" for row in out)
    tell(f"reactflow {name}", rows, took, _cpu_of_children_s() - cpu, f"{good} SUCCESS")


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def server() -> Iterator[str]:
    command = [sys.executable, "-m", "reactflow.loopback", "--delay", str(DELAY_S), "--texts", "hello"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def main() -> None:
    with tempfile.TemporaryDirectory() as name, server() as url:
        folder = Path(name)
        measure_job("waits", waits, folder, ROWS)
        agent = SimpleReactAgent(model=OpenAIChatModel("any", base_url=url, api_key="none"))
        for rows in (ROWS // 2, ROWS):
            measure_job("server", agent, folder, rows)
        (folder / "agents.sql").write_text(SCRIPT)
        files = ("--table", "asked=in.jsonl", "--output", "answered=sql.jsonl")
        for rows in (ROWS, 4 * ROWS):
            for command, given in (("batch", ("in.jsonl", "batch.jsonl", "--agent")), ("sql", files)):
                cache = f"{command}-{rows}.cache"
                measure_command(command, folder, rows, *given, "agents.sql", "--endpoint", url, "--cache", cache)


if __name__ == "__main__":
    main()
