import re
from typing import Annotated

import pytest
from pydantic import AfterValidator, BaseModel, Field

from reactflow.errors import ConfigurationError
from reactflow.judge import Draft, Evaluator
from reactflow.judging.evaluators import SchemaEvaluator
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.result import Judgement

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


def not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


class Claim(BaseModel):
    kind: Annotated[str, AfterValidator(not_blank)]
    cost: int | None = Field(ge=0)
    parts: list[str] = []


class Plain:
    """A class that pydantic knows nothing of."""


def judged(schema, text, question="Extract it."):
    draft = Draft(question, text, "", ChatRequest(messages=(), run=Run(UserMessage(question))))
    return SchemaEvaluator(schema).evaluate(draft)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ada", "age": 36}',
        '\ufeff{"name": "Ada"}\n',
        '```json\n{"name": "Ada"}\n```',
        '```json {"name": "Ada"} ```',
        'Here it is:\n```json\n{"name": "Ada"}\n```\nAnything else?',
        '```\n{"name": "阿达"}\n```',
        'This\n```python\nprint(1)\n```\ngives\n```json\n{"name": "Ada"}\n```',
        '{"name": "```json"}',
    ],
)
async def test_json_of_the_right_form_passes(text):
    assert await judged(PERSON, text) == Judgement(True)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"age": 3}', "$ is {\"age\": 3}: 'name' is a required property"),
        ('{"name": "Ada", "age": -1}', "$.age is -1: minimum 0"),
        ('{"name": 7}', '$.name is 7: type "string"'),
        ('{"name": "阿达", "alter": 1}',
         "$ is {\"name\": \"阿达\", \"alter\": 1}: Additional properties are not allowed ('alter' was unexpected)"),
        ("[]", '$ is []: type "object"'),
    ],
)  # fmt: skip
async def test_feedback_names_path_value_and_rule(text, fault):
    assert await judged(PERSON, text) == Judgement(False, f"The answer's JSON breaks these rules:\n- {fault}")


async def test_only_the_first_five_faults_are_named():
    judgement = await judged({"items": {"type": "integer"}}, str(["x"] * 500).replace("'", '"'))

    assert judgement.feedback.count("\n- ") == 5
    assert '\n- $[0] is "x": type "integer"' in judgement.feedback


async def test_a_long_value_is_cut():
    judgement = await judged(PERSON, '{"name": ["' + "x" * 9000 + '"]}')

    assert len(judgement.feedback) < 250


async def test_the_closest_alternative_is_named():
    schema = {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {"enum": [1, 2]}}}]}

    assert (await judged(schema, '{"a": 3}')).feedback.endswith("$.a is 3: enum [1, 2]")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "It could not be read: Expecting value: line 1 column 1"),
        ("I cannot do that.", "It could not be read: Expecting value: line 1 column 1"),
        ('{"name": "Ada"', "It could not be read: "),
        ("{'name': 'Ada'}", "It could not be read: "),
        ('{"name": NaN}', "It could not be read: NaN is not JSON"),
        ('```json\n{"name": \n```', "It could not be read: Expecting value: line 1 column 9"),
        ("[" * 100_000, "It could not be read: it is nested too deeply"),
        ("```json\n{}\n```\n```json\n{}\n```", "The answer holds 2 JSON blocks. Give exactly one."),
    ],
)
async def test_what_is_no_json_is_rejected_with_the_reason(text, words):
    judgement = await judged(PERSON, text)

    assert judgement.passed is False
    assert words in judgement.feedback


async def test_the_feedback_follows_the_language_of_the_question():
    assert (await judged(PERSON, "{}", "提取信息")).feedback.startswith("回答的 JSON 违反了以下规则：\n- $ 的值是 {}：")


async def test_a_value_nested_too_deeply_for_a_recursive_schema_is_rejected():
    schema = {"$defs": {"tree": {"items": {"$ref": "#/$defs/tree"}}}, "$ref": "#/$defs/tree"}

    judgement = await judged(schema, "[" * 800 + "]" * 800)

    assert judgement.feedback.endswith("it is nested too deeply.")


@pytest.mark.parametrize("kind", [Claim, list[Claim] | Claim])
async def test_a_type_is_checked_by_its_schema(kind):
    assert await judged(kind, '{"kind": "glass", "cost": null}') == Judgement(True)


async def test_a_type_that_does_not_fit_is_named():
    judgement = await judged(Claim, '{"kind": "glass", "cost": -3}')

    assert judgement.feedback == "The answer's JSON breaks these rules:\n- $.cost is -3: minimum 0"


async def test_the_validators_of_a_type_run_too():
    judgement = await judged(list[Claim], '[{"kind": " ", "cost": 1}]')

    assert judgement.feedback == (
        'The answer\'s JSON breaks these rules:\n- $[0].kind is " ": Value error, must not be blank'
    )


@pytest.mark.parametrize(
    ("schema", "words"),
    [({"type": "nonsense"}, "this is no JSON Schema"), (Plain, "no JSON Schema can be made of")],
)
def test_what_is_no_schema_is_refused(schema, words):
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        SchemaEvaluator(schema)


async def test_a_schema_elsewhere_is_not_fetched():
    with pytest.raises(ConfigurationError, match=re.escape("put it under $defs")):
        await judged({"$ref": "http://127.0.0.1:9/schema.json"}, "{}")


def test_a_schema_evaluator_asks_no_model():
    assert isinstance(SchemaEvaluator(PERSON), Evaluator)
    assert SchemaEvaluator(PERSON).uses_model is False
