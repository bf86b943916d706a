"""What a script says, as Flink takes it."""

from pathlib import Path

import pytest

from reactflow import ConfigurationError, WorkflowError
from reactflow.batch.job import JobStopped
from reactflow.batch.rows import Record
from reactflow.engines.flink_errors import explained
from reactflow.engines.flink_settings import FlinkSettings
from reactflow.engines.flink_sql import (
    MIXED_UP,
    as_json_row,
    check_of,
    columns_of,
    create_table,
    log_folder,
    plain_file,
    translate,
    ungrouped,
    with_connector,
    written_table,
)
from reactflow.engines.worker import Work
from reactflow.errors import SqlError
from reactflow.sql.dialect import read_table
from reactflow.sql.logs import COLUMNS
from reactflow.sql.tokens import split

AGENTS = {"a": "first", "b": "second"}
TYPE = "ROW<status STRING, response STRING>"
FAILED = f"ARRAY[CAST(ROW('FAILED', '{MIXED_UP.replace(chr(39), chr(39) * 2)}') AS {TYPE})]"


def only(text):
    (statement,) = split(text)
    return statement


def translated(text):
    return translate(only(text), AGENTS, lambda spec, call: f"{spec}_{'told' if call.debug else 'quiet'}")


def called(function, prompt, key):
    prompt, key = f"CAST({prompt} AS STRING)", f"CAST({key} AS STRING)"
    return f"UNNEST(IFNULL({function}({prompt}, {key})[MD5(CONCAT_WS('|', {key}, {prompt}))], {FAILED}))"


def test_a_call_becomes_an_async_function_whose_answer_is_checked_against_its_row():
    call = "LATERAL TABLE(AI_RUN_AGENT('a', CONCAT('x; ', q.t), q.id)) AS r(s, response)"
    unnested = called("first_quiet", "CONCAT('x; ', q.t)", "q.id")
    assert translated(f"SELECT q.id, r.response FROM q, {call} WHERE s = 'SUCCESS'") == (
        f"SELECT q.id, r.response FROM q CROSS JOIN {unnested} AS `r`(`s`, `response`) WHERE s = 'SUCCESS'"
    )


def test_the_other_forms_of_a_call_are_understood():
    call = "LATERAL TABLE(AI_RUN_AGENT(`b`, t, MAP['debug', 'true']))"
    unnested = called("second_told", "t", "NULL")
    assert translated(f"SELECT * FROM q LEFT JOIN {call} ON TRUE") == (
        f"SELECT * FROM q LEFT JOIN {unnested} AS `reactflow_r1`(`status`, `response`) ON TRUE"
    )
    unnested = called("first_quiet", "'hello'", "NULL")
    assert translated("SELECT * FROM TABLE(AI_RUN_AGENT('a', 'hello'))") == (
        f"SELECT * FROM (VALUES (0)) AS reactflow_one(n) CROSS JOIN {unnested} AS `reactflow_r1`(`status`, `response`)"
    )


def test_the_answer_of_one_agent_can_be_the_prompt_of_another():
    calls = "LATERAL TABLE(AI_RUN_AGENT('a', t)) AS x, LATERAL TABLE(AI_RUN_AGENT('b', x.response)) y"
    assert translated(f"SELECT y.response FROM q, {calls}") == (
        f"SELECT y.response FROM q CROSS JOIN {called('first_quiet', 't', 'NULL')} AS `x`(`status`, `response`) "
        f"CROSS JOIN {called('second_quiet', 'x.response', 'NULL')} AS `y`(`status`, `response`)"
    )


def test_what_calls_no_agent_stays_as_it_is():
    text = "SELECT `a` -- a comment\n  FROM q /* 中 */ WHERE t = ';'"
    assert translated(text) == text


LOG = f"CREATE TABLE `c`.`d`.`log` ({', '.join(f'`{name}` VARCHAR(2147483647) NOT NULL' for name in COLUMNS)}) "


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_log_table_is_a_folder_of_json_lines(scheme):
    shown = only(f"{LOG} WITH ('format' = 'json', 'connector' = 'filesystem', 'path' = '{scheme}/shared/log')")
    assert log_folder("log", shown) == Path("/shared/log")


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ("CREATE TABLE log (a INT) WITH ('connector' = 'filesystem')", "must have the columns agent_name, job_id"),
        ("CREATE VIEW log AS SELECT 1", "must have the columns"),
        (f"{LOG} WITH ('connector' = 'kafka', 'format' = 'json')", "must be a folder of JSON lines"),
        (f"{LOG} WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '/p')", "must be a folder of JSON lines"),
        (f"{LOG} WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 's3://b')", "every worker sees"),
        (f"{LOG} WITH ('connector' = 'filesystem', 'format' = 'json')", "leave out its options"),
    ],
)
def test_another_table_is_no_log_table(shown, words):
    with pytest.raises(ConfigurationError, match=words):
        log_folder("log", only(shown))


def plain(options, folder):
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return plain_file(read_table(only(f"CREATE TABLE t (id INT) WITH ({given})")), folder)


def test_a_table_of_one_file_is_that_of_the_engine_of_this_process(tmp_path):
    file = {"connector": "filesystem", "format": "csv"}
    assert plain({**file, "path": "claims.csv"}, tmp_path) == tmp_path / "claims.csv"
    assert plain({**file, "path": f"file://{tmp_path}/c.csv"}, Path("elsewhere")) == tmp_path / "c.csv"
    statement = only("CREATE TABLE t (id INT) WITH ('connector' = 'filesystem')")
    assert with_connector(statement, {"path": "p"}, instead=True) == "CREATE TABLE t (id INT) WITH ('path' = 'p')"


@pytest.mark.parametrize(
    "options",
    [
        {"path": "/shared/claims"},
        {"path": "s3://bucket/claims.csv"},
        {"path": "claims.csv", "csv.field-delimiter": ";"},
        {"path": "claims.csv", "format": "avro"},
        {"path": "folder.csv"},
        {},
        {"connector": "kafka"},
    ],
)
def test_what_only_flink_knows_is_left_to_it(options, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    assert plain({"connector": "filesystem", "format": "csv"} | options, tmp_path) is None


def test_the_check_tells_prompts_and_keys_apart_as_the_statement_does():
    assert check_of("row 1", "k1") == "dad0052b824e8fa1a979f0cabd67f76f"
    assert check_of("row 1", None) != check_of("row 1", "k1") != check_of("row 2", "k1")
    assert check_of(None, None) == "d41d8cd98f00b204e9800998ecf8427e"
    assert len(check_of("中\ud800", "k")) == 32


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("CREATE TABLE t (id INT, r ROW<a INT>)", "CREATE TABLE t (id INT, r ROW<a INT>) WITH ('path' = 'it''s')"),
        ("CREATE TABLE t AS SELECT 1 AS a", "CREATE TABLE t WITH ('path' = 'it''s') AS SELECT 1 AS a"),
        ("CREATE TABLE t (id INT) WITH ('connector' = 'kafka')", None),
        ("CREATE TABLE t (LIKE s)", None),
        ("CREATE TABLE t", None),
        ("CREATE VIEW t AS SELECT 1", None),
    ],
)
def test_a_table_that_does_not_say_where_it_is_gets_a_place(text, made):
    assert with_connector(only(text), {"path": "it's"}) == made


def test_a_table_is_made_from_the_columns_of_its_file():
    records = [
        Record(1, {"id": 1, "share": 1, "ok": True, "text": "a", "odd": 1, "none": None}),
        Record(2, {"id": 2, "share": 0.5, "ok": None, "text": None, "odd": True, "more": {"a": 1}}),
    ]
    columns = columns_of(records)
    assert columns == {
        "id": "BIGINT",
        "share": "DOUBLE",
        "ok": "BOOLEAN",
        "text": "STRING",
        "odd": "STRING",
        "none": "STRING",
        "more": "STRING",
    }
    assert (
        create_table("a`b", {"id": "BIGINT"}, {"path": "p"}) == "CREATE TABLE `a``b` (`id` BIGINT) WITH ('path' = 'p')"
    )


def test_a_row_with_a_flaw_is_a_row_of_nulls():
    assert as_json_row(Record(1, {"id": 1})) == {"id": 1}
    assert as_json_row(Record(2, {"id": 1}, "Row 2 is in no known encoding.")) == {}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1", "INSERT INTO a SELECT 1"),
        ("BEGIN STATEMENT SET", None),
        ("END", None),
        ("SELECT 1", "SELECT 1"),
    ],
)
def test_what_groups_statements_is_left_out(text, left):
    found = ungrouped(only(text))
    assert (None if found is None else found.text) == left


@pytest.mark.parametrize(
    "text", ["INSERT INTO t SELECT 1", "INSERT OVERWRITE c.d.`t` (id) VALUES (1)", "INSERT INTO d.t SELECT 1"]
)
def test_the_table_that_is_written_is_known(text):
    assert written_table(only(text)) == "t"


def test_settings_become_options_of_flink_and_given_options_win():
    settings = FlinkSettings(work=Work(concurrency=20), options={"parallelism.default": "7", "pipeline.name": "x"})
    options = settings.flink_options()
    assert options["restart-strategy.type"] == "fixed-delay"
    assert options["restart-strategy.fixed-delay.attempts"] == "3"
    assert options["restart-strategy.fixed-delay.delay"] == "10000 ms"
    assert options["python.fn-execution.bundle.size"] == "40"
    assert (options["parallelism.default"], options["pipeline.name"]) == ("7", "x")
    assert FlinkSettings(restarts=0).flink_options()["restart-strategy.type"] == "none"


@pytest.mark.parametrize(
    "wrong", [{"parallelism": 0}, {"bundle_rows": 0}, {"restarts": -1}, {"checkpoint_interval_s": 0}]
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="give numbers"):
        FlinkSettings(**wrong)


def test_an_error_of_the_planner_is_told_without_its_trace():
    trace = "org.apache.flink.table.api.ValidationException: SQL validation failed.\n\tat org.apache.X\n"
    error = RuntimeError(f"{trace}Caused by: org.apache.calcite.runtime.CalciteContextException: Column 'x' not found")
    found = explained(error, only("\nSELECT x"))
    assert isinstance(found, SqlError)
    assert str(found) == "line 2, column 1: Column 'x' not found\n  SELECT x\n  ^"
    assert "nothing" in str(explained(RuntimeError("nothing\nmore"), only("SELECT x")))
    assert "RuntimeError" in str(explained(RuntimeError(), only("SELECT x")))


@pytest.mark.parametrize(
    "around",
    [
        "org.apache.flink.runtime.client.JobExecutionException: Job execution failed.",
        "org.apache.flink.runtime.client.JobSubmissionException: Failed to submit JobGraph.",
        "org.apache.flink.table.api.TableException: Failed to execute sql",
    ],
)
def test_a_job_that_failed_is_not_the_statements_fault(around):
    trace = f"{around}\n\tat org.apache.X\nCaused by: org.apache.Y.NoResourceAvailableException: No slots.\n\tat z"
    found = explained(RuntimeError(trace), only("\nSELECT x"))
    assert isinstance(found, WorkflowError)
    assert "The job in line 2 failed: No slots." in str(found)


LOST = """org.apache.flink.runtime.client.JobExecutionException: Job execution failed.
Caused by: org.apache.flink.util.FlinkException: An OperatorEvent from an OperatorCoordinator to a task was lost.
Caused by: org.apache.flink.X.TaskNotRunningException: Task is not running, but in state FAILED
\tat org.apache.flink"""


def test_a_reason_that_flink_lost_is_the_last_word_of_a_worker():
    found = explained(RuntimeError(LOST), only("SELECT x"), "SpecError: 'house' needs a key: export KEY=...")
    assert isinstance(found, WorkflowError)
    assert str(found).endswith("The job in line 1 failed: SpecError: 'house' needs a key: export KEY=...")
    spent = explained(RuntimeError(LOST), only("SELECT x"), "JobStopped: 2.0000 of 2 dollars are spent.")
    assert (type(spent), str(spent)) == (JobStopped, "2.0000 of 2 dollars are spent.")
    assert "the log of its task manager has it" in str(explained(RuntimeError(LOST), only("SELECT x")))
    known = "Traceback (most recent call last):\nreactflow.errors.StoreError: The disk is full.\n"
    assert "The disk is full" in str(explained(RuntimeError(known), only("SELECT x"), "SpecError: of an earlier try"))


def test_money_that_is_used_up_is_told_as_such():
    trace = "Traceback (most recent call last):\n  File x\nException: (\"Error happens inside the class 'X' during "
    trace += "handling input '[1]'\", JobStopped('2.0000 of 2 dollars are spent; start it again to go on.'))\n\tat java"
    found = explained(RuntimeError(trace), only("SELECT x"))
    assert isinstance(found, JobStopped)
    assert (found.reason, str(found)) == ("cost_budget", "2.0000 of 2 dollars are spent; start it again to go on.")


def test_an_error_in_a_worker_is_told_by_its_last_line():
    trace = (
        "java.lang.RuntimeException: handling input '[secret prompt]'\nTraceback (most recent call last):\n  File x\n"
    )
    found = explained(RuntimeError(f"{trace}reactflow.errors.StoreError: The disk is full.\n"), only("SELECT x"))
    assert isinstance(found, WorkflowError)
    assert "The job in line 1 failed: StoreError: The disk is full." in str(found)
    assert "secret prompt" not in str(found)
    wrapped = """Exception: ("Error happens inside the class 'X' during handling input '['secret prompt', '7']'", """
    found = explained(RuntimeError(f"{trace}{wrapped}StoreError('The disk is full.'))\n\tat java.X"), only("SELECT x"))
    assert str(found).endswith("The job in line 1 failed: StoreError: The disk is full.")
    assert "no reason was given" in str(explained(RuntimeError("Traceback (most recent call last)"), only("SELECT x")))
