"""The store of this process."""

import asyncio
import threading

import pytest

from reactflow.errors import ConfigurationError
from reactflow.memory import InMemoryStore, MessageStore, StoredMessage
from reactflow.messages import AssistantMessage, SystemMessage, UserMessage


def turn(number: int) -> list[UserMessage | AssistantMessage]:
    return [UserMessage(f"question {number}"), AssistantMessage(f"answer {number}")]


async def texts(store: InMemoryStore, conversation_id: str) -> list[str]:
    return [stored.message.text for stored in await store.newest(conversation_id, 100)]


async def test_messages_come_back_in_order_with_rising_numbers():
    store = InMemoryStore()
    assert await store.append("c", turn(1)) == 2
    assert await store.append("c", turn(2)) == 4

    assert await store.newest("c", 3) == (
        StoredMessage(2, AssistantMessage("answer 1")),
        StoredMessage(3, UserMessage("question 2")),
        StoredMessage(4, AssistantMessage("answer 2")),
    )
    assert [stored.sequence for stored in await store.newest("c", 2, before=4)] == [2, 3]
    assert [stored.sequence for stored in await store.newest("c", 9, before=1)] == []
    assert [stored.sequence for stored in await store.oldest("c", 3)] == [1, 2, 3]
    assert [stored.sequence for stored in await store.oldest("c", 3, after=2)] == [3, 4]
    assert await store.newest("unknown", 5) == ()
    assert await store.oldest("unknown", 5) == ()


async def test_it_is_a_message_store():
    assert isinstance(InMemoryStore(), MessageStore)


async def test_clearing_one_conversation_leaves_the_others():
    store = InMemoryStore()
    await store.append("a", turn(1))
    await store.append("b", turn(2))
    await store.clear("a")
    await store.clear("never seen")
    assert (await texts(store, "a"), await texts(store, "b")) == ([], ["question 2", "answer 2"])


async def test_no_number_is_given_twice_not_even_after_a_clear():
    store = InMemoryStore()
    await store.append("c", turn(1))
    await store.clear("c")
    assert await store.append("c", turn(2)) == 4


async def test_a_note_is_replaced_and_goes_with_its_conversation():
    store = InMemoryStore()
    await store.append("c", turn(1))
    await store.set_note("c", "summary", "first", at=2)
    await store.set_note("c", "summary", "second", at=2)
    await store.set_note("c", "mood", "good")
    assert (await store.note("c", "summary"), await store.note("c", "mood")) == ("second", "good")
    await store.clear("c")
    assert (await store.note("c", "summary"), await store.note("c", "mood")) == (None, None)
    assert await store.note("unknown", "summary") is None


async def test_a_note_at_a_message_that_is_gone_is_not_written():
    store = InMemoryStore()
    await store.append("c", turn(1))
    await store.clear("c")
    await store.set_note("c", "summary", "of what was cleared", at=2)
    await store.append("c", turn(2))
    assert await store.note("c", "summary") is None


async def test_a_note_needs_no_message():
    store = InMemoryStore()
    await store.set_note("lessons", "book", "{}")
    assert (await store.note("lessons", "book"), await store.newest("lessons", 5)) == ("{}", ())


async def test_the_conversation_unused_for_longest_goes_when_there_are_too_many():
    store = InMemoryStore(max_conversations=2)
    await store.append("a", turn(1))
    await store.append("b", turn(2))
    await texts(store, "a")  # so b is now the one unused for longest
    await store.append("c", turn(3))
    assert (len(store), await texts(store, "b")) == (2, [])
    assert await texts(store, "a") == ["question 1", "answer 1"]


async def test_a_conversation_whose_turn_is_under_way_is_not_dropped():
    store = InMemoryStore(max_conversations=1)
    await store.append("a", turn(1))
    async with store.turn("a"):
        await store.append("b", turn(2))
        assert (await texts(store, "a"), await texts(store, "b")) == (
            ["question 1", "answer 1"],
            ["question 2", "answer 2"],
        )
    await store.append("c", turn(3))
    assert (len(store), await texts(store, "c")) == (1, ["question 3", "answer 3"])


async def test_a_conversation_goes_when_its_time_is_up(clock):
    store = InMemoryStore(ttl_seconds=30)
    await store.append("old", turn(1))
    await store.append("held", turn(2))
    async with store.turn("held"):
        clock.now += 31
        assert await texts(store, "old") == []
        assert await texts(store, "held") == ["question 2", "answer 2"]
    await store.append("left alone", turn(3))
    clock.now += 31
    await store.append("new", turn(4))
    assert len(store) == 1


async def test_any_number_of_conversations_stays_where_the_limit_is_lifted():
    store = InMemoryStore(max_conversations=None)
    for number in range(50):
        await store.append(f"c{number}", turn(number))
    assert (len(store), await texts(store, "c0")) == (50, ["question 0", "answer 0"])
    assert repr(store) == "InMemoryStore(max_conversations=None, ttl_seconds=None)"


@pytest.mark.parametrize("settings", [{"max_conversations": 0}, {"max_conversations": True}, {"ttl_seconds": 0}])
def test_a_wrong_limit_is_refused(settings):
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        InMemoryStore(**settings)


async def test_conversations_without_messages_or_time_left_are_not_listed(clock):
    store = InMemoryStore(ttl_seconds=30)
    await store.append("a", turn(1))
    clock.now += 31
    assert (await store.conversations(), await store.purge(), len(store)) == ((), 1, 0)
    await store.set_note("b", "n", "x")
    assert await store.conversations() == ()


async def test_what_replaces_a_message_is_made_storable_too():
    store = InMemoryStore()
    await store.append("c", turn(1))
    await store.set_note("c", "free", "stays")
    assert await store.replace_from("c", 2, [SystemMessage("rules"), AssistantMessage("\ud800")]) == 3
    assert await texts(store, "c") == ["question 1", "\ufffd"]
    assert await store.note("c", "free") == "stays"


def test_appends_from_many_threads_are_never_interleaved_or_lost():
    store = InMemoryStore()

    def write(writer: int) -> None:
        async def turns() -> None:
            for number in range(50):
                await store.append("c", turn(writer * 1000 + number))

        asyncio.run(turns())

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    stored = asyncio.run(store.newest("c", 1000))
    assert [each.sequence for each in stored] == list(range(1, 401))
    for question, answer in zip(stored[::2], stored[1::2], strict=True):
        assert question.message.text.removeprefix("question") == answer.message.text.removeprefix("answer")
