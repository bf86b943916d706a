"""What a result says holds: approved is approved, limits lose nothing, and nothing goes on after a cancel."""

from __future__ import annotations

import asyncio
import copy
import pickle
import sys
import threading
import time
from dataclasses import replace
from typing import Optional

import pytest

import reactflow.background
from reactflow import (
    AssistantMessage,
    Budget,
    BudgetExceeded,
    ChatMemoryAdvisor,
    ChatRequest,
    ChatResponse,
    ConfigurationError,
    DuplicateToolError,
    Issue,
    Judgement,
    ModelBehaviorError,
    Order,
    Price,
    ProviderError,
    ReflectionAdvisor,
    ReflectionAgent,
    RetryAdvisor,
    SimpleReactAgent,
    StopReason,
    ToolCall,
    Usage,
    UserMessage,
    WindowChatMemory,
    WorkflowError,
    advisor,
    ask,
    tool,
)
from reactflow.budget import Meter
from reactflow.testing import ScriptedChatModel, calls, check_advisor, says

paid: list[int] = []


@tool(side_effect=True)
def pay(amount: int) -> str:
    """Pay."""
    paid.append(amount)
    return "paid"


@pytest.fixture(autouse=True)
def nothing_paid():
    paid.clear()


def approves(*texts: str):
    return lambda draft: Judgement(draft.text in texts, score=0.9 if draft.text in texts else 0.1)


async def test_another_draft_than_the_approved_one_is_not_called_approved():
    @advisor(order=-150)
    async def swap(request, call_next):
        response = await call_next(request)
        return response.replace(message=AssistantMessage("D1"))

    agent = ReflectionAgent(model=ScriptedChatModel("D1", "D2"), evaluator=approves("D2"), advisors=[swap])
    result = await agent.arun("Q")
    assert (result.text, result.approved, result.reviewed, result.stop_reason) == ("D1", False, False, "answered")


async def test_a_draft_that_was_let_through_unjudged_does_not_outrank_a_judged_one():
    def judge(draft):
        if draft.text == "D2":
            raise OSError("down")
        return Judgement(False, "more", score=0.9)

    result = await ReflectionAgent(model=ScriptedChatModel("D1", "D2"), evaluator=judge).arun("Q")
    assert (result.text, result.stop_reason, result.reviewed, result.approved) == ("D1", "judge_error", True, False)


@pytest.mark.parametrize("error", [ProviderError("down"), KeyError("odd")])
async def test_on_judge_error_raise_holds_for_every_draft(error):
    def judge(draft):
        if draft.text == "D2":
            raise error
        return False

    agent = ReflectionAgent(model=ScriptedChatModel("D1", "D2"), evaluator=judge, on_judge_error="raise")
    with pytest.raises(type(error)) as caught:
        await agent.arun("Q")
    assert caught.value is error


def test_a_reflection_advisor_around_the_turn_is_refused():
    with pytest.raises(ConfigurationError, match=r"order=-50.*from 0 on"):
        ReflectionAdvisor(lambda draft: True, order=-50)


async def test_a_limit_after_a_draft_returns_the_whole_turn(clock):
    async def hang(request):
        await asyncio.sleep(5)

    model = ScriptedChatModel(calls("pay", amount=1), "D1", clock.late("D2"))
    judge = ScriptedChatModel('{"passed": false, "feedback": "F"}', hang)
    agent = ReflectionAgent(model=model, judge_model=judge, tools=[pay], budget=Budget(max_seconds=60))

    result = await agent.arun("Q")

    assert (result.text, result.stop_reason) == ("D2", "time_budget")
    assert [type(message).__name__ for message in result.messages] == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "AssistantMessage",
        "UserMessage",
        "AssistantMessage",
    ]


async def test_the_partial_result_of_a_failed_run_has_the_whole_turn_and_no_success_as_its_reason():
    error = ProviderError("down")

    @advisor(order=-150)
    async def failing(request, call_next):
        await call_next(request)
        raise error

    model = ScriptedChatModel("D1", "D2")
    agent = ReflectionAgent(model=model, evaluator=approves("D2"), advisors=[failing])
    with pytest.raises(ProviderError):
        await agent.arun("Q")
    assert (error.partial.text, error.partial.stop_reason) == ("D2", "revision_error")
    assert [message.text for message in error.partial.messages][::3] == ["Q", "D2"]


async def test_a_partial_result_is_always_that_of_the_run_that_raised():
    shared = ProviderError("circuit open")
    with pytest.raises(ProviderError):
        await ReflectionAgent(
            model=ScriptedChatModel("private", shared), evaluator=lambda draft: False, on_revision_error="raise"
        ).arun("Q")
    assert shared.partial.text == "private"
    with pytest.raises(ProviderError):
        await SimpleReactAgent(model=ScriptedChatModel(shared)).arun("Q")
    assert shared.partial is None


async def test_a_retried_turn_does_not_repeat_a_side_effect():
    model = ScriptedChatModel(calls("pay", amount=5), ModelBehaviorError("odd"), calls("pay", amount=5), says("done"))
    agent = SimpleReactAgent(model=model, tools=[pay], advisors=[RetryAdvisor(order=-150)])
    assert (await agent.arun("Q")).text == "done"
    assert paid == [5]


@pytest.mark.parametrize("order", [-250, 5])
async def test_a_cancel_reaches_what_runs_behind_a_plain_advisor(order):
    @advisor(order=order)
    def plain(request, call_next):
        return call_next(request)

    begun, answer = asyncio.Event(), asyncio.Event()

    async def slow(request):
        begun.set()
        await answer.wait()
        return calls("pay", amount=1)

    agent = SimpleReactAgent(model=ScriptedChatModel(slow, "x"), tools=[pay], advisors=[plain])
    task = asyncio.create_task(agent.arun("Q"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    answer.set()
    await asyncio.sleep(0.1)
    assert paid == []


async def test_a_cancel_reaches_a_sub_agent_that_a_plain_tool_called():
    begun, answer = threading.Event(), threading.Event()

    async def slow(request):  # on a loop of its own
        begun.set()
        await asyncio.to_thread(answer.wait)
        return calls("pay", amount=1)

    inner = SimpleReactAgent(model=ScriptedChatModel(slow, "x"), tools=[pay])

    def delegate(question: str) -> str:
        """Ask."""
        return inner.call(question)

    agent = SimpleReactAgent(model=ScriptedChatModel(calls("delegate", question="x")), tools=[delegate])
    task = asyncio.create_task(agent.arun("Q"))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    answer.set()
    await asyncio.sleep(0.1)
    assert paid == []


def test_an_exit_in_an_evaluator_neither_loses_the_answer_nor_the_loop_of_the_plain_doors():
    agent = ReflectionAgent(model=ScriptedChatModel("draft"), evaluator=lambda draft: sys.exit("lint failed"))
    result = agent.run("Q")
    assert (result.text, result.stop_reason) == ("draft", "judge_error")
    assert SimpleReactAgent(model=ScriptedChatModel("fine")).call("Q") == "fine"


@pytest.mark.parametrize("exit", [SystemExit("x"), KeyboardInterrupt()])
def test_an_exit_in_one_run_leaves_the_others_alone(exit):
    async def slow(request):
        await asyncio.sleep(0.2)
        return "other"

    answers: list[str] = []
    other = threading.Thread(target=lambda: answers.append(SimpleReactAgent(model=ScriptedChatModel(slow)).call("Q")))
    other.start()
    time.sleep(0.05)
    with pytest.raises(type(exit)):
        SimpleReactAgent(model=ScriptedChatModel(exit)).call("Q")
    other.join(60)
    assert answers == ["other"]
    assert SimpleReactAgent(model=ScriptedChatModel("fine")).call("Q") == "fine"


def test_overlapping_plain_calls_go_back_to_the_shared_loop():
    async def slow(request):
        await asyncio.sleep(0.3)
        return "slow"

    inner = SimpleReactAgent(model=ScriptedChatModel(slow))

    async def delegate(question: str) -> str:
        """Block the loop."""
        return inner.call(question)

    outer = SimpleReactAgent(model=ScriptedChatModel(calls("delegate", question="x"), "done"), tools=[delegate])
    first = threading.Thread(target=lambda: outer.call("Q"))
    first.start()
    time.sleep(0.1)
    SimpleReactAgent(model=ScriptedChatModel(slow)).call("Q")
    first.join(60)
    assert reactflow.background._shared_loop().blocked == 0


async def test_a_tool_that_an_advisor_hid_does_not_run():
    ran: list[str] = []

    def delete_all() -> str:
        """Delete."""
        ran.append("x")
        return "gone"

    @advisor(order=20)
    async def policy(request, call_next):
        return await call_next(request.replace(tools=tuple(t for t in request.tools if t.name != "delete_all")))

    model = ScriptedChatModel(calls("delete_all"), says("refused"))
    await SimpleReactAgent(model=model, tools=[delete_all, pay], advisors=[policy]).arun("Q")
    assert ran == []
    assert model.seen[1].messages[-1].is_error


async def test_a_tool_that_an_advisor_added_runs():
    @advisor(order=20)
    async def lending(request, call_next):
        return await call_next(request.replace(tools=(*request.tools, pay)))

    model = ScriptedChatModel(calls("pay", amount=2), says("done"))
    await SimpleReactAgent(model=model, advisors=[lending]).arun("Q")
    assert paid == [2]


@pytest.mark.parametrize("error", [ConnectionError("net"), RuntimeError("odd"), asyncio.CancelledError()])
async def test_any_error_of_the_model_in_a_revision_returns_the_draft(error):
    agent = ReflectionAgent(model=ScriptedChatModel("D1", error), evaluator=lambda draft: False)
    result = await agent.arun("Q")
    assert (result.text, result.stop_reason) == ("D1", "revision_error")


async def test_an_error_of_an_advisor_in_a_revision_is_not_hidden():
    @advisor(order=5)
    async def buggy(request, call_next):
        response = await call_next(request)
        if response.text == "D2":
            raise KeyError("bug")
        return response

    agent = ReflectionAgent(model=ScriptedChatModel("D1", "D2"), evaluator=lambda draft: False, advisors=[buggy])
    with pytest.raises(KeyError, match="bug"):
        await agent.arun("Q")


async def test_an_earlier_response_keeps_its_own_facts():
    @advisor(order=-150)
    async def first_of_two(request, call_next):
        first = await call_next(request)
        await call_next(request)
        return first

    memory = WindowChatMemory()
    model = ScriptedChatModel("direct", calls("pay", amount=1), says("with tool", finish_reason="length"))
    agent = SimpleReactAgent(model=model, tools=[pay], advisors=[first_of_two, ChatMemoryAdvisor(memory, keep="turn")])
    result = await agent.arun("Q", conversation_id="c")
    assert (result.text, result.stop_reason) == ("direct", "answered")
    assert [message.text for message in result.messages] == ["Q", "direct"]
    assert await memory.get("c") == (UserMessage("Q"), AssistantMessage("direct"))


async def test_a_limit_in_an_advisor_gives_the_answer_to_the_advisors_further_out():
    @advisor(order=-350)
    async def redact(request, call_next):
        response = await call_next(request)
        return replace(response, message=AssistantMessage(response.text.replace("SECRET", "***")))

    translator = ScriptedChatModel("never asked", name="translator")

    @advisor(order=-150)
    async def translate(request: ChatRequest, call_next):
        response = await call_next(request)
        return await ask(translator, request.aside(UserMessage(response.text)), role="translator")

    memory = WindowChatMemory()
    agent = SimpleReactAgent(
        model=ScriptedChatModel("the SECRET is 42"),
        advisors=[redact, translate],
        memory=memory,
        budget=Budget(max_model_calls=1),
    )
    result = await agent.arun("Q", conversation_id="c")
    assert (result.text, result.stop_reason) == ("the *** is 42", "call_budget")
    assert len(await memory.get("c")) == 2


@pytest.mark.parametrize(("policy", "reason"), [("accept", "judge_error"), ("reject", "max_reflection_rounds")])
async def test_the_own_limit_of_a_judge_is_a_failure_of_the_judge(policy, reason):
    async def evaluate(draft):
        judge = SimpleReactAgent(model=ScriptedChatModel(calls("pay", amount=0)), budget=Budget(max_model_calls=1))
        return (await judge.arun("fine?")).text == "yes"

    agent = ReflectionAgent(model=ScriptedChatModel("D1", "D2"), evaluator=evaluate, on_judge_error=policy)
    result = await agent.arun("Q")
    assert result.stop_reason == reason


async def test_the_forced_answer_keeps_its_reason_where_the_judge_fails():
    def judge(draft):
        raise OSError("down")

    model = ScriptedChatModel(calls("pay", amount=1), says("forced"))
    result = await ReflectionAgent(model=model, evaluator=judge, tools=[pay], max_rounds=1).arun("Q")
    assert (result.text, result.stop_reason, result.reviewed) == ("forced", "max_rounds", False)


async def test_an_answer_of_an_advisor_in_a_revision_is_not_called_a_limit():
    @advisor(order=5)
    async def cached(request, call_next):
        if request.messages[-1].text != "Q":
            return ChatResponse(AssistantMessage("cached"))
        return await call_next(request)

    agent = ReflectionAgent(
        model=ScriptedChatModel("D1"), evaluator=lambda draft: False, advisors=[cached], max_reflection_rounds=5
    )
    result = await agent.arun("Q")
    assert (result.text, result.stop_reason, result.reviewed) == ("cached", "answered", False)


async def test_issues_without_words_are_the_feedback():
    model = ScriptedChatModel("D1", "D2")

    def judge(draft):
        return Judgement(draft.text == "D2", issues=(Issue("the humidity is missing", category="humidity"),))

    await ReflectionAgent(model=model, evaluator=judge).arun("Q")
    assert "the humidity is missing" in model.seen[1].messages[-1].text


async def test_an_evaluator_that_is_not_async_is_heard():
    class Plain:
        def evaluate(self, draft):
            return draft.text == "D2"

    result = await ReflectionAgent(model=ScriptedChatModel("D1", "D2"), evaluator=Plain()).arun("Q")
    assert (result.text, result.approved) == ("D2", True)


@pytest.mark.parametrize(
    "response",
    [
        ChatResponse(AssistantMessage(None)),
        ChatResponse(AssistantMessage("x", tool_calls=None)),
        ChatResponse(AssistantMessage("", (ToolCall("1", "pay", {"amount": 1}),))),
        ChatResponse(AssistantMessage("x"), usage="many"),
        ChatResponse(AssistantMessage("x"), finish_reason=["stop"]),
        "just text",
        None,
    ],
)
async def test_garbage_from_a_model_is_a_typed_error(response):
    class Odd:
        name = "odd"

        async def complete(self, request):
            return response

    with pytest.raises(ModelBehaviorError, match="'odd'"):
        await SimpleReactAgent(model=Odd(), tools=[pay]).arun("Q")


async def test_context_keys_need_not_be_names():
    @advisor(order=5)
    async def odd(request, call_next):
        return replace(await call_next(request), context={"self": 1, 2: "two"})

    result = await SimpleReactAgent(model=ScriptedChatModel("x"), advisors=[odd]).arun("Q")
    assert dict(result.context) == {"self": 1, 2: "two"}


async def test_arguments_of_tool_calls_count_where_a_server_reports_nothing():
    model = ScriptedChatModel(*[calls("note", text="x" * 2000)] * 10)

    def note(text: str) -> str:
        """Note."""
        return "ok"

    with pytest.raises(BudgetExceeded):
        await SimpleReactAgent(model=model, tools=[note], budget=Budget(max_tokens=2000)).arun("Q")
    assert len(model.seen) < 5


@pytest.mark.parametrize(
    "price", [{"input": -1, "output": 1}, {"input": 1, "output": float("nan")}, {"input": "1", "output": 1}]
)
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(ConfigurationError, match="Price"):
        Price(**price)
    with pytest.raises(ConfigurationError, match="prices"):
        Budget(max_cost_usd=1, prices={"m": (1, 2)})


def test_several_threads_cannot_share_the_last_call():
    for _ in range(50):
        meter = Meter(Budget(max_model_calls=1))
        taken: list[int] = []
        barrier = threading.Barrier(4)

        def take(meter=meter, taken=taken, barrier=barrier):
            barrier.wait()
            try:
                meter.begin_call("m")
            except BudgetExceeded:
                return
            taken.append(1)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert taken == [1]


async def test_null_is_a_value_where_the_type_allows_it():
    result = await SimpleReactAgent(model=ScriptedChatModel("null"), output_type=Optional[int]).arun("Q")  # noqa: UP045
    assert (result.output, result.warnings) == (None, ())


@pytest.mark.parametrize("blank", ["```json\n" + "\n" * 20_000, "```json\n{}\n```" + " " * 20_000, "\n" * 50_000])
async def test_runaway_white_space_does_not_stop_the_loop(blank):
    started = time.process_time()
    agent = SimpleReactAgent(model=ScriptedChatModel(says(blank + "x", finish_reason="length")), output_type={})
    result = await agent.arun("Q")
    assert (result.stop_reason, result.output) == ("truncated", None)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("answer", ["NaN", '"\ud800"', "[" * 100_000])
async def test_an_answer_that_cannot_be_read_is_a_typed_error(answer):
    agent = SimpleReactAgent(model=ScriptedChatModel(answer, answer), output_type=dict)
    with pytest.raises(ModelBehaviorError, match="does not fit output_type"):
        await agent.arun("Q")


def test_an_output_schema_that_refers_to_another_document_is_refused():
    with pytest.raises(ConfigurationError, match="not fetched"):
        SimpleReactAgent(model=ScriptedChatModel(), output_type={"$ref": "https://example.org/schema.json"})


@pytest.mark.parametrize(
    "error",
    [
        BudgetExceeded("used up", reason=StopReason.TOKEN_BUDGET),
        WorkflowError("failed", role="critic", iteration=2),
        DuplicateToolError("add", ["add", "sub"]),
        ProviderError("down", status=503, body="x"),
    ],
)
def test_errors_cross_process_borders(error):
    for copied in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(copied) is type(error)
        assert str(copied) == str(error)
        assert vars(copied) == vars(error)


async def test_the_limit_of_a_run_crosses_process_borders():
    async def hang(request):
        await asyncio.sleep(5)

    with pytest.raises(BudgetExceeded) as caught:
        await SimpleReactAgent(model=ScriptedChatModel(hang), budget=Budget(max_seconds=0.05)).arun("Q")
    assert pickle.loads(pickle.dumps(caught.value)).reason == "time_budget"


async def test_a_run_may_stand_at_any_depth_below_others_and_still_have_a_deadline():
    meter = Meter(Budget(max_seconds=60))
    for _ in range(1100):
        meter = Meter(parent=meter)

    assert await meter.cut(asyncio.sleep(0, "done"), recovers=True) == "done"


def test_a_plain_function_keeps_the_rules_of_an_advisor():
    @advisor(order=Order.LOGGING)
    def plain(request, call_next):
        return call_next(request)

    assert check_advisor(plain) is None


def test_a_decorator_without_an_order_makes_an_advisor_too():
    @advisor
    async def bare(request, call_next):
        return await call_next(request)

    assert bare.order == Order.LOGGING
    check_advisor(bare)


def test_check_advisor_finds_a_swallowed_cancel():
    @advisor(order=1)
    async def deaf(request, call_next):
        try:
            return await call_next(request)
        except asyncio.CancelledError:
            return ChatResponse(AssistantMessage("fallback"))

    with pytest.raises(AssertionError, match="swallows a cancel"):
        check_advisor(deaf)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": [1]}, r"options=\[1\]: give a dict"),
        ({"advisors": None}, "advisors=None: give a list"),
        ({"advisors": "abc"}, "advisors='abc'"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused(settings, message):
    for make in (SimpleReactAgent, ReflectionAgent):
        with pytest.raises(ConfigurationError, match=message):
            make(model=ScriptedChatModel(), **settings)


def test_a_reflection_agent_without_a_model_says_so():
    with pytest.raises(ConfigurationError, match="model=None is no ChatModel"):
        ReflectionAgent(model=None, evaluator=lambda draft: True)


async def test_usage_of_a_cut_call_is_unknown_and_not_nothing(clock):
    async def hang(request):
        await asyncio.sleep(5)

    agent = ReflectionAgent(
        model=ScriptedChatModel(clock.late(says("D1", usage=Usage(1, 1)))),
        judge_model=ScriptedChatModel(hang),
        budget=Budget(max_seconds=60),
    )
    result = await agent.arun("Q")
    assert result.usage_by_role["judge"].unknown_calls == 1
