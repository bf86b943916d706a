"""References under control: each marker in an answer points at a source that was really found, or is taken out.

Models number their sources in different ways: by the numbers they were shown, by the place in their own list, or with
numbers written in that list.  All are understood, and come out as one numbering without gaps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from reactflow.workflows.sources import Catalogue, Source

_CODE = r"(?s)(```.*?(?:```|\Z)|`[^`\n]*`)"
_TARGET = r"\((?P<{}>https?://[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)"
_NUMBERS = r"[\[［【]\^?(?P<numbers>\d{1,3}(?:[ ]?[,，、;；–-][ ]?\d{1,3})*)[\]］】](?:" + _TARGET.format("url") + ")?"
_LINK = r"(?<!!)\[(?P<label>[^\[\]\n]{1,200})\]" + _TARGET.format("target")
_MARKER = rf"(?P<space>[ \t]{{0,4}})(?:{_NUMBERS}|{_LINK})"
_ADDRESS = r"https?://[^\s<>\"'`\[\]{}|\\^，。；：！？、（）【】]+"
_NUMBERED = r"(?s)\s*(?:[-*•]\s*)?(?:[\[［【]\^?(\d{1,3})[\]］】][:：]?|(\d{1,3})[.):：、](?=\s))\s*(.*)"
_HEADING = r"(?i)[\s#*_]*(?:references?|sources?|citations?|参考(?:文献|资料|来源)?|来源|引用)[\s#*_]*[:：]?[\s*_]*"
_MAX_HEADING_CHARS = 60
_END = ".,;:!?)>]}\"'"


class Cited(NamedTuple):
    """An answer whose references were checked.

    Args:
        answer: With markers ``[1]``, ``[2]`` ... that number *sources*.
        as_shown: The same with the numbers under which the sources are in the catalogue.
        sources: What it refers to, in the order of first mention, those without a marker last.
        removed: References and markers that are no retrieved source.
    """

    answer: str
    as_shown: str
    sources: tuple[Source, ...] = ()
    removed: tuple[str, ...] = ()


class _Entry(NamedTuple):
    """One line of the model's list: the number it wrote, the catalogue's number of the source, the line itself."""

    own: int | None
    number: int | None
    text: str


def check_citations(answer: str, references: Iterable[str], catalogue: Catalogue) -> Cited:
    """Check *references* and the markers in *answer* against *catalogue*, and number what is left anew.

    Code is left alone.  A list of sources that the model put at the end of the answer is taken for references.
    """
    body, own_list = _without_own_list(answer)
    entries = [_entry(text, catalogue) for text in dict.fromkeys((*references, *own_list)) if text.strip()]
    meaning = _meaning(_markers(body), entries, catalogue)
    removed = dict.fromkeys(entry.text.strip() for entry in entries if entry.number is None)
    mentioned: dict[int, None] = {}

    def note(numbers: Sequence[int], written: str) -> str:
        mentioned.update(dict.fromkeys(numbers))
        if written:
            removed[written] = None
        return ""

    _rewritten(body, meaning, catalogue, note)
    order = list(dict.fromkeys((*mentioned, *(entry.number for entry in entries if entry.number is not None))))
    place = {number: at for at, number in enumerate(order, 1)}
    return Cited(
        _rewritten(body, meaning, catalogue, lambda numbers, _: _marker(place[number] for number in numbers)),
        _rewritten(body, meaning, catalogue, lambda numbers, _: _marker(numbers)),
        tuple(catalogue.sources[number - 1] for number in order),
        tuple(removed),
    )


def unknown_addresses(answer: str, known: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Addresses in *answer* that are no source's and stand nowhere in *known*, such as the task and the evidence."""
    found = dict.fromkeys(url.rstrip(_END) for url in re.findall(_ADDRESS, answer))
    return tuple(url for url in found if catalogue.number(url) is None and url not in known)


def _rewritten(
    text: str, meaning: Mapping[int, int | None], catalogue: Catalogue, write: Callable[[Sequence[int], str], str]
) -> str:
    """*text* with each marker written anew.

    Args:
        text: The answer.
        meaning: The catalogue's number for each number in a marker; None where there is no such source.
        catalogue: The sources.
        write: Gets the catalogue's numbers that a marker stands for, and what of it stands for none, as it was written;
            gives the new marker.
    """

    def marker(match: re.Match[str]) -> str:
        meant = _meant(match, meaning, catalogue)
        if meant is None:
            return match[0]
        words = [part for part in (match["label"], write(*meant)) if part]
        return match["space"] + " ".join(words) if words else ""

    prose = re.split(_CODE, text)
    prose[::2] = [re.sub(_MARKER, marker, part) for part in prose[::2]]
    return "".join(prose).strip()


def _meant(
    match: re.Match[str], meaning: Mapping[int, int | None], catalogue: Catalogue
) -> tuple[list[int], str] | None:
    """The catalogue's numbers that a marker stands for, and what of it stands for none; None where it is no marker."""
    if url := match["url"] or match["target"]:
        number = catalogue.number(url)
        return ([], url) if number is None else ([number], "")
    numbers = _expanded(match["numbers"])
    known = dict.fromkeys(number for each in numbers if (number := meaning.get(each)) is not None)
    if not known and all(number == 0 or number >= 100 for number in numbers):
        return None  # a code, an index
    return list(known), _marker(each for each in numbers if meaning.get(each) is None)


def _marker(numbers: Iterable[int]) -> str:
    listed = ", ".join(map(str, numbers))
    return f"[{listed}]" if listed else ""


def _markers(text: str) -> set[int]:
    """The numbers in all markers of *text* that name no address of their own."""
    found = (match for part in re.split(_CODE, text)[::2] for match in re.finditer(_MARKER, part))
    return {each for match in found if match["numbers"] and not match["url"] for each in _expanded(match["numbers"])}


def _expanded(numbers: str) -> list[int]:
    """``1, 3-5`` as numbers."""
    found: list[int] = []
    for part in re.split(r"[,，、;；]", numbers):
        first, *last = (int(each) for each in re.split(r"[–-]", part))
        found += range(first, last[0] + 1) if last and first < last[0] <= first + 50 else (first, *last)
    return found


def _meaning(markers: set[int], entries: Sequence[_Entry], catalogue: Catalogue) -> dict[int, int | None]:
    """Which source each number in the markers stands for, by the reading that fits the model's own list best."""
    shown: dict[int, int | None] = {number: number for number in range(1, len(catalogue) + 1)}
    written = {entry.own: entry.number for entry in entries if entry.own is not None}
    listed = {entry.number for entry in entries}
    if written:
        return {**shown, **written}
    if not markers <= listed and markers <= set(range(1, len(entries) + 1)):
        return {place: entry.number for place, entry in enumerate(entries, 1)}
    return shown


def _entry(text: str, catalogue: Catalogue) -> _Entry:
    """Read one reference: an address, alone or with words around it, or the number of a source."""
    numbered = re.fullmatch(_NUMBERED, text)
    own = int(numbered[1] or numbered[2]) if numbered else None
    rest = numbered[3] if numbered else text
    if not rest.strip() or rest.strip().isdecimal():  # "[2]", "2": the number of a source
        number = int(rest) if rest.strip() else own
        return _Entry(None, number if number is not None and 1 <= number <= len(catalogue) else None, text)
    return _Entry(own, _number(rest, catalogue), text)


def _number(text: str, catalogue: Catalogue) -> int | None:
    """The source whose address is *text* or stands in it; words of other scripts may follow it without a space."""
    found = re.findall(_ADDRESS, text)
    for candidate in (text, *found, *("".join(takewhile(str.isascii, each)) for each in found)):
        for end in range(len(candidate), 0, -1):
            if (number := catalogue.number(candidate[:end])) is not None:
                return number
            if candidate[end - 1] not in _END:
                break
    return None


def _without_own_list(answer: str) -> tuple[str, list[str]]:
    """The answer without a list of sources at its end, under a heading or numbered, and the lines of that list."""
    lines = answer.rstrip().splitlines()
    at = len(lines)
    while at and (not lines[at - 1].strip() or re.search(_ADDRESS, lines[at - 1])):
        at -= 1
    listed = [line for line in lines[at:] if line.strip()]
    headed = at > 0 and len(lines[at - 1]) <= _MAX_HEADING_CHARS and re.fullmatch(_HEADING, lines[at - 1]) is not None
    body = "\n".join(lines[: at - headed]).rstrip()
    if not listed or not body or not (headed or all(re.fullmatch(_NUMBERED, line) for line in listed)):
        return answer, []
    return body, listed
