"""An agent or a workflow as an evaluator: asked like a judge, and counted as one."""

import pytest

from reactflow.agent import SimpleReactAgent
from reactflow.chain import advisor
from reactflow.errors import ConfigurationError
from reactflow.events import (
    ModelFinished,
    ModelStarted,
    RunStarted,
    TextDelta,
    ToolFinished,
    VerdictGiven,
    WarningRaised,
)
from reactflow.judge import LLMJudge
from reactflow.judging.evaluators import as_evaluator
from reactflow.messages import Usage
from reactflow.reflection import ReflectionAgent
from reactflow.result import StopReason
from reactflow.testing import ScriptedChatModel, calls, says
from reactflow.toolbox import ToolContext, tool
from reactflow.workflows.best_of_n import BestOfN
from reactflow.workflows.drafter_critic import DrafterCritic
from reactflow.workflows.reflexion import Reflexion

PASSES = '{"passed": true, "score": 0.9}'
REJECTS = '{"passed": false, "feedback": "Name the price."}'


@tool
async def price(item: str) -> str:
    """The price of an item."""
    return "3.50 euros"


def judging(*replies):
    return SimpleReactAgent(model=ScriptedChatModel(*replies), tools=[price], system_prompt="You check prices.")


@pytest.mark.parametrize(
    "make",
    [
        lambda judge: ReflectionAgent(model=ScriptedChatModel("a", "b"), evaluator=judge),
        lambda judge: Reflexion(ScriptedChatModel("a", "b"), judge, ScriptedChatModel("Name the price.")),
        lambda judge: BestOfN(ScriptedChatModel("a", "b"), judge, 2),
    ],
)
async def test_an_agent_judges_with_its_tools_and_its_usage_is_the_judges(make):
    usage = Usage(10, 1)
    judge = judging(calls("price", item="tea"), says(REJECTS, usage=usage), says(PASSES, usage=usage))

    result = await make(judge).arun("What does tea cost?")

    assert (result.text, result.approved, result.reflections[0].judgement.feedback) == ("b", True, "Name the price.")
    assert result.usage_by_role["judge"] == Usage(20, 2, model_calls=3, unknown_calls=1)


async def test_an_agent_gets_what_a_model_would_get_as_one_message_beside_its_own_prompt():
    judge = judging(PASSES)

    await BestOfN(ScriptedChatModel("Tea is 3.50."), LLMJudge(judge, criteria=["names the price"]), 1).arun("Price?")

    system, asked = judge.model.seen[0].messages
    assert "You check prices." in system.text
    assert all(words in asked.text for words in ("names the price", "Price?", "Tea is 3.50.", '"passed"'))


async def test_a_verdict_of_an_agent_that_cannot_be_read_is_asked_for_once_more():
    judge = judging("It is fine, I think.", PASSES)

    result = await BestOfN(ScriptedChatModel("a"), judge, 1).arun("?")

    assert result.approved is True
    assert "It is fine, I think." in judge.model.seen[1].messages[-1].text


async def test_a_verdict_of_an_agent_that_was_cut_is_none():
    judge = judging(says(PASSES, finish_reason="length"), says(PASSES, finish_reason="length"))

    result = await ReflectionAgent(model=ScriptedChatModel("a"), evaluator=judge).arun("?")

    assert (result.stop_reason, result.approved) == (StopReason.JUDGE_ERROR, False)
    assert "gave no whole verdict" in result.warnings[0]


async def test_a_workflow_judges_too():
    critic = ScriptedChatModel('{"verdict": "APPROVED", "confidence": 1}')

    judge = DrafterCritic(ScriptedChatModel(PASSES), critic)

    assert (await BestOfN(ScriptedChatModel("a"), judge, 1).arun("?")).approved is True


def test_the_options_of_an_agent_are_its_own():
    with pytest.raises(ConfigurationError, match="set them where it is made"):
        LLMJudge(judging(), options={"temperature": 0})


def test_an_agent_in_a_list_comes_after_what_asks_no_model():
    assert as_evaluator([judging(), lambda draft: True]).evaluators[0].uses_model is True


async def test_a_verdict_that_the_judges_own_reviewer_rejected_is_none():
    judge = ReflectionAgent(
        model=ScriptedChatModel(PASSES, PASSES, PASSES, PASSES), evaluator=lambda draft: (False, "Look again.")
    )

    result = await ReflectionAgent(model=ScriptedChatModel("a"), evaluator=judge).arun("Write.")

    assert (result.stop_reason, result.approved) == (StopReason.JUDGE_ERROR, False)


def streamed(workflow):
    """What a listener hears of the judge, and the result."""
    *events, last = workflow.stream("What does tea cost?")
    return events, last.result


@pytest.mark.parametrize(
    "make",
    [
        lambda judge: ReflectionAgent(model=ScriptedChatModel("a", "b"), evaluator=judge),
        lambda judge: BestOfN(ScriptedChatModel("a", "b"), judge, 2),
    ],
)
def test_a_listener_hears_what_an_agent_that_judges_is_doing(make):
    judge = judging(calls("price", item="tea"), REJECTS, PASSES)

    events, result = streamed(make(judge))

    for kind in (ModelStarted, ModelFinished):
        heard = [event for event in events if isinstance(event, kind) and event.role == "judge"]
        assert [event.round for event in heard] == [1, 2, 3]
    assert [event.name for event in events if isinstance(event, ToolFinished)] == ["price"]
    assert [type(event) for event in events].count(RunStarted) == 1
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == result.text == "b"
    assert result.usage_by_role["judge"].model_calls == 3


def test_a_judges_own_drafts_and_verdicts_are_not_those_of_the_answer():
    judge = ReflectionAgent(model=ScriptedChatModel(REJECTS, PASSES), evaluator=lambda draft: "true" in draft.text)

    events, result = streamed(ReflectionAgent(model=ScriptedChatModel("a"), evaluator=judge))

    assert [(event.draft, event.passed) for event in events if isinstance(event, VerdictGiven)] == [(1, True)]
    assert result.approved is True


@advisor(order=0)
async def late(request, call_next):
    request.run.warn("It was late.")
    return await call_next(request)


def test_what_an_agent_that_judges_warns_of_is_a_warning_of_the_run_and_heard_once():
    def workflow():
        return BestOfN(ScriptedChatModel("a"), SimpleReactAgent(model=ScriptedChatModel(PASSES), advisors=[late]), 1)

    events, result = streamed(workflow())

    assert [event.text for event in events if isinstance(event, WarningRaised)] == ["judge: It was late."]
    assert result.warnings == workflow().run("?").warnings == ("judge: It was late.",)


async def test_an_agent_that_judges_knows_the_context_of_the_run_but_not_its_flags():
    seen = []

    @tool
    def note(context: ToolContext) -> str:
        """Note the context."""
        seen.append(dict(context))
        return "noted"

    judge = SimpleReactAgent(model=ScriptedChatModel(calls("note"), PASSES), tools=[note])

    await ReflectionAgent(model=ScriptedChatModel("a"), evaluator=judge).arun(
        "?", context={"tenant": "acme", "reflection.required": True}
    )

    assert seen == [{"tenant": "acme"}]


async def test_what_only_looks_like_an_agent_is_asked_by_its_one_door():
    class Other:
        async def arun(self, question):
            return PASSES

        def astream(self, question):
            raise AssertionError("another kind of stream")

    events = [event async for event in BestOfN(ScriptedChatModel("a"), Other(), 1).astream("?")]

    assert events[-1].result.approved is True
