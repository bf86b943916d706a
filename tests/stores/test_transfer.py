"""Export and import as JSON lines, and the commands around them."""

import io
import json
import subprocess
import sys

import pytest

from reactflow.errors import ConfigurationError
from reactflow.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from reactflow.store import InMemoryStore, StoredMessage
from reactflow.stores import open_store
from reactflow.stores.commands import main
from reactflow.stores.transfer import export_lines, import_lines

FIRST = (
    UserMessage("天气?", images=("https://x/y.png",)),
    AssistantMessage("", (ToolCall("1", "look", '{"at": "sky"}'),), {"reasoning": "r"}),
    ToolMessage("blue\nwith a line break", "1", "look", is_error=True),
    AssistantMessage("蓝。"),
)
SECOND = (UserMessage("q2"), AssistantMessage("a2"))


async def exported(store, prefix="") -> list[str]:
    return [line async for line in export_lines(store, prefix)]


async def test_what_is_exported_can_be_imported_into_another_store(kind, opened):
    source, target = InMemoryStore(), opened(kind)
    for conversation_id in ("b", "a\n\ud800 '\"", "c%"):
        await source.append(conversation_id, FIRST)
        await source.append(conversation_id, SECOND)
    lines = await exported(source)
    assert len(lines) == 18
    assert not any("\n" in line for line in lines)
    "\n".join(lines).encode()  # can be written to a file
    assert await import_lines(target, (line + "\n" for line in ["", *lines, " \n"])) == 18
    assert await exported(target) == lines
    assert await target.oldest("b", 9) == await source.oldest("b", 9)


async def test_an_import_appends_whole_turns():
    batches: list[tuple[str, int]] = []

    class Counting(InMemoryStore):
        async def append(self, conversation_id, messages):
            batches.append((conversation_id, len(messages)))
            return await super().append(conversation_id, messages)

    source = InMemoryStore()
    for conversation_id in ("a", "b"):
        await source.append(conversation_id, FIRST)
        await source.append(conversation_id, SECOND)
    await import_lines(Counting(), await exported(source))
    assert batches == [("a", 4), ("a", 2), ("b", 4), ("b", 2)]


async def test_an_import_continues_a_conversation_or_replaces_it():
    store = InMemoryStore()
    await store.append("c", SECOND)
    lines = await exported(store)
    await import_lines(store, lines)
    assert [stored.message for stored in await store.oldest("c", 9)] == [*SECOND, *SECOND]
    await import_lines(store, [*lines, *lines], replace=True)
    assert [stored.message for stored in await store.oldest("c", 9)] == [*SECOND, *SECOND]


async def test_only_what_begins_with_the_prefix_is_exported_however_much_it_is():
    store = InMemoryStore()
    for number in range(1200):
        await store.append(f"user:{number:04}", SECOND)
    await store.append("other", SECOND)
    for _ in range(600):
        await store.append("user:0007", SECOND)
    lines = await exported(store, "user:")
    assert len(lines) == 3600
    assert json.loads(lines[0])["conversation"] == "user:0000"


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        "[]",
        "7",
        "{}",
        '{"conversation":"c"}',
        '{"conversation":" ","message":{"role":"user","text":"x"}}',
        '{"conversation":7,"message":{"role":"user","text":"x"}}',
        '{"conversation":"c","message":{"role":"system","text":"x"}}',
        '{"conversation":"c","message":"x"}',
        "[" * 100_000,
    ],
)
async def test_a_line_that_cannot_be_read_is_named_and_the_turns_before_it_are_kept(line):
    source, target = InMemoryStore(), InMemoryStore()
    await source.append("c", SECOND)
    await source.append("c", SECOND)
    lines = await exported(source)
    with pytest.raises(ConfigurationError, match="Line 4 "):
        await import_lines(target, [*lines[:3], line])
    assert await target.oldest("c", 9) == (StoredMessage(1, SECOND[0]), StoredMessage(2, SECOND[1]))


@pytest.fixture
def store_url(tmp_path, monkeypatch) -> str:
    url = f"sqlite:///{tmp_path}/chat.db"
    monkeypatch.setenv("REACTFLOW_STORE", url)
    return url


def fill(url: str, **conversations: tuple) -> None:
    import asyncio

    async def work() -> None:
        async with open_store(url) as store:
            for conversation_id, messages in conversations.items():
                await store.append(conversation_id, messages)

    asyncio.run(work())


def test_conversations_are_listed_shown_and_cleared(store_url, capsys):
    fill(
        store_url,
        one=FIRST,
        only=(UserMessage("n", synthetic="max_rounds"), AssistantMessage("\x1b[31mred")),
        two=SECOND,
    )
    assert main(["list"]) == 0
    assert capsys.readouterr().out == "one\nonly\ntwo\n"
    assert main(["list", "on"]) == 0
    assert capsys.readouterr().out == "one\nonly\n"
    assert main(["show", "one"]) == 0
    assert capsys.readouterr().out == (
        "1 user: 天气?\n"
        '2 assistant: -> look {"at": "sky"}\n'
        "3 tool look failed: blue\n    with a line break\n"
        "4 assistant: 蓝。\n"
    )
    assert main(["show", "one", "--last", "1"]) == 0
    assert capsys.readouterr().out == "4 assistant: 蓝。\n"
    assert main(["show", "only"]) == 0
    assert capsys.readouterr().out == "1 user (max_rounds): n\n2 assistant: \\x1b[31mred\n"
    assert main(["clear", "one", "only"]) == 0
    assert main(["list"]) == 0
    assert capsys.readouterr().out == "two\n"


def test_conversations_are_carried_over_in_a_file_or_a_pipe(store_url, capsys, tmp_path, monkeypatch):
    fill(store_url, one=FIRST, two=SECOND)
    file = tmp_path / "out.jsonl"
    assert main(["export", "--output", str(file)]) == 0
    assert main(["export"]) == 0
    written = capsys.readouterr().out
    assert file.read_text("utf-8") == written
    assert written.count("\n") == 6
    assert [path.name for path in tmp_path.glob("*.part")] == []

    other = f"sqlite:///{tmp_path}/other.db"
    assert main(["--store", other, "import", str(file)]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(written))
    assert main(["--store", other, "import", "-", "--replace"]) == 0
    assert capsys.readouterr().out == "6 messages imported\n6 messages imported\n"
    assert main(["--store", other, "export"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert main(["--store", other, "--tenant", "acme", "list"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "nobody"], "no conversation 'nobody'"),
        (["clear", " "], "blank"),
        (["import", "/no/such/file"], "No such file"),
        (["--store", "nosuch://x", "list"], "no store for"),
        (["--store", "", "list"], "Which store"),
        (["--store", "memory://", "show", "x"], "no conversation"),
    ],
)
def test_an_error_is_one_line_and_a_status(store_url, capsys, arguments, said):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("reactflow memory: ")
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["show"], ["show", "x", "--last", "0"], ["burn"]])
def test_a_wrong_command_line_is_explained(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: reactflow memory" in capsys.readouterr().err


def test_the_commands_run_as_a_module(store_url):
    done = subprocess.run(
        [sys.executable, "-m", "reactflow.stores", "list"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
