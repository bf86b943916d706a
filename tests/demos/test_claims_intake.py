"""The claims intake: two iterations to an approval, because the drafter reads the review."""

import json

import pytest

from reactflow.demos._scripted_claims import extract, review
from reactflow.demos._scripted_email import write
from reactflow.demos.claims_intake import CLAIM, intake, main
from reactflow.loopback import LoopbackServer, reply_text
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.result import StopReason
from reactflow.testing import ScriptedChatModel


def without_the_review(request):
    """What the extractor says where the review is taken out of its prompt."""
    lines = request.messages[-1].text.splitlines()
    kept = [line for line in lines if not line.startswith("- ")]
    return extract(request.replace(messages=(UserMessage("\n".join(kept)),)))


async def test_a_broken_windshield_is_approved_in_the_second_iteration():
    drafter, critic = ScriptedChatModel(extract, extract), ScriptedChatModel(review, review)

    result = await intake(drafter, critic).arun(CLAIM)

    assert (result.stop_reason, result.iterations) == (StopReason.APPROVED, 2)
    first, second = (json.loads(attempt.draft) for attempt in result.attempts)
    assert ("estimated_cost" in first, second["estimated_cost"]) == (False, 350)
    assert (first["missing_fields"], second["missing_fields"]) == ([], ["crack_size"])
    assert second["location"] == {"lat": 37.7749, "lon": -122.4194}
    assert [attempt.verdict for attempt in result.attempts] == ["REQUIRED_CHANGES", "APPROVED"]
    assert json.loads(result.text) == second


async def test_without_the_review_in_its_prompt_the_extractor_fails_again():
    drafter, critic = ScriptedChatModel(*[without_the_review] * 3), ScriptedChatModel(*[review] * 3)

    result = await intake(drafter, critic).arun(CLAIM)

    assert (result.approved, result.iterations) == (False, 2)
    assert result.attempts[0].draft == result.attempts[1].draft


def test_the_demo_shows_both_drafts_and_ends_with_the_approved_claim(monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    main()

    shown = capsys.readouterr().out
    assert "draft 1 rejected" in shown
    assert "draft 2 accepted" in shown
    assert '"estimated_cost": 350' in shown
    assert shown.splitlines()[-1].startswith("approved: 2 rounds, 1 revision")


def test_with_a_key_the_demo_asks_the_server_that_the_environment_names(monkeypatch, capsys):
    claim, approval = '{"estimated_cost": 350}', '{"verdict": "APPROVED", "confidence": 0.9}'
    with LoopbackServer(reply_text(claim), reply_text(approval)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)

        main()

        server.assert_legal()
    assert capsys.readouterr().out.splitlines()[-1].startswith("approved: 1 round, 0 revisions")
    assert len(server.requests) == 2


def test_a_scripted_role_says_so_where_its_prompt_is_not_what_it_knows():
    request = ChatRequest(messages=(UserMessage("hello"),), run=Run(question=UserMessage("hello")))

    with pytest.raises(ValueError, match="the prompt has nothing like"):
        review(request)
    with pytest.raises(ValueError, match="the prompt has nothing like"):
        write(request)
