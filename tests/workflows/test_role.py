"""Roles: agents, workflows, models, functions and evaluators, with their usage, errors and events."""

import asyncio
import json
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from reactflow.advisors.safe_guard import SafeGuardAdvisor
from reactflow.agent import SimpleReactAgent
from reactflow.budget import Budget
from reactflow.chain import advisor
from reactflow.errors import BudgetExceeded, ConfigurationError, ModelBehaviorError, ProviderError, WorkflowError
from reactflow.events import (
    DraftReady,
    ModelFinished,
    ModelStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    VerdictGiven,
    WarningRaised,
)
from reactflow.judge import Draft, LLMJudge
from reactflow.judging.schema import SchemaEvaluator
from reactflow.loopback import LoopbackServer, Reply, reply_text
from reactflow.memory import WindowChatMemory
from reactflow.messages import AssistantMessage, SystemMessage, ToolMessage, Usage, UserMessage
from reactflow.model import ChatRequest, ChatResponse, Run
from reactflow.openai_model import OpenAIChatModel
from reactflow.reflection import ReflectionAgent
from reactflow.result import AgentResult, Judgement, StopReason
from reactflow.testing import ScriptedChatModel, calls, says
from reactflow.toolbox import ToolContext, tool
from reactflow.workflows.attempt import Trail
from reactflow.workflows.best_of_n import BestOfN
from reactflow.workflows.drafter_critic import DrafterCritic
from reactflow.workflows.reflexion import Reflexion
from reactflow.workflows.reply import Reply as RoleReply
from reactflow.workflows.reply import as_text, read_reply
from reactflow.workflows.role import Role, as_critic, as_role

APPROVES = '{"verdict": "APPROVED", "confidence": 0.9, "issues": [], "suggestions": ""}'
REJECTS = '{"verdict": "REQUIRED_CHANGES", "confidence": 0.3, "issues": [], "suggestions": "Name the price."}'


def agent(*replies, **settings):
    return SimpleReactAgent(model=ScriptedChatModel(*replies), react_prompt=None, **settings)


@tool
def price(item: str) -> int:
    """Look up a price.

    Args:
        item: What is priced.
    """
    return 350


# ------------------------------------------------------------------------------------------------------ agents


async def test_agents_play_both_roles_and_their_usage_is_counted_under_the_roles_names():
    drafter = agent(says("one", usage=Usage(10, 1)), says("two two", usage=Usage(20, 2)), name="extractor")
    critic = agent(says(REJECTS, usage=Usage(30, 3)), says(APPROVES, usage=Usage(40, 4)), name="reviewer")

    result = await DrafterCritic(drafter, critic).arun("the claim")

    assert (result.text, result.stop_reason) == ("two two", StopReason.APPROVED)
    assert result.usage_by_role == {"drafter": Usage(30, 3, model_calls=2), "critic": Usage(70, 7, model_calls=2)}
    assert result.usage == Usage(100, 10, model_calls=4)
    assert result.rounds == 2


async def test_an_agents_system_prompt_is_the_critics_criteria():
    critic = agent(APPROVES, system_prompt="Check that the price is there.")

    await DrafterCritic(lambda prompt: "draft", critic).arun("the claim")

    system, asked = critic.model.seen[0].messages
    assert system == SystemMessage("Check that the price is there.")
    assert "Criteria: those of your own instructions." in asked.text


async def test_a_drafting_agent_may_call_its_tools_again_in_every_round():
    drafter = agent(calls("price", item="glass"), "no price", calls("price", item="glass"), "350", tools=[price])
    critic = ScriptedChatModel(REJECTS, APPROVES)

    result = await DrafterCritic(drafter, critic).arun("the claim")

    assert (result.text, result.rounds) == ("350", 4)


async def test_the_critic_sees_what_the_drafters_tools_found():
    drafter = agent(calls("price", item="glass"), "350", tools=[price])
    critic = ScriptedChatModel(APPROVES)

    await DrafterCritic(drafter, critic).arun("the claim")

    assert 'price({"item": "glass"})\n=> 350' in critic.seen[0].messages[-1].text


async def test_the_inner_limit_of_rounds_starts_again_for_every_draft():
    replies = [calls("price", item="a"), "forced one", calls("price", item="b"), "forced two 2"]
    drafter = agent(*replies, tools=[price], max_rounds=1)

    result = await DrafterCritic(drafter, ScriptedChatModel(REJECTS, APPROVES)).arun("the claim")

    assert (result.text, result.iterations) == ("forced two 2", 2)


async def test_a_limit_of_rounds_given_to_the_call_holds_for_the_roles():
    drafter = agent(calls("price", item="a"), "forced", tools=[price])

    result = await DrafterCritic(drafter, ScriptedChatModel(APPROVES)).arun("the claim", max_rounds=1)

    assert result.text == "forced"
    drafter.model.assert_finished()


async def test_a_role_has_no_memory_even_where_its_agent_has_one():
    drafter = agent("one", "two two", memory=WindowChatMemory())

    await DrafterCritic(drafter, ScriptedChatModel(REJECTS, APPROVES)).arun("the claim", conversation_id="c1")

    assert len(drafter.model.seen[1].messages) == 1


async def test_the_callers_context_reaches_the_tools_of_a_role():
    seen = []

    @tool
    def note(context: ToolContext) -> str:
        """Note the tenant."""
        seen.append(context["tenant"])
        return "noted"

    drafter = agent(calls("note"), "done", tools=[note])

    await DrafterCritic(drafter, ScriptedChatModel(APPROVES)).arun("task", context={"tenant": "acme"})

    assert seen == ["acme"]


async def test_a_draft_that_a_guard_blocked_does_not_count_as_one():
    drafter = agent("one", advisors=[SafeGuardAdvisor(["claim"])])

    result = await DrafterCritic(drafter, ScriptedChatModel(APPROVES)).arun("the claim")

    assert (result.stop_reason, result.approved) == (StopReason.BLOCKED, False)


async def test_a_role_that_runs_out_of_time_hands_over_the_draft_it_had(clock, unhurried):
    async def never(request):
        await asyncio.sleep(60)

    drafter = DrafterCritic(ScriptedChatModel(clock.late("inner draft")), ScriptedChatModel(never))

    async with asyncio.timeout(30):
        result = await BestOfN(drafter, lambda draft: True, 1, budget=Budget(max_seconds=60)).arun("task")

    assert result.text == "inner draft"


async def test_a_role_that_runs_out_of_time_hands_over_its_draft_in_a_stream_too(clock, unhurried):
    async def never(request):
        await asyncio.sleep(60)

    drafter = DrafterCritic(ScriptedChatModel(clock.late("inner draft")), ScriptedChatModel(never))

    workflow = BestOfN(drafter, lambda draft: True, 1, budget=Budget(max_seconds=60))
    events = [event async for event in workflow.astream("task")]

    assert events[-1].text == "inner draft"


async def test_a_server_error_is_retried_by_the_model_and_the_drafter_is_called_once():
    failed = Reply(body="busy", status=500, headers={"Retry-After": "0"})
    critique = reply_text(APPROVES)
    with LoopbackServer(failed, critique) as server:
        critic = OpenAIChatModel("any", base_url=server.base_url)
        drafter = ScriptedChatModel("draft")

        result = await DrafterCritic(drafter, critic).arun("task")

        server.assert_legal()
    assert (result.text, result.approved, len(server.requests)) == ("draft", True, 2)
    drafter.assert_finished()


async def test_the_budget_of_the_workflow_holds_inside_its_roles():
    drafter = agent(says("", usage=Usage(80, 20)) + calls("price", item="a"), "never", tools=[price])

    with pytest.raises(BudgetExceeded):
        await DrafterCritic(drafter, ScriptedChatModel(), budget=Budget(max_tokens=100)).arun("task")


async def test_what_a_role_warned_of_is_a_warning_of_the_workflow():
    def drafter(prompt):
        return AgentResult(text="draft", warnings=("It was late.",))

    result = await DrafterCritic(drafter, ScriptedChatModel(APPROVES)).arun("task")

    assert result.warnings == ("drafter: It was late.",)


async def test_an_object_with_arun_of_its_own_can_play_a_role():
    class Other:
        async def arun(self, prompt):
            return f"answer to {prompt}"

    assert (await BestOfN(Other(), lambda draft: True, 1).arun("task")).text == "answer to task"


# --------------------------------------------------------------------------------------------------- workflows


async def test_a_workflow_can_play_a_role_in_another():
    inner = DrafterCritic(
        ScriptedChatModel(says("a", usage=Usage(1, 1)), says("b b", usage=Usage(1, 1))),
        ScriptedChatModel(says(REJECTS, usage=Usage(1, 1)), says(APPROVES, usage=Usage(1, 1))),
    )

    result = await DrafterCritic(inner, ScriptedChatModel(says(APPROVES, usage=Usage(5, 5)))).arun("task")

    assert (result.text, result.iterations) == ("b b", 1)
    assert result.usage_by_role == {"drafter": Usage(4, 4, model_calls=4), "critic": Usage(5, 5)}


async def test_a_failing_role_of_an_inner_workflow_is_named_from_the_outside_in():
    def broken(prompt):
        raise ValueError("no network")

    inner = DrafterCritic(ScriptedChatModel("a"), broken)

    with pytest.raises(WorkflowError, match="drafter failed in iteration 1") as caught:
        await DrafterCritic(inner, ScriptedChatModel()).arun("task")

    assert (caught.value.__cause__.role, caught.value.__cause__.partial.text) == ("critic", "a")


async def test_a_workflow_can_be_a_tool_of_an_agent():
    inner = DrafterCritic(
        ScriptedChatModel(says("a letter", usage=Usage(2, 2))), ScriptedChatModel(says(APPROVES, usage=Usage(3, 3)))
    )
    write = inner.as_tool("write_letter", description="Writes a reviewed letter.")
    outer = agent(calls("write_letter", question="to Ana"), "Here: a letter", tools=[write])

    result = await outer.arun("Write to Ana.")

    assert ToolMessage("a letter", call_id="call_write_letter", name="write_letter") in result.messages
    assert result.usage_by_role["write_letter"] == Usage(5, 5, model_calls=2)
    assert outer.model.seen[0].tools[0].parameters["required"] == ["question"]


async def test_a_tool_says_so_where_its_answer_was_not_approved():
    inner = DrafterCritic(ScriptedChatModel("a letter"), ScriptedChatModel(REJECTS), max_iterations=1)
    outer = agent(calls("w", question="x"), "done", tools=[inner.as_tool("w", description="Writes.")])

    result = await outer.arun("Write.")

    assert result.messages[2].text == "a letter\n\n[A reviewer did not approve this answer: max_iterations.]"


async def test_an_agent_as_a_tool_gets_the_context_of_the_run_but_not_its_flags():
    seen = []

    @tool
    def note(context: ToolContext) -> str:
        """Note the context."""
        seen.append(dict(context))
        return "noted"

    inner = agent(calls("note"), "inner answer", tools=[note], name="helper")
    outer = agent(calls("helper", question="x"), "done", tools=[inner.as_tool(description="Helps.")])

    await outer.arun("task", context={"tenant": "acme", "reflection.skip": True})

    assert seen == [{"tenant": "acme"}]


def test_the_name_of_a_tool_must_be_one():
    with pytest.raises(ConfigurationError, match="cannot be the name of a tool"):
        agent(name="my agent").as_tool(description="Helps.")


async def test_a_cancel_reaches_the_role_that_is_at_work():
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(request):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    task = asyncio.create_task(DrafterCritic(agent(slow), ScriptedChatModel()).arun("task"))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


# ------------------------------------------------------------------------------------------------------ models


async def test_a_blank_reply_of_a_model_is_asked_for_once_more():
    model = ScriptedChatModel(" ", "draft")

    assert (await BestOfN(model, lambda draft: True, 1).arun("task")).text == "draft"


async def test_a_second_blank_reply_is_an_error_of_the_model():
    with pytest.raises(WorkflowError, match="twice gave no text") as caught:
        await BestOfN(ScriptedChatModel("", ""), lambda draft: True, 1).arun("task")

    assert isinstance(caught.value.__cause__, ModelBehaviorError)


# --------------------------------------------------------------------------------------------------- functions


async def test_a_plain_function_runs_beside_the_event_loop():
    threads = set()

    def drafter(prompt):
        threads.add(threading.get_ident())
        return "draft"

    await BestOfN(drafter, lambda draft: True, 1).arun("task")

    assert threads.isdisjoint({threading.get_ident()})


async def test_an_object_that_is_called_and_answers_later_can_play_a_role():
    class Later:
        async def __call__(self, prompt):
            return prompt.upper()

    assert (await BestOfN(Later(), lambda draft: True, 1).arun("task")).text == "TASK"


async def test_an_agent_called_inside_a_function_counts_under_the_functions_role():
    inner = agent(says("inner", usage=Usage(7, 7)))

    result = await BestOfN(lambda prompt: inner.call(prompt), lambda draft: True, 1).arun("task")

    assert result.usage_by_role == {"drafter": Usage(7, 7)}


@pytest.mark.parametrize("nothing", [None, "", "  \n"])
async def test_a_function_that_returns_nothing_is_an_error(nothing):
    with pytest.raises(WorkflowError, match="a role must answer"):
        await BestOfN(lambda prompt: nothing, lambda draft: True, 1).arun("task")


class Claim(BaseModel):
    cost: int


@dataclass
class Opaque:
    value: Any


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ({"cost": 350, "ort": "北京"}, '{"cost":350,"ort":"北京"}'),
        (Claim(cost=1), '{"cost":1}'),
        ([1, 2], "[1,2]"),
        (350, "350"),
        (True, "true"),
    ],
)
async def test_what_is_no_text_becomes_json_and_stays_as_the_output(returned, text):
    result = await BestOfN(lambda prompt: returned, lambda draft: True, 1).arun("task")

    assert (result.text, result.output) == (text, returned)


def test_what_cannot_be_json_is_shown_as_python_shows_it():
    value = Opaque(object())

    assert as_text(value) == str(value)


def test_replies_and_responses_are_read_as_what_they_are():
    reply = RoleReply("a", flaw=StopReason.TRUNCATED)
    response = ChatResponse(AssistantMessage("b"), finish_reason="length")

    assert read_reply(reply) is reply
    assert str(reply) == "a"
    assert (read_reply(response).text, read_reply(response).flaw) == ("b", StopReason.TRUNCATED)


async def test_an_agents_output_is_the_output_of_the_workflow():
    drafter = agent('{"cost": 350}', output_type=Claim)

    result = await BestOfN(drafter, lambda draft: True, 1).arun("task")

    assert result.output == Claim(cost=350)


# ----------------------------------------------------------------------------------------------- who can play


@pytest.mark.parametrize("nobody", [None, "text", 5, ScriptedChatModel, SimpleReactAgent])
def test_what_cannot_answer_is_refused_when_the_workflow_is_made(nobody):
    with pytest.raises(ConfigurationError, match="drafter="):
        DrafterCritic(nobody, ScriptedChatModel())


@pytest.mark.parametrize("actor", [agent(), print])
def test_a_system_prompt_is_for_models_only(actor):
    with pytest.raises(ConfigurationError, match="has its own instructions"):
        DrafterCritic(actor, ScriptedChatModel(), drafter_prompt="Be short.")


@pytest.mark.parametrize("blank", ["", " ", 5])
def test_a_system_prompt_is_not_blank(blank):
    with pytest.raises(ConfigurationError, match="drafter's prompt"):
        DrafterCritic(ScriptedChatModel(), ScriptedChatModel(), drafter_prompt=blank)


def test_a_role_can_be_given_again_under_another_name():
    role = as_role(ScriptedChatModel(), "writer", "Be short.")

    again = as_role(role, "refiner")

    assert (again.name, again.actor, again.system_prompt) == ("refiner", role.actor, "Be short.")


async def test_a_list_a_schema_or_a_function_of_the_draft_can_be_the_critic():
    def has_cost(draft: Draft) -> bool:
        return "cost" in draft.text

    schema = {"type": "object", "required": ["cost"]}
    for critic in (has_cost, schema, [schema, has_cost], Claim):
        drafts = ["{}", '{"cost": 1}']
        result = await DrafterCritic(lambda prompt, drafts=drafts: drafts.pop(0), critic).arun("task")
        assert (result.text, result.iterations) == ('{"cost": 1}', 2)


def test_a_function_that_only_returns_a_draft_takes_a_prompt():
    def odd(prompt) -> Draft:
        raise NotImplementedError

    assert as_critic(odd, "critic").actor is odd


async def test_an_evaluator_that_breaks_its_contract_is_a_configuration_error():
    class Odd:
        async def evaluate(self, draft):
            return "fine"

    with pytest.raises(ConfigurationError, match="return a Judgement or a bool"):
        await DrafterCritic(lambda prompt: "draft", Odd()).arun("task")


# ------------------------------------------------------------------------------------------------------ events


async def test_a_stream_shows_what_an_agent_in_a_role_is_doing():
    drafter = agent(calls("price", item="glass"), "the price is 350", tools=[price])
    critic = agent(APPROVES)

    events = [event async for event in DrafterCritic(drafter, critic).astream("task")]

    asked = [(event.role, event.round) for event in events if isinstance(event, ModelStarted)]
    assert asked == [("drafter", 1), ("drafter", 2), ("critic", 1)]
    assert [event.name for event in events if isinstance(event, ToolFinished)] == ["price"]
    assert [type(event) for event in events].count(RunStarted) == 1
    assert [type(event) for event in events].count(RunFinished) == 1
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "the price is 350"


async def test_the_drafts_of_an_agent_in_a_role_can_be_shown_under_their_number():
    drafter = agent(calls("price", item="glass"), "no price", "350 dollars", tools=[price])

    workflow = DrafterCritic(drafter, agent(REJECTS, APPROVES))
    events = [event async for event in workflow.astream("task", drafts="tag")]

    shown = [(event.round, event.text) for event in events if isinstance(event, TextDelta)]
    assert shown == [(1, "no "), (1, "price"), (2, "350 "), (2, "dollars")]


async def test_an_inner_workflow_does_not_tell_of_its_own_drafts():
    inner = DrafterCritic(ScriptedChatModel("a", "b b"), ScriptedChatModel(REJECTS, APPROVES))

    events = [event async for event in DrafterCritic(inner, ScriptedChatModel(APPROVES)).astream("task")]

    assert [event.text for event in events if isinstance(event, DraftReady)] == ["b b"]
    assert len([event for event in events if isinstance(event, VerdictGiven)]) == 1


async def test_the_calls_of_a_role_inside_a_role_are_counted_on_in_the_run():
    rejects, passes = '{"passed": false, "feedback": "Name the price."}', '{"passed": true}'
    judge = ScriptedChatModel(rejects, passes, rejects, passes)
    drafter = ReflectionAgent(model=ScriptedChatModel("a", "b", "c", "d"), judge_model=judge)

    workflow = DrafterCritic(drafter, ScriptedChatModel(REJECTS, APPROVES))
    events = [event async for event in workflow.astream("task")]

    for kind in (ModelStarted, ModelFinished):
        asked = [(event.role, event.round) for event in events if isinstance(event, kind)]
        assert [each for each in asked if each[0] == "judge"] == [
            ("judge", 1),
            ("judge", 2),
            ("judge", 3),
            ("judge", 4),
        ]
        assert [each for each in asked if each[0] == "drafter"] == [("drafter", number) for number in range(1, 5)]


async def test_a_role_of_an_inner_workflow_is_not_taken_for_the_outer_one_of_the_same_name():
    def inner():
        return DrafterCritic(ScriptedChatModel("a", "b b"), ScriptedChatModel(REJECTS, APPROVES))

    events = [event async for event in DrafterCritic(inner(), ScriptedChatModel(APPROVES)).astream("task")]

    asked = [(event.role, event.round) for event in events if isinstance(event, ModelStarted)]
    assert asked == [("drafter", 1), ("critic", 1), ("drafter", 2), ("critic", 2), ("critic", 3)]


async def test_what_a_role_warned_of_is_heard_once():
    @advisor(order=0)
    async def late(request, call_next):
        request.run.warn("It was late.")
        return await call_next(request)

    workflow = DrafterCritic(agent("draft", advisors=[late]), ScriptedChatModel(APPROVES))
    events = [event async for event in workflow.astream("task")]

    assert [event.text for event in events if isinstance(event, WarningRaised)] == ["drafter: It was late."]


async def test_ending_a_stream_early_ends_the_role_that_is_at_work():
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(request):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    events = DrafterCritic(agent(slow), ScriptedChatModel()).astream("task")
    async for event in events:
        if isinstance(event, ModelStarted):
            await begun.wait()
            break
    await events.aclose()

    assert cancelled.is_set()


# ---------------------------------------------------------------------------------------------------- best of n


async def test_the_best_of_n_drafts_is_returned():
    model = ScriptedChatModel("fair", "best", "worst")
    scores = {"fair": 0.5, "best": 0.9, "worst": 0.1}

    result = await BestOfN(model, lambda draft: Judgement(True, score=scores[draft.text]), 3).arun("task")

    assert (result.text, result.stop_reason, result.iterations) == ("best", StopReason.APPROVED, 3)
    assert [request.messages for request in model.seen] == [(UserMessage("task"),)] * 3


async def test_the_best_of_n_bad_drafts_is_not_called_approved():
    result = await BestOfN(ScriptedChatModel("a", "b"), lambda draft: False, 2).arun("task")

    assert (result.text, result.stop_reason, result.approved) == ("b", StopReason.MAX_ITERATIONS, False)


async def test_a_model_can_be_the_judge_of_n_drafts():
    judge = ScriptedChatModel('{"passed": false, "score": 0.8, "feedback": "so"}', '{"passed": true, "score": 0.2}')

    result = await BestOfN(ScriptedChatModel("a", "b"), judge, 2).arun("task")

    assert (result.text, sorted(result.usage_by_role)) == ("b", ["drafter", "judge"])


async def test_a_drafter_that_fails_later_on_does_not_lose_an_approved_draft():
    drafter = ScriptedChatModel("a", ProviderError("HTTP 500", status=500))

    result = await BestOfN(drafter, lambda draft: True, 3).arun("task")

    assert (result.text, result.approved, result.stop_reason) == ("a", True, StopReason.REVISION_ERROR)
    assert "HTTP 500" in result.warnings[0]


async def test_a_judge_that_fails_later_on_leaves_that_draft_unjudged_and_the_others_in_the_race():
    passes = '{"passed": true, "score": 0.5}'
    judge = ScriptedChatModel(passes, ProviderError("HTTP 500", status=500), passes.replace("0.5", "0.7"))

    result = await BestOfN(ScriptedChatModel("a", "b", "c"), judge, 3).arun("task")

    assert (result.text, result.stop_reason) == ("c", StopReason.APPROVED)
    assert [attempt.reviewed for attempt in result.attempts] == [True, False, True]
    assert result.warnings[0].startswith("Draft 2 could not be judged: The judge failed in iteration 2")


async def test_a_judge_that_fails_on_the_first_of_n_drafts_can_still_judge_the_others():
    judge = ScriptedChatModel(ProviderError("HTTP 500", status=500), '{"passed": true, "score": 0.1}')

    result = await BestOfN(ScriptedChatModel("a", "b"), judge, 2).arun("task")

    assert (result.text, result.approved, result.stop_reason) == ("b", True, StopReason.APPROVED)
    assert [attempt.reviewed for attempt in result.attempts] == [False, True]


async def test_a_rejected_draft_comes_before_those_that_the_judge_failed_on():
    judge = ScriptedChatModel('{"passed": false, "score": 0.1, "feedback": "No."}', ProviderError("down"))

    result = await BestOfN(ScriptedChatModel("a", "b"), judge, 2).arun("task")

    assert (result.text, result.approved, result.reviewed) == ("a", False, True)
    assert result.stop_reason is StopReason.MAX_ITERATIONS


@pytest.mark.parametrize("failure", [ProviderError("down"), "prose"])
async def test_where_the_judge_fails_on_all_of_n_drafts_the_latest_is_returned_unjudged(failure):
    judge = ScriptedChatModel(*[failure] * 4)

    result = await BestOfN(ScriptedChatModel("a", "b"), judge, 2).arun("task")

    assert (result.text, result.approved, result.reviewed) == ("b", False, False)
    assert (result.stop_reason, len(result.warnings)) == (StopReason.JUDGE_ERROR, 2)


async def test_a_judge_that_fails_on_the_first_of_n_drafts_can_be_an_error_with_the_draft_in_it():
    judge = ScriptedChatModel(ProviderError("down"))

    with pytest.raises(WorkflowError, match="judge failed in iteration 1: ProviderError: down") as caught:
        await BestOfN(ScriptedChatModel("a"), judge, 2, on_judge_error="raise").arun("task")

    assert caught.value.partial.text == "a"


async def test_what_is_odd_about_a_verdict_on_one_of_n_drafts_is_a_warning():
    judge = ScriptedChatModel('{"passed": false}')

    result = await BestOfN(ScriptedChatModel("a"), judge, 1).arun("task")

    assert result.warnings == ("Draft 1: The judge rejected the draft without saying why.",)


async def test_a_judge_of_n_drafts_that_fails_is_named():
    def broken(draft):
        raise OSError("no disk")

    with pytest.raises(WorkflowError, match="judge failed in iteration 1: OSError: no disk"):
        await BestOfN(ScriptedChatModel("a"), broken, 1).arun("task")


def test_a_workflow_is_asked_with_a_user_message():
    request = ChatRequest(messages=(AssistantMessage("hello"),), run=Run(question=UserMessage("hello")))

    with pytest.raises(ConfigurationError, match="one user message"):
        Trail(request)


@pytest.mark.parametrize("judge", [SchemaEvaluator({"type": "object"}), Role("judge", LLMJudge(ScriptedChatModel()))])
def test_an_evaluator_cannot_draft(judge):
    with pytest.raises(ConfigurationError, match=r"drafter=.*judges drafts and writes none"):
        DrafterCritic(judge, ScriptedChatModel())


@pytest.mark.parametrize("n", [0, True, "3"])
def test_the_number_of_drafts_is_called_by_its_name(n):
    with pytest.raises(ConfigurationError, match=f"^n={n!r}: give a whole number from 1"):
        BestOfN(ScriptedChatModel(), lambda draft: True, n=n)


async def test_a_judge_of_n_drafts_with_a_limit_of_its_own_is_named():
    async def judge(draft: Draft) -> bool:
        inner = agent(calls("price", item="x"), tools=[price], budget=Budget(max_model_calls=1))
        return bool(await inner.arun("?"))

    with pytest.raises(WorkflowError, match="The judge failed in iteration 1: BudgetExceeded") as caught:
        await BestOfN(ScriptedChatModel("a"), judge, 1, on_judge_error="raise").arun("task")

    assert caught.value.partial.text == "a"


@pytest.mark.parametrize("make", [DrafterCritic, Reflexion, BestOfN])
async def test_a_side_effect_of_one_draft_is_not_repeated_by_the_next(make):
    sent = []

    @tool(side_effect=True)
    def send_mail(to: str) -> str:
        """Send an e-mail."""
        sent.append(to)
        return "sent"

    def names_ana(draft: Draft) -> bool:
        return "Ana" in draft.text

    mail, other = calls("send_mail", to="ana"), calls("send_mail", to="bo")
    model = ScriptedChatModel(mail, mail, says("Done."), mail, other, says("Done: Ana has it."))
    agent = SimpleReactAgent(model=model, tools=[send_mail])
    rest = {Reflexion: (lambda prompt: "Name her.", 2), BestOfN: (2,)}.get(make, ())
    result = await make(agent, names_ana, *rest).arun("Tell Ana.")

    assert (result.text, sent) == ("Done: Ana has it.", ["ana", "ana", "bo"])


async def test_a_critic_has_its_own_effects_and_each_review_has_them_anew():
    notes, checks = [], iter(["broken", "fine"])

    @tool(side_effect=True)
    def note(text: str) -> str:
        """Note something."""
        notes.append(text)
        return "noted"

    @tool(side_effect=True)
    def check_page() -> str:
        """Look whether the page is there."""
        return next(checks)

    def verdict(passed):
        return says(
            json.dumps({"verdict": "APPROVED" if passed else "REQUIRED_CHANGES", "confidence": 1, "issues": []})
        )

    done = calls("note", text="done")
    drafter = SimpleReactAgent(model=ScriptedChatModel(done, says("one"), done, says("two")), tools=[note])
    check = calls("check_page")
    judging = ScriptedChatModel(done, check, verdict(False), check, verdict(True))
    critic = SimpleReactAgent(model=judging, tools=[note, check_page])
    result = await DrafterCritic(drafter, critic).arun("Make a page.")

    assert (result.text, result.approved, notes) == ("two", True, ["done", "done"])
