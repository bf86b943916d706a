import json

import pytest

from reactflow.errors import ConfigurationError
from reactflow.judge import Draft
from reactflow.result import Issue, Judgement, StopReason
from reactflow.workflows import CriticRefiner, DrafterCritic


class Unable:
    """An evaluator that cannot do its work today."""

    calls = 0

    async def evaluate(self, draft: Draft) -> Judgement:
        self.calls += 1
        return Judgement(False, "Start docker.", status="unjudged", flags=("Docker is not running.",))


def write(prompt):
    return "a draft"


@pytest.mark.parametrize("make", [CriticRefiner, lambda *roles: DrafterCritic(*roles, on_judge_error="accept")])
async def test_an_evaluator_that_cannot_judge_is_asked_once_and_the_result_says_why(make):
    unable = Unable()
    result = await make(write, unable).arun("Write.")

    assert (result.text, result.stop_reason, result.reviewed) == ("a draft", StopReason.JUDGE_ERROR, False)
    assert unable.calls == 1
    assert "The evaluator could not judge the text. Docker is not running. Start docker." in result.warnings[0]


async def test_what_an_evaluator_rejects_does_not_pass_by_its_confidence():
    def sure(draft: Draft) -> Judgement:
        return Judgement(False, "No date.", confidence=0.95)

    result = await DrafterCritic(write, sure, "confidence", max_iterations=1).arun("Write.")

    assert (result.approved, result.stop_reason) == (False, StopReason.MAX_ITERATIONS)


async def test_a_severity_that_is_none_is_named():
    def odd(draft: Draft) -> Judgement:
        return Judgement(False, "No date.", issues=(Issue("No date.", 9),))

    with pytest.raises(ConfigurationError, match="whole number from 1 to 5"):
        await CriticRefiner(write, odd).arun("Write.")


@pytest.mark.parametrize(("said", "score"), [(85.5, 85.5), (1.0, 100), (1, 1), (0.5, 50), (100.5, None)])
async def test_an_overall_score_is_of_a_hundred_or_a_share(said, score):
    reply = json.dumps({"issues": [], "overall_score": said})

    assert (await CriticRefiner(write, lambda prompt: reply).arun("Write.")).overall_score == score


async def test_a_plain_no_needs_no_confidence():
    asked = []

    def no(draft: Draft) -> bool:
        asked.append(draft.text)
        return False

    result = await DrafterCritic(write, no, "confidence", max_iterations=1).arun("Write.")

    assert (result.approved, result.stop_reason, asked) == (False, StopReason.MAX_ITERATIONS, ["a draft"])
