import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.judging.loose_json import Found, Members, Scan, find_objects


def only(text):
    scan = find_objects(text)
    assert len(scan.objects) == 1
    assert scan.damage == -1
    return scan.objects[0].members


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('{"a": 1, "b": [true, null, "x"]}', [("a", 1), ("b", [True, None, "x"])]),
        ("{}", []),
        ("{'a': True, 'b': None, 'c': False,}", [("a", True), ("b", None), ("c", False)]),
        ("{'a': 'it's', 'b': \"she said \\\"no\\\"\"}", [("a", "it's"), ("b", 'she said "no"')]),
        ("{a: 1, b-c: yes}", [("a", 1), ("b-c", "yes")]),
        (
            '{"a": 95%, "b": -.5, "c": +3, "d": 1e3, "e": 2.}',
            [("a", "95%"), ("b", -0.5), ("c", 3), ("d", 1000.0), ("e", 2.0)],
        ),
        ('{"a": -Infinity,}', [("a", -math.inf)]),
        ('{"a": "he said "x", twice", "b": 2}', [("a", 'he said "x", twice'), ("b", 2)]),
        ("{“a”：“说“好”，对”，“b”：［1，2］}", [("a", "说“好”，对"), ("b", [1, 2])]),
        ("{「a」: 「b」}", [("a", "b")]),
        ("{'a': '\\u4f60\\n\\q\\'',}", [("a", "你\n\\q'")]),
        ("{a: [1, 2,], b: {c: {}}}", [("a", [1, 2]), ("b", [("c", [])])]),
        ('{"a": 1, // one\n /* two */ "b": 2}', [("a", 1), ("b", 2)]),
        ('{"a": "x" // said\n, "b": "y" /* too */}', [("a", "x"), ("b", "y")]),
        ('{"a": 1, "a": 2}', [("a", 1), ("a", 2)]),
        ('{"a": ["x" , "y"], }', [("a", ["x", "y"])]),
    ],
)
def test_an_object_is_read_without_guessing(text, members):
    assert only(text) == members


def test_json_to_the_letter_is_marked_exact():
    assert find_objects('x {"a": 1} y {b: 2}') == Scan(
        (Found(Members([("a", 1)]), 2, 10, exact=True), Found(Members([("b", 2)]), 13, 19, exact=False))
    )


def test_a_value_that_is_none_is_damage():
    assert find_objects('{"a": @, "b": 1}') == Scan((), 0)


def test_the_objects_of_an_array_count_one_by_one():
    scan = find_objects('[{"a": 1}, 7, {"b": 2}]')

    assert [(found.members, found.start, found.end) for found in scan.objects] == [
        ([("a", 1)], 0, 23),
        ([("b", 2)], 0, 23),
    ]


def test_the_objects_of_a_broken_array_still_count():
    scan = find_objects('[{"a": 1} {"b": 2}]')

    assert ([found.members for found in scan.objects], scan.damage) == ([[("a", 1)], [("b", 2)]], -1)


def test_braces_in_prose_are_no_objects():
    assert find_objects("use { here, {x} there, {a b} and {1, 2} [3] too") == Scan(())
    assert only('set {"x", "y"} and {"a": 1}') == [("a", 1)]


@pytest.mark.parametrize("text", ['{"a": 1', '{"a": "x', "{", '{"a', '{"a": {"b": 1}', '[{"a": 1},', '{"a": 1 /* x'])
def test_an_object_without_its_end_is_damage_and_is_not_completed(text):
    assert find_objects("so " + text) == Scan((), 3)


def test_nothing_inside_a_damaged_object_counts():
    assert find_objects('{"a": {"passed": true} "b": 1} {"c": 2}') == Scan(
        (Found(Members([("c", 2)]), 31, 39, exact=True),), damage=0
    )


def test_what_follows_a_damaged_object_without_end_is_not_sure():
    scan = find_objects('{"a": 1 "b": {"c": 2}, {"d" 3} {"e": 4}')

    assert [(found.members, found.sure) for found in scan.objects] == [([("c", 2)], False), ([("e", 4)], False)]
    assert scan.damage == 0


def test_damage_after_damage_without_end_is_passed_over():
    scan = find_objects('{"a": 1 "b": {"x": 1 "y": 2} {"c": 3}')

    assert ([found.members for found in scan.objects], scan.damage) == ([[("c", 3)]], 13)


def test_nesting_has_a_limit_only_where_it_is_not_exact():
    exact = '{"a":' * 30 + "1" + "}" * 30
    assert find_objects(exact).objects[0].exact
    assert find_objects(exact.replace('"', "")) == Scan((), 0)
    assert find_objects('{"a":' * 100_000 + "1" + "}" * 100_000) == Scan((), 0)


def test_an_endless_number_is_an_infinity_and_not_a_crash():
    assert only('{"a": ' + "9" * 5000 + "}") == [("a", math.inf)]
    assert only("{a: " + "9" * 5000 + "}") == [("a", math.inf)]


def test_a_long_key_that_is_not_exact_is_none():
    assert find_objects("{'" + "k" * 200 + "': 1}") == Scan(())


@given(
    st.dictionaries(
        st.text(min_size=1), st.one_of(st.text(), st.booleans(), st.none(), st.lists(st.text())), min_size=1
    )
)
def test_what_json_writes_is_read_back_whole(value):
    assert dict(only("Here: " + json.dumps(value, ensure_ascii=False) + " and so on")) == value


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.one_of(st.integers(-9, 9), st.booleans(), st.none())
    )
)
def test_what_python_prints_is_read_back_whole(value):
    assert dict(only(repr(value))) == value
