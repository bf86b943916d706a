"""The advisor chain: order, bands, context, both kinds of functions, tool advisors."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, replace

import pytest

from reactflow import (
    AssistantMessage,
    ChatRequest,
    ChatResponse,
    ConfigurationError,
    Handler,
    LoggingAdvisor,
    ModelBehaviorError,
    Order,
    ReflectionAdvisor,
    RetryAdvisor,
    SafeGuardAdvisor,
    SimpleReactAgent,
    ToolAdvisor,
    ToolMessage,
    UserMessage,
    WindowChatMemory,
    advisor,
)
from reactflow.events import TextDelta
from reactflow.testing import ScriptedChatModel, calls, check_advisor, says


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@dataclass(frozen=True)
class Tracing:
    """Writes down when it is entered and left."""

    name: str
    order: int
    trace: list[str]

    async def advise(self, request, call_next):
        self.trace.append(f"{self.name} in")
        response = await call_next(request)
        self.trace.append(f"{self.name} out")
        return response


async def test_lower_order_is_further_out_and_equal_orders_keep_their_sequence():
    trace: list[str] = []
    advisors = [Tracing(name, order, trace) for name, order in (("c", 5), ("a", 1), ("b1", 3), ("b2", 3))]

    await SimpleReactAgent(model=ScriptedChatModel("x"), advisors=advisors).arun("Q")

    assert trace == ["a in", "b1 in", "b2 in", "c in", "c out", "b2 out", "b1 out", "a out"]


@pytest.mark.parametrize("order", [-1, -50, Order.REVISE, Order.GUARD])
async def test_an_order_below_zero_wraps_the_turn_once_even_where_it_is_revised(order):
    trace: list[str] = []
    agent = SimpleReactAgent(
        model=ScriptedChatModel(calls("add", a=1, b=1), "D1", "D2"),
        tools=[add],
        advisors=[Tracing("turn", order, trace), ReflectionAdvisor(lambda draft: draft.text == "D2")],
    )

    assert (await agent.arun("Q")).text == "D2"
    assert trace == ["turn in", "turn out"]


async def test_an_order_from_zero_wraps_each_model_call():
    trace: list[str] = []
    model = ScriptedChatModel(calls("add", a=1, b=1), says("2"))
    await SimpleReactAgent(model=model, tools=[add], advisors=[Tracing("call", 0, trace)]).arun("Q")
    assert trace == ["call in", "call out"] * 2


async def test_an_advisor_may_call_the_rest_of_the_chain_twice():
    @advisor(order=5)
    async def twice(request: ChatRequest, call_next: Handler) -> ChatResponse:
        await call_next(request)
        return await call_next(request)

    result = await SimpleReactAgent(model=ScriptedChatModel("one", "two"), advisors=[twice]).arun("Q")
    assert (result.text, result.rounds) == ("two", 2)


async def test_an_advisor_may_answer_by_itself():
    @advisor(order=Order.GUARD)
    async def cache(request, call_next):
        return ChatResponse(AssistantMessage("cached"))

    model = ScriptedChatModel()
    result = await SimpleReactAgent(model=model, advisors=[cache]).arun("Q")
    assert (result.text, result.stop_reason, result.rounds) == ("cached", "answered", 0)


async def test_a_new_response_keeps_what_inner_layers_said():
    @advisor(order=9)
    async def inner(request, call_next):
        return (await call_next(request)).with_context(inner=1)

    @advisor(order=3)
    async def rebuilding(request, call_next):
        await call_next(request)
        return ChatResponse(AssistantMessage("rebuilt"), context={"outer": 2})

    result = await SimpleReactAgent(model=ScriptedChatModel("x"), advisors=[inner, rebuilding]).arun("Q")
    assert (result.text, dict(result.context)) == ("rebuilt", {"inner": 1, "outer": 2})


async def test_a_turn_advisor_that_rebuilds_the_response_loses_no_message_of_the_turn():
    @advisor(order=Order.GUARD)
    async def rebuilding(request, call_next):
        await call_next(request)
        return ChatResponse(AssistantMessage("rebuilt"))

    model = ScriptedChatModel(calls("add", a=1, b=1), says("2"))
    result = await SimpleReactAgent(model=model, tools=[add], advisors=[rebuilding]).arun("Q")
    assert [message.text for message in result.messages] == ["Q", "", "2", "rebuilt"]


async def test_a_plain_function_is_an_advisor_in_every_mode():
    threads: list[int] = []

    @advisor(order=5)
    def shout(request, call_next):
        threads.append(threading.get_ident())
        response = call_next(request)
        return replace(response, message=AssistantMessage(response.text.upper()))

    agent = SimpleReactAgent(model=ScriptedChatModel(*["a"] * 4), advisors=[shout])

    assert (await agent.arun("Q")).text == "A"
    assert await asyncio.to_thread(agent.call, "Q") == "A"
    assert [event async for event in agent.astream("Q")][-1].text == "A"
    assert list(agent.stream("Q"))[-1].text == "A"
    assert threading.get_ident() not in threads


async def test_plain_advisors_nest_without_starving_each_other():
    def layer(number):
        @advisor(order=number)
        def nested(request, call_next):
            return call_next(request)

        return nested

    agent = SimpleReactAgent(model=ScriptedChatModel(*["x"] * 10), advisors=[layer(number) for number in range(40)])
    results = await asyncio.wait_for(asyncio.gather(*(agent.arun("Q") for _ in range(10))), 120)
    assert [result.text for result in results] == ["x"] * 10


@pytest.mark.parametrize("plain", [False, True])
async def test_an_exception_passes_through_unwrapped_in_both_modes(plain):
    error = KeyError("mine")

    @advisor(order=5)
    async def failing(request, call_next):
        raise error

    @advisor(order=5)
    def plainly_failing(request, call_next):
        raise error

    agent = SimpleReactAgent(model=ScriptedChatModel(), advisors=[plainly_failing if plain else failing])
    with pytest.raises(KeyError) as caught:
        await agent.arun("Q")
    assert caught.value is error
    with pytest.raises(KeyError) as caught:
        _ = [event async for event in agent.astream("Q")]
    assert caught.value is error


async def test_an_advisor_that_returns_no_response_is_named():
    @advisor(order=5)
    async def forgetful(request, call_next):
        await call_next(request)

    with pytest.raises(ConfigurationError, match=r"^Advisor forgetful\(order=5\) returned None; advise"):
        await SimpleReactAgent(model=ScriptedChatModel("x"), advisors=[forgetful]).arun("Q")


async def test_an_advisor_that_forgot_to_await_is_told_so():
    @advisor(order=5)
    async def hasty(request, call_next):
        return call_next(request)

    with pytest.raises(ConfigurationError, match=r"^Advisor hasty\(order=5\) .*; write await call_next\(request\)\.$"):
        await SimpleReactAgent(model=ScriptedChatModel("x"), advisors=[hasty]).arun("Q")


async def test_an_advisor_of_a_class_is_named_by_it():
    class Forgetful:
        order = 5

        async def advise(self, request, call_next):
            await call_next(request)

    with pytest.raises(ConfigurationError, match=r"^Advisor Forgetful returned None; advise"):
        await SimpleReactAgent(model=ScriptedChatModel("x"), advisors=[Forgetful()]).arun("Q")


async def test_two_instances_of_one_class_both_run():
    trace: list[str] = []
    advisors = [Tracing("a", 5, trace), Tracing("a", 5, trace)]
    await SimpleReactAgent(model=ScriptedChatModel("x"), advisors=advisors).arun("Q")
    assert len(trace) == 4


async def test_an_advisor_edits_the_stream_by_wrapping_emit():
    @advisor(order=5)
    async def redacted(request, call_next):
        def emit(event):
            if isinstance(event, TextDelta):
                event = replace(event, text=event.text.replace("secret", "***"))
            request.emit(event)

        response = await call_next(replace(request, emit=emit))
        return replace(response, message=AssistantMessage(response.text.replace("secret", "***")))

    agent = SimpleReactAgent(model=ScriptedChatModel("a secret here"), advisors=[redacted])
    events = [event async for event in agent.astream("Q")]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "a *** here"


@dataclass(frozen=True)
class Doubling:
    """A tool advisor that doubles the first operand."""

    trace: list[str]
    order: int = 1

    async def advise_tool(self, tool_request, call_next):
        self.trace.append(f"{tool_request.name} {dict(tool_request.arguments)}")
        changed = json.dumps({**tool_request.arguments, "a": 2 * tool_request.arguments["a"]})
        return await call_next(tool_request.replace(call=replace(tool_request.call, arguments=changed)))


async def test_a_tool_advisor_sees_and_changes_a_validated_call():
    trace: list[str] = []
    assert isinstance(Doubling(trace), ToolAdvisor)
    model = ScriptedChatModel(calls("add", a=2, b=3), says("done"))

    await SimpleReactAgent(model=model, tools=[add], advisors=[Doubling(trace)]).arun("Q")

    assert trace == ["add {'a': 2, 'b': 3}"]
    assert model.seen[1].messages[-1].text == "7"


async def test_an_exception_of_a_tool_advisor_passes_through_unwrapped():
    error = KeyError("mine")

    class Failing:
        order = 1

        async def advise_tool(self, tool_request, call_next):
            raise error

    agent = SimpleReactAgent(model=ScriptedChatModel(calls("add", a=1, b=1)), tools=[add], advisors=[Failing()])
    with pytest.raises(KeyError) as caught:
        await agent.arun("Q")
    assert caught.value is error


async def test_one_object_may_advise_both_requests_and_tools():
    trace: list[str] = []

    class Both:
        order = 1

        async def advise(self, request, call_next):
            trace.append("request")
            return await call_next(request)

        async def advise_tool(self, tool_request, call_next):
            trace.append("tool")
            result = await call_next(tool_request)
            return ToolMessage(result.text + "!", result.call_id, result.name)

    model = ScriptedChatModel(calls("add", a=1, b=1), says("2"))
    await SimpleReactAgent(model=model, tools=[add], advisors=[Both()]).arun("Q")
    assert trace == ["request", "tool", "request"]
    assert model.seen[1].messages[-1].text == "2!"


@pytest.mark.parametrize("order", ["first", None, 1.5, True])
def test_an_order_that_is_no_whole_number_is_refused(order):
    class Odd:
        async def advise(self, request, call_next):
            return await call_next(request)

    odd = Odd()
    odd.order = order
    with pytest.raises(ConfigurationError, match="give a whole number"):
        SimpleReactAgent(model=ScriptedChatModel(), advisors=[odd])
    with pytest.raises(ConfigurationError, match="whole number"):
        advisor(order=order)


async def test_a_guard_refuses_the_new_question_only_and_stores_nothing():
    memory = WindowChatMemory()
    model = ScriptedChatModel("the bomb in history is fine", "A2")
    agent = SimpleReactAgent(
        model=model, memory=memory, advisors=[SafeGuardAdvisor(["bomb", "炸弹"], refusal="No.")], react_prompt=None
    )

    await agent.arun("hello", conversation_id="c")
    blocked = await agent.arun("build a BOMB", conversation_id="c")
    chinese = await agent.arun("怎么做炸弹", conversation_id="c")
    allowed = await agent.arun("bombastic?", conversation_id="c")

    assert (blocked.text, blocked.stop_reason, chinese.stop_reason) == ("No.", "blocked", "blocked")
    assert (allowed.text, allowed.stop_reason) == ("A2", "answered")
    assert [message.text for message in await memory.get("c")] == [
        "hello",
        "the bomb in history is fine",
        "bombastic?",
        "A2",
    ]


@pytest.mark.parametrize("words", ["bomb", [], [""], [3]])
def test_a_guard_without_words_is_refused(words):
    with pytest.raises(ConfigurationError, match="words"):
        SafeGuardAdvisor(words)


async def test_retry_asks_again_and_lets_the_last_error_through():
    first, last = ModelBehaviorError("first"), ModelBehaviorError("last")
    agent = SimpleReactAgent(model=ScriptedChatModel(first, "ok"), advisors=[RetryAdvisor()])
    assert (await agent.arun("Q")).text == "ok"

    agent = SimpleReactAgent(model=ScriptedChatModel(first, last), advisors=[RetryAdvisor()])
    with pytest.raises(ModelBehaviorError) as caught:
        await agent.arun("Q")
    assert caught.value is last


def test_retry_without_attempts_is_refused():
    with pytest.raises(ConfigurationError, match=r"attempts=0"):
        RetryAdvisor(attempts=0)


@pytest.mark.parametrize(
    "ready",
    [
        LoggingAdvisor(),
        LoggingAdvisor(content=True),
        RetryAdvisor(),
        SafeGuardAdvisor(["forbidden"]),
        ReflectionAdvisor(lambda draft: True),
    ],
)
def test_the_ready_advisors_keep_the_rules(ready):
    assert check_advisor(ready) is None


def test_check_advisor_finds_an_advisor_that_remembers_a_call():
    class Forgetful:
        order = 1
        request = None

        async def advise(self, request, call_next):
            self.request = request
            await asyncio.sleep(0)
            return await call_next(self.request)

    with pytest.raises(AssertionError, match="mixes up concurrent calls"):
        check_advisor(Forgetful())


def test_check_advisor_finds_a_wrapped_exception():
    @advisor(order=1)
    async def wrapping(request, call_next):
        try:
            return await call_next(request)
        except ValueError as error:
            raise RuntimeError("wrapped") from error

    with pytest.raises(AssertionError, match="unwrapped"):
        check_advisor(wrapping)


def test_check_advisor_finds_swallowed_events():
    @advisor(order=1)
    async def deaf(request, call_next):
        return await call_next(replace(request, emit=lambda event: None))

    with pytest.raises(AssertionError, match="swallows events"):
        check_advisor(deaf)


def test_check_advisor_finds_an_answer_that_differs_when_streamed():
    @advisor(order=1)
    async def two_faced(request, call_next):
        response = await call_next(request)
        return response.replace(message=AssistantMessage("streamed" if request.stream else "whole"))

    with pytest.raises(AssertionError, match="when streamed"):
        check_advisor(two_faced)


async def test_images_of_a_question_reach_the_model():
    model = ScriptedChatModel("a cat")
    question = UserMessage("What is it?", images=("https://example.org/cat.png",))
    await SimpleReactAgent(model=model, react_prompt=None).arun(question)
    assert model.seen[0].messages == (question,)
