"""The memory that summarises what no longer fits."""

import pytest

from reactflow.budget import Budget, Meter, Price
from reactflow.errors import ConfigurationError, ProviderError, StoreError
from reactflow.memory import InMemoryStore, WindowChatMemory
from reactflow.memory_windows import SummarisingChatMemory
from reactflow.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    last_question,
)
from reactflow.model import ChatRequest, ChatResponse, Run

ASKED = UserMessage("Summarise our conversation so far.", synthetic="summary")


class Summariser:
    """Gives the replies in order, the last one for ever; an exception is raised."""

    name = "small"

    def __init__(self, *replies: str | Exception | ChatResponse) -> None:
        self.replies = list(replies)
        self.seen: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatResponse:
        self.seen.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, ChatResponse) else ChatResponse(AssistantMessage(reply), Usage(10, 5))


def turn(number: int) -> list[Message]:
    return [UserMessage(f"q{number}"), AssistantMessage(f"a{number}")]


async def said(memory: SummarisingChatMemory, *numbers: int) -> None:
    for number in numbers:
        await memory.add("c", turn(number))


def asking(**run: object) -> ChatRequest:
    question = UserMessage("now?")
    return ChatRequest(messages=(question,), run=Run(question, conversation_id="c", **run), stream=True)


async def test_a_short_conversation_is_shown_as_it_was_said_and_no_model_is_asked():
    model = Summariser("unused")
    memory = SummarisingChatMemory(model, max_messages=4, keep_recent=2)
    assert await memory.recall(asking()) == ()
    await said(memory, 1, 2)
    assert await memory.recall(asking()) == (*turn(1), *turn(2))
    assert model.seen == []


async def test_the_older_part_is_replaced_by_a_summary_that_is_written_once():
    model = Summariser(" They spoke of 1 and 2. ")
    memory = SummarisingChatMemory(model, max_messages=4, keep_recent=2)
    await said(memory, 1, 2, 3)
    shown = (ASKED, AssistantMessage("They spoke of 1 and 2."), *turn(3))
    assert await memory.recall(asking()) == shown
    assert await memory.recall(asking()) == shown
    assert await memory.get("c") == shown
    assert len(model.seen) == 1
    await said(memory, 4)
    assert await memory.recall(asking()) == (*shown, *turn(4))
    assert len(model.seen) == 1


async def test_the_next_summary_is_made_of_the_last_one_and_of_what_came_since():
    model = Summariser("S1", "S2")
    memory = SummarisingChatMemory(model, max_messages=4, keep_recent=2)
    await said(memory, 1, 2, 3)
    await memory.recall(asking())
    await said(memory, 4, 5)
    assert await memory.recall(asking()) == (ASKED, AssistantMessage("S2"), *turn(5))
    lines = model.seen[1].messages[1].text.splitlines()
    assert lines[1:-1] == ["Earlier summary: S1", "User: q3", "Assistant: a3", "User: q4", "Assistant: a4"]


async def test_the_model_is_asked_in_a_request_of_its_own_that_counts_toward_the_run():
    model = Summariser("S")
    memory = SummarisingChatMemory(model, max_messages=2, keep_recent=1, max_words=7)
    calls = (ToolCall("1", "look", '{"at": "sky"}'),)
    await memory.add("c", [UserMessage("q1"), AssistantMessage("", calls), ToolMessage("blue", "1", "look")])
    await memory.add("c", [AssistantMessage("It is blue."), *turn(2)])
    request = asking()
    await memory.recall(request)

    (asked,) = model.seen
    system, data = asked.messages
    marker, *lines, end = data.text.splitlines()
    assert isinstance(system, SystemMessage)
    assert "at most 7 words" in system.text
    assert lines == [
        "User: q1",
        'Assistant:  [calls look {"at": "sky"}]',
        "Result of look: blue",
        "Assistant: It is blue.",
    ]
    assert (marker, data.synthetic, asked.stream, asked.tools) == (end, "summary", False, ())
    assert request.run.meter.usage_by_role == {"summary": Usage(10, 5)}


async def test_a_message_cannot_guess_the_line_that_ends_the_data():
    model = Summariser("S")
    memory = SummarisingChatMemory(model, max_messages=2, keep_recent=1)
    await said(memory, 1, 2)
    await memory.recall(asking())
    other = SummarisingChatMemory(model, max_messages=2, keep_recent=1)
    await said(other, 1, 2)
    await other.recall(asking())
    first, second = (request.messages[1].text.splitlines()[0] for request in model.seen)
    assert first != second


async def test_the_summary_is_not_taken_for_the_users_question():
    memory = SummarisingChatMemory(Summariser("S"), max_messages=2, keep_recent=1)
    await said(memory, 1, 2)
    assert last_question((await memory.recall(asking()))[:2]) is None


async def test_a_chinese_summary_is_asked_for_in_chinese():
    memory = SummarisingChatMemory(Summariser("用户问了北京的天气。"), max_messages=2, keep_recent=1)
    await said(memory, 1, 2)
    shown = await memory.recall(asking())
    assert shown[0] == UserMessage("请总结到目前为止的对话。", synthetic="summary")


@pytest.mark.parametrize(
    "failure",
    [
        ProviderError("no network"),
        " \n ",
        ChatResponse(AssistantMessage("cut in the mid"), Usage(1, 1), "length"),
        RuntimeError("a bug"),
    ],
)
async def test_where_summarising_fails_the_newest_turns_are_shown_and_the_next_turn_tries_again(failure):
    model = Summariser(failure, "S")
    memory = SummarisingChatMemory(model, max_messages=4, keep_recent=2)
    await said(memory, 1, 2, 3)
    request = asking()
    assert await memory.recall(request) == (*turn(2), *turn(3))
    (warning,) = request.run.warnings
    assert warning.startswith("The conversation could not be summarised")
    assert await memory.recall(asking()) == (ASKED, AssistantMessage("S"), *turn(3))
    assert len(await memory.store.oldest("c", 100)) == 6


async def test_where_the_summary_cannot_be_kept_it_is_used_all_the_same_until_the_next_turn():
    class FullDisk(InMemoryStore):
        async def set_note(self, conversation_id, name, text, *, at=None):
            raise StoreError("the disk is full")

    memory = SummarisingChatMemory(Summariser("S"), FullDisk(), max_messages=2, keep_recent=1)
    await said(memory, 1, 2)
    request = asking()
    assert await memory.recall(request) == (ASKED, AssistantMessage("S"), *turn(2))
    assert len(request.run.warnings) == 1


async def test_a_used_up_budget_leaves_the_window():
    model = Summariser("S")
    memory = SummarisingChatMemory(model, max_messages=2, keep_recent=1)
    await said(memory, 1, 2)
    meter = Meter(Budget(max_model_calls=1))
    meter.begin_call("drafter")
    assert await memory.recall(asking(meter=meter)) == tuple(turn(2))
    assert model.seen == []


async def test_a_missing_price_is_the_callers_mistake_and_is_told():
    memory = SummarisingChatMemory(Summariser("S"), max_messages=2, keep_recent=1)
    await said(memory, 1, 2)
    budget = Budget(max_cost_usd=1, prices={"other": Price(input=1, output=1)})
    with pytest.raises(ConfigurationError, match="no price"):
        await memory.recall(asking(meter=Meter(budget)))


async def test_a_long_backlog_is_summarised_in_parts_over_several_turns_and_nothing_is_left_out():
    model = Summariser("S1", "S2", "S3", "S4")
    memory = SummarisingChatMemory(model, max_messages=2, keep_recent=1, max_tokens=25)
    await said(memory, *range(10, 20))
    assert (await memory.recall(asking()))[1] == AssistantMessage("S3")
    assert len(model.seen) == 3
    assert (await memory.recall(asking()))[2:] == tuple(turn(19))
    assert len(model.seen) == 4
    read = [
        line
        for request in model.seen
        for line in request.messages[1].text.splitlines()[1:-1]
        if not line.startswith("Earlier")
    ]
    assert read == [line for n in range(10, 19) for line in (f"User: q{n}", f"Assistant: a{n}")]


async def test_a_huge_message_is_cut_for_the_summary_and_a_huge_summary_is_cut():
    model = Summariser("S" * 1000)
    memory = SummarisingChatMemory(model, max_messages=2, keep_recent=1, max_tokens=50, max_words=3)
    await memory.add("c", [UserMessage("x" * 10_000), AssistantMessage("a")])
    await said(memory, 2)
    shown = await memory.recall(asking())
    assert len(model.seen[0].messages[1].text.splitlines()[1]) == 50
    assert shown[1] == AssistantMessage("S" * 60)


async def test_a_newest_turn_larger_than_the_window_is_shown_whole():
    memory = SummarisingChatMemory(Summariser("S"), max_messages=3, keep_recent=1)
    huge: list[Message] = [UserMessage("q2")]
    for number in range(4):
        huge += [AssistantMessage("", (ToolCall(str(number), "look"),)), ToolMessage("seen", str(number), "look")]
    huge.append(AssistantMessage("a2"))
    await memory.add("c", huge)
    assert await memory.recall(asking()) == tuple(huge)
    await said(memory, 3)
    await memory.add("c", huge)
    assert await memory.recall(asking()) == (ASKED, AssistantMessage("S"), *huge)


async def test_a_conversation_without_any_question_shows_nothing():
    model = Summariser("S")
    memory = SummarisingChatMemory(model, max_messages=2, keep_recent=1)
    await memory.add("c", [AssistantMessage("Hello"), AssistantMessage("Hello?"), AssistantMessage("Bye")])
    assert (await memory.recall(asking()), model.seen) == ((), [])


async def test_a_cleared_conversation_takes_its_summary_with_it():
    memory = SummarisingChatMemory(Summariser("S"), max_messages=2, keep_recent=1)
    await said(memory, 1, 2)
    await memory.recall(asking())
    await memory.clear("c")
    await said(memory, 3)
    assert await memory.recall(asking()) == tuple(turn(3))


@pytest.mark.parametrize("note", ["", "no JSON", "[1]", '["2", "S"]', "{}", "[null, null]"])
async def test_a_damaged_note_is_written_anew(note):
    memory = SummarisingChatMemory(Summariser("S"), max_messages=2, keep_recent=1)
    await said(memory, 1, 2)
    await memory.store.set_note("c", "summary", note)
    assert await memory.recall(asking()) == (ASKED, AssistantMessage("S"), *turn(2))


async def test_other_memories_over_the_store_see_the_messages_and_not_the_summary():
    memory = SummarisingChatMemory(Summariser("S"), max_messages=2, keep_recent=1)
    await said(memory, 1, 2)
    await memory.recall(asking())
    assert await WindowChatMemory(store=memory.store).get("c") == (*turn(1), *turn(2))


@pytest.mark.parametrize(
    "settings",
    [
        {"max_messages": 0},
        {"keep_recent": 0},
        {"keep_recent": 40},
        {"max_words": "many"},
        {"max_tokens": -1},
        {"store": "chat.db"},
        {"model": "gpt"},
    ],
)
def test_a_wrong_setting_is_refused(settings):
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        SummarisingChatMemory(**{"model": Summariser("S"), **settings})


async def test_a_run_without_a_conversation_cannot_recall():
    memory = SummarisingChatMemory(Summariser("S"))
    with pytest.raises(ConfigurationError, match="conversation id"):
        await memory.recall(ChatRequest(messages=(), run=Run(UserMessage("q"))))
