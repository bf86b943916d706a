"""What a search found: sources with numbers that stay, and the evidence they make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from reactflow.messages import readable
from reactflow.phrases import shorten, shorten_middle

_URL = ("url", "link", "href", "uri", "source", "id")
_TITLE = ("title", "name", "headline")
_TEXT = ("text", "content", "snippet", "summary", "description", "body", "raw_content", "extract")
_LISTS = ("results", "sources", "documents", "items", "organic", "data", "hits")
_MAX_URL_CHARS = 2000
_MAX_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that a search found.

    Args:
        url: Its address, or any other name without spaces that tells it from others.
        title: What it is called; may be empty.
        text: What it says, or the part that matters.
    """

    url: str
    title: str = ""
    text: str = ""


def read_sources(text: str, limit: int) -> tuple[Source, ...]:
    """The first *limit* sources in what a search returned, as JSON.

    That is a list of objects, or an object with such a list in ``results`` or the like, or one object; each with
    ``url``, ``title`` and ``text``, or what other services call them.  Entries without an address are passed over.

    Raises:
        ValueError: It is neither.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if isinstance(value, Mapping):
        listed = next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)
        value = listed if listed is not None else [value] if _first(value, _URL) else value
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError("it is no list of sources")
    found = (_source(entry) for entry in value)
    return tuple(source for source in found if source is not None)[:limit]


def _source(entry: Any) -> Source | None:
    if not isinstance(entry, Mapping):
        return None
    url = _first(entry, _URL)
    if not url or len(url) > _MAX_URL_CHARS or any(char.isspace() for char in url):
        return None
    return Source(url, " ".join(_first(entry, _TITLE).split())[:_MAX_TITLE_CHARS], _first(entry, _TEXT))


def _first(entry: Mapping[str, Any], keys: Iterable[str]) -> str:
    texts = (entry.get(key) for key in keys)
    return next((readable(text.strip()) for text in texts if isinstance(text, str) and text.strip()), "")


def address(url: str) -> str:
    """What two spellings of one address have in common: no scheme, no ``www.``, no fragment, no slash at the end."""
    text = url.strip()
    try:
        parts = urlsplit(text)
    except ValueError:  # a bracket that is no IPv6 address
        return text.casefold()
    if parts.scheme not in ("http", "https"):
        return text.casefold()
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.netloc.casefold().removeprefix('www.')}{unquote(parts.path).rstrip('/')}{query}"


class Catalogue:
    """The sources of one run, numbered from 1 in the order in which they were found; no address twice."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.sources)

    def add(self, found: Sequence[Source]) -> list[int]:
        """Take in what a query found; the numbers of these sources, old and new."""
        numbers: dict[int, None] = {}
        for source in found:
            key = address(source.url)
            if key not in self._numbers:
                self.sources.append(source)
                self._numbers[key] = len(self.sources)
            numbers[self._numbers[key]] = None
        return list(numbers)

    def number(self, url: str) -> int | None:
        """The number of the source at *url*, or None."""
        return self._numbers.get(address(url))

    def evidence(self, task: str, *, max_source_chars: int, max_chars: int) -> str:
        """All sources with their numbers, each and all together cut to size."""
        share = max(1, min(max_source_chars, max_chars // max(1, len(self.sources))))
        return "\n\n".join(
            f"[{number}] {source.title}\n{source.url}\n{shorten_middle(source.text, share, question=task)}"
            for number, source in enumerate(self.sources, 1)
        )


def source_list(sources: Sequence[Source]) -> str:
    """The sources as lines behind an answer: number, title, address."""
    return "\n".join(
        f"[{number}] {f'{shorten(source.title, _MAX_TITLE_CHARS)} ' if source.title else ''}{source.url}"
        for number, source in enumerate(sources, 1)
    )
