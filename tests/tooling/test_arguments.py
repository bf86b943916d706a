"""What a model wrote: read strictly, checked against the schema."""

from __future__ import annotations

import json
import sys
from typing import Any

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactflow.errors import ConfigurationError, ToolError
from reactflow.tooling.arguments import check_arguments, compile_schema, not_convertible, quoted, read_json


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def complaint(arguments: dict[str, Any], parameters: dict[str, Any]) -> list[str]:
    """The violations that the model is told of, one a line."""
    with pytest.raises(ToolError) as caught:
        check_arguments(compile_schema(parameters, "it"), arguments)
    first, *lines, last = str(caught.value).splitlines()
    assert first == "The arguments do not fit the tool's schema:"
    assert last == "Nothing was run. Correct them and call again."
    return [line.removeprefix("- ") for line in lines]


# ------------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize("text", ["", " ", "\n\t", "null", " null ", "{}", None])
def test_blank_null_and_missing_arguments_are_an_empty_object(text: Any):
    assert read_json(text) == {}


def test_values_are_read_as_json_has_them():
    assert read_json('{"a": 1, "b": [1.5, -0.0, true, null], "城市": "北京 \\u5317 \\ud83d\\ude00"}') == {
        "a": 1,
        "b": [1.5, -0.0, True, None],
        "城市": "北京 北 😀",
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": ', "Expecting value"),
        ("```json\n{}\n```", "Expecting value"),
        ("{'a': 1}", "Expecting property name enclosed in double quotes"),
        ('{"a": 1} {"a": 2}', "Extra data"),
        ("[1]", "it must be a JSON object, not list"),
        ('"{}"', "it must be a JSON object, not str"),
        ("7", "it must be a JSON object, not int"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', 'the key "c" is there twice'),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ('{"a": -Infinity}', "-Infinity is not a JSON value"),
        ('{"a": 1e999}', "1e999 is too large for a number"),
        ('{"a": -1e999}', "-1e999 is too large for a number"),
        ('{"a": %s}' % ("1" * 5000), "a number has 5000 digits, the limit is 4000"),
        ('{"a": %s}' % ("[" * 100_000 + "]" * 100_000), "it is nested too deeply"),
        ('{"a": "\\ud83d"}', "half of a surrogate pair"),
        ('{"\ud83d": 1}', "half of a surrogate pair"),
    ],
    ids=lambda value: value[:20].encode("ascii", "replace").decode(),
)
def test_what_is_no_json_object_is_refused_with_the_reason(text: str, reason: str):
    with pytest.raises(ToolError) as caught:
        read_json(text)

    assert reason in str(caught.value)
    assert str(caught.value).endswith("Nothing was run. Send one valid JSON object.")


@settings(max_examples=50)
@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_any_text_is_either_an_object_or_a_tool_error(text: str):
    try:
        value = read_json(text)
    except ToolError:
        return
    assert isinstance(value, dict)


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ),
    ),
    st.booleans(),
)
def test_whatever_json_writes_is_read_back(value: dict[str, Any], ascii: bool):
    assert read_json(json.dumps(value, ensure_ascii=ascii)) == value


# ------------------------------------------------------------------------------------------------ checking


def test_arguments_that_fit_pass():
    assert check_arguments(compile_schema(schema(n={"type": "integer"}), "it"), {"n": 2.0}) is None


@pytest.mark.parametrize(
    ("value", "rule", "line"),
    [
        ("2", {"type": "integer"}, 'arguments.x: "2" breaks the rule type: "integer"'),
        (True, {"type": "integer"}, 'arguments.x: true breaks the rule type: "integer"'),
        (8, {"maximum": 7}, "arguments.x: 8 breaks the rule maximum: 7"),
        ("火", {"enum": ["水", "土"]}, 'arguments.x: "火" breaks the rule enum: ["水", "土"]'),
        ("abc", {"maxLength": 2}, 'arguments.x: "abc" breaks the rule maxLength: 2'),
        ("ab", {"pattern": "^x"}, 'arguments.x: "ab" breaks the rule pattern: "^x"'),
        ([1, "a"], {"items": {"type": "integer"}}, 'arguments.x[1]: "a" breaks the rule type: "integer"'),
        ({}, {"type": "object", "required": ["y"]}, "arguments.x: 'y' is a required property"),
        (1, False, "arguments: False schema does not allow 1"),
        (
            "y" * 300,
            {"type": "integer"},
            f'arguments.x: "{"y" * 199}... (302 characters) breaks the rule type: "integer"',
        ),
        (
            "a",
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            'arguments.x: "a" breaks the rule anyOf: [{"type": "integer"}, {"type": "null"}]',
        ),
        (
            {"y": 1},
            {"anyOf": [schema(y={"type": "string"}), {"type": "null"}]},
            'arguments.x.y: 1 breaks the rule type: "string"',
        ),
    ],
)
def test_a_violation_names_path_value_and_rule(value: Any, rule: Any, line: str):
    assert complaint({"x": value}, schema(x=rule)) == [line]


def test_an_unexpected_argument_is_named():
    assert complaint({"town": 1}, schema()) == [
        "arguments: Additional properties are not allowed ('town' was unexpected)"
    ]


def test_a_message_that_would_be_long_is_cut():
    (line,) = complaint({"t" * 5000: 1}, schema())

    assert len(line) < 400


def test_several_violations_are_listed_up_to_a_bound():
    parameters = schema(n={"type": "array", "items": {"type": "integer"}})

    assert complaint({"n": ["a", "b"]}, parameters) == [
        'arguments.n[0]: "a" breaks the rule type: "integer"',
        'arguments.n[1]: "b" breaks the rule type: "integer"',
    ]
    assert complaint({"n": ["a"] * 6}, parameters)[4:] == [
        'arguments.n[4]: "a" breaks the rule type: "integer"',
        "and more",
    ]


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("date", "2026-02-28", "20260228"),
        ("date-time", "2026-02-28T10:00:00Z", "2026-02-28"),
        ("date-time", "2026-02-28T10:00:00+08:00", "tomorrow"),
        ("date-time", "2026-02-28t10:00", "2026-02-28T25:00"),
        ("date-time", "2026-02-28 10:00:00.5", "2026-02-28x10:00"),
        ("time", "10:00", "10"),
        ("time", "10:00:00z", "25:00"),
        ("uuid", "12345678-1234-5678-1234-567812345678", "12345678"),
    ],
)
def test_formats_of_dates_times_and_uuids_are_checked(format: str, good: str, bad: str):
    parameters = schema(x={"format": format})

    check_arguments(compile_schema(parameters, "it"), {"x": good})
    assert complaint({"x": bad}, parameters) == [f'arguments.x: "{bad}" breaks the rule format: "{format}"']


def test_a_format_concerns_only_text():
    validator = compile_schema(schema(x={"format": "date-time"}, y={"format": "time"}), "it")

    assert check_arguments(validator, {"x": 1, "y": 2}) is None


def test_a_number_that_the_checker_cannot_divide_is_an_error_for_the_model():
    validator = compile_schema(schema(x={"multipleOf": 0.5}), "it")

    with pytest.raises(ToolError, match=r"could not be checked \(OverflowError\). Nothing was run."):
        check_arguments(validator, {"x": 10**400})


def test_a_value_too_deep_for_the_checker_is_an_error_for_the_model():
    tree: Any = {"$ref": "#/$defs/tree"}
    validator = compile_schema({**schema(x=tree), "$defs": {"tree": {"type": "array", "items": tree}}}, "it")
    value: Any = []
    for _ in range(sys.getrecursionlimit()):
        value = [value]

    with pytest.raises(ToolError, match=r"could not be checked \(RecursionError\)"):
        check_arguments(validator, {"x": value})


def test_what_pydantic_refuses_is_worded_like_a_violation():
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    adapter = pydantic.TypeAdapter(list[pydantic.conint(ge=0)])  # type: ignore[misc]
    with pytest.raises(pydantic.ValidationError) as caught:
        adapter.validate_python([-1] * 6)

    lines = str(not_convertible(caught.value)).splitlines()
    assert lines[1] == "- arguments[0]: -1: Input should be greater than or equal to 0"
    assert lines[6] == "- and more"


def test_what_cannot_be_quoted_is_named_by_its_type():
    assert quoted({1, 2}) == "a set"


# ------------------------------------------------------------------------------------------------ schemas


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, "must be the schema of an object"),
        ({"properties": {"x": {}}}, "must be the schema of an object"),
        ({"type": "array"}, "must be the schema of an object"),
        ({"type": ["object", "null"]}, "must be the schema of an object"),
        ({"type": "object", "properties": []}, r"invalid schema at \$.properties"),
        ({"type": "object", "properties": {"x": {"type": "text"}}}, r"invalid schema at \$.properties.x.type"),
        ({"type": "object", "properties": {"x": {"pattern": "["}}}, r"invalid schema at \$.properties.x.pattern"),
        ({"type": "object", "$schema": "https://example.org/mine"}, "unknown .schema 'https://example.org/mine'"),
        ({"type": "object", "$schema": 4}, "unknown .schema 4"),
        (schema(x={"$ref": "#/$defs/nowhere"}), "'#/.defs/nowhere' in its schema leads nowhere"),
        (
            schema(x={"items": {"$ref": "https://example.org/x.json"}}),
            "'https://example.org/x.json' in its schema leads",
        ),
    ],
)
def test_a_schema_that_cannot_work_is_refused(parameters: dict[str, Any], reason: str):
    with pytest.raises(ConfigurationError, match=f"Tool 'it': .*{reason}"):
        compile_schema(parameters, "it")


def test_the_draft_is_that_of_the_schema():
    old = {**schema(x={"type": "integer", "maximum": 7, "exclusiveMaximum": True})}

    assert complaint({"x": 7}, {**old, "$schema": "http://json-schema.org/draft-04/schema#"}) == [
        "arguments.x: 7 breaks the rule maximum: 7"
    ]
    with pytest.raises(ConfigurationError, match="invalid schema at"):
        compile_schema(old, "it")


def test_references_inside_the_schema_and_to_the_drafts_work():
    parameters = {
        **schema(x={"$ref": "#/$defs/n"}, y={"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        "$defs": {"n": {"type": "integer"}},
    }

    assert complaint({"x": "a", "y": {"type": "integer"}}, parameters) == [
        'arguments.x: "a" breaks the rule type: "integer"'
    ]
