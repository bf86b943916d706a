"""The message window, what may be stored, and the rules that hold for every window."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.errors import ConfigurationError
from reactflow.events import TextDelta
from reactflow.frozen import FrozenDict
from reactflow.memory import ChatMemory, InMemoryStore, WindowChatMemory
from reactflow.memory_windows import TokenWindowChatMemory, message_tokens
from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage


def turn(number: int, tool_calls: int = 0) -> list[Message]:
    """A question, *tool_calls* rounds of one call each, and an answer."""
    messages: list[Message] = [UserMessage(f"q{number}")]
    for call in range(tool_calls):
        messages += [
            AssistantMessage("", (ToolCall(f"{number}.{call}", "look"),)),
            ToolMessage("seen", f"{number}.{call}", "look"),
        ]
    return [*messages, AssistantMessage(f"a{number}")]


def test_all_of_them_are_chat_memories():
    assert isinstance(WindowChatMemory(), ChatMemory)
    assert isinstance(TokenWindowChatMemory(100), ChatMemory)


async def test_two_memories_have_two_stores():
    one, other = WindowChatMemory(), WindowChatMemory()
    await one.add("c", turn(1))
    assert (len(await one.get("c")), await other.get("c")) == (2, ())


async def test_the_window_shows_the_newest_turns_that_fit_and_the_store_keeps_all():
    memory = WindowChatMemory(max_messages=4)
    for number in range(5):
        await memory.add("c", turn(number))
    assert await memory.get("c") == (*turn(3), *turn(4))
    assert await WindowChatMemory(20, memory.store).get("c") == tuple(m for n in range(5) for m in turn(n))


async def test_the_window_starts_at_a_user_message():
    memory = WindowChatMemory(max_messages=3)
    await memory.add("c", [*turn(1), *turn(2)])
    assert await memory.get("c") == tuple(turn(2))


async def test_a_greeting_before_the_first_question_is_not_shown():
    memory = WindowChatMemory()
    await memory.add("c", [AssistantMessage("How can I help?")])
    assert await memory.get("c") == ()
    await memory.add("c", turn(1))
    assert await memory.get("c") == tuple(turn(1))


async def test_the_newest_turn_is_shown_whole_even_where_it_is_larger_than_the_window():
    memory = WindowChatMemory(max_messages=2)
    await memory.add("c", turn(1))
    await memory.add("c", turn(2, tool_calls=9))
    assert await memory.get("c") == tuple(turn(2, tool_calls=9))


async def test_a_synthetic_message_does_not_begin_a_turn():
    memory = WindowChatMemory(max_messages=3)
    asked = [
        UserMessage("q"),
        AssistantMessage("draft"),
        UserMessage("better", synthetic="reflection"),
        AssistantMessage("a"),
    ]
    await memory.add("c", [*turn(1), *asked])
    assert await memory.get("c") == tuple(asked)


TURNS = st.lists(st.integers(0, 4), max_size=12)


def check_window(shown: Sequence[Message], turns: list[int]) -> list[list[Message]]:
    """The window is a run of whole turns at the end; return all turns."""
    whole = [turn(number, tool_calls) for number, tool_calls in enumerate(turns)]
    if turns:
        assert shown[0] == UserMessage(shown[0].text)
        assert list(shown[-len(whole[-1]) :]) == whole[-1]
        count = sum(isinstance(message, UserMessage) for message in shown)
        assert list(shown) == [message for each in whole[-count:] for message in each]
    else:
        assert shown == ()
    return whole


@given(TURNS, st.integers(1, 30))
def test_any_message_window_is_the_largest_run_of_whole_turns_that_fits(turns: list[int], size: int):
    async def shown() -> tuple[Message, ...]:
        memory = WindowChatMemory(size)
        for number, tool_calls in enumerate(turns):
            await memory.add("c", turn(number, tool_calls))
        return await memory.get("c")

    window = asyncio.run(shown())
    whole = check_window(window, turns)
    count = sum(isinstance(message, UserMessage) for message in window)
    assert len(window) <= size or count == 1
    if count < len(whole):
        assert len(window) + len(whole[-count - 1]) > size


@given(TURNS, st.integers(1, 200))
def test_any_token_window_is_the_largest_run_of_whole_turns_that_fits(turns: list[int], size: int):
    async def shown() -> tuple[Message, ...]:
        memory = TokenWindowChatMemory(size)
        for number, tool_calls in enumerate(turns):
            await memory.add("c", turn(number, tool_calls))
        return await memory.get("c")

    def cost(messages: Sequence[Message]) -> int:
        return sum(map(message_tokens, messages))

    window = asyncio.run(shown())
    whole = check_window(window, turns)
    count = sum(isinstance(message, UserMessage) for message in window)
    assert cost(window) <= size or count == 1
    if count < len(whole):
        assert cost(window) + cost(whole[-count - 1]) > size


async def test_a_window_is_read_in_pages_from_the_end_only():
    asked: list[tuple[int, int | None]] = []

    class Watched(InMemoryStore):
        async def newest(self, conversation_id, limit, *, before=None):
            asked.append((limit, before))
            return await super().newest(conversation_id, limit, before=before)

    memory = WindowChatMemory(2, Watched())
    for number in range(200):
        await memory.add("c", turn(number))
    await memory.get("c")
    assert asked == [(2, None)]
    asked.clear()
    await memory.add("c", turn(200, tool_calls=5))
    assert await memory.get("c") == tuple(turn(200, tool_calls=5))
    assert asked == [(2, None), (4, 411), (8, 407)]


@pytest.mark.parametrize("conversation_id", ["", "  ", "\t\n", None, 7, b"c", "\u3000"])
async def test_a_conversation_id_that_is_blank_or_no_string_is_refused_everywhere(conversation_id):
    memory = WindowChatMemory()
    for use in (memory.get, memory.clear, lambda c: memory.add(c, turn(1)), lambda c: memory.add(c, [])):
        with pytest.raises(ConfigurationError, match="conversation id"):
            await use(conversation_id)
    with pytest.raises(ConfigurationError, match="conversation id"):
        memory.turn(conversation_id)


async def test_system_messages_are_not_stored():
    memory = WindowChatMemory()
    await memory.add("c", [SystemMessage("rules"), *turn(1), SystemMessage("more rules")])
    await memory.add("d", [SystemMessage("rules")])
    assert (await memory.get("c"), len(memory.store)) == (tuple(turn(1)), 1)


async def test_adding_nothing_stores_nothing():
    memory = WindowChatMemory()
    await memory.add("c", [])
    assert len(memory.store) == 0


@pytest.mark.parametrize(
    "bad",
    [
        "question",
        b"question",
        {"role": "user"},
        7,
        UserMessage("not in a list"),
        ["question"],
        [None],
        [{"role": "user", "content": "q"}],
        [UserMessage(None)],
        [UserMessage("q", images=None)],
        [UserMessage("q", images=(7,))],
        [AssistantMessage("a", tool_calls=("look",))],
        [AssistantMessage("a", tool_calls=(ToolCall(None, "look"),))],
        [AssistantMessage("a", extra="reasoning")],
        [ToolMessage("seen", None, "look")],
        [TextDelta("a text, but no message")],
    ],
)
async def test_what_is_no_message_is_refused_and_nothing_of_it_is_stored(bad):
    memory = WindowChatMemory()
    with pytest.raises(ConfigurationError, match="Memory"):
        await memory.add("c", [*turn(1), *bad] if isinstance(bad, list) else bad)
    assert await memory.get("c") == ()


async def test_lone_surrogates_are_replaced_and_other_text_is_kept_as_it_is():
    memory = WindowChatMemory()
    await memory.add(
        "c",
        [
            UserMessage("北京 \ud83d 天气 👋", images=("data:\udc00",)),
            AssistantMessage(
                "\ud83d\ude00",
                (ToolCall("1\ud800", "lo\ud800ok", '{"q": "\udfff"}'),),
                {"reasoning": ["\ud800", {"k": "\ud800"}]},
            ),
            ToolMessage("\udfff", "1\ud800", "lo\ud800ok"),
            AssistantMessage("好"),
        ],
    )
    assert await memory.get("c") == (
        UserMessage("北京 \ufffd 天气 👋", images=("data:\ufffd",)),
        AssistantMessage(
            "😀", (ToolCall("1\ufffd", "lo\ufffdok", '{"q": "\ufffd"}'),), {"reasoning": ["\ufffd", {"k": "\ufffd"}]}
        ),
        ToolMessage("\ufffd", "1\ufffd", "lo\ufffdok"),
        AssistantMessage("好"),
    )


async def test_what_is_stored_cannot_be_changed_from_outside():
    memory = WindowChatMemory()
    extra = {"reasoning": [{"text": "thinking"}], "pair": (1, [2])}
    given_messages = [UserMessage("q"), AssistantMessage("a", extra=extra)]
    await memory.add("c", given_messages)
    given_messages.clear()
    extra["reasoning"].append("more")
    got = await memory.get("c")
    kept = {"reasoning": [{"text": "thinking"}], "pair": (1, [2])}
    assert got == (UserMessage("q"), AssistantMessage("a", extra=kept))
    assert isinstance(got[1].extra, FrozenDict)
    for change in (
        lambda: got[1].extra.update(x=1),
        lambda: got[1].extra["reasoning"].append(1),
        lambda: got[1].extra["reasoning"][0].clear(),
        lambda: got[1].extra["pair"][1].sort(),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change()


async def test_two_memories_over_one_store_share_the_turn():
    store, seen = InMemoryStore(), []
    one, other = WindowChatMemory(store=store), TokenWindowChatMemory(10, store)

    async def wait() -> None:
        async with other.turn("c"):
            seen.append("other")

    async with one.turn("c"):
        waiter = asyncio.create_task(wait())
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append("one")
    await waiter
    assert seen == ["one", "other"]


@pytest.mark.parametrize("size", [0, -1, 2.5, "20", True, None])
def test_a_window_size_that_is_no_positive_whole_number_is_refused(size):
    with pytest.raises(ConfigurationError, match="max_messages"):
        WindowChatMemory(size)
    with pytest.raises(ConfigurationError, match="max_tokens"):
        TokenWindowChatMemory(size)


@pytest.mark.parametrize("store", ["chat.db", None, InMemoryStore, {}])
def test_a_store_that_is_none_is_refused(store):
    with pytest.raises(ConfigurationError, match="no message store"):
        WindowChatMemory(store=store)


def test_images_and_tool_calls_count_toward_a_token_window():
    assert message_tokens(UserMessage("word", images=("https://x/y.png",))) == 4 + 1 + 765
    assert message_tokens(AssistantMessage("", (ToolCall("1", "look", '{"q": 1}'),))) == 4 + 3
    assert message_tokens(UserMessage("北京天气")) == 4 + 4


async def test_a_counter_of_ones_own_decides_what_fits():
    memory = TokenWindowChatMemory(4, count=lambda message: 2)
    for number in range(3):
        await memory.add("c", turn(number))
    assert await memory.get("c") == tuple(turn(2))
