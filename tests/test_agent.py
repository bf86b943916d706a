"""The agent through its front door: the loop, tools, limits, structured answers, configuration."""

from __future__ import annotations

import asyncio
import threading

import pytest
from pydantic import BaseModel

from reactflow import (
    AssistantMessage,
    Budget,
    BudgetExceeded,
    ChatResponse,
    ConfigurationError,
    DuplicateToolError,
    ModelBehaviorError,
    Order,
    Price,
    ProviderError,
    ReflectionAgent,
    SimpleReactAgent,
    StopReason,
    SystemMessage,
    ToolCall,
    ToolContext,
    ToolMessage,
    Usage,
    UserMessage,
    advisor,
    tool,
)
from reactflow.testing import ScriptedChatModel, calls, says


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_a_tool_result_goes_back_to_the_model_before_the_answer():
    model = ScriptedChatModel(calls("add", a=2, b=3), says("five"))

    result = await SimpleReactAgent(model=model, tools=[add]).arun("What is 2 + 3?")

    assert (result.text, result.rounds) == ("five", 2)
    assert str(result) == "five"
    assert model.seen[1].messages[-1] == ToolMessage("5", call_id="call_add", name="add")
    model.assert_finished()


async def test_every_call_of_one_reply_gets_exactly_one_result_in_order():
    model = ScriptedChatModel(calls("add", a=1, b=1) + calls("nope") + calls("add", a=2, b=2), says("done"))

    await SimpleReactAgent(model=model, tools=[add]).arun("Q")

    results = model.seen[1].messages[-3:]
    assert [(each.call_id, each.is_error) for each in results] == [
        ("call_add", False),
        ("call_nope", True),
        ("call_add_2", False),
    ]


async def test_the_system_message_is_first_and_one_on_every_call():
    @advisor(order=Order.RETRIEVAL)
    async def facts(request, call_next):
        return await call_next(request.followed_by(SystemMessage("fact")))

    model = ScriptedChatModel(calls("add", a=1, b=1), says("2"))
    agent = SimpleReactAgent(model=model, tools=[add], advisors=[facts], react_prompt="R", system_prompt="S")

    await agent.arun("Q")

    for request in model.seen:
        systems = [message for message in request.messages if isinstance(message, SystemMessage)]
        assert systems == [SystemMessage("R\n\nS\n\nfact")]
        assert request.messages[0] is systems[0] or request.messages[0] == systems[0]


async def test_blank_prompts_make_no_system_message():
    model = ScriptedChatModel("ok")
    await SimpleReactAgent(model=model, react_prompt=None, system_prompt="  ").arun("Q")
    assert model.seen[0].messages == (UserMessage("Q"),)


async def test_at_the_round_limit_the_tools_are_taken_away_and_an_answer_is_asked_for():
    model = ScriptedChatModel(calls("add", a=1, b=1), calls("add", a=2, b=2), says("best I can"))
    agent = SimpleReactAgent(model=model, tools=[add], max_rounds=2)

    result = await agent.arun("Q")

    forced = model.seen[2]
    assert (result.text, result.stop_reason, result.rounds) == ("best I can", "max_rounds", 3)
    assert (forced.tools, forced.tool_choice) == ((), "none")
    assert forced.messages[-1].synthetic == "max_rounds"
    assert result.messages[-2].synthetic == "max_rounds"


async def test_a_model_that_calls_tools_for_ever_ends():
    model = ScriptedChatModel(*[calls("add", a=1, b=1)] * 3)

    with pytest.raises(ModelBehaviorError, match="twice gave neither text nor tool calls"):
        await SimpleReactAgent(model=model, tools=[add], max_rounds=1).arun("Q")

    model.assert_finished()


async def test_a_call_may_set_its_own_round_limit():
    model = ScriptedChatModel(calls("add", a=1, b=1), says("enough"))
    result = await SimpleReactAgent(model=model, tools=[add]).arun("Q", max_rounds=1)
    assert result.stop_reason == "max_rounds"


async def test_a_blank_reply_is_asked_for_once_more():
    model = ScriptedChatModel(says("  "), says("here"))
    result = await SimpleReactAgent(model=model).arun("Q")
    assert (result.text, result.rounds) == ("here", 2)


async def test_two_blank_replies_are_an_error():
    with pytest.raises(ModelBehaviorError, match="'scripted' twice gave neither"):
        await SimpleReactAgent(model=ScriptedChatModel(says(""), says("\n"))).arun("Q")


async def test_a_cut_reply_runs_no_tool():
    ran: list[int] = []

    def delete(number: int) -> str:
        """Delete."""
        ran.append(number)
        return "gone"

    cut = ChatResponse(AssistantMessage("", (ToolCall("1", "delete", '{"number": 1}'),)), finish_reason="length")
    model = ScriptedChatModel(cut, says("nothing deleted"))

    result = await SimpleReactAgent(model=model, tools=[delete]).arun("Q")

    assert (ran, result.text) == ([], "nothing deleted")
    assert model.seen[1].messages[-1].is_error


async def test_return_direct_gives_the_tools_result_as_the_answer():
    @tool(return_direct=True)
    def lookup(key: str) -> str:
        """Look up."""
        return f"value of {key}"

    model = ScriptedChatModel(calls("lookup", key="k"))
    result = await SimpleReactAgent(model=model, tools=[lookup]).arun("Q")

    assert (result.text, result.stop_reason, result.rounds) == ("value of k", "return_direct", 1)


async def test_feedback_does_not_reset_the_tool_limits():
    ran: list[int] = []

    @tool(max_calls=2)
    def count(number: int) -> int:
        """Count."""
        ran.append(number)
        return number

    model = ScriptedChatModel(calls("count", number=1), calls("count", number=2), "D1", calls("count", number=3), "D2")
    agent = ReflectionAgent(model=model, evaluator=lambda draft: draft.text == "D2", tools=[count])

    result = await agent.arun("Q")

    assert (ran, result.text) == ([1, 2], "D2")
    assert model.seen[4].messages[-1].is_error
    assert "2" in model.seen[4].messages[-1].text


async def test_a_side_effect_is_not_repeated_by_a_revision():
    sent: list[str] = []

    @tool(side_effect=True)
    def send(to: str) -> str:
        """Send."""
        sent.append(to)
        return f"sent {len(sent)}"

    model = ScriptedChatModel(calls("send", to="a") + calls("send", to="a"), "D1", calls("send", to="a"), "D2")
    agent = ReflectionAgent(model=model, evaluator=lambda draft: draft.text == "D2", tools=[send])

    await agent.arun("Q")

    assert sent == ["a", "a"]
    assert model.seen[3].messages[-1].text in ("sent 1", "sent 2")


async def test_the_context_reaches_tools_but_not_the_model():
    def whoami(ctx: ToolContext) -> str:
        """Who am I."""
        return f"{ctx['tenant']} in {ctx.conversation_id}"

    model = ScriptedChatModel(calls("whoami"), says("done"))
    agent = SimpleReactAgent(model=model, tools=[whoami])

    await agent.arun("Q", conversation_id="c1", context={"tenant": "acme"})

    assert model.seen[1].messages[-1].text == "acme in c1"
    assert "ctx" not in str(model.seen[0].tools[0].parameters)


async def test_what_one_round_adds_to_the_context_is_there_in_the_next_and_in_the_result():
    @advisor(order=5)
    async def counting(request, call_next):
        response = await call_next(request)
        return response.with_context(count=request.context.get("count", 0) + 1)

    model = ScriptedChatModel(calls("add", a=1, b=1), says("2"))
    result = await SimpleReactAgent(model=model, tools=[add], advisors=[counting]).arun("Q", context={"tenant": "t"})

    assert (result.context["count"], result.context["tenant"]) == (2, "t")
    with pytest.raises(TypeError, match="read-only"):
        result.context["count"] = 3


async def test_options_of_a_call_win_over_those_of_the_agent():
    model = ScriptedChatModel("ok")
    await SimpleReactAgent(model=model, options={"temperature": 1, "seed": 7}).arun("Q", options={"temperature": 0})
    assert model.seen[0].options == {"temperature": 0, "seed": 7}


class City(BaseModel):
    name: str
    people: int


async def test_output_type_gives_the_value():
    model = ScriptedChatModel('```json\n{"name": "Oslo", "people": 700000}\n```')
    result = await SimpleReactAgent(model=model, output_type=City).arun("Q")
    assert result.output == City(name="Oslo", people=700000)
    assert model.seen[0].response_schema == City.model_json_schema()


async def test_an_invalid_output_goes_back_to_the_model_once():
    model = ScriptedChatModel('{"name": "Oslo"}', '{"name": "Oslo", "people": 1}')

    result = await SimpleReactAgent(model=model, output_type=City).arun("Q")

    complaint = model.seen[1].messages[-1]
    assert result.output == City(name="Oslo", people=1)
    assert complaint.synthetic == "validation"
    assert "people" in complaint.text
    assert complaint in result.messages


async def test_a_second_invalid_output_is_an_error():
    model = ScriptedChatModel("no", "no")
    with pytest.raises(ModelBehaviorError, match="does not fit output_type"):
        await SimpleReactAgent(model=model, output_type=City).arun("Q")


async def test_output_type_may_be_a_json_schema():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    model = ScriptedChatModel('{"n": "x"}', '{"n": 3}')
    result = await SimpleReactAgent(model=model, output_type=schema).arun("Q")
    assert result.output == {"n": 3}


async def test_a_token_limit_without_an_answer_is_an_error_that_says_so():
    model = ScriptedChatModel(says("", usage=Usage(60, 50)) + calls("add", a=1, b=1))
    agent = SimpleReactAgent(model=model, tools=[add], budget=Budget(max_tokens=100))

    with pytest.raises(BudgetExceeded, match="110 of 100 tokens are used") as caught:
        await agent.arun("Q")

    assert (caught.value.reason, caught.value.partial) == (StopReason.TOKEN_BUDGET, None)


async def test_a_limit_on_calls_returns_the_draft_that_exists():
    model = ScriptedChatModel("D1")
    agent = ReflectionAgent(model=model, evaluator=lambda draft: False, budget=Budget(max_model_calls=1))

    result = await agent.arun("Q")

    assert (result.text, result.stop_reason, result.reviewed) == ("D1", "call_budget", True)


async def test_a_cost_limit_counts_money_by_the_given_prices():
    model = ScriptedChatModel(says("D1", usage=Usage(1_000_000, 0)), says("D2", usage=Usage(1_000_000, 0)))
    budget = Budget(max_cost_usd=1.5, prices={"scripted": Price(input=1.0, output=2.0)})
    agent = ReflectionAgent(model=model, evaluator=lambda draft: False, budget=budget, max_reflection_rounds=5)

    result = await agent.arun("Q")

    assert (result.text, result.stop_reason, result.cost_usd) == ("D2", "cost_budget", 2.0)


async def test_a_model_without_a_price_is_refused_under_a_cost_limit():
    budget = Budget(max_cost_usd=1, prices={"other": Price(input=1, output=1)})
    with pytest.raises(ConfigurationError, match="no price for model 'scripted'"):
        await SimpleReactAgent(model=ScriptedChatModel("x"), budget=budget).arun("Q")


async def test_a_call_that_reports_nothing_counts_by_an_estimate_and_is_flagged():
    model = ScriptedChatModel(says("x" * 400))
    agent = ReflectionAgent(
        model=model, evaluator=lambda draft: False, budget=Budget(max_tokens=100), react_prompt=None
    )

    result = await agent.arun("Q" * 40)

    assert (result.stop_reason, result.usage.unknown_calls) == ("token_budget", 1)
    assert "estimate" in result.warnings[0]


async def test_a_sub_agent_used_as_a_tool_counts_toward_the_same_budget():
    inner = SimpleReactAgent(model=ScriptedChatModel(says("inner", usage=Usage(50, 60))), name="inner")

    async def delegate(question: str) -> str:
        """Ask a specialist."""
        return (await inner.arun(question)).text

    outer_model = ScriptedChatModel(says("", usage=Usage(1, 1)) + calls("delegate", question="x"), says("never"))
    agent = SimpleReactAgent(model=outer_model, tools=[delegate], budget=Budget(max_tokens=100))

    with pytest.raises(BudgetExceeded, match="112 of 100"):
        await agent.arun("Q")


async def test_usage_of_a_sub_agent_is_counted_under_its_name():
    inner = SimpleReactAgent(model=ScriptedChatModel(says("inner", usage=Usage(5, 6))), name="inner")

    def delegate(question: str) -> str:
        """Ask a specialist, from plain code."""
        return inner.call(question)

    model = ScriptedChatModel(calls("delegate", question="x"), says("done", usage=Usage(1, 1)))
    result = await SimpleReactAgent(model=model, tools=[delegate]).arun("Q")

    assert result.usage_by_role["inner"] == Usage(5, 6)
    assert result.rounds == 2


async def test_a_sub_agent_hands_over_its_draft_before_the_outer_cut():
    async def hang(_):
        await asyncio.sleep(5)

    inner = ReflectionAgent(model=ScriptedChatModel("inner draft"), judge_model=ScriptedChatModel(hang), name="inner")

    async def delegate(question: str) -> str:
        """Ask a specialist."""
        return (await inner.arun(question)).text

    model = ScriptedChatModel(calls("delegate", question="x"))
    agent = SimpleReactAgent(model=model, tools=[delegate], budget=Budget(max_seconds=0.2))

    with pytest.raises(BudgetExceeded) as caught:
        await agent.arun("Q")

    assert caught.value.reason == "time_budget"


async def test_a_model_call_is_cut_at_the_deadline():
    async def hang(_):
        await asyncio.sleep(5)

    with pytest.raises(BudgetExceeded) as caught:
        await SimpleReactAgent(model=ScriptedChatModel(hang), budget=Budget(max_seconds=0.05)).arun("Q")
    assert caught.value.reason == "time_budget"


async def test_a_cancel_goes_through():
    started = asyncio.Event()

    async def hang(_):
        started.set()
        await asyncio.sleep(5)

    task = asyncio.create_task(SimpleReactAgent(model=ScriptedChatModel(hang)).arun("Q"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_exception_of_the_model_passes_through_unwrapped():
    error = ProviderError("down", status=503)
    with pytest.raises(ProviderError) as caught:
        await SimpleReactAgent(model=ScriptedChatModel(error)).arun("Q")
    assert caught.value is error


async def test_the_plain_doors_work_inside_a_running_loop():
    agent = SimpleReactAgent(model=ScriptedChatModel("one", "two"))
    assert agent.call("Q") == "one"
    assert agent.run("Q").text == "two"


def test_the_plain_doors_work_from_many_threads():
    model = ScriptedChatModel(*(lambda request: request.messages[-1].text for _ in range(40)))
    agent = SimpleReactAgent(model=model)
    answers: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda number=number: answers.update({number: agent.call(f"q{number}")}))
        for number in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"q{number}" for number in range(40)}


async def test_an_async_tool_may_call_a_plain_door_of_another_agent():
    innermost = SimpleReactAgent(model=ScriptedChatModel("deep"), name="innermost")

    def dig(question: str) -> str:
        """Dig."""
        return innermost.call(question)

    inner = SimpleReactAgent(model=ScriptedChatModel(calls("dig", question="y"), says("inner")), tools=[dig])

    async def delegate(question: str) -> str:
        """Ask."""
        return inner.call(question)

    agent = SimpleReactAgent(model=ScriptedChatModel(calls("delegate", question="x"), says("done")), tools=[delegate])
    assert await asyncio.to_thread(agent.call, "Q") == "done"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_rounds": 0}, "max_rounds=0: give a whole number from 1"),
        ({"max_rounds": True}, "max_rounds=True"),
        ({"advisors": [object()]}, "is no advisor"),
        ({"advisors": [SimpleReactAgent]}, "is no advisor; give an instance"),
        ({"name": " "}, "name=' '"),
        ({"budget": 5}, "budget=5: give Budget"),
        ({"on_revision_error": "x"}, "on_revision_error='x'"),
        ({"output_type": {"type": "nonsense"}}, "no valid JSON Schema"),
        ({"system_prompt": 3}, "A prompt must be a text or None, not 3"),
        ({"max_parallel_tools": 0}, "max_parallel"),
        ({"max_reflection_rounds": 1.5}, "max_reflection_rounds=1.5"),
        ({"tools": [3]}, "3"),
        ({"memory": 3}, "3"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_value_and_the_fix(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        SimpleReactAgent(model=ScriptedChatModel(), **settings)


@pytest.mark.parametrize("model", [None, "gpt-5", ScriptedChatModel])
def test_something_that_is_no_model_is_refused(model):
    with pytest.raises(ConfigurationError, match="is no ChatModel"):
        SimpleReactAgent(model=model)


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(DuplicateToolError, match="Two tools are called 'add'"):
        SimpleReactAgent(model=ScriptedChatModel(), tools=[add, add])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"conversation_id": "  "}, "conversation_id='  '"),
        ({"conversation_id": 5}, "conversation_id=5"),
        ({"context": 3}, "context=3: give a dict"),
        ({"options": "hot"}, "options='hot'"),
        ({"max_rounds": -1}, "max_rounds=-1"),
        ({"budget": 1}, "budget=1"),
    ],
)
async def test_a_wrong_setting_of_a_call_is_refused(settings, message):
    model = ScriptedChatModel()
    with pytest.raises(ConfigurationError, match=message):
        await SimpleReactAgent(model=model).arun("Q", **settings)
    assert model.seen == []


@pytest.mark.parametrize("question", ["", "  \n", None, 3])
async def test_a_question_that_is_none_is_refused(question):
    with pytest.raises(ConfigurationError, match="question"):
        await SimpleReactAgent(model=ScriptedChatModel()).arun(question)


async def test_an_unknown_setting_of_a_call_is_refused():
    expected = r"no setting 'conversationid' of a call: did you mean 'conversation_id'\? There is: budget, context, "
    with pytest.raises(TypeError, match=expected):
        await SimpleReactAgent(model=ScriptedChatModel()).arun("Q", conversationid="c")


@pytest.mark.parametrize(
    "limits",
    [
        {"max_tokens": 0},
        {"max_seconds": -1},
        {"max_seconds": float("nan")},
        {"max_model_calls": 1.5},
        {"max_tokens": True},
    ],
)
def test_a_budget_that_is_no_limit_is_refused(limits):
    with pytest.raises(ConfigurationError, match=f"Budget\\({next(iter(limits))}="):
        Budget(**limits)


def test_a_cost_limit_needs_prices():
    with pytest.raises(ConfigurationError, match="needs prices"):
        Budget(max_cost_usd=1)


def test_repr_and_explain_show_the_chain_with_the_loop_and_the_model():
    @advisor(order=Order.GUARD)
    async def outer(request, call_next):
        return await call_next(request)

    @advisor(order=5)
    async def inner(request, call_next):
        return await call_next(request)

    agent = SimpleReactAgent(model=ScriptedChatModel(), advisors=[inner, outer], tools=[add])

    assert repr(agent) == (
        "SimpleReactAgent('react-agent': outer(order=-400) > [ReAct loop] > inner(order=5) > model 'scripted')"
    )
    lines = agent.explain().splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "react-agent:",
        "outer(order=-400)",
        "ReAct loop",
        "inner(order=5)",
        "model scripted",
    ]


def test_builder_without_a_model_says_what_to_add():
    with pytest.raises(ConfigurationError, match="chat_model"):
        SimpleReactAgent.builder().name("x").build()
