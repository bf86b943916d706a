"""What every test relies on: no key of the developer's is used, and a test that needs a server says so."""

import os

import pytest
from hypothesis import settings

FULL = os.environ.get("REACTFLOW_CI") == "1"
"""The machine has every service, so a skip there would hide a failure."""

settings.register_profile("reactflow", deadline=None, print_blob=True)  # a busy machine is no failure
settings.load_profile("reactflow")


def pytest_configure() -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "REACTFLOW_GGUF", "REACTFLOW_MODEL"):
        os.environ.pop(name, None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("service"):
        (variable,) = marker.args
        if not os.environ.get(variable):
            (pytest.fail if FULL else pytest.skip)(f"needs a server: set {variable} to its address")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not FULL:
        terminalreporter.write_line(
            "Not in this run: tests/proof (long, on real servers, on Flink and on Ray) and tests/benchmarks; "
            ".ci/run runs both."
        )
