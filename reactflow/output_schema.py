"""Structured answers: a type or a JSON Schema, shown to the model and checked on the way back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pydantic
import pydantic_core
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from reactflow.errors import ConfigurationError

_FENCE = re.compile(r"^\s*```[a-zA-Z]*\s*\n?(.*?)\n?\s*```\s*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """What an answer must be.  Make one with :func:`output_schema`.

    Args:
        schema: The JSON Schema shown to the model.
        adapter: Turns JSON into the type asked for; None where a JSON Schema was given.
        validator: Checks decoded JSON; None where a type was given.
    """

    schema: Mapping[str, Any]
    adapter: pydantic.TypeAdapter[Any] | None = None
    validator: Any = None

    def read(self, text: str) -> Any:
        """Decode *text*, with or without a code fence around it.

        Raises:
            ValueError: It is not JSON, or does not fit; the message says where.
        """
        fenced = _FENCE.match(text)
        json_text = fenced.group(1) if fenced else text
        if self.adapter is not None:
            return self.adapter.validate_json(json_text)
        value = pydantic_core.from_json(json_text)
        error = next(
            iter(sorted(self.validator.iter_errors(value), key=lambda error: list(map(str, error.path)))), None
        )
        if error is not None:
            where = "/".join(map(str, error.path)) or "the whole answer"
            raise ValueError(f"{where}: {error.message}")
        return value

    def problem(self, text: str) -> str | None:
        """What is wrong with *text* as an answer, or None."""
        try:
            self.read(text)
        except pydantic.ValidationError as error:
            return "; ".join(
                f"{'/'.join(map(str, item['loc'])) or 'the whole answer'}: {item['msg']}" for item in error.errors()[:5]
            )
        except ValueError as error:
            return str(error)
        return None


def output_schema(output_type: Any) -> OutputSchema | None:
    """Read an agent's ``output_type``: a type, a JSON Schema as a dict, or None or ``str`` for plain text.

    Raises:
        ConfigurationError: It is neither, or no schema can be made of it.
    """
    if output_type is None or output_type is str:
        return None
    if isinstance(output_type, Mapping):
        schema = dict(output_type)
        validator_class = validator_for(schema, default=Draft202012Validator)
        try:
            validator_class.check_schema(schema)
        except SchemaError as error:
            raise ConfigurationError(f"output_type is no valid JSON Schema: {error.message}") from error
        return OutputSchema(schema, validator=validator_class(schema))
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(output_type)
        return OutputSchema(adapter.json_schema(), adapter=adapter)
    except (pydantic.PydanticUserError, TypeError) as error:
        raise ConfigurationError(f"output_type={output_type!r}: no JSON Schema can be made of it ({error}).") from error
