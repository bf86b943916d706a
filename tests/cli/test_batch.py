"""``reactflow batch`` as a user meets it."""

import json
import sqlite3

import pytest
from rich.console import Console
from typer.testing import CliRunner

from reactflow.batch.calls import Spending
from reactflow.batch.job import Report
from reactflow.batch.sinks import Sink
from reactflow.budget import Price
from reactflow.cli import job_view
from reactflow.cli.app import app
from reactflow.cli.job_options import pairs
from reactflow.errors import ConfigurationError
from reactflow.loopback import reply_text
from reactflow.messages import Usage
from reactflow.testing import LoopbackServer, ScriptedChatModel, says

TOML = """
[connections.house]
type = "openai"
endpoint = "https://example.org/v1"
api-key = "a-key-written-out"
[models.m]
connection = "house"
model_version = "gpt-4o"
[agents.extractor]
model = "m"
prompt = "You extract."
[agents.critic]
model = "m"
prompt = "You review."
[agents.intake]
type = "reflection"
agents = ["extractor", "critic"]
max_iterations = 2
"""

SQL = """
CREATE CONNECTION house WITH ('type' = 'openai', 'endpoint' = 'https://example.org/v1', 'api-key' = 'a-key');
CREATE MODEL m WITH ('connection' = 'house', 'model_version' = 'gpt-4o');
CREATE AGENT extractor USING MODEL m USING PROMPT 'You extract.';
CREATE TABLE unrelated (id INT); SELECT nonsense FROM nowhere;
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "in.jsonl").write_text(
        '{"id": 1, "prompt": "你好", "n": 2}\n{"id": 2, "prompt": "b", "n": 3}\n', "utf-8"
    )
    return tmp_path


@pytest.fixture
def run(reactflow, files):
    """Run the command on the file of two rows."""
    return lambda *given, output="out.jsonl": reactflow("batch", str(files / "in.jsonl"), str(files / output), *given)


def written(files):
    return [json.loads(line) for line in (files / "out.jsonl").read_text("utf-8").splitlines()]


def test_a_function_is_an_agent_and_the_report_goes_to_standard_error(run, own, files):
    own(shout=lambda prompt: prompt.upper())

    ended = run("--agent", "own:shout")

    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("2 rows; 2 SUCCESS; ")
    assert [row["response"] for row in written(files)] == ["你好", "B"]


def test_a_prompt_of_columns_a_key_and_a_format_by_name(run, own, files):
    own(echo=lambda prompt: prompt)

    ended = run("--agent", "own:echo", "--prompt", "{n}: {prompt}", "--key", "n", "--quiet", output="out.csv")

    assert (ended.code, ended.err) == (0, "")
    assert [line.split(",")[4] for line in (files / "out.csv").read_text("utf-8").splitlines()] == [
        "response",
        "2: 你好",
        "3: b",
    ]


def test_a_second_run_takes_the_answers_from_the_cache_beside_the_output(run, own, files):
    asked = []

    def agent(prompt):
        asked.append(prompt)
        return prompt

    own(agent=agent)
    run("--agent", "own:agent")

    assert "2 from the answer cache" in run("--agent", "own:agent").err
    assert len(asked) == 2
    assert (files / "out.jsonl.cache").exists()
    run("--agent", "own:agent", "--cache", "none")
    run("--agent", "own:agent", "--cache-key", "another")
    assert len(asked) == 6


def test_an_agent_that_a_function_or_a_class_makes(run, own, files):
    class Model(ScriptedChatModel):
        def __init__(self):
            super().__init__(says("one", usage=Usage(10, 5)), says("two", usage=Usage(10, 5)), name="m")

    own(make=lambda: Model(), Model=Model)

    for agent in ("own:make", "own:Model"):
        ended = run("--agent", agent, "--cache", "none", "-j", "1", "--price", "m=1000000/0")
        assert "2 model calls, " in ended.err
        assert "$20" in ended.err
        assert [row["metadata"]["cost_usd"] for row in written(files)] == [10.0, 10.0]


def test_specs_from_toml_run_on_the_server_that_is_named(run, files):
    (files / "claims.toml").write_text(TOML)

    def respond(request):
        review = "APPROVED" in json.dumps(request.body)
        return reply_text(
            '{"verdict": "APPROVED", "confidence": 1, "issues": [], "suggestions": ""}' if review else "draft"
        )

    with LoopbackServer(respond=respond) as server:
        ended = run("--agent", str(files / "claims.toml"), "--endpoint", server.base_url, "--only-approved")
        server.assert_legal()

    assert ended.code == 0, ended.err
    assert [(row["response"], row["metadata"]["stop_reason"]) for row in written(files)] == [("draft", "approved")] * 2
    assert "a-key" not in json.dumps(written(files)) + ended.err


def test_specs_from_sql_and_one_agent_of_several_by_name(run, files):
    (files / "claims.sql").write_text(SQL)
    (files / "claims.toml").write_text(TOML)
    for agent in (files / "claims.sql", f"{files / 'claims.toml'}:critic"):
        with LoopbackServer(respond=lambda request: reply_text("said")) as server:
            ended = run("--agent", str(agent), "--set", f"house.endpoint={server.base_url}")
        assert (ended.code, written(files)[0]["response"]) == (0, "said")


def test_a_job_where_every_row_failed_ends_with_1(run, own):
    def fails(prompt):
        raise RuntimeError(prompt)

    own(fails=fails)

    ended = run("--agent", "own:fails")

    assert (ended.code, "2 FAILED" in ended.err) == (1, True)


def test_a_failing_row_may_end_the_job(run, own, files):
    def fails(prompt):
        raise RuntimeError(prompt)

    own(fails=fails)

    ended = run("--agent", "own:fails", "--handle-exception", "fail")

    assert ended.code == 1
    assert "Row '1' failed" in ended.err
    assert not (files / "out.jsonl").exists()


def test_the_report_for_programs_is_json_on_standard_output(run, own):
    own(echo=lambda prompt: prompt)

    report = json.loads(run("--agent", "own:echo", "--json").out)

    assert (report["rows"], report["by_status"], report["cost_usd"]) == (2, {"SUCCESS": 2}, None)


def test_the_report_for_programs_is_utf_8_whatever_the_terminal_writes(own, files):
    own(echo=lambda prompt: prompt)
    with (files / "in.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": 3, "prompt": "c", "说明": 1}\n')
    command = ["batch", str(files / "in.jsonl"), str(files / "out.csv"), "--agent", "own:echo", "--json"]

    ended = CliRunner(charset="ascii").invoke(app, command)

    assert "说明" in json.loads(ended.stdout_bytes)["warnings"][0]


@pytest.mark.parametrize(
    ("output", "given", "words"),
    [
        ("none/out.jsonl", [], "There is no folder"),
        ("folder.jsonl", [], "is a folder; name a file"),
        ("in.jsonl", [], "is the file that is read"),
        ("out.xls", [], "its name does not say what is in it"),
        ("out.jsonl", ["--prompt", "text"], "There is no column 'text'"),
        ("out.jsonl", ["--concurrency", "0"], "concurrency=0"),
    ],
)
def test_an_output_that_cannot_be_leaves_no_cache_behind(run, own, files, output, given, words):
    own(echo=lambda prompt: prompt)
    (files / "folder.jsonl").mkdir()

    ended = run("--agent", "own:echo", *given, output=output)

    assert (ended.code, words in ended.err) == (2, True), ended.err
    assert not list(files.rglob("*.cache"))


def test_an_output_that_another_job_writes_leaves_no_cache_behind(run, own, files):
    own(echo=lambda prompt: prompt)
    with Sink(files / "out.jsonl"):
        ended = run("--agent", "own:echo")

    assert (ended.code, "Another job is writing" in ended.err) == (2, True)
    assert not list(files.rglob("*.cache"))


def test_a_job_that_runs_out_of_money_ends_with_4_and_goes_on_later(run, own, files):
    own(model=ScriptedChatModel(says("one", usage=Usage(10, 0)), says("two", usage=Usage(10, 0)), name="m"))
    given = ("--agent", "own:model", "-j", "1", "--price", "*=1000000/0", "--budget-usd")

    ended = run(*given, "5")
    assert ended.code == 4
    assert "start it again to go on" in ended.err

    assert run(*given, "100").code == 0
    assert [row["response"] for row in written(files)] == ["one", "two"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--agent", "own:none"], "has no 'none'"),
        (["--agent", "none.toml"], "none.toml cannot be read"),
        (["--agent", "none.sql"], "none.sql cannot be read"),
        (["--agent", "own:number"], "cannot answer"),
        (["--agent", "own:echo", "--prompt", "text"], "There is no column 'text'; the first row has: id, prompt, n"),
        (["--agent", "own:echo", "--price", "m=cheap"], "write dollars for a million tokens"),
        (["--agent", "own:echo", "--price", "m"], "write it like 'gpt-4o=2.5/10'"),
        (["--agent", "own:echo", "--budget-usd", "1"], "needs prices"),
        (["--agent", "own:echo", "--concurrency", "0"], "concurrency=0"),
        (["--agent", "own:echo", "--requests-per-minute", "0"], "lets nothing through"),
        (["--agent", "own:echo", "--row-seconds", "0"], "give seconds above 0"),
        (["--agent", "own:model", "--only-approved"], "Nobody reviews"),
    ],
)
def test_wrong_use_is_one_paragraph_and_exit_code_2(run, own, given, words):
    own(echo=lambda prompt: prompt, number=7, model=ScriptedChatModel())

    ended = run(*given)

    assert ended.code == 2, ended.err
    assert words in ended.err


def test_a_cache_that_is_something_else_is_told(run, own, files):
    own(echo=lambda prompt: prompt)
    (files / "x").write_text("text " * 100)

    ended = run("--agent", "own:echo", "--cache", str(files / "x"))

    assert (ended.code, "Delete it, or name another with --cache" in ended.err) == (1, True)


def test_a_warning_of_the_files_is_shown(run, own, files):
    own(echo=lambda prompt: prompt)
    with (files / "in.jsonl").open("a") as file:
        file.write('{"id": 3, "prompt": "c", "more": 1}\n')

    assert "Warning: The output has no column for 'more'" in run("--agent", "own:echo", output="out.csv").err


def test_a_critic_that_is_its_own_drafter_is_warned_of(run, files):
    (files / "x.toml").write_text(TOML.replace('["extractor", "critic"]', '["critic", "critic"]'))
    ended = run("--agent", f"{files / 'x.toml'}:intake", "--handle-exception", "fail", "--row-seconds", "0.01")

    assert "drafter and critic are the same" in ended.err


def test_the_cache_is_an_ordinary_database(run, own, files):
    own(echo=lambda prompt: prompt)
    run("--agent", "own:echo")

    with sqlite3.connect(files / "out.jsonl.cache") as database:
        assert database.execute("SELECT key, response FROM finished ORDER BY key").fetchall() == [
            ("1", "你好"),
            ("2", "b"),
        ]
    database.close()


# ------------------------------------------------------------------------------------------------ the view


def report(**more):
    spending = Spending({"*": Price(input=1, output=1)})
    spending.cost_usd = 1.25
    return Report(rows=1200, spending=spending, fraction=0.25, elapsed_s=10.0, **more)


def test_progress_tells_rows_failures_money_and_the_time_left():
    words = job_view.progress_words(report(by_status={"FAILED": 3, "SUCCESS": 1197}))

    assert words.startswith("1,200 rows, 3 failed, $1.25, ")
    assert words.endswith(" left")
    assert job_view.time_left(report()) == 30.0
    assert job_view.time_left(Report()) is None
    assert job_view.progress_words(Report(rows=1)) == "1 row"


def test_a_terminal_shows_a_bar_and_takes_it_away_again():
    console = Console(force_terminal=True, width=60, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with job_view.Bar(console) as bar:
        bar.show(report())
        bar.show(report())
        shown = bar._progress.tasks[0]
    console.file.close()

    assert (shown.completed, shown.description.split(",")[0]) == (0.25, "1")


def test_without_a_terminal_a_line_comes_now_and_then(capsys):
    import sys

    with job_view.Lines(Console(file=sys.stderr, width=100), every_s=0.0) as lines:
        lines.show(report())
    with job_view.Lines(Console(file=sys.stderr), every_s=60.0) as lines:
        lines.show(report())

    assert capsys.readouterr().err.count("1,200 rows") == 1


def test_pairs_have_something_on_both_sides():
    assert pairs("--set", ["a.b = c=d"], "x") == [("a.b", "c=d")]
    with pytest.raises(ConfigurationError):
        pairs("--set", ["=b"], "x")
