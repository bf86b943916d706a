"""Tables that are files: read without a copy, and written when the script has run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from reactflow.batch.sources import format_of
from reactflow.errors import ConfigurationError
from reactflow.sql.dialect import Table, literal, quoted

_COPY: Final = {
    "jsonl": "FORMAT json",
    "csv": "FORMAT csv, HEADER",
    "tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    "parquet": "FORMAT parquet",
}


def read_from(path: Path, table: Table | None = None) -> str:
    """The query that reads the file at *path*, with the columns of *table* where it is given.

    A line that is no JSON, and a value that does not fit its column, are NULL: such a row fails, and no other.

    Raises:
        ConfigurationError: There is no such file, or its name does not say what is in it.
    """
    kind = format_of(path)
    if not path.is_file():
        raise ConfigurationError(f"There is no file {path}.")
    place = literal(str(path))
    if table is None:
        return f"SELECT * FROM {_auto(kind, place)}"
    if kind == "jsonl":
        names = ", ".join(f"{literal(column.name)}: {literal(column.type)}" for column in table.columns)
        return f"SELECT * FROM read_json({place}, format = 'newline_delimited', columns = {{{names}}}, {_LENIENT})"
    if kind == "parquet":
        columns = [f"TRY_CAST({quoted(each.name)} AS {each.type}) AS {quoted(each.name)}" for each in table.columns]
        return f"SELECT {', '.join(columns)} FROM read_parquet({place})"
    # NULLIF keeps the engine from letting the reader convert, which would fail where TRY_CAST gives NULL
    columns = [
        f"TRY_CAST(nullif({quoted(each.name)}, '') AS {each.type}) AS {quoted(each.name)}" for each in table.columns
    ]
    source = f"read_csv({place}, header = true, all_varchar = true, delim = {_DELIMITERS[kind]})"
    return f"SELECT {', '.join(columns)} FROM {source}"


_LENIENT: Final = "ignore_errors = true, maximum_object_size = 268435456"

_DELIMITERS: Final = {"csv": "','", "tsv": "'\t'"}


def _auto(kind: str, place: str) -> str:
    if kind == "jsonl":
        return f"read_json({place}, format = 'newline_delimited', {_LENIENT})"
    if kind == "parquet":
        return f"read_parquet({place})"
    return f"read_csv({place}, header = true, delim = {_DELIMITERS[kind]})"


def write_to(engine: Any, name: str, path: Path) -> None:
    """Write table *name* to the file at *path*; it has its name when it is whole.

    Raises:
        ConfigurationError: Its name does not say the format, or there is no such folder.
        duckdb.Error: There is no such table.
    """
    kind = format_of(path)
    if not path.parent.is_dir():
        raise ConfigurationError(f"There is no folder {path.parent}; make it first.")
    part = path.with_name(f"{path.name}.part")
    packed = ", COMPRESSION gzip" if path.suffix == ".gz" else ""
    rows = _for_json(engine, name) if kind == "jsonl" else f"FROM {name}"
    engine.execute(f"COPY ({rows}) TO {literal(str(part))} ({_COPY[kind]}{packed})")
    os.replace(part, path)


def _for_json(engine: Any, name: str) -> str:
    """The rows of table *name* with NULL for the numbers that JSON does not know; the engine writes their names."""
    columns = engine.execute(f"DESCRIBE {name}").fetchall()
    floats = [quoted(column) for column, kind, *_ in columns if kind in ("FLOAT", "DOUBLE")]
    finite = ", ".join(f"CASE WHEN isfinite({column}) THEN {column} END AS {column}" for column in floats)
    return f"SELECT * REPLACE ({finite}) FROM {name}" if floats else f"FROM {name}"


_CONNECTOR_FORMATS: Final = {"json": ".jsonl", "csv": ".csv", "parquet": ".parquet"}


def connected_file(table: Table, folder: Path) -> Path | None:
    """The file that a table's own options name (``'connector' = 'filesystem'``), or None."""
    options = table.options
    if options.get("connector", "").lower() != "filesystem":
        return None
    if not options.get("path"):
        raise ConfigurationError(f"Table {table.bare!r}: 'connector' = 'filesystem' needs a 'path'.")
    path = folder / options["path"].removeprefix("file://")
    kind = options.get("format", "").lower()
    if kind and _CONNECTOR_FORMATS.get(kind) is None:
        known = ", ".join(map(repr, _CONNECTOR_FORMATS))
        raise ConfigurationError(f"Table {table.bare!r}: 'format' = {kind!r} is not supported; there is: {known}.")
    return path
