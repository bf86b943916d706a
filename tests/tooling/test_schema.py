"""Schemas from hints."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc, TypedDict

from reactflow.errors import ConfigurationError
from reactflow.tooling.context import ToolContext
from reactflow.tooling.schema import read_function

if TYPE_CHECKING:
    from somewhere import Unknown


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(BaseModel):
    """A place on the map."""

    city: str
    near: list[Place] = []


@dataclass
class Span:
    start: dt.date
    days: int = 1


class Options(TypedDict):
    verbose: bool


class Opaque:
    pass


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    return read_function(function, "it").schema


def properties_of(function: Callable[..., Any]) -> dict[str, Any]:
    properties: dict[str, Any] = schema_of(function)["properties"]
    return properties


def test_a_function_without_parameters_takes_an_empty_object():
    def ping() -> str: ...

    assert schema_of(ping) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_parameters_become_properties_with_types_defaults_and_descriptions():
    def weather(city: str, days: int = 3, unit: Unit = Unit.C) -> str:
        """Forecast.

        Args:
            city: The city.
            days: How many.
        """

    plan = read_function(weather, "weather")

    assert plan.description == "Forecast."
    assert plan.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city."},
            "days": {"type": "integer", "default": 3, "description": "How many."},
            "unit": {"$ref": "#/$defs/Unit", "default": "celsius"},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"Unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
    }


def test_nested_types_are_described_once_each():
    def plan(place: Place, span: Span, options: Options) -> None: ...

    schema = schema_of(plan)

    assert schema["$defs"] == {
        "Place": {
            "type": "object",
            "description": "A place on the map.",
            "properties": {
                "city": {"type": "string"},
                "near": {"type": "array", "items": {"$ref": "#/$defs/Place"}, "default": []},
            },
            "required": ["city"],
        },
        "Span": {
            "type": "object",
            "properties": {"start": {"type": "string", "format": "date"}, "days": {"type": "integer", "default": 1}},
            "required": ["start"],
            "additionalProperties": False,
        },
        "Options": {
            "type": "object",
            "properties": {"verbose": {"type": "boolean"}},
            "required": ["verbose"],
            "additionalProperties": False,
        },
    }


def test_every_json_like_type_has_a_schema():
    def many(
        a: Literal["x", 1],
        b: int | str,
        c: Optional[float],  # noqa: UP045
        d: list[dict[str, int]],
        e: uuid.UUID,
        f: dt.datetime,
        g: tuple[int, str],
        h: set[int],
        i: Any,
        j: Annotated[int, Field(ge=1, le=7)],
    ) -> None: ...

    assert properties_of(many) == {
        "a": {"enum": ["x", 1]},
        "b": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "c": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "d": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}},
        "e": {"type": "string", "format": "uuid"},
        "f": {"type": "string", "format": "date-time"},
        "g": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
        },
        "h": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        "i": {},
        "j": {"type": "integer", "minimum": 1, "maximum": 7},
    }


def test_what_annotated_says_wins_over_the_docstring():
    def find(
        a: Annotated[str, Field(description="field")],
        b: Annotated[str, Doc("doc")],
        c: Annotated[str, "text"],
        d: Annotated[str, Field(min_length=1)],
    ) -> None:
        """Find.

        Args:
            a: not this
            b: not this
            c: not this
            d: this
        """

    assert [one["description"] for one in properties_of(find).values()] == ["field", "doc", "text", "this"]


def test_parameters_may_have_names_that_a_pydantic_model_refuses():
    def odd(schema: str, copy: int = 1, _hidden: bool = False, model_config: str = "") -> None: ...

    assert list(properties_of(odd)) == ["schema", "copy", "_hidden", "model_config"]


def test_a_default_of_none_allows_null():
    def find(a: str = None, b: Annotated[int, Field(ge=0)] = None, c: Any = None, d: int | None = None):  # noqa: RUF013
        ...

    assert properties_of(find) == {
        "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "b": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None},
        "c": {"default": None},
        "d": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
    }


def test_a_default_is_shown_as_json():
    def book(
        price: Decimal = Decimal("1.50"), day: dt.date = dt.date(2026, 1, 2), place: Place = Place(city="北京")
    ): ...

    assert [one["default"] for one in properties_of(book).values()] == [
        "1.50",
        "2026-01-02",
        {"city": "北京", "near": []},
    ]


def test_a_parameter_without_hint_takes_what_the_docstring_says_or_any_value():
    def find(query, limit, tags, fallback=1):
        """Find.

        :param query: What to look for.
        :param int limit: How many.
        :type tags: list, optional
        """

    assert properties_of(find) == {
        "query": {"description": "What to look for."},
        "limit": {"type": "integer", "description": "How many."},
        "tags": {"type": "array", "items": {}},
        "fallback": {"default": 1},
    }


def test_the_context_parameter_is_not_shown():
    def a(q: str, ctx: ToolContext) -> None: ...
    def b(context: ToolContext | None = None) -> None: ...
    def c(*, here: Annotated[Optional[ToolContext], "the run"] = None) -> None: ...  # noqa: UP045

    plans = [read_function(function, "it") for function in (a, b, c)]

    assert [plan.context_parameter for plan in plans] == ["ctx", "context", "here"]
    assert [list(plan.schema["properties"]) for plan in plans] == [["q"], [], []]


def test_a_class_defined_inside_a_function_is_found():
    @dataclass
    class Local:
        x: int

    def use(value: Local) -> None: ...

    assert properties_of(use) == {"value": {"$ref": "#/$defs/Local"}}


def test_a_return_type_that_cannot_be_resolved_does_no_harm():
    def use(x: int) -> Unknown: ...

    assert list(properties_of(use)) == ["x"]


def test_what_a_partial_has_filled_is_hidden_from_the_model():
    def search(index: str, query: str, api_key: str, limit: int = 3) -> None:
        """Search.

        Args:
            query: The words.
        """

    plan = read_function(partial(partial(search, "docs"), api_key="secret"), "search")

    assert plan.description == "Search."
    assert list(plan.schema["properties"]) == ["query", "limit"]
    assert "secret" not in str(plan.schema)


def test_a_callable_object_is_described_by_its_call_else_by_its_class():
    class Spoken:
        """The class."""

        def __call__(self, q: str) -> str:
            """The call."""
            return q

    class Silent:
        """The class."""

        def __call__(self, q: str) -> str:
            return q

    assert [read_function(obj, "it").description for obj in (Spoken(), Silent())] == ["The call.", "The class."]
    assert list(properties_of(Silent())) == ["q"]


def test_decorated_functions_keep_their_signature():
    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @decorated
    def a(x: int) -> None:
        """A."""

    @lru_cache
    def b(x: int) -> None:
        """B."""

    plans = [read_function(function, "it") for function in (a, b)]

    assert [(plan.description, list(plan.schema["properties"])) for plan in plans] == [("A.", ["x"]), ("B.", ["x"])]


def test_a_static_method_is_read_through():
    class Box:
        @staticmethod
        def raw(x: int) -> None:
            """Raw."""

    assert read_function(Box.__dict__["raw"], "raw").description == "Raw."


def test_converted_arguments_have_the_types_of_the_hints():
    def book(day: dt.date, place: Place, unit: Unit, span: Span, tags: set[str], price: Decimal, n: int) -> None: ...

    convert = read_function(book, "book").convert

    assert convert(
        '{"day": "2026-01-02", "place": {"city": "北京"}, "unit": "celsius", "span": {"start": "2026-01-02"}, '
        '"tags": ["a"], "price": 0.1, "n": 2.0}'
    ) == {
        "day": dt.date(2026, 1, 2),
        "place": Place(city="北京"),
        "unit": Unit.C,
        "span": Span(dt.date(2026, 1, 2)),
        "tags": {"a"},
        "price": Decimal("0.1"),
        "n": 2,
    }


# ------------------------------------------------------------------------------------------------ what cannot work


def slashed(x: int, /) -> None: ...
def starred(*args: int) -> None: ...
def splatted(**kwargs: int) -> None: ...
def unsaid(x) -> None: ...
def opaque(good: int, bad: Opaque) -> None: ...
def callback(done: Callable[[], None]) -> None: ...
def unknown(x: Unknown) -> None: ...
def twice(a: ToolContext, b: ToolContext | None) -> None: ...
def unserialisable(x: Any = Opaque()) -> None: ...
def fielded(x: int = Field(5)) -> None: ...
def counting(x: int):
    yield x


async def acounting(x: int):
    yield x


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (slashed, "'x' is positional-only"),
        (starred, "*args has no names"),
        (splatted, "**kwargs does not say"),
        (unsaid, "nothing says what 'x' is"),
        (opaque, "JSON Schema for parameter 'bad'"),
        (callback, "JSON Schema for parameter 'done'"),
        (unknown, "annotations cannot be resolved (NameError: name 'Unknown'"),
        (twice, "takes a ToolContext twice, as ['a', 'b']"),
        (unserialisable, "default of 'x' (Opaque) cannot be shown"),
        (fielded, "Annotated[<type>, Field(...)] = <default>"),
        (counting, "is a generator"),
        (acounting, "is a generator"),
        (len, "positional-only"),
        (dict.fromkeys, "positional-only"),
        (type("Odd", (), {"__call__": print.__call__})(), "positional-only|does not say|*args has no names"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_a_model_could_not_call_is_refused_with_the_reason(function: Callable[..., Any], words: str):
    with pytest.raises(ConfigurationError) as caught:
        read_function(function, "it")

    assert str(caught.value).startswith("Tool 'it'")
    assert any(each in str(caught.value) for each in words.split("|"))


def test_a_builtin_that_hides_its_signature_is_refused():
    with pytest.raises(ConfigurationError, match="does not say what parameters it takes"):
        read_function(iter, "it")


def test_the_types_of_two_parameters_that_only_fail_together_are_refused():
    with pytest.raises(ConfigurationError, match="parameter 'bad'"):
        read_function(opaque, "it")
