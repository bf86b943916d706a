"""What a text says, in English and Chinese, by a small word list: names, figures, dates, what it asks for.

No more than a word list can tell.  The list, the patterns and the sentences are in ``plain_words.toml`` beside this.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
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
    forms = ((form, row[0]) for row in _rows_of_words() for word in row for form in (word, "".join(words(word))))
    return dict(forms)


@cache
def _chinese() -> dict[str, str]:
    return {word: next(other for other in row if other >= "\u4e00") for row in _rows_of_words() for word in row}


@cache
def _filler() -> frozenset[str]:
    return frozenset((*word_list()["filler"].split(), *words(word_list()["filler"])))


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
    texts = word_list()["patterns"]
    text = texts[name].replace("CAPITAL", texts["capital"])
    return re.compile(text.replace("KNOWN", latin).replace("HAN", chinese))


MOST_NAMES = 50
LONGEST_TEXT = 20_000
"""Nothing is looked for in a text behind so many characters."""
ENDING = re.compile(r"[.!?。！？\n]\s*$")


Found: TypeAlias = list[tuple[int, Any]]
"""Values found in a text, each behind its place there."""


def find(kind: str, text: str, today: date | None = None) -> Found:
    """The values of one *kind* in *text*, in order.

    Args:
        kind: One of the word list's patterns that has a value, or ``"place"``.
        text: What to read.
        today: What "tomorrow" counts from; without it such words stay as they are.
    """
    text = text[:LONGEST_TEXT]
    if kind == "name":  # a quotation is one thing
        text = pattern("quoted").sub(lambda quotation: "·" * len(quotation[0]), text)
    matches = pattern(kind).finditer(text)
    found: Found = [(match.start("v"), match["v"]) for match in matches if match["v"]]
    if kind == "number":
        plain = [(at, word.replace(",", "")) for at, word in found]
        return [(at, float(word) if "." in word else int(word)) for at, word in plain]
    if kind == "date" and today:
        days = word_list()["days"]
        return [(at, str(today + timedelta(days=days[w.lower()])) if w.lower() in days else w) for at, w in found]
    if kind == "name":
        return [(at, name) for at, name in found if not _begins(text, at)] or found
    return found


def _begins(text: str, at: int) -> bool:
    """Whether a sentence begins there, so that a capital means nothing."""
    return at == 0 or bool(ENDING.search(text[max(0, at - 4) : at]))


def is_linked(text: str, at: int) -> bool:
    """Whether what stands *at* a place in *text* is joined to what comes before, as by "in" or "and"."""
    return bool(pattern("linked").search(text[max(0, at - 9) : at]))


def mentions(choices: Iterable[Any], text: str) -> Found:
    """Which of *choices* stand in *text* as whole words, by their first place; case does not matter."""
    found = ((re.search(rf"(?i)(?<![a-z\d]){re.escape(str(one))}(?![a-z\d])", text), one) for one in choices)
    return sorted(((match.start(), one) for match, one in found if match), key=lambda pair: pair[0])


def after_name(name: str, text: str) -> set[int]:
    """The places in *text* that follow a word of *name*, as the value does in "to EUR" and "order id is 7".

    What stands behind a figure, as in "100 USD", is what one converts *from*.
    """
    own = [re.escape(part) for part in re.split(r"[_\W]", name.lower()) if part]
    words_of_it = "|".join([rf"\b(?:{'|'.join(own)})\b", *([r"\d"] if "from" in own else [])])
    return {match.end() for match in re.finditer(rf"(?i)(?:{words_of_it})\W*(?:(?:of|is|the)\b\W*)?", text)}


def search_phrase(text: str, question: str) -> str:
    """What *text* asks to search for: the clause after a word such as "search", else the whole *question*."""
    sought = find("seek", text)
    phrase = sought[0][1] if sought else pattern("length").sub("", question)
    return " ".join(phrase.split()).strip(" .。?？,，")[:200]


def unsaid(question: str, text: str) -> list[str]:
    """The places, names, quotations and topics of *question* that *text* does not speak of."""
    found = [(kind, at, name) for kind in ("place", "name", "quoted") for at, name in find(kind, question)]
    real = [name for kind, at, name in found if kind != "name" or not _begins(question, at)]
    names = list(dict.fromkeys(real))[:MOST_NAMES]
    topics = {row.split()[0] for row in word_list()["topics"]} & {*terms(question)} - {*terms(text)}
    return [n for n in names if n.lower() not in text.lower()] + [label(t, language(question)) for t in sorted(topics)]


def terms(text: str) -> list[str]:
    """The words of *text* without filler and figures, one name for all words of one meaning.

    Chinese that the list does not know comes in pairs of characters; ``snake_case`` and ``camelCase`` are taken apart.
    """
    found = [*words(re.sub(r"[_.-]|(?<=[a-z])(?=[A-Z])", " ", text)), *re.findall(r"[+*/×÷]|\btimes\b", text)]
    return [meaning(word) for word in found if word not in _filler() and not word[0].isdigit()]


def misfits(question: str, text: str) -> dict[str, tuple[int, str, int]]:
    """Whether *text* has the length that *question* asks for ("at least 200 words", 不少于 200 字).

    Returns:
        ``"too_short"`` or ``"too_long"``, or neither, each with the size of *text*, the unit and the size asked for.
        字 are Chinese characters and nothing else; in words each Chinese character counts as one too.
    """
    found = {}
    for match in pattern("length").finditer(question[:LONGEST_TEXT]):
        asked, unit = int(match["amount"]), match["unit"].lower()
        if "字符" in unit or "char" in unit:
            size, unit = len(text), "个字符" if "字符" in unit else "characters"
        elif "字" in unit:
            size, unit = len(pattern("han_word").findall(text)), "个汉字"
        else:
            size, unit = len(pattern("word").findall(text)), "words"
        if size < asked and (match["least"] or match["or_more"]):
            found["too_short"] = (size, unit, asked)
        if size > asked and (match["most"] or match["or_less"]):
            found["too_long"] = (size, unit, asked)
    return found


def fitted(question: str, text: str) -> str:
    """*text* without its last sentences, as far as *question* allows no more; at least one sentence stays."""
    while "too_long" in misfits(question, text):
        end = max(text.rfind(mark, 0, -1) for mark in (". ", "。", "\n"))
        if end < 0:
            break
        text = text[: end + 1].strip()
    return text


def fenced(text: str) -> list[str]:
    """The parts of a judge's prompt that stand between two lines with one mark: question, draft, evidence."""
    return [part for _, part in pattern("fence").findall(text)]


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
