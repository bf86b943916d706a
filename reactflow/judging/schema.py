"""Judge a draft by the form it must have: a JSON Schema, or a type that pydantic knows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import pydantic
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from reactflow.errors import ConfigurationError
from reactflow.judge import Draft
from reactflow.judging.fences import fenced_blocks, unfenced
from reactflow.phrases import Phrases, phrases, shorten
from reactflow.result import Judgement

_MAX_ERRORS = 5
_MAX_VALUE_CHARS = 100
_TOO_DEEP = "it is nested too deeply"


@dataclass(frozen=True, slots=True)
class SchemaEvaluator:
    """Passes a draft that is JSON of the form asked for, alone or as the one fenced block of the text.

    The feedback names path, value and rule of the first five faults.

    Args:
        schema: A JSON Schema, or a type that pydantic knows, whose own validators run too.

    Raises:
        ConfigurationError: It is no valid JSON Schema, or none can be made of it.  References to other documents are
            not followed.
    """

    schema: Any
    uses_model: ClassVar[bool] = False
    _adapter: pydantic.TypeAdapter[Any] | None = field(init=False, repr=False, compare=False)
    _validator: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        adapter = None if isinstance(self.schema, Mapping) else _adapter_of(self.schema)
        schema = dict(self.schema) if adapter is None else adapter.json_schema()
        validator = validator_for(schema, default=Draft202012Validator)
        try:
            validator.check_schema(schema)
        except SchemaError as error:
            raise ConfigurationError(f"SchemaEvaluator: this is no JSON Schema: {error.message:.200}.") from error
        object.__setattr__(self, "_adapter", adapter)
        object.__setattr__(self, "_validator", validator(schema, registry=Registry()))

    async def evaluate(self, draft: Draft) -> Judgement:
        """Read the JSON in *draft* and check it."""
        said = phrases(draft.question)
        try:
            faults = self._faults(_read_json(draft.text, said), said)
        except _NotJson as fault:
            return Judgement(False, str(fault))
        except RecursionError:
            return Judgement(False, said.not_json.format(error=_TOO_DEEP))
        except Unresolvable as error:
            raise ConfigurationError(f"SchemaEvaluator: {error} is not in the schema; put it under $defs.") from error
        if not faults:
            return Judgement(True)
        return Judgement(False, "\n".join((said.schema_broken, *(f"- {fault}" for fault in faults))))

    def _faults(self, value: Any, said: Phrases) -> list[str]:
        errors = sorted(self._validator.iter_errors(value), key=lambda error: error.json_path)[:_MAX_ERRORS]
        if errors or self._adapter is None:
            return [_fault(error, said) for error in errors]
        try:
            self._adapter.validate_json(json.dumps(value))
        except pydantic.ValidationError as error:
            return [
                said.schema_item.format(path=_path(item["loc"]), value=_shown(item["input"]), rule=item["msg"])
                for item in error.errors(include_url=False)[:_MAX_ERRORS]
            ]
        return []


def _adapter_of(kind: Any) -> pydantic.TypeAdapter[Any]:
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)
        adapter.json_schema()
    except (pydantic.PydanticUserError, TypeError) as error:
        raise ConfigurationError(f"SchemaEvaluator: no JSON Schema can be made of {kind!r:.80} ({error}).") from error
    return adapter


def _fault(error: Any, said: Phrases) -> str:
    error = best_match([error])  # of alternatives, the one that came closest
    rule = error.message
    if error.validator not in ("required", "additionalProperties") and error.validator is not None:
        rule = f"{error.validator} {_shown(error.validator_value)}"  # the message would repeat the whole value
    return said.schema_item.format(path=error.json_path, value=_shown(error.instance), rule=shorten(rule, 200))


def _path(location: Iterable[int | str]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)


def _shown(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, default=str), _MAX_VALUE_CHARS)


class _NotJson(Exception):
    """The draft is no JSON; says why in the language of the question."""


def _read_json(text: str, said: Phrases) -> Any:
    try:
        return _decoded(unfenced(text))
    except ValueError as error:
        problem = error
    blocks = fenced_blocks(text)
    blocks = tuple(block for block in blocks if block.language == "json") or blocks
    if len(blocks) > 1:
        raise _NotJson(said.several_json.format(count=len(blocks)))
    try:
        if blocks:
            return _decoded(blocks[0].code)
    except ValueError as error:
        problem = error
    raise _NotJson(said.not_json.format(error=problem))


def _decoded(text: str) -> Any:
    try:
        return json.loads(text.strip("\ufeff \t\r\n"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
