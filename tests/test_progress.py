import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.progress import same, similarity, stalled
from reactflow.result import StopReason

LONG = "The report covers the first quarter and names every region with its revenue and its costs. "


def test_the_first_draft_has_nothing_to_be_compared_with():
    assert stalled([], []) is None
    assert stalled(["a"], ["wrong"]) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("same", "same"),
        ("a b", " a   b\n"),
        ("one two\nthree", "one\ntwo three"),
        ("北京 晴", "北京\n晴"),
        ("a\r\nb", "a\nb\n\n"),
    ],
)
def test_the_same_draft_twice_is_no_progress_whatever_its_white_space(first, second):
    assert stalled([first, second], ["x", "y"]) is StopReason.NO_PROGRESS


def test_a_draft_whose_indentation_alone_was_mended_has_changed():
    broken = "def f(x):\n    if x:\n        return 1\n        return 2"
    mended = "def f(x):\n    if x:\n        return 1\n    return 2"

    assert not same(broken, mended)
    assert same(mended, "\tdef f(x):\n\t    if x:\n\t        return 1\n\n\t    return 2\n")
    assert stalled([broken, mended], ["unreachable line", "wrong name"]) is None


def test_drafts_that_go_back_and_forth_are_an_oscillation():
    assert stalled(["red", "blue", "red ", "blue"], ["a", "b", "c", "d"]) is StopReason.OSCILLATION


def test_returning_once_is_not_yet_an_oscillation():
    assert stalled(["red", "blue", "red"], ["a", "b", "c"]) is None
    assert stalled(["green", "blue", "red", "blue"], ["a", "b", "c", "d"]) is None


def test_the_same_complaint_about_a_hardly_changed_draft_is_no_progress():
    drafts = [LONG * 3, LONG * 3 + "Done."]

    assert (
        stalled(drafts, ["The costs of region 3 are missing.", "The cost of region 3 are missing!"])
        is StopReason.NO_PROGRESS
    )


def test_the_same_complaint_about_a_changed_draft_goes_on():
    assert stalled(["Berlin is large.", "Paris has two million people."], ["no source", "no source"]) is None


def test_fewer_problems_are_progress_however_little_changed():
    drafts = ["A long report with a typo here and a tyop there.", "A long report with a typo here and a typo there."]
    complaint = ["Words are misspelt."] * 2

    assert stalled(drafts, complaint, [2, 1]) is None
    assert stalled(drafts, complaint, [2, 2]) is StopReason.NO_PROGRESS
    assert stalled(drafts, complaint, [1, 2]) is StopReason.NO_PROGRESS


def test_a_new_complaint_about_a_hardly_changed_draft_goes_on():
    assert stalled([LONG * 3, LONG * 3 + "Done."], ["no source given", "the tone is off"]) is None


def test_five_five_five_one_zero_issues_with_changing_drafts_is_not_stopped():
    drafts = [
        "first try about apples",
        "a second go at pears",
        "third, plums entirely",
        "now cherries and figs",
        "quince",
    ]
    issues = ["five issues"] * 3 + ["one issue", ""]

    assert [stalled(drafts[:n], issues[:n]) for n in range(1, 6)] == [None] * 5


@pytest.mark.parametrize("issues", [[], ["x"], ["", ""], ["wrong", " "]])
def test_where_no_reason_was_given_only_the_drafts_count(issues):
    assert stalled([LONG * 3, LONG * 3 + "Done."], issues) is None


def test_similarity_reads_chinese_character_by_character():
    assert similarity("今天北京天气晴朗", "今天北京天气多云") == pytest.approx(0.75)
    assert similarity("甲乙", "丙丁") == 0.0


def test_empty_texts_are_equal():
    assert similarity("", "") == 1.0
    assert similarity("", "a") == 0.0


@given(st.text(max_size=60), st.text(max_size=60))
def test_similarity_is_symmetric_and_bounded(a, b):
    assert 0.0 <= similarity(a, b) <= 1.0
    assert similarity(a, b) == pytest.approx(similarity(b, a))
    assert similarity(a, a) == 1.0


def _words(seed, count):
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghij", k=rng.randint(2, 8))) for _ in range(count))


def test_long_drafts_are_compared_in_bounded_time():
    a, b = _words(1, 60_000), _words(2, 60_000)

    started = time.process_time()
    assert similarity(a, b) < 0.6
    assert time.process_time() - started < 1.0


def test_one_new_paragraph_leaves_a_long_draft_similar():
    text = _words(3, 20_000)
    assert len(text) > 100_000
    edited = text[:50_000] + _words(4, 300) + text[50_000:]

    assert similarity(text, edited) == pytest.approx(2 * len(text) / (len(text) + len(edited)))


def test_what_differs_beyond_the_bound_is_extrapolated():
    a, b = "a" * 60_000, "a" * 30_000 + "b" * 30_000

    assert similarity(a, b) == pytest.approx(0.5)
