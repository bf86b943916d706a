"""One row, one agent, one outcome: the loop, its limits, and what becomes of what goes wrong."""

import asyncio
import json
import sys

import pytest

from reactflow.agent import SimpleReactAgent
from reactflow.budget import Budget, Price
from reactflow.errors import ConfigurationError, ModelBehaviorError, ProviderError
from reactflow.frozen import FrozenDict
from reactflow.messages import ToolMessage, Usage
from reactflow.reflection import ReflectionAgent
from reactflow.result import AgentResult, StopReason
from reactflow.specs.building import Workshop
from reactflow.specs.making import Definition
from reactflow.specs.outcome import Outcome, Status, exhausted, outcome_of
from reactflow.specs.running import AgentRunner, run_agent
from reactflow.testing import ScriptedChatModel, calls, says
from reactflow.toolbox import Tool, ToolContext, tool


def verdict(word="APPROVED", confidence=0.9, *issues, suggestions=""):
    listed = [{"field": "f", "severity": "high", "description": issue} for issue in issues]
    return says(json.dumps({"verdict": word, "confidence": confidence, "issues": listed, "suggestions": suggestions}))


NO = verdict("REQUIRED_CHANGES", 0.3, "No cost.", suggestions="Add it.")


def runner_of(spec, *replies, **workshop):
    """A runner whose models, whatever their name, answer in the order of *replies*; and the model."""
    model = ScriptedChatModel(*replies)
    environment = {"KEY": "k-123456"}
    return AgentRunner(spec, workshop=Workshop(make_model=lambda *_: model, environment=environment, **workshop)), model


def reflection(catalog, **options):
    given = {"type": "reflection"} | options
    catalog.create(Definition(kind="agent", name="r", clauses={"agents": ("a", "b")}, options=given))
    return catalog.agent("r")


def prompt_of(request):
    return request.messages[-1].text


# ------------------------------------------------------------------------------------------------ the loop


async def test_the_draft_of_the_round_that_was_approved_is_the_answer(catalog):
    runner, model = runner_of(reflection(catalog), says("one"), NO, says("two"), verdict("approved"))

    outcome = await runner.run("Write.", "7")

    assert (outcome.status, outcome.response) == (Status.SUCCESS, "two")
    assert outcome.metadata["stop_reason"] == "approved"
    assert (outcome.metadata["iterations"], outcome.metadata["model_calls"]) == (2, 4)
    assert outcome.approved
    model.assert_finished()


async def test_the_first_draft_is_made_from_the_task_alone_and_the_next_from_draft_and_review(catalog):
    runner, model = runner_of(reflection(catalog), says("draft one"), NO, says("two"), verdict())

    await runner.run("Write of claim 7.")

    assert [message.text for message in model.seen[0].messages] == ["You are a.", "Write of claim 7."]
    refinement = prompt_of(model.seen[2])
    assert all(part in refinement for part in ("Write of claim 7.", "draft one", "No cost.", "Add it."))


async def test_the_critic_gets_task_draft_its_own_criteria_the_form_and_the_rules(catalog):
    runner, model = runner_of(reflection(catalog), says("draft one"), verdict())

    await runner.run("Write of claim 7.")

    system, prompt = (message.text for message in model.seen[1].messages)
    assert system == "You are b."
    for part in (
        "Write of claim 7.",
        "draft one",
        '"verdict"',
        '"confidence"',
        '"issues"',
        '"suggestions"',
        "APPROVED",
    ):
        assert part in prompt


async def test_n_iterations_are_n_drafts_and_n_critiques_and_the_last_draft_is_returned(catalog):
    spec = reflection(catalog, max_iterations="3")
    runner, _ = runner_of(spec, says("1"), NO, says("2 is another"), NO, says("and a third"), NO)

    outcome = await runner.run("Write.")

    assert (outcome.status, outcome.response) == (Status.MAX_ITERATIONS, "and a third")
    assert (outcome.metadata["stop_reason"], outcome.metadata["approved"]) == ("max_iterations", False)
    assert outcome.metadata["model_calls"] == 6
    assert not outcome.approved


async def test_one_iteration_is_one_draft_and_one_critique(catalog):
    runner, model = runner_of(reflection(catalog, max_iterations="1"), says("1"), NO)

    assert (await runner.run("Write.")).status is Status.MAX_ITERATIONS
    model.assert_finished()


@pytest.mark.parametrize(
    ("word", "confidence", "status"),
    [
        ("REQUIRED_CHANGES", 0.96, Status.SUCCESS),
        ("REQUIRED_CHANGES", 0.95, Status.SUCCESS),
        ("APPROVED", 0.5, Status.MAX_ITERATIONS),
    ],
)
async def test_under_confidence_only_the_confidence_counts(catalog, word, confidence, status):
    spec = reflection(catalog, pass_condition="confidence", confidence_value="0.95", max_iterations="1")
    runner, _ = runner_of(spec, says("draft"), verdict(word, confidence, "x"))

    assert (await runner.run("Write.")).status is status


@pytest.mark.parametrize(
    ("word", "status"), [("Approved", Status.SUCCESS), ("REQUIRED_CHANGES", Status.MAX_ITERATIONS)]
)
async def test_under_approval_only_the_verdict_counts(catalog, word, status):
    runner, _ = runner_of(reflection(catalog, max_iterations="1"), says("draft"), verdict(word, 0.99, "x"))

    assert (await runner.run("Write.")).status is status


async def test_a_critique_that_cannot_be_read_twice_is_no_approval_and_the_loop_goes_on(catalog):
    spec = reflection(catalog, max_iterations="2")
    runner, model = runner_of(spec, says("1"), says("fine!"), says("looks good"), says("another"), verdict())

    outcome = await runner.run("Write.")

    assert (outcome.status, outcome.response) == (Status.SUCCESS, "another")
    assert "fine!" not in prompt_of(model.seen[3])


async def test_a_failing_sub_agent_fails_the_row_at_once(catalog):
    runner, model = runner_of(reflection(catalog), says("1"), ProviderError("no", status=401))

    outcome = await runner.run("Secret prompt.")

    assert (outcome.status, outcome.response) == (Status.FAILED, None)
    assert outcome.text == "The critic failed in iteration 1: ProviderError (HTTP 401)"
    assert outcome.metadata["draft"] == "1"
    model.assert_finished()


# ------------------------------------------------------------------------------------------------ tools and limits


def add_tool(catalog, agent="a", **options):
    clauses = {"function": "lookup"}
    given = {"type": "function"} | options
    catalog.create(Definition(kind="function", name="lookup", clauses={"reference": "nowhere:lookup"}))
    catalog.create(Definition(kind="tool", name="look", clauses=clauses, options=given))
    catalog.alter("agent", agent, {"add_tool": "look"})
    return catalog.agent(agent)


def hail(claim: str) -> str:
    return "hail " * 100


def functions_of(function):
    return {"functions": {"nowhere:lookup": function}}


async def test_a_function_tool_runs_with_the_description_and_the_time_limit_of_its_statement(catalog):
    spec = add_tool(catalog, description="Looks up claims.", request_timeout="0.05")

    async def lookup(claim: str) -> str:
        await asyncio.sleep(5)
        return claim

    runner, model = runner_of(spec, calls("look", claim="7"), says("It is slow."), **functions_of(lookup))

    outcome = await runner.run("What of claim 7?")

    assert outcome.response == "It is slow."
    assert model.seen[0].tools[0].description == "Looks up claims."
    assert "did not finish within 0.05 s" in prompt_of(model.seen[1])


async def test_a_tool_learns_the_request_id_for_its_idempotency_key(catalog):
    seen = []

    def lookup(claim: str, context: ToolContext) -> str:
        seen.append(context.context["request_id"])
        return claim

    spec = add_tool(catalog)
    runner, _ = runner_of(spec, calls("look", claim="7"), says("done"), **functions_of(lookup))

    await runner.run("What of claim 7?", "row-7")

    assert seen == ["row-7"]


@pytest.mark.parametrize(("side_effect", "times"), [("true", 2), ("false", 3)])
async def test_an_effect_happens_once_for_a_row_though_every_draft_asks_for_it(catalog, side_effect, times):
    mailed = []

    def mail(claim: str) -> str:
        mailed.append(claim)
        return f"mailed {claim}"

    add_tool(catalog, side_effect=side_effect)
    script = [calls("look", claim="7"), says("one"), NO, calls("look", claim="7") + calls("look", claim="8")]
    runner, model = runner_of(reflection(catalog), *script, says("two"), verdict(), **functions_of(mail))

    outcome = await runner.run("Write.")

    assert (outcome.response, len(mailed)) == ("two", times)
    results = [message.text for message in model.seen[4].messages if isinstance(message, ToolMessage)]
    assert results == ["mailed 7", "mailed 8"]


@pytest.mark.parametrize(("failures", "status"), [("ffoffo", Status.SUCCESS), ("fff", Status.FAILED)])
async def test_failing_steps_in_a_row_end_a_run_and_one_that_works_sets_the_count_back(catalog, failures, status):
    outcomes = iter(failures)

    def lookup(claim: str) -> str:
        if next(outcomes) == "f":
            raise OSError("no line")
        return "found"

    script = [calls("look", claim=str(number)) for number in range(len(failures))]
    spec = add_tool(catalog)
    runner, model = runner_of(spec, *script, *([says("done")] if status == "SUCCESS" else []), **functions_of(lookup))

    outcome = await runner.run("What of claim 7?")

    assert outcome.status is status
    model.assert_finished()
    if status is Status.FAILED:
        assert outcome.metadata["error_type"] == "ToolError"


async def test_a_tool_that_does_not_exist_is_answered_and_counts_as_a_failing_step(catalog):
    catalog.alter("agent", "a", {"options": {"max_consecutive_failures": "1"}})
    runner, model = runner_of(add_tool(catalog), calls("invented"), says("never said"), **functions_of(hail))

    outcome = await runner.run("What of claim 7?")

    assert outcome.status is Status.FAILED
    assert len(model.seen) == 1


async def test_a_failing_model_call_is_tried_again_up_to_the_limit(catalog):
    trouble = ProviderError("busy", status=503, retryable=True)
    runner, _ = runner_of(catalog.agent("a"), trouble, ModelBehaviorError("odd"), says("at last"))
    assert (await runner.run("Hello")).response == "at last"

    runner, model = runner_of(catalog.agent("a"), trouble, trouble, trouble, says("too late"))
    assert (await runner.run("Hello")).text == "ProviderError (HTTP 503)"
    assert len(model.seen) == 3


async def test_the_limit_of_tool_rounds_ends_with_a_status_and_the_last_calls_do_not_run(catalog):
    ran = []

    def lookup(claim: str) -> str:
        ran.append(claim)
        return "more"

    catalog.alter("agent", "a", {"options": {"max_iterations": "2"}})
    spec = add_tool(catalog)
    script = [calls("look", claim="1"), calls("look", claim="2"), calls("look", claim="3") + says("so far")]
    runner, _ = runner_of(spec, *script, **functions_of(lookup))

    outcome = await runner.run("What of claim 7?")

    assert (outcome.status, outcome.response) == (Status.MAX_ITERATIONS, "so far")
    assert outcome.metadata["stop_reason"] == "max_rounds"
    assert ran == ["1", "2"]


async def hang(_):
    await asyncio.sleep(60)


async def test_a_judge_that_never_answers_is_cut_and_the_row_has_a_status(catalog, clock):
    spec = reflection(catalog, request_timeout="60")
    runner, _ = runner_of(spec, clock.late(says("draft")), hang)

    outcome = await runner.run("Write.")

    assert (outcome.status, outcome.response) == (Status.MAX_ITERATIONS, "draft")
    assert outcome.metadata["stop_reason"] == "time_budget"


async def test_a_model_that_never_answers_is_a_failed_row(catalog):
    catalog.alter("agent", "a", {"options": {"request_timeout": "0.05"}})
    runner, _ = runner_of(catalog.agent("a"), hang)

    outcome = await runner.run("Write.")

    assert (outcome.status, outcome.text) == (Status.FAILED, "BudgetExceeded (time_budget)")
    assert outcome.metadata["transient"] is True


async def test_history_over_the_threshold_is_summarised_and_prompt_task_and_open_calls_survive(catalog):
    options = {"tokens_management_strategy": "summarize", "max_tokens_threshold": "200"}
    catalog.alter("agent", "a", {"options": options})
    spec = add_tool(catalog)
    script = [
        calls("look", claim="1"),
        calls("look", claim="2"),
        says("Claim 1 is about hail."),
        calls("look", claim="3"),
        says("Claims 1 and 2 are about hail."),
        says("done"),
    ]
    runner, model = runner_of(spec, *script, **functions_of(hail))

    outcome = await runner.run("Compare the claims.")

    assert outcome.response == "done"
    last = model.seen[-1].messages
    assert last[0].text == "You are a."
    assert last[1].text == "Compare the claims.\n\n[Steps so far, as data]\nClaims 1 and 2 are about hail."
    assert [type(message).__name__ for message in last[2:]] == ["AssistantMessage", "ToolMessage"]
    assert last[2].tool_calls[0].id == last[3].call_id
    model.assert_finished()


async def test_history_over_the_threshold_can_just_be_trimmed(catalog):
    options = {"tokens_management_strategy": "trim", "max_tokens_threshold": "200"}
    catalog.alter("agent", "a", {"options": options})
    spec = add_tool(catalog)
    script = [calls("look", claim="1"), calls("look", claim="2"), says("done")]
    runner, model = runner_of(spec, *script, **functions_of(hail))

    await runner.run("Compare the claims.")

    assert len(model.seen) == 3
    assert "Earlier steps were left out" in model.seen[-1].messages[1].text


async def test_a_summary_that_is_cut_fails_the_row(catalog):
    options = {
        "tokens_management_strategy": "summarize",
        "max_tokens_threshold": "10",
        "summarization_prompt": "Short.",
    }
    catalog.alter("agent", "a", {"options": options})
    spec = add_tool(catalog)
    script = [calls("look", claim="1"), calls("look", claim="2"), says("cut", finish_reason="length")]
    runner, model = runner_of(spec, *script, **functions_of(hail))

    outcome = await runner.run("Compare.")

    assert outcome.text == "ModelBehaviorError"
    assert model.seen[2].messages[0].text.startswith("Short.\n\n")


# ------------------------------------------------------------------------------------------------ statuses


@pytest.mark.parametrize("prompt", [None, "", " \n"])
async def test_a_row_without_a_prompt_fails_without_a_call(catalog, prompt):
    runner, model = runner_of(catalog.agent("a"))

    outcome = await runner.run(prompt)

    assert outcome.status is Status.FAILED
    assert outcome.text.startswith("The prompt is ")
    assert model.seen == []


async def test_without_debug_an_error_is_told_without_a_word_of_the_row_or_of_a_secret(catalog):
    def fails(request):
        raise RuntimeError("no k-123456 for Secret prompt.")

    runner, _ = runner_of(catalog.agent("a"), fails)
    assert (await runner.run("Secret prompt.")).text == "RuntimeError"

    runner, _ = runner_of(catalog.agent("a"), fails)
    told = (await runner.run("Secret prompt.", debug=True)).text
    assert "RuntimeError: no ****** for Secret prompt." in told
    assert "Traceback" in told


@pytest.mark.parametrize(
    ("reason", "status"),
    [(reason, Status.SUCCESS) for reason in ("answered", "approved", "confidence_met", "no_issues", "below_threshold")]
    + [("return_direct", Status.SUCCESS)]
    + [
        (reason, Status.MAX_ITERATIONS)
        for reason in (
            "max_reflection_rounds",
            "max_iterations",
            "max_rounds",
            "token_budget",
            "time_budget",
            "cost_budget",
            "call_budget",
            "no_progress",
            "oscillation",
        )
    ]
    + [
        (reason, Status.FAILED)
        for reason in ("judge_error", "revision_error", "blocked", "truncated", "refused", "filtered", "paused")
    ],
)
def test_each_stop_reason_has_one_status(reason, status):
    outcome = outcome_of(AgentResult(text="text", stop_reason=StopReason(reason)))

    assert outcome.status is status
    assert outcome.metadata["stop_reason"] == reason
    assert outcome.response == (None if status is Status.FAILED else "text")


def test_there_is_a_status_for_every_stop_reason_there_is():
    assert {outcome_of(AgentResult(text="t", stop_reason=reason)).status for reason in StopReason} == set(Status)


def test_what_was_approved_is_a_success_whatever_ended_the_run():
    result = AgentResult(text="text", stop_reason=StopReason.MAX_ROUNDS, approved=True, reviewed=True)

    assert outcome_of(result).status is Status.SUCCESS


def test_what_was_reviewed_and_not_approved_is_no_success():
    result = AgentResult(text="text", stop_reason=StopReason.ANSWERED, reviewed=True)

    assert outcome_of(result).status is Status.FAILED


def test_a_row_at_its_limit_is_returned_dropped_or_failed():
    outcome = Outcome(Status.MAX_ITERATIONS, "draft", FrozenDict(stop_reason="max_iterations"))
    success = Outcome(Status.SUCCESS, "answer")

    assert exhausted(outcome, "return") is outcome
    assert exhausted(outcome, "drop") is None
    failed = exhausted(outcome, "fail")
    assert (failed.status, failed.response, failed.metadata["draft"]) == (Status.FAILED, None, "draft")
    assert failed.text == "It was not approved when it reached a limit (max_iterations)."
    assert exhausted(success, "drop") is success


# ------------------------------------------------------------------------------------------------ other agents


async def test_a_function_is_an_agent_plain_or_async():
    async def shout(prompt):
        return prompt.upper()

    assert (await run_agent(shout, "hello")).response == "HELLO"
    assert (await run_agent(lambda prompt: {"said": prompt}, "你好")).response == '{"said":"你好"}'
    assert (await run_agent(lambda prompt: None, "hello")).text == "It returned nothing; an agent must return a text."


async def test_a_function_may_say_itself_what_became_of_the_row():
    outcome = Outcome(Status.MAX_ITERATIONS, "draft")

    assert await run_agent(lambda prompt: outcome, "hello") is outcome


async def test_a_model_is_an_agent_and_sees_the_prompt_alone():
    model = ScriptedChatModel(says("hi", usage=Usage(3, 1)))

    outcome = await run_agent(model, "hello")

    assert (outcome.response, outcome.metadata["input_tokens"]) == ("hi", 3)
    assert [message.text for message in model.seen[0].messages] == ["hello"]


async def test_an_answer_of_a_reflecting_agent_is_a_success_only_when_it_is_approved():
    def agent(*verdicts):
        drafts = (says("draft"), says("another draft altogether"))
        judge = ScriptedChatModel(*(says(json.dumps({"passed": each, "feedback": "No."})) for each in verdicts))
        return ReflectionAgent(model=ScriptedChatModel(*drafts[: len(verdicts)]), judge_model=judge)

    assert (await run_agent(agent(True), "Write.")).status is Status.SUCCESS
    assert (await run_agent(agent(False, False), "Write.")).status is Status.MAX_ITERATIONS


async def test_prices_give_each_row_its_cost_next_to_the_agents_own_limits():
    model = ScriptedChatModel(says("hi", usage=Usage(1_000_000, 0)))
    agent = SimpleReactAgent(model=model, budget=Budget(max_model_calls=3))
    workshop = Workshop(prices={"*": Price(input=2, output=8)})

    outcome = await AgentRunner(agent, workshop=workshop).run("hello")

    assert outcome.metadata["cost_usd"] == 2.0


async def test_a_time_limit_holds_for_anything_that_answers():
    outcome = await AgentRunner(hang, timeout=0.05).run("hello")

    assert outcome.text == "BudgetExceeded (time_budget)"


async def test_a_time_out_of_the_agents_own_is_its_failure():
    def fails(prompt):
        raise TimeoutError("mine")

    assert (await run_agent(fails, "hello")).metadata["error_type"] == "TimeoutError"


async def test_a_cancel_comes_out():
    task = asyncio.create_task(run_agent(hang, "hello"))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("agent", [7, "text", SimpleReactAgent])
async def test_what_cannot_answer_is_refused(agent):
    with pytest.raises(ConfigurationError, match="cannot answer"):
        await run_agent(agent, "hello")


async def test_the_agent_of_a_spec_is_built_once_with_the_keys_of_the_environment(catalog, monkeypatch):
    monkeypatch.setenv("KEY", "k-from-here")
    spec = catalog.agent("a")

    outcome = await run_agent(spec, None)

    assert outcome.status is Status.FAILED


async def test_a_missing_environment_variable_is_told_when_the_agent_is_built(catalog, monkeypatch):
    monkeypatch.delenv("KEY", raising=False)
    catalog.alter("agent", "b", {"clauses": {"prompt": "Unlike any other."}})

    with pytest.raises(ConfigurationError, match="export KEY="):
        await run_agent(catalog.agent("b"), "hello")


def test_a_runner_knows_whether_answers_are_reviewed(catalog):
    assert runner_of(reflection(catalog))[0].reviews is True
    assert runner_of(catalog.agent("a"))[0].reviews is False
    assert AgentRunner(lambda prompt: prompt).reviews is None


# ------------------------------------------------------------------------------------------------ building


def test_the_address_of_chat_completions_becomes_the_base_address(catalog):
    made = []

    def make(spec, base_url, key):
        made.append((spec.version, base_url, key))
        return ScriptedChatModel()

    AgentRunner(catalog.agent("a"), workshop=Workshop(make_model=make, environment={"KEY": "k-123456"}))

    assert made == [("gpt-4o", "https://example.org/v1", "k-123456")]


def test_the_prompt_of_the_model_stands_before_that_of_the_agent(catalog):
    catalog.alter("model", "m", {"options": {"openai.system_prompt": "Be polite."}})
    runner, _ = runner_of(catalog.agent("a"))

    assert runner.agent._system[0].text == "Be polite.\n\nYou are a."


async def test_functions_are_loaded_by_their_reference(catalog, tmp_path, monkeypatch):
    (tmp_path / "claims_lookup.py").write_text("def lookup(claim: str) -> str:\n    return claim * 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    catalog.create(Definition(kind="function", name="g", clauses={"reference": "claims_lookup:lookup"}))
    catalog.create(Definition(kind="tool", name="u", clauses={"function": "g"}, options={"type": "function"}))
    catalog.alter("agent", "a", {"add_tool": "u"})
    runner, model = runner_of(catalog.agent("a"), calls("u", claim="7"), says("done"))

    await runner.run("Hello")

    assert model.seen[1].messages[-1] == ToolMessage("77", call_id="call_u", name="u")
    sys.modules.pop("claims_lookup")


@pytest.mark.parametrize(
    ("reference", "match"),
    [
        ("no_such_module_at_all:f", "cannot be loaded"),
        ("operator:nge", "operator has no 'nge'; did you mean 'ge' or 'ne' or 'neg'"),
    ],
)
def test_a_function_that_is_not_there_is_told_when_the_agent_is_built(catalog, reference, match):
    catalog.create(Definition(kind="function", name="g", clauses={"reference": reference}))
    catalog.create(Definition(kind="tool", name="u", clauses={"function": "g"}, options={"type": "function"}))
    catalog.alter("agent", "a", {"add_tool": "u"})

    with pytest.raises(ConfigurationError, match=match):
        runner_of(catalog.agent("a"))


def mcp_tool(catalog):
    options = {"type": "mcp", "allowed_tools": "search", "request_timeout": "5"}
    catalog.create(Definition(kind="tool", name="web", clauses={"connection": "tools"}, options=options))
    catalog.alter("connection", "tools", {"options": {"api-key": "token-1"}})
    catalog.alter("agent", "a", {"add_tool": "web"})
    return catalog.agent("a")


async def test_tools_of_a_server_are_asked_for_by_name_and_the_session_is_closed(catalog):
    seen = []

    class Server(list):
        def close(self):
            seen.append("closed")

    @tool
    def search(query: str) -> str:
        """Search."""
        return query

    def connect(url, **options):
        seen.append((url, options))
        return Server([search])

    spec = mcp_tool(catalog)
    runner, model = runner_of(
        spec, calls("search", query="hail"), says("done"), tool_server=connect, secrets=catalog.secrets
    )
    await runner.run("Hello")
    runner.close()

    headers = {"Authorization": "Bearer token-1"}
    assert seen == [("https://example.org/mcp", {"allowed": ["search"], "timeout": 5.0, "headers": headers}), "closed"]
    assert [each.name for each in model.seen[0].tools] == ["search"]
    assert isinstance(model.seen[0].tools[0], Tool)


def test_without_the_extra_a_tool_server_is_a_clear_error(catalog, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.client", None)

    with pytest.raises(ConfigurationError, match=r"reactflow\[mcp\]"):
        runner_of(mcp_tool(catalog), secrets=catalog.secrets)
