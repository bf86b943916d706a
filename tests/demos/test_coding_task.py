"""The coding task: its tests really run, and it is solved because the actor reads its lessons."""

import re

import pytest

from reactflow.demos._scripted_coding import attempt, reflect
from reactflow.demos.coding_task import TASK, main, solver
from reactflow.loopback import LoopbackServer, reply_text
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.result import StopReason
from reactflow.testing import ScriptedChatModel


def without_lessons(request):
    """What the actor says where the lessons are taken out of its prompt."""
    text = re.sub(r"--- lessons (\w+) ---.*--- end \1 ---", "", request.messages[-1].text, flags=re.DOTALL)
    return attempt(request.replace(messages=(UserMessage(text),)))


async def test_the_task_is_solved_in_the_third_attempt_by_two_lessons():
    result = await solver(ScriptedChatModel(*[attempt] * 3), ScriptedChatModel(*[reflect] * 2)).arun(TASK)

    assert (result.stop_reason, result.iterations, result.passed_at_first) == (StopReason.APPROVED, 3, False)
    assert ["AssertionError: 'cr-me-br-l-e' != 'creme-brulee'" in each.evidence for each in result.lessons] == [
        True,
        False,
    ]
    assert "'-really-yes-' != 'really-yes'" in result.lessons[1].evidence
    assert [(each.uses, each.wins) for each in result.lessons] == [(2, 1), (1, 1)]


async def test_without_the_lessons_in_its_prompt_the_actor_fails_again():
    actor = ScriptedChatModel(*[without_lessons] * 4)

    result = await solver(actor, ScriptedChatModel(*[reflect] * 4)).arun(TASK)

    assert (result.approved, result.stop_reason) == (False, StopReason.NO_PROGRESS)
    assert result.attempts[0].draft == result.attempts[1].draft


async def test_code_that_never_ends_is_stopped_and_fails(monkeypatch):
    workflow = solver(lambda asked: "while True:\n    pass", lambda asked: "Mind the loop.")
    object.__setattr__(workflow.evaluator, "timeout_s", 0.5)

    result = await workflow.arun(TASK)

    assert (result.approved, "did not end within 0.5 seconds" in result.attempts[0].feedback) == (False, True)


def test_the_demo_shows_lessons_and_ends_with_the_code_that_passed(monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    main()

    shown = capsys.readouterr().out
    assert re.findall(r"draft \d (?:rejected|accepted)", shown) == [
        "draft 1 rejected",
        "draft 2 rejected",
        "draft 3 accepted",
    ]
    assert "lesson   Letters with accents" in shown
    assert "def slug(title):" in shown
    assert shown.splitlines()[-1].startswith("approved: 3 rounds, 2 revisions; tokens: actor ")


def test_with_a_key_the_demo_asks_the_server_that_the_environment_names(monkeypatch, capsys):
    wrong = "def slug(title):\n    return title"
    right = attempt(asked("NFKD, and strip hyphens")).text
    with LoopbackServer(reply_text(wrong), reply_text("Keep to a-z."), reply_text(right)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)

        main()

        server.assert_legal()
    assert capsys.readouterr().out.splitlines()[-1].startswith("approved: 2 rounds, 1 revision")


def asked(text):
    message = UserMessage(text)
    return ChatRequest(messages=(message,), run=Run(question=message))


@pytest.mark.parametrize("text", ["hello", "--- what the check said ab ---\nImportError\n--- end ab ---"])
def test_the_scripted_reflector_names_no_cause_that_the_check_does_not_show(text):
    assert reflect(asked(text)).text == "Run the tests, and look at the first one that fails."
