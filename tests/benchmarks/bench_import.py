"""What `import reactflow` costs beyond the libraries it stands on: CPU milliseconds, median of fresh interpreters.

Run as a script.  It prints, and judges nothing: a busy machine is no failure.  The aim is under 60 ms.
"""

import os
import subprocess
import sys
from statistics import median

RUNS = 15
LIBRARIES = "import structlog, jsonschema, pydantic"
TIMED = f"""
{LIBRARIES}
import time
before = time.process_time()
import reactflow
print(time.process_time() - before)
"""
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cost_ms() -> float:
    done = subprocess.run([sys.executable, "-c", TIMED], env=COMPILED, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout) * 1000


if __name__ == "__main__":
    cost_ms()  # writes the bytecode, as an installation does
    costs = [cost_ms() for _ in range(RUNS)]
    print(f"import reactflow, after {LIBRARIES!r}: {median(costs):.1f} ms of CPU (median of {RUNS}; aim: under 60)")
