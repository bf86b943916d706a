"""``reactflow chat``: turns, slash commands, and a conversation that is there next time."""

import json
import re
from pathlib import Path

import pytest

from reactflow import (
    Judgement,
    ProviderError,
    ReflectionAgent,
    SafeGuardAdvisor,
    SimpleReactAgent,
    Usage,
    WindowChatMemory,
)
from reactflow.cli.reader import LineReader
from reactflow.testing import ScriptedChatModel, calls, says


def typed(*lines):
    return "\n".join(lines) + "\n"


def echoing(request):
    return says(" | ".join(message.text for message in request.messages[1:]))


@pytest.fixture
def echo(own):
    """An agent with a memory, whose answer is what it was sent."""
    model = ScriptedChatModel(*[echoing] * 9)
    own(echo=SimpleReactAgent(model=model, memory=WindowChatMemory()))
    return model


def test_each_line_is_a_turn_and_the_agent_remembers_the_earlier_ones(reactflow, echo):
    ended = reactflow("chat", "--agent", "own:echo", input=typed("one", "", "two"))

    assert (ended.code, ended.out) == (0, "one\none | one | two\n")


def test_a_backslash_at_the_end_of_a_line_goes_on_in_the_next(reactflow, echo):
    assert (
        reactflow("chat", "--agent", "own:echo", "-q", input=typed("one\\", "two\\", "three")).out
        == "one\ntwo\nthree\n"
    )


async def test_a_line_that_ends_with_the_file_is_read_too(tmp_path):
    file = tmp_path / "lines"
    file.write_text("one\\\r\ntwo\\")

    with file.open() as lines:
        reader = LineReader(lines)
        assert [await reader.read(), await reader.read()] == ["one\ntwo", None]


def test_the_conversation_is_there_after_a_restart(reactflow):
    first = reactflow("chat", input=typed("What is the weather in Beijing?"))
    second = reactflow("chat", input=typed("/memory"))
    other = reactflow("chat", "--conversation", "other", input=typed("/memory"))

    assert "with 2 messages from before (/clear forgets them)" in second.err
    assert "from before" not in first.err
    assert re.search(
        r"Conversation 'chat', kept in .*conversations\.sqlite3: the model sees 2 messages\.", flat(second)
    )
    assert "you    What is the weather in Beijing?" in second.out
    assert "agent  " in second.out
    assert "the model sees 0 messages" in flat(other)


def flat(ended):
    return " ".join(ended.out.split())


def test_the_state_folder_is_readable_by_its_owner_only(reactflow, own_state):
    reactflow("chat", input="")

    assert own_state.stat().st_mode & 0o077 == 0


def test_a_state_folder_that_cannot_be_made_is_wrong_use(reactflow, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REACTFLOW_STATE_DIR", str(tmp_path / "file" / "state"))

    ended = reactflow("chat", input="")

    assert ended.code == 2
    assert "Set REACTFLOW_STATE_DIR" in ended.err


def test_clear_forgets_the_conversation(reactflow):
    reactflow("chat", input=typed("What is the weather in Beijing?"))
    ended = reactflow("chat", input=typed("/clear", "/memory", "/why", "/retry"))

    assert "The conversation is forgotten." in ended.out
    assert "the model sees 0 messages" in flat(ended)
    assert "There is no answer yet." in ended.out
    assert "There is no question yet." in ended.err


def test_retry_after_a_restart_asks_the_kept_question_again(reactflow):
    reactflow("chat", input=typed("What is the weather in Beijing?"))
    again = reactflow("chat", input=typed("/retry", "/memory"))

    assert again.out.startswith("Weather (Beijing)")
    assert "the model sees 2 messages" in flat(again)


def test_a_module_that_runs_a_loop_itself_can_be_loaded(reactflow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("looping.py").write_text(
        "import asyncio\nfrom reactflow import SimpleReactAgent\nfrom reactflow.testing import ScriptedChatModel\n"
        "asyncio.run(asyncio.sleep(0))\nagent = SimpleReactAgent(model=ScriptedChatModel('a1'))\n"
    )

    assert reactflow("chat", "--agent", "looping:agent", input=typed("q")).out == "a1\n"


def test_retry_asks_a_failed_question_again_and_a_failure_does_not_end_the_chat(reactflow, own):
    model = ScriptedChatModel(says("a1"), ProviderError("gone"), says("a2"))
    own(agent=SimpleReactAgent(model=model, memory=WindowChatMemory()))

    ended = reactflow("chat", "--agent", "own:agent", input=typed("q1", "q2", "/why", "/retry"))

    assert (ended.code, ended.out) == (0, "a1\nThe last turn failed. gone 'reactflow doctor' checks the server.\na2\n")
    assert "Error: gone" in ended.err
    assert [message.text for message in model.seen[2].messages[1:]] == ["q1", "a1", "q2"]


def test_retry_asks_an_own_agent_again(reactflow, own):
    own(agent=SimpleReactAgent(model=ScriptedChatModel(says("a1"), says("a2"))))

    assert reactflow("chat", "--agent", "own:agent", input=typed("/retry", "q", "/retry")).out == "a1\na2\n"


def test_a_script_sees_how_the_last_turn_ended(reactflow, own):
    own(agent=lambda: SimpleReactAgent(model=ScriptedChatModel(says("a"), ProviderError("gone"))))

    assert reactflow("chat", "--agent", "own:agent", input=typed("q")).code == 0
    assert reactflow("chat", "--agent", "own:agent", input=typed("q", "q")).code == 3


def test_a_draft_is_shown_where_its_revision_failed(reactflow, own):
    own(
        agent=ReflectionAgent(
            model=ScriptedChatModel(says("draft"), ProviderError("gone")),
            evaluator=lambda draft: False,
            on_revision_error="raise",
        )
    )

    ended = reactflow("chat", "--agent", "own:agent", input=typed("q"))

    assert (ended.code, ended.out) == (3, "draft\n")


def test_why_tells_how_the_last_answer_came_about(reactflow, own):
    def shout(word: str) -> str:
        """Say it loud."""
        return word.upper()

    replies = (calls("shout", word="hi"), says("bad", usage=Usage(10, 2)), says("good", usage=Usage(20, 2)))
    own(
        agent=ReflectionAgent(
            model=ScriptedChatModel(*replies),
            tools=[shout],
            evaluator=lambda draft: Judgement("good" in draft.text, "Make it good."),
        )
    )

    ended = reactflow("chat", "--agent", "own:agent", input=typed("Shout", "/why"))

    lines = ended.out.splitlines()
    assert [line.split(maxsplit=1) for line in lines if line.startswith(("stopped", "tool", "agent", "warning"))] == [
        ["stopped", "approved: The judge passed the answer."],
        ["tool", 'shout(word="hi"): HI'],
        ["agent", "over 34 tokens in 3 model calls"],
    ]
    assert [line.split(maxsplit=2)[2] for line in lines if line.startswith("draft")] == [
        "rejected: Make it good.",
        "approved: Make it good.",
    ]
    assert lines[-1].startswith("took")


def test_why_tells_of_warnings_and_drafts_that_nobody_judged(reactflow, own):
    def judge(draft):
        raise RuntimeError("the judge is ill")

    own(agent=ReflectionAgent(model=ScriptedChatModel(says("x")), evaluator=judge))

    ended = reactflow("chat", "--agent", "own:agent", input=typed("q", "/why"))

    assert "stopped judge_error: The judge failed, so nobody has judged this answer." in flat(ended)
    assert re.search(r"^draft 1 +not judged", ended.out, re.MULTILINE)


def test_the_tools_and_the_chain_of_the_agent_can_be_seen(reactflow):
    ended = reactflow("chat", "--reflect", "1", input=typed("/tools", "/advisors"))

    assert re.search(r"^weather +Current weather", ended.out, re.MULTILINE)
    assert "ChatMemoryAdvisor(order=-300)" in ended.out
    assert "model offline" in ended.out


def test_an_agent_without_tools_memory_or_chain_says_so(reactflow, own):
    class Foreign:
        async def astream(self, question):
            from reactflow.events import TextDelta

            yield TextDelta("hello", 1)

    own(agent=Foreign())

    ended = reactflow("chat", "--agent", "own:agent", input=typed("/tools", "/memory", "/advisors", "/clear", "q"))

    assert "No tools." in ended.out
    assert "This agent has no memory" in ended.out
    assert "Foreign object" in ended.out
    assert ended.out.endswith("hello\n")


def test_the_memory_of_an_own_agent_can_be_seen_and_cleared(reactflow, echo):
    ended = reactflow("chat", "--agent", "own:echo", input=typed("one", "/memory", "/clear", "two"))

    assert "Conversation 'chat': the model sees 2 messages." in ended.out
    assert ended.out.endswith("The conversation is forgotten.\ntwo\n")


def test_help_lists_the_commands_and_quit_ends_the_chat(reactflow, echo):
    ended = reactflow("chat", "--agent", "own:echo", input=typed("/help", "/quit", "not read"))

    for name in ("/tools", "/advisors", "/memory", "/clear", "/retry", "/save", "/why", "/quit"):
        assert re.search(rf"^{name} ", ended.out, re.MULTILINE)
    assert "not read" not in ended.out
    assert echo.seen == []


def test_an_unknown_command_is_not_sent_to_the_model(reactflow, echo):
    ended = reactflow("chat", "--agent", "own:echo", input=typed("/nothing here"))

    assert "There is no /nothing. Commands: /help /tools" in ended.err
    assert echo.seen == []


def test_a_conversation_is_saved_as_markdown_or_json_and_never_over_another_file(
    reactflow, echo, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    lines = ("/save", "北京", "/save a.md", "/save a.json", "/save a.md", "/save no/such/folder.md", "/save")

    ended = reactflow("chat", "--agent", "own:echo", "-c", "my/chat", input=typed(*lines))

    assert "There is nothing to save yet." in ended.out
    assert (tmp_path / "a.md").read_text("utf-8") == "# Conversation my/chat\n\n## You\n\n北京\n\n## Agent\n\n北京\n"
    assert [message["type"] for message in json.loads((tmp_path / "a.json").read_text("utf-8"))] == [
        "user_message",
        "assistant_message",
    ]
    assert "a.md is there already; give another name" in ended.out
    assert "no/such/folder.md cannot be written: No such file or directory." in ended.out
    assert len(list(tmp_path.glob("my-chat-*.md"))) == 1


def test_a_kept_conversation_is_saved_whole(reactflow, tmp_path):
    reactflow("chat", input=typed("What is the weather in Beijing?"))
    reactflow("chat", input=typed(f"/save {tmp_path / 'a.md'}"))

    assert (
        "## You\n\nWhat is the weather in Beijing?\n\n## Agent\n\nWeather (Beijing)" in (tmp_path / "a.md").read_text()
    )


def test_a_command_that_fails_does_not_end_the_chat(reactflow, own):
    class Broken(WindowChatMemory):
        async def clear(self, conversation_id):
            raise OSError("disk on fire")

    own(agent=SimpleReactAgent(model=ScriptedChatModel(says("still here")), memory=Broken()))

    ended = reactflow("chat", "--agent", "own:agent", input=typed("/clear", "q"))

    assert "Error: OSError: disk on fire." in ended.err
    assert ended.out == "still here\n"


def test_a_blocked_question_is_not_kept_and_its_retry_replaces_nothing(reactflow, own):
    guard = SafeGuardAdvisor(["secret"])
    model = ScriptedChatModel(says("a1"))
    own(agent=SimpleReactAgent(model=model, memory=WindowChatMemory(), advisors=[guard]))

    ended = reactflow("chat", "--agent", "own:agent", input=typed("q1", "the secret", "/memory"))

    assert "the model sees 2 messages" in ended.out
