"""JSON lines, CSV and Parquet as output, and as input again."""

import csv
import gc
import gzip
import io
import json
import os
from contextlib import contextmanager
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.batch.rows import as_json, as_text
from reactflow.batch.sinks import Sink, csv_line
from reactflow.batch.sources import open_source
from reactflow.errors import ConfigurationError, StoreError


def written(path, *rows, schema=None):
    with Sink(path, schema) as sink:
        for row in rows:
            sink.write({**row, "status": "SUCCESS", "response": "ok", "metadata": {"n": 1}})
    return sink


def test_json_lines_keep_text_readable_and_lone_surrogates_do_no_harm(tmp_path):
    written(tmp_path / "x.jsonl", {"id": 1, "p": "你好 \ud800"})

    line = (tmp_path / "x.jsonl").read_text("utf-8")
    assert json.loads(line) == {
        "id": 1,
        "p": "你好 \ufffd",
        "status": "SUCCESS",
        "response": "ok",
        "metadata": {"n": 1},
    }
    assert "你好" in line


def test_csv_has_the_columns_of_the_first_row_and_warns_of_others(tmp_path):
    sink = written(tmp_path / "x.csv", {"id": 1, "p": None}, {"id": 2, "q": "x"}, {"id": 3, "q": "x"})

    assert (tmp_path / "x.csv").read_text() == (
        'id,p,status,response,metadata\n1,,SUCCESS,ok,"{""n"": 1}"\n2,,SUCCESS,ok,"{""n"": 1}"\n'
        '3,,SUCCESS,ok,"{""n"": 1}"\n'
    )
    assert sink.warnings == ["The output has no column for 'q', so it was left out; JSON lines keep it."]


def test_the_name_of_a_column_stays_the_same_whatever_columns_later_rows_have():
    sink = Sink("x.csv", columns=["id", "status"])

    rows = [
        {"id": 1, "status": "open"},
        {"id": 2, "status": "shut", "input_status": "x"},
        {"id": 3, "input_input_status": "y", "q": 0, "input_status": "x", "response": "z", "input_response": "w"},
        {"response": "z"},
    ]

    assert [sink.renamed(row) for row in rows] == [
        {"id": 1, "input_status": "open"},
        {"id": 2, "input_status": "shut", "input_input_status": "x"},
        {
            "id": 3,
            "input_input_input_status": "y",
            "q": 0,
            "input_input_status": "x",
            "input_input_response": "z",
            "input_response": "w",
        },
        {"input_input_response": "z"},
    ]


def test_gzip_and_tabs_are_written_by_the_name(tmp_path):
    written(tmp_path / "x.jsonl.gz", {"id": 1})
    written(tmp_path / "x.tsv.gz", {"id": 1})

    assert json.loads(gzip.decompress((tmp_path / "x.jsonl.gz").read_bytes()))["id"] == 1
    assert gzip.decompress((tmp_path / "x.tsv.gz").read_bytes()).startswith(b"id\tstatus\tresponse\tmetadata\n1\t")


def test_parquet_keeps_the_types_of_the_input(tmp_path):
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("at", pa.timestamp("us")), ("status", pa.int8())])

    written(tmp_path / "x.parquet", {"id": 1, "at": None, "input_status": 3}, schema=schema)

    table = pq.read_table(tmp_path / "x.parquet")
    assert table.schema.names == ["id", "at", "input_status", "status", "response", "metadata"]
    assert table.schema.field("input_status").type == pa.int8()
    assert table.to_pylist()[0]["metadata"] == '{"n": 1}'


def test_parquet_finds_types_where_the_input_has_none(tmp_path):
    row = {"i": 1, "f": 1, "b": True, "s": "x", "m": {"a": 1}, "n": None}
    other = {"i": 2, "f": 1.5, "b": False, "s": "é", "m": [1], "n": None}

    written(tmp_path / "x.parquet", row, other)

    table = pq.read_table(tmp_path / "x.parquet")
    kinds = [str(table.schema.field(name).type) for name in row]
    assert kinds == ["int64", "double", "bool", "string", "string", "string"]
    assert table.to_pylist()[1]["m"] == "[1]"


def test_a_parquet_file_without_types_of_its_own_loses_no_value_and_no_column(tmp_path):
    many = [{"key": number, "long": 1, "half": 1, "mixed": True, "exact": 2**60} for number in range(1_500)]
    last = {"key": "k0", "long": 2**70, "half": 0.5, "mixed": 1, "exact": 0.5, "late": [1, "二"]}

    sink = written(tmp_path / "x.parquet", *many, last)

    table = pq.read_table(tmp_path / "x.parquet")
    row = table.to_pylist()[-1]
    assert table["key"].to_pylist() == [*map(str, range(1_500)), "k0"]
    assert (row["long"], row["half"], row["mixed"], row["late"]) == (str(2**70), 0.5, "1", '[1, "二"]')
    assert table["exact"].to_pylist()[0] == str(2**60)
    assert table["half"].to_pylist()[:2] == [1.0, 1.0]
    assert (table.num_rows, sink.warnings, sorted(tmp_path.iterdir())) == (1_501, [], [tmp_path / "x.parquet"])


def test_a_whole_number_that_64_bits_hold_stays_one(tmp_path):
    written(tmp_path / "x.parquet", {"i": 2**63 - 1}, {"i": -(2**63)}, {"i": None})

    assert pq.read_table(tmp_path / "x.parquet")["i"].to_pylist() == [2**63 - 1, -(2**63), None]


def test_a_value_that_does_not_fit_the_type_of_the_input_is_left_out_with_a_warning(tmp_path):
    sink = written(
        tmp_path / "x.parquet", *({"i": i} for i in (1, "two", 2**70, 4)), schema=pa.schema([("i", "int64")])
    )

    assert pq.read_table(tmp_path / "x.parquet")["i"].to_pylist() == [1, None, None, 4]
    assert sink.warnings == ["Column 'i' is of type int64; what is of another was left out."]


def test_a_parquet_file_without_rows_can_be_read(tmp_path):
    written(tmp_path / "x.parquet")

    assert pq.read_table(tmp_path / "x.parquet").num_rows == 0


def test_the_file_has_its_name_only_when_it_is_whole(tmp_path):
    (tmp_path / "x.jsonl").write_text("old\n")

    def fails():
        with Sink(tmp_path / "x.jsonl") as sink:
            sink.write({"id": 1})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()

    assert (tmp_path / "x.jsonl").read_text() == "old\n"
    assert json.loads((tmp_path / "x.jsonl.part").read_text()) == {"id": 1}
    written(tmp_path / "x.jsonl", {"id": 2})
    assert json.loads((tmp_path / "x.jsonl").read_text())["id"] == 2
    assert not (tmp_path / "x.jsonl.part").exists()


def test_two_jobs_do_not_write_one_file(tmp_path):
    with (
        Sink(tmp_path / "x.jsonl") as sink,
        pytest.raises(ConfigurationError, match="Another job is writing"),
        Sink(tmp_path / "x.jsonl"),
    ):
        pass
    sink_of_another = Sink(tmp_path / "x.jsonl")
    with sink_of_another:
        sink_of_another.write({"id": 2})
    assert (tmp_path / "x.jsonl").read_text() == '{"id": 2}\n'
    assert sink.warnings == []


def test_a_job_that_waited_for_the_file_of_another_does_not_empty_what_that_one_wrote(tmp_path, monkeypatch):
    first, second = Sink(tmp_path / "x.jsonl"), Sink(tmp_path / "x.jsonl")
    opened, ends_well = os.fdopen, [first]

    def opened_too_late(*args):
        file = opened(*args)
        if ends_well:  # between the opening of the file here and its taking
            ends_well.pop().__exit__(None, None, None)
        return file

    first.__enter__()
    first.write({"paid": 1})
    monkeypatch.setattr(os, "fdopen", opened_too_late)
    with second:
        assert (tmp_path / "x.jsonl").read_text() == '{"paid": 1}\n'
        second.write({"paid": 2})

    assert (tmp_path / "x.jsonl").read_text() == '{"paid": 2}\n'


def test_a_folder_that_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(ConfigurationError, match="make it first"), Sink(tmp_path / "no" / "x.jsonl"):
        pass
    (tmp_path / "y.jsonl.part").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written"), Sink(tmp_path / "y.jsonl"):
        pass


@contextmanager
def small_disk():
    """Let no file become larger than 20 bytes.  Not a fixture: a report of the test may go to a file too."""
    resource = pytest.importorskip("resource", reason="limits of this kind are a matter of POSIX")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.csv", "x.csv.gz", "x.parquet"])
@pytest.mark.parametrize("rows", [1, 5_000])
def test_what_can_be_written_no_further_is_a_clear_error_wherever_it_shows(tmp_path, name, rows):
    with small_disk(), pytest.raises(StoreError, match="Make room and start the job again"):
        written(tmp_path / name, *({"p": f"{number:x}" * 30} for number in range(rows)))
    gc.collect()  # where a file that is left open would complain

    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.csv", "x.csv.gz", "x.parquet", "typed.parquet"])
def test_a_job_that_fails_leaves_its_files_without_a_complaint(tmp_path, name):
    schema = pa.schema([("id", "int64")]) if name == "typed.parquet" else None

    def fails():
        with Sink(tmp_path / name, schema) as sink:
            for number in range(1_500):
                sink.write({"id": number, "status": "SUCCESS", "response": "ok", "metadata": {}})
            raise KeyError(name)

    with pytest.raises(KeyError):
        fails()
    gc.collect()

    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.part"]


def test_an_output_that_cannot_be_begun_is_free_again(tmp_path, monkeypatch):
    sink = Sink(tmp_path / "x.parquet", pa.schema([("id", "int64")]), ["id"])
    monkeypatch.setattr(pq, "ParquetWriter", None)
    with pytest.raises(TypeError):
        sink.__enter__()
    monkeypatch.undo()

    written(tmp_path / "x.parquet", {"id": 1})
    assert pq.read_table(tmp_path / "x.parquet")["id"].to_pylist() == [1]


def test_only_a_full_disk_is_told_to_be_made_room_on(tmp_path):
    def loses_its_file():
        with Sink(tmp_path / "x.jsonl") as sink:
            sink.write({"id": 1})
            sink.part.unlink()

    with pytest.raises(StoreError, match=r"No such file or directory: .* Mend that and start the job again"):
        loses_its_file()


def test_a_folder_is_no_output_and_that_is_said_before_anything_is_paid_for(tmp_path):
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(ConfigurationError, match="is a folder; name a file"), Sink(tmp_path / "x.jsonl"):
        pass


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
@pytest.mark.parametrize("unreadable", [0, 1, 1_001])
def test_columns_that_are_known_are_there_whatever_the_first_rows_hold(tmp_path, name, unreadable):
    failed, answered = {"status": "FAILED", "response": None}, {"status": "SUCCESS", "response": "ok"}
    with Sink(tmp_path / name, columns=["id", "p"]) as sink:
        for row in [failed] * unreadable + [{"p": "hail", "id": "2", **answered}]:
            sink.write({**row, "metadata": {}})

    header, *lines = (tmp_path / name).read_text("utf-8").replace("\t", ",").splitlines()
    assert header == "id,p,status,response,metadata"
    assert lines == [*[",,FAILED,,{}"] * unreadable, "2,hail,SUCCESS,ok,{}"]
    assert sink.warnings == []


@pytest.mark.parametrize(("columns", "text"), [(["id"], "id,status,response,metadata\n"), (None, "")])
def test_a_csv_without_rows_has_the_columns_that_are_known(tmp_path, columns, text):
    with Sink(tmp_path / "x.csv", columns=columns):
        pass

    assert (tmp_path / "x.csv").read_text() == text


def test_half_a_character_in_a_name_or_a_value_stops_no_job(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"k\\ud83d": "v\\ud83d", "ok": "\\ud83d\\ude00"}\n')
    (record,) = open_source(tmp_path / "in.jsonl")
    assert record.data == {"k\ufffd": "v\ufffd", "ok": "😀"}

    for name in ("x.jsonl", "x.csv", "x.parquet"):
        for data in (record.data, {"k\ud83d": "v\ud83d", "ok": "\ud83d\ude00"}):
            written(tmp_path / name, data)
            (back,) = open_source(tmp_path / name)
            assert {key: back.data[key] for key in record.data} == record.data


# ------------------------------------------------------------------------------------------------ and back

FIELD = st.text() | st.text(alphabet='\r\n",\t\0 a\ufeff中')


@given(
    rows=st.lists(st.tuples(FIELD, FIELD.filter(bool)), min_size=1, max_size=5), kind=st.sampled_from(["csv", "tsv"])
)
def test_what_is_written_as_csv_is_read_back_as_it_was(tmp_path_factory, rows, kind):
    path = tmp_path_factory.mktemp("csv") / f"x.{kind}"
    with Sink(path, columns=["\ufeffa", "b\r"]) as sink:
        for first, second in rows:
            sink.write({"\ufeffa": first, "b\r": second})

    read = [(record.data["\ufeffa"], record.data["b\r"], record.flaw) for record in open_source(path)]
    assert read == [(first, second, None) for first, second in rows]


@given(values=st.lists(FIELD, min_size=1, max_size=5))
def test_a_line_of_csv_is_read_back_by_pythons_own_reader(values):
    lines = io.StringIO(f"{csv_line(values)}\n" * 2, newline="")

    assert list(csv.reader(lines, strict=True)) == [values] * 2


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"a": float("nan"), "b": [float("inf"), {"c": -float("inf")}]}, '{"a": null, "b": [null, {"c": null}]}'),
        ({1: "中", None: 2, (1, 2): float("nan")}, '{"1": "中", "null": 2, "(1, 2)": null}'),
        ({"at": date(2026, 1, 2), "half": "\ud800"}, '{"at": "2026-01-02", "half": "\ufffd"}'),
    ],
)
def test_json_holds_what_json_knows(value, line):
    assert as_json(value) == line
    assert as_text([value]) == f"[{line}]"


def test_a_number_alone_keeps_its_word_where_no_json_is_asked_for():
    assert [as_text(value) for value in (float("nan"), 1.5, 2, "x", None)] == ["NaN", "1.5", "2", "x", "null"]


def test_a_date_or_an_exact_number_alone_stands_without_quotes():
    assert [as_text(value) for value in (date(2026, 1, 2), Decimal("1.20"))] == ["2026-01-02", "1.20"]
