"""Lessons: what a failed attempt taught, when two of them are one, and which are worth showing.

Source: Shinn et al., "Reflexion: Language Agents with Verbal Reinforcement Learning"; the failure modes are those of
"AI Engineering Patterns: Reflexion Loop" (misattributed lessons, a memory that grows without end).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import log

from reactflow.errors import ConfigurationError
from reactflow.messages import estimate_tokens
from reactflow.progress import SIMILAR, similarity

_RUNS = r"\w+"
_NUMBERS = r"\d+"
_CLOCK = r"\d+:\d\d:\d\d(?:[.,]\d+)?"
_TIME = rf"(?:{_CLOCK}|\d+(?:\.\d+)? ?(?:ms|s|sec|seconds?|毫?秒))"
_FLEETING = (
    # a time that was measured by the way: alone in brackets, or led by a word such as "in" with no word of its line
    # behind it, or the stamp of a line; any other may be what is compared ("took 31 s, limit 5 s")
    rf"(?im)[(（]{_TIME}[)）]|(?:\b(?:in|after|took|time:)|[用耗]时[:：]?) ?{_TIME}(?: \({_CLOCK}\))?(?=[^\w\n]*$)"
    rf"|^\[?(?:[\d-]+[ T])?{_CLOCK}"
    r"|\b0x[0-9a-f]+\b|(?<![\w/])(?:/private)?(?:/var)?/(?:tmp|folders)/[^\s'\":,;)]*/"  # addresses, folders of a run
)
_TELLING_TOKENS = 4  # less evidence is the same for quite different failures: "wrong" always, "3 != 4" in another task
_NAMED = r"\d|[=!<>]=|[≠≤≥]| [=<>] |\w[._]\w"  # a value, a comparison, a name in code or of a file
_UNRELATED = 0.1


@dataclass(frozen=True, slots=True)
class Lesson:
    """What to do differently, and why.  ``str(lesson)`` is the advice.

    Args:
        advice: What to do differently; not blank.
        trigger: When the advice applies; may be empty.
        evidence: What the evaluator said when the lesson was learnt; may be empty.
        family: The tasks that can learn from it; empty for all tasks of one memory.
        uses: Judged attempts that it was shown for.
        wins: How many of them passed.

    Raises:
        ConfigurationError: The advice is blank, or a number is out of its bounds.
    """

    advice: str
    trigger: str = field(default="", kw_only=True)
    evidence: str = field(default="", kw_only=True)
    family: str = field(default="", kw_only=True)
    uses: int = field(default=0, kw_only=True)
    wins: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.advice, str) or not self.advice.strip():
            raise ConfigurationError(f"Lesson(advice={self.advice!r:.80}): give a text that is not blank.")
        for name in ("trigger", "evidence", "family"):
            if not isinstance(getattr(self, name), str):
                raise ConfigurationError(f"Lesson({name}={getattr(self, name)!r:.80}): give a text.")
        if not all(type(count) is int for count in (self.uses, self.wins)) or not 0 <= self.wins <= self.uses:
            raise ConfigurationError(f"Lesson(uses={self.uses!r}, wins={self.wins!r}): give 0 <= wins <= uses.")

    def __str__(self) -> str:
        return self.advice

    @property
    def weight(self) -> float:
        """How far it is to be trusted, above 0.0 up to 1.0: fully until it lost twice, then by what it won."""
        lost = self.uses - self.wins
        return 1.0 if lost < 2 else (self.wins + 1) / (self.uses + 1)


def alike(a: str, b: str) -> bool:
    """Whether two texts give the same advice: nearly the same words, and the same numbers."""
    a, b = (" ".join(text.casefold().split()) for text in (a, b))
    return a == b or (re.findall(_NUMBERS, a) == re.findall(_NUMBERS, b) and similarity(a, b) > SIMILAR)


def merged(lessons: Iterable[Lesson], new: Lesson, own: Collection[str] = ()) -> tuple[Lesson, ...]:
    """*lessons* with *new* at the end, in the place of those that say the same or come from the same failure.

    Those whose advice is in *own* were learnt from the task of *new*: there the same evidence is the same failure also
    where it is short, if it has a digit, an operator or a name such as ``x.py``.  "wrong" is said of any failure.

    A lesson that says the same hands its uses and wins on.  One that came from the same failure and says something
    else does not: it was shown and did not help, and the new one has yet to be tried.
    """
    kept: list[Lesson] = []
    for each in lessons:
        if alike(each.advice, new.advice):
            new = replace(
                new, trigger=new.trigger or each.trigger, uses=new.uses + each.uses, wins=new.wins + each.wins
            )
        elif not _same_failure(each.evidence, new.evidence, own=each.advice in own):
            kept.append(each)
    return (*kept, new)


def _same_failure(a: str, b: str, *, own: bool) -> bool:
    """Whether two pieces of evidence are one and say enough to tell, measured times, addresses and folders aside."""
    a, b = (" ".join(re.sub(_FLEETING, "", text).split()) for text in (a, b))
    return a == b and (estimate_tokens(a) >= _TELLING_TOKENS or (own and re.search(_NAMED, a) is not None))


def credited(lessons: Iterable[Lesson], shown: Collection[str], *, won: bool) -> tuple[Lesson, ...]:
    """*lessons* with one more use, and where the attempt passed one more win, for those whose advice was *shown*."""
    return tuple(
        replace(each, uses=each.uses + 1, wins=each.wins + won) if each.advice in shown else each for each in lessons
    )


def trimmed(lessons: Sequence[Lesson], limit: int) -> tuple[Lesson, ...]:
    """At most *limit* lessons, in their order: those of low weight go first, of equals the oldest."""
    surplus = len(lessons) - limit
    weakest = sorted(range(len(lessons)), key=lambda at: lessons[at].weight)[: max(0, surplus)]
    return tuple(each for at, each in enumerate(lessons) if at not in weakest)


def picked(lessons: Sequence[Lesson], task: str, limit: int, own: Collection[str]) -> tuple[Lesson, ...]:
    """The *limit* lessons that promise most for *task*, in their order.

    A lesson counts by its weight times its relevance.  Those learnt from this very task, whose advice is in *own*, are
    fully relevant; others by the words that they share with it, rare words and those of the trigger above all.  Of
    equals the newest are taken.
    """
    relevance = _relevance(lessons, task)
    worth = [each.weight * (1.0 if each.advice in own else relevance[at]) for at, each in enumerate(lessons)]
    chosen = sorted(range(len(lessons)), key=lambda at: (-worth[at], -at))[:limit]
    return tuple(lessons[at] for at in sorted(chosen))


def _relevance(lessons: Sequence[Lesson], task: str) -> list[float]:
    """How close each lesson is to *task*, :data:`_UNRELATED` to 1.0 for the closest."""
    wanted = _words(task)
    shared = [_words(f"{each.trigger}\n{each.advice}") & wanted for each in lessons]
    seen = Counter(word for words in shared for word in words)
    rarity = {word: log(1 + (len(lessons) - count + 0.5) / (count + 0.5)) for word, count in seen.items()}
    scores = [
        sum(rarity[word] for word in words) + sum(rarity[word] for word in words & _words(each.trigger))
        for words, each in zip(shared, lessons, strict=True)
    ]
    closest = max(scores, default=0.0) or 1.0
    return [_UNRELATED + (1 - _UNRELATED) * score / closest for score in scores]


def _words(text: str) -> set[str]:
    """The words of *text*; of a script without spaces the pairs of neighbouring characters."""
    found: set[str] = set()
    for run in re.findall(_RUNS, text.casefold()):
        if any("\u3040" <= char <= "\u9fff" for char in run):
            found.update(run[at : at + 2] for at in range(max(1, len(run) - 1)))
        else:
            found.add(run[:-1] if len(run) > 3 and run.endswith("s") else run)
    return found
