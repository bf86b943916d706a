"""Find the JSON objects in what a model wrote.

Reads what a person would read without guessing: code fences, prose around the object, Python literals, single and
"smart" quotes, full-width punctuation, bare keys, comments, trailing commas, quotation marks that were not escaped.
Nothing that is missing is ever added: an object without its end is reported as damage, not completed.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

MAX_DEPTH = 12
"""What is nearly JSON and nested deeper than this counts as damaged."""


MAX_KEY_CHARS = 80
"""What is nearly JSON has no longer keys than this."""


class Members(list[tuple[str, Any]]):
    """A JSON object as its members in order, so that a key given twice stays visible."""


class Found(NamedTuple):
    """One object that no other object encloses.

    Args:
        members: Its keys and values.
        start: Where it begins in the text, or where the array begins that it is an element of.
        end: The position after it.
        exact: Whether it was JSON to the letter.
        sure: False where it may be a part of a damaged object whose end is unknown.
    """

    members: Members
    start: int
    end: int
    exact: bool
    sure: bool = True


class Scan(NamedTuple):
    """What :func:`find_objects` saw.

    Args:
        objects: In the order of the text.
        damage: Where the last damaged object begins, or -1.
    """

    objects: tuple[Found, ...]
    damage: int = -1


class _Broken(Exception):
    """Not an object, or a damaged one; *keyed* where at least one key was read."""

    def __init__(self, keyed: bool, at: int) -> None:
        super().__init__(at)
        self.keyed = keyed
        self.at = at


class _Cut(_Broken):
    """The text ended inside the object."""


# every repetition that could run to the end of the text is bounded: hostile text must not cost the square of its length
_SPACE = r"(?:[\s\ufeff\u200b-\u200d\u2060]|//[^\n]{0,200}|/\*[^*]{0,200}\*/)*"
_START = re.compile(r"[{｛]|[\[［](?=\s*[{｛])")
_DOUBLE, _SINGLE = '"＂“”„', "'‘’"
_QUOTES = {'"': '"＂', "＂": '"＂', "'": "'", "「": "」"} | dict.fromkeys("“”„", _DOUBLE) | dict.fromkeys("‘’", _SINGLE)
_OPENING = "".join(_QUOTES)
_CLOSING = {opening: rf"[\\{closing}]" for opening, closing in _QUOTES.items()}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?|[-+]?Infinity"
_NAME = r"([^\W\d][\w-]*)"
_QUOTED_KEY = rf"[{_OPENING}]([^{_OPENING}」\n]{{0,{MAX_KEY_CHARS}}})(?:[{_OPENING}」]|\Z)"
_NAMED = {"true": True, "false": False, "null": None, "none": None, "nan": float("nan"), "undefined": None}
_COLON = rf"{_SPACE}[:：]"
_AFTER_ELEMENT = rf"{_SPACE}(?:\Z|[,，\]］])"
_KEY = rf"(?:[{_OPENING}][^{_OPENING}\n]{{0,200}}[{_OPENING}」]|[\w-]{{1,100}}){_SPACE}[:：]"
_AFTER_VALUE = rf"{_SPACE}(?:\Z|[}}｝]|[,，]{_SPACE}(?:\Z|[}}｝]|{_KEY}))"
_AFTER_NAME = rf"{_SPACE}(?:\Z|[,，}}｝\]］])"
_ESCAPE = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/"}


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 20 else float(digits)


_STRICT = json.JSONDecoder(object_pairs_hook=Members, parse_int=_whole, strict=False)


def find_objects(text: str) -> Scan:
    """Find the objects of *text* that no other object encloses; the elements of an array count as such.

    Takes time in proportion to the text, whatever it holds, and never raises.
    """
    objects: list[Found] = []
    at, damage, sure = 0, -1, True
    while start := _START.search(text, at):
        begin = start.start()
        try:
            value, at, exact = _read(text, begin)
        except _Broken as broken:
            at = begin + 1
            if isinstance(broken, _Cut):
                damage = begin
                break
            if broken.keyed and text[begin] in "{｛":  # else a brace in prose, or a list whose elements may be whole
                damage = begin
                end = _matching(text, begin) if sure else None
                at, sure = (max(at, broken.at), False) if end is None else (end, sure)
            continue
        elements = value if type(value) is list else [value]
        objects += [Found(each, begin, at, exact, sure) for each in elements if isinstance(each, Members)]
    return Scan(tuple(objects), damage)


def _read(text: str, start: int) -> tuple[Any, int, bool]:
    try:
        value, end = _STRICT.raw_decode(text, start)
        return value, end, True
    except (ValueError, RecursionError):
        reader = _Reader(text, start)
        return reader.value(0), reader.at, False


def _matching(text: str, start: int) -> int | None:
    """The position after the brace that closes the one at *start*, or None.  Knows nothing of strings."""
    depth = 0
    for brace in re.compile("[{}｛｝]").finditer(text, start):
        depth += 1 if brace.group() in "{｛" else -1
        if depth == 0:
            return brace.end()
    return None


class _Reader:
    """Reads one value that is nearly JSON."""

    __slots__ = ("_keyed", "at", "text")

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self._keyed = False

    def value(self, depth: int, after: str = _AFTER_ELEMENT) -> Any:
        char = self._peek()
        if char in "{｛":
            return self._object(depth + 1)
        if char in "[［":
            return self._array(depth + 1)
        if char in _QUOTES:
            return self._string(after)
        return self._scalar()

    def _object(self, depth: int) -> Members:
        self._enter(depth)
        members = Members()
        while self._peek() not in "}｝":
            key = self._key()
            members.append((key, self.value(depth, _AFTER_VALUE)))
            self._separator("}｝")
        self.at += 1
        return members

    def _array(self, depth: int) -> list[Any]:
        self._enter(depth)
        elements: list[Any] = []
        while self._peek() not in "]］":
            elements.append(self.value(depth))
            self._separator("]］")
        self.at += 1
        return elements

    def _enter(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._broken()
        self.at += 1

    def _key(self) -> str:
        quoted = self._peek() in _QUOTES
        key = self._match(_QUOTED_KEY if quoted else _NAME)
        if key is None:
            raise self._broken()
        self.at = key.end()
        if quoted:
            self._peek()  # where the text ends here it was cut; a brace before a last word is prose
        colon = self._match(_COLON)
        if colon is None:
            raise self._broken()
        self.at = colon.end()
        self._keyed = True
        return key.group(1)

    def _separator(self, closing: str) -> None:
        char = self._peek()
        if char in ",，":
            self.at += 1
        elif char not in closing:
            raise self._broken()

    def _string(self, after: str) -> str:
        """Read to the quotation mark that is followed by what must follow; one inside the words is a part of them."""
        closing, follows = re.compile(_CLOSING[self.text[self.at]]), re.compile(after)
        start = at = self.at + 1
        while mark := closing.search(self.text, at):
            if mark.group() == "\\":
                at = mark.end() + 1  # what is escaped is no mark
            elif follows.match(self.text, mark.end()):
                self.at = mark.end()
                return re.sub(_ESCAPE, _unescaped, self.text[start : mark.start()])
            else:
                at = mark.end()
        raise self._cut()

    def _scalar(self) -> Any:
        if number := self._match(_NUMBER):
            self._take(number)
            word = number.group()
            return word if word.endswith("%") else _number(word)
        name = self._match(_NAME)
        if name is None:
            raise self._broken()
        self._take(name)
        return _NAMED.get(name.group().lower(), name.group())

    def _take(self, match: re.Match[str]) -> None:
        self.at = match.end()
        if not self._match(_AFTER_NAME):
            raise self._broken()

    def _peek(self) -> str:
        """The next character that is neither space nor comment; the text must not end here."""
        spaces = self._match(_SPACE)
        self.at = spaces.end() if spaces else self.at
        if self.at >= len(self.text):
            raise self._cut()
        return self.text[self.at]

    def _match(self, pattern: str) -> re.Match[str] | None:
        # compiled when the first text comes that needs it; an import would pay for all of them
        return re.compile(pattern).match(self.text, self.at)

    def _broken(self) -> _Broken:
        return _Broken(self._keyed, self.at)

    def _cut(self) -> _Cut:
        return _Cut(self._keyed, self.at)


def _number(word: str) -> int | float:
    try:
        return _whole(word)
    except ValueError:
        return float(word)


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, match.group())
