"""What the workers of one job share by a folder that all of them see: the log of their steps, one purse, last words.

Each worker writes a file of its own, so there is nothing to lock, and any shared disk will do.  The process that
starts the job makes the folder; a worker that does not find it says so, instead of making another one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final
from uuid import uuid4

from reactflow.batch.calls import Spending
from reactflow.batch.job import JobStopped
from reactflow.budget import Price
from reactflow.errors import ConfigurationError, ReactflowError, StoreError
from reactflow.frozen import FrozenDict
from reactflow.messages import Usage, readable
from reactflow.result import StopReason
from reactflow.specs.values import AnyAgentSpec
from reactflow.sql.logs import COLUMNS, LogRow, RowLog


class OwnFile:
    """A file in a shared folder that one worker writes.

    Args:
        folder: Must be there.
        suffix: How its name ends.

    Raises:
        ConfigurationError: The folder is not there, or cannot be written.
    """

    def __init__(self, folder: str, suffix: str) -> None:
        self.path = Path(folder) / f"part-{uuid4().hex}{suffix}"
        try:
            self._file = self.path.open("xb", buffering=0)  # what was written is there, whatever kills the worker
        except OSError as error:
            raise ConfigurationError(
                f"{folder} cannot be used on this worker: {error.strerror}. Name a folder that every node sees."
            ) from error

    def append(self, data: bytes) -> None:
        """Write *data* at the end.

        Raises:
            StoreError: The disk is full, or the like.
        """
        try:
            written = self._file.write(data)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}.") from error
        if written != len(data):
            raise StoreError(f"{self.path} cannot be written: the disk is full.")

    def replace(self, data: bytes) -> None:
        """Write *data*, which always has the same length, in the place of what was there.

        Raises:
            StoreError: The disk is full, or the like.
        """
        self._file.seek(0)
        self.append(data)

    def close(self) -> None:
        """Close the file; it stays."""
        self._file.close()


@contextmanager
def leaving_word(folder: str | None) -> Iterator[None]:
    """Write what ends the job into a file in *folder*, for an engine that may lose it."""
    try:
        yield
    except ReactflowError as error:
        if folder is not None:
            with suppress(OSError):  # it is raised all the same
                (Path(folder) / f"part-{uuid4().hex}").write_text(readable(f"{type(error).__name__}: {error}"), "utf-8")
        raise


def last_word(folder: Path) -> str | None:
    """What a worker wrote last into *folder*, None where none did."""
    if not folder.is_dir():
        return None
    newest = max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns, default=None)
    return None if newest is None else newest.read_text("utf-8")


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where the steps of agents are logged, as JSON lines with the columns of a log table.

    Args:
        folder: Is there, on a disk that every worker sees.
        job_id: Names the job in the log.
        statement_name: Names the part of the job.
    """

    folder: str
    job_id: str = ""
    statement_name: str = ""

    def open(self, spec: AnyAgentSpec) -> StepLog:
        """The log of one worker that runs *spec*.

        Raises:
            ConfigurationError: The folder is not there.
        """
        return StepLog(self, spec)


class StepLog:
    """The log of one worker.

    Args:
        place: Where.
        spec: The agent.
    """

    def __init__(self, place: LogPlace, spec: AnyAgentSpec) -> None:
        self._file = OwnFile(place.folder, ".jsonl")
        self.rows = RowLog(spec, place.job_id, place.statement_name, self._add)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _add(self, row: LogRow) -> None:
        line: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
        self._file.append(f"{readable(json.dumps(line, ensure_ascii=False))}\n".encode())


@dataclass(frozen=True, slots=True)
class Purse:
    """What all workers of a job may spend together.

    Args:
        limit_usd: Dollars after which no new row is begun, > 0.
        folder: Is there, empty, on a disk that every worker sees.
    """

    limit_usd: float
    folder: str

    def __post_init__(self) -> None:
        if not self.limit_usd > 0:
            raise ConfigurationError(f"limit_usd={self.limit_usd!r}: give dollars above 0.")


_TOTAL: Final = struct.Struct("<d")


class SharedSpending(Spending):
    """The count of one worker, which tells the others what it has spent.

    Args:
        purse: What they may spend together.
        prices: By model name.

    Raises:
        ConfigurationError: The purse's folder is not there.
    """

    def __init__(self, purse: Purse, prices: FrozenDict[str, Price]) -> None:
        super().__init__(prices)
        self.limit_usd = purse.limit_usd
        self._folder = Path(purse.folder)
        self._file = OwnFile(purse.folder, "")
        self._file.append(_TOTAL.pack(0.0))
        self._telling = Lock()

    def add(self, model: str, usage: Usage | None, *, taken: Usage) -> None:
        """Count one call, and tell the others.

        Raises:
            StoreError: The disk is full, or the like.
        """
        super().add(model, usage, taken=taken)
        with self._telling:
            self._file.replace(_TOTAL.pack(self.cost_usd))

    def of_all_usd(self) -> float:
        """What all workers have spent."""
        total = 0.0
        for path in self._folder.iterdir():
            with suppress(OSError, struct.error):  # one that is just being made
                total += _TOTAL.unpack(path.read_bytes())[0]
        return total

    def used_up(self) -> JobStopped:
        """What says that no new row is begun."""
        words = f"{self.of_all_usd():.4f} of {self.limit_usd} dollars are spent; start it again to go on."
        return JobStopped(words, reason=StopReason.COST_BUDGET)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
