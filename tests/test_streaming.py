"""Streams: typed events, text that is withdrawn, drafts that are hidden or tagged."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from reactflow import (
    AssistantMessage,
    ConfigurationError,
    Emit,
    ModelBehaviorError,
    Order,
    ReflectionAgent,
    RetryAdvisor,
    SimpleReactAgent,
    WindowChatMemory,
    advisor,
)
from reactflow.events import (
    AnswerRevised,
    DraftReady,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    RevisionStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    TextWithdrawn,
    ToolFinished,
    ToolStarted,
    VerdictGiven,
)
from reactflow.testing import ScriptedChatModel, calls, says


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def shown(events) -> str:
    """The text that was not withdrawn, joined."""
    rounds: dict[int, str] = {}
    for event in events:
        if isinstance(event, TextDelta):
            rounds[event.round] = rounds.get(event.round, "") + event.text
        elif isinstance(event, TextWithdrawn):
            rounds.pop(event.round, None)
    return "".join(rounds.values())


async def test_a_run_tells_what_it_does_in_order():
    model = ScriptedChatModel(calls("add", a=1, b=1), says("it is two"))
    events = [event async for event in SimpleReactAgent(model=model, tools=[add]).astream("Q")]

    assert [type(event) for event in events if not isinstance(event, TextDelta)] == [
        RunStarted,
        ModelStarted,
        ModelFinished,
        ToolStarted,
        ToolFinished,
        ModelStarted,
        ModelFinished,
        RunFinished,
    ]
    assert shown(events) == "it is two"
    assert {event.round for event in events if isinstance(event, TextDelta)} == {2}
    assert events[-1].result.text == "it is two"


async def test_text_beside_a_tool_call_is_withdrawn():
    model = ScriptedChatModel(says("let me see ") + calls("add", a=1, b=1), says("two"))
    events = [event async for event in SimpleReactAgent(model=model, tools=[add]).astream("Q")]
    assert TextWithdrawn(1) in events
    assert shown(events) == "two"


async def test_drafts_are_hidden_until_the_verdict():
    model = ScriptedChatModel("first draft", "second draft")
    agent = ReflectionAgent(model=model, evaluator=lambda draft: draft.text.startswith("second"))

    events = [event async for event in agent.astream("Q")]

    kinds = [type(event) for event in events if not isinstance(event, ModelStarted | ModelFinished)]
    assert kinds == [
        RunStarted,
        DraftReady,
        VerdictGiven,
        RevisionStarted,
        DraftReady,
        VerdictGiven,
        TextDelta,
        TextDelta,
        RunFinished,
    ]
    assert shown(events) == "second draft"


async def test_tagged_drafts_are_shown_at_once_and_then_revised():
    model = ScriptedChatModel("first draft", "second draft")
    agent = ReflectionAgent(model=model, evaluator=lambda draft: draft.text.startswith("second"))

    events = [event async for event in agent.astream("Q", drafts="tag")]

    deltas = [event for event in events if isinstance(event, TextDelta)]
    assert [(event.round, event.text) for event in deltas] == [
        (1, "first "),
        (1, "draft"),
        (2, "second "),
        (2, "draft"),
    ]
    assert events[-2] == AnswerRevised(text="second draft", round=2)
    assert events.index(deltas[0]) < [isinstance(event, VerdictGiven) for event in events].index(True)


async def test_a_tagged_draft_that_is_approved_at_once_is_not_revised():
    agent = ReflectionAgent(model=ScriptedChatModel("good"), evaluator=lambda draft: True)
    events = [event async for event in agent.astream("Q", drafts="tag")]
    assert shown(events) == "good"
    assert not any(isinstance(event, AnswerRevised) for event in events)


async def test_the_judges_words_are_not_streamed_as_text():
    judge = ScriptedChatModel('{"passed": true}')
    agent = ReflectionAgent(model=ScriptedChatModel("good"), judge_model=judge)
    events = [event async for event in agent.astream("Q", drafts="tag")]
    assert shown(events) == "good"
    assert [event.role for event in events if isinstance(event, ModelStarted)] == ["agent", "judge"]


async def test_an_answer_changed_further_out_replaces_the_streamed_text():
    @advisor(order=Order.GUARD)
    async def shout(request, call_next):
        response = await call_next(request)
        return response.replace(message=AssistantMessage(response.text.upper()))

    agent = SimpleReactAgent(model=ScriptedChatModel("quiet words"), advisors=[shout])
    events = [event async for event in agent.astream("Q")]
    assert shown(events) == events[-1].text == "QUIET WORDS"


async def test_text_of_a_failed_call_is_withdrawn_before_the_retry():
    async def breaks(request):
        emit: Emit = request.emit
        emit(TextDelta("half an ans"))
        raise ModelBehaviorError("broken")

    agent = SimpleReactAgent(model=ScriptedChatModel(breaks, "whole answer"), advisors=[RetryAdvisor()])
    events = [event async for event in agent.astream("Q")]
    assert TextWithdrawn(1) in events
    assert shown(events) == "whole answer"


async def test_a_model_that_cannot_stream_still_gives_the_text():
    class Whole:
        name = "whole"

        async def complete(self, request):
            from reactflow import ChatResponse

            return ChatResponse(AssistantMessage("all at once"))

    events = [event async for event in SimpleReactAgent(model=Whole()).astream("Q")]
    assert shown(events) == "all at once"


async def test_an_error_ends_the_stream_and_is_raised():
    agent = SimpleReactAgent(model=ScriptedChatModel(ModelBehaviorError("broken")))
    events = []

    async def listen():
        async for event in agent.astream("Q"):
            events.append(event)  # noqa: PERF401 - what came before the error is the point

    with pytest.raises(ModelBehaviorError, match="broken"):
        await listen()
    assert [type(event) for event in events] == [RunStarted, ModelStarted, ModelFailed]


async def test_ending_a_stream_early_cancels_the_run_and_stores_nothing():
    cancelled = asyncio.Event()

    async def slow(request):
        request.emit(TextDelta("beginning "))
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    memory = WindowChatMemory()
    agent = SimpleReactAgent(model=ScriptedChatModel(slow, "next"), memory=memory)
    stream = agent.astream("Q", conversation_id="c")
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()

    assert cancelled.is_set()
    assert await memory.get("c") == ()
    assert (await agent.arun("again", conversation_id="c")).text == "next"


async def test_a_listener_that_leaves_as_the_run_fails_leaves_no_report_behind():
    reports = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context["message"]))
    stream = SimpleReactAgent(model=ScriptedChatModel(ModelBehaviorError("broken"))).astream("Q")
    await anext(stream)
    await asyncio.sleep(0.01)  # the run has failed by now, and its events wait to be read
    await stream.aclose()
    gc.collect()

    assert reports == []


def test_a_plain_stream_yields_events_as_they_come():
    seen = threading.Event()

    async def waits(request):
        assert await asyncio.to_thread(seen.wait, 10)  # the first event is out before the model has answered
        return "late"

    stream = SimpleReactAgent(model=ScriptedChatModel(waits)).stream("Q")
    assert isinstance(next(stream), RunStarted)
    seen.set()
    assert list(stream)[-1].text == "late"


def test_a_plain_stream_may_be_left_early():
    memory = WindowChatMemory()
    agent = SimpleReactAgent(model=ScriptedChatModel("one two", "next"), memory=memory)
    stream = agent.stream("Q", conversation_id="c")
    next(stream)
    stream.close()
    assert agent.call("again", conversation_id="c") == "next"


def test_a_plain_stream_raises_what_the_run_raised():
    error = ModelBehaviorError("broken")
    with pytest.raises(ModelBehaviorError) as caught:
        list(SimpleReactAgent(model=ScriptedChatModel(error)).stream("Q"))
    assert caught.value is error


async def test_an_unknown_way_to_show_drafts_is_refused():
    agent = SimpleReactAgent(model=ScriptedChatModel())
    with pytest.raises(ConfigurationError, match="drafts='show'"):
        _ = [event async for event in agent.astream("Q", drafts="show")]


async def test_whole_and_streamed_runs_give_the_same_result():
    def agent():
        model = ScriptedChatModel(calls("add", a=1, b=1), "D1", "D2")
        return ReflectionAgent(model=model, evaluator=lambda draft: draft.text == "D2", tools=[add])

    whole = await agent().arun("Q")
    streamed = [event async for event in agent().astream("Q")][-1].result

    assert (whole.text, whole.stop_reason, whole.messages, whole.rounds) == (
        streamed.text,
        streamed.stop_reason,
        streamed.messages,
        streamed.rounds,
    )
