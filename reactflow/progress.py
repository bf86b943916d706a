"""Whether another round is worth its money: drafts that no longer change, and drafts that go back and forth.

Source: the runaway loop of "Building Self-Critiquing Agents with Gemini API", where a critic went on rephrasing one
complaint.  A complaint that stays while the draft does change is no reason to stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

from rapidfuzz.distance import Indel, LCSseq

from reactflow.result import StopReason

SIMILAR = 0.9
"""Above this two texts count as nearly the same."""

_EXACT_CHARS = 20_000  # 3 to 7 ms on one core; the cost grows with the square


def similarity(a: str, b: str) -> float:
    """How alike two texts are, from 0.0 (nothing in common) to 1.0 (equal), by insertions and deletions of characters.

    Works for any script, because it knows no words.  Where what differs is longer than 20,000 characters, its first
    20,000 on each side stand for the rest, so that the cost stays bounded.
    """
    if max(len(a), len(b)) <= _EXACT_CHARS:
        return Indel.normalized_similarity(a, b)
    head = _common_start(a, b)
    rest_a, rest_b = a[head:], b[head:]
    tail = _common_start(rest_a[::-1], rest_b[::-1])
    shorter = min(len(rest_a), len(rest_b)) - tail
    part_a, part_b = rest_a[: len(rest_a) - tail][:_EXACT_CHARS], rest_b[: len(rest_b) - tail][:_EXACT_CHARS]
    shared = LCSseq.similarity(part_a, part_b) * shorter / max(1, min(len(part_a), len(part_b)))
    return 2 * (head + shared + tail) / (len(a) + len(b))


def _common_start(a: str, b: str) -> int:
    """How many characters *a* and *b* begin with alike."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # by halves, because comparing slices is far faster than comparing characters
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def same(a: str, b: str) -> bool:
    """Whether two drafts differ in white space alone; indentation counts where it is all that changed.

    A Python function that was only indented anew has changed; a paragraph that was only wrapped anew has not.
    """
    if a.split() != b.split():
        return False
    lines_a, lines_b = _lines(a), _lines(b)
    if [line.split() for line in lines_a] != [line.split() for line in lines_b]:
        return True
    return [_indent(line) for line in lines_a] == [_indent(line) for line in lines_b]


def _lines(text: str) -> list[str]:
    return [line for line in dedent(text.expandtabs()).splitlines() if line.strip()]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def stalled(drafts: Sequence[str], issues: Sequence[str], counts: Sequence[int] = ()) -> StopReason | None:
    """Say whether the last drafts show that another round would lead nowhere.

    Args:
        drafts: Every draft so far, oldest first.
        issues: What was found wrong with each, oldest first; blank where the evaluator gave no reason of its own, which
            proves nothing.
        counts: How many problems were found in each, oldest first, where they were counted.

    Returns:
        ``no_progress`` where the last two drafts are the same, or the last two issues are over 0.9 similar and so
        are the last two drafts, and there are no fewer problems; ``oscillation`` where the last four drafts are
        A B A B; else None.
    """
    if len(drafts) < 2:
        return None
    if same(drafts[-2], drafts[-1]):
        return StopReason.NO_PROGRESS
    if len(drafts) >= 4 and same(drafts[-4], drafts[-2]) and same(drafts[-3], drafts[-1]):
        return StopReason.OSCILLATION
    fewer = len(counts) > 1 and counts[-1] < counts[-2]
    if not fewer and _same_complaint(issues) and similarity(drafts[-2], drafts[-1]) > SIMILAR:
        return StopReason.NO_PROGRESS
    return None


def _same_complaint(issues: Sequence[str]) -> bool:
    if len(issues) < 2 or not issues[-2].strip() or not issues[-1].strip():
        return False
    return similarity(issues[-2], issues[-1]) > SIMILAR
