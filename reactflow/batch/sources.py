"""Files to read rows from, one at a time: JSON lines, CSV, Parquet; the first two also compressed with gzip."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from reactflow.batch.rows import Record
from reactflow.errors import ConfigurationError
from reactflow.wire.text import clean_value

FORMATS: Final = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def format_of(path: Path) -> str:
    """``jsonl``, ``csv``, ``tsv`` or ``parquet``, by the name of *path*.

    Raises:
        ConfigurationError: The name says neither.
    """
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    found = FORMATS.get(suffix.lower())
    if found is None or (found == "parquet" and path.suffix == ".gz"):
        known = ", ".join(FORMATS)
        raise ConfigurationError(f"{path.name}: its name does not say what is in it; let it end in one of {known}.")
    return found


class Source(Protocol):
    """A file of rows.  Iterate over it as often as you like."""

    def __iter__(self) -> Iterator[Record]:
        """The rows, oldest first."""
        ...

    def fraction(self) -> float:
        """How much of it has been read, 0 to 1."""
        ...

    @property
    def schema(self) -> Any:
        """The Arrow schema of a Parquet file; None for the others, which have none."""
        ...


def open_source(path: str | Path) -> Source:
    """The rows of the file at *path*.

    Raises:
        ConfigurationError: It is not there, or its name does not say what is in it.
    """
    path = Path(path)
    kind = format_of(path)
    if not path.is_file():
        raise ConfigurationError(f"There is no file {path}.")
    if kind == "parquet":
        return ParquetSource(path)
    return JsonLines(path) if kind == "jsonl" else Csv(path, "\t" if kind == "tsv" else ",")


class _Bytes:
    """A file read from its beginning; knows how far."""

    schema = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = max(1, path.stat().st_size)
        self._raw: IO[bytes] | None = None
        self._done = 0.0

    def fraction(self) -> float:
        """How much of it has been read, 0 to 1."""
        if self._raw is not None and not self._raw.closed:
            self._done = min(1.0, self._raw.tell() / self._size)
        return self._done

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with self._path.open("rb") as self._raw:
            if self._path.suffix != ".gz":
                yield self._raw
                return
            with gzip.GzipFile(fileobj=self._raw) as unpacked:
                yield cast(IO[bytes], unpacked)


class JsonLines(_Bytes):
    """One JSON object a line.  A line that is none is a row with a flaw."""

    def __iter__(self) -> Iterator[Record]:
        with self._open() as lines:
            number = 0
            for line in lines:
                if line.strip() in (b"", b"\xef\xbb\xbf"):
                    continue
                number += 1
                yield _read_line(number, line.removeprefix(b"\xef\xbb\xbf"))
        self._done = 1.0


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is more than a number can hold")
    return number


def _read_line(number: int, line: bytes) -> Record:
    try:
        data = json.loads(line, parse_constant=_refuse, parse_float=_finite)
        data = clean_value(data) if b"\\u" in line else data  # only an escape can be half a character
    except (ValueError, RecursionError) as error:  # no UTF-8 is a ValueError too
        return Record(number, {}, f"Row {number} is no JSON: {error}.")
    if not isinstance(data, dict):
        return Record(
            number, {}, f"Row {number} is a {type(data).__name__}; give an object, such as {{'prompt': ...}}."
        )
    return Record(number, data)


class Csv(_Bytes):
    """Comma-separated values with a header, UTF-8.  An empty field is an empty text."""

    def __init__(self, path: Path, delimiter: str) -> None:
        super().__init__(path)
        self._delimiter = delimiter

    def __iter__(self) -> Iterator[Record]:
        csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        with self._open() as raw, io.TextIOWrapper(raw, "utf-8-sig", "surrogateescape", newline="") as lines:
            rows = csv.reader(lines, delimiter=self._delimiter, strict=True)
            header = self._header(rows)
            number = 0
            while True:
                try:
                    fields = next(rows)
                except StopIteration:
                    break
                except csv.Error as error:
                    number += 1
                    yield Record(number, {}, f"Row {number} is no CSV: {error}.")
                    continue
                if fields:
                    number += 1
                    yield _read_fields(number, header, fields)
        self._done = 1.0

    def _header(self, rows: Iterator[list[str]]) -> list[str]:
        header = next(rows, [])
        if len(set(header)) < len(header) or not all(header):
            raise ConfigurationError(
                f"{self._path.name}: its first line must name each column once, not {header!r:.200}."
            )
        return header


def _read_fields(number: int, header: list[str], fields: list[str]) -> Record:
    flaw = None
    if any("\udc80" <= char <= "\udcff" for field in fields for char in field):
        fields = [field.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for field in fields]
        flaw = f"Row {number} is not in UTF-8."
    if len(fields) != len(header):
        flaw = f"Row {number} has {len(fields)} fields, the header {len(header)}."
    return Record(number, dict(zip(header, fields, strict=False)), flaw)


class ParquetSource:
    """A Parquet file, a few hundred rows at a time."""

    def __init__(self, path: Path) -> None:
        self._file = arrow("parquet").ParquetFile(path)
        self._rows = max(1, self._file.metadata.num_rows)
        self._read = 0

    @property
    def schema(self) -> Any:
        """The file's Arrow schema."""
        return self._file.schema_arrow

    def __iter__(self) -> Iterator[Record]:
        self._read = 0
        for batch in self._file.iter_batches(batch_size=256):
            for data in batch.to_pylist():
                self._read += 1
                yield Record(self._read, data)

    def fraction(self) -> float:
        """How much of it has been read, 0 to 1."""
        return min(1.0, float(self._read / self._rows))


def arrow(part: str = "") -> Any:
    """The module pyarrow, or a part of it.

    Raises:
        ConfigurationError: The extra is missing.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigurationError("Parquet files need the extra 'batch': pip install 'reactflow[batch]'.") from error
    return getattr(pyarrow, part) if part else pyarrow
