"""Flink: every row has its own answer, many at a time, and a job that is killed goes on where it was."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest
from engines import (
    OBJECTS,
    PATIENCE_S,
    assert_each_once,
    finish,
    kill,
    kill_at,
    read_rows,
    repeated,
    serving,
    shortest_span_s,
    start,
    wait_until,
    write_rows,
)
from flink_cluster import cluster

if os.environ.get("REACTFLOW_ENGINE") != "flink":
    pytest.skip("needs an environment with reactflow[flink], and REACTFLOW_ENGINE=flink", allow_module_level=True)


def answers_in(tmp_path):
    return {row["id"]: (row["status"], row["answer"]) for row in read_rows(tmp_path / "out.jsonl")}


@pytest.mark.parametrize("mode", ["script", "stream"])
def test_two_hundred_slow_calls_overlap_and_each_row_has_its_own_answer(tmp_path, mode):
    def run():
        folder = Path(mkdtemp(dir=tmp_path))
        write_rows(folder / "in.jsonl", 200)
        with serving(0.2) as server:
            finish(start("flink_job.py", mode, server.url, folder, ""))
            calls = server.calls()
        assert answers_in(folder) == {f"k{number}": ("SUCCESS", f"draft of row {number}") for number in range(200)}
        assert len(calls) == 200
        return calls

    assert shortest_span_s(run, below=2.5) < 2.5


def test_a_row_never_gets_the_answer_of_another_one_even_where_the_engine_mixes_them_up(tmp_path):
    write_rows(tmp_path / "in.jsonl", 50)
    with serving(0.05) as server:
        finish(start("flink_job.py", "unmended", server.url, tmp_path, ""))

    answers = answers_in(tmp_path)
    right = {f"k{number}": ("SUCCESS", f"draft of row {number}") for number in range(50)}
    mixed = [key for key in answers if answers[key] != right[key]]
    assert len(answers) == 50
    assert {answers[key] for key in mixed} <= {
        ("FAILED", "The engine handed this row's call the data of another row; nothing was taken from it.")
    }
    print(f"{len(mixed)} of 50 were mixed up")


@pytest.mark.parametrize("cached", [False, True])
def test_a_killed_job_goes_on_and_writes_each_approved_row_once(tmp_path, cached):
    write_rows(tmp_path / "in.jsonl", 1200)
    cache = tmp_path / "cache.db" if cached else ""
    with serving(0.2) as server:
        before = kill_at(start("flink_job.py", "kept", server.url, tmp_path, cache), server, 1200)
        finish(start("flink_job.py", "kept", server.url, tmp_path, cache))
        calls = server.calls()

    assert_each_once(read_rows(tmp_path / "out.jsonl"), 1200)
    print(f"{len(before)} calls before, {len(calls)} in all, {repeated(calls)} repeated")
    assert repeated(calls) <= (50 if cached else 400)
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_job_that_is_killed_when_all_rows_are_written_goes_on_and_asks_for_nothing_again(tmp_path):
    write_rows(tmp_path / "in.jsonl", 300)
    with serving(0.2) as server:
        job = start("flink_job.py", "kept", server.url, tmp_path, "")
        written, whole = (tmp_path / "kept").glob, tmp_path / "out.jsonl"
        wait_until(lambda: whole.exists() or any(written("*/tables/answers/part-*")), job)
        kill(job)
        if not whole.exists():  # else it was faster than the kill
            finish(start("flink_job.py", "kept", server.url, tmp_path, ""))
        calls = server.calls()

    assert_each_once(read_rows(tmp_path / "out.jsonl"), 300)
    assert (len(calls), repeated(calls)) == (600, 0)


def test_the_script_of_the_page_on_sql_runs_unchanged_and_with_a_key_that_is_written_out(tmp_path):
    write_claims(tmp_path)
    with serving(0.01) as server:
        done = run_page(tmp_path, server, "-e", "SELECT COUNT(*) AS n FROM claims_approved", "--format", "json")
        calls = server.calls()

    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "a.csv").read_text() == "id,claim\n1,draft of description=hail; image=a\n"
    assert json.loads(done.stdout) == {"n": 1}
    assert [kind for kind, _, _ in calls] == ["draft", "critique"]


def test_on_a_cluster_the_key_is_that_of_its_own_environment(tmp_path):
    write_claims(tmp_path)
    variable = "REACTFLOW_CONNECTION_HOUSE_API_KEY"
    with serving(0.01) as server:
        with cluster(tmp_path / "with", **{variable: "its own"}) as port:
            done = run_page(tmp_path, server, *remote(port))
            assert done.returncode == 0, done.stderr[-3000:]
            assert (tmp_path / "a.csv").read_text() == "id,claim\n1,draft of description=hail; image=a\n"
            assert len(server.calls()) == 2
        with cluster(tmp_path / "without") as port:
            done = run_page(tmp_path, server, *remote(port))
            assert done.returncode == 1, f"{done.returncode}: {done.stderr[-3000:]}"
            words = f"needs the environment variable {variable}, which is not set"
            assert words in " ".join(done.stderr.split()), done.stderr[-3000:]
            assert len(server.calls()) == 2


def remote(port):
    options = ("execution.target=remote", "rest.address=127.0.0.1", f"rest.port={port}", "restart-strategy.type=none")
    return [word for option in options for word in ("--flink", option)]


def write_claims(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "sql.md"
    (tmp_path / "claims.sql").write_text(re.findall(r"^```sql\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)[0])
    claims = [{"id": 1, "description": "hail", "image_url": "a"}, {"id": 2, "description": "雹", "image_url": None}]
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(claim) + "\n" for claim in claims) + "garbage\n")


def run_page(tmp_path, server, *more):
    command = [sys.executable, "-m", "reactflow", "sql", tmp_path / "claims.sql", "--engine", "flink"]
    command += ["--endpoint", server.url, "--set", "house.api-key=written-out"]
    command += ["--table", f"claims_submitted={tmp_path}/claims.jsonl"]
    command += ["--output", f"claims_approved={tmp_path}/a.csv", *more]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


FILES = """
CREATE TABLE q (id STRING, `text` STRING) WITH ('connector' = 'filesystem', 'path' = 'in.csv', 'format' = 'csv');
CREATE TABLE answers (id STRING, answer STRING) WITH ('connector' = 'filesystem', 'path' = 'out.csv', 'format' = 'csv');
CREATE TABLE agent_log (
  agent_name STRING NOT NULL, job_id STRING NOT NULL, request_id STRING NOT NULL, statement_name STRING NOT NULL,
  iteration INT NOT NULL, type STRING NOT NULL, data STRING NOT NULL, metrics STRING
);
INSERT INTO answers SELECT q.id, r.response FROM q,
LATERAL TABLE(AI_RUN_AGENT('intake', q.`text`, q.id, 'agent_log')) AS r WHERE r.status = 'SUCCESS';
SELECT request_id, COUNT(*) AS replies FROM agent_log WHERE type = 'model_response' GROUP BY request_id;
"""


def test_the_log_table_and_the_files_of_a_script_are_those_of_the_engine_of_this_process(tmp_path):
    (tmp_path / "s.sql").write_text(OBJECTS.format(url="http://127.0.0.1:9/v1") + FILES)
    (tmp_path / "in.csv").write_text("id,text\nk1,row 1 灾情\nk2,row 2 bad\n", "utf-8")
    with serving(0.01) as server:
        done = run_sql(tmp_path, server, "--output", f"agent_log={tmp_path}/log.jsonl", "--format", "json")
        calls = server.calls()

    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "out.csv").read_text("utf-8") == "id,answer\nk1,draft of row 1 灾情\n"
    counted = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["request_id"]: row["replies"] for row in counted} == {"k1": 2, "k2": 4}
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
    replies = [row for row in rows if row["type"] == "model_response"]
    assert len(replies) == len(calls) == 6
    drafts = [(row["request_id"], row["iteration"], row["data"]) for row in replies if row["agent_name"] == "drafter"]
    assert sorted(drafts) == [
        ("k1", 1, "draft of row 1 灾情"),
        ("k2", 1, "draft of row 2 bad"),
        ("k2", 2, "draft of row 2 bad"),
    ]
    outcomes = {row["request_id"]: json.loads(row["data"])["status"] for row in rows if row["type"] == "outcome"}
    assert outcomes == {"k1": "SUCCESS", "k2": "MAX_ITERATIONS"}
    assert {row["statement_name"] for row in rows} == {"statement-9"}


def test_a_job_whose_money_is_used_up_stops_and_goes_on_when_it_is_started_again(tmp_path):
    script = OBJECTS.format(url="http://127.0.0.1:9/v1") + FILES.replace(", 'agent_log'", "")
    (tmp_path / "s.sql").write_text(script)
    (tmp_path / "in.csv").write_text("id,text\n" + "".join(f"k{each},row {each}\n" for each in range(20)))
    options = ("--checkpoints", tmp_path / "kept", "--cache", tmp_path / "paid.db", "-j", "2", "--price", "*=1/1")
    options += ("--flink", "restart-strategy.type=none")
    with serving(0.01) as server:
        stopped = run_sql(tmp_path, server, *options, "--budget-usd", "0.00015")
        before = len(server.calls())
        finished = run_sql(tmp_path, server, *options, "--budget-usd", "1")
        calls = server.calls()

    assert stopped.returncode == 4, f"{stopped.returncode}: {stopped.stderr[-3000:]}"
    assert "of 0.00015 dollars are spent" in stopped.stderr
    assert 10 <= before <= 14  # 15 tokens a call; two rows of two calls are under way when ten calls are paid for
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 21
    assert (len(calls), repeated(calls)) == (40, 0)


def run_sql(tmp_path, server, *more):
    command = [sys.executable, "-m", "reactflow", "sql", tmp_path / "s.sql", "--engine", "flink"]
    command += ["--endpoint", server.url, *more]
    variables = {**os.environ, "HOUSE_KEY": "k"}
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=variables
    )


def test_a_row_that_fails_is_a_row_with_a_status(tmp_path):
    write_poisoned(tmp_path)
    with serving(0.01) as server:
        finish(start("flink_job.py", "script", server.url, tmp_path, ""))

    statuses = {key: status for key, (status, _) in answers_in(tmp_path).items()}
    assert statuses == {"k0": "SUCCESS", "k1": "SUCCESS", "k2": "SUCCESS", "bad": "FAILED"}


def test_a_row_that_may_end_the_job_ends_it_after_the_restarts_that_were_allowed(tmp_path):
    write_poisoned(tmp_path)
    with serving(0.01) as server:
        told = finish(start("flink_job.py", "poison", server.url, tmp_path, ""), code=1)
        poisoned = [row for _, row, _ in server.calls() if "poison" in row]

    assert "WorkflowError: Row 'bad' failed, and handle_exception is 'fail'" in told
    assert len(poisoned) == 2
    assert not (tmp_path / "out.jsonl").exists()


def write_poisoned(tmp_path):
    write_rows(tmp_path / "in.jsonl", 3)
    with (tmp_path / "in.jsonl").open("a") as rows:
        rows.write('{"id": "bad", "text": "row 9 poison"}\n')


def test_rows_that_arrive_while_the_job_runs_are_answered(tmp_path):
    (tmp_path / "watched").mkdir()
    write_rows(tmp_path / "watched" / "first.jsonl", 2)
    with serving(0.01) as server:
        job = start("flink_job.py", "endless", server.url, tmp_path, "")
        try:
            wait_for_rows(job, tmp_path / "out", 2)
            write_rows(tmp_path / "second", 3, "row 1{}")
            (tmp_path / "second").rename(tmp_path / "watched" / "second.jsonl")
            rows = wait_for_rows(job, tmp_path / "out", 5)
        finally:
            kill(job)

    assert sorted(row["answer"] for row in rows) == [f"draft of row {number}" for number in (0, 1, 10, 11, 12)]


def wait_for_rows(job, folder, count):
    return wait_until(lambda: len(rows := read_rows(folder)) >= count and rows, job, lambda: read_rows(folder))
