"""Where lessons are kept for a later run: in this process, in a file, or in the store of a chat memory."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from reactflow.errors import ConfigurationError, StoreError
from reactflow.fair_lock import FairLocks
from reactflow.messages import readable
from reactflow.store import MessageStore
from reactflow.stores.turn_locks import FileLocks, finished, held
from reactflow.threads import run_in_thread
from reactflow.workflows.lessons import Lesson

T = TypeVar("T")

Edit: TypeAlias = Callable[[tuple[Lesson, ...]], Iterable[Lesson]]
"""Turns the lessons of one family into what they shall be.  Does nothing else, and does not wait."""


@runtime_checkable
class LessonStore(Protocol):
    """Keeps lessons by family.  Subclass nothing: any object with these members is one."""

    async def read(self, family: str) -> Sequence[Lesson]:
        """The lessons of *family*, oldest first.

        Raises:
            StoreError: They cannot be read.
        """
        ...

    async def change(self, family: str, edit: Edit) -> None:
        """Read, edit and write the lessons of *family* as one step that no other change comes between.

        Raises:
            StoreError: They cannot be read or written; they are as they were.
        """
        ...


class InMemoryLessons:
    """Keeps lessons in this process.  Safe to use from several tasks, event loops and threads."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[Lesson, ...]] = {}
        self._guard = threading.Lock()

    async def read(self, family: str) -> tuple[Lesson, ...]:
        """The lessons of *family*, oldest first."""
        return self._families.get(family, ())

    async def change(self, family: str, edit: Edit) -> None:
        """Edit the lessons of *family* as one step."""
        with self._guard:
            self._families[family] = tuple(edit(self._families.get(family, ())))


_writers = FairLocks()
"""Who of this process may write to a file: the locks between processes do not hold within one."""


class FileLessons:
    """Keeps lessons in a file of JSON lines, one lesson a line, all families together.

    The file is always whole: it is written anew beside the old one and put in its place.  Tasks, threads and, where
    the system has POSIX locks, processes wait for each other; their lock is an empty file beside it.

    Args:
        path: The file; it and its folder are made when the first lesson is kept.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()

    def __repr__(self) -> str:
        return f"FileLessons({str(self.path)!r})"

    async def read(self, family: str) -> tuple[Lesson, ...]:
        """The lessons of *family*, oldest first; none where there is no file.

        Raises:
            StoreError: The file cannot be read, or a line of it is no lesson.
        """
        return tuple(each for each in await self._in_thread(self._load) if each.family == family)

    async def change(self, family: str, edit: Edit) -> None:
        """Edit the lessons of *family* as one step.

        Raises:
            StoreError: The file cannot be read or written.
        """
        async with _writers.hold(str(self.path.resolve())):
            locks = await self._in_thread(self._locks)
            async with held(partial(locks.try_lock, 0), partial(locks.unlock, 0)):
                await finished(self._in_thread(partial(self._rewrite, family, edit)))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await run_in_thread(work)
        except OSError as error:
            raise StoreError(f"The lessons in {str(self.path)!r} cannot be reached: {error}.") from error

    def _locks(self) -> FileLocks:
        path = self.path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLocks.of(path.with_name(path.name + ".lock"))

    def _load(self) -> list[Lesson]:
        with suppress(FileNotFoundError):
            lines = self.path.read_bytes().split(b"\n")
            return [self._decoded(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        return []

    def _decoded(self, number: int, line: bytes) -> Lesson:
        try:
            return _lesson(json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(
                f"Line {number} of {str(self.path)!r} is no lesson: {error}. Mend or remove it."
            ) from error

    def _rewrite(self, family: str, edit: Edit) -> None:
        lessons = self._load()
        others = [each for each in lessons if each.family != family]
        own = edit(tuple(each for each in lessons if each.family == family))
        text = "".join(f"{_encoded(each)}\n" for each in (*others, *own))
        path = self.path.resolve()  # a link stays a link
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                shutil.copymode(path, name)
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


class StoredLessons:
    """Keeps lessons in the store of a chat memory: this process, SQL or Redis, as :func:`reactflow.stores.open_store`.

    A family's lessons are a note of the conversation ``reflexion:<family>``, written in that conversation's turn; so
    a store whose turns wait for each other (``overlap="wait"``, the default) never loses one, between processes too.

    Args:
        store: Any :class:`~reactflow.store.MessageStore`.
        prefix: Begins the id of those conversations.
    """

    def __init__(self, store: MessageStore, *, prefix: str = "reflexion:") -> None:
        if isinstance(store, type) or not isinstance(store, MessageStore):
            raise ConfigurationError(f"StoredLessons({store!r:.80}): give a message store, such as open_store(url).")
        if not isinstance(prefix, str) or not prefix.strip():
            raise ConfigurationError(f"StoredLessons(prefix={prefix!r:.80}): give a text that is not blank.")
        self.store = store
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"StoredLessons({self.store!r})"

    async def read(self, family: str) -> tuple[Lesson, ...]:
        """The lessons of *family*, oldest first.

        Raises:
            StoreError: The store failed, or what it holds there is no list of lessons.
        """
        text = await self.store.note(self.prefix + family, "lessons")
        try:
            return tuple(map(_lesson, json.loads(text or "[]")))
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(
                f"The note 'lessons' of {self.prefix + family!r} holds no lessons: {error}. Mend or clear it."
            ) from error

    async def change(self, family: str, edit: Edit) -> None:
        """Edit the lessons of *family* as one step.

        Raises:
            StoreError: The store failed.
        """
        async with self.store.turn(self.prefix + family):
            lessons = edit(await self.read(family))
            text = f"[{','.join(map(_encoded, lessons))}]"
            await self.store.set_note(self.prefix + family, "lessons", text)


def _encoded(lesson: Lesson) -> str:
    facts = {name: readable(value) if isinstance(value, str) else value for name, value in asdict(lesson).items()}
    return json.dumps(facts, ensure_ascii=False)


def _lesson(facts: Any) -> Lesson:
    """The lesson that *facts* describe; what a later version may have added is passed over."""
    if not isinstance(facts, dict):
        raise TypeError(f"{facts!r:.80} is no object")
    known = {name: facts[name] for name in (each.name for each in fields(Lesson)) if name in facts}
    return Lesson(**known)
