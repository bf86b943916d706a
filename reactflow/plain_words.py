"""Plain words, both ways: what a text says, by a small word list, and a JSON value put in words.

English and Chinese.  Figures, dates and texts stay as they are; words that the list does not know keep their own form.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from reactflow.phrases import Language, language
from reactflow.tools.climate import name_pattern
from reactflow.tools.ranking import words


@cache
def word_list() -> dict[str, Any]:
    """The words, patterns and sentences; read when they are first needed, because few runs need them."""
    text: dict[str, Any] = tomllib.loads(files("reactflow").joinpath("plain_words.toml").read_text("utf-8"))
    return text


@cache
def _rows_of_words() -> list[list[str]]:
    return [row.split() for row in (*word_list()["topics"], *word_list()["meanings"])]


@cache
def _meanings() -> dict[str, str]:
    return {word: row[0] for row in _rows_of_words() for word in row}


@cache
def _chinese() -> dict[str, str]:
    return {word: next(other for other in row if other >= "\u4e00") for row in _rows_of_words() for word in row}


@cache
def _filler() -> frozenset[str]:
    return frozenset(word_list()["filler"].split())


def meaning(word: str) -> str:
    """One name for all words of one meaning; a word that the list does not know means itself."""
    return _meanings().get(word, word)


def said(language: Language) -> dict[str, Any]:
    """The sentences and marks of one language."""
    sentences: dict[str, Any] = word_list()[language]
    return sentences


@cache
def pattern(name: str) -> re.Pattern[str]:
    """What finds one kind of thing in a text, such as ``"number"``; ``"place"`` knows the cities of the sample."""
    if name == "place":
        return name_pattern()
    known = sorted({*_meanings(), *_filler()}, key=lambda word: (-len(word), word))
    latin = "|".join(re.escape(word) for word in known if word < "\u4e00")
    chinese = "|".join(word for word in known if word >= "\u4e00")
    return re.compile(word_list()["patterns"][name].replace("KNOWN", latin).replace("HAN", chinese))


COLUMNS = 4
LONG_TEXT = 40
"""A list of objects that hold a text of more characters is a list of documents, else a table."""
FIRST_SENTENCE = re.compile(r"(.*?(?:(?<=[a-z0-9)%])[.!?](?=\s)|[。！？]|\Z)).*", re.DOTALL)


Found: TypeAlias = list[tuple[int, Any]]
"""Values found in a text, each behind its place there."""


def find(kind: str, text: str, today: date | None = None) -> Found:
    """The values of one *kind* in *text*, in order.

    Args:
        kind: One of the word list's patterns that has a value, or ``"place"``.
        text: What to read.
        today: What "tomorrow" counts from; without it such words stay as they are.
    """
    found: Found = [(match.start("v"), match["v"]) for match in pattern(kind).finditer(text) if match["v"]]
    if kind == "number":
        plain = [(at, word.replace(",", "")) for at, word in found]
        return [(at, float(word) if "." in word else int(word)) for at, word in plain]
    if kind == "date" and today:
        days = word_list()["days"]
        return [(at, str(today + timedelta(days=days[w.lower()])) if w.lower() in days else w) for at, w in found]
    return found


def mentions(choices: Iterable[Any], text: str) -> Found:
    """Which of *choices* stand in *text* as whole words, by their first place; case does not matter."""
    found = ((re.search(rf"(?i)(?<![a-z\d]){re.escape(str(one))}(?![a-z\d])", text), one) for one in choices)
    return sorted(((match.start(), one) for match, one in found if match), key=lambda pair: pair[0])


def after_name(name: str, text: str) -> set[int]:
    """The places in *text* that follow a word of *name*, as the value does in "to EUR" and "order id is 7"."""
    own = "|".join(re.escape(part) for part in re.split(r"[_\W]", name) if part)
    return {match.end() for match in re.finditer(rf"(?i)\b(?:{own})\b\W*(?:(?:of|is|the)\b\W*)?", text)}


def search_phrase(text: str, question: str) -> str:
    """What *text* asks to search for: the clause after a word such as "search", else the whole *question*."""
    sought = find("seek", text)
    phrase = sought[0][1] if sought else pattern("length").sub("", question)
    return " ".join(phrase.split()).strip(" .。?？,，")[:200]


def unsaid(question: str, text: str) -> list[str]:
    """The places, names, quotations and topics of *question* that *text* does not speak of."""
    names = dict.fromkeys(name for kind in ("place", "name", "quoted") for _, name in find(kind, question))
    topics = {row.split()[0] for row in word_list()["topics"]} & {*terms(question)} - {*terms(text)}
    return [n for n in names if n.lower() not in text.lower()] + [label(t, language(question)) for t in sorted(topics)]


def terms(text: str) -> list[str]:
    """The words of *text* without filler and figures, one name for all words of one meaning.

    Chinese that the list does not know comes in pairs of characters; ``snake_case`` and ``camelCase`` are taken apart.
    """
    found = [*words(re.sub(r"[_.-]|(?<=[a-z])(?=[A-Z])", " ", text)), *re.findall(r"[+*/×÷]", text)]
    return [meaning(word) for word in found if word not in _filler() and not word[0].isdigit()]


def misfits(question: str, text: str) -> dict[str, tuple[int, str, int]]:
    """Whether *text* has the length that *question* asks for ("at least 200 words", 不少于 200 字).

    Returns:
        ``"too_short"`` or ``"too_long"``, or neither, each with the size of *text*, the unit and the size asked for.
        字 are Chinese characters and nothing else; in words each Chinese character counts as one too.
    """
    found = {}
    for match in pattern("length").finditer(question):
        asked, unit = int(match["amount"]), match["unit"]
        size = (
            len(text)
            if "char" in unit.lower() or "符" in unit
            else len(pattern("han_word" if "字" in unit else "word").findall(text))
        )
        if size < asked and (match["least"] or match["or_more"]):
            found["too_short"] = (size, unit, asked)
        if size > asked and (match["most"] or match["or_less"]):
            found["too_long"] = (size, unit, asked)
    return found


def decoded(text: str) -> Any:
    """The JSON value that *text* is, else *text* itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def sentence(text: str, language: Language) -> str:
    """*text* with a full stop behind it, where it has no mark of its own."""
    return text if text[-1:] in ".!?)。！？）" else text + str(said(language)["stop"]).strip()


def label(key: str, language: Language) -> str:
    """A key such as ``wind_speed`` in words; empty where the value speaks for itself, as a date does."""
    names = key.split("_")
    if meaning(key) in ("note", "condition", "date"):
        return ""
    return " ".join(names) if language == "en" else "".join(_chinese().get(name, name) for name in names)


def in_words(value: Any, language: Language, *, key: str = "", detail: bool = False) -> str:
    """Put *value* in words: what is plain in one sentence, then each object and list in one of its own.

    Args:
        value: Any JSON value, as ``json.loads`` gives it.
        language: Of the labels and units; texts inside *value* stay as they are.
        key: What *value* is called; a unit at its end (``high_c``) goes behind the figure.
        detail: Write lists of objects out row by row.  Without it a table of three rows and more is given by the
            range of its first columns, and of documents the first sentence of the first one.
    """
    marks = said(language)
    head, _, unit = key.rpartition("_")
    name = label(head if head and unit in marks["units"] else key, language)
    if isinstance(value, dict):
        given = {k: v for k, v in value.items() if v not in (None, "", [], {})}
        parts = {k: in_words(v, language, key=k, detail=detail) for k, v in given.items()}
        plain = marks["comma"].join(text for k, text in parts.items() if not _nested(given[k]))
        first, *others = [text for text in (plain, *(parts[k] for k in given if _nested(given[k]))) if text] or [""]
        told = marks["stop"].join((first, *(text[:1].upper() + text[1:] for text in others)))
    elif _nested(value):
        told, name = _rows(value, language, detail), "" if _documents(value) else name
    else:
        return f"{name} {_plain(value, language)} {marks['units'].get(unit, '') if head else ''}".strip()
    gap = marks["colon"].rstrip() if told.startswith("\n") else marks["colon"]
    return f"{name}{gap}{told}" if name else told


def compared(values: Mapping[str, Any], language: Language) -> str:
    """The figures that several objects share, side by side; empty where they share none."""
    marks, columns = said(language), dict[str, list[str]]()
    for subject, value in values.items():
        for key, figure in _figures(value):
            columns.setdefault(key, []).append(
                f"{in_words(figure, language, key=key)}{marks['brackets'].format(subject)}"
            )
    shared = [" / ".join(column) for column in columns.values() if len(column) > 1]
    return sentence(f"{marks['compare']}{marks['colon']}{marks['semicolon'].join(shared)}", language) if shared else ""


def _figures(value: Any) -> Iterator[tuple[str, float]]:
    """The plain figures of an object and of the objects in it, by key."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, (int, float)) and not isinstance(inner, bool):
            yield key, inner
        yield from _figures(inner)


def _nested(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and all(isinstance(row, dict) for row in value))


def _documents(rows: list[dict[str, Any]]) -> bool:
    return any(isinstance(cell, str) and len(cell) > LONG_TEXT for row in rows for cell in row.values())


def _rows(rows: list[dict[str, Any]], language: Language, detail: bool) -> str:
    if _documents(rows):
        return "".join(f"\n- {_document(row, language, detail)}" for row in (rows if detail else rows[:1]))
    if detail or len(rows) < 3:
        return "".join(f"\n- {in_words(row, language, detail=detail)}" for row in rows)
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
        return str(said(language)["comma"]).join(_plain(one, language) for one in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
