"""The research question: two rounds of searches to an answer whose references were checked."""

import json
import re

import pytest

from reactflow.demos._scripted_research import FROM_MEMORY, respond, revise
from reactflow.demos.research_question import QUESTION, main, researcher
from reactflow.loopback import LoopbackServer, reply_text
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.result import StopReason
from reactflow.testing import ScriptedChatModel

LIBRARY = "https://example.org/library/"


def asked(text):
    message = UserMessage(text)
    return ChatRequest(messages=(message,), run=Run(question=message))


def without_evidence(request):
    """What the revisor says where the evidence is taken out of its prompt."""
    text = re.sub(r"--- evidence[^\n]* (\w+) ---.*--- end \1 ---", "", request.messages[-1].text, flags=re.DOTALL)
    return revise(asked(text))


async def test_the_question_is_answered_by_what_two_rounds_of_searches_found():
    result = await researcher(ScriptedChatModel(respond), ScriptedChatModel(revise, revise)).arun(QUESTION)

    assert (result.stop_reason, result.approved, result.researched, result.iterations) == (
        StopReason.ANSWERED,
        True,
        True,
        2,
    )
    assert [source.url for source in result.references] == [
        f"{LIBRARY}nobel-physics-2025",
        f"{LIBRARY}nobel-physics-2025-experiment",
    ]
    assert result.queries[-1] == "experiment Clarke Devoret Martinis circuit"
    for name in ("John Clarke", "Michel H. Devoret", "John M. Martinis", "tunnelling", "Josephson"):
        assert name in result.output.answer


async def test_a_reference_from_memory_is_taken_out_and_named():
    result = await researcher(ScriptedChatModel(respond), ScriptedChatModel(revise, revise)).arun(QUESTION)

    assert result.warnings == (f"Revision 1: Taken out, because no such source was retrieved: {FROM_MEMORY}.",)
    assert [FROM_MEMORY in attempt.draft for attempt in result.attempts] == [False, False, False]
    assert [attempt.passed for attempt in result.attempts] == [False, False, True]


async def test_without_the_evidence_in_its_prompt_the_revisor_knows_nothing():
    model = ScriptedChatModel(*[without_evidence] * 2)

    result = await researcher(ScriptedChatModel(respond), model).arun(QUESTION)

    assert (result.output.answer, result.approved) == (
        "No source says who won the Nobel Prize in Physics 2025.",
        False,
    )


def test_the_demo_shows_searches_and_ends_with_the_cited_answer(monkeypatch, capsys):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    main()

    shown = capsys.readouterr().out
    assert shown.count("call     search") == 3
    assert f"[1] Nobel Prize in Physics 2025: Clarke, Devoret and Martinis {LIBRARY}nobel-physics-2025\n" in shown
    assert shown.splitlines()[-1].startswith("answered: 3 rounds, ")


def test_with_a_key_the_demo_asks_the_server_that_the_environment_names(monkeypatch, capsys):
    draft = {"answer": "?", "reflection": "", "search_queries": ["Nobel Prize in Physics 2025"]}
    final = {**draft, "answer": "Clarke and others [1].", "search_queries": [], "references": ["1"]}
    with LoopbackServer(reply_text(json.dumps(draft)), reply_text(json.dumps(final))) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)

        main()

        server.assert_legal()
    shown = capsys.readouterr().out
    assert "Clarke and others [1].\n\nSources:\n[1] " in shown
    assert shown.splitlines()[-1].startswith("answered: 2 rounds, ")


def test_a_scripted_role_says_so_where_its_prompt_is_not_what_it_knows():
    with pytest.raises(ValueError, match="asks for no Nobel Prize"):
        respond(asked("hello"))
