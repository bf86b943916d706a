"""``reactflow ask``: the answer on standard output, all else on standard error, and an exit code."""

import asyncio
import json
import re
import signal

import pytest
import structlog

from reactflow import (
    AgentResult,
    Budget,
    Judgement,
    Price,
    ProviderError,
    ReflectionAgent,
    SimpleReactAgent,
    StopReason,
    Usage,
)
from reactflow.event_json import RunFailed, read_json_lines, result_from_json
from reactflow.events import RunFinished, TextDelta
from reactflow.loopback import LoopbackServer, reply_calls, reply_error, reply_text, stream_text
from reactflow.testing import ScriptedChatModel, calls, says


def shout(word: str) -> str:
    """Say it loud."""
    print("printed by a tool")
    return word.upper()


def reflecting(*replies, **settings):
    return ReflectionAgent(
        model=ScriptedChatModel(*replies),
        evaluator=lambda draft: Judgement("good" in draft.text, "Make it good."),
        **settings,
    )


def plain(*replies, **settings):
    return SimpleReactAgent(model=ScriptedChatModel(*replies), **settings)


def test_without_a_model_the_offline_one_answers_and_says_so(reactflow):
    ended = reactflow("ask", "What is the weather in Beijing today?")

    assert ended.code == 0
    assert "Beijing" in ended.out
    assert ended.err.startswith("There is no model: set OPENAI_API_KEY")
    assert '✓ weather(city="Beijing") · ' in ended.err
    assert ended.err.splitlines()[-1].startswith("answered · 2 rounds · ")


def test_standard_output_holds_the_answer_as_the_model_wrote_it(reactflow, own):
    own(agent=plain(calls("shout", word="hi"), says("HI\x1b[0m 北京"), tools=[shout]))

    ended = reactflow("ask", "Shout hi", "--agent", "own:agent", "--quiet")

    assert (ended.code, ended.out, ended.err) == (0, "HI\x1b[0m 北京\n", "printed by a tool\n")


def test_without_a_terminal_a_run_is_told_line_by_line(reactflow, own):
    own(
        agent=reflecting(
            says("Looking.") + calls("shout", word="hi") + calls("nothing"),
            says("bad", usage=Usage(10, 2)),
            says("good", usage=Usage(20, 2)),
            tools=[shout],
        )
    )

    ended = reactflow("ask", "Shout hi", "--agent", "own:agent")

    lines = [re.sub(r" · [\d.]+ s$", "", line) for line in ended.err.splitlines() if line[0] not in "●p"]
    assert lines[:1] == ["✗ nothing()"]
    assert lines[2:-1] == [
        '✓ shout(word="hi")',
        "  HI",
        "◆ draft 1 · 3 characters",
        "✗ rejected",
        "  Make it good.",
        "↻ revision 1",
        "◆ draft 2 · 4 characters",
        "✓ approved",
    ]
    assert lines[-1] == "approved · 3 rounds · 1 revision · over 34 tokens"
    assert ended.out == "good\n"


def test_the_question_may_be_piped_in(reactflow, own):
    model = ScriptedChatModel(says("a"), says("b"))
    own(agent=SimpleReactAgent(model=model))

    assert reactflow("ask", "--agent", "own:agent", input="first\n").out == "a\n"
    assert reactflow("ask", "-", "--agent", "own:agent", input="second").out == "b\n"
    assert [request.run.question.text.strip() for request in model.seen] == ["first", "second"]


def test_json_is_the_whole_result_and_what_a_tool_prints_goes_to_standard_error(reactflow, own):
    own(agent=plain(calls("shout", word="hi"), says("北京"), tools=[shout]))

    ended = reactflow("ask", "Shout hi", "--agent", "own:agent", "--json")

    result = result_from_json(ended.out)
    assert (ended.code, result.text, result.rounds, result.stop_reason) == (0, "北京", 2, StopReason.ANSWERED)
    assert json.loads(ended.out)["text"] == "北京"
    assert "printed by a tool" in ended.err


def test_events_are_json_lines_that_can_be_read_back(reactflow, own):
    own(agent=plain(says("Hello there")))

    ended = reactflow("ask", "Hi", "--agent", "own:agent", "--events")

    events = list(read_json_lines(ended.out.splitlines()))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello there"
    assert isinstance(events[-1], RunFinished)
    assert events[-1].text == "Hello there"


def test_json_and_events_cannot_be_had_together(reactflow):
    ended = reactflow("ask", "Hi", "--json", "--events")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "Error: --json and --events both want standard output; the last event holds the result.\n"


def test_a_provider_error_is_one_paragraph_with_the_next_step_and_ends_with_3(reactflow, own):
    error = ProviderError("The server\n  is gone.")
    own(agent=plain(error))

    ended = reactflow("ask", "Hi", "--agent", "own:agent", "--events")

    assert ended.code == 3
    assert ended.err == "Error: The server is gone. 'reactflow doctor' checks the server.\n"
    assert list(read_json_lines(ended.out.splitlines()))[-1] == RunFailed(error="ProviderError", message=str(error))


def test_json_of_a_failure_leaves_standard_output_empty(reactflow, own):
    own(agent=plain(ProviderError("gone")))

    ended = reactflow("ask", "Hi", "--agent", "own:agent", "--json")

    assert (ended.code, ended.out) == (3, "")


def test_debug_shows_the_traceback(reactflow, own):
    own(agent=lambda: plain(ZeroDivisionError("by zero")))

    short = reactflow("ask", "Hi", "--agent", "own:agent")
    debug = reactflow("ask", "Hi", "--agent", "own:agent", "--debug")

    assert (short.code, debug.code) == (1, 1)
    assert short.err == "Error: ZeroDivisionError: by zero. Run it again with --debug to see where.\n"
    assert "Traceback (most recent call last)" in debug.err


@pytest.mark.parametrize("format", ["--quiet", "--json"])
def test_a_limit_prints_the_best_answer_and_ends_with_4(reactflow, own, format):
    own(agent=reflecting(says("bad", usage=Usage(50, 50)), says("never asked")))

    ended = reactflow("ask", "Hi", "--agent", "own:agent", "--budget-tokens", "100", format)

    text = result_from_json(ended.out).text if format == "--json" else ended.out.strip()
    assert (ended.code, text) == (4, "bad")


def test_a_limit_before_any_answer_says_which_option_it_was(reactflow):
    ended = reactflow("ask", "What is the weather in Beijing?", "--budget-tokens", "1")

    assert (ended.code, ended.out) == (4, "")
    assert ended.err.endswith("Raise it in Budget(...). On the command line that is --budget-tokens.\n")


def test_an_error_after_a_draft_still_prints_the_draft(reactflow, own):
    own(agent=reflecting(says("bad"), ProviderError("gone"), on_revision_error="raise"))

    ended = reactflow("ask", "Hi", "--agent", "own:agent")

    assert (ended.code, ended.out) == (3, "bad\n")
    assert "Error: gone" in ended.err


def test_money_is_shown_only_where_prices_are_known(reactflow, own):
    reply = says("x", usage=Usage(1_000_000, 100_000))
    own(free=plain(reply), paid=plain(reply, budget=Budget(prices={"*": Price(input=1.0, output=2.0)})))

    assert "$" not in reactflow("ask", "Hi", "--agent", "own:free").err
    assert "1,100,000 tokens · $1.20 · " in reactflow("ask", "Hi", "--agent", "own:paid").err


def test_options_of_a_run_keep_what_the_agent_has_of_its_own(reactflow, own):
    budget = Budget(max_seconds=60, prices={"*": Price(input=1.0, output=2.0)})
    model = ScriptedChatModel(calls("shout", word="a"), says("A", usage=Usage(0, 1)))
    own(agent=SimpleReactAgent(model=model, tools=[shout], budget=budget))

    ended = reactflow("ask", "Hi", "--agent", "own:agent", "--budget-tokens", "99", "--max-rounds", "1", "--json")

    assert (ended.code, result_from_json(ended.out).stop_reason) == (4, StopReason.MAX_ROUNDS)
    used = model.seen[0].run.meter.budget
    assert (used.max_tokens, used.max_seconds, used.prices) == (99, 60, budget.prices)


class Foreign:
    """Not reactflow's, but it has astream."""

    def __init__(self, *events):
        self.events = events

    async def astream(self, question):
        for event in self.events:
            yield event


def test_anything_with_astream_can_be_asked(reactflow, own):
    own(
        whole=Foreign(TextDelta("x", 1), RunFinished(result=AgentResult(text="whole"))),
        pieces=Foreign(TextDelta("by ", 1), TextDelta("pieces", 1)),
        silent=Foreign(),
    )

    assert reactflow("ask", "Hi", "--agent", "own:whole").out == "whole\n"
    assert reactflow("ask", "Hi", "--agent", "own:pieces").out == "by pieces\n"
    assert reactflow("ask", "Hi", "--agent", "own:silent").code == 2


def test_a_real_server_is_asked_by_model_and_base_url_with_system_prompt_tools_and_judge(reactflow, own, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    own(shout=shout)
    with LoopbackServer(
        reply_calls(("shout", {"word": "hi"})),
        stream_text("He", "llo"),
        reply_text('{"passed": false, "feedback": "Louder."}'),
        stream_text("HELLO"),
        reply_text('{"passed": true}'),
    ) as server:
        ended = reactflow(
            *("ask", "Hi", "--base-url", server.base_url, "--model", "m", "--judge-model", "j", "--system", "Be loud."),
            *("--tool", "own:shout"),
        )
        bodies = [request.body for request in server.requests]

    assert (ended.code, ended.out) == (0, "HELLO\n")
    assert [body["model"] for body in bodies] == ["m", "m", "j", "m", "j"]
    assert bodies[0]["messages"][0]["content"].endswith("Be loud.")
    assert [tool["function"]["name"] for tool in bodies[0]["tools"]] == ["shout"]
    assert "✗ rejected\n  Louder.\n" in ended.err
    assert "There is no model" not in ended.err


def test_a_server_error_is_told_with_exit_code_3(reactflow):
    with LoopbackServer(reply_error(401, "bad key")) as server:
        ended = reactflow("ask", "Hi", "--base-url", server.base_url)

    assert ended.code == 3
    assert "The credentials for model 'gpt-5-mini'" in ended.err


def test_reflect_0_calls_no_judge_and_a_judge_without_reflection_is_refused(reactflow):
    assert "draft" not in reactflow("ask", "What is the weather in Beijing?", "--reflect", "0").err
    ended = reactflow("ask", "Hi", "--reflect", "0", "--judge-model", "offline")
    assert (ended.code, "--judge-model judges nothing with --reflect 0" in ended.err) == (2, True)


def test_reflect_judges_with_the_same_model_where_no_other_is_named(reactflow):
    ended = reactflow("ask", "Write at least 60 words about the weather in Beijing.", "--reflect", "1")

    assert ended.code == 0
    assert "✗ rejected" in ended.err
    assert ended.err.splitlines()[-1].startswith("approved · ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--max-rounds", "0"), "max_rounds=0"),
        (("--budget-tokens", "0"), "max_tokens=0"),
        (("--budget-seconds", "-1"), "max_seconds=-1"),
        (("--reflect", "-1"), "max_reflection_rounds=-1"),
        (("--base-url", "nonsense"), "'nonsense' must begin with http"),
        (("--model", "gpt-5-mini"), "Set OPENAI_API_KEY"),
        (("--max-rounds", "two"), "Invalid value for '--max-rounds'"),
        (("--agent", "own:agent", "--model", "m", "--tool", "a:b"), "leave out --model, --tool"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_to_write(reactflow, own, arguments, complaint):
    own(agent=plain())

    ended = reactflow("ask", "Hi", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert complaint in " ".join(ended.err.replace("│", " ").split())


def test_a_blank_question_is_wrong_use(reactflow):
    assert reactflow("ask", " ").code == 2
    assert reactflow("ask", input="").code == 2


def test_logs_go_to_standard_error_and_debug_lines_only_where_wanted(reactflow, own):
    def chatty(word: str) -> str:
        """Say it."""
        structlog.get_logger("own").warning("tool.slow", word=word)
        structlog.get_logger("own").debug("tool.detail")
        return word

    own(agent=lambda: plain(calls("chatty", word="hi"), says("hi"), tools=[chatty]))

    short = reactflow("ask", "Hi", "--agent", "own:agent")
    debug = reactflow("ask", "Hi", "--agent", "own:agent", "--debug")

    assert short.out == debug.out == "hi\n"
    assert "[warning  ] tool.slow" in short.err
    assert "tool.detail" not in short.err
    assert "tool.detail" in debug.err


def test_an_interrupt_ends_with_130_and_cancels_the_run(reactflow, own):
    cancelled = []

    class Interrupting:
        name = "interrupting"

        async def complete(self, request):
            try:
                signal.raise_signal(signal.SIGINT)
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

    own(agent=SimpleReactAgent(model=Interrupting()))

    ended = reactflow("ask", "Hi", "--agent", "own:agent")

    assert (ended.code, ended.out, cancelled) == (130, "", [True])
    assert ended.err.endswith("Interrupted.\n")
