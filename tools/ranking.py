"""Ranking by words: a small index of documents, in English and Chinese."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from typing import NamedTuple

from reactflow.words import words

TITLE_WEIGHT = 3
"""A word of the title counts as often as this many in the text."""


class Document(NamedTuple):
    """What a search can find."""

    url: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Index:
    """Documents with their word counts, ranked by BM25 (Robertson and Zaragoza, Probabilistic Relevance Framework)."""

    documents: tuple[Document, ...]
    counts: tuple[Counter[str], ...]
    seen_in: Counter[str]
    mean_length: float

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Index:
        """Count the words of *documents* once."""
        kept = tuple(documents)
        counts = tuple(_counted(document) for document in kept)
        seen_in = Counter(word for count in counts for word in count)
        return cls(kept, counts, seen_in, sum(count.total() for count in counts) / max(1, len(counts)))

    def rank(self, wanted: set[str]) -> list[tuple[float, Document]]:
        """All documents that hold one of *wanted*, the best first; equal scores keep the documents' order."""
        scored = ((self._score(wanted, counts), at) for at, counts in enumerate(self.counts))
        hits = sorted(((-score, at) for score, at in scored if score > 0))
        return [(-score, self.documents[at]) for score, at in hits]

    def _score(self, wanted: set[str], counts: Counter[str], k: float = 1.2, b: float = 0.5) -> float:
        length = 1 - b + b * counts.total() / self.mean_length
        return sum(
            self._rarity(word) * counts[word] * (k + 1) / (counts[word] + k * length)
            for word in sorted(wanted & counts.keys())  # sorted: sets of text have another order in each process
        )

    def _rarity(self, word: str) -> float:
        seen = self.seen_in[word]
        return log(1 + (len(self.documents) - seen + 0.5) / (seen + 0.5))


def _counted(document: Document) -> Counter[str]:
    title = Counter(words(document.title))
    return Counter(words(document.text)) + Counter({word: n * TITLE_WEIGHT for word, n in title.items()})
