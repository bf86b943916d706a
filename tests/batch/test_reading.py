"""JSON lines, CSV and Parquet as input."""

import builtins
import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reactflow.batch.rows import Record
from reactflow.batch.sources import format_of, open_source
from reactflow.errors import ConfigurationError


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
        (b"[" * 100_000, "Row 2 is no JSON: "),
    ],
)
def test_a_line_that_is_no_object_is_a_row_with_a_flaw_and_the_next_is_read(tmp_path, line, flaw):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"id": 1}\n' + line + b'\n{"id": 3}\n')

    first, second, third = open_source(path)

    assert (first.data, third.data) == ({"id": 1}, {"id": 3})
    assert second.flaw.startswith(flaw)


@pytest.mark.parametrize(
    ("line", "data"),
    [
        (b'{"id": 7, "p": NaN, "q": [-Infinity]}', {"id": 7, "p": None, "q": [None]}),
        (b'{"id": 7, "p": "\xff"}', {"id": 7, "p": "\ufffd"}),
        (b'{"id": 7, "p": "\xed\xa0\x80", "k\xed\xa0\xbd": 1}', {"id": 7, "p": "\ufffd" * 3, "k\ufffd\ufffd\ufffd": 1}),
    ],
)
def test_of_a_line_that_is_no_json_is_kept_what_can_be_read(tmp_path, line, data):
    (tmp_path / "x.jsonl").write_bytes(line)

    (record,) = open_source(tmp_path / "x.jsonl")

    assert (record.data, record.flaw.startswith("Row 1 is no JSON: ")) == (data, True)


def test_a_number_beyond_what_a_number_can_hold_is_kept_as_it_was_written(tmp_path):
    long = "9" * 5_000
    (tmp_path / "x.jsonl").write_text(f'{{"id": 1, "a": 1e400, "b": -1E999, "c": {long}, "d": 1e300}}')

    assert list(open_source(tmp_path / "x.jsonl")) == [
        Record(1, {"id": 1, "a": "1e400", "b": "-1E999", "c": long, "d": 1e300})
    ]


def test_names_that_become_one_where_they_are_made_readable_are_both_kept(tmp_path):
    line = r'{"a\ud800": 1, "a\ud801": 2, "a\ufffd": 3, "b": {"\ud800": 4, "\ud801": 5}, "c": 6, "c": 7}'
    (tmp_path / "x.jsonl").write_text(line)

    (record,) = open_source(tmp_path / "x.jsonl")

    assert record.data == {"a\ufffd_2": 1, "a\ufffd_3": 2, "a\ufffd": 3, "b": {"\ufffd": 4, "\ufffd_2": 5}, "c": 7}


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("x.jsonl", '[1]\n{}\n{"b": 1, "a": 2}\n{"c": 1}\n', ("b", "a")),
        ("x.jsonl", "", ()),
        ("x.csv", "b,a\n1\n", ("b", "a")),
        ("x.csv", "", ()),
    ],
)
def test_a_source_knows_its_columns_before_its_rows(tmp_path, name, text, columns):
    (tmp_path / name).write_text(text)
    source = open_source(tmp_path / name)

    assert (source.columns, source.fraction(), source.path) == (columns, 0.0, tmp_path / name)


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


def test_an_empty_line_of_csv_is_no_row(tmp_path):
    (tmp_path / "x.csv").write_text('a\n1\n\n""\n')

    assert list(open_source(tmp_path / "x.csv")) == [Record(1, {"a": "1"}), Record(2, {"a": ""})]


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
    assert (source.fraction(), source.schema, source.columns) == (1.0, table.schema, ("id", "t"))


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
