"""The words of a text."""

import pytest

from reactflow.words import FILLER, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Prizes, prize, PRIZES!", ["prize", "prize", "prize"]),
        ("glass bus gas", ["glass", "bus", "gas"]),
        ("São Paulo's café", ["sao", "paulo", "s", "cafe"]),
        ("北京天气", ["北京", "京天", "天气"]),
        ("茶", ["茶"]),
        ("GPU显存24GB", ["gpu", "显存", "24gb"]),
        ("", []),
    ],
)
def test_words_are_folded_and_chinese_comes_in_pairs(text: str, expected: list[str]):
    assert words(text) == expected


def test_words_that_say_nothing_of_a_subject_are_filler_as_they_are_written_and_as_they_are_matched():
    assert {"this", "thi", "where", "怎么样", "怎么"} <= FILLER
    assert FILLER.isdisjoint(["weather", "paris", "北京", "天气"])
