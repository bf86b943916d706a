"""The search tool: a small bundled collection of documents, and the sample's weather warnings of today."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from importlib.resources import files
from math import log
from typing import Annotated, Any

from pydantic import Field

from reactflow.errors import ToolError
from reactflow.tools.alerts import Document, warning_documents
from reactflow.tools.climate import script

NOTES = {
    "en": ("Bundled sample documents, not a search of the web.", "Nothing in the bundled sample documents matches."),
    "zh": ("结果来自随附的示例文档，并非网络搜索。", "随附的示例文档中没有匹配的内容。"),
}
STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a about an and any are as at be been by can could current did do does find for from give had has have
        how i in is it its look me my of on or our please search should show situation tell than that the their
        there these they this to today us was we were what when where which who whom whose why will with would
        you your
        """,
    )
)
TITLE_WEIGHT = 3
"""A word of the title counts as often as this many in the text."""


def search(query: str, max_results: Annotated[int, Field(ge=1, le=20)] = 5) -> dict[str, Any]:
    """Search a bundled collection of documents: facts, news, science, places, and weather warnings of several cities.

    The documents are a bundled sample, not the web, and the warnings are not real.

    Args:
        query: What to look for: a few keywords or a question, in English or Chinese.
        max_results: How many results to return at most, 1 to 20.

    Raises:
        ToolError: The query holds no word to look for, or *max_results* is out of range.
    """
    return find(query, max_results, date.today())


def find(query: str, max_results: int, today: date) -> dict[str, Any]:
    """What :func:`search` finds on *today*: results by falling score, each with url, title, text and score.

    What scores less than two thirds of the best is left out: it shares only common words with the query.
    """
    wanted = set(words(query)) - STOP
    if not words(query):
        raise ToolError(f"The query {query[:100]!r} holds no word to look for; give a few keywords.")
    if not 1 <= max_results <= 20:
        raise ToolError(f"max_results is {max_results}; give a whole number from 1 to 20.")
    ranked = _index(today).rank(wanted)
    results = [
        {"url": document.url, "title": document.title, "text": document.text, "score": round(score, 2)}
        for score, document in ranked[:max_results]
        if score >= ranked[0][0] * 2 / 3
    ]
    hit, miss = NOTES[script(query)]
    return {"query": query, "results": results, "note": hit if results else miss}


def words(text: str) -> list[str]:
    """The words of *text* for matching: lower case, no accents, no plural s; Chinese in pairs of characters."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(character for character in folded if not unicodedata.combining(character))
    found: list[str] = []
    for run in re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]+", plain):
        if run[0] < "\u4e00":
            found.append(run[:-1] if len(run) > 3 and run.endswith("s") and not run.endswith("ss") else run)
        else:
            found.extend(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return found


@dataclass(frozen=True, slots=True)
class Index:
    """Documents with their word counts, ranked by BM25 (Robertson and Zaragoza, Probabilistic Relevance Framework)."""

    documents: tuple[Document, ...]
    counts: tuple[Counter[str], ...]
    seen_in: Counter[str]
    mean_length: float

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


@cache
def _library() -> tuple[Document, ...]:
    rows = json.loads(files("reactflow.tools").joinpath("documents.json").read_text("utf-8"))
    return tuple(Document(**row) for row in rows)


@lru_cache(maxsize=2)
def _index(today: date) -> Index:
    documents = (*_library(), *warning_documents(today))
    counts = tuple(
        Counter(words(one.text)) + Counter({word: n * TITLE_WEIGHT for word, n in Counter(words(one.title)).items()})
        for one in documents
    )
    seen_in = Counter(word for count in counts for word in count)
    return Index(documents, counts, seen_in, sum(count.total() for count in counts) / len(counts))
