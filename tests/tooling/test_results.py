"""What the model reads of a result."""

from __future__ import annotations

import datetime as dt
import enum
import itertools
import math
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from reactflow.result import AgentResult
from reactflow.tooling.results import as_text, shorten, words_of


class Colour(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):  # noqa: UP042 - the old way, whose str() is "Word.YES"
    YES = "yes"


class Place(BaseModel):
    city: str


@dataclass
class Span:
    start: dt.date


class Array:
    """Looks like one of numpy."""

    def tolist(self) -> list[int]:
        return [1, 2]


@pytest.mark.parametrize("text", ["", "sunny", '{"t": 1}', '"quoted"', "晴\n", "null"])
def test_text_passes_unchanged_and_is_never_quoted_again(text: str):
    assert as_text(text) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (2**70, str(2**70)),
        (1.5, "1.5"),
        (math.nan, '"NaN"'),
        ([-math.inf], '["-Infinity"]'),
        ({"城市": "北京"}, '{"城市":"北京"}'),
        ([], "[]"),
        ((1, "a"), '[1,"a"]'),
        ({3}, "[3]"),
        (range(3), "[0,1,2]"),
        (iter([1, "北"]), '[1,"北"]'),
        (deque([1]), "[1]"),
        ({"a": 1}.keys(), '["a"]'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (Place(city="北京"), '{"city":"北京"}'),
        ([Span(dt.date(2026, 1, 2))], '[{"start":"2026-01-02"}]'),
        (dt.datetime(2026, 1, 2, 3, 4), '"2026-01-02T03:04:00"'),
        (Decimal("1.10"), '"1.10"'),
        (Colour.RED, '"red"'),
        (Word.YES, "yes"),
        (b"abc", '"abc"'),
        ({"raw": b"\xff\xfe"}, '{"raw":"__4="}'),
        (["\ud83d", "晴"], '["\ud83d","晴"]'),
        (Array(), "[1,2]"),
        (AgentResult(text="the answer"), "the answer"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_written_as_json_once(value: Any, text: str):
    written = as_text(value)

    assert written == text
    assert type(written) is str


@pytest.mark.parametrize("value", [object(), {"x": object()}, Place, lambda: 1, type("A", (list,), {})])
def test_what_has_no_json_form_is_an_error(value: Any):
    with pytest.raises(Exception, match=r"JSON form|serializ"):
        as_text(value)


def test_an_iterator_without_an_end_is_an_error_and_does_not_hang():
    with pytest.raises(TypeError, match="more than 100000 items"):
        as_text(itertools.count())


def test_a_circle_is_an_error():
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(ValueError, match="Circular"):
        as_text(circle)


def test_what_is_too_long_is_cut_with_a_note_of_how_much():
    assert shorten("晴" * 10, 4) == "晴晴晴晴\n[6 of 10 characters were left out]"
    assert shorten("abcd", 4) == "abcd"
    assert shorten("abcd", None) == "abcd"


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot even say it")


def test_an_exception_is_worded_within_bounds():
    assert words_of(ValueError("no such city ")) == "no such city"
    assert words_of(ValueError("x" * 1500)) == f"{'x' * 1000}\n[500 of 1500 characters were left out]"
    assert words_of(ValueError()) == ""
    assert words_of(Mute()) == ""
