"""A run on a terminal and without one, from events made by hand."""

import io
import re
from dataclasses import dataclass

import pyte
import pytest
from rich.cells import cell_len
from rich.console import Console

from reactflow import AgentResult, Budget, Judgement, Price, Reflection, StopReason, Usage
from reactflow.cli.narrator import Narrator, call_arguments, excerpt, money, seconds, tokens
from reactflow.cli.progress import Progress
from reactflow.cli.terminal import ASCII, clean, is_live, make_console, on_terminal, one_line, say, symbols_for
from reactflow.cli.view import LiveView, PlainView, make_view
from reactflow.events import (
    DraftReady,
    Event,
    IterationStarted,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ReasoningDelta,
    RevisionStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    TextWithdrawn,
    ToolFinished,
    ToolStarted,
    VerdictGiven,
    WarningRaised,
)

HOSTILE = "\x1b]0;owned\x07\x1b[2J北京\x9b31m"


class Screen(io.StringIO):
    """A terminal that remembers what was written."""

    encoding = "utf-8"

    def isatty(self):
        return True


def terminal(width=80, height=24, **settings):
    return Console(
        file=Screen(), force_terminal=True, width=width, height=height, markup=False, highlight=False, **settings
    )


def plain_console():
    return make_console(io.StringIO())


def written(console):
    return console.file.getvalue()


def on_screen(console):
    """What a real terminal would show in the end."""
    screen = pyte.Screen(console.width, console.height)
    pyte.Stream(screen).feed(written(console).replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display if line.strip()]


def finished(round=1, role="agent", usage=None):
    return ModelFinished(round=round, role=role, model="m", usage=usage or Usage(10, 5), elapsed_s=1.25)


RUN = [
    RunStarted(run_id="r", question="q"),
    ModelStarted(round=1, role="agent", model="m"),
    ReasoningDelta("hm", 1),
    TextDelta("Let me look.", 1),
    TextWithdrawn(1),
    finished(),
    ToolStarted(call_id="1", name="weather", arguments='{"city": "北京", "days": 2}'),
    ToolStarted(call_id="2", name="broken", arguments="{"),
    ToolFinished(call_id="1", name="weather", text='{"sky":\n "晴 ☀️"}', is_error=False, elapsed_s=0.5),
    ToolFinished(call_id="2", name="broken", text="no JSON", is_error=True, elapsed_s=75.0),
    DraftReady(draft=1, text="Sunny in 北京 today."),
    VerdictGiven(draft=1, passed=False, feedback="Say\nwhen.", score=0.4),
    RevisionStarted(revision=1, feedback="Say when."),
    DraftReady(draft=2, text="Sunny in 北京 tomorrow."),
    finished(1, "judge", Usage(0, 0, unknown_calls=1)),
    ModelFailed(round=2, role="judge", model="m", error="ProviderError", elapsed_s=0.5),
    VerdictGiven(draft=2, passed=True, score=0.9),
    WarningRaised(text="An estimate."),
    RunFinished(result=AgentResult(text="Sunny in 北京 tomorrow.")),
]


def test_without_a_terminal_each_event_that_says_something_is_a_line():
    view = make_view(plain_console())
    for event in RUN:
        view.show(event)

    assert type(view) is PlainView
    assert written(view.console).splitlines() == [
        "● round 1 · m · 15 tokens · 1.2 s",
        '✓ weather(city="北京", days=2) · 0.50 s',
        '  {"sky": "晴 ☀️"}',
        "✗ broken({) · 1 min 15 s",
        "  no JSON",
        "◆ draft 1 · 18 characters",
        "✗ rejected · score 0.40",
        "  Say",
        "  when.",
        "↻ revision 1",
        "◆ draft 2 · 21 characters",
        "● judge round 1 · m · tokens unknown · 1.2 s",
        "✓ approved · score 0.90",
        "▲ An estimate.",
    ]


def test_on_a_terminal_the_rejected_draft_and_what_the_revision_changed_are_shown():
    view = LiveView(terminal(no_color=True))
    for event in RUN:
        view.show(event)

    lines = [line.strip() for line in written(view.console).splitlines()]
    text = "\n".join(lines)
    assert "Sunny in 北京 today." in lines[lines.index("\x1b[1m◆ draft 1\x1b[0m · 18 characters") + 1]
    assert "[-today-]" in text
    assert "{+tomorrow+}" in text


def test_colours_take_the_place_of_marks_where_there_are_colours():
    view = LiveView(terminal(color_system="standard"))
    for event in RUN:
        view.show(event)

    assert "[-" not in written(view.console)
    assert "\x1b[9;31mtoday\x1b[0m" in written(view.console)
    assert "\x1b[32mtomorrow\x1b[0m" in written(view.console)


@pytest.mark.parametrize("width", [10, 40, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_wide_characters_count_twice(width):
    view = LiveView(terminal(width, no_color=True, color_system=None))
    wide = "天气预报👨‍👩‍👧☂️ " * 40
    for event in [
        *RUN,
        WarningRaised(text=wide),
        ToolStarted(call_id="9", name="t", arguments=f'{{"a": "{wide}"}}'),
        ToolFinished(call_id="9", name="t", text=wide, is_error=False, elapsed_s=1),
        DraftReady(draft=3, text=wide),
        VerdictGiven(draft=3, passed=False, feedback=wide),
        TextDelta(wide, 9),
    ]:
        view.show(event)
    view.console.print(view._moving())

    assert max(cell_len(line) for line in written(view.console).splitlines()) <= width


def test_the_moving_part_shows_the_call_the_running_tools_the_text_and_what_was_used():
    console = terminal(60, color_system=None)
    view = LiveView(console, Progress(Budget(prices={"m": Price(input=1_000.0, output=0.0)})))
    for event in [
        ModelStarted(round=1, role="agent", model="m"),
        finished(usage=Usage(1_000, 234)),
        ToolStarted(call_id="1", name="weather", arguments='{"city": "北京"}'),
        ModelStarted(round=2, role="judge", model="m"),
        TextDelta("first line\nlast line", 2),
    ]:
        view.show(event)

    console.file.truncate(0)
    console.print(view._moving())
    lines = written(console).strip("\0").splitlines()

    assert lines[:2] == ["first line", "last line"]
    assert re.match(r' weather\(city="北京"\) \d+\.\d+ s', lines[2][1:])
    assert re.match(r" judge round 2 · 1,234 tokens · 1 call · \$1\.00 · \d+\.\d+ s", lines[3][1:])


def test_the_model_is_seen_thinking_until_it_writes():
    view = LiveView(terminal())
    for event in (ModelStarted(round=1, role="agent", model="m"), ReasoningDelta("hm")):
        view.show(event)
    assert "thinking" in view._status().plain

    view.show(TextDelta("So", 1))

    assert "thinking" not in view._status().plain


def test_only_the_end_of_a_long_text_is_drawn_so_that_a_low_terminal_is_not_overrun():
    view = LiveView(terminal(20, 8, color_system=None))
    view.show(TextDelta("\n".join(f"line {number}" for number in range(500)), 1))

    view.console.print(view._moving())

    lines = written(view.console).splitlines()
    assert [line.strip() for line in lines[:-1]] == ["line 496", "line 497", "line 498", "line 499"]


def test_text_that_was_taken_back_and_drafts_that_are_done_are_not_drawn_as_text():
    progress = Progress()
    for event in (TextDelta("a", 1), TextDelta("no", 2), TextWithdrawn(2), TextDelta("judge's", 1, "judge")):
        progress.take(event)
    assert progress.text == "a"

    progress.take(DraftReady(draft=1, text="a"))

    assert (progress.text, progress.drafts) == ("", ["a"])


async def test_the_moving_part_is_redrawn_while_nothing_happens_and_leaves_nothing_behind(until):
    view = make_view(terminal(40, color_system="standard"))

    async def redrawn():
        return written(view.console).count("slow()") > 3

    assert type(view) is LiveView

    async with view.running():
        view.show(ToolStarted(call_id="1", name="slow", arguments="{}"))
        await until(redrawn)
        view.show(ToolFinished(call_id="1", name="slow", text="done", is_error=False, elapsed_s=0.25))

    assert on_screen(view.console) == ["✓ slow() · 0.25 s", "  done"]
    assert written(view.console).rindex("\x1b[?25h") > written(view.console).rindex("\x1b[?25l")  # the cursor is back


async def test_an_error_inside_leaves_the_terminal_as_it_was():
    view = make_view(terminal())

    with pytest.raises(ValueError, match="boom"):
        async with view.running():
            raise ValueError("boom")

    assert "\x1b[?25h" in written(view.console)


def test_what_comes_from_outside_cannot_steer_the_terminal():
    view = LiveView(terminal(color_system=None))
    for event in [
        ToolStarted(call_id="1", name=HOSTILE, arguments=f'{{"a": "{HOSTILE}"}}'),
        TextDelta(HOSTILE, 1),
    ]:
        view.show(event)
    view.console.print(view._moving())
    for event in [
        finished(role=HOSTILE),
        ToolFinished(call_id="1", name=HOSTILE, text=HOSTILE, is_error=True, elapsed_s=1),
        DraftReady(draft=1, text=HOSTILE),
        VerdictGiven(draft=1, passed=False, feedback=HOSTILE),
        DraftReady(draft=2, text=HOSTILE + "x"),
        WarningRaised(text=HOSTILE),
    ]:
        view.show(event)

    assert "\x1b]" not in written(view.console)
    assert "\x1b[2J" not in written(view.console)
    assert "\x9b" not in written(view.console)
    assert "\x07" not in written(view.console)


def test_a_draft_that_did_not_change_and_one_written_anew_are_told():
    view = LiveView(terminal(color_system=None))
    for draft, text in enumerate(["same words here", "same words here", "完全不同的一段文字"], 1):
        view.show(DraftReady(draft=draft, text=text))

    assert "the same text again" in written(view.console)
    assert "written anew" in written(view.console)


@pytest.mark.parametrize("passed", [True, False])
def test_a_draft_that_nobody_judged_is_neither_approved_nor_rejected(passed):
    view = make_view(plain_console())
    view.show(VerdictGiven(draft=1, passed=passed, status="unjudged"))

    assert written(view.console) == "▲ not judged\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafTurned(Event):
    page_number: int
    words: str
    far_too_long: str = "x" * 100
    nothing: None = None


def test_events_of_workflows_and_of_a_user_are_told_by_their_name_and_short_facts():
    view = make_view(plain_console())
    view.show(IterationStarted(iteration=2, max_iterations=4))
    view.show(LeafTurned(page_number=3, words="hello"))

    assert written(view.console).splitlines() == [
        "● iteration started · iteration 2 · max iterations 4",
        "● leaf turned · page number 3 · words hello",
    ]


def test_a_terminal_without_unicode_gets_ascii():
    console = make_console(io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    view = make_view(console)

    view.show(WarningRaised(text="北京"))
    say(console, clean("☀"))

    console.file.flush()
    assert symbols_for(console) is ASCII
    assert console.file.buffer.getvalue() == b"! ??\n?\n"


def test_a_stream_that_was_closed_from_the_start_takes_what_is_written_and_shows_nothing():
    console = make_console(None)

    say(console, "hello")

    assert (console.file.getvalue(), on_terminal(console)) == ("hello\n", False)


def test_a_call_that_failed_is_not_shown_as_under_way_for_ever():
    view = LiveView(terminal())
    view.show(ModelStarted(round=1, role="judge", model="m"))
    assert "judge round 1" in view._status().plain

    view.show(ModelFailed(round=1, role="judge", model="m", error="ProviderError", elapsed_s=0.5))

    assert "judge" not in view._status().plain


def test_a_dumb_terminal_is_not_redrawn(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")

    assert not is_live(terminal())
    assert type(make_view(terminal())) is PlainView


def test_the_summary_says_why_the_run_ended_and_what_it_used():
    rejected = Reflection("a", Judgement(False))
    result = AgentResult(
        text="x",
        stop_reason=StopReason.MAX_REFLECTION_ROUNDS,
        usage=Usage(1_500, 332, model_calls=4),
        usage_by_role={"agent": Usage(1_200, 300), "judge": Usage(300, 32)},
        cost_usd=0.00123,
        rounds=2,
        reflections=(rejected, rejected),
        elapsed_s=4.23,
    )

    assert Narrator(ASCII).summary(result).plain == (
        "max reflection rounds - 2 rounds - 1 revision - 1,832 tokens (agent 1,500, judge 332) - $0.0012 - 4.2 s"
    )
    assert Narrator(ASCII).summary(AgentResult(text="x")).plain == "answered - 0.00 s"


@pytest.mark.parametrize(
    ("reason", "style"),
    [(StopReason.ANSWERED, "bold green"), (StopReason.NO_PROGRESS, "bold yellow"), (StopReason.BLOCKED, "bold yellow")],
)
def test_the_summary_is_green_only_where_all_is_well(reason, style):
    assert Narrator(ASCII).summary(AgentResult(text="x", stop_reason=reason)).spans[0].style == style


def test_small_facts_are_written_for_people():
    assert call_arguments('{"city": "北京", "nested": {"a": [1, null]}}') == 'city="北京", nested={"a": [1, null]}'
    assert (call_arguments(""), call_arguments("[1]"), call_arguments("[" * 9_999)[:3]) == ("", "[1]", "[[[")
    assert (money(None), money(0.5), money(12.345)) == ("", "$0.5000", "$12.35")
    assert (seconds(0.123), seconds(1.26), seconds(61)) == ("0.12 s", "1.3 s", "1 min 01 s")
    assert (tokens(Usage(0, 0, model_calls=0)), tokens(Usage(5, 0, unknown_calls=1))) == ("", "over 5 tokens")
    assert (excerpt("a\n" * 9), excerpt("a")) == ("a\na\na\na\na\na …", "a")
    assert (one_line("a\n b\tc"), one_line("abc", 2)) == ("a b c", "a…")
    assert clean("a\r\nb\x00\x1b\ud800") == "a\nb␀␛�"
