"""``reactflow memory``: conversations listed, shown, carried over and cleared."""

import asyncio
import json
import sqlite3

import pytest

from reactflow.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from reactflow.stores import open_store

WEATHER = (
    UserMessage("天气?"),
    AssistantMessage("", (ToolCall("1", "look", '{"at": "sky"}'),)),
    ToolMessage("blue\nwith a line break", "1", "look", is_error=True),
    AssistantMessage("蓝。"),
)
SHORT = (UserMessage("notice", synthetic="max_rounds"), AssistantMessage("\x1b[31mred"))


def fill(url: str, **conversations: tuple) -> None:
    async def work() -> None:
        async with open_store(url) as store:
            for name, messages in conversations.items():
                await store.append(name, messages)

    asyncio.run(work())


@pytest.fixture
def store_url(tmp_path, monkeypatch) -> str:
    url = f"sqlite:///{tmp_path}/own.db"
    monkeypatch.setenv("REACTFLOW_STORE", url)
    fill(url, one=WEATHER, only=SHORT, two=WEATHER)
    return url


def test_conversations_are_listed_by_prefix(reactflow, store_url):
    assert reactflow("memory", "list").out == "one\nonly\ntwo\n"
    assert reactflow("memory", "list", "on").out == "one\nonly\n"
    assert reactflow("memory", "list", "x").out == ""


def test_a_conversation_is_shown_with_its_numbers_and_nothing_that_steers_the_terminal(reactflow, store_url):
    assert reactflow("memory", "show", "one").out == (
        '1 user\n  天气?\n2 assistant\n  -> look {"at": "sky"}\n'
        "3 tool look failed\n  blue\n  with a line break\n4 assistant\n  蓝。\n"
    )
    assert reactflow("memory", "show", "one", "--last", "1").out == "4 assistant\n  蓝。\n"
    assert reactflow("memory", "show", "only").out == "1 user (max_rounds)\n  notice\n2 assistant\n  ␛[31mred\n"


def test_cleared_conversations_are_gone(reactflow, store_url):
    assert reactflow("memory", "clear", "one", "only", "never seen").code == 0
    assert reactflow("memory", "list").out == "two\n"


def test_conversations_are_carried_over_in_a_file(reactflow, store_url, tmp_path):
    file = tmp_path / "out.jsonl"
    assert reactflow("memory", "export", "o", "--output", str(file)).code == 0
    lines = file.read_text("utf-8").splitlines()
    assert [json.loads(line)["conversation"] for line in lines] == ["one"] * 4 + ["only"] * 2
    assert list(tmp_path.glob("*.part")) == []
    other = f"sqlite:///{tmp_path}/other.db"
    ended = reactflow("memory", "import", str(file), "--store", other)
    assert (ended.code, ended.out) == (0, "6 messages imported\n")
    assert reactflow("memory", "show", "one", "--store", other).out == reactflow("memory", "show", "one").out


def test_conversations_are_carried_over_in_a_pipe(reactflow, store_url, tmp_path):
    written = reactflow("memory", "export").out
    other = f"sqlite:///{tmp_path}/other.db"
    for _ in range(2):
        ended = reactflow("memory", "import", "-", "--replace", "--store", other, input=written)
        assert (ended.code, ended.out) == (0, "10 messages imported\n")
    assert reactflow("memory", "export", "--store", other).out.count("\n") == 10
    assert reactflow("memory", "list", "--store", other, "--tenant", "acme").out == ""


def test_without_a_store_the_conversations_of_the_chat_are_meant(reactflow, own_state):
    assert reactflow("memory", "list").out == ""
    fill(f"sqlite:///{own_state}/conversations.sqlite3", chat=WEATHER)
    assert reactflow("memory", "list").out == "chat\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "nobody"], "no conversation 'nobody'"),
        (["show", "x", "--store", "memory://"], "no conversation 'x'"),
        (["clear", " "], "blank"),
        (["import", "/no/such/file"], "cannot be read"),
        (["export", "--output", "/no/such/folder/file"], "cannot be written"),
        (["list", "--store", "nosuch://x"], "no store for"),
        (["list", "--store", "", "--tenant", "acme"], "--tenant needs --store"),
    ],
)
def test_an_error_is_told_in_a_line_and_a_status(reactflow, store_url, arguments, said):
    ended = reactflow("memory", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize("content", [b"no JSON\n", b"\xff\xfe\n"])
def test_a_file_that_holds_no_conversations_is_told_of(reactflow, store_url, tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    ended = reactflow("memory", "import", str(tmp_path / "file"))
    assert ended.code == 2
    assert "Line 1" in ended.err or "no UTF-8" in ended.err
    ended = reactflow("memory", "import", "-", input=content)
    assert ended.code == 2


def test_a_broken_export_leaves_the_old_file_as_it_was(reactflow, store_url, tmp_path):
    file = tmp_path / "out.jsonl"
    file.write_text("the last one")
    database = sqlite3.connect(tmp_path / "own.db")
    database.execute("update reactflow_messages set body = 'damaged' where sequence = 3")
    database.commit()
    database.close()
    ended = reactflow("memory", "export", "--output", str(file))
    assert ended.code == 1
    assert "replace_from" in ended.err
    assert file.read_text() == "the last one"
    assert list(tmp_path.glob("*.part")) == []
