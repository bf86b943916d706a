"""What a model wrote as arguments: read strictly, checked against the schema, never repaired.

Everything that is wrong is said in words for the model.  Python's own reader is more lenient than JSON: it takes
``NaN``, lets a later key hide an earlier one, and turns ``1e999`` into infinity; here these are errors.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import isinf
from typing import Any, NoReturn, Protocol, cast

import jsonschema_specifications  # type: ignore[import-untyped]
import pydantic
import referencing
import referencing.exceptions
import referencing.jsonschema
from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for

from reactflow.errors import ConfigurationError, ToolError

MAX_LISTED = 5
"""How many violations one error lists."""

MAX_QUOTED = 200
"""How many characters of a value or a rule an error quotes."""

MAX_DIGITS = 4000
"""How long a whole number may be."""


class Validator(Protocol):
    """The part of a ``jsonschema`` validator that is used here."""

    @property
    def schema(self) -> Any: ...

    def iter_errors(self, instance: Any) -> Iterable[ValidationError]: ...


def compile_schema(schema: Mapping[str, Any], name: str) -> Validator:
    """Make the validator of *schema*, once for the life of the tool called *name*.

    The draft is that of ``$schema``, else 2020-12.  The formats of dates, times and UUIDs are checked; references
    are never fetched from anywhere.

    Raises:
        ConfigurationError: It is no valid schema of an object, or a reference in it leads nowhere.
    """
    draft = _draft(schema, name)
    if schema.get("type") != "object":
        raise ConfigurationError(
            f"Tool {name!r}: its parameters must be the schema of an object; add 'type': 'object' and put each "
            "argument under 'properties'."
        )
    try:
        draft.check_schema(schema)
        _check_references(schema, draft.META_SCHEMA["$schema"], name)
    except SchemaError as error:
        raise ConfigurationError(
            f"Tool {name!r}: invalid schema at {error.json_path}: {error.message:.300}."
        ) from error
    validator: Validator = draft(schema, registry=referencing.Registry(), format_checker=FORMATS)
    return validator


def _draft(schema: Mapping[str, Any], name: str) -> Any:
    dialect = schema.get("$schema")
    if dialect is None:
        return Draft202012Validator
    known: Any = validator_for(schema, default=cast(Any, None)) if isinstance(dialect, str) else None
    if known is None:
        raise ConfigurationError(f"Tool {name!r}: unknown $schema {dialect!r:.80}; leave it out for draft 2020-12.")
    return known


def _check_references(schema: Mapping[str, Any], dialect: str, name: str) -> None:
    root = referencing.jsonschema.specification_with(dialect).create_resource(schema)
    pending = [(root, jsonschema_specifications.REGISTRY.resolver_with_root(root))]
    while pending:
        part, resolver = pending.pop()
        target = part.contents.get("$ref") if isinstance(part.contents, Mapping) else None
        if isinstance(target, str):
            try:
                resolver.lookup(target)
            except referencing.exceptions.Unresolvable as error:
                raise ConfigurationError(f"Tool {name!r}: {target!r} in its schema leads nowhere.") from error
        pending += [(inner, resolver.in_subresource(inner)) for inner in part.subresources()]


# ------------------------------------------------------------------------------------------------ formats

FORMATS = FormatChecker(("date", "uuid"))
"""The formats that are checked.  A fixed list: what else is installed must not change what a tool accepts."""

_DATE_TIME = r"(?a)\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*"
_TIME = r"(?a)\d\d:\d\d.*"


@FORMATS.checks("date-time", raises=ValueError)
def _is_date_time(value: object) -> bool:
    """ISO 8601 with or without offset: models often leave it out."""
    return not isinstance(value, str) or bool(
        re.fullmatch(_DATE_TIME, value.upper()) and dt.datetime.fromisoformat(value.upper())
    )


@FORMATS.checks("time", raises=ValueError)
def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    return bool(re.fullmatch(_TIME, value)) and dt.time.fromisoformat(value.upper()) is not None


# ------------------------------------------------------------------------------------------------ reading


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the key {quoted(twice)} is there twice")
    return read


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise ValueError(f"{digits[:40]} is too large for a number")
    return number


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:  # Python's own limit says so in words that are not for a model
        raise ValueError(f"a number has {len(digits)} digits, the limit is {MAX_DIGITS}")
    return int(digits)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
)
_MAY_HOLD_SURROGATES = r"\\u[dD][89a-fA-F]|[\ud800-\udfff]"


def read_json(text: str) -> dict[str, Any]:
    """Read arguments strictly; ``null`` and blank text are ``{}``.

    Raises:
        ToolError: The text is not one JSON object; says why, for the model.
    """
    if not text or text.isspace():
        return {}
    try:
        value = _DECODER.decode(text)
        if re.search(_MAY_HOLD_SURROGATES, text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        reason = "it holds half of a surrogate pair (\\ud800 to \\udfff), which is no character"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = str(error)
    else:
        if isinstance(value, dict):
            return value
        if value is None:
            return {}
        reason = f"it must be a JSON object, not {type(value).__name__}"
    raise ToolError(f"The arguments could not be read: {reason}. Nothing was run. Send one valid JSON object.")


# ------------------------------------------------------------------------------------------------ checking


_SAID_WELL = frozenset({"additionalProperties", "dependentRequired", "required", "unevaluatedProperties", None})
"""Rules about which keys there are, and ``false``: jsonschema's own message names the key, not the whole object."""


def check_arguments(validator: Validator, arguments: Mapping[str, Any]) -> None:
    """Check *arguments* against the schema that the model was shown.

    Raises:
        ToolError: Lists up to :data:`MAX_LISTED` violations, each with its path, the value and the rule.
    """
    try:
        listed = list(islice(validator.iter_errors(arguments), MAX_LISTED + 1))
    except Exception as error:  # jsonschema divides and recurses: 1e400 or a thousand brackets are too much for it
        raise ToolError(
            f"The arguments could not be checked ({type(error).__name__}). Nothing was run. Call with simpler ones."
        ) from error
    if listed:
        raise _violated([_explain(error) for error in listed[:MAX_LISTED]], more=len(listed) > MAX_LISTED)


def not_convertible(error: Exception) -> ToolError:
    """The same for arguments that pass the schema and that pydantic, or a validator of the user's, refuses."""
    if not isinstance(error, pydantic.ValidationError):
        return ToolError(
            f"The arguments could not be converted ({type(error).__name__}). Nothing was run. Call with others."
        )
    found = error.errors(include_url=False, include_context=False)
    lines = [f"{_path(one['loc'])}: {quoted(one['input'])}: {one['msg'][:MAX_QUOTED]}" for one in found[:MAX_LISTED]]
    return _violated(lines, more=len(found) > MAX_LISTED)


def _violated(lines: Sequence[str], *, more: bool) -> ToolError:
    listed = "\n".join(f"- {line}" for line in (*lines, *(("and more",) if more else ())))
    return ToolError(
        f"The arguments do not fit the tool's schema:\n{listed}\nNothing was run. Correct them and call again."
    )


def _explain(error: ValidationError) -> str:
    error = best_match([error]) or error  # of the branches of a union, what went wrong in the one that was meant
    if error.validator in _SAID_WELL and len(error.message) <= MAX_QUOTED:
        return f"{_path(error.absolute_path)}: {error.message}"
    rule = f"{error.validator}: {quoted(error.validator_value)}"
    return f"{_path(error.absolute_path)}: {quoted(error.instance)} breaks the rule {rule}"


def _path(steps: Iterable[int | str]) -> str:
    return "arguments" + "".join(f"[{step}]" if isinstance(step, int) else f".{step:.60}" for step in steps)


def quoted(value: object) -> str:
    """*value* as JSON where that is possible, cut at :data:`MAX_QUOTED` characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}... ({len(text)} characters)"
