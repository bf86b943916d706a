"""Markers: ``[2]`` and the other forms in which models point at a numbered source, among the words of a text.

Code is never looked into.  What may be a marker or something else, such as ``(2)`` or ``v[2]``, is found as unclear.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

_START = r"(?<![^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"  # of a word in Latin letters; Chinese has no blanks
_WORD = (
    r"(?:(?i:see|cf\.?|sources?|refs?\.?|references?|cit(?:e|ations?)|docs?|documents?|id)"
    r"|参见|见|来源|参考(?:文献|资料|来源)?|文献|资料|引用|出处)[ ]?[:：_-]?[ ]?\#?"
)
_RANGE = r"[ ]?(?:[-–—~～至到]|\b(?:to|through)\b)[ ]?"
_LIST = rf"\d{{1,3}}(?:(?:{_RANGE}|[ ]?(?:[,，、&和与及]|\band\b)[ ]?)\d{{1,3}})*"
_PLACE = (
    r"(?:[,，:：][ ]?|[ ])(?:(?i:pp?|pages?|ch(?:ap(?:ter)?)?|sec(?:tion)?|fig(?:ure)?|tab(?:le)?|para|lines?)"
    r"\.?[ ]?\d|[§¶]|第)[^,，、;；]*"
)
_TARGET = r"\((?:<?(?P<{}>https?://[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:[ ]\"[^\"\n]*\")?|\#[^\s()]*)\)"
_TOKEN = rf"""(?xms)
  (?P<other>
      {_START}(?:[a-z]|[A-Za-z]+_[A-Za-z0-9_]*)(?:\[\d{{1,3}}\])+
    | {_START}[A-Za-z][A-Za-z0-9_]*(?:\[\d{{1,3}}\])+(?=[ ]?[-+*/]?=)
    | =[ ]?\[[\d, ]{{1,100}}\]
    | {_START}(?:(?i:sources?|refs?\.?|references?|citations?)|来源|参考文献|文献|资料)[ ]?\#?{_LIST}(?![A-Za-z\d]|\.\d)
    | (?<!`)`[\[［【]\^?{_LIST}[\]］】]`(?!`)
  )
  | (?P<code>
      ^[ \t>*+\d.)-]{{0,20}}(?P<fence>`{{3,}}|~{{3,}})[^`\n]*$(?:.*?^[ \t>]*(?P=fence)|.*)
    | (?<![`\\])(?P<ticks>`{{1,9}})(?!`)(?:(?!\n[ \t\r]*\n).)+?(?<!`)(?P=ticks)(?!`)
    | (?i:<(?P<html>code|pre)\b[^<>]*>(?:(?!</?(?P=html)\b).)*</(?P=html)>)
    | !\[(?!\^?\d{{1,3}}\])[^\[\]\n]*\]\([^()\s]*\)
  )
  | (?P<raised>[¹²³⁰-⁾]+)
  | (?P<space>(?:(?<=[\]］】〕])[,，、;；])?[ \t]{{0,4}})
  (?:
      (?P<double>\[)?\\?[\[［【〔](?P<square>[^\[\]［］【】〔〕\n]{{1,200}})[\]］】〕]
      (?(double)\]{_TARGET.format("outer")}|(?:{_TARGET.format("url")})?)
    | [(（](?P<round>(?:{_WORD}){{0,2}}\#?\d[^()（）\[\]\n]{{0,60}})[)）]
    | (?i:<(?P<tag>sup|ref|cite|source)>[\[［]?(?P<tagged>[^<>\[\]［］\n]{{1,60}})[\]］]?</(?P=tag)>)
  )"""
_NUMBER = r"(?<![\d.])(?<!\d-)\d{1,3}(?!\d|\.\d)"
_EXPONENT = r"(?:[\d)]|[^A-Za-z](?:[A-Za-z]{1,2}|sin|cos|tan|log|mol|rad))\Z"
_NO_CITATION = r"(?:\n[ \t>*+-]*|[A-Za-z0-9_])\Z"  # a number in a list, an argument
_LOOKED_BACK = 24
_MAX_RANGE = 100


class Marker(NamedTuple):
    """One marker of a text.

    Args:
        text: As it was written, with *space*.
        space: The blanks in front, and a comma between it and the marker before.
        parts: The numbers it names, each group with the place in these sources, such as ``, p. 14``.
        url: The address it links to, or an empty text.
        label: The words of a link that names no number.
        unclear: Whether it may as well be something else.
    """

    text: str
    space: str
    parts: tuple[tuple[tuple[int, ...], str], ...] = ()
    url: str = ""
    label: str = ""
    unclear: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """All numbers it names; of a range each one."""
        return tuple(number for numbers, _ in self.parts for number in numbers)


def find_markers(text: str) -> tuple[list[str], list[Marker]]:
    """The words around the markers in *text*, one piece more than there are markers, and the markers."""
    words: list[str] = []
    markers: list[Marker] = []
    at = 0
    for match in re.finditer(_TOKEN, text):
        marker = None if match["code"] else _marker(match)
        if marker is None:
            continue
        between, at = text[at : match.start()], match.end()
        if markers and _is_range(markers[-1], between, marker):
            first = markers.pop()
            numbers = tuple(range(first.numbers[0], marker.numbers[0] + 1))
            markers.append(Marker(first.text + between + marker.text, first.space, ((numbers, ""),)))
        else:
            words.append(between)
            markers.append(marker)
    return [*words, text[at:]], markers


def write_marker(parts: Iterable[tuple[Iterable[int], str]]) -> str:
    """``[1, 2]`` or ``[1, p. 14; 2]`` for the numbers and places in *parts*; an empty text for none."""
    groups = [(", ".join(map(str, numbers)), place) for numbers, place in parts]
    listed = "; ".join(numbers + place for numbers, place in groups if numbers)
    return f"[{listed}]" if listed else ""


def join(words: list[str], written: Iterable[str | None]) -> str:
    """The text of *words* with a marker, with the blanks in front of it, between each two; None takes one out."""
    text = [words[0]] if words[0] else []
    for marker, after in zip(written, words[1:], strict=True):
        if marker is None:
            after = _closed(text, after)
        text += [piece for piece in (marker, after) if piece]
    return "".join(text)


def _closed(text: list[str], after: str) -> str:
    """What follows a marker that is taken out, without the blank or the bracket that was there for the marker alone."""
    if text and text[-1][-1] + after[:1] in ("()", "（）", "[]"):
        before, after = text.pop()[:-1].rstrip(" \t"), after[1:]
        text += [before] if before else []
    return after if text and not text[-1].endswith("\n") else after.lstrip(" \t")


def _marker(match: re.Match[str]) -> Marker | None:
    space, url = match["space"] or "", match["url"] or match["outer"] or ""
    written = match["square"] or match["round"] or match["tagged"] or match["raised"] or match["other"]
    plain = unicodedata.normalize("NFKC", written) if match["raised"] else written
    parts, named = _read(plain)
    before = _before(match.string, match.start() + len(space))
    exponent = (match["raised"] or match["tagged"]) and re.search(_EXPONENT, before)
    if parts and (match["square"] or (match["round"] and named) or (match["tagged"] and not exponent)):
        return Marker(match[0], space, parts, url)
    if url:
        return Marker(match[0], space, url=url, label=f"[{written}]" if match["double"] else written)
    if match["raised"] and exponent:
        return None
    if match["round"] and not named and (not parts or re.search(_NO_CITATION, before)):
        return None
    numbers = tuple(map(int, re.findall(r"\d" if match["raised"] else _NUMBER, plain)))
    return Marker(match[0], space, (*parts, (numbers, "")), unclear=True) if numbers else None


def _before(text: str, end: int) -> str:
    """The last characters of *text* up to *end*; the first line begins behind a line break as well."""
    return text[end - _LOOKED_BACK : end] if end >= _LOOKED_BACK else f"\n{text[:end]}"


def _read(written: str) -> tuple[tuple[tuple[tuple[int, ...], str], ...], bool]:
    """The numbers and places in a marker, none where it is no marker, and whether it says that it names a source."""
    bare = written.strip(" \t\\^#")
    plain = re.sub(rf"\^?(?:{_WORD}){{0,2}}(?=\d)", "", bare)
    items = re.split("[;；]", plain.partition("†")[0])
    found = [match for each in items if (match := re.fullmatch(rf"({_LIST})({_PLACE})?", each.strip()))]
    parts = tuple((numbers, match[2] or "") for match in found if (numbers := _numbers(match[1])))
    if len(parts) < len(items):
        return (), plain != bare
    if not any(place for _, place in parts):
        parts = ((tuple(number for numbers, _ in parts for number in numbers), ""),)
    return parts, plain != bare


def _numbers(listed: str) -> tuple[int, ...]:
    """``1, 3-5`` as numbers; none where a range is too long."""
    found: list[int] = []
    for first, last in re.findall(rf"(\d+)(?:{_RANGE}(\d+))?", listed):
        start, end = int(first), int(last or first)
        if end - start > _MAX_RANGE:
            return ()
        found += range(start, end + 1) if start <= end else (start, end)
    return tuple(found)


def _is_range(first: Marker, between: str, last: Marker) -> bool:
    """Whether two markers are the ends of a range, as in ``[1]–[3]``."""
    if any(each.unclear or each.url or len(each.numbers) != 1 or each.parts[0][1] for each in (first, last)):
        return False
    return 0 < last.numbers[0] - first.numbers[0] <= _MAX_RANGE and bool(re.fullmatch(_RANGE, between + last.space))
