"""What holds for every store, on the real thing."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from reactflow.errors import ConfigurationError
from reactflow.memory import WindowChatMemory
from reactflow.memory_windows import TokenWindowChatMemory
from reactflow.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from reactflow.store import ConversationStore, StoredMessage


def turn(number: int) -> list[Message]:
    return [UserMessage(f"q{number}"), AssistantMessage(f"a{number}")]


async def texts(store: ConversationStore, conversation_id: str = "c") -> list[str]:
    return [stored.message.text for stored in await store.oldest(conversation_id, 1000)]


EVERYTHING = (
    UserMessage("看图 👋\x00 '\"%_\\ \u202eRTL", images=("data:image/png;base64,AAAA", "https://x/y.png")),
    AssistantMessage(
        "",
        (ToolCall("1", "look", '{"at": "sky"}'), ToolCall("2", "look", "")),
        {"reasoning_content": "think", "blocks": [{"signature": "==", "n": 1.5, "none": None}]},
    ),
    ToolMessage("blue", "1", "look"),
    ToolMessage("no \n\r\t", "2", "look", is_error=True),
    UserMessage("notice", synthetic="max_rounds"),
    AssistantMessage("x" * 200_000),
)


async def test_it_is_a_conversation_store(store):
    assert isinstance(store, ConversationStore)


async def test_every_field_of_every_message_comes_back(store):
    assert await store.append("c", EVERYTHING) == 6
    assert await store.oldest("c", 10) == tuple(
        StoredMessage(number, message) for number, message in enumerate(EVERYTHING, 1)
    )


async def test_messages_are_read_from_either_end(store):
    for number in range(1, 4):
        assert await store.append("c", turn(number)) == 2 * number

    async def numbers(reading) -> list[int]:
        return [stored.sequence for stored in await reading]

    assert await numbers(store.newest("c", 3)) == [4, 5, 6]
    assert await numbers(store.newest("c", 3, before=4)) == [1, 2, 3]
    assert await numbers(store.newest("c", 3, before=1)) == []
    assert await numbers(store.oldest("c", 3)) == [1, 2, 3]
    assert await numbers(store.oldest("c", 3, after=3)) == [4, 5, 6]
    assert await numbers(store.oldest("c", 3, after=6)) == []
    assert await numbers(store.newest("unknown", 3)) == []
    assert await numbers(store.oldest("unknown", 3)) == []


HOSTILE = [
    "plain",
    "Plain",
    "plain ",
    'it\'s "quoted"; DROP TABLE reactflow_messages; --',
    "%",
    "_",
    "p%",
    "nul\x00here",
    "nul\x00there",
    "\\",
    "*",
    "a:b",
    "\u202eשלום",
    "👩‍👩‍👧‍👦",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "\ud800",
    "\ud801",
    "x" * 700,
    "x" * 699,
    "../../etc/passwd",
    "{curly}",
    ":p_id",
    "%(id)s",
    "\n",
]


async def test_hostile_ids_are_data_and_none_reaches_another(store):
    ids = [each for each in HOSTILE if each.strip()]
    for number, conversation_id in enumerate(ids):
        await store.append(conversation_id, turn(number))
    for number, conversation_id in enumerate(ids):
        assert await texts(store, conversation_id) == [f"q{number}", f"a{number}"]
    assert await store.conversations() == tuple(sorted(ids))
    await store.clear("%")
    await store.clear("*")
    assert await store.conversations() == tuple(sorted(set(ids) - {"%", "*"}))


async def test_conversations_are_listed_by_prefix_in_pages(store):
    for name in ("user:1", "user:2", "user:10", "users", "user%", "use", "other", "user:é", "user:\x00"):
        await store.append(name, turn(1))
    assert await store.conversations("user:") == ("user:\x00", "user:1", "user:10", "user:2", "user:é")
    assert await store.conversations("user%") == ("user%",)
    assert await store.conversations("nobody") == ()
    assert await store.conversations("user:", limit=2) == ("user:\x00", "user:1")
    assert await store.conversations("user:", after="user:1", limit=2) == ("user:10", "user:2")
    assert await store.conversations("user:", after="user:é") == ()
    assert await store.conversations(limit=1) == ("other",)
    assert await store.conversations("user", after="other", limit=1) == ("user%",)


async def test_an_edited_message_replaces_what_followed(store):
    for number in (1, 2, 3):
        await store.append("c", turn(number))
    assert await store.replace_from("c", 3, [UserMessage("q2, better"), AssistantMessage("a2, better")]) == 8
    assert await store.oldest("c", 10) == (
        StoredMessage(1, UserMessage("q1")),
        StoredMessage(2, AssistantMessage("a1")),
        StoredMessage(7, UserMessage("q2, better")),
        StoredMessage(8, AssistantMessage("a2, better")),
    )
    assert await store.replace_from("c", 2) == 1
    assert await store.replace_from("c", 1) == 0
    assert await texts(store) == []
    assert await store.conversations() == ()
    assert await store.append("c", turn(4)) == 10
    assert await store.replace_from("new", 1, turn(1)) == 2
    with pytest.raises(ConfigurationError, match="sequence"):
        await store.replace_from("c", 0)


async def test_numbers_are_not_given_again_after_a_clear(store):
    await store.append("c", turn(1))
    await store.clear("c")
    await store.clear("never seen")
    assert await texts(store) == []
    assert await store.conversations() == ()
    assert await store.append("c", turn(2)) == 4


async def test_notes_are_replaced_and_go_with_what_they_hang_on(store):
    await store.append("c", turn(1))
    await store.append("c", turn(2))
    assert await store.note("c", "summary") is None
    await store.set_note("c", "summary", "one", at=2)
    await store.set_note("c", "summary", "two: 北京\x00", at=4)
    await store.set_note("c", "mood", "good")
    await store.set_note("c", "lost", "hangs on nothing", at=99)
    assert await store.note("c", "summary") == "two: 北京\x00"
    assert await store.note("c", "mood") == "good"
    assert await store.note("c", "lost") is None
    assert await store.note("c", "MOOD") is None
    await store.replace_from("c", 4)
    assert (await store.note("c", "summary"), await store.note("c", "mood")) == (None, "good")
    await store.clear("c")
    assert await store.note("c", "mood") is None


async def test_a_note_of_what_was_cleared_meanwhile_is_not_written(store):
    await store.append("c", turn(1))
    await store.clear("c")
    await store.append("c", turn(2))
    await store.set_note("c", "summary", "of turn 1", at=2)
    assert await store.note("c", "summary") is None


async def test_lessons_are_notes_without_a_conversation(store):
    await store.set_note("lessons:sql", "lessons", '["quote ids"]')
    await store.set_note("lessons:sql", "lessons", '["quote ids", "test NUL"]')
    assert await store.note("lessons:sql", "lessons") == '["quote ids", "test NUL"]'
    assert await store.conversations() == ()


async def test_appends_at_once_are_never_interleaved_or_lost(store):
    async def writes(writer: int) -> None:
        for number in range(5):
            await store.append("c", turn(10 * writer + number))

    await asyncio.gather(*(writes(writer) for writer in range(10)))
    stored = await store.oldest("c", 1000)
    assert [each.sequence for each in stored] == list(range(1, 101))
    said = [each.message.text for each in stored]
    assert [text[1:] for text in said[::2]] == [text[1:] for text in said[1::2]]
    assert len(set(said)) == 100


async def test_turns_wait_for_each_other_first_come_first_served(store):
    seen = []

    async def one(number: int) -> None:
        async with store.turn("c"):
            seen.append(number)
            await asyncio.sleep(0.001)
            seen.append(number)

    async with asyncio.timeout(20):
        await asyncio.gather(*(one(number) for number in range(10)))
    assert seen == [number for number in range(10) for _ in (0, 1)]


async def test_a_cancelled_turn_is_given_back(store):
    async def hold() -> None:
        async with store.turn("c"):
            await asyncio.sleep(60)

    for pause in (0, 0.001, 0.05):
        task = asyncio.create_task(hold())
        await asyncio.sleep(pause)
        task.cancel()
        await asyncio.wait([task])
    async with asyncio.timeout(5), store.turn("c"), store.turn("another"):
        pass


async def test_windows_read_from_it(store):
    memory = WindowChatMemory(4, store)
    for number in range(10):
        await memory.add("c", turn(number))
    assert await memory.get("c") == (*turn(8), *turn(9))
    assert await TokenWindowChatMemory(10_000, store).get("c") == tuple(m for n in range(10) for m in turn(n))
    await memory.clear("c")
    assert await memory.get("c") == ()


async def test_a_store_is_used_from_one_event_loop_after_another_and_from_several_at_once(kind, opened):
    store = opened(kind)

    def in_a_loop_of_its_own(number: int) -> None:
        asyncio.run(store.append("c", turn(number)))

    await asyncio.gather(*(asyncio.to_thread(in_a_loop_of_its_own, number) for number in range(6)))
    await store.append("c", turn(6))
    assert len(await texts(store)) == 14


@dataclass
class Lives:
    """Two stores on the same conversations, and how to wait until what *short* has stored is over.

    Redis keeps the time itself, so there what is to live on is stored by *long*.  Elsewhere the two are one store
    and the test moves its clock.
    """

    short: ConversationStore
    long: ConversationStore
    end: Callable[[], Awaitable[None]]


@pytest.fixture
def lives(kind, opened, clock, until, monkeypatch) -> Lives:
    monkeypatch.setattr("reactflow.stores.sql.now_ms", lambda: int(clock.now * 1000))
    long = opened(kind, ttl_seconds=3600)
    short = opened(kind, ttl_seconds=0.3) if kind == "redis" else long

    async def over() -> bool:
        return await short.conversations() == ()

    async def end() -> None:
        clock.now += 0 if kind == "redis" else 3601
        await until(over)

    return Lives(short, long, end)


async def test_a_conversation_goes_when_its_time_is_up(kind, lives):
    await lives.long.append("old", turn(0))
    assert await texts(lives.long, "old") == ["q0", "a0"]
    started = time.monotonic()
    await lives.short.append("old", turn(1))
    await lives.short.set_note("old", "mood", "good")
    await lives.end()
    assert kind != "redis" or time.monotonic() - started >= 0.29
    await lives.long.append("new", turn(2))
    assert (await texts(lives.long, "old"), await lives.long.note("old", "mood")) == ([], None)
    assert await lives.long.conversations() == ("new",)
    await lives.long.append("old", turn(3))
    assert await texts(lives.long, "old") == ["q3", "a3"]


async def test_purging_removes_what_is_over_and_nothing_else(kind, opened, lives):
    await lives.long.append("old0", turn(0))
    assert await lives.long.purge() == 0
    for number in range(3):
        await lives.short.append(f"old{number}", turn(number))
    await lives.end()
    await lives.long.append("new", turn(4))
    expected = 3 if kind != "memory" else 0  # that one has dropped them with the last append
    assert (await lives.long.purge(), await lives.long.purge()) == (expected, 0)
    assert await texts(lives.long, "new") == ["q4", "a4"]
    assert await opened(kind).purge() == 0
