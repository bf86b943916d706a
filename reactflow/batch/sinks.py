"""Files to write rows to.  What is half written is called ``....part``, and gets its name when it is whole."""

from __future__ import annotations

import errno
import gzip
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol, Self

from reactflow.batch.columns import RESULT, output_names, warn_of_extra
from reactflow.batch.parquet import UntypedParquet, typed
from reactflow.batch.rows import as_json, as_text
from reactflow.batch.sources import Source, arrow, format_of
from reactflow.errors import ConfigurationError, StoreError
from reactflow.frozen import EMPTY
from reactflow.messages import readable

if sys.platform != "win32":
    import fcntl


class Writer(Protocol):
    """Writes rows in one format."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...

    def abandon(self) -> None:
        """Let the file go as it is: something failed."""
        ...


_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Sink:
    """The output of a job, a context manager.

    It is written anew each time: a row that an earlier run finished comes from the journal.  So no row is there
    twice, and a half line of a run that was killed is never read.

    Args:
        path: Where it goes; the name says the format.
        schema: The Arrow schema of the input, where it has one.
        columns: The columns of the input, where they are known; else CSV has those of the first row.  A job says both.

    Raises:
        ConfigurationError: The name says no format, the folder is missing, or another job writes there.
    """

    def __init__(self, path: str | Path, schema: Any = None, columns: Iterable[str] | None = None) -> None:
        self.path = Path(path)
        self.part = self.path.with_name(f"{self.path.name}.part")
        self.warnings: list[str] = []
        self._kind, self._schema = format_of(self.path), schema
        if self._kind == "parquet":
            arrow()  # where it is missing, that is said at once
        self._names: dict[str, str] = {}
        self._columns: list[str] | None = None
        if columns is not None:
            self._know(columns)
        self._file: IO[bytes] | None = None
        self._writer: Writer | None = None

    def check(self, source: Source) -> None:
        """Take the columns and types of *source*, and see whether its rows can be written here.

        Raises:
            ConfigurationError: They cannot, or this is the very file that is read.
        """
        for own in (self.path, self.part):
            if own.exists() and own.samefile(source.path):
                raise ConfigurationError(f"{own} is the file that is read; name another output.")
        self._schema = source.schema
        self._know(source.columns)
        self._open().close()

    def _know(self, columns: Iterable[str]) -> None:
        self._names = output_names(columns)
        self._columns = [*self._names.values(), *RESULT]

    def renamed(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """A row of the input by the names that its columns have in the output, which are the same for all rows."""
        late = [name for name in data if name not in self._names and name.endswith(RESULT)]  # others are called as here
        if late:
            self._names.update(output_names(late, self._names))  # the writer has it too
        return {self._names.get(name, name): value for name, value in data.items()}

    def __enter__(self) -> Self:
        self._file = self._open()
        try:
            self._writer = self._make(self._file)
        except BaseException:
            self._file.close()
            raise
        return self

    def _open(self) -> IO[bytes]:
        if not self.path.parent.is_dir():
            raise ConfigurationError(f"There is no folder {self.path.parent}; make it first.")
        if self.path.is_dir():
            raise ConfigurationError(f"{self.path} is a folder; name a file.")
        try:
            return _locked(self.part)
        except BlockingIOError as error:
            words = f"Another job is writing {self.path}; wait for it, or name another file."
            raise ConfigurationError(words) from error
        except OSError as error:
            raise ConfigurationError(f"{self.part} cannot be written: {error.strerror}.") from error

    def _make(self, file: IO[bytes]) -> Writer:
        if self._kind == "parquet":
            if self._schema is not None:
                return typed(file, self._schema, self.warnings)
            return UntypedParquet(file, self._columns or (), self.path.parent, self.warnings)
        out: IO[bytes] = gzip.GzipFile(fileobj=file, mode="wb") if self.path.suffix == ".gz" else file  # type: ignore[assignment]
        if self._kind == "jsonl":
            return JsonWriter(out)
        return CsvWriter(out, self._kind, self._columns, self.warnings, self._names)

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
        assert self._writer is not None
        try:
            with self._file:
                if kind is None:
                    self._commit(self._file, self._writer)
                else:
                    self._writer.abandon()
        except OSError as failure:
            if kind is None:  # else what ended the job is what counts, and not that closing failed too
                raise self._unwritten(failure) from failure

    def _commit(self, file: IO[bytes], writer: Writer) -> None:
        writer.close()
        file.flush()
        os.fsync(file.fileno())
        os.replace(self.part, self.path)

    def _unwritten(self, error: OSError) -> StoreError:
        advice = "Make room" if error.errno in _NO_ROOM else "Mend that"
        return StoreError(f"{self.part} cannot be written: {error}. {advice} and start the job again.")


def _locked(path: Path) -> IO[bytes]:
    """The file at *path*, empty, and nobody else's until it is closed."""
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, path):
                file.truncate()
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Whether *file* is still the one at *path*: another job may have given it its name while it was opened here."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


class _TextWriter:
    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def close(self) -> None:
        """Write what is left."""
        if isinstance(self._out, gzip.GzipFile):
            self._out.close()
        else:
            self._out.flush()

    def abandon(self) -> None:
        """Let the file go as it is: what is compressed would else be ended when it is collected."""
        with suppress(OSError):
            _TextWriter.close(self)


class JsonWriter(_TextWriter):
    """One JSON object a line."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*."""
        self._out.write(as_json(row).encode() + b"\n")


class CsvWriter(_TextWriter):
    """Comma-separated values, or tabs; *columns* are those of the first row where they are not given."""

    def __init__(
        self,
        out: IO[bytes],
        kind: str,
        columns: Iterable[str] | None,
        warnings: list[str],
        names: Mapping[str, str] = EMPTY,
    ) -> None:
        super().__init__(out)
        self._delimiter = "\t" if kind == "tsv" else ","
        self._columns = None if columns is None else dict.fromkeys(columns)
        self._begun = False
        self._warnings = warnings
        self._names = names

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*; what there is no column for is left out, with a warning."""
        columns = self._begin(row)
        warn_of_extra(row, columns, self._warnings, self._names)
        self._add(row.get(name) for name in columns)

    def close(self) -> None:
        """Write what is left."""
        if self._columns is not None:
            self._begin({})
        super().close()

    def _begin(self, row: Mapping[str, Any]) -> Collection[str]:
        self._columns = dict.fromkeys(row) if self._columns is None else self._columns
        if not self._begun:
            self._begun = True
            self._add(self._columns)
        return self._columns

    def _add(self, values: Iterable[Any]) -> None:
        self._out.write(readable(csv_line(values, self._delimiter)).encode() + b"\n")


def csv_line(values: Iterable[Any], delimiter: str = ",") -> str:
    """One line of CSV, without its end.

    Python's own writer leaves a lone carriage return as it is, at which its reader begins a new row.

    Args:
        values: One text for each field, or what :func:`~reactflow.batch.rows.as_text` makes one of; None is empty.
        delimiter: A comma or a tab.
    """
    fields = ["" if value is None else as_text(value) for value in values]
    line = delimiter.join(f'"{field.replace(_QUOTE, _QUOTE * 2)}"' if _ODD.search(field) else field for field in fields)
    return line or '""'  # an empty line would be no row


_QUOTE: Final = '"'
_ODD: Final = re.compile('[",\t\r\n]|^\ufeff')
"""What makes quotes necessary; a byte-order mark at the beginning of a file would be taken for its own."""
