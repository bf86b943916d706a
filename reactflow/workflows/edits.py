"""Edits that can only touch what was flagged.

A refiner says what to put in the place of which words; the program does it.  So whatever the refiner writes, text
outside the flagged spans stays as it was.  Words that are not in the text, or are there twice, are reported and never
guessed at.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, NamedTuple, TypeAlias

from rapidfuzz.distance import Indel

from reactflow.errors import ModelBehaviorError
from reactflow.judging.grades import snake
from reactflow.judging.loose_json import Members, find_objects
from reactflow.judging.reply import check_length, stands_alone, strip_thinking

Span: TypeAlias = tuple[int, int]
"""Where a passage begins in the text, and the position after it."""

_SNIPPETS = ("snippet", "find", "search", "old", "original", "before")
_REPLACEMENTS = ("replacement", "replace", "replace_with", "new", "after", "with", "suggestion")
_EXACT_CELLS = 100_000_000  # units of one text times those of the other; about 0.05 s and 15 MB


@dataclass(frozen=True, slots=True)
class Edit:
    """Put *replacement* in the place of *snippet*.

    Args:
        snippet: Words of the text, which must hold them exactly once; blank adds to the end of the text.
        replacement: What stands there afterwards; empty takes the words away.
    """

    snippet: str
    replacement: str


@dataclass(frozen=True, slots=True)
class RefusedEdit:
    """An edit, or an issue, that could not be acted upon.

    Args:
        snippet: The words it is about.
        reason: Why not, as the end of a sentence: ``"is not in the text"``.
    """

    snippet: str
    reason: str

    def __str__(self) -> str:
        return f"{self.snippet[:80]!r} {self.reason}"


NOT_FOUND = "is not in the text"
FOUND_TWICE = "is in the text more than once"
NOT_FLAGGED = "reaches outside what was flagged"
OVERLAPS = "overlaps another edit"
NO_ADDITION = "would add to the text, which no issue asks for"


class Edited(NamedTuple):
    """A text after its edits.

    Args:
        text: The new text.
        applied: The edits that were made, in the order of the text.
        refused: Those that were not, and why.
    """

    text: str
    applied: tuple[Edit, ...] = ()
    refused: tuple[RefusedEdit, ...] = ()


def locate(text: str, snippet: str) -> Span | str:
    """Where *snippet* is in *text*, or why that cannot be said.

    It must be there exactly once, to the letter; only if it is not, white space may differ.
    """
    if not snippet.strip():
        return NOT_FOUND
    for words in (snippet, snippet.strip()):
        at = text.find(words)
        if at >= 0:
            return FOUND_TWICE if text.find(words, at + 1) >= 0 else (at, at + len(words))
    return _locate_loosely(text, " ".join(words.split()))


def _locate_loosely(text: str, words: str) -> Span | str:
    """Find *words* where all white space counts as one blank; in time proportional to the text, unlike a pattern."""
    plain = " ".join(text.split())
    at = plain.find(words)
    if at < 0:
        return NOT_FOUND
    if plain.find(words, at + 1) >= 0:
        return FOUND_TWICE
    return _original(text, plain, at), _original(text, plain, at + len(words) - 1) + 1


def _original(text: str, plain: str, at: int) -> int:
    """Where the character *at* of *plain*, which is no blank, stands in *text*."""
    word = next(islice(re.finditer(r"\S+", text), plain.count(" ", 0, at), None))
    return word.start() + at - (plain.rfind(" ", 0, at) + 1)


def apply_edits(text: str, edits: Iterable[Edit], flagged: Sequence[Span], *, may_add: bool = False) -> Edited:
    """Make those of *edits* that stay inside *flagged*.

    Args:
        text: What is edited.
        edits: What to do; an edit with a blank snippet adds its words as a paragraph at the end.
        flagged: The spans that may change.
        may_add: Whether something may be added at the end.

    Returns:
        The new text, in which all that was not flagged stands as before.
    """
    planned: list[tuple[Span, str, Edit]] = []
    added: list[Edit] = []
    refused: list[RefusedEdit] = []
    for edit in edits:
        if not edit.snippet.strip():
            problem = None if may_add and edit.replacement.strip() else NO_ADDITION
            place: tuple[Span, str] | None = None
        else:
            place, problem = _inside(text, edit, flagged)
        if place is not None and any(_collide(place[0], span) for span, _, _ in planned):
            problem = OVERLAPS
        if problem is not None:
            refused.append(RefusedEdit(edit.snippet.strip() or edit.replacement, problem))
        elif place is not None:
            planned.append((*place, edit))
        else:
            added.append(edit)
    planned.sort(key=lambda each: each[0])
    for (start, end), words, _ in reversed(planned):
        text = text[:start] + words + text[end:]
    for edit in added:
        text += ("" if not text or text.endswith("\n") else "\n\n") + edit.replacement.strip()
    return Edited(text, (*(edit for _, _, edit in planned), *added), tuple(refused))


def _inside(text: str, edit: Edit, flagged: Sequence[Span]) -> tuple[tuple[Span, str] | None, str | None]:
    """The part of the edit that lies inside a flagged span, or why there is none.

    Words around the span may be quoted in the edit, but not changed.
    """
    place = locate(text, edit.snippet)
    if isinstance(place, str):
        return None, place
    start, end = place
    words = edit.replacement if text[start:end] == edit.snippet else edit.replacement.strip()
    for first, last in flagged:
        before, after = text[start : max(start, first)], text[min(end, last) : end]
        inside = first < end and start < last and len(before) + len(after) <= len(words)
        if inside and words.startswith(before) and words.endswith(after):
            return ((start + len(before), end - len(after)), words[len(before) : len(words) - len(after)]), None
    return None, NOT_FLAGGED


def _collide(one: Span, other: Span) -> bool:
    """Whether two spans share a character, or are the same place."""
    return one == other or (one[0] < other[1] and other[0] < one[1])


def read_edits(text: str) -> tuple[Edit, ...]:
    """The edits that a refiner wrote: ``{"edits": [{"snippet": ..., "replacement": ...}]}``.

    Read as tolerantly as a verdict: fences and prose around it do not matter, nor the common other names of the two
    fields.  An object that is quoted, or stands inside a sentence, is somebody else's.

    Raises:
        ModelBehaviorError: There is no such list, it was cut off, an edit lacks a field, or *text* is too long.
    """
    check_length(text)
    text = strip_thinking(text)
    scan = find_objects(text)
    if scan.damage >= 0 or not all(found.sure for found in scan.objects):
        raise ModelBehaviorError("The list of edits is cut off or damaged.")
    own = [each.members for each in scan.objects if stands_alone(text, each)]
    listed = next((members["edits"] for members in map(dict, reversed(own)) if "edits" in members), None)
    items = listed if listed is not None else own
    if not isinstance(items, list) or isinstance(items, Members) or (listed is None and not items):
        raise ModelBehaviorError('There is no JSON object with a list of "edits".')
    return tuple(_edit(item) for item in items)


def _edit(item: Any) -> Edit:
    given = {snake(key): value for key, value in item} if isinstance(item, Members) else {}
    snippet, replacement = (_first(given, names) for names in (_SNIPPETS, _REPLACEMENTS))
    if not isinstance(snippet, str) or not isinstance(replacement, str):
        raise ModelBehaviorError('An edit needs "snippet" and "replacement", both texts.')
    return Edit(snippet, replacement)


def _first(given: dict[str, Any], names: Iterable[str]) -> Any:
    return next((given[name] for name in names if name in given), None)


def share_changed_outside(before: str, after: str, flagged: Sequence[Span]) -> float:
    """How much of the text outside *flagged* is not in *after* as it was, from 0.0 to 1.0.

    Characters taken away count, and so do characters put in where nothing was flagged.  Where both texts are long
    they are compared line by line; where they are very long too, lines that only moved count as kept.

    Args:
        before: The text that was to be edited.
        after: What came back.
        flagged: Spans of *before* that were to change.
    """
    outside, untouched = bytearray(b"\1") * len(before), bytearray(b"\1") * (len(before) + 1)
    for start, end in flagged:
        outside[start:end] = bytes(end - start)
        untouched[start : end + 1] = bytes(end + 1 - start)
    total = outside.count(1)
    changes = _changes(before, after)
    lost = sum(outside.count(1, start, end) for start, end in changes.lost)
    added = sum(count for at, count in changes.added if untouched[at])
    return min(1.0, (lost + added) / total) if total else float(bool(added))


class _Changes(NamedTuple):
    """Which spans of a text are no longer there, and how many characters were put in at which place."""

    lost: list[Span]
    added: list[tuple[int, int]]


def _changes(before: str, after: str) -> _Changes:
    if len(before) * len(after) <= _EXACT_CELLS:
        return _ordered_changes(before, after)
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return (_ordered_changes if len(old) * len(new) <= _EXACT_CELLS else _unordered_changes)(old, new)


def _ordered_changes(old: Sequence[str], new: Sequence[str]) -> _Changes:
    starts = _starts(old)
    lost, added = [], []
    for step in Indel.opcodes(old, new):
        start, end = starts[step.src_start], starts[step.src_end]
        if step.tag == "delete":
            lost.append((start, end))
        elif step.tag == "insert":
            added.append((start, sum(len(unit) for unit in new[step.dest_start : step.dest_end])))
    return _Changes(lost, added)


def _unordered_changes(old: Sequence[str], new: Sequence[str]) -> _Changes:
    """The same in time proportional to the texts: a line is kept if it is anywhere in the new one.

    A new line was put in behind the last kept one before it.
    """
    places: defaultdict[str, deque[Span]] = defaultdict(deque)
    starts = _starts(old)
    for number, unit in enumerate(old):
        places[unit].append((starts[number], starts[number + 1]))
    at, added = 0, []
    for unit in new:
        if waiting := places.get(unit):
            at = waiting.popleft()[1]
        else:
            added.append((at, len(unit)))
    return _Changes([span for waiting in places.values() for span in waiting], added)


def _starts(units: Sequence[str]) -> list[int]:
    """Where each unit begins, and the last one ends."""
    return [0, *accumulate(map(len, units))]
