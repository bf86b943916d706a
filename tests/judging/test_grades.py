import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.judging.grades import MAX_ISSUES, clean, read_issues, read_severity, read_share, snake
from reactflow.judging.loose_json import Members, find_objects
from reactflow.result import Issue


@pytest.mark.parametrize(
    ("value", "share"),
    [
        (0, 0.0), (1, 1.0), (0.95, 0.95), (1.0, 1.0), (2, 0.02), (95, 0.95), (100, 1.0), (95.0, 0.95),
        ("0.95", 0.95), ("95", 0.95), ("95%", 0.95), (" 95 % ", 0.95), ("0.5%", 0.005), ("1%", 0.01), ("100%", 1.0),
        ("９５％", 0.95), ("95 percent", 0.95), ("8/10", 0.8), ("4 / 5", 0.8), ("8 out of 10", 0.8), ("1e-1", 0.1),
        (-0.0, 0.0),
    ],
)  # fmt: skip
def test_a_share_is_read_from_fractions_percents_and_whole_numbers(value, share):
    assert read_share(value, "score") == (share, None)


@pytest.mark.parametrize("value", [None, "", "null", "N/A", " none "])
def test_no_share_is_nothing_odd(value):
    assert read_share(value, "score") == (None, None)


@pytest.mark.parametrize(
    "value",
    [
        True, False, math.nan, math.inf, -math.inf, -0.1, -1, 1.5, 7.5, 101, 1000, "101", "150%", "-5%", "high", "0,95",
        "about 0.9", "1.5", "9/8", "1/0", "1e999", "nan", [0.9], Members([("value", 0.9)]), 10**400,
    ],
)  # fmt: skip
def test_every_other_share_is_dropped_with_a_flag(value):
    share, flag = read_share(value, "confidence")

    assert share is None
    assert flag is not None
    assert flag.startswith("The confidence ")
    assert flag.endswith(" is not between 0 and 1, so it was dropped.")


def test_a_flag_shows_only_the_beginning_of_a_long_value():
    assert read_share("x" * 500, "score")[1] == f"The score '{'x' * 58}… is not between 0 and 1, so it was dropped."


@given(st.one_of(st.floats(), st.integers(), st.text(max_size=8), st.booleans(), st.none()))
def test_a_share_is_between_0_and_1_or_none(value):
    share, _ = read_share(value, "score")

    assert share is None or 0.0 <= share <= 1.0


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        (1, 1), (5, 5), (3.0, 3), ("4", 4), ("4 (major)", 4), ("sev5", 5), ("4/5", 4), ("high", 5), ("Medium", 3),
        ("low", 1), ("CRITICAL", 5), ("major", 4), ("minor", 2), ("trivial", 1), ("**high**", 5), ("高", 5), ("中", 3),
        ("低", 1), ("严重", 5), ("very high", 5), ("５", 5), (None, 3), ("", 3),
    ],
)  # fmt: skip
def test_a_severity_is_read_from_numbers_and_words(value, severity):
    assert read_severity(value) == (severity, None)


@pytest.mark.parametrize(
    ("value", "severity", "flag"),
    [
        (0, 1, "The severity 0 was read as 1."),
        (-3, 1, "The severity -3 was read as 1."),
        (9, 5, "The severity 9 was read as 5."),
        (3.7, 4, "The severity 3.7 was read as 4."),
        ("10", 5, "The severity '10' was read as 5."),
        ("odd", 3, "The severity 'odd' is unknown, so it was read as 3."),
        (True, 3, "The severity True is unknown, so it was read as 3."),
        (math.nan, 3, "The severity nan is unknown, so it was read as 3."),
        (math.inf, 3, "The severity inf is unknown, so it was read as 3."),
        ("1e999", 3, "The severity '1e999' is unknown, so it was read as 3."),
        ([], 3, "The severity [] is unknown, so it was read as 3."),
    ],
)
def test_an_odd_severity_is_clamped_or_3_with_a_flag(value, severity, flag):
    assert read_severity(value) == (severity, flag)


def issues_of(text):
    return read_issues(dict(find_objects(text).objects[0].members)["issues"])


def test_issues_are_words_or_objects():
    text = """{"issues": ["no date", {"field": "cost", "severity": "high", "description": "missing", "snippet": "s",
      "suggestion": "add it"}, null, "", "none", {"Issue": "stiff", "Level": 2}]}"""

    assert issues_of(text) == ((Issue("no date"), Issue("missing", 5, "cost", "s", "add it"), Issue("stiff", 2)), ())


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        ('{"issues": "no date"}', (Issue("no date"),)),
        ('{"issues": "none"}', ()),
        ('{"issues": null}', ()),
        ('{"issues": false}', ()),
        ('{"issues": {"description": "no date", "severity": 1}}', (Issue("no date", 1),)),
        ('{"issues": {"date": "missing", "tone": {"severity": 1, "detail": "stiff"}}}',
         (Issue("missing", 3, "date"), Issue("stiff", 1, "tone"))),
        ('{"issues": [{"category": "tone", "snippet": "hey", "suggestion": "Dear", "severity": 3}]}',
         (Issue("Dear", 3, "tone", "hey", "Dear"),)),
        ('{"issues": [{"category": "tone"}]}', (Issue("tone", category="tone"),)),
        ('{"issues": [["no date", "no place"]]}', (Issue("- no date\n- no place"),)),
    ],
)  # fmt: skip
def test_issues_come_in_many_forms(text, issues):
    assert issues_of(text) == (issues, ())


def test_an_issue_without_words_is_kept_with_its_severity_and_a_flag():
    assert issues_of('{"issues": [{"severity": 5}, {}]}') == (
        (Issue("(no description)", 5), Issue("(no description)", 3)),
        ("An issue has no words.",),
    )


def test_the_words_of_an_issue_without_any_are_in_the_language_of_the_question():
    value = dict(find_objects('{"issues": [{"severity": 5}]}').objects[0].members)["issues"]

    assert read_issues(value, question="为什么？")[0] == (Issue("（没有说明）", 5),)


def test_words_under_an_unknown_key_describe_an_issue():
    assert issues_of('{"issues": [{"severity": 4, "what": "no date"}]}') == ((Issue("what: no date", 4),), ())


@pytest.mark.parametrize(
    ("text", "word"), [('{"issues": [false]}', "false"), ('{"issues": [true]}', "true"), ('{"issues": true}', "true")]
)
def test_an_issue_that_is_only_true_or_false_is_not_lost(text, word):
    flag = f"An issue is only {word}, without words."

    assert issues_of(text) == ((Issue("(no description)"),), (flag,))


def test_odd_severities_are_flagged_once():
    issues, flags = issues_of('{"issues": [{"description": "a", "severity": 9}, {"description": "b", "severity": 9}]}')

    assert [issue.severity for issue in issues] == [5, 5]
    assert flags == ("The severity 9 was read as 5.",)


def test_endless_issues_are_cut_with_a_flag():
    issues, flags = read_issues(["x"] * 1000)

    assert (len(issues), flags) == (MAX_ISSUES, (f"Only the {MAX_ISSUES} worst issues were read.",))


def test_of_many_issues_the_mildest_are_left_out_and_the_rest_keep_their_order():
    trifles = [{"description": str(number), "severity": 1} for number in range(MAX_ISSUES)]
    issues, _ = issues_of(json.dumps({"issues": [*trifles, {"description": "invented", "severity": 5}]}))

    assert issues == (*(Issue(str(number), 1) for number in range(MAX_ISSUES - 1)), Issue("invented", 5))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, ""),
        ("N/A", ""),
        ("无。", ""),
        (" a ", "a"),
        (3, "3"),
        ([], ""),
        ([None, "a"], "a"),
        ("\ud800", "\ufffd"),
    ],
)
def test_words_are_cleaned(value, text):
    assert clean(value) == text


@pytest.mark.parametrize(
    ("key", "name"), [("Overall Score", "overall_score"), ("isPassed", "is_passed"), ("**x**", "x"), ("ＡＢ", "ab")]
)
def test_keys_are_compared_in_one_form(key, name):
    assert snake(key) == name
