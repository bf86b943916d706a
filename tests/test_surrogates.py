"""Half of a surrogate pair, which no encoding can write, is U+FFFD in every text that comes back."""

import json

import pytest

from reactflow.advisors.reflection import ReflectionAdvisor
from reactflow.agent import SimpleReactAgent
from reactflow.chain import advisor
from reactflow.messages import AssistantMessage, UserMessage, readable
from reactflow.model import ChatResponse
from reactflow.testing import ScriptedChatModel, calls
from reactflow.toolbox import tool
from reactflow.workflows.best_of_n import BestOfN
from reactflow.workflows.research import ResearchReflexion
from reactflow.workflows.sources import Source

HALF, SHOWN = "a\ud83d b", "a\ufffd b"


@tool(return_direct=True)
async def broken() -> str:
    """Return half of a pair."""
    return HALF


@tool(return_direct=True)
async def nested() -> dict[str, str]:
    """Return half of a pair, in JSON."""
    return {"text": HALF}


@advisor(order=-150)
async def answering_itself(request, call_next):
    return ChatResponse(AssistantMessage(HALF))


def agent(*replies, **settings):
    return SimpleReactAgent(model=ScriptedChatModel(*replies), **settings)


def passes(draft):
    return True


@pytest.mark.parametrize(
    ("who", "text"),
    [
        (agent(HALF), SHOWN),
        (agent(HALF, advisors=[ReflectionAdvisor(passes)]), SHOWN),
        (agent(calls("broken"), tools=[broken]), SHOWN),
        (agent(calls("nested"), tools=[nested]), json.dumps({"text": SHOWN}, ensure_ascii=False).replace(": ", ":")),
        (agent(advisors=[answering_itself]), SHOWN),
        (BestOfN(lambda prompt: HALF, passes, 1), SHOWN),
        (BestOfN(ScriptedChatModel(HALF), passes, 1), SHOWN),
        (BestOfN(agent(HALF), passes, 1), SHOWN),
        (BestOfN(lambda prompt: {"text": HALF}, passes, 1), "{'text': 'a\\ud83d b'}"),
    ],
)
async def test_an_answer_can_be_written_down_whoever_gave_it(who, text):
    result = await who.arun("?")

    assert (result.text, result.text.encode().decode()) == (text, text)


@pytest.mark.parametrize(
    "found", [Source("https://a.org", HALF, HALF), {"url": "https://a.org", "title": HALF, "text": HALF}]
)
async def test_a_source_can_be_written_down(found):
    draft = json.dumps({"answer": "?", "reflection": "", "search_queries": ["q"]})
    final = json.dumps({"answer": "Yes [1].", "reflection": "", "search_queries": [], "references": ["https://a.org"]})

    result = await ResearchReflexion(ScriptedChatModel(draft, final), lambda query: [found]).arun("?")

    assert result.text.endswith(f"[1] {SHOWN} https://a.org")
    assert result.sources == (Source("https://a.org", SHOWN, SHOWN),)


@pytest.mark.parametrize("question", [HALF, UserMessage(HALF)])
async def test_a_question_can_be_written_down(question):
    model = ScriptedChatModel("yes")

    result = await SimpleReactAgent(model=model).arun(question)

    assert (result.messages[0], model.seen[0].messages[-1]) == (UserMessage(SHOWN), UserMessage(SHOWN))


def test_a_pair_in_two_halves_becomes_its_character_and_readable_text_stays_the_same_object():
    text = "天气"

    assert readable("\ud83d\ude00 \ude00") == "😀 \ufffd"
    assert readable(text) is text
