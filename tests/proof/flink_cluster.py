"""A Flink cluster of one job manager and one task manager, on this machine, as it comes with PyFlink."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from random import sample

from engines import PATIENCE_S

CONFIG = """env.java.opts.all: {java}
jobmanager.rpc.address: 127.0.0.1
jobmanager.bind-host: 127.0.0.1
jobmanager.rpc.port: {rpc}
jobmanager.memory.process.size: 1600m
taskmanager.bind-host: 127.0.0.1
taskmanager.host: 127.0.0.1
taskmanager.memory.process.size: 1728m
taskmanager.numberOfTaskSlots: 2
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: {rest}
"""


@contextmanager
def cluster(folder, **environment):
    """Run one in *folder*, and give the port of its REST service; its workers have *environment*.

    What goes wrong in the block is followed by what the cluster has to say about it.
    """
    import pyflink

    home = Path(pyflink.__file__).parent
    rpc, rest = free_ports()
    conf = folder / "conf"
    conf.mkdir(parents=True)
    for path in (home / "conf").iterdir():
        (conf / path.name).write_bytes(path.read_bytes())
    given = (home / "conf" / "config.yaml").read_text().splitlines()
    java = next(line.split(": ", 1)[1] for line in given if line.strip().startswith("all: "))
    (conf / "config.yaml").write_text(CONFIG.format(java=java, rpc=rpc, rest=rest))
    places = {"FLINK_HOME": home, "FLINK_CONF_DIR": conf, "FLINK_LOG_DIR": folder, "FLINK_PID_DIR": folder}
    variables = {**os.environ, **{name: str(place) for name, place in places.items()}, **environment}
    parts = [started(home / "bin" / name, folder, variables) for name in ("jobmanager.sh", "taskmanager.sh")]
    try:
        wait_for_slots(rest)
        yield rest
    except BaseException:
        print(*complaints(folder), sep="\n")
        raise
    finally:
        for part in parts:
            os.killpg(part.pid, signal.SIGKILL)
            part.wait()


def complaints(folder, most=150):
    """The last lines of the logs in *folder* that tell of trouble."""
    for path in (*folder.glob("*.log"), *folder.glob("*.out")):
        lines = path.read_text("utf-8", errors="replace").splitlines()
        found = [line[:300] for line in lines if re.search(r"WARN|ERROR|Exception|Error\b|Caused by", line)]
        yield f"--- {path.name}"
        yield from found[-most:]


def started(script, folder, variables):
    with (folder / f"{script.stem}.out").open("wb") as out:
        return subprocess.Popen(
            ["bash", script, "start-foreground"],
            env=variables,
            start_new_session=True,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def free_ports():
    """Two that nothing has, below those that systems hand out, so that nothing is given them before they are used."""
    found = []
    for port in sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    return found[:2]


def wait_for_slots(rest):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{rest}/overview", timeout=5) as answer:
                if json.load(answer)["slots-available"]:
                    return
        except OSError:  # it is not there yet, or not quick yet
            pass
        time.sleep(0.3)
    raise TimeoutError(f"the cluster was not there in {PATIENCE_S} s")
