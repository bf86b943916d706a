"""Structured answers: a type or a JSON Schema, shown to the model and checked on the way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pydantic
import pydantic_core
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry

from reactflow.errors import ConfigurationError
from reactflow.judging.fences import fenced_blocks, unfenced

MAX_FAULTS = 5
"""How many faults of one answer are named."""


class OutputSchema(NamedTuple):
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
        """Decode *text*, alone or as its one fenced block.

        Raises:
            ValueError: It is not JSON, or does not fit; the message says where.
        """
        blocks = fenced_blocks(text)
        json_text = blocks[0].code if len(blocks) == 1 else unfenced(text)
        try:
            return self._checked(json_text)
        except pydantic.ValidationError as error:
            raise ValueError(_faults((item["loc"], item["msg"]) for item in error.errors()[:MAX_FAULTS])) from error
        except ValueError:
            raise
        except Exception as error:  # a type's own validators are user code, and a text may not even be Unicode
            raise ValueError(f"it cannot be read ({type(error).__name__})") from error

    def _checked(self, json_text: str) -> Any:
        if self.adapter is not None:
            return self.adapter.validate_json(json_text)
        value = pydantic_core.from_json(json_text, allow_inf_nan=False)
        errors = sorted(self.validator.iter_errors(value), key=lambda error: error.json_path)[:MAX_FAULTS]
        if errors:
            raise ValueError(_faults((error.path, error.message) for error in errors))
        return value


def _faults(found: Any) -> str:
    return "; ".join(f"{'/'.join(map(str, path)) or 'the whole answer'}: {message}" for path, message in found)


def output_schema(output_type: Any) -> OutputSchema | None:
    """Read an agent's ``output_type``: a type, a JSON Schema as a dict, or None or ``str`` for plain text.

    Raises:
        ConfigurationError: It is neither, no schema can be made of it, or it refers to another document.
    """
    if output_type is None or output_type is str:
        return None
    if isinstance(output_type, Mapping):
        return _of_schema(dict(output_type))
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(output_type)
        return OutputSchema(adapter.json_schema(), adapter=adapter)
    except (pydantic.PydanticUserError, TypeError) as error:
        raise ConfigurationError(f"output_type={output_type!r}: no JSON Schema can be made of it ({error}).") from error


def _of_schema(schema: dict[str, Any]) -> OutputSchema:
    validator_class = validator_for(schema, default=Draft202012Validator)
    try:
        validator_class.check_schema(schema)
    except SchemaError as error:
        raise ConfigurationError(f"output_type is no valid JSON Schema: {error.message}") from error
    outside = sorted(ref for ref in _references(schema) if not ref.startswith("#"))
    if outside:
        raise ConfigurationError(f"output_type refers to {outside[0]!r}, which is not fetched; put it under $defs.")
    return OutputSchema(schema, validator=validator_class(schema, registry=Registry()))


def _references(part: Any) -> set[str]:
    if isinstance(part, Mapping):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*map(_references, part.values()))
    if isinstance(part, list):
        return set().union(*map(_references, part))
    return set()
