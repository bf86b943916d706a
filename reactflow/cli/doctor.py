"""What is configured, which server answers, what it can do, and how to mend what it cannot."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from importlib.metadata import PackageNotFoundError, version

from rich.console import Console

from reactflow.cli.findings import Finding, show
from reactflow.cli.reasons import ExitCode
from reactflow.cli.server import list_models, try_features
from reactflow.cli.setup import Setup, env
from reactflow.cli.state import state_folder
from reactflow.errors import ConfigurationError


async def examine(setup: Setup, console: Console, *, timeout_s: float = 60.0) -> ExitCode:
    """Look at everything, print each finding as it comes, and return 0, or the code of the worst.

    Args:
        setup: Which model and server to look at.
        console: Where to print.
        timeout_s: How long to wait for each reply, > 0.
    """
    codes = [ExitCode.ANSWERED]
    async for finding in _findings(setup, timeout_s):
        show(console, finding)
        if finding.state == "bad":
            codes.append(finding.code)
    return ExitCode.WRONG_USE if ExitCode.WRONG_USE in codes else max(codes)


async def _findings(setup: Setup, timeout_s: float) -> AsyncIterator[Finding]:
    yield _about_reactflow()
    yield _about_terminal()
    yield _about_state()
    yield _about_key(setup)
    if setup.is_offline:
        yield Finding("server", "note", "none: the offline model answers by rules.", OFFLINE_FIX)
        return
    try:
        model = setup.make_model(setup.model)
    except ConfigurationError as error:
        yield Finding("model", "bad", str(error), code=ExitCode.WRONG_USE)
        return
    url = setup.base_url or env("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    yield Finding("model", "good", f"{model.name} at {url}")
    server = await list_models(url, model.name, timeout_s)
    yield server
    if server.state != "bad":
        async for finding in try_features(model, timeout_s):
            yield finding


OFFLINE_FIX = """\
OpenAI: export OPENAI_API_KEY=...
Ollama: export OPENAI_BASE_URL=http://127.0.0.1:11434/v1 REACTFLOW_MODEL=...
Others: export all three; the address as a rule ends in /v1."""


def _about_reactflow() -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    return Finding("reactflow", "good", f"{version('reactflow')} on Python {python}{_extras()}")


def _extras() -> str:
    found = [f"{name} {version(name)}" for name in ("openai", "sqlalchemy", "redis", "mcp") if _is_installed(name)]
    return f"; with {', '.join(found)}" if found else ""


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _about_terminal() -> Finding:
    encoding = (sys.stdout.encoding or "unknown").lower()
    if "utf" not in encoding:
        fix = "export LANG=C.UTF-8, or PYTHONUTF8=1: else Chinese and emoji cannot be written."
        return Finding("terminal", "note", f"writes {encoding}", fix)
    return Finding("terminal", "good", f"writes {encoding}{'' if sys.stdout.isatty() else '; not a terminal'}")


def _about_state() -> Finding:
    try:
        folder = state_folder()
    except ConfigurationError as error:
        return Finding("state", "bad", str(error), code=ExitCode.WRONG_USE)
    if not os.access(folder, os.W_OK):
        fix = "Make it writable, or set REACTFLOW_STATE_DIR."
        return Finding("state", "bad", f"{folder} cannot be written", fix, ExitCode.WRONG_USE)
    return Finding("state", "good", str(folder))


def _about_key(setup: Setup) -> Finding:
    key = os.environ.get("OPENAI_API_KEY", "")
    if key.strip():
        odd = key != key.strip()
        fix = "It begins or ends with a blank; set it again." if odd else ""
        return Finding("key", "note" if odd else "good", f"OPENAI_API_KEY is set, {len(key.strip())} characters", fix)
    return Finding("key", "note", "OPENAI_API_KEY is not set")
