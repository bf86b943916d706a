"""`import reactflow` is cheap: what only some users need is loaded when they use it."""

import subprocess
import sys

import pytest

HEAVY = ("openai", "httpx", "httpx2", "aiohttp", "sqlalchemy", "redis", "typer", "rich", "pytest")
RARE = ("difflib", "hashlib", "hmac", "secrets", "sqlite3", "tomllib", "multiprocessing", "http", "csv", "ctypes")
"""Of the standard library: each takes up to two milliseconds, and few programs need it."""


def loaded_by(statement: str) -> set[str]:
    """The top-level names in sys.modules after *statement* ran in a fresh interpreter."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["reactflow", "reactflow.advisors", "reactflow.tools"])
def test_importing_the_package_loads_no_client_no_driver_and_no_terminal_library(module):
    requirements = loaded_by("import structlog, jsonschema, pydantic")  # structlog loads rich where it finds it
    assert (loaded_by(f"import {module}") - requirements) & set(HEAVY) == set()


def test_importing_the_package_loads_no_module_of_the_standard_library_that_few_programs_need():
    requirements = loaded_by("import structlog, jsonschema, pydantic")
    assert (loaded_by("import reactflow") - requirements) & set(RARE) == set()


def test_importing_the_package_prints_nothing_and_starts_no_thread():
    code = "import reactflow, threading; assert threading.active_count() == 1"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
