"""References under control: each marker in an answer points at a source that was really found, or is taken out.

Models number their sources in different ways: by the numbers they were shown, by the place in their own list, or with
numbers written in that list.  All are understood, and come out as one numbering without gaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from reactflow.workflows.markers import Marker, find_markers, join, write_marker
from reactflow.workflows.sources import Catalogue, Source, address

_ADDRESS = r"https?://[^\s<>\"'`\[\]{}|\\^，。；：！？、（）【】]+"
_NUMBERED = (
    r"[\s*•-]*(?:(?i:source|reference|ref\.?)|来源|参考文献|文献|资料)?[ ]?[(（]?(\d{1,3})"
    r"(?:[.．、](?=\s|http)|[:：)）]+(?=\s|http)|\s*\Z)"
)
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
        unclear: What was left as it is and may be a marker: as one it would name another source than the model meant.
    """

    answer: str
    as_shown: str
    sources: tuple[Source, ...] = ()
    removed: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


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
    words, markers = find_markers(body)
    cited = {number for marker in markers if not (marker.url or marker.unclear) for number in marker.numbers}
    meaning = _meaning(cited, entries, catalogue)
    meant = [_meant(marker, meaning, catalogue) for marker in markers]
    listed = (entry.number for entry in entries if entry.number is not None)
    order = list(dict.fromkeys((*(number for each in meant if each for number in each.numbers), *listed)))
    unknown = (each.unknown for each in meant if each and each.unknown)
    removed = dict.fromkeys((*(entry.text.strip() for entry in entries if entry.number is None), *unknown))
    moved = _moved(meaning, order)
    left = (marker for marker, found in zip(markers, meant, strict=True) if found is None)
    unclear = (marker.text.strip() for marker in left if moved.intersection(marker.numbers))

    def rewritten(numbers: Mapping[int, int]) -> str:
        return join(words, [_rewritten(*pair, numbers) for pair in zip(markers, meant, strict=True)])

    return Cited(
        rewritten({number: place for place, number in enumerate(order, 1)}),
        rewritten({number: number for number in order}),
        tuple(catalogue.sources[number - 1] for number in order),
        tuple(removed),
        tuple(dict.fromkeys(unclear)),
    )


def unknown_addresses(answer: str, known: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Addresses in *answer* that are no source's and stand nowhere in *known*, such as the task and the evidence.

    The beginning of an address that is known is another one.
    """
    standing = {address(each) for url in re.findall(_ADDRESS, known) for each in _readings(url)}
    found = dict.fromkeys(url.rstrip(_END) for url in re.findall(_ADDRESS, answer))
    return tuple(
        url for url in found if not any(catalogue.number(each) or address(each) in standing for each in _readings(url))
    )


def _readings(url: str) -> tuple[str, ...]:
    """*url* without the marks of the sentence behind it, and without words of another script that follow it at once.

    What is cut off behind a slash or the like is a part of the address.
    """
    whole, plain = url.rstrip(_END), "".join(takewhile(str.isascii, url))
    return (whole, plain.rstrip(_END)) if plain[-1:].isalnum() else (whole,)


class _Meant(NamedTuple):
    """What a marker stands for: numbers of the catalogue, with places in these sources, and what stands for none."""

    parts: Sequence[tuple[Sequence[int], str]]
    unknown: str

    @property
    def numbers(self) -> list[int]:
        return [number for numbers, _ in self.parts for number in numbers]


def _meant(marker: Marker, meaning: Mapping[int, int | None], catalogue: Catalogue) -> _Meant | None:
    """What *marker* stands for; None where it is to be left as it is."""
    if marker.unclear:
        return None
    if marker.url:
        number = catalogue.number(marker.url)
        return _Meant([], marker.url) if number is None else _Meant([([number], "")], "")
    unknown = [number for number in marker.numbers if meaning.get(number) is None]
    if 0 in unknown or max(unknown, default=0) >= 100:
        return None  # an interval, an index, a code
    parts = [([number for each in numbers if (number := meaning.get(each))], place) for numbers, place in marker.parts]
    return _Meant([(list(dict.fromkeys(numbers)), place) for numbers, place in parts], write_marker([(unknown, "")]))


def _rewritten(marker: Marker, meant: _Meant | None, numbers: Mapping[int, int]) -> str | None:
    """*marker* with other *numbers* for those of the catalogue, or None where nothing is left of it."""
    if meant is None:
        return marker.text
    number = write_marker(([numbers[each] for each in known], place) for known, place in meant.parts)
    words = " ".join(part for part in (marker.label, number) if part)
    return marker.space + words if words else None


def _moved(meaning: Mapping[int, int | None], order: Sequence[int]) -> set[int]:
    """The numbers that mean another source in the new numbering, or none where they meant one that is cited."""
    now = dict(enumerate(order, 1))
    return {
        number
        for number, source in meaning.items()
        if source is None or (now.get(number) != source and (number in now or source in order))
    }


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
    own, rest = _own_number(text)
    if own is not None and not rest.strip():  # "[2]", "2": the number of a source
        return _Entry(None, own if 1 <= own <= len(catalogue) else None, text)
    return _Entry(own, _number(rest, catalogue), text)


def _own_number(line: str) -> tuple[int | None, str]:
    """The number at the beginning of a reference, in any form of a marker or as in ``2.``, and what follows it."""
    if numbered := re.match(_NUMBERED, line):
        return int(numbered[1]), line[numbered.end() :]
    words, markers = find_markers(line)
    if not markers or markers[0].unclear or len(markers[0].numbers) != 1 or words[0].strip("-*•_> \t"):
        return None, line
    return markers[0].numbers[0], line if markers[0].url else line[len(words[0] + markers[0].text) :].lstrip(":：*_")


def _number(text: str, catalogue: Catalogue) -> int | None:
    """The source whose address is *text* or stands in it; words of other scripts may follow it without a space."""
    found = re.findall(_ADDRESS, text)
    for candidate in (text, *found, *(reading for each in found for reading in _readings(each))):
        for end in range(len(candidate), 0, -1):
            if (number := catalogue.number(candidate[:end])) is not None:
                return number
            if candidate[end - 1] not in _END:
                break
    return None


def _without_own_list(answer: str) -> tuple[str, list[str]]:
    """The answer without a list of sources at its end, under a heading or numbered, and the lines of that list."""
    lines = answer.rstrip().splitlines(keepends=True)
    at = len(lines)
    while at and (not lines[at - 1].strip() or re.search(_ADDRESS, lines[at - 1])):
        at -= 1
    listed = [line for line in lines[at:] if line.strip()]
    headed = at > 0 and len(lines[at - 1]) <= _MAX_HEADING_CHARS and re.fullmatch(_HEADING, lines[at - 1]) is not None
    body = "".join(lines[: at - headed]).rstrip()
    if not listed or not body or not (headed or all(_own_number(line)[0] is not None for line in listed)):
        return answer, []
    return body, listed
