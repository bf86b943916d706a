"""Files to write rows to.  What is half written is called ``....part``, and gets its name when it is whole."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol, Self

from reactflow.batch.rows import as_text
from reactflow.batch.sources import arrow, format_of
from reactflow.errors import ConfigurationError, StoreError
from reactflow.messages import readable

if sys.platform != "win32":
    import fcntl

RESULT: Final = ("status", "response", "metadata")
"""The columns that are added to those of the input; an input column of such a name becomes ``input_...``."""


class Writer(Protocol):
    """Writes rows in one format."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class Sink:
    """The output of a job, a context manager.

    It is written anew each time: a row that an earlier run finished comes from the journal.  So no row is there
    twice, and a half line of a run that was killed is never read.

    Args:
        path: Where it goes; the name says the format.
        schema: The Arrow schema of the input, where it has one.

    Raises:
        ConfigurationError: The name says no format, the folder is missing, or another job writes there.
    """

    def __init__(self, path: str | Path, schema: Any = None) -> None:
        self.path = Path(path)
        self.part = self.path.with_name(f"{self.path.name}.part")
        self.warnings: list[str] = []
        self._kind, self._schema = format_of(self.path), schema
        self._file: IO[bytes] | None = None
        self._writer: Writer | None = None

    def __enter__(self) -> Self:
        if not self.path.parent.is_dir():
            raise ConfigurationError(f"There is no folder {self.path.parent}; make it first.")
        if self.path.is_dir():
            raise ConfigurationError(f"{self.path} is a folder; name a file.")
        try:
            self._file = _locked(self.part)
        except BlockingIOError as error:
            words = f"Another job is writing {self.path}; wait for it, or name another file."
            raise ConfigurationError(words) from error
        except OSError as error:
            raise ConfigurationError(f"{self.part} cannot be written: {error.strerror}.") from error
        self._writer = self._make(self._file)
        return self

    def _make(self, file: IO[bytes]) -> Writer:
        if self._kind == "parquet":
            return ParquetWriter(file, self._schema, self.warnings)
        out: IO[bytes] = gzip.GzipFile(fileobj=file, mode="wb") if self.path.suffix == ".gz" else file  # type: ignore[assignment]
        return JsonWriter(out) if self._kind == "jsonl" else CsvWriter(out, self._kind, self.warnings)

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*.

        Raises:
            StoreError: The disk is full, or the like.
        """
        assert self._writer is not None
        try:
            self._writer.write(row)
        except OSError as error:
            raise self._unwritten(error) from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._file is not None
        try:
            with self._file:
                if kind is None:
                    self._commit(self._file)
        except OSError as failure:
            if kind is None:  # else what ended the job is what counts, and not that closing failed too
                raise self._unwritten(failure) from failure

    def _commit(self, file: IO[bytes]) -> None:
        assert self._writer is not None
        self._writer.close()
        file.flush()
        os.fsync(file.fileno())
        os.replace(self.part, self.path)

    def _unwritten(self, error: OSError) -> StoreError:
        return StoreError(f"{self.part} cannot be written: {error}. Make room and start the job again.")


def _locked(path: Path) -> IO[bytes]:
    """The file at *path*, empty, and nobody else's until it is closed."""
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    try:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate()
    except BaseException:
        file.close()
        raise
    return file


class JsonWriter:
    """One JSON object a line."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*."""
        line = json.dumps(row, ensure_ascii=False, default=str)
        self._out.write(readable(line).encode() + b"\n")

    def close(self) -> None:
        """Write what is left."""
        _finish(self._out)


def _finish(out: IO[bytes]) -> None:
    if isinstance(out, gzip.GzipFile):
        out.close()
    else:
        out.flush()


class CsvWriter:
    """Comma-separated values; the columns are those of the first row that could be read, or of the first 1,000."""

    GROUP: Final = 1000

    def __init__(self, out: IO[bytes], kind: str, warnings: list[str]) -> None:
        self._out = out
        self._text = io.TextIOWrapper(out, "utf-8", newline="", write_through=True)
        self._rows = csv.writer(self._text, delimiter="\t" if kind == "tsv" else ",", lineterminator="\n")
        self._columns: list[str] | None = None
        self._held: list[Mapping[str, Any]] = []  # rows of which nothing could be read, before any that could
        self._warnings = warnings

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*; what there is no column for is left out, with a warning."""
        if self._columns is not None:
            self._add(row, self._columns)
            return
        self._held.append(row)
        if row.keys() - RESULT or len(self._held) >= self.GROUP:
            self._begin()

    def _begin(self) -> None:
        self._columns = list(self._held[-1])
        self._rows.writerow([readable(name) for name in self._columns])
        for row in self._held:
            self._add(row, self._columns)
        self._held.clear()

    def _add(self, row: Mapping[str, Any], columns: list[str]) -> None:
        _warn_of_extra(row, columns, self._warnings)
        self._rows.writerow([_field(row.get(name)) for name in columns])

    def close(self) -> None:
        """Write what is left."""
        if self._held:
            self._begin()
        self._text.detach()
        _finish(self._out)


def _field(value: Any) -> str:
    return "" if value is None else readable(as_text(value))


def _warn_of_extra(row: Mapping[str, Any], columns: list[str], warnings: list[str]) -> None:
    extra = [name for name in row if name not in columns]
    warning = f"The first row has no column {', '.join(map(repr, extra))}, so it was left out; JSON lines keep it."
    if extra and warning not in warnings and len(warnings) < 20:
        warnings.append(warning)


class ParquetWriter:
    """A Parquet file, written in groups of rows.

    The types are those of the input where it has some; else those of the first group, and a value that does not fit
    is left out with a warning.
    """

    GROUP: Final = 1000

    def __init__(self, file: IO[bytes], schema: Any, warnings: list[str]) -> None:
        self._arrow, self._parquet = arrow(), arrow("parquet")
        self._file = file
        self._known = schema
        self._warnings = warnings
        self._rows: list[Mapping[str, Any]] = []
        self._schema: Any = None
        self._writer: Any = None

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*."""
        self._rows.append({**row, "metadata": as_text(row.get("metadata"))})
        if len(self._rows) >= self.GROUP:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._writer is None:
            self._schema = self._make_schema()
            self._writer = self._parquet.ParquetWriter(self._file, self._schema)
        for row in self._rows:
            _warn_of_extra(row, self._schema.names, self._warnings)
        columns = [self._column(field) for field in self._schema]
        self._writer.write_table(self._arrow.Table.from_arrays(columns, schema=self._schema))
        self._rows = []

    def _make_schema(self) -> Any:
        text = self._arrow.string()
        result = [self._arrow.field(name, text) for name in RESULT]
        if self._known is not None:
            own = [field.with_name(input_name(field.name)).with_nullable(True) for field in self._known]
        else:
            names = dict.fromkeys(name for row in self._rows for name in row if name not in RESULT)
            own = [self._arrow.field(name, self._type_of(name)) for name in names]
        return self._arrow.schema([*own, *result])

    def _type_of(self, name: str) -> Any:
        kinds = {type(row[name]) for row in self._rows if row.get(name) is not None}
        if kinds == {bool}:
            return self._arrow.bool_()
        if kinds == {int}:
            return self._arrow.int64()
        return self._arrow.float64() if kinds and kinds <= {int, float} else self._arrow.string()

    def _column(self, field: Any) -> Any:
        values = [row.get(field.name) for row in self._rows]
        if field.type == self._arrow.string():
            values = [None if value is None else readable(as_text(value)) for value in values]
        try:
            return self._arrow.array(values, field.type)
        except (self._arrow.ArrowInvalid, self._arrow.ArrowTypeError, OverflowError):
            return self._arrow.array([self._fitting(value, field) for value in values], field.type)

    def _fitting(self, value: Any, field: Any) -> Any:
        try:
            self._arrow.array([value], field.type)
        except (self._arrow.ArrowInvalid, self._arrow.ArrowTypeError, OverflowError):
            warning = f"Column {field.name!r} is of type {field.type}; what is of another was left out."
            if warning not in self._warnings:
                self._warnings.append(warning)
            return None
        return value


def input_name(name: str) -> str:
    """What an input column is called in the output."""
    return f"input_{name}" if name in RESULT else name
