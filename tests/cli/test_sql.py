"""``reactflow sql`` as a user meets it."""

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from reactflow.cli.app import app
from reactflow.loopback import reply_calls, reply_error, reply_text
from reactflow.testing import LoopbackServer

OBJECTS = """CREATE CONNECTION house
WITH ('type' = 'openai', 'endpoint' = 'https://example.org/v1', 'api-key' = 'sk-written-out');
CREATE MODEL m WITH ('connection' = 'house', 'model_version' = 'gpt-4o');
CREATE AGENT extractor USING MODEL m USING PROMPT 'You extract.';
CREATE TABLE claims (id INT, text STRING);
CREATE TABLE answers (id INT, status STRING, answer STRING);
INSERT INTO answers SELECT id, status, response FROM claims, LATERAL TABLE(AI_RUN_AGENT('extractor', text));
"""


@pytest.fixture
def server():
    def respond(request):
        return reply_text(f"said: {request.body['messages'][-1]['content']}")

    with LoopbackServer(respond=respond) as made:
        yield made


@pytest.fixture
def script(tmp_path):
    (tmp_path / "claims.csv").write_text("id,text\n1,hail\n2,中文\n3,\n", "utf-8")
    path = tmp_path / "claims.sql"
    path.write_text(OBJECTS)
    return path


def test_a_script_runs_from_files_to_files_on_the_server_that_is_named(reactflow, server, script, tmp_path):
    ended = reactflow(
        "sql",
        str(script),
        *("--table", f"claims={tmp_path / 'claims.csv'}", "--output", f"answers={tmp_path / 'answers.jsonl'}"),
        *("--endpoint", f"{server.base_url}/chat/completions"),
    )

    assert (ended.code, ended.out) == (0, "")
    assert "3 rows written." in ended.err
    assert "3 rows; 1 FAILED, 2 SUCCESS; 2 model calls" in ended.err
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text("utf-8").splitlines()]
    assert [row["answer"] for row in rows] == ["said: hail", "said: 中文", "The prompt is NULL, so nothing was asked."]
    assert "sk-written-out" not in ended.err


def test_a_job_whose_every_row_failed_ends_with_1(reactflow, script, tmp_path):
    ended = reactflow(
        "sql",
        str(script),
        *("--table", f"claims={tmp_path / 'claims.csv'}", "--output", f"answers={tmp_path / 'answers.jsonl'}"),
        *("--endpoint", "http://127.0.0.1:9/v1/chat/completions"),
    )

    assert ended.code == 1
    assert "3 rows; 3 FAILED" in ended.err


@pytest.mark.parametrize("order", [("bad", "good"), ("good", "bad")])
def test_a_statement_of_which_one_call_failed_for_every_row_ends_with_1(reactflow, script, tmp_path, order):
    def respond(request):
        return reply_error(400, "bad") if "You fail." in str(request.body["messages"]) else reply_text("fine")

    calls = ", ".join(f"LATERAL TABLE(AI_RUN_AGENT('{agent}', text)) AS {agent}(s, r)" for agent in order)
    script.write_text(
        OBJECTS.split("CREATE TABLE answers")[0] + "CREATE AGENT bad USING MODEL m USING PROMPT 'You fail.';"
        "CREATE AGENT good USING MODEL m USING PROMPT 'You answer.';"
        f"SELECT id, good.s, bad.s FROM claims, {calls} WHERE text IS NOT NULL"
    )
    with LoopbackServer(respond=respond) as server:
        given = ("--table", f"claims={tmp_path / 'claims.csv'}", "--endpoint", server.base_url, "--format", "csv")
        ended = reactflow("sql", str(script), *given)

    assert (ended.code, ended.out.splitlines()[1:]) == (1, ["1,SUCCESS,FAILED", "2,SUCCESS,FAILED"])
    summaries = [line.split(";")[1].strip() for line in ended.err.splitlines() if line.startswith("2 rows; ")]
    assert summaries == [{"bad": "2 FAILED", "good": "2 SUCCESS"}[agent] for agent in order]


def test_results_for_programs_hold_every_text_and_every_number(reactflow):
    query = "SELECT 'a' || chr(13) || '\"b\"' AS a, 'nan'::DOUBLE AS b, MAP {DATE '2026-01-02': 1} AS c"

    told = reactflow("sql", "-e", query, "--format", "json")
    lines = reactflow("sql", "-e", query, "--format", "csv").out

    assert json.loads(told.out) == {"a": 'a\r"b"', "b": None, "c": {"2026-01-02": 1}}
    assert list(csv.reader(io.StringIO(lines, newline="")))[1][:2] == ['a\r"b"', "nan"]


@pytest.mark.parametrize("format", ["json", "csv"])
def test_results_for_programs_are_utf_8_whatever_the_terminal_writes(format):
    ended = CliRunner(charset="ascii").invoke(app, ["sql", "-e", "SELECT '中' AS a", "--format", format])

    assert "中" in ended.stdout_bytes.decode()


def test_results_are_a_table_json_or_csv_on_standard_output(reactflow):
    query = "SELECT 1 AS a, '中' AS b, NULL AS c"

    table = reactflow("sql", "-e", query).out
    assert all(word in table for word in ("a", "中", "NULL"))
    assert json.loads(reactflow("sql", "-e", query, "--format", "json").out) == {"a": 1, "b": "中", "c": None}
    assert reactflow("sql", "-e", query, "--format", "csv").out == "a,b,c\n1,中,\n"


def test_a_long_table_is_cut_with_a_word_about_the_rest(reactflow):
    ended = reactflow("sql", "-e", "SELECT * FROM range(1200)")

    assert "200 more rows; --format json prints them all." in ended.err


def test_a_script_from_standard_input_and_statements_after_it(reactflow):
    ended = reactflow(
        "sql", "-", "-e", "SELECT a + 1 FROM t", "--format", "csv", input="CREATE TABLE t AS SELECT 41 AS a"
    )

    assert ended.out.splitlines()[1] == "42"


def test_an_error_shows_line_column_and_the_spot_and_ends_with_2(reactflow, tmp_path):
    path = tmp_path / "x.sql"
    path.write_text("SHOW AGENTS;\nCREATE AGENT x\nUSING MODEL nothing USING PROMPT 'p'")

    ended = reactflow("sql", str(path))

    assert ended.code == 2
    assert ended.err.splitlines()[-3:] == [
        "Error: line 3, column 13: There is no model 'nothing'; there is: none.",
        "  USING MODEL nothing USING PROMPT 'p'",
        "              ^",
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "There is nothing to run"),
        (["none.sql"], "none.sql cannot be read"),
        (["-e", "SELECT 1", "--table", "t"], "write it like 'claims=claims.jsonl'"),
        (["-e", "SELECT 1", "--table", "t=none.csv"], "There is no file none.csv"),
    ],
)
def test_wrong_use_is_one_paragraph_and_exit_code_2(reactflow, given, words):
    ended = reactflow("sql", *given)

    assert (ended.code, words in ended.err) == (2, True)


def test_our_objects_are_shown_with_their_keys_masked(reactflow, script):
    create = OBJECTS.split("CREATE MODEL")[0]

    ended = reactflow("sql", "-e", create, "-e", "SHOW CREATE CONNECTION house; DESCRIBE CONNECTION house", "--debug")

    assert "******" in ended.out
    assert "sk-written-out" not in ended.out + ended.err


def test_a_function_of_ones_own_is_a_tool(reactflow, own):
    def price(city: str) -> str:
        return f"1000 in {city}"

    own(price=price)
    tool = "CREATE TOOL price USING FUNCTION price WITH ('type' = 'function'); SHOW TOOLS"

    assert "price" in reactflow("sql", "-e", tool, "--function", "price=own:price").out


def test_paid_answers_are_kept_and_warnings_are_told(reactflow, server, script, tmp_path):
    twice = "CREATE AGENT r USING AGENTS extractor, extractor WITH ('type' = 'reflection')"
    given = ("sql", str(script), "-e", twice, "--cache", str(tmp_path / "answers.db"), "--endpoint", server.base_url)
    table = ("--table", f"claims={tmp_path / 'claims.csv'}")

    first = reactflow(*given, *table)
    again = reactflow(*given, *table, "--quiet")

    assert "drafter and critic are the same" in first.err
    assert len(server.requests) == 2
    assert "rows written" not in again.err


def test_what_a_function_prints_does_not_stand_among_the_rows_of_a_result(reactflow, own):
    def price(city: str) -> str:
        print("looking up", city)
        return "1000"

    own(price=price)
    script = """CREATE TOOL price USING FUNCTION price WITH ('type' = 'function');
        CREATE CONNECTION house WITH ('type' = 'openai', 'endpoint' = 'https://example.org/v1', 'api-key' = 'sk-1');
        CREATE MODEL m WITH ('connection' = 'house', 'model_version' = 'gpt-4o');
        CREATE AGENT clerk USING MODEL m USING PROMPT 'You tell prices.' USING TOOLS price;
        SELECT response FROM LATERAL TABLE(AI_RUN_AGENT('clerk', 'What is it?'))"""
    with LoopbackServer(reply_calls(("price", {"city": "Rome"})), reply_text("1000 in Rome")) as server:
        given = ("--function", "price=own:price", "--endpoint", server.base_url, "--format", "json")
        ended = reactflow("sql", "-e", script, *given)

    assert (ended.code, ended.out) == (0, '{"response": "1000 in Rome"}\n'), ended.err
    assert "looking up Rome" in ended.err
