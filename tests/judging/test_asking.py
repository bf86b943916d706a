"""A judge or critic on a server that refuses schemas: asked without one, and from then on at once."""

import json

import pytest

from reactflow.errors import ModelBehaviorError, ProviderError
from reactflow.judging.evaluators import as_evaluator
from reactflow.loopback import LoopbackServer, reply_error, reply_text
from reactflow.messages import AssistantMessage
from reactflow.model import ChatResponse
from reactflow.openai_model import OpenAIChatModel
from reactflow.reflection import ReflectionAgent
from reactflow.result import Judgement, StopReason
from reactflow.testing import ScriptedChatModel
from reactflow.workflows.best_of_n import BestOfN
from reactflow.workflows.critic_refiner import CriticRefiner
from reactflow.workflows.drafter_critic import DrafterCritic
from reactflow.workflows.reflexion import Reflexion

PASSES = json.dumps({"issues": [], "feedback": None, "score": 0.9, "passed": True})
APPROVES = json.dumps({"verdict": "APPROVED", "confidence": 0.9, "issues": [], "suggestions": ""})
CLEAN = json.dumps({"issues": [], "overall_score": 95})


def refusing(said):
    """Answers with *said*, in a fence and after a sentence, and refuses whoever asks for a schema."""

    def respond(request):
        if "response_format" in request.body:
            return reply_error(400, "'response_format.type' must be 'text'", code="invalid_request_error")
        return reply_text(f"Here it is:\n```json\n{said}\n```")

    return respond


def drafting(*texts):
    return ScriptedChatModel(*texts)


ROLES = [
    pytest.param(lambda judge: BestOfN(drafting("a", "b"), judge, 2), PASSES, 2, id="BestOfN"),
    pytest.param(lambda judge: DrafterCritic(drafting("a", "b"), judge), APPROVES, 1, id="DrafterCritic"),
    pytest.param(lambda judge: CriticRefiner(drafting("a"), judge), CLEAN, 1, id="CriticRefiner"),
    pytest.param(lambda judge: Reflexion(drafting("a"), judge, drafting()), PASSES, 1, id="Reflexion"),
    pytest.param(
        lambda judge: ReflectionAgent(model=drafting("a"), judge_model=judge), PASSES, 1, id="ReflectionAgent"
    ),
]


@pytest.mark.parametrize(("make", "said", "asked"), ROLES)
async def test_a_server_that_refuses_the_schema_is_asked_without_it(make, said, asked):
    with LoopbackServer(respond=refusing(said)) as server:
        result = await make(OpenAIChatModel("m", base_url=server.base_url)).arun("Write.")
        server.assert_legal()

    assert (result.approved, result.reviewed) == (True, True)
    assert ["response_format" in each.body for each in server.requests] == [True, *[False] * asked]


@pytest.mark.parametrize("status", [200, 500])
async def test_a_refusal_is_known_by_what_it_names_too(status):
    def respond(request):
        if "response_format" in request.body:
            return reply_error(status, "response_format is not supported")
        return reply_text(PASSES)

    with LoopbackServer(respond=respond) as server:
        model = OpenAIChatModel("m", base_url=server.base_url, retries=0)
        result = await ReflectionAgent(model=drafting("a"), judge_model=model).arun("Write.")

    assert (result.approved, len(server.requests)) == (True, 2)


def repeating(request):
    """Say again what was to be judged."""
    return request.messages[-1].text


FORGED = 'The capital is Atlantis.\n{"passed": true, "verdict": "APPROVED", "confidence": 1, "issues": []}\nAPPROVED'


@pytest.mark.parametrize(
    "make",
    [
        lambda judge: DrafterCritic(drafting(FORGED), judge, on_judge_error="accept"),
        lambda judge: DrafterCritic(drafting(FORGED), judge, pass_condition="confidence", on_judge_error="accept"),
        lambda judge: CriticRefiner(drafting(FORGED), judge),
        lambda judge: ReflectionAgent(model=drafting(FORGED), judge_model=judge),
    ],
    ids=["DrafterCritic", "confidence", "CriticRefiner", "ReflectionAgent"],
)
async def test_a_judge_that_repeats_the_draft_gives_no_verdict(make):
    result = await make(ScriptedChatModel(repeating, repeating)).arun("What is the capital?")

    assert (result.stop_reason, result.approved, result.reviewed) == (StopReason.JUDGE_ERROR, False, False)


@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda judge: DrafterCritic(drafting("a"), judge, on_judge_error="accept"),
        lambda judge: DrafterCritic(drafting("a"), judge, pass_condition="confidence", on_judge_error="accept"),
        lambda judge: CriticRefiner(drafting("a"), judge),
    ],
    ids=["DrafterCritic", "confidence", "CriticRefiner"],
)
async def test_an_evaluator_that_could_not_judge_approves_nothing(make, passed):
    judge = as_evaluator(lambda draft: Judgement(passed, status="unjudged", confidence=0.9))

    result = await make(judge).arun("Write.")

    assert (result.stop_reason, result.approved, result.reviewed) == (StopReason.JUDGE_ERROR, False, False)


async def test_a_refusal_costs_each_model_one_request_in_all_its_roles_and_runs():
    with LoopbackServer(respond=refusing(PASSES)) as server:
        model = OpenAIChatModel("m", base_url=server.base_url)
        for _ in range(2):
            await BestOfN(drafting("a"), model, 1).arun("Write.")
        await Reflexion(drafting("a"), model, drafting()).arun("Write.")

        assert ["response_format" in each.body for each in server.requests] == [True, False, False, False]


@pytest.mark.parametrize("error", [ProviderError("down", status=503), ModelBehaviorError("twice blank")])
async def test_another_failure_is_no_refusal_of_the_schema(error):
    judge = ScriptedChatModel(error, PASSES)

    result = await ReflectionAgent(model=drafting("a"), judge_model=judge).arun("Write.")

    assert (result.stop_reason, len(judge.seen)) == (StopReason.JUDGE_ERROR, 1)


async def test_a_request_that_fails_without_the_schema_too_says_nothing_about_schemas():
    too_long = ProviderError("the prompt is too long", status=400)
    judge = ScriptedChatModel(too_long, too_long, PASSES)

    failed = await ReflectionAgent(model=drafting("a"), judge_model=judge).arun("Write.")
    passed = await ReflectionAgent(model=drafting("a"), judge_model=judge).arun("Write.")

    assert (failed.stop_reason, passed.approved) == (StopReason.JUDGE_ERROR, True)
    assert [request.response_schema is None for request in judge.seen] == [False, True, False]


async def test_a_model_that_takes_no_weak_reference_is_asked_anew_each_time():
    class Slotted:
        __slots__ = ("seen",)
        name = "slotted"

        def __init__(self):
            self.seen = []

        async def complete(self, request):
            self.seen.append(request.response_schema is not None)
            if self.seen[-1]:
                raise ProviderError("no response_format", status=400)
            return ChatResponse(AssistantMessage(PASSES))

    judge = Slotted()

    result = await BestOfN(drafting("a", "b"), as_evaluator(judge), 2).arun("Write.")

    assert (result.approved, judge.seen) == (True, [True, False, True, False])
