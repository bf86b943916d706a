"""What a revision changed, word by word."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.cli.diff import changes, diff_text


def test_words_that_went_and_came_are_told_apart_from_those_that_stayed():
    assert changes("The sky is grey.", "The sky is blue today.") == [
        ("equal", "The sky is "),
        ("delete", "grey"),
        ("insert", "blue today"),
        ("equal", "."),
    ]


def test_in_chinese_each_character_is_a_word():
    assert changes("北京今天晴。", "北京明天晴。") == [
        ("equal", "北京"),
        ("delete", "今"),
        ("insert", "明"),
        ("equal", "天晴。"),
    ]


def test_unchanged_words_far_from_a_change_are_left_out():
    middle = " ".join(f"w{number}" for number in range(40))

    found = changes(f"a {middle} z", f"b {middle} y")

    kinds = [kind for kind, _ in found]
    assert kinds.count("gap") == 1
    assert "".join(words for kind, words in found if kind == "equal").split()[:2] == ["w0", "w1"]
    assert "w20" not in dict(found)["equal"]


def test_a_text_written_anew_and_an_endless_one_are_not_compared():
    assert changes("one two three four", "五 六 七 八 九") == []
    assert changes("a " * 20_000, "a " * 20_000 + "b") == []


def test_without_colours_the_changes_are_marked():
    plain, coloured = (diff_text("It is grey.", "It is blue.", coloured=coloured) for coloured in (False, True))

    assert plain is not None
    assert coloured is not None
    assert plain.plain == "It is [-grey-]{+blue+}."
    assert coloured.plain == "It is greyblue."
    assert [span.style for span in coloured.spans] == ["dim", "red strike", "green", "dim"]


def test_the_same_text_has_nothing_to_show():
    assert diff_text("same", "same", coloured=True) is None


def test_what_could_steer_a_terminal_is_made_visible():
    shown = diff_text("one two three", "one \x1b[2J two three", coloured=True)

    assert shown is not None
    assert "\x1b" not in shown.plain


words = st.lists(st.sampled_from(["a", "b", " ", "c,", "北", "\n", "🌤"]), max_size=40).map("".join)


@given(words, words)
def test_what_stayed_and_came_is_the_new_text_where_nothing_is_left_out(old, new):
    found = changes(old, new)

    if found and "gap" not in dict(found):
        assert "".join(piece for kind, piece in found if kind != "delete") == new
        assert "".join(piece for kind, piece in found if kind != "insert") == old


@pytest.mark.parametrize("seed", [1, 2])
def test_long_drafts_are_compared_in_no_time(seed):
    dice = random.Random(seed)
    old = [dice.choice(["alpha", "beta", "gamma", "delta"]) for _ in range(4_000)]
    new = [word for word in old if dice.random() > 0.1]

    assert changes(" ".join(old), " ".join(new))
