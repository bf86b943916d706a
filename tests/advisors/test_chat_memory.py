"""The advisor that reads a conversation before the turn and notes what to store after it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from reactflow.advisors.chat_memory import ChatMemoryAdvisor
from reactflow.budget import Budget, Meter
from reactflow.chain import Advisor, Order, compose
from reactflow.errors import BudgetExceeded, ConfigurationError
from reactflow.memory import InMemoryStore, WindowChatMemory
from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from reactflow.model import ChatRequest, ChatResponse, Run
from reactflow.result import StopReason

SYSTEM = SystemMessage("rules")


def request(question: str = "q", conversation_id: str | None = "c", **run: object) -> ChatRequest:
    asked = UserMessage(question)
    return ChatRequest(messages=(SYSTEM, asked), run=Run(asked, conversation_id=conversation_id, **run))


def answering(text: str = "a", **response: object) -> Callable[[ChatRequest], Awaitable[ChatResponse]]:
    async def handler(request: ChatRequest) -> ChatResponse:
        seen.append(request.messages)
        return ChatResponse(AssistantMessage(text), **response)

    seen: list[tuple[Message, ...]] = []
    handler.seen = seen
    return handler


@asynccontextmanager
async def ended_well(request: ChatRequest):
    """What an agent does around the chain: commit the note once, then give back what the run holds."""
    async with request.run.resources:
        yield
        if request.run.commit is not None:
            await request.run.commit()


async def run_turn(advisor: Advisor, asked: ChatRequest, handler) -> ChatResponse:
    async with ended_well(asked):
        return await compose([advisor], handler)(asked)


async def test_the_second_turn_sees_the_first_and_both_are_stored_once():
    memory = WindowChatMemory()
    advisor, handler = ChatMemoryAdvisor(memory), answering()

    await run_turn(advisor, request("q1"), handler)
    await run_turn(advisor, request("q2"), handler)

    assert handler.seen == [
        (SYSTEM, UserMessage("q1")),
        (SYSTEM, UserMessage("q1"), AssistantMessage("a"), UserMessage("q2")),
    ]
    assert await memory.get("c") == (
        UserMessage("q1"), AssistantMessage("a"), UserMessage("q2"), AssistantMessage("a")
    )  # fmt: skip


async def test_without_a_conversation_id_nothing_is_read_or_written():
    memory = WindowChatMemory()
    asked = request(conversation_id=None)
    await run_turn(ChatMemoryAdvisor(memory), asked, answering())
    assert (len(memory.store), asked.run.commit) == (0, None)


async def test_a_blank_conversation_id_is_refused():
    with pytest.raises(ConfigurationError, match="blank"):
        await run_turn(ChatMemoryAdvisor(WindowChatMemory()), request(conversation_id=" "), answering())


async def test_nothing_is_stored_before_the_run_has_ended_well():
    memory = WindowChatMemory()
    asked = request()
    await ChatMemoryAdvisor(memory).advise(asked, answering())
    assert await memory.get("c") == ()
    await asked.run.commit()
    assert await memory.get("c") == (UserMessage("q"), AssistantMessage("a"))


async def test_an_error_leaves_no_note_not_even_that_of_an_earlier_try():
    memory = WindowChatMemory()
    advisor, asked = ChatMemoryAdvisor(memory), request()
    await advisor.advise(asked, answering())

    async def failing(request: ChatRequest) -> ChatResponse:
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError, match="no model"):
        await advisor.advise(asked, failing)
    assert asked.run.commit is None


async def test_an_outer_advisor_that_tries_again_stores_one_turn_and_keeps_its_place_in_the_queue():
    memory, asked = WindowChatMemory(), request()
    chain = compose([ChatMemoryAdvisor(memory)], answering())
    async with asyncio.timeout(60), ended_well(asked):
        await chain(asked)
        await chain(asked)
    assert await memory.get("c") == (UserMessage("q"), AssistantMessage("a"))


async def test_an_outer_advisor_that_tries_twice_at_once_does_not_wait_for_itself():
    memory, asked = WindowChatMemory(), request()
    chain = compose([ChatMemoryAdvisor(memory)], answering())
    async with memory.turn("c"):
        tries = asyncio.gather(chain(asked), chain(asked))
        await asyncio.sleep(0.01)
    async with asyncio.timeout(60), ended_well(asked):
        await tries
    assert len(await memory.get("c")) == 2


async def test_what_is_stored_is_the_question_as_it_came_and_the_answer_as_it_left():
    memory = WindowChatMemory()

    async def with_more(request: ChatRequest) -> ChatResponse:
        calls = (ToolCall("1", "look"),)
        return ChatResponse(AssistantMessage("a", calls, {"reasoning": "because"}))

    notice = UserMessage("out of rounds", synthetic="max_rounds")
    asked = request("redacted ***").followed_by(notice)
    await run_turn(ChatMemoryAdvisor(memory), asked, with_more)
    assert await memory.get("c") == (
        UserMessage("redacted ***"),
        AssistantMessage("a", extra={"reasoning": "because"}),
    )


TRANSCRIPT = (
    AssistantMessage("looking", (ToolCall("1", "look"), ToolCall("2", "look"))),
    ToolMessage("seen", "1", "look"),
    ToolMessage("broken", "2", "look", is_error=True),
    AssistantMessage("draft"),
    UserMessage("better", synthetic="reflection"),
    AssistantMessage("", (ToolCall("3", "look"),)),
    ToolMessage("seen again", "3", "look"),
    AssistantMessage("", (ToolCall("4", "look"), ToolCall("5", "look"))),
    ToolMessage("cut off before the fifth", "4", "look"),
)


async def test_the_whole_turn_is_kept_when_asked_for_without_drafts_feedback_and_open_calls():
    memory = WindowChatMemory()
    await run_turn(ChatMemoryAdvisor(memory, keep="turn"), request(), answering(transcript=TRANSCRIPT))
    assert await memory.get("c") == (
        UserMessage("q"),
        AssistantMessage("looking", (ToolCall("1", "look"), ToolCall("2", "look"))),
        ToolMessage("seen", "1", "look"),
        ToolMessage("broken", "2", "look", is_error=True),
        AssistantMessage("", (ToolCall("3", "look"),)),
        ToolMessage("seen again", "3", "look"),
        AssistantMessage("a"),
    )


async def test_question_and_answer_are_kept_by_default():
    memory = WindowChatMemory()
    await run_turn(ChatMemoryAdvisor(memory), request(), answering(transcript=TRANSCRIPT))
    assert await memory.get("c") == (UserMessage("q"), AssistantMessage("a"))


@pytest.mark.parametrize("handler", [answering("no", stop_reason=StopReason.BLOCKED), answering(" \n"), answering("")])
async def test_a_blocked_or_blank_answer_is_not_stored(handler):
    memory, asked = WindowChatMemory(), request()
    await run_turn(ChatMemoryAdvisor(memory), asked, handler)
    assert (asked.run.commit, await memory.get("c")) == (None, ())


async def test_a_request_without_a_question_is_not_stored():
    memory = WindowChatMemory()
    asked = request().replace(messages=(SYSTEM, UserMessage("go on", synthetic="notice")))
    await run_turn(ChatMemoryAdvisor(memory), asked, answering())
    assert await memory.get("c") == ()


class ForeignMemory:
    """A memory of somebody else, over anything."""

    def __init__(self, *history: Message) -> None:
        self.history = list(history)

    async def get(self, conversation_id: str) -> list[Message]:
        return self.history

    async def add(self, conversation_id: str, messages: list[Message]) -> None:
        self.history += messages

    async def clear(self, conversation_id: str) -> None:
        self.history.clear()

    @asynccontextmanager
    async def turn(self, conversation_id: str):
        yield


async def test_stored_system_messages_and_an_unanswered_question_at_the_end_are_not_sent():
    handler = answering()
    calls = AssistantMessage("", (ToolCall("1", "look"),))
    history = (SystemMessage("old rules"), UserMessage("q0"), AssistantMessage("a0"), UserMessage("lost"), calls)
    await run_turn(ChatMemoryAdvisor(ForeignMemory(*history)), request("q1"), handler)
    assert handler.seen == [(SYSTEM, UserMessage("q0"), AssistantMessage("a0"), UserMessage("q1"))]


async def test_history_goes_before_the_question_where_there_is_no_system_message():
    memory, handler = WindowChatMemory(), answering()
    await memory.add("c", [UserMessage("q0"), AssistantMessage("a0")])
    asked = request("q1")
    await run_turn(ChatMemoryAdvisor(memory), asked.replace(messages=asked.messages[1:]), handler)
    assert handler.seen == [(UserMessage("q0"), AssistantMessage("a0"), UserMessage("q1"))]


async def test_a_memory_that_recalls_is_asked_with_the_request():
    class Recalling(ForeignMemory):
        async def recall(self, request: ChatRequest) -> list[Message]:
            return [UserMessage("before"), AssistantMessage(f"run of {request.run.conversation_id}")]

    handler = answering()
    await run_turn(ChatMemoryAdvisor(Recalling()), request(), handler)
    assert handler.seen[0][1:3] == (UserMessage("before"), AssistantMessage("run of c"))


async def test_20_turns_at_once_on_one_conversation_see_each_other_in_order():
    memory = WindowChatMemory(max_messages=100)
    advisor, seen = ChatMemoryAdvisor(memory), []

    async def handler(request: ChatRequest) -> ChatResponse:
        seen.append(len(request.messages))
        await asyncio.sleep(0)
        return ChatResponse(AssistantMessage(f"re {request.run.question.text}"))

    await asyncio.gather(*(run_turn(advisor, request(f"q{number}"), handler) for number in range(20)))

    assert seen == [2 + 2 * number for number in range(20)]
    stored = await memory.get("c")
    assert [m.text for m in stored] == [text for n in range(20) for text in (f"q{n}", f"re q{n}")]


async def test_turns_that_append_run_side_by_side_and_none_is_lost_or_interleaved():
    memory = WindowChatMemory(max_messages=100)
    advisor, all_here = ChatMemoryAdvisor(memory, overlap="append"), asyncio.Barrier(20)

    async def handler(request: ChatRequest) -> ChatResponse:
        assert len(request.messages) == 2
        await all_here.wait()
        return ChatResponse(AssistantMessage(f"re {request.run.question.text}"))

    async with asyncio.timeout(60):
        await asyncio.gather(*(run_turn(advisor, request(f"q{number}"), handler) for number in range(20)))

    stored = await memory.get("c")
    assert sorted(m.text for m in stored[::2]) == sorted(f"q{number}" for number in range(20))
    assert [f"re {m.text}" for m in stored[::2]] == [m.text for m in stored[1::2]]


async def test_50_conversations_run_at_once_and_none_sees_another():
    memory, all_here = WindowChatMemory(), asyncio.Barrier(50)
    advisor = ChatMemoryAdvisor(memory)

    async def handler(request: ChatRequest) -> ChatResponse:
        await all_here.wait()
        return ChatResponse(AssistantMessage(f"{len(request.messages)} {request.run.conversation_id}"))

    async with asyncio.timeout(60):
        for turn in (1, 2):
            await asyncio.gather(*(run_turn(advisor, request(f"q{turn}", f"c{n}"), handler) for n in range(50)))
    for number in range(50):
        assert [m.text for m in await memory.get(f"c{number}")] == ["q1", f"2 c{number}", "q2", f"4 c{number}"]


def test_threads_with_loops_of_their_own_take_turns():
    memory = WindowChatMemory(max_messages=1000)
    advisor, inside = ChatMemoryAdvisor(memory), set()

    async def handler(request: ChatRequest) -> ChatResponse:
        conversation_id = request.run.conversation_id
        assert conversation_id not in inside
        inside.add(conversation_id)
        await asyncio.sleep(0.0002)
        inside.remove(conversation_id)
        return ChatResponse(AssistantMessage(f"re {request.run.question.text}"))

    async def turns(writer: int) -> None:
        await asyncio.gather(*(run_turn(advisor, request(f"{writer}.{n}", f"c{n % 2}"), handler) for n in range(20)))

    def thread(writer: int) -> None:
        try:
            asyncio.run(turns(writer))
        except BaseException as error:
            failures.append(error)

    failures: list[BaseException] = []
    threads = [threading.Thread(target=thread, args=(writer,)) for writer in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    stored = asyncio.run(memory.get("c0")) + asyncio.run(memory.get("c1"))
    assert len(stored) == 160
    assert [f"re {m.text}" for m in stored[::2]] == [m.text for m in stored[1::2]]


async def test_a_turn_that_is_cancelled_while_it_waits_lets_the_next_one_in():
    memory = WindowChatMemory()
    advisor = ChatMemoryAdvisor(memory)
    async with memory.turn("c"):
        first = asyncio.create_task(run_turn(advisor, request("first"), answering()))
        second = asyncio.create_task(run_turn(advisor, request("second"), answering()))
        await asyncio.sleep(0)
        first.cancel()
    await asyncio.wait([first, second])
    assert first.cancelled()
    assert [m.text for m in await memory.get("c")] == ["second", "a"]


async def test_a_turn_that_is_cancelled_stores_nothing_and_gives_its_place_back():
    memory = WindowChatMemory()
    advisor = ChatMemoryAdvisor(memory)

    begun = asyncio.Event()

    async def slow(request: ChatRequest) -> ChatResponse:
        begun.set()
        await asyncio.sleep(60)
        raise AssertionError

    task = asyncio.create_task(run_turn(advisor, request(), slow))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])
    async with asyncio.timeout(60):
        await run_turn(advisor, request("next"), answering())
    assert [m.text for m in await memory.get("c")] == ["next", "a"]


async def test_waiting_for_the_turn_counts_against_the_time_budget():
    memory = WindowChatMemory()
    asked = request(meter=Meter(Budget(max_seconds=0.02)))
    async with memory.turn("c"):
        with pytest.raises(BudgetExceeded) as caught:
            await run_turn(ChatMemoryAdvisor(memory), asked, answering())
    assert caught.value.reason is StopReason.TIME_BUDGET
    async with asyncio.timeout(60), memory.turn("c"):
        pass


@pytest.mark.parametrize("between", [0, 2])
async def test_a_sub_agent_on_the_same_conversation_is_refused_instead_of_waiting_for_itself(between):
    store = InMemoryStore()
    outer, inner = ChatMemoryAdvisor(WindowChatMemory(store=store)), ChatMemoryAdvisor(WindowChatMemory(5, store))

    async def calls_sub_agent(asked: ChatRequest) -> ChatResponse:
        parent = asked.run
        for _ in range(between):
            parent = Run(asked.run.question, parent=parent)
        return await run_turn(inner, request("sub", conversation_id, parent=parent), answering())

    conversation_id = "c"
    with pytest.raises(ConfigurationError, match="would wait for itself"):
        await run_turn(outer, request(), calls_sub_agent)
    conversation_id = "another"
    async with asyncio.timeout(60):
        await run_turn(outer, request(), calls_sub_agent)
    assert len(store) == 2


async def test_a_sub_agent_that_appends_need_not_wait():
    memory = WindowChatMemory()

    async def calls_sub_agent(asked: ChatRequest) -> ChatResponse:
        sub = ChatMemoryAdvisor(memory, overlap="append")
        return await run_turn(sub, request("sub", parent=asked.run), answering())

    async with asyncio.timeout(60):
        await run_turn(ChatMemoryAdvisor(memory), request(), calls_sub_agent)
    assert [m.text for m in await memory.get("c")] == ["sub", "a", "q", "a"]


def test_it_stands_at_the_place_of_memory_and_can_be_moved_within_the_turn():
    memory = WindowChatMemory()
    assert ChatMemoryAdvisor(memory).order == Order.MEMORY
    assert ChatMemoryAdvisor(memory, order=-5).order == -5
    with pytest.raises(ConfigurationError, match="below 0"):
        ChatMemoryAdvisor(memory, order=Order.LOGGING)


@pytest.mark.parametrize("settings", [{"keep": "all"}, {"keep": None}, {"overlap": "queue"}])
def test_a_setting_that_is_not_on_the_list_is_refused(settings):
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        ChatMemoryAdvisor(WindowChatMemory(), **settings)


@pytest.mark.parametrize("memory", [None, "memory", InMemoryStore(), WindowChatMemory])
def test_an_object_that_is_no_memory_is_refused(memory):
    with pytest.raises(ConfigurationError, match="no chat memory"):
        ChatMemoryAdvisor(memory)
