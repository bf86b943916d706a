"""The one bounded loop: what ends it, what it keeps, what comes back."""

import asyncio
import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.agent import SimpleReactAgent
from reactflow.budget import Budget, Price
from reactflow.errors import BudgetExceeded, ConfigurationError, ProviderError, WorkflowError
from reactflow.events import DraftReady, IterationStarted, RunFinished, TextDelta, VerdictGiven
from reactflow.messages import AssistantMessage, Usage, UserMessage
from reactflow.model import current_run
from reactflow.result import Judgement, StopReason
from reactflow.testing import ScriptedChatModel, says
from reactflow.testing import calls as calls_tool
from reactflow.toolbox import tool
from reactflow.workflows.attempt import Attempt, WorkflowResult, best
from reactflow.workflows.role import as_role
from reactflow.workflows.workflow import Workflow


class Writing(Workflow):
    """Asks *writer* for drafts and *judge*, a function of the draft, for judgements."""

    def __init__(self, writer, judge, max_iterations=3, **settings):
        super().__init__(name="writing", max_iterations=max_iterations, **settings)
        self.writer, self.judge = as_role(writer, "writer"), as_role(judge, "judge")

    async def _draft(self, trail):
        return await self.writer.ask(trail.question, trail, drafting=True)

    async def _judge(self, trail):
        try:
            said = await self.judge.ask(trail.latest.draft, trail)
        except WorkflowError as error:
            return self._unjudged(trail, error)
        return said.value if isinstance(said.value, Judgement) else Judgement(said.text == "yes", "no good")


def rejects(draft):
    return Judgement(False, f"not {draft}")


def scores(*values):
    """A judge that rejects, with these scores in order."""
    left = list(values)
    return lambda draft: Judgement(False, f"not {draft}", left.pop(0))


def usage_of(number):
    return Usage(10 * number, number)


async def test_drafts_are_judged_until_one_passes():
    model = ScriptedChatModel("a", "b")

    result = await Writing(model, lambda draft: Judgement(draft == "b", "not a")).arun("task")

    assert (str(result), result.stop_reason, result.iterations, result.rounds) == ("b", StopReason.APPROVED, 2, 2)
    assert (result.approved, result.reviewed) == (True, True)
    assert [(each.draft, each.verdict) for each in result.attempts] == [("a", "REQUIRED_CHANGES"), ("b", "APPROVED")]
    model.assert_finished()


async def test_every_attempt_is_kept_with_its_tokens_and_seconds():
    model = ScriptedChatModel(says("a", usage=usage_of(1)), says("b", usage=usage_of(2)))

    result = await Writing(model, scores(0.2, 0.4), max_iterations=2).arun("task")

    assert [each.tokens for each in result.attempts] == [11, 22]
    assert all(0 < each.seconds < 5 for each in result.attempts)
    assert [each.score for each in result.attempts] == [0.2, 0.4]
    assert [each.feedback for each in result.attempts] == ["not a", "not b"]
    assert result.usage == Usage(30, 3, model_calls=2)
    assert result.usage_by_role == {"writer": Usage(30, 3, model_calls=2)}


async def test_a_result_can_be_pickled_and_copied():
    result = await Writing(ScriptedChatModel("a", "b"), scores(0.2, 0.4), max_iterations=2).arun("task")

    assert type(result) is WorkflowResult
    assert pickle.loads(pickle.dumps(result)) == copy.deepcopy(result) == result


async def test_the_result_holds_the_turn_as_a_conversation_with_the_answer_last():
    result = await Writing(ScriptedChatModel("a", "b"), scores(0.9, 0.4), max_iterations=2).arun("task")

    assert result.messages == (
        UserMessage("task"),
        AssistantMessage("a"),
        UserMessage("not a", synthetic="reflection"),
        AssistantMessage("b"),
        AssistantMessage("a"),
    )
    assert [(each.draft, each.judgement.score) for each in result.reflections] == [("a", 0.9), ("b", 0.4)]


async def test_when_the_iterations_are_used_up_the_best_draft_is_returned_and_not_called_approved():
    result = await Writing(ScriptedChatModel("a", "b", "c"), scores(0.2, 0.9, 0.4)).arun("task")

    assert (result.text, result.stop_reason) == ("b", StopReason.MAX_ITERATIONS)
    assert (result.approved, result.reviewed) == (False, True)


async def test_without_scores_the_latest_draft_is_returned():
    result = await Writing(ScriptedChatModel("a", "b"), rejects, max_iterations=2).arun("task")

    assert result.text == "b"


@given(st.lists(st.tuples(st.booleans(), st.none() | st.floats(0, 1)), min_size=1, max_size=8))
def test_a_larger_limit_never_returns_a_worse_ranked_answer(verdicts):
    attempts = [
        Attempt(draft=str(number), judgement=Judgement(passed, score=score))
        for number, (passed, score) in enumerate(verdicts)
    ]

    ranks = [best(attempts[:limit]).rank for limit in range(1, len(attempts) + 1)]

    assert ranks == sorted(ranks)


async def test_a_draft_that_was_let_through_unjudged_has_no_score_to_rank_by():
    said = {"a": Judgement(False, "not a", 0.1), "b": Judgement(True, score=0.9, status="unjudged")}

    result = await Writing(ScriptedChatModel("a", "b"), lambda draft: said[draft], max_iterations=2).arun("task")

    assert (result.text, result.stop_reason) == ("a", StopReason.JUDGE_ERROR)


def test_the_best_of_no_attempts_is_a_mistake():
    with pytest.raises(ValueError, match="no attempt"):
        best([])


# ---------------------------------------------------------------------------------------------- what ends it


async def test_the_same_draft_twice_ends_the_run():
    result = await Writing(ScriptedChatModel("a", "a "), rejects).arun("task")

    assert (result.stop_reason, result.iterations) == (StopReason.NO_PROGRESS, 2)


async def test_drafts_that_go_back_and_forth_end_the_run():
    model = ScriptedChatModel("aaaa", "bbbb", "aaaa", "bbbb")

    result = await Writing(model, rejects, max_iterations=9).arun("task")

    assert (result.stop_reason, result.iterations) == (StopReason.OSCILLATION, 4)


async def test_a_chinese_draft_that_hardly_changed_under_the_same_complaint_ends_the_run():
    draft = "北京明天晴，最高气温二十五度，适合出行，请注意防晒。" * 3
    model = ScriptedChatModel(draft, draft.replace("晴", "阴", 1))

    result = await Writing(model, lambda _: Judgement(False, "没有说明降水概率和风力等级，请补充")).arun("任务")

    assert result.stop_reason == StopReason.NO_PROGRESS


async def test_fewer_issues_each_time_are_progress():
    drafts = ["one", "two two", "three three three", "4 4 4 4 4 4 4 4", "five: done"]
    found = [5, 5, 5, 1, 0]

    def judge(draft):
        left = found[drafts.index(draft)]
        return Judgement(left == 0, "; ".join(f"issue {number}" for number in range(left)))

    result = await Writing(ScriptedChatModel(*drafts), judge, max_iterations=9).arun("task")

    assert (result.text, result.stop_reason) == ("five: done", StopReason.APPROVED)


async def test_the_check_for_progress_can_be_turned_off():
    model = ScriptedChatModel("a", "a", "a")

    result = await Writing(model, rejects, stop_when_stalled=False).arun("task")

    assert (result.stop_reason, result.iterations) == (StopReason.MAX_ITERATIONS, 3)


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(max_tokens=15), StopReason.TOKEN_BUDGET),
        (Budget(max_model_calls=2), StopReason.CALL_BUDGET),
        (Budget(max_cost_usd=0.00001, prices={"*": Price(input=1, output=1)}), StopReason.COST_BUDGET),
    ],
)
async def test_a_limit_returns_the_best_draft_so_far_with_the_reason(budget, reason):
    model = ScriptedChatModel(*(says(text, usage=Usage(5, 4)) for text in "abc"))

    result = await Writing(model, scores(0.5, 0.2, 0.1), budget=budget).arun("task")

    assert (result.text, result.stop_reason, len(result.attempts), result.iterations) == ("a", reason, 2, 3)


async def test_a_limit_before_there_is_a_draft_is_an_error():
    async def never(request):
        await asyncio.sleep(60)

    with pytest.raises(BudgetExceeded) as caught:
        await Writing(ScriptedChatModel(never), rejects, budget=Budget(max_seconds=0.05)).arun("task")

    assert (caught.value.reason, caught.value.partial) == (StopReason.TIME_BUDGET, None)


async def test_the_time_limit_in_the_middle_of_a_draft_returns_the_draft_before_it(clock):
    async def never(request):
        await asyncio.sleep(60)

    model = ScriptedChatModel("a", never)

    late = clock.late(Judgement(False, "not a"))
    async with asyncio.timeout(30):
        result = await Writing(model, late, budget=Budget(max_seconds=60)).arun("task")

    assert (result.text, result.stop_reason, len(result.attempts)) == ("a", StopReason.TIME_BUDGET, 1)


async def test_the_time_limit_in_the_middle_of_a_judgement_keeps_the_draft_unreviewed(clock):
    async def judge(draft):
        await asyncio.sleep(60)

    result = await Writing(ScriptedChatModel(clock.late("a")), judge, budget=Budget(max_seconds=60)).arun("task")

    assert (result.text, result.stop_reason, result.reviewed) == ("a", StopReason.TIME_BUDGET, False)
    assert (result.attempts[0].judgement, result.attempts[0].verdict) == (None, None)


async def test_a_budget_given_to_the_call_replaces_the_workflows_own():
    def workflow():
        return Writing(ScriptedChatModel("a", "b", "c"), rejects, budget=Budget(max_model_calls=1))

    assert len((await workflow().arun("task", budget=Budget(max_model_calls=2))).attempts) == 2
    assert (await workflow().arun("task", budget=None)).stop_reason == StopReason.MAX_ITERATIONS


async def test_a_draft_that_was_cut_is_returned_as_such_and_never_judged():
    model = ScriptedChatModel(says("half", finish_reason="length"))

    result = await Writing(model, lambda draft: Judgement(True)).arun("task")

    assert (result.text, result.stop_reason, result.approved) == ("half", StopReason.TRUNCATED, False)
    assert result.reviewed is False


async def test_a_later_draft_that_was_cut_never_replaces_a_whole_one():
    model = ScriptedChatModel("whole", says("half", finish_reason="length"))

    result = await Writing(model, rejects).arun("task")

    assert (result.text, result.stop_reason) == ("whole", StopReason.REVISION_ERROR)
    assert result.warnings == ("A revision was no whole answer (truncated), so the best whole draft is returned.",)


# -------------------------------------------------------------------------------------------------- failures


async def test_a_role_that_fails_is_named_with_its_iteration_and_the_draft_is_not_lost():
    cause = ProviderError("down", status=503)

    with pytest.raises(WorkflowError, match="writer failed in iteration 2: ProviderError: down") as caught:
        await Writing(ScriptedChatModel("a", cause), rejects).arun("task")

    assert (caught.value.role, caught.value.iteration, caught.value.__cause__) == ("writer", 2, cause)
    assert (caught.value.partial.text, caught.value.partial.stop_reason) == ("a", StopReason.REVISION_ERROR)


async def test_a_role_that_fails_first_leaves_no_partial_result():
    with pytest.raises(WorkflowError) as caught:
        await Writing(ScriptedChatModel(ProviderError("down")), rejects).arun("task")

    assert caught.value.partial is None


async def test_a_workflow_may_return_the_best_draft_when_a_revision_fails():
    model = ScriptedChatModel("a", ProviderError("down"))

    result = await Writing(model, rejects, on_revision_error="return").arun("task")

    assert (result.text, result.stop_reason) == ("a", StopReason.REVISION_ERROR)
    assert "ProviderError: down" in result.warnings[0]


async def test_a_mistake_in_a_users_own_function_is_never_hidden():
    drafts = iter(["a"])

    with pytest.raises(WorkflowError) as caught:
        await Writing(lambda prompt: next(drafts), rejects, on_revision_error="return").arun("task")

    assert caught.value.partial.text == "a"


@pytest.mark.parametrize(
    ("policy", "reason", "judged"), [("accept", StopReason.JUDGE_ERROR, 1), ("reject", StopReason.MAX_ITERATIONS, 3)]
)
async def test_a_judge_that_fails_is_no_verdict(policy, reason, judged):
    calls = []

    def judge(draft):
        calls.append(draft)
        raise OSError("no judge")

    result = await Writing(ScriptedChatModel(*"abc"), judge, on_judge_error=policy).arun("task")

    assert (result.stop_reason, len(calls)) == (reason, judged)
    assert (result.approved, result.reviewed, result.attempts[0].verdict) == (False, False, None)
    assert "no judge" in result.warnings[0]


async def test_a_judge_that_fails_can_be_an_error_with_the_draft_in_it():
    def judge(draft):
        raise OSError("no judge")

    with pytest.raises(WorkflowError, match="judge failed in iteration 1") as caught:
        await Writing(ScriptedChatModel("a"), judge).arun("task")

    assert (caught.value.partial.text, caught.value.partial.stop_reason) == ("a", StopReason.JUDGE_ERROR)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_iterations": 0},
        {"max_iterations": True},
        {"max_iterations": 2.0},
        {"budget": 5},
        {"on_judge_error": "ignore"},
        {"on_revision_error": "ignore"},
    ],
)
def test_a_wrong_setting_is_named(settings):
    (name,) = settings

    with pytest.raises(ConfigurationError, match=name):
        Writing(ScriptedChatModel(), rejects, **settings)


def test_a_workflow_needs_a_name():
    with pytest.raises(ConfigurationError, match="name=' '"):
        Workflow(name=" ", max_iterations=1)


async def test_the_base_alone_can_neither_draft_nor_judge():
    with pytest.raises(NotImplementedError):
        await Workflow(name="base", max_iterations=1).arun("task")
    with pytest.raises(NotImplementedError):
        await Workflow(name="base", max_iterations=1)._judge(None)


# -------------------------------------------------------------------------------------------------- the doors


async def test_a_stream_tells_of_iterations_drafts_and_verdicts_and_shows_only_the_answer():
    workflow = Writing(
        ScriptedChatModel("first draft", "second draft"), lambda draft: (draft[0] == "s" and "yes") or "no"
    )

    events = [event async for event in workflow.astream("task")]

    told = [event for event in events if isinstance(event, (IterationStarted, DraftReady, VerdictGiven))]
    assert told == [
        IterationStarted(iteration=1, max_iterations=3),
        DraftReady(draft=1, text="first draft"),
        VerdictGiven(draft=1, passed=False, feedback="no good"),
        IterationStarted(iteration=2, max_iterations=3),
        DraftReady(draft=2, text="second draft"),
        VerdictGiven(draft=2, passed=True, feedback="no good"),
    ]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "second draft"
    assert isinstance(events[-1], RunFinished)


async def test_a_stream_can_show_drafts_under_their_number():
    workflow = Writing(ScriptedChatModel("first draft", "second draft"), rejects, max_iterations=2)

    events = [event async for event in workflow.astream("task", drafts="tag")]

    deltas = [event for event in events if isinstance(event, TextDelta)]
    assert [(each.round, each.role) for each in deltas] == [(1, "agent")] * 2 + [(2, "agent")] * 2


def test_plain_doors_work():
    def workflow():
        return Writing(ScriptedChatModel("a"), lambda draft: "yes")

    assert workflow().call("task") == "a"
    assert workflow().run("task").text == "a"
    assert list(workflow().stream("task"))[-1].text == "a"


async def test_a_cancelled_run_stops_at_once_and_lets_the_cancel_through():
    begun = asyncio.Event()

    async def slow(request):
        begun.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(Writing(ScriptedChatModel(slow), rejects).arun("task"))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert current_run.get() is None


async def test_concurrent_runs_of_one_workflow_keep_apart():
    async def writer(prompt):
        await asyncio.sleep(0)
        return prompt.upper()

    workflow = Writing(writer, lambda draft: "yes")

    results = await asyncio.gather(*(workflow.arun(f"task {number}") for number in range(50)))

    assert [result.text for result in results] == [f"TASK {number}" for number in range(50)]


async def test_a_step_may_end_the_run_without_another_draft():
    class Once(Writing):
        async def _draft(self, trail):
            return StopReason.NO_PROGRESS if trail.attempts else await super()._draft(trail)

    result = await Once(ScriptedChatModel("a"), rejects).arun("task")

    assert (result.text, result.stop_reason, result.iterations) == ("a", StopReason.NO_PROGRESS, 2)


async def test_something_can_be_learnt_from_every_draft_that_did_not_end_the_run():
    class Learning(Writing):
        async def _learn(self, trail):
            trail.notes.setdefault("lessons", []).append(trail.latest.draft)

        def _extras(self, trail, chosen):
            return {"output": trail.notes["lessons"]}

    result = await Learning(ScriptedChatModel("a", "b"), rejects, max_iterations=2).arun("task")

    assert result.output == ["a", "b"]


def test_a_workflow_shows_its_name_and_limit():
    assert repr(Writing(ScriptedChatModel(), rejects)) == "Writing('writing', max_iterations=3)"


async def test_iterations_count_those_that_were_begun():
    async def events_of(workflow):
        return [event async for event in workflow.astream("task")]

    events = await events_of(Writing(ScriptedChatModel("a", "b"), rejects, budget=Budget(max_model_calls=1)))

    assert [event.iteration for event in events if isinstance(event, IterationStarted)] == [1, 2]
    assert (events[-1].result.stop_reason, events[-1].result.iterations) == (StopReason.CALL_BUDGET, 2)


def limited(*replies, calls=1):
    """An agent with a limit of its own that comes before it has an answer."""
    return SimpleReactAgent(model=ScriptedChatModel(*replies), budget=Budget(max_model_calls=calls), tools=[look])


@tool
def look() -> str:
    """Look."""
    return "seen"


async def test_a_roles_own_limit_is_a_failure_of_the_role_and_no_limit_of_the_run():
    writer = limited(calls_tool("look"), "never asked for")

    with pytest.raises(WorkflowError, match="The writer failed in iteration 1: BudgetExceeded") as caught:
        await Writing(writer, rejects, budget=Budget(max_model_calls=9)).arun("task")

    assert (caught.value.role, caught.value.iteration, caught.value.partial) == ("writer", 1, None)
    assert isinstance(caught.value.__cause__, BudgetExceeded)


async def test_a_roles_own_limit_in_a_revision_returns_the_best_draft_where_that_is_wanted():
    class Revising(Writing):
        async def _draft(self, trail):
            role = as_role(limited(calls_tool("look")), "reviser") if trail.attempts else self.writer
            return await role.ask(trail.question, trail, drafting=True)

    kept = await Revising(ScriptedChatModel("a"), rejects, on_revision_error="return").arun("task")
    with pytest.raises(WorkflowError, match="The reviser failed in iteration 2: BudgetExceeded") as caught:
        await Revising(ScriptedChatModel("a"), rejects).arun("task")

    assert (kept.text, kept.stop_reason, kept.iterations) == ("a", StopReason.REVISION_ERROR, 2)
    assert (caught.value.partial.text, caught.value.partial.stop_reason) == ("a", StopReason.REVISION_ERROR)


async def test_a_limit_that_is_not_the_runs_own_does_not_end_it_as_one():
    class Careless(Writing):
        async def _judge(self, trail):
            raise BudgetExceeded("somebody else's", reason=StopReason.TOKEN_BUDGET)

    with pytest.raises(BudgetExceeded, match="somebody else's") as caught:
        await Careless(ScriptedChatModel("a"), rejects).arun("task")

    assert (caught.value.partial.text, caught.value.partial.stop_reason) == ("a", StopReason.JUDGE_ERROR)


@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError("mine")])
async def test_whatever_a_role_raises_is_typed_and_names_the_role(error, later):
    async def asked(prompt):
        raise error

    def plain(prompt):
        raise error

    with pytest.raises(WorkflowError, match=f"The writer failed in iteration 1: {type(error).__name__}") as caught:
        await Writing(asked if later else plain, rejects).arun("task")

    assert isinstance(caught.value.__cause__, type(error))
