"""Ray Data: every row has its own answer, many at a time, and a job that is killed goes on where it was."""

import os
from pathlib import Path
from tempfile import mkdtemp

import pytest
from engines import (
    agent_at,
    assert_each_once,
    finish,
    kill_at,
    read_rows,
    repeated,
    serving,
    shortest_span_s,
    start,
    write_rows,
)

if os.environ.get("REACTFLOW_ENGINE") != "ray":
    pytest.skip("needs an environment with reactflow[ray], and REACTFLOW_ENGINE=ray", allow_module_level=True)


def test_two_hundred_slow_calls_overlap_and_each_row_has_its_own_answer(tmp_path):
    def run():
        folder = Path(mkdtemp(dir=tmp_path))
        write_rows(folder / "in.jsonl", 200)
        with serving(0.2) as server:
            finish(start("ray_job.py", server.url, folder, "", 100, "drafter"))
            calls = server.calls()
        answers = {row["id"]: (row["status"], row["response"]) for row in read_rows(folder / "out")}
        assert answers == {f"k{number}": ("SUCCESS", f"draft of row {number}") for number in range(200)}
        assert len(calls) == 200
        return calls

    assert shortest_span_s(run, below=2.5) < 2.5


@pytest.mark.parametrize("cached", [False, True])
def test_a_killed_job_goes_on_and_writes_each_approved_row_once(tmp_path, cached):
    write_rows(tmp_path / "in.jsonl", 1200)
    cache = tmp_path / "cache.db" if cached else ""
    with serving(0.2) as server:
        job = start("ray_job.py", server.url, tmp_path, cache, 50, "intake")
        before = kill_at(job, server, 1200)
        finish(start("ray_job.py", server.url, tmp_path, cache, 50, "intake"))
        calls = server.calls()

    rows = read_rows(tmp_path / "out")
    assert_each_once(rows, 1200, "response")
    assert {row["status"] for row in rows} == {"SUCCESS"}
    print(f"{len(before)} calls before, {len(calls)} in all, {repeated(calls)} repeated")
    # each row makes two calls; four batches of 25 rows are under way, and as many rows wait to be written
    assert repeated(calls) <= (50 if cached else 4 * 25 * 2 * 2)


def test_a_row_that_fails_is_a_row_with_a_status(tmp_path):
    write_rows(tmp_path / "in.jsonl", 4)
    with (tmp_path / "in.jsonl").open("a") as rows:
        rows.write('{"id": "k4", "text": "row 4 poison"}\n')
    with serving(0.01) as server:
        finish(start("ray_job.py", server.url, tmp_path, "", 10, "drafter"))

    statuses = {row["id"]: row["status"] for row in read_rows(tmp_path / "out")}
    assert statuses == {"k0": "SUCCESS", "k1": "SUCCESS", "k2": "SUCCESS", "k3": "SUCCESS", "k4": "FAILED"}


def test_a_spec_is_pickled_without_its_key():
    assert agent_at("http://127.0.0.1:9/v1", "drafter").model.connection.api_key == "${HOUSE_KEY}"
