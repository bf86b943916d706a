"""What outlives a Flink job."""

import json
import os
from pathlib import Path

import pytest

from reactflow import ConfigurationError
from reactflow.engines.flink_state import JobFolder


def part(folder, table, name, *rows):
    path = folder.table(table) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def stopped(place, script="s", tables=None):
    """A folder as a job that was killed leaves it."""
    folder = JobFolder(place, script, tables or {})
    return folder.__enter__()


def test_the_same_script_finds_its_folder_again_and_another_one_does_not(tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text("{}\n")
    first = stopped(tmp_path, tables={"q": file}).path
    assert stopped(tmp_path, tables={"q": file}).path == first
    assert stopped(tmp_path, script="t", tables={"q": file}).path != first
    file.write_text('{"id": 1}\n')
    assert stopped(tmp_path, tables={"q": file}).path != first


def test_a_folder_goes_when_its_script_has_ended_and_stays_when_it_failed(tmp_path):
    with JobFolder(tmp_path, "s", {}) as kept:
        pass
    assert not kept.path.exists()
    with pytest.raises(KeyError), JobFolder(tmp_path, "s", {}) as kept:
        raise KeyError
    assert kept.path.is_dir()
    with pytest.raises(KeyError), JobFolder(None, "s", {}) as passing:
        raise KeyError
    assert not passing.path.exists()


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"file/.* cannot be made"):
        stopped(tmp_path / "file")


def test_input_is_copied_once_as_json_lines_and_a_line_that_is_none_is_a_row_of_nulls(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("id,text\n1,中\n2\n", "utf-8")
    folder = stopped(tmp_path / "kept")
    copy, columns = folder.read("q/1", file)
    assert copy.name == "q%2f1.jsonl"
    assert copy.read_text("utf-8") == '{"id": "1", "text": "中"}\n{}\n'
    assert columns == {"id": "STRING", "text": "STRING"}
    copy.write_text("kept")
    assert folder.read("q/1", file)[0].read_text() == "kept"


def test_the_newest_whole_checkpoint_is_the_one_to_go_on_from(tmp_path):
    folder = stopped(tmp_path)
    assert folder.begin(1, "t") is None
    for number in (1, 2, 10):
        (folder.checkpoints(1) / "job" / f"chk-{number}").mkdir(parents=True)
    for number in (1, 2):
        (folder.checkpoints(1) / "job" / f"chk-{number}" / "_metadata").touch()
    assert folder.begin(1, "t") == folder.checkpoints(1) / "job" / "chk-2"


def test_a_statement_that_begins_anew_removes_only_what_it_had_written_itself(tmp_path):
    folder = stopped(tmp_path)
    earlier = part(folder, "t", "part-a-0-0", {"id": 1})
    folder.begin(2, "t")
    own = part(folder, "t", "part-b-0-0", {"id": 2})
    assert folder.begin(2, "t") is None
    assert (earlier.exists(), own.exists()) == (True, False)
    folder.empty("t")
    assert not earlier.exists()


def test_a_finished_statement_is_known_to_be(tmp_path):
    folder = stopped(tmp_path)
    folder.begin(3, "t")
    assert not folder.is_done(3, "t")
    folder.mark_done(3)
    assert stopped(tmp_path).is_done(3, "t")


def test_a_statement_whose_file_has_its_last_name_is_finished_though_its_job_was_killed_before_its_end(
    tmp_path,
):
    folder = stopped(tmp_path)
    part(folder, "t", "part-a-0-0", {"id": 1})
    assert not folder.is_done(2, "t")  # the file is that of another statement: this one has not begun
    folder.begin(2, "t")
    part(folder, "t", ".part-b-0-0.inprogress.c", {"id": 2})
    part(folder, "t", "part-c.jsonl", {"id": 3})  # what an agent logs there
    assert not folder.is_done(2, "t")
    part(folder, "t", "part-b-0-0", {"id": 2})
    assert folder.is_done(2, "t")
    assert not folder.is_done(2, "u")


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
def test_a_table_is_written_whole_and_in_order_without_what_is_not_committed(tmp_path, name):
    folder = stopped(tmp_path / "kept")
    for at, number in enumerate((10, 9, 2)):
        path = part(folder, "t", f"part-x-0-{number}", {"id": number})
        os.utime(path, ns=(at // 2, at // 2))
    part(folder, "t", ".part-x-0-11.inprogress", {"id": 11})
    folder.write("t", tmp_path / name)
    if name == "out.parquet":
        import pyarrow.parquet

        assert pyarrow.parquet.read_table(tmp_path / name).to_pylist() == [{"id": 9}, {"id": 10}, {"id": 2}]
    else:
        expected = {"out.jsonl": '{"id": 9}\n{"id": 10}\n{"id": 2}\n', "out.csv": "id\n9\n10\n2\n"}
        assert (tmp_path / name).read_text() == expected[name]


def test_a_line_that_a_killed_worker_left_unfinished_is_no_row(tmp_path):
    folder = stopped(tmp_path)
    log = part(folder, "log", "part-a", {"id": 1})
    log.write_text(log.read_text() + '{"id": 2')
    assert list(folder.rows("log")) == [{"id": 1}]


def test_each_run_has_a_purse_of_its_own(tmp_path):
    folder = stopped(tmp_path)
    first, second = folder.purse(2.5), folder.purse(2.5)
    assert (first.limit_usd, list(Path(first.folder).iterdir())) == (2.5, [])
    assert first.folder != second.folder
    assert folder.purse(None) is None
    with pytest.raises(ConfigurationError, match="dollars above 0"):
        folder.purse(0.0)
