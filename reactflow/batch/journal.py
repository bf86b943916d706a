"""What was paid for, on disk: finished rows, and of the unfinished ones each answer of a model or a tool.

One SQLite file in write-ahead mode.  A write is with the operating system before the answer is used, so a process
that is killed loses nothing; only a power cut can lose the last moments.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from reactflow.errors import StoreError
from reactflow.frozen import FrozenDict
from reactflow.messages import AssistantMessage, ToolCall, ToolMessage, Usage, readable
from reactflow.model import ChatResponse
from reactflow.specs.outcome import Outcome, Status

T = TypeVar("T")

Answer: TypeAlias = ChatResponse | ToolMessage
"""What a step came to: that of a model, or of a tool."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS finished (spec TEXT, key TEXT, prompt TEXT, status TEXT, response TEXT, metadata TEXT,
    PRIMARY KEY (spec, key, prompt)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS steps (spec TEXT, key TEXT, prompt TEXT, step TEXT, answer TEXT,
    PRIMARY KEY (spec, key, prompt, step)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class RowId:
    """Which row of which agent.

    Args:
        spec: The agent's digest: another agent's answers are not these.
        key: The row's own key.
        prompt: A digest of what it asks: a row that was changed is another one.
    """

    spec: str
    key: str
    prompt: str

    @classmethod
    def of(cls, spec: str, key: str, prompt: str | None) -> RowId:
        """The id of the row *key* that asks *prompt*."""
        return cls(spec, readable(key), hash_of(prompt or ""))


def hash_of(text: str) -> str:
    """A digest of *text*, 32 characters."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Journal:
    """Keeps answers by row and step.  Safe to use from several threads, and from several processes.

    Args:
        path: The file; made where it is missing.  ``":memory:"`` keeps answers while the object lives.

    Raises:
        StoreError: The file cannot be opened, or is something else.  Later: it cannot be used, or is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise StoreError(
                f"The answer cache {self.path} cannot be used: {error}. Delete it, or name another with --cache."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def finished(self, row: RowId) -> Outcome | None:
        """How *row* ended, or None where it has not, or failed."""
        found = self._one("SELECT status, response, metadata FROM finished WHERE spec=? AND key=? AND prompt=?", row)
        return None if found is None else self._understood(row, lambda: _outcome(*found))

    def finish(self, row: RowId, outcome: Outcome) -> None:
        """Note how *row* ended.  A failed one is forgotten, so that it is tried again; the answers that led to it
        stay where something outside failed, and go where the model itself did."""
        where = (row.spec, row.key, row.prompt)
        if outcome.status is not Status.FAILED:
            metadata = json.dumps(dict(outcome.metadata), ensure_ascii=False, default=str)
            values = (*where, outcome.status.value, outcome.response and readable(outcome.response), readable(metadata))
            self._write("INSERT OR REPLACE INTO finished VALUES (?, ?, ?, ?, ?, ?)", values)
        if outcome.status is not Status.FAILED or not outcome.metadata.get("transient"):
            self._write("DELETE FROM steps WHERE spec=? AND key=? AND prompt=?", where)

    def step(self, row: RowId, step: str) -> Answer | None:
        """The answer that *step* of *row* had, or None."""
        sql = "SELECT answer FROM steps WHERE spec=? AND key=? AND prompt=? AND step=?"
        found = self._one(sql, row, step)
        return None if found is None else self._understood(row, lambda: _read(found[0]))

    def note(self, row: RowId, step: str, answer: Answer) -> None:
        """Keep the answer of *step*.  One that has no JSON form is not kept: it would be asked for again."""
        with suppress(TypeError, ValueError):
            values = (row.spec, row.key, row.prompt, step, _write(answer))
            self._write("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?, ?)", values)

    def _understood(self, row: RowId, read: Callable[[], T]) -> T:
        try:
            return read()
        except (ValueError, TypeError, LookupError, AttributeError) as error:  # whatever stands there instead
            raise StoreError(
                f"The answer cache {self.path} is damaged where it keeps row {row.key!r:.80} "
                f"({type(error).__name__}: {error}). Delete the file, or name another with --cache."
            ) from error

    def _one(self, sql: str, row: RowId, *more: str) -> Any:
        with self._lock:
            try:
                return self._db.execute(sql, (row.spec, row.key, row.prompt, *more)).fetchone()
            except sqlite3.Error as error:
                raise StoreError(f"The answer cache {self.path} cannot be read: {error}.") from error

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        with self._lock:
            try:
                self._db.execute(sql, values)
            except sqlite3.Error as error:
                raise StoreError(f"The answer cache {self.path} cannot be written: {error}.") from error


def _outcome(status: str, response: str | None, metadata: str) -> Outcome:
    return Outcome(Status(status), response, FrozenDict(json.loads(metadata)))


def _write(answer: Answer) -> str:
    if isinstance(answer, ToolMessage):
        return json.dumps({"result": [answer.text, answer.call_id, answer.name, answer.is_error]})
    message, usage = answer.message, answer.usage
    data = {
        "text": message.text,
        "calls": [[call.id, call.name, call.arguments] for call in message.tool_calls],
        "extra": message.extra,
        "usage": usage and [getattr(usage, name) for name in _USAGE],
        "finish_reason": answer.finish_reason,
    }
    return json.dumps(data)  # ASCII: a lone surrogate comes back as it was


_USAGE: Final = ("input_tokens", "output_tokens", "cached_tokens", "model_calls", "unknown_calls")


def _read(text: str) -> Answer:
    data = json.loads(text)
    if "result" in data:
        return ToolMessage(*data["result"])
    calls = tuple(ToolCall(*call) for call in data["calls"])
    usage = None if data["usage"] is None else Usage(*data["usage"])
    return ChatResponse(AssistantMessage(data["text"], calls, FrozenDict(data["extra"])), usage, data["finish_reason"])
