"""Files to read rows from, one at a time: JSON lines, CSV, Parquet; the first two also compressed with gzip."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from reactflow.batch.columns import readable_names
from reactflow.batch.rows import Record
from reactflow.errors import ConfigurationError, StoreError
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
        """The rows, oldest first.

        Raises:
            StoreError: The file breaks off.
        """
        ...

    def fraction(self) -> float:
        """How much of it has been read, 0 to 1."""
        ...

    @property
    def path(self) -> Path:
        """Where it is."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns; of JSON lines those of the first row that has some."""
        ...

    @property
    def schema(self) -> Any:
        """The Arrow schema of a Parquet file; None for the others, which have none."""
        ...


def open_source(path: str | Path) -> Source:
    """The rows of the file at *path*.

    Raises:
        ConfigurationError: It is not there, its name does not say what is in it, or it cannot be read from the start.
    """
    path = Path(path)
    kind = format_of(path)
    if not path.is_file():
        raise ConfigurationError(f"There is no file {path}.")
    if kind == "parquet":
        return ParquetSource(path)
    return JsonLines(path) if kind == "jsonl" else Csv(path, "\t" if kind == "tsv" else ",")


_BROKEN: Final = (OSError, EOFError, zlib.error)
"""What reading a file raises that is damaged, or compressed in another way than its name says."""


class _Bytes(ABC):
    """A file read from its beginning; knows how far."""

    schema = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = max(1, path.stat().st_size)
        self._raw: IO[bytes] | None = None
        self._done = 0.0
        try:
            with self._open() as raw:
                self._refuse_utf_16(raw)
                self.columns = self._read_columns(raw)
        except (*_BROKEN, csv.Error) as error:
            raise ConfigurationError(f"{path} cannot be read: {error}. Is it what its name says, and whole?") from error

    def __iter__(self) -> Iterator[Record]:
        number = 0
        try:
            with self._open() as raw:
                for record in self._read(raw):
                    number = record.number
                    yield record
        except _BROKEN as error:
            raise broken(self.path, number, error) from error
        self._done = 1.0

    @abstractmethod
    def _read(self, raw: IO[bytes]) -> Iterator[Record]:
        """The rows, oldest first."""
        ...

    @abstractmethod
    def _read_columns(self, raw: IO[bytes]) -> tuple[str, ...]:
        """The columns, at the beginning."""
        ...

    def fraction(self) -> float:
        """How much of it has been read, 0 to 1."""
        if self._raw is not None and not self._raw.closed:
            self._done = min(1.0, self._raw.tell() / self._size)
        return self._done

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with self.path.open("rb") as self._raw:
            if self.path.suffix != ".gz":
                yield self._raw
                return
            with gzip.GzipFile(fileobj=self._raw) as unpacked:
                yield cast(IO[bytes], unpacked)

    def _refuse_utf_16(self, raw: Any) -> None:
        start = raw.peek(4)[:4]
        if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start:
            raise self._encoded("UTF-16", "UTF-16")

    def _encoded(self, what: str, name: str) -> ConfigurationError:
        fix = f"save it as UTF-8, for example with: iconv -f {name} -t UTF-8"
        return ConfigurationError(f"{self.path} is in {what}, and not in UTF-8: {fix}")


def broken(path: Path, rows: int, error: Exception) -> StoreError:
    """What says that the file at *path* breaks off after so many *rows*."""
    return StoreError(
        f"{path} breaks off after {rows} rows: {error}. Mend it and start the job again; rows that were answered "
        "are not asked again where there is a cache."
    )


class JsonLines(_Bytes):
    """One JSON object a line.  A line that is none is a row with a flaw."""

    def _read_columns(self, raw: IO[bytes]) -> tuple[str, ...]:
        return next((tuple(record.data) for record in self._read(raw) if record.data), ())

    def _read(self, raw: IO[bytes]) -> Iterator[Record]:
        number = 0
        for line in raw:
            if line.strip() not in (b"", b"\xef\xbb\xbf"):
                number += 1
                yield _read_line(number, line.removeprefix(b"\xef\xbb\xbf"))


def _read_line(number: int, line: bytes) -> Record:
    flaws: list[str] = []
    try:
        data = _read_json(line, flaws)
    except (ValueError, RecursionError) as error:
        return Record(number, {}, f"Row {number} is no JSON: {flaws[0] if flaws else error}.")
    if not isinstance(data, dict):
        words = f"Row {number} is a {type(data).__name__}; give an object, such as {{'prompt': ...}}."
        return Record(number, {}, words)
    return Record(number, data, f"Row {number} is no JSON: {flaws[0]}." if flaws else None)


def _read_json(line: bytes, flaws: list[str]) -> Any:
    """The value of *line*; what is no JSON in it and can be read all the same goes into *flaws*."""
    try:
        text = line.decode()  # strictly: json.loads would let half characters through
    except UnicodeDecodeError as error:
        text = line.decode("utf-8", "replace")
        flaws.append(str(error))
    escaped = "\\u" in text  # only an escape can be half a character
    data = json.loads(
        text,
        parse_constant=lambda name: flaws.append(f"{name} is no JSON"),
        parse_float=_read_float,
        parse_int=_read_int,
        object_pairs_hook=readable_names if escaped else None,
    )
    return clean_value(data) if escaped else data


def _read_float(text: str) -> float | str:
    """A number, or its text where it is beyond what a number can hold."""
    number = float(text)
    return number if isfinite(number) else text


def _read_int(text: str) -> int | str:
    return int(text) if len(text) < _MAX_DIGITS else text


_MAX_DIGITS: Final = 4000
"""Python refuses to read whole numbers of more than 4,300 digits, because that takes so long."""


class Csv(_Bytes):
    """Comma-separated values with a header, UTF-8.  An empty field is an empty text."""

    def __init__(self, path: Path, delimiter: str) -> None:
        self._delimiter = delimiter
        super().__init__(path)

    def _read_columns(self, raw: IO[bytes]) -> tuple[str, ...]:
        with self._rows(raw) as rows:
            header = next(rows, [])
        if any(map(_undecoded, header)):
            raise self._encoded("an encoding such as Latin-1, Windows-1252 or GB18030", "WINDOWS-1252")
        if len(set(header)) < len(header) or not all(header):
            raise ConfigurationError(
                f"{self.path.name}: its first line must name each column once, not {header!r:.200}."
            )
        return tuple(header)

    @contextmanager
    def _rows(self, raw: IO[bytes]) -> Iterator[Iterator[list[str]]]:
        csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        with io.TextIOWrapper(raw, "utf-8-sig", "surrogateescape", newline="") as lines:
            yield csv.reader(lines, delimiter=self._delimiter, strict=True)

    def _read(self, raw: IO[bytes]) -> Iterator[Record]:
        with self._rows(raw) as rows:
            next(rows, None)
            number = 0
            while True:
                try:
                    fields = next(rows)
                except StopIteration:
                    return
                except csv.Error as error:
                    number += 1
                    yield Record(number, {}, f"Row {number} is no CSV: {error}.")
                    continue
                if fields:
                    number += 1
                    yield _read_fields(number, self.columns, fields)


def _undecoded(text: str) -> bool:
    return any("\udc80" <= char <= "\udcff" for char in text)


def _read_fields(number: int, header: Sequence[str], fields: list[str]) -> Record:
    flaw = None
    if any(map(_undecoded, fields)):
        fields = [field.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for field in fields]
        flaw = f"Row {number} is not in UTF-8."
    if len(fields) != len(header):
        flaw = f"Row {number} has {len(fields)} fields, the header {len(header)}."
    return Record(number, dict(zip(header, fields, strict=False)), flaw)


class ParquetSource:
    """A Parquet file, a few hundred rows at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._number = 0
        try:
            self._file = arrow("parquet").ParquetFile(path)
        except (arrow().ArrowException, OSError) as error:
            raise ConfigurationError(f"{path} cannot be read: {error} Is it what its name says, and whole?") from error
        self._rows = max(1, self._file.metadata.num_rows)
        self.columns = tuple(self._file.schema_arrow.names)
        if len(set(self.columns)) < len(self.columns):
            raise ConfigurationError(f"{path} must name each column once, not {self.columns!r:.200}.")

    @property
    def schema(self) -> Any:
        """The file's Arrow schema."""
        return self._file.schema_arrow

    def __iter__(self) -> Iterator[Record]:
        self._number = 0
        try:
            for batch in self._file.iter_batches(batch_size=256):
                for data in batch.to_pylist():
                    self._number += 1
                    yield Record(self._number, data)
        except (arrow().ArrowException, OSError, ValueError) as error:
            raise broken(self.path, self._number, error) from error

    def fraction(self) -> float:
        """How much of it has been read, 0 to 1."""
        return min(1.0, float(self._number / self._rows))


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
