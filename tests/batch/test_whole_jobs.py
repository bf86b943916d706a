"""From one file to another: nothing is lost on the way, and what cannot work is said before anything is paid for."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reactflow.batch.job import JobSettings, run_batch
from reactflow.batch.rows import Asking
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import open_source
from reactflow.errors import ConfigurationError, StoreError
from reactflow.specs.running import AgentRunner


@pytest.fixture
def job(tmp_path):
    """Run a job from one file to another, and return the rows of the output and the prompts that were asked."""

    async def run(source, output, *, prompt="p"):
        asked = run.asked = []

        async def agent(text):
            asked.append(text)
            return text.upper()

        rows, sink = open_source(tmp_path / source), Sink(tmp_path / output)
        settings = JobSettings(concurrency=1)
        run.report = await run_batch(AgentRunner(agent), rows, sink, asking=Asking(prompt), settings=settings)
        return [dict(record.data) for record in open_source(tmp_path / output)]

    return run


def without_metadata(row):
    return {name: value for name, value in row.items() if name != "metadata"}


FORMATS = ["out.jsonl", "out.csv", "out.parquet"]


@pytest.mark.parametrize("output", FORMATS)
async def test_a_short_first_row_costs_the_others_nothing(tmp_path, job, output):
    (tmp_path / "in.csv").write_text("id,p,note\n1,a\n2,b,keep me\n")

    first, second = await job("in.csv", output)

    assert (first["id"], first["status"]) == ("1", "FAILED")
    assert (second["id"], second["note"], second["response"]) == ("2", "keep me", "B")
    assert job.report.warnings == []


@pytest.mark.parametrize("output", FORMATS)
async def test_a_thousand_rows_that_cannot_be_read_cost_the_others_nothing(tmp_path, job, output):
    (tmp_path / "in.jsonl").write_text("no JSON\n" * 1_001 + '{"id": 7, "p": "a"}\n')

    *unread, last = await job("in.jsonl", output)

    assert {row["status"] for row in unread} == {"FAILED"}
    assert (len(unread), str(last["id"]), last["p"], last["response"]) == (1_001, "7", "a", "A")
    assert job.report.warnings == []


@pytest.mark.parametrize("output", FORMATS)
@pytest.mark.parametrize("source", ["in.jsonl", "in.csv", "in.parquet"])
async def test_columns_that_are_called_like_the_added_ones_are_kept_whatever_else_there_is(
    tmp_path, job, source, output
):
    row = {"status": "new", "input_status": "old", "input_input_status": "oldest", "response": "said", "p": "a"}
    with Sink(tmp_path / source) as sink:
        sink.write(row)
    if source == "in.parquet":  # where a sink adds its own
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / source)

    (out,) = await job(source, output)

    assert without_metadata(out) == {
        "input_input_input_status": "new",
        "input_status": "old",
        "input_input_status": "oldest",
        "input_response": "said",
        "p": "a",
        "status": "SUCCESS",
        "response": "A",
    }


async def test_a_short_row_has_its_columns_under_the_names_of_the_others(tmp_path, job):
    (tmp_path / "in.csv").write_text("status,p,input_status\nnew,a,old\nnewer,b\n")

    first, second = await job("in.csv", "out.jsonl")

    assert (first["input_input_status"], first["input_status"]) == ("new", "old")
    assert (second["input_input_status"], "input_status" in second) == ("newer", False)


@pytest.mark.parametrize("output", ["out.csv", "out.jsonl", "out.parquet"])
async def test_a_column_that_comes_late_does_not_change_the_names_of_the_others(tmp_path, job, output):
    late = '{"id": 1, "p": "a", "status": "open"}\n{"id": 2, "p": "b", "status": "shut", "input_status": "x"}\n'
    (tmp_path / "in.jsonl").write_text(late)

    rows = await job("in.jsonl", output)

    assert [row["input_status"] for row in rows] == ["open", "shut"]
    if output == "out.csv":
        warning = "The output has no column for 'input_status', so it was left out; JSON lines keep it."
        assert job.report.warnings == [warning]
    else:
        assert (rows[1]["input_input_status"], job.report.warnings) == ("x", [])


async def test_what_parquet_knows_and_json_does_not_is_null(tmp_path, job):
    numbers = pa.array([float("nan"), float("inf"), 0.5])
    pq.write_table(
        pa.table({"p": ["a", "b", "c"], "x": numbers, "y": [[1.5], [float("-inf")], []]}), tmp_path / "in.pq"
    )

    rows = await job("in.pq", "out.jsonl", prompt="{p} {x}")

    assert [(row["x"], row["y"]) for row in rows] == [(None, [1.5]), (None, [None]), (0.5, [])]
    assert job.asked == ["a NaN", "b Infinity", "c 0.5"]


async def test_a_number_that_is_too_large_is_asked_and_written_as_it_stands(tmp_path, job):
    (tmp_path / "in.jsonl").write_text('{"id": "1", "p": "a", "x": 1e400}\n')

    (row,) = await job("in.jsonl", "out.jsonl", prompt="{p}: {x}")

    assert (row["id"], row["x"], row["response"]) == ("1", "1e400", "A: 1E400")


@pytest.mark.parametrize("name", ["in.jsonl", "./in.jsonl", "link.jsonl", "hard.jsonl", "part.jsonl"])
async def test_the_file_that_is_read_is_not_written_over(tmp_path, job, name):
    (tmp_path / "in.jsonl").write_text('{"p": "a"}\n')
    (tmp_path / "link.jsonl").symlink_to("in.jsonl")
    (tmp_path / "hard.jsonl").hardlink_to(tmp_path / "in.jsonl")
    (tmp_path / "part.jsonl.part").symlink_to("in.jsonl")

    with pytest.raises(ConfigurationError, match="is the file that is read; name another output"):
        await job("in.jsonl", name)

    assert (tmp_path / "in.jsonl").read_text() == '{"p": "a"}\n'
    assert job.asked == []


# ------------------------------------------------------------------------------------------------ unreadable


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("in.csv", "id,p,größe\n1,a,3\n".encode("latin-1"), "is in an encoding such as Latin-1.*iconv -f WINDOWS-1252"),
        ("in.csv", "id,p\n1,a\n".encode("utf-16"), "is in UTF-16, and not in UTF-8.*iconv -f UTF-16 -t UTF-8"),
        ("in.csv", "id,p\n1,a\n".encode("utf-16-le"), "is in UTF-16"),
        ("in.jsonl", '{"p": 1}\n'.encode("utf-16-be"), "is in UTF-16"),
        ("in.csv", b'"id"x,p\n1,a\n', r"in.csv cannot be read: ',' expected after '\"'"),
        ("in.csv", b'"id,p\n1,a\n', "cannot be read: unexpected end of data"),
        ("in.csv.gz", b"id,p\n1,a\n", "cannot be read: Not a gzipped file"),
        ("in.jsonl.gz", gzip.compress(b'{"p": 1}\n')[:15], "cannot be read: Compressed file ended"),
        ("in.parquet", b"id,p\n1,a\n", "cannot be read: Parquet magic bytes not found"),
        ("in.parquet", b"", "cannot be read: "),
    ],
)
async def test_what_is_not_what_its_name_says_is_told_before_the_first_row(tmp_path, job, name, data, words):
    (tmp_path / name).write_bytes(data)

    with pytest.raises(ConfigurationError, match=words):
        await job(name, "out.jsonl")

    assert [path.name for path in tmp_path.iterdir()] == [name]


async def test_parquet_with_two_columns_of_one_name_is_told_before_the_first_row(tmp_path, job):
    pq.write_table(pa.table([["a"], ["b"]], names=["p", "p"]), tmp_path / "in.parquet")

    with pytest.raises(ConfigurationError, match="must name each column once"):
        await job("in.parquet", "out.jsonl")


@pytest.mark.parametrize("name", ["in.jsonl.gz", "in.csv.gz"])
@pytest.mark.parametrize("broken", ["cut", "damaged"])
async def test_a_file_that_breaks_off_tells_after_how_many_rows(tmp_path, job, name, broken):
    lines = "p\n" + "a\n" * 60_000 if "csv" in name else '{"p": "a"}\n' * 60_000
    whole = gzip.compress(lines.encode())
    half = len(whole) // 2
    (tmp_path / name).write_bytes(whole[:half] if broken == "cut" else whole[:half] + b"\0" * half)

    with pytest.raises(StoreError, match=rf"{name} breaks off after [1-9]\d+ rows: .*start the job again"):
        list(open_source(tmp_path / name))


async def test_a_parquet_file_that_is_damaged_tells_after_how_many_rows(tmp_path):
    table = pa.table({"p": [f"{number:x}" * 9 for number in range(5_000)]})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=1_000, use_dictionary=False, compression="gzip")
    data = bytearray((tmp_path / "in.parquet").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    (tmp_path / "in.parquet").write_bytes(data)

    with pytest.raises(StoreError, match=r"in.parquet breaks off after [12]\d\d\d rows: "):
        list(open_source(tmp_path / "in.parquet"))


async def test_a_column_that_is_not_there_is_told_also_where_the_first_row_is_none(tmp_path, job):
    (tmp_path / "in.csv").write_text("id,text\n1\n2,b\n")

    with pytest.raises(ConfigurationError, match="There is no column 'p'; the first row has: id, text"):
        await job("in.csv", "out.csv")
