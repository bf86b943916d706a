"""The episodic memory of a Reflexion run: lessons of earlier attempts, few and to the point."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reactflow.errors import ConfigurationError
from reactflow.messages import readable
from reactflow.phrases import shorten, shorten_middle
from reactflow.workflows.lesson_stores import FileLessons, InMemoryLessons, LessonStore, StoredLessons
from reactflow.workflows.lessons import Lesson, credited, merged, picked, trimmed

__all__ = ["Episode", "EpisodicMemory", "FileLessons", "InMemoryLessons", "Lesson", "LessonStore", "StoredLessons"]


@dataclass(frozen=True, slots=True)
class EpisodicMemory:
    """What an actor is reminded of, and where it is kept.

    Ten equal failures leave one lesson.  A lesson that was shown twice to no avail loses weight, and where there are
    too many those of low weight are forgotten first.

    Args:
        max_lessons: How many lessons an attempt is shown at most, > 0; those that promise most for the task.
        store: Where lessons are kept for later runs, by family; None keeps them for one run only.
        max_kept: How many lessons of a family are kept at most, >= *max_lessons*.
        max_advice_chars: Advice and trigger are cut at this length each, > 0.
        max_evidence_chars: Longer evidence loses its middle, > 0.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    max_lessons: int = 3
    store: LessonStore | None = field(default=None, kw_only=True)
    max_kept: int = field(default=100, kw_only=True)
    max_advice_chars: int = field(default=600, kw_only=True)
    max_evidence_chars: int = field(default=2000, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("max_lessons", "max_kept", "max_advice_chars", "max_evidence_chars"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ConfigurationError(f"EpisodicMemory({name}={value!r}): give a whole number from 1.")
        if self.max_kept < self.max_lessons:
            raise ConfigurationError(
                f"EpisodicMemory(max_kept={self.max_kept}): give at least max_lessons={self.max_lessons}."
            )
        if self.store is not None and (isinstance(self.store, type) or not isinstance(self.store, LessonStore)):
            raise ConfigurationError(f"EpisodicMemory(store={self.store!r:.80}): give FileLessons(path) or the like.")

    def open(self, task: str, family: str = "") -> Episode:
        """The lessons as one run on *task* sees them."""
        return Episode(self, task, family)


class Episode:
    """The lessons of one run; what it learns is there at once for other runs of the same store.

    Attributes:
        learnt: What this run has learnt, oldest first.
        shown: What was recalled last, oldest first.
    """

    def __init__(self, memory: EpisodicMemory, task: str, family: str = "") -> None:
        self.memory = memory
        self.task = task
        self.family = family
        self.learnt: tuple[Lesson, ...] = ()
        self.shown: tuple[Lesson, ...] = ()
        self._store = memory.store or InMemoryLessons()

    async def recall(self) -> tuple[Lesson, ...]:
        """The lessons that promise most for the task, at most ``max_lessons``, oldest first.

        Raises:
            StoreError: The store cannot be read; then ``shown`` is what this run learnt.
        """
        self._show(self.learnt)
        return self._show(await self.known())

    async def known(self) -> tuple[Lesson, ...]:
        """All lessons of the family, oldest first, and what this run learnt, where the store could not take it.

        Raises:
            StoreError: The store cannot be read.
        """
        stored = await self._store.read(self.family)
        kept = {each.advice for each in stored}
        return (*stored, *(each for each in self.learnt if each.advice not in kept))

    async def judged(self, passed: bool) -> None:
        """Note how the attempt ended for which the lessons were last recalled; once for each attempt.

        Raises:
            StoreError: The store cannot be written.
        """
        shown = {each.advice for each in self.shown}
        if shown:
            self.learnt = credited(self.learnt, shown, won=passed)
            await self._store.change(self.family, partial(credited, shown=shown, won=passed))

    async def learn(self, lesson: Lesson) -> Lesson:
        """Keep *lesson*, cut to size and under the run's family, and return it as it is kept.

        Raises:
            StoreError: The store cannot be written; for this run the lesson is kept all the same.
        """
        lesson = self._cut_to_size(lesson)
        own = {each.advice for each in self.learnt}
        self.learnt = merged(self.learnt, lesson, own)
        await self._store.change(self.family, lambda known: trimmed(merged(known, lesson, own), self.memory.max_kept))
        return lesson

    async def condense(self, lessons: Sequence[Lesson], into: Sequence[Lesson]) -> None:
        """Put *into* in the place of *lessons*; what others learnt meanwhile stays.

        Raises:
            StoreError: The store cannot be written; for this run the change holds all the same.
        """
        old, new = {each.advice for each in lessons}, tuple(map(self._cut_to_size, into))
        if any(each.advice in old for each in self.learnt):
            self.learnt = _replaced(self.learnt, old, new)
        await self._store.change(self.family, partial(_replaced, old=old, new=new))

    def _show(self, lessons: Sequence[Lesson]) -> tuple[Lesson, ...]:
        own = {each.advice for each in self.learnt}
        self.shown = picked(lessons, self.task, self.memory.max_lessons, own)
        return self.shown

    def _cut_to_size(self, lesson: Lesson) -> Lesson:
        limit, max_evidence = self.memory.max_advice_chars, self.memory.max_evidence_chars
        return replace(
            lesson,
            advice=shorten(readable(lesson.advice.strip()), limit),
            trigger=shorten(readable(lesson.trigger.strip()), limit),
            evidence=shorten_middle(readable(lesson.evidence.strip()), max_evidence, question=self.task),
            family=self.family,
        )


def _replaced(lessons: Sequence[Lesson], old: Collection[str], new: Sequence[Lesson]) -> tuple[Lesson, ...]:
    kept = tuple(each for each in lessons if each.advice not in old)
    for each in new:
        kept = merged(kept, each)
    return kept
