"""The main demo, and what the demos share."""

import re

import pytest

from reactflow import AgentResult, Attempt, ConfigurationError, OpenAIChatModel, StopReason, WorkflowResult
from reactflow.demos._common import choose_model, finish, line, show, told, watch, wrapped
from reactflow.demos.weather_report import main
from reactflow.events import RunFinished, TextDelta, ToolFinished, VerdictGiven, WarningRaised
from reactflow.messages import Usage
from reactflow.offline_model import OfflineChatModel


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ([], ["Question: Using the weather in Beijing", 'weather {"city": "Beijing"}', "asks for at least 200"]),
        (["--zh"], ["Question: 请你根据北京今天的天气", 'weather {"city": "北京"}', "问题要求不少于 200 字"]),
    ],
)
def test_the_report_shows_one_rejection_with_its_reason_and_a_revision_that_is_accepted(
    arguments: list[str], facts: list[str], capsys: pytest.CaptureFixture[str]
):
    main(arguments)

    shown = capsys.readouterr().out
    assert shown.splitlines()[0].startswith("Offline model, rules and no AI, because OPENAI_API_KEY is not set. ")
    assert all(fact in shown for fact in facts)
    steps = [
        "round 1",
        "round 2",
        "draft 1",
        "draft 1 rejected",
        "revision 1",
        "round 3",
        "draft 2",
        "draft 2 accepted",
    ]
    assert sorted(steps, key=shown.index) == steps
    assert (shown.count(" rejected"), shown.count(" accepted")) == (1, 1)
    assert re.fullmatch(
        r"approved: 3 rounds, 1 revision; tokens: agent \d+ in \+ \d+ out, judge \d+ in \+ \d+ out; \d+\.\d\d s",
        shown.splitlines()[-1],
    )


def test_another_question_gives_other_calls_and_another_answer(capsys: pytest.CaptureFixture[str]):
    main(["What is the weather", "in Rome?"])

    shown = capsys.readouterr().out
    assert "Question: What is the weather in Rome?" in shown
    assert 'weather {"city": "Rome"}' in shown
    assert "Beijing" not in shown
    assert "approved: 2 rounds, 0 revisions" in shown


def test_a_key_chooses_the_model_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    monkeypatch.setenv("REACTFLOW_MODEL", "qwen-plus")

    model = choose_model()

    assert isinstance(model, OpenAIChatModel)
    assert (model.name, capsys.readouterr().out) == ("qwen-plus", "Model: qwen-plus\n")


@pytest.mark.parametrize("key", [None, "", "  "])
def test_without_a_key_the_first_line_says_offline_and_the_way_to_a_real_model(
    key: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    if key is not None:
        monkeypatch.setenv("OPENAI_API_KEY", key)

    assert isinstance(choose_model(), OfflineChatModel)
    assert "export OPENAI_API_KEY=... (and OPENAI_BASE_URL, REACTFLOW_MODEL)" in capsys.readouterr().out


def test_what_goes_wrong_is_one_line_and_an_exit_status():
    def broken():
        yield TextDelta("a")
        raise ConfigurationError("The question is blank.")

    with pytest.raises(SystemExit, match=r"^ConfigurationError: The question is blank\.$"):
        watch(broken())


@pytest.mark.parametrize("passed", [True, False])
def test_a_draft_that_nobody_judged_is_neither_accepted_nor_rejected(capsys: pytest.CaptureFixture[str], passed: bool):
    show(VerdictGiven(draft=1, passed=passed, status="unjudged"))

    assert capsys.readouterr().out == "  verdict  draft 1 not judged\n"


def test_errors_and_warnings_are_shown(capsys: pytest.CaptureFixture[str]):
    show(ToolFinished(call_id="1", name="weather", text="no such city", is_error=True, elapsed_s=0.1))
    show(WarningRaised(text="careful"))
    show(TextDelta("hidden"))

    assert capsys.readouterr().out == "  error    no such city\n  warning  careful\n"


def test_the_last_line_sums_up_the_run(capsys: pytest.CaptureFixture[str]):
    usage = {"agent": Usage(1, 2), "judge": Usage(0, 0, unknown_calls=1)}
    result = AgentResult(
        text="Answer", stop_reason=StopReason.JUDGE_ERROR, usage_by_role=usage, rounds=1, elapsed_s=1.234
    )

    watch(iter([RunFinished(result=result)]))
    first = capsys.readouterr().out
    finish(result)

    assert first == capsys.readouterr().out
    assert first.splitlines()[2] == "Answer"
    assert first.splitlines()[-1] == (
        "judge_error: 1 round, 0 revisions; tokens: agent 1 in + 2 out, judge 0 in + 0 out (+ 1 call unknown); 1.23 s"
    )
    assert told(Usage(3, 4)) == "3 in + 4 out"


def test_the_revisions_of_a_workflow_are_counted_by_its_attempts(capsys: pytest.CaptureFixture[str]):
    attempts = tuple(Attempt(draft=draft) for draft in ("One", "Two", "Answer"))

    finish(WorkflowResult(text="Answer", stop_reason=StopReason.APPROVED, rounds=3, attempts=attempts))

    assert capsys.readouterr().out.splitlines()[-1].startswith("approved: 3 rounds, 2 revisions; ")


def test_lines_are_wrapped_by_columns_and_chinese_takes_two():
    assert wrapped("one two three", 10) == ["one two ", "three"]
    assert wrapped("北京今天的天气", 10) == ["北京今天", "的天气"]
    assert wrapped("x" * 100, 50) == ["x" * 40, "x" * 40, "x" * 20]
    assert wrapped("", 50) == [""]


def test_a_long_text_is_cut_with_an_ellipsis(capsys: pytest.CaptureFixture[str]):
    line("text", "a\nb\nc", at_most=2)
    line("text", "")

    assert capsys.readouterr().out == "  text     a\n           b …\n  text     \n"
