"""Put a JSON value in plain words, in English or Chinese; figures, dates and texts stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reactflow.phrases import Language
from reactflow.plain_words import label, said

COLUMNS = 4
MOST_ROWS = 50
DEEPEST = 8
"""An object or list inside so many others is left out."""
LONG_TEXT = 40
"""A list of objects that hold a text of more characters is a list of documents, else a table."""
FIRST_SENTENCE = re.compile(r"(.*?(?:(?<=[a-z0-9)%])[.!?](?=\s)|[。！？]|\Z)).*", re.DOTALL)


def in_words(value: Any, language: Language, *, key: str = "", detail: bool = False, depth: int = DEEPEST) -> str:
    """Put *value* in words: what is plain in one sentence, then each object and list in one of its own.

    Args:
        value: Any JSON value, as ``json.loads`` gives it.
        language: Of the labels and units; texts inside *value* stay as they are.
        key: What *value* is called; a unit at its end (``high_c``) goes behind the figure.
        detail: Write lists of objects out row by row.  Without it a table of three rows and more is given by the
            range of its first columns, and of documents the first sentence of the first one.
        depth: How many objects and lists may stand in each other; what is deeper is left out.
    """
    marks = said(language)
    head, _, unit = key.rpartition("_")
    name = label(head if head and unit in marks["units"] else key, language)
    if not _nested(value):
        return f"{name} {_plain(value, language)} {marks['units'].get(unit, '') if head else ''}".strip()
    if depth == 0:
        return f"{name}…"
    if isinstance(value, dict):
        told = _object(value, language, detail, depth - 1)
    else:
        told, name = _rows(value, language, detail, depth - 1), "" if _documents(value) else name
    gap = marks["colon"].rstrip() if told.startswith("\n") else marks["colon"]
    return f"{name}{gap}{told}" if name else told


def compared(values: Mapping[str, Any], language: Language) -> str:
    """The figures that several objects share, side by side; empty where they share none."""
    marks, columns = said(language), dict[str, list[str]]()
    for subject, value in values.items():
        for key, figure in _figures(value):
            told = in_words(figure, language, key=key) + marks["brackets"].format(subject)
            columns.setdefault(key, []).append(told)
    shared = [marks["comma"].join(column) for column in columns.values() if len(column) > 1]
    told = f"{marks['compare']}{marks['colon']}{marks['semicolon'].join(shared)}{marks['stop'].strip()}"
    return told if shared else ""


def _figures(value: Any, depth: int = DEEPEST) -> Iterator[tuple[str, float]]:
    """The plain figures of an object and of the objects in it, by key."""
    for key, inner in value.items() if isinstance(value, dict) and depth else ():
        if isinstance(inner, (int, float)) and not isinstance(inner, bool):
            yield key, inner
        yield from _figures(inner, depth - 1)


def _nested(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and all(isinstance(row, dict) for row in value))


def _object(value: dict[str, Any], language: Language, detail: bool, depth: int) -> str:
    given = {key: inner for key, inner in value.items() if inner not in (None, "", [], {})}
    parts = {key: in_words(v, language, key=key, detail=detail, depth=depth) for key, v in given.items()}
    plain = said(language)["comma"].join(part for key, part in parts.items() if not _nested(given[key]))
    nested = [part for key, part in parts.items() if _nested(given[key])]
    first, *others = [part for part in (plain, *nested) if part] or [""]
    return str(said(language)["stop"]).join((first, *(part[:1].upper() + part[1:] for part in others)))


def _documents(rows: Sequence[dict[str, Any]]) -> bool:
    return any(isinstance(cell, str) and len(cell) > LONG_TEXT for row in rows for cell in row.values())


def _rows(rows: Sequence[dict[str, Any]], language: Language, detail: bool, depth: int) -> str:
    shown = rows[:MOST_ROWS]
    rest = "\n- …" if len(rows) > MOST_ROWS else ""
    if _documents(rows):
        return "".join(f"\n- {_document(row, language, detail)}" for row in (shown if detail else rows[:1])) + rest
    if detail or len(rows) < 3:
        told = (in_words(row, language, detail=detail, depth=depth) for row in shown)
        return "".join(f"\n- {row}" for row in told) + rest
    columns = {key: [row[key] for row in rows if key in row] for key in list(rows[0])[:COLUMNS]}
    parts = [in_words(_span(column, language), language, key=key) for key, column in columns.items()]
    return str(said(language)["comma"]).join(parts)


def _document(row: dict[str, Any], language: Language, detail: bool) -> str:
    """Title, text and address of a document; of the text only the first sentence without *detail*."""
    texts = [cell for cell in row.values() if isinstance(cell, str)]
    links = [text for text in texts if text.startswith("http")]
    words = [text if detail else FIRST_SENTENCE.sub(r"\1", text, count=1) for text in texts if text not in links]
    marks = said(language)
    return str(marks["dash"]).join(words) + "".join(marks["brackets"].format(link) for link in links[:1])


def _span(column: Sequence[Any], language: Language) -> str:
    """A column in short: from the least to the greatest of figures and dates, else each thing that occurs."""
    plain = list(dict.fromkeys(_plain(value, language) for value in column))
    if all(isinstance(value, (int, float)) for value in column):
        plain = [_plain(value, language) for value in sorted({min(column), max(column)})]
    elif all(text[:1].isdigit() for text in plain):
        plain = sorted({min(plain), max(plain)})
    else:
        return "/".join(plain)
    return str(said(language)["to"]).join(plain)


def _plain(value: Any, language: Language) -> str:
    if isinstance(value, list):
        return str(said(language)["comma"]).join("…" if _deep(one) else _plain(one, language) for one in value)
    return "…" if _deep(value) else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _deep(value: Any) -> bool:
    return isinstance(value, (dict, list))
