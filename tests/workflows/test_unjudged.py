import pytest

from reactflow.judge import Draft
from reactflow.result import Judgement, StopReason
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
