"""Parquet files: written in groups of rows, with the types of the input, or with types that hold all there is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

from reactflow.batch.columns import RESULT, output_names, warn_of_extra
from reactflow.batch.rows import as_json, as_text
from reactflow.batch.sources import arrow
from reactflow.messages import readable


class ParquetWriter:
    """A Parquet file with the types of *schema*, the added columns included.

    A value that does not fit its column is left out with a warning.
    """

    GROUP: Final = 1000

    def __init__(self, file: IO[bytes], schema: Any, warnings: list[str]) -> None:
        self._arrow = arrow()
        self._writer = arrow("parquet").ParquetWriter(file, schema)
        self._schema = schema
        self._names = frozenset(schema.names)
        self._warnings = warnings
        self._rows: list[Mapping[str, Any]] = []

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*."""
        warn_of_extra(row, self._names, self._warnings)
        self._rows.append({**row, "metadata": as_text(row.get("metadata"))})
        if len(self._rows) >= self.GROUP:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        try:
            self._flush()
            self._writer.close()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let the file go as it is."""
        self._writer.is_open = False  # else it is closed when it is collected, and complains of a file that is gone

    def _flush(self) -> None:
        columns = [self._column(field) for field in self._schema]
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_arrays(columns, schema=self._schema))
        self._rows = []

    def _column(self, field: Any) -> Any:
        values = [row.get(field.name) for row in self._rows]
        if field.type == self._arrow.string():
            values = [None if value is None else readable(as_text(value)) for value in values]
        try:
            return self._arrow.array(values, field.type)
        except (self._arrow.ArrowException, OverflowError):
            return self._arrow.array([self._fitting(value, field) for value in values], field.type)

    def _fitting(self, value: Any, field: Any) -> Any:
        try:
            self._arrow.array([value], field.type)
        except (self._arrow.ArrowException, OverflowError):
            warning = f"Column {field.name!r} is of type {field.type}; what is of another was left out."
            if warning not in self._warnings:
                self._warnings.append(warning)
            return None
        return value


def typed(file: IO[bytes], schema: Any, warnings: list[str]) -> ParquetWriter:
    """Writes rows of an input with the types of *schema*."""
    names = output_names(schema.names)
    own = [field.with_name(names[field.name]).with_nullable(True) for field in schema]
    return ParquetWriter(file, arrow().schema([*own, *_added()]), warnings)


class UntypedParquet:
    """A Parquet file of rows that have no types of their own.

    The rows wait in a file beside it until the last one is there: only then is it known which columns there are, and
    which types hold everything in them.  A column of which no other type can be said to do so is text.

    Args:
        file: Where to write.
        columns: The columns that come first.
        folder: Where rows wait.
        warnings: What a careful caller should know.
    """

    def __init__(self, file: IO[bytes], columns: Iterable[str], folder: Path, warnings: list[str]) -> None:
        self._file = file
        self._kinds: dict[str, set[str]] = {readable(name): set() for name in columns if name not in RESULT}
        self._waiting = TemporaryFile(dir=folder)  # noqa: SIM115 - closed by close and abandon
        self._warnings = warnings

    def write(self, row: Mapping[str, Any]) -> None:
        """Add *row*."""
        for name, value in row.items():
            if name not in RESULT:
                self._kinds.setdefault(readable(name), set()).update(_kind(value))
        self._waiting.write(as_json(row).encode() + b"\n")

    def close(self) -> None:
        """Write the file."""
        own = [arrow().field(name, _type_of(kinds)) for name, kinds in self._kinds.items()]
        writer = ParquetWriter(self._file, arrow().schema([*own, *_added()]), self._warnings)
        with closing(self._waiting) as lines:
            try:
                lines.seek(0)
                for line in lines:
                    writer.write(json.loads(line))
                writer.close()
            finally:
                writer.abandon()

    def abandon(self) -> None:
        """Let the files go as they are."""
        self._waiting.close()


def _added() -> list[Any]:
    return [arrow().field(name, arrow().string()) for name in RESULT]


def _kind(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ("bool",) if isinstance(value, bool) else ("text",)
    if isinstance(value, float):
        return ("float",)
    return ("int",) if abs(value) <= 2**53 else ("long",) if -(2**63) <= value < 2**63 else ("text",)


def _type_of(kinds: set[str]) -> Any:
    if kinds == {"bool"}:
        return arrow().bool_()
    if kinds and kinds <= {"int", "long"}:
        return arrow().int64()
    return arrow().float64() if kinds and kinds <= {"int", "float"} else arrow().string()  # a long is no exact float
