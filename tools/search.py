"""The search tool: a small bundled collection of documents, and the sample's weather warnings of today."""

from __future__ import annotations

import json
from datetime import date
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated, Any

from pydantic import Field

from reactflow.errors import ToolError
from reactflow.toolbox import tool
from reactflow.tools.alerts import warning_documents
from reactflow.tools.climate import script
from reactflow.tools.ranking import Document, Index
from reactflow.words import FILLER, words

NOTES = {
    "en": ("Bundled sample documents, not a search of the web.", "Nothing in the bundled sample documents matches."),
    "zh": ("结果来自随附的示例文档，并非网络搜索。", "随附的示例文档中没有匹配的内容。"),
}


@tool
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
    wanted = set(words(query)) - FILLER
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


@cache
def _library() -> tuple[Document, ...]:
    rows = json.loads(files("reactflow.tools").joinpath("documents.json").read_text("utf-8"))
    return tuple(Document(**row) for row in rows)


@lru_cache(maxsize=2)
def _index(today: date) -> Index:
    return Index.of((*_library(), *warning_documents(today)))
