"""Agents on stored conversations, through their front door."""

import asyncio

import pytest

from reactflow import (
    AssistantMessage,
    ChatMemoryAdvisor,
    ConfigurationError,
    ConflictError,
    SimpleReactAgent,
    StoreError,
    SummarisingChatMemory,
    UserMessage,
    WindowChatMemory,
)
from reactflow.testing import ScriptedChatModel, says


def echo(request):
    """Answer with the question and the number of messages before it."""
    return f"{len(request.messages) - 1} before {request.messages[-1].text}"


def agent_on(store, replies: int = 50, **settings) -> SimpleReactAgent:
    memory = WindowChatMemory(store=store)
    return SimpleReactAgent(
        model=ScriptedChatModel(*[echo] * replies), react_prompt=None, advisors=[ChatMemoryAdvisor(memory)], **settings
    )


async def test_a_conversation_goes_on_after_a_restart(database, opened):
    store = opened(database)
    assert (await agent_on(store).arun("q1", conversation_id="c")).text == "0 before q1"
    await store.aclose()
    assert (await agent_on(opened(database)).arun("q2", conversation_id="c")).text == "2 before q2"


async def test_twenty_turns_at_once_follow_each_other(database, opened):
    agents = [agent_on(opened(database)) for _ in range(2)]
    results = await asyncio.gather(*(agents[n % 2].arun(f"q{n}", conversation_id="c") for n in range(20)))
    counts = sorted(int(result.text.split()[0]) for result in results)
    assert counts == [*range(0, 20, 2), *[20] * 10]


def test_the_synchronous_door_works_beside_the_others(opened):
    store = opened("sqlite")
    agent = agent_on(store)
    assert agent.call("q1", conversation_id="c") == "0 before q1"
    assert asyncio.run(agent.arun("q2", conversation_id="c")).text == "2 before q2"
    assert agent.call("q3", conversation_id="c") == "4 before q3"


async def test_a_conflict_keeps_its_type_and_carries_the_answer(database, opened):
    store, other = opened(database, overlap="conflict"), opened(database, overlap="append")

    async def overtaken(request):
        await other.append("c", [UserMessage("theirs"), AssistantMessage("a")])
        return says("mine")

    memory = WindowChatMemory(store=store)
    agent = SimpleReactAgent(model=ScriptedChatModel(overtaken, says("again")), memory=memory)
    with pytest.raises(ConflictError) as caught:
        await agent.arun("q", conversation_id="c")
    assert caught.value.partial.text == "mine"
    assert (await agent.arun("q", conversation_id="c")).text == "again"
    assert [message.text for message in await memory.get("c")] == ["theirs", "a", "q", "again"]


async def test_an_answer_that_cannot_be_stored_is_in_the_error(opened, tmp_path):
    store = opened("sqlite", timeout_s=0.1)
    agent = SimpleReactAgent(
        model=ScriptedChatModel(AssistantMessage("a", extra={"raw": object()})), memory=WindowChatMemory(store=store)
    )
    with pytest.raises(StoreError, match="could not be stored") as caught:
        await agent.arun("q", conversation_id="c")
    assert caught.value.partial.text == "a"
    assert await store.newest("c", 9) == ()


async def test_a_sub_agent_on_another_store_over_the_same_database_is_refused_too(opened):
    inner = agent_on(opened("sqlite"))

    async def delegate(request):
        return (await inner.arun("sub", conversation_id="c")).text

    memory = WindowChatMemory(store=opened("sqlite"))
    outer = SimpleReactAgent(model=ScriptedChatModel(delegate), memory=memory)
    async with asyncio.timeout(5):
        with pytest.raises(ConfigurationError, match="would wait for itself"):
            await outer.arun("q", conversation_id="c")


async def test_a_summary_survives_a_restart_and_is_counted(database, opened):
    def remembering(store) -> SimpleReactAgent:
        memory = SummarisingChatMemory(ScriptedChatModel(says("S")), store, max_messages=4, keep_recent=2)
        return SimpleReactAgent(model=ScriptedChatModel(*[echo] * 5), react_prompt=None, memory=memory)

    store = opened(database)
    agent = remembering(store)
    for number in range(3):
        await agent.arun(f"q{number}", conversation_id="c")
    result = await agent.arun("q3", conversation_id="c")
    assert result.text == "4 before q3"
    assert result.usage_by_role["summary"].model_calls == 1
    await store.aclose()
    result = await remembering(opened(database)).arun("q4", conversation_id="c")
    assert result.text == "6 before q4"
    assert "summary" not in result.usage_by_role
