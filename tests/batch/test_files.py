"""JSON lines, CSV and Parquet, in and out."""

import builtins
import gzip
import json
import resource

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reactflow.batch.rows import Record
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import format_of, open_source
from reactflow.errors import ConfigurationError, StoreError


def written(path, *rows, schema=None):
    with Sink(path, schema) as sink:
        for row in rows:
            sink.write({**row, "status": "SUCCESS", "response": "ok", "metadata": {"n": 1}})
    return sink


# ------------------------------------------------------------------------------------------------ reading


def test_json_lines_are_read_one_by_one_and_blank_ones_are_skipped(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": 1, "p": "\xe4\xbd\xa0\xe5\xa5\xbd"}\n\n  \n{"id": 2}')
    source = open_source(path)

    assert list(source) == [Record(1, {"id": 1, "p": "你好"}), Record(2, {"id": 2})]
    assert (source.fraction(), source.schema) == (1.0, None)
    assert len(list(source)) == 2


@pytest.mark.parametrize(
    ("line", "flaw"),
    [
        (b'{"id": 1', "Row 2 is no JSON: "),
        (b"[1]", "Row 2 is a list; give an object, such as {'prompt': ...}."),
        (b'{"p": "\xff"}', "Row 2 is no JSON: "),
        (b'{"p": NaN}', "Row 2 is no JSON: NaN is no JSON."),
        (b'{"p": 1e400}', "Row 2 is no JSON: 1e400 is more than a number can hold."),
        (b'{"p": -1E999}', "Row 2 is no JSON: -1E999 is more than a number can hold."),
        (b"[" * 100_000, "Row 2 is no JSON: "),
    ],
)
def test_a_line_that_is_no_object_is_a_row_with_a_flaw_and_the_next_is_read(tmp_path, line, flaw):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"id": 1}\n' + line + b'\n{"id": 3}\n')

    first, second, third = open_source(path)

    assert (first.data, third.data) == ({"id": 1}, {"id": 3})
    assert second.flaw.startswith(flaw)


def test_csv_is_read_by_its_header_with_quotes_line_ends_and_a_mark_at_the_beginning(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes('\ufeffid,说明\r\n1,"a,""b""\r\nc"\r\n2,\r\n'.encode())

    assert list(open_source(path)) == [Record(1, {"id": "1", "说明": 'a,"b"\r\nc'}), Record(2, {"id": "2", "说明": ""})]


def test_a_csv_row_of_another_length_or_encoding_has_a_flaw(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n1\n1,2,3\n\xff,2\n4,5\n")

    short, long, odd, good = open_source(path)

    assert short.flaw == "Row 1 has 1 fields, the header 2."
    assert long.flaw == "Row 2 has 3 fields, the header 2."
    assert (odd.flaw, odd.data) == ("Row 3 is not in UTF-8.", {"a": "\ufffd", "b": "2"})
    assert good == Record(4, {"a": "4", "b": "5"})


def test_a_broken_quote_in_csv_is_a_row_with_a_flaw(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,b\n"x"y,2\n3,4\n')

    rows = list(open_source(path))

    assert rows[0].flaw.startswith("Row 1 is no CSV")
    assert rows[-1].data == {"a": "3", "b": "4"}


@pytest.mark.parametrize("header", ["a,a\n1,2\n", "a,\n1,2\n"])
def test_a_csv_header_names_each_column_once(tmp_path, header):
    (tmp_path / "x.csv").write_text(header)

    with pytest.raises(ConfigurationError, match="must name each column once"):
        list(open_source(tmp_path / "x.csv"))


def test_tabs_and_gzip_are_read_by_the_name(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n'))

    assert list(open_source(tmp_path / "x.tsv")) == [Record(1, {"a": "1", "b": "2"})]
    assert list(open_source(tmp_path / "x.jsonl.gz")) == [Record(1, {"a": 1})]


def test_parquet_is_read_with_its_types(tmp_path):
    table = pa.table({"id": [1, 2], "t": pa.array(["x", None])})
    pq.write_table(table, tmp_path / "x.parquet")
    source = open_source(tmp_path / "x.parquet")

    assert list(source) == [Record(1, {"id": 1, "t": "x"}), Record(2, {"id": 2, "t": None})]
    assert (source.fraction(), source.schema) == (1.0, table.schema)


def test_the_name_says_what_is_in_a_file(tmp_path):
    with pytest.raises(ConfigurationError, match=r"let it end in one of \.jsonl"):
        open_source(tmp_path / "x.xlsx")
    with pytest.raises(ConfigurationError, match="let it end in one of"):
        format_of(tmp_path / "x.parquet.gz")
    with pytest.raises(ConfigurationError, match="There is no file"):
        open_source(tmp_path / "x.jsonl")


def test_without_the_extra_parquet_is_a_clear_error(tmp_path, monkeypatch):
    real = builtins.__import__

    def without_arrow(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    (tmp_path / "x.parquet").write_bytes(b"")
    monkeypatch.setattr(builtins, "__import__", without_arrow)

    with pytest.raises(ConfigurationError, match=r"pip install 'reactflow\[batch\]'"):
        open_source(tmp_path / "x.parquet")


# ------------------------------------------------------------------------------------------------ writing


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
    assert sink.warnings == ["The first row has no column 'q', so it was left out; JSON lines keep it."]


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


def test_a_value_that_does_not_fit_a_parquet_column_is_left_out_with_a_warning(tmp_path, monkeypatch):
    from reactflow.batch.sinks import ParquetWriter

    monkeypatch.setattr(ParquetWriter, "GROUP", 1)
    sink = written(tmp_path / "x.parquet", {"i": 1}, {"i": "two"}, {"i": 2**70}, {"i": 4})

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
    assert (tmp_path / "x.jsonl.part").exists()
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
    assert sink.path.exists()


def test_a_folder_that_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(ConfigurationError, match="make it first"), Sink(tmp_path / "no" / "x.jsonl"):
        pass
    (tmp_path / "y.jsonl.part").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written"), Sink(tmp_path / "y.jsonl"):
        pass


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.csv", "x.csv.gz", "x.parquet"])
@pytest.mark.parametrize("rows", [1, 5_000])
def test_what_can_be_written_no_further_is_a_clear_error_wherever_it_shows(tmp_path, name, rows):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        with pytest.raises(StoreError, match="Make room and start the job again"):
            written(tmp_path / name, *({"p": f"{number:x}" * 30} for number in range(rows)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert not (tmp_path / name).exists()


def test_a_folder_is_no_output_and_that_is_said_before_anything_is_paid_for(tmp_path):
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(ConfigurationError, match="is a folder; name a file"), Sink(tmp_path / "x.jsonl"):
        pass


def test_a_full_disk_is_a_clear_error(tmp_path):
    class Full:
        def write(self, row):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    with Sink(tmp_path / "x.jsonl") as sink:
        sink._writer = Full()
        with pytest.raises(StoreError, match="Make room and start the job again"):
            sink.write({})
        sink._writer = sink._make(sink._file)


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_rows_that_could_not_be_read_do_not_cost_the_others_their_columns(tmp_path, name):
    with Sink(tmp_path / name) as sink:
        for row in ({}, {}, {"id": "2", "p": "hail"}, {}):
            sink.write({**row, "status": "SUCCESS", "response": "ok", "metadata": {}})

    header, *lines = (tmp_path / name).read_text("utf-8").replace("\t", ",").splitlines()
    assert header == "id,p,status,response,metadata"
    assert lines == [",,SUCCESS,ok,{}", ",,SUCCESS,ok,{}", "2,hail,SUCCESS,ok,{}", ",,SUCCESS,ok,{}"]
    assert sink.warnings == []


def test_rows_of_which_none_could_be_read_are_written_all_the_same(tmp_path):
    with Sink(tmp_path / "x.csv") as sink:
        for _ in range(2_500):
            sink.write({"status": "FAILED", "response": None, "metadata": {}})

    assert (tmp_path / "x.csv").read_text("utf-8").splitlines() == ["status,response,metadata", *["FAILED,,{}"] * 2_500]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.parquet"])
def test_half_a_character_in_a_name_or_a_value_stops_no_job(tmp_path, name):
    (tmp_path / "in.jsonl").write_text('{"k\\ud83d": "v\\ud83d", "ok": "\\ud83d\\ude00"}\n')
    (record,) = open_source(tmp_path / "in.jsonl")
    assert record.data == {"k\ufffd": "v\ufffd", "ok": "😀"}

    written(tmp_path / name, record.data)

    assert (tmp_path / name).exists()
