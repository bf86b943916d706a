"""Export and import as JSON lines."""

import json

import pytest

from reactflow.errors import ConfigurationError
from reactflow.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from reactflow.store import InMemoryStore, StoredMessage
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
