"""Memory seen through the agent: what is stored, when, and who waits for whom."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import warnings

import pytest

from reactflow import (
    AssistantMessage,
    ChatMemoryAdvisor,
    ConfigurationError,
    ModelBehaviorError,
    Order,
    ReflectionAgent,
    SimpleReactAgent,
    StoreError,
    ToolMessage,
    UserMessage,
    WindowChatMemory,
    advisor,
)
from reactflow.testing import ScriptedChatModel, calls, says


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def echo(request):
    """Answer with the question."""
    return f"re {request.messages[-1].text}"


async def test_without_a_conversation_memory_is_left_alone():
    memory = WindowChatMemory()
    result = await SimpleReactAgent(model=ScriptedChatModel("A"), memory=memory).arun("Q")
    assert (result.text, await memory.get("c")) == ("A", ())


async def test_drafts_feedback_notices_and_tool_messages_are_not_stored():
    memory = WindowChatMemory()
    model = ScriptedChatModel(calls("add", a=1, b=1), "D1", calls("add", a=2, b=2), calls("add", a=3, b=3), "D2")
    agent = ReflectionAgent(model=model, evaluator=lambda draft: False, tools=[add], memory=memory, max_rounds=2)

    result = await agent.arun("Q", conversation_id="c")

    assert result.stop_reason == "max_rounds"
    assert await memory.get("c") == (UserMessage("Q"), AssistantMessage("D2"))


async def test_the_whole_turn_is_stored_where_asked_for():
    memory = WindowChatMemory()
    model = ScriptedChatModel(calls("add", a=1, b=1), "D1", "D2")
    agent = ReflectionAgent(
        model=model,
        evaluator=lambda draft: draft.text == "D2",
        tools=[add],
        advisors=[ChatMemoryAdvisor(memory, keep="turn")],
    )

    await agent.arun("Q", conversation_id="c")

    stored = await memory.get("c")
    assert [type(message) for message in stored] == [UserMessage, AssistantMessage, ToolMessage, AssistantMessage]
    assert (stored[2].text, stored[3].text) == ("2", "D2")


async def test_an_error_stores_nothing():
    memory = WindowChatMemory()
    agent = SimpleReactAgent(model=ScriptedChatModel("A1", ModelBehaviorError("broken")), memory=memory)
    await agent.arun("U1", conversation_id="c")
    with pytest.raises(ModelBehaviorError):
        await agent.arun("U2", conversation_id="c")
    assert await memory.get("c") == (UserMessage("U1"), AssistantMessage("A1"))


async def test_a_cancel_stores_nothing_and_the_next_turn_works():
    memory, begun = WindowChatMemory(), asyncio.Event()

    async def hang(_):
        begun.set()
        await asyncio.sleep(60)

    agent = SimpleReactAgent(model=ScriptedChatModel(hang, "A"), memory=memory)
    task = asyncio.create_task(agent.arun("U1", conversation_id="c"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await agent.arun("U2", conversation_id="c")).text == "A"
    assert await memory.get("c") == (UserMessage("U2"), AssistantMessage("A"))


async def test_an_outer_advisor_that_retries_stores_one_turn():
    @advisor(order=Order.GUARD)
    async def twice(request, call_next):
        await call_next(request)
        return await call_next(request)

    memory = WindowChatMemory()
    agent = SimpleReactAgent(model=ScriptedChatModel("A1", "A2"), memory=memory, advisors=[twice])
    await agent.arun("Q", conversation_id="c")
    assert await memory.get("c") == (UserMessage("Q"), AssistantMessage("A2"))


async def test_what_an_outer_redactor_hides_is_not_stored_or_judged():
    @advisor(order=Order.GUARD)
    async def redactor(request, call_next):
        *before, question = request.messages
        return await call_next(
            request.replace(messages=(*before, UserMessage(question.text.replace("4711", "[number]"))))
        )

    memory, judge = WindowChatMemory(), ScriptedChatModel('{"passed": true}')
    agent = ReflectionAgent(model=ScriptedChatModel("A"), judge_model=judge, advisors=[redactor], memory=memory)

    await agent.arun("my number is 4711", conversation_id="c")

    assert (await memory.get("c"))[0] == UserMessage("my number is [number]")
    assert "4711" not in "".join(message.text for message in judge.seen[0].messages)


async def test_what_retrieval_adds_is_neither_stored_nor_taken_for_the_question():
    @advisor(order=Order.RETRIEVAL)
    async def retrieval(request, call_next):
        *before, question = request.messages
        return await call_next(request.replace(messages=(*before, UserMessage(f"facts\n{question.text}"))))

    memory, judge = WindowChatMemory(), ScriptedChatModel('{"passed": true}')
    model = ScriptedChatModel("A")
    agent = ReflectionAgent(model=model, judge_model=judge, advisors=[retrieval], memory=memory)

    await agent.arun("Q1", conversation_id="c")

    assert model.seen[0].messages[-1].text == "facts\nQ1"
    assert (await memory.get("c"))[0] == UserMessage("Q1")
    assert "facts" not in "".join(message.text for message in judge.seen[0].messages)


async def test_twenty_concurrent_calls_on_one_conversation_lose_and_mix_nothing():
    memory = WindowChatMemory(max_messages=100)
    agent = SimpleReactAgent(model=ScriptedChatModel(*[echo] * 20), memory=memory)

    await asyncio.gather(*(agent.arun(f"q{number}", conversation_id="c") for number in range(20)))

    stored = await memory.get("c")
    assert len(stored) == 40
    assert {message.text for message in stored[::2]} == {f"q{number}" for number in range(20)}
    assert all(answer.text == f"re {question.text}" for question, answer in zip(stored[::2], stored[1::2], strict=True))


async def test_fifty_conversations_at_once_stay_apart():
    memory = WindowChatMemory()
    agent = SimpleReactAgent(model=ScriptedChatModel(*[echo] * 100), memory=memory)

    for turn in range(2):
        await asyncio.gather(*(agent.arun(f"{turn} of {n}", conversation_id=f"c{n}") for n in range(50)))

    for number in range(50):
        assert [message.text for message in await memory.get(f"c{number}")] == [
            f"0 of {number}",
            f"re 0 of {number}",
            f"1 of {number}",
            f"re 1 of {number}",
        ]


def test_threads_and_loops_queue_for_one_conversation():
    memory = WindowChatMemory(max_messages=200)
    agent = SimpleReactAgent(model=ScriptedChatModel(*[echo] * 40), memory=memory)

    def plain(number):
        agent.call(f"p{number}", conversation_id="c")

    def own_loop(number):
        asyncio.run(agent.arun(f"l{number}", conversation_id="c"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20) for work in (plain, own_loop)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    stored = asyncio.run(memory.get("c"))
    assert len(stored) == 80
    assert all(answer.text == f"re {question.text}" for question, answer in zip(stored[::2], stored[1::2], strict=True))


async def test_a_sub_agent_on_the_same_conversation_is_refused_rather_than_waiting_for_itself():
    memory = WindowChatMemory()
    inner = SimpleReactAgent(model=ScriptedChatModel("inner"), memory=memory)
    errors: list[str] = []

    async def delegate(question: str) -> str:
        """Ask."""
        try:
            return (await inner.arun(question, conversation_id="c")).text
        except ConfigurationError as error:
            errors.append(str(error))
            raise

    model = ScriptedChatModel(calls("delegate", question="x"), says("done"))
    agent = SimpleReactAgent(model=model, tools=[delegate], memory=memory)

    await asyncio.wait_for(agent.arun("Q", conversation_id="c"), 60)

    assert len(errors) == 1
    assert "c" in errors[0]


async def test_overlapping_turns_are_each_appended_whole():
    memory = WindowChatMemory(max_messages=100)
    barrier = asyncio.Barrier(5)

    async def together(request):
        await barrier.wait()
        return echo(request)

    agent = SimpleReactAgent(
        model=ScriptedChatModel(*[together] * 5), advisors=[ChatMemoryAdvisor(memory, overlap="append")]
    )
    await asyncio.wait_for(asyncio.gather(*(agent.arun(f"q{n}", conversation_id="c") for n in range(5))), 60)

    stored = await memory.get("c")
    assert len(stored) == 10
    assert all(answer.text == f"re {question.text}" for question, answer in zip(stored[::2], stored[1::2], strict=True))


class Failing(WindowChatMemory):
    async def add(self, conversation_id, messages):
        raise OSError("disk full")


async def test_a_failed_commit_raises_with_the_finished_result_in_it():
    agent = SimpleReactAgent(model=ScriptedChatModel("A"), memory=Failing())
    with pytest.raises(StoreError, match="disk full") as caught:
        await agent.arun("Q", conversation_id="c")
    assert caught.value.partial.text == "A"


async def test_a_commit_that_has_begun_is_finished_before_a_cancel_goes_on():
    began, stored = asyncio.Event(), []

    class Slow(WindowChatMemory):
        async def add(self, conversation_id, messages):
            began.set()
            await asyncio.sleep(0.05)
            stored.extend(messages)

    task = asyncio.create_task(
        SimpleReactAgent(model=ScriptedChatModel("A"), memory=Slow()).arun("Q", conversation_id="c")
    )
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stored == [UserMessage("Q"), AssistantMessage("A")]


def test_two_memories_are_refused():
    memory = WindowChatMemory()
    with pytest.raises(ConfigurationError, match="2 memories would store each turn twice"):
        SimpleReactAgent(model=ScriptedChatModel(), memory=memory, advisors=[ChatMemoryAdvisor(memory)])


async def test_a_reflection_agent_remembers_twenty_messages_by_default():
    model = ScriptedChatModel(*[echo] * 12)
    agent = ReflectionAgent(model=model, evaluator=lambda draft: True, react_prompt=None)
    for number in range(12):
        await agent.arun(f"q{number}", conversation_id="c")
    assert len(model.seen[-1].messages) == 21
    assert model.seen[-1].messages[0].text == "q1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_wait_for_a_turn_of_its_parent():
    started = threading.Event()

    async def slow(request):
        started.set()
        await asyncio.sleep(1)
        return "slow"

    memory = WindowChatMemory()
    agent = SimpleReactAgent(model=ScriptedChatModel(slow), memory=memory)
    busy = threading.Thread(target=lambda: agent.call("Q", conversation_id="c"))
    busy.start()
    started.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of a fork beside threads
        child = os.fork()
    if child == 0:
        answer = SimpleReactAgent(model=ScriptedChatModel("in the child"), memory=memory).call("Q", conversation_id="c")
        os._exit(0 if answer == "in the child" else 1)
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    busy.join()
    assert ended == (child, 0)
