"""The kept conversation of a chat, and asking its last question again."""

import pytest

from reactflow import AssistantMessage, InMemoryStore, SimpleReactAgent, ToolCall, ToolMessage, UserMessage
from reactflow.cli.conversation import Conversation
from reactflow.testing import ScriptedChatModel, says


def turn(number):
    return [UserMessage(f"q{number}"), AssistantMessage(f"a{number}")]


def texts(messages):
    return [message.text for message in messages]


@pytest.fixture
def conversation():
    return Conversation(InMemoryStore(), "c", max_messages=4)


async def test_the_newest_turns_are_shown_and_all_are_kept(conversation):
    for number in range(5):
        await conversation.add("c", turn(number))

    assert texts(await conversation.get("c")) == ["q3", "a3", "q4", "a4"]
    assert texts(await conversation.everything()) == [f"{who}{n}" for n in range(5) for who in "qa"]


async def test_a_long_conversation_is_read_to_its_end(conversation, monkeypatch):
    monkeypatch.setattr("reactflow.cli.conversation.PAGE", 3)
    for number in range(5):
        await conversation.add("c", turn(number))

    assert len(await conversation.everything()) == 10


async def test_a_question_that_is_asked_again_is_not_shown_its_old_answer_and_the_new_one_takes_its_place(conversation):
    model = ScriptedChatModel(says("a1"), says("a2"), says("better"), says("a3"))
    agent = SimpleReactAgent(model=model, memory=conversation, react_prompt=None)
    await agent.arun("q1", conversation_id="c")
    await agent.arun("q2", conversation_id="c")

    async with conversation.asking_again("q2") as question:
        await agent.arun(question, conversation_id="c")
    await agent.arun("q3", conversation_id="c")

    assert texts(model.seen[2].messages) == ["q1", "a1", "q2"]
    assert texts(model.seen[3].messages) == ["q1", "a1", "q2", "better", "q3"]
    assert texts(await conversation.everything()) == ["q1", "a1", "q2", "better", "q3", "a3"]


async def test_a_turn_with_tools_is_replaced_whole(conversation):
    call = AssistantMessage("", (ToolCall("1", "t"),))
    await conversation.add(
        "c", [UserMessage("q"), call, ToolMessage("r", call_id="1", name="t"), AssistantMessage("a")]
    )

    async with conversation.asking_again(None) as question:
        assert (question, await conversation.get("c")) == ("q", ())
        await conversation.add("c", [UserMessage("q"), AssistantMessage("b")])

    assert texts(await conversation.everything()) == ["q", "b"]


async def test_a_question_that_fails_when_asked_again_keeps_its_old_answer(conversation):
    await conversation.add("c", turn(1))

    with pytest.raises(ValueError, match="boom"):
        async with conversation.asking_again("q1"):
            raise ValueError("boom")

    assert texts(await conversation.get("c")) == ["q1", "a1"]


async def test_a_question_that_left_no_trace_replaces_none(conversation):
    await conversation.add("c", turn(1))

    async with conversation.asking_again("blocked") as question:
        await conversation.add("c", [UserMessage("blocked"), AssistantMessage("now answered")])

    assert question == "blocked"
    assert texts(await conversation.everything()) == ["q1", "a1", "blocked", "now answered"]


async def test_in_an_empty_conversation_there_is_nothing_to_ask_again(conversation):
    async with conversation.asking_again(None) as question:
        assert question is None


async def test_what_another_program_adds_meanwhile_is_not_lost(conversation):
    await conversation.add("c", turn(1))
    elsewhere = Conversation(conversation.store, "c")

    async with conversation.asking_again("q1"):
        await elsewhere.add("c", turn(2))
        assert texts(await conversation.get("c")) == ["q1", "a1", "q2", "a2"]
        await conversation.add("c", turn(1))

    assert texts(await conversation.everything()) == ["q1", "a1", "q2", "a2", "q1", "a1"]
