"""What the proofs of the engines share: the script, a server that counts, and jobs that are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path

from reactflow.specs.catalog import Catalog
from reactflow.specs.files import read_data

HERE = Path(__file__).parent

OBJECTS = """
CREATE CONNECTION house WITH ('type' = 'openai', 'endpoint' = '{url}', 'api-key' = '${{HOUSE_KEY}}');
CREATE MODEL m WITH ('provider' = 'openai', 'openai.connection' = 'house', 'openai.model_version' = 'any');
CREATE AGENT drafter USING MODEL m USING PROMPT 'You draft.';
CREATE AGENT critic USING MODEL m USING PROMPT 'You review.';
CREATE AGENT intake USING AGENTS drafter, critic WITH ('type' = 'reflection', 'max_iterations' = '3');
"""


def agent_at(url, name):
    """The spec of one of these agents, without a word of SQL, which needs an extra of its own."""
    data = {
        "connections": {"house": {"type": "openai", "endpoint": url, "api-key": "${HOUSE_KEY}"}},
        "models": {"m": {"connection": "house", "model_version": "any"}},
        "agents": {
            "drafter": {"model": "m", "prompt": "You draft."},
            "critic": {"model": "m", "prompt": "You review."},
            "intake": {"type": "reflection", "agents": ["drafter", "critic"], "max_iterations": "3"},
        },
    }
    catalog = Catalog(environment={"HOUSE_KEY": "k"})
    read_data(data, catalog)
    return catalog.agent(name)


class Server:
    """The chat server, in a process of its own, so that no job takes it along."""

    def __init__(self, delay_s):
        command = [sys.executable, HERE / "engine_server.py", str(delay_s)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self._process.stdout.readline().strip()

    def calls(self):
        """Each call so far: kind, row, and the second it came."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return [tuple(call) for call in json.loads(self._process.stdout.readline())]

    def stop(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def serving(delay_s):
    server = Server(delay_s)
    try:
        yield server
    finally:
        server.stop()


def write_rows(path, count, text="row {}"):
    """JSON lines with an id and a text each."""
    lines = (json.dumps({"id": f"k{number}", "text": text.format(number)}) for number in range(count))
    path.write_text("\n".join(lines) + "\n")


def read_rows(place):
    """All rows of the JSON file at *place*, or of the files in it that are whole."""
    files = [path for path in (place, *place.rglob("*")) if path.is_file() and not path.name.startswith((".", "_"))]
    return [json.loads(line) for path in sorted(files) for line in path.read_text().splitlines() if line.strip()]


def assert_each_once(rows, count, column="answer"):
    """Each of *count* rows is there once, with its own draft in *column*; else the first ten that differ are told."""
    seen = defaultdict(list)
    for row in rows:
        seen[row["id"]].append(row[column])
    right = {f"k{number}": [f"draft of row {number}"] for number in range(count)}
    wrong = [key for key in right | seen if seen.get(key) != right.get(key)]
    told = [f"{key}: {len(seen.get(key, []))} times, {seen.get(key, [])!r:.300}" for key in wrong[:10]]
    assert not wrong, "\n".join([f"{len(wrong)} of {count} rows differ:", *told])


def start(script, *arguments, **environment):
    """Start the Python file *script* as a job with a process group of its own."""
    command = [sys.executable, HERE / script, *map(str, arguments)]
    return subprocess.Popen(
        command,
        env={**os.environ, "HOUSE_KEY": "k", **environment},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


PATIENCE_S = 600
"""How long a proof waits for what takes half a minute on an idle machine, before it says that it does not come."""


def finish(job, code=0):
    """Wait for the job to end with *code*, and give what it printed."""
    try:
        told, _ = job.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        kill(job)
        raise
    assert job.returncode == code, told[-6000:]
    return told


def wait_until(happened, job, state=lambda: ""):
    """Wait until *happened*, while the job runs; gives what that gave.  Where it never does, tell the *state*."""
    end = time.monotonic() + PATIENCE_S
    while True:
        ended = job.poll() is not None  # asked first: it may happen just before the job ends
        if found := happened():
            return found
        assert not ended, job.communicate()[0][-6000:]
        assert time.monotonic() < end, f"not in {PATIENCE_S} s: {state()}"
        time.sleep(0.02)


def kill_at(job, server, calls):
    """kill -9 the job and all it started as soon as *server* has had so many *calls*; gives those it had."""
    wait_until(lambda: len(server.calls()) >= calls, job, lambda: f"only {len(server.calls())} calls")
    kill(job)
    time.sleep(1)  # what was on its way to the server has arrived
    return server.calls()


def kill(job):
    """kill -9 the job, its process group, and every process it started that left the group."""
    started = descendants(job.pid)
    os.killpg(job.pid, signal.SIGKILL)
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    job.wait()
    job.stdout.close()


def descendants(pid):
    """The ids of all processes that *pid* started, and those started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue  # it has just ended
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        children = [child for child, its in parents.items() if its == parent]
        found += children
        waiting += children
    return found


def repeated(calls):
    """How many calls were made again for the same row and the same kind, where one is enough."""
    return sum(number - 1 for number in Counter((kind, row) for kind, row, _ in calls).values())


def span_s(calls):
    """Seconds between the first call and the end of the last one, but for its own delay."""
    times = [at for _, _, at in calls]
    return max(times) - min(times)


def shortest_span_s(run, *, below):
    """The least :func:`span_s` of the calls of up to three runs; the second and third only where it is not *below*.

    Calls that do not overlap take long each time; a machine that is busy for a moment delays one run.
    """
    spans = []
    while len(spans) < 3 and (not spans or spans[-1] >= below):
        spans.append(span_s(run()))
    print(*(f"{span:.2f} s" for span in spans))
    return min(spans)
