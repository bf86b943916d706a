"""Where a Flink job keeps what outlives it: checkpoints, its input as it was read, and its output so far."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self
from uuid import uuid4

from reactflow.batch.sinks import JsonWriter, Sink
from reactflow.batch.sources import arrow, format_of, open_source
from reactflow.engines.flink_sql import as_json_row, columns_of
from reactflow.engines.shared import Purse
from reactflow.errors import ConfigurationError

_DONE: Final = "done"


class JobFolder:
    """The folder of one script; a context manager.

    A script that is started again finds what it had: statements that were finished are not run again, the one that
    was under way goes on from its last checkpoint.  Another script, or one with other input files, has another folder.
    When a script has run to its end, the folder goes.

    Args:
        place: Where such folders are; None for a temporary one, from which nothing can go on.
        script: What is run.
        tables: Files that are read, by the table's name.
    """

    def __init__(self, place: Path | None, script: str, tables: Mapping[str, Path]) -> None:
        if place is None:
            self.path = Path(tempfile.mkdtemp(prefix="reactflow-"))
        else:
            self.path = place.resolve() / _name_of(script, tables)
        self._kept = place is not None

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be made: {error.strerror}.") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not self._kept:
            shutil.rmtree(self.path, ignore_errors=True)

    def table(self, name: str) -> Path:
        """The folder of a table that is written here."""
        return self.path / "tables" / _safe(name)

    def read(self, name: str, path: Path) -> tuple[Path, dict[str, str]]:
        """A copy of the file at *path* as JSON lines, and its columns with their types.

        Whatever the format was, a line that cannot be read is a row of NULLs.  It is made once, so that a job that
        goes on reads what it read before.

        Raises:
            ConfigurationError: There is no such file, or its name does not say what is in it.
        """
        copy = self.path / "input" / f"{_safe(name)}.jsonl"
        source = open_source(path)
        if not copy.is_file():
            copy.parent.mkdir(exist_ok=True)
            part = copy.with_suffix(".part")
            with part.open("wb") as file:
                writer = JsonWriter(file)
                for record in source:
                    writer.write(as_json_row(record))
            part.replace(copy)
        return copy, columns_of(source)

    def purse(self, limit_usd: float | None) -> Purse | None:
        """A new purse for the workers of this run, None where there is no limit.

        Raises:
            ConfigurationError: *limit_usd* is not above 0.
        """
        return None if limit_usd is None else Purse(limit_usd, str(self.new_place("spent")))

    def new_place(self, name: str) -> Path:
        """A new, empty folder for what the workers of this run write."""
        place = self.path / name / uuid4().hex
        place.mkdir(parents=True)
        return place

    def checkpoints(self, number: int) -> Path:
        """Where statement *number* keeps its checkpoints."""
        return self.path / f"statement-{number}"

    def last_checkpoint(self, number: int) -> Path | None:
        """The newest whole checkpoint of statement *number*, or None."""
        found = self.checkpoints(number).glob("*/chk-*/_metadata")
        newest = max(found, key=lambda file: file.stat().st_mtime_ns, default=None)
        return None if newest is None else newest.parent

    def begin(self, number: int, table: str) -> Path | None:
        """Make ready for statement *number*, which writes to *table*.

        Returns:
            The checkpoint to go on from.  Without one it begins anew, and what it had written before is removed.
        """
        place, begun = self.checkpoints(number), self._begun(number)
        last = self.last_checkpoint(number)
        before = {str(path) for path in self._files(table)}
        if begun.is_file() and last is None:
            for name in before - set(json.loads(begun.read_text("utf-8"))):
                Path(name).unlink()
        elif last is None:
            place.mkdir(exist_ok=True)
            part = begun.with_suffix(".part")
            part.write_text(json.dumps(sorted(before)), "utf-8")
            part.replace(begun)
        return last

    def empty(self, table: str) -> None:
        """Remove what an earlier run wrote to *table*."""
        shutil.rmtree(self.table(table), ignore_errors=True)

    def is_done(self, number: int, table: str) -> bool:
        """Whether statement *number* was finished by an earlier run, or had written all its rows to *table*.

        Flink gives its one file there the last name when all rows are in it, up to a checkpoint before the job ends.
        Nothing can go on from the checkpoint before: that looks for the file under its first name, or writes the rows
        to another one, too.
        """
        begun, whole = self._begun(number), {str(path) for path in self.table(table).glob("part-*-0-*")}
        if (self.checkpoints(number) / _DONE).is_file():
            return True
        return begun.is_file() and not whole <= set(json.loads(begun.read_text("utf-8")))

    def mark_done(self, number: int) -> None:
        """Note that statement *number* is finished."""
        (self.checkpoints(number) / _DONE).touch()

    def write(self, name: str, path: Path) -> None:
        """Write what table *name* holds to the file at *path*; it has its name when it is whole.

        Raises:
            ConfigurationError: Its name does not say the format, or there is no such folder.
            StoreError: The disk is full, or the like.
        """
        rows = self.rows(name)
        if format_of(path) == "parquet":
            part = path.with_name(f"{path.name}.part")
            arrow("parquet").write_table(arrow().Table.from_pylist(list(rows)), part)
            part.replace(path)
            return
        with Sink(path) as sink:
            for row in rows:
                sink.write(row)

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """What was written to table *name*, in the order in which it was written."""
        for path in sorted(self._files(name), key=_written_at):
            with path.open("rb") as lines:
                for line in lines:
                    if line.endswith(b"\n"):  # else a worker was killed while it wrote to a log
                        yield json.loads(line)

    def _begun(self, number: int) -> Path:
        """Where it is noted which files there were before statement *number*."""
        return self.checkpoints(number) / "begun.json"

    def _files(self, name: str) -> list[Path]:
        found = self.table(name).rglob("*")
        return [path for path in found if path.is_file() and not path.name.startswith((".", "_"))]


def _written_at(path: Path) -> tuple[int, int]:
    number = path.name.rpartition("-")[2]  # part-<id>-<subtask>-<number>
    return path.stat().st_mtime_ns, int(number) if number.isdigit() else 0


def _name_of(script: str, tables: Mapping[str, Path]) -> str:
    parts = [script]
    for name, path in sorted(tables.items()):
        found = path.stat() if path.is_file() else None
        parts.append(f"{name} {path.resolve()} {found and (found.st_size, found.st_mtime_ns)}")
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _safe(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_" else f"%{ord(char):x}" for char in name)
