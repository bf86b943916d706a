"""What a revision changed, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Literal, TypeAlias

from rapidfuzz.distance import Indel
from rich.text import Text

from reactflow.cli.terminal import clean

MAX_WORDS = 10_000
"""Longer drafts are not compared."""

REWRITTEN = 0.3
"""Drafts that share less than this are not compared: it would be a list of all words."""

CONTEXT_WORDS = 8
"""How many unchanged words are shown on each side of a change."""

Change: TypeAlias = Literal["equal", "delete", "insert", "gap"]

_WORD = re.compile(r"\s+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|.")


def changes(old: str, new: str) -> list[tuple[Change, str]]:
    """The way from *old* to *new* in pieces; a Chinese character counts as a word.

    Returns:
        What stayed, went and came, in the order of the text; a ``"gap"`` stands for unchanged words left out.  Empty
        where the texts are too long or hardly anything stayed, so that a comparison would say nothing.
    """
    before, after = _WORD.findall(old), _WORD.findall(new)
    if max(len(before), len(after)) > MAX_WORDS or _similarity(before, after) < REWRITTEN:
        return []
    return list(_pieces(before, after))


def _similarity(before: list[str], after: list[str]) -> float:
    """How much stayed, in 0..1; the spaces between words are always alike and do not count."""
    words = ([word for word in side if not word.isspace()] for side in (before, after))
    return float(Indel.normalized_similarity(*words))


def _pieces(before: list[str], after: list[str]) -> Iterator[tuple[Change, str]]:
    for stays, codes in groupby(Indel.opcodes(before, after), key=lambda code: code.tag == "equal"):
        group = list(codes)
        old, new = slice(group[0].src_start, group[-1].src_end), slice(group[0].dest_start, group[-1].dest_end)
        if stays:
            yield from _shortened(before[old], first=old.start == 0, last=old.stop == len(before))
            continue
        if gone := "".join(before[old]):  # first what went, then what came, as one reads
            yield "delete", gone
        if come := "".join(after[new]):
            yield "insert", come


def _shortened(words: list[str], *, first: bool, last: bool) -> Iterator[tuple[Change, str]]:
    """Unchanged words, with a gap where they are many: only those beside a change are shown."""
    head, tail = (0 if first else 2 * CONTEXT_WORDS), (0 if last else 2 * CONTEXT_WORDS)  # spaces count too
    if len(words) <= head + tail:
        yield "equal", "".join(words)
        return
    if head:
        yield "equal", "".join(words[:head])
    yield "gap", "…"
    if tail:
        yield "equal", "".join(words[-tail:])


def diff_text(old: str, new: str, *, coloured: bool) -> Text | None:
    """The changes for a terminal, without colours in marks: ``[-gone-]{+new+}``.  None where there is none to show."""
    found = changes(old, new)
    if not any(change in ("delete", "insert") for change, _ in found):
        return None
    styles = {"equal": "dim", "gap": "dim", "delete": "red strike", "insert": "green"}
    marks = {"delete": ("[-", "-]"), "insert": ("{+", "+}")}
    text = Text()
    for change, words in found:
        before, after = ("", "") if coloured else marks.get(change, ("", ""))
        text.append(before + clean(words) + after, style=styles[change])
    return text
