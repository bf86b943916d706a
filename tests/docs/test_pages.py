"""Every Python block of the README and of the site runs, in its page's order, and prints what the page says it prints.

A page is one program: its blocks share their names, in a folder of their own.  A ``text`` block right after a Python
block is what that one prints, to the letter.  A block with a title is also written to the file of that name.  Models
behind a base URL are a loopback server that checks each request; the two web services that pages talk about are
servers on this machine with replies in the form of the real ones.
"""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

from reactflow.cli.app import app
from reactflow.loopback import LoopbackServer, ReceivedRequest, Reply, reply_calls, reply_text

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "site" not in path.parts)]
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]

OTHERS = {"langchain", "langchain_core", "langchain_openai", "langgraph", "pyflink", "ray"}
"""Libraries that pages compare with, and engines; blocks that need one run where it is installed."""

LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[.*\n", re.MULTILINE)
"""What structlog prints where nobody has configured it; pages do not show it."""

FENCE = re.compile(r"^( *)```(\w+)?([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: what it is, what it says, and where (*line* is that of its first line, *end* a position)."""

    language: str
    title: str
    code: str
    line: int
    start: int
    end: int


def blocks_of(text: str) -> list[Block]:
    return [read_block(text, found) for found in FENCE.finditer(text)]


def read_block(text: str, found: re.Match[str]) -> Block:
    indent, language, info, code = found.groups()
    title = re.search(r'title="([^"]+)"', info)
    dedented = re.sub(rf"^{indent}", "", code, flags=re.MULTILINE)
    line = text.count("\n", 0, found.start(4)) + 1
    return Block(language or "", title[1] if title else "", dedented, line, found.start(), found.end())


def with_outputs(text: str) -> Iterator[tuple[Block, str | None]]:
    """Each block with the text that the page says it prints, or None where it says nothing of that."""
    found = blocks_of(text)
    for block, after in zip_longest(found, found[1:]):
        directly = after is not None and after.language == "text" and not text[block.end : after.start].strip()
        yield block, after.code if after is not None and directly else None


# -- the servers -------------------------------------------------------------------------------------------------


def respond(request: ReceivedRequest) -> Reply:
    """What any model may say: a value of the wanted form, else a call of the first tool, else a sentence."""
    wanted = (request.body.get("response_format") or {}).get("json_schema")
    if wanted:
        return reply_text(json.dumps(sample(wanted["schema"])))
    called = any(message["role"] == "tool" for message in request.body["messages"])
    if request.body.get("tools") and request.body.get("tool_choice") != "none" and not called:
        tool = request.body["tools"][0]["function"]
        return reply_calls((tool["name"], sample(tool["parameters"])))
    return reply_text("It is sunny in Beijing.")


def sample(schema: Mapping[str, Any]) -> Any:
    """A value that fits *schema*."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    match kind if isinstance(kind, str) else kind[0]:
        case "object":
            return {name: sample(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return []
        case "boolean":
            return True
        case "integer" | "number":
            return 1
    return "Beijing"


GEOCODING = {"results": [{"name": "Beijing", "country": "China", "latitude": 39.9075, "longitude": 116.39723}]}
FORECAST = {
    "current": {"time": "2026-11-30T14:00", "temperature_2m": 4.2, "wind_speed_10m": 9.7},
    "daily": {
        "time": ["2026-11-30", "2026-12-01"],
        "temperature_2m_max": [5.1, 3.0],
        "temperature_2m_min": [-3.2, -4.8],
        "precipitation_sum": [0.0, 0.4],
    },
}
FOUND = {"results": [{"url": "https://example.org/a", "title": "A page", "content": "Its text.", "score": 0.9}]}


def serve_weather(request: ReceivedRequest) -> Reply:
    return Reply(body=GEOCODING if request.path.endswith("/search") else FORECAST)


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """What to put in the place of each address in a page's code."""
    with (
        LoopbackServer(respond=respond) as model,
        LoopbackServer(respond=serve_weather, check=False) as weather,
        LoopbackServer(respond=lambda request: Reply(body=FOUND), check=False) as search,
    ):
        yield {
            r'(?<=base_url=")[^"]+': model.base_url,
            r"https://(geocoding-)?api\.open-meteo\.com/v1": weather.base_url,
            r"https://search\.example\.org": search.base_url.removesuffix("/v1"),
            "": model.base_url,
        }
        model.assert_legal()


@pytest.fixture
def place(tmp_path: Path, addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, a key, and a server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "DEEPSEEK_API_KEY", "SEARCH_API_KEY"):
        monkeypatch.setenv(name, "no-real-key")
    monkeypatch.setenv("OPENAI_BASE_URL", addresses[""])
    Path("model.gguf").write_bytes(b"GGUF")  # as much as is looked at before the first question
    return tmp_path


# -- the tests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_python_blocks_of_a_page_run_and_print_what_it_says(name, place, addresses):
    text = (ROOT / name).read_text("utf-8")
    module = ModuleType("page")
    sys.modules["page"] = module  # where type hints are looked up
    left_out = set()
    try:
        for block, expected in with_outputs(text):
            if block.title:
                Path(block.title).write_text(block.code, "utf-8")
            if block.language != "python":
                continue
            missing = missing_libraries(block.code)
            if missing:
                left_out |= missing
                continue
            printed = run(block, name, module, addresses)
            if expected is not None:
                assert printed == expected, f"{name}:{block.line} prints something else"
    finally:
        del sys.modules["page"]
    if left_out:
        pytest.skip(f"{name}: the blocks that need {', '.join(sorted(left_out))} did not run")


def missing_libraries(code: str) -> set[str]:
    imported = set(re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE))
    return {library for library in imported & OTHERS if find_spec(library) is None}


def run(block: Block, name: str, module: ModuleType, addresses: Mapping[str, str]) -> str:
    """Run *block* in *module*; errors point into the page."""
    code = block.code
    for pattern, address in addresses.items():
        code = re.sub(pattern, address, code) if pattern else code
    compiled = compile("\n" * (block.line - 1) + code, name, "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        if set(re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE)) & OTHERS:
            warnings.simplefilter("ignore")  # theirs, not ours
        exec(compiled, module.__dict__)
    return LOG_LINE.sub("", printed.getvalue())


@pytest.mark.parametrize("name", NAMES)
def test_the_command_lines_of_a_page_are_right_and_work_where_they_need_nothing_else(name, place):
    text = (ROOT / name).read_text("utf-8")
    for block in blocks_of(text):
        if block.title:
            Path(block.title).write_text(block.code, "utf-8")
    for line in command_lines(text):
        assert unknown_options(line) == set(), line
        if RUNS.match(line) and not NEEDS_MORE.search(line):
            done = run_line(line, place)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


COMMAND = re.compile(r"^(?:\.venv/bin/)?(reactflow|python -m reactflow\S*)\b(.*)")
RUNS = re.compile(r"reactflow (ask|demo|memory)\b")
NEEDS_MORE = re.compile(r"--base-url|--model|--agent shop:agent *$|\.\.\.")
"""What a line says that needs a server, or a file that the page leaves to the reader."""


def command_lines(text: str) -> Iterator[str]:
    """What the page's shell blocks say to our own programs, without comments."""
    for block in blocks_of(text):
        for line in block.code.splitlines() if block.language == "bash" else ():
            if found := COMMAND.match(line):
                yield f"{found[1]} {' '.join(map(shlex.quote, shlex.split(found[2], comments=True)))}"


def unknown_options(line: str) -> set[str]:
    """The options of a ``reactflow`` line that the command it names does not have."""
    program, *arguments = shlex.split(line)
    if program != "reactflow" or arguments[0].startswith("-"):
        return set()
    command: Any = get_command(app)
    while words := getattr(command, "commands", None):
        command = words[arguments.pop(0)]
    known = {name for parameter in command.params for name in parameter.opts}
    return {word for word in arguments if word.startswith("--")} - known


def run_line(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(line)
    command = [sys.executable, *(["-m", "reactflow"] if program == "reactflow" else []), *arguments]
    return subprocess.run(
        command, cwd=folder, env=offline(folder), capture_output=True, text=True, check=False, timeout=240
    )


def offline(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "REACTFLOW_"))}
    return {**kept, "REACTFLOW_STATE_DIR": str(folder)}
