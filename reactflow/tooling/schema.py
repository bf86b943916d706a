"""From a function to the JSON Schema that a model is shown, and to the converter of what the model writes.

Hints become a schema by way of pydantic, descriptions come from ``Annotated`` or the docstring.  All of it happens
once, where the tool is defined, so that what cannot work is refused there.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import FrameType, MethodType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    NotRequired,
    Optional,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import pydantic  # not its parts: it loads each when it is first used, and half of them cost more than this package
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from reactflow.errors import ConfigurationError
from reactflow.tooling.context import ToolContext
from reactflow.tooling.docs import ParameterDocs, ToolDocs, read_docs

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic.json_schema import GenerateJsonSchema

Function: TypeAlias = Callable[..., Any]
Parameters: TypeAlias = dict[str, inspect.Parameter]
Convert: TypeAlias = Callable[[str], dict[str, Any]]
"""Turns checked JSON text into keyword arguments; raises ``pydantic.ValidationError``."""


class Blueprint(NamedTuple):
    """What a function's signature and docstring say of the tool it makes.

    Args:
        description: The docstring without its parameter section; may be empty.
        schema: What the model is shown, the schema of an object.
        convert: From the model's JSON text to keyword arguments.
        context_parameter: Which parameter is injected and not shown, or None.
        unbound: Whether the function is a method that still lacks its ``self``.
    """

    description: str
    schema: dict[str, Any]
    convert: Convert
    context_parameter: str | None
    unbound: bool


def read_function(function: Function, name: str) -> Blueprint:
    """Work out the tool that *function* makes.

    Args:
        function: A function, a bound method, an object with ``__call__`` or a ``functools.partial`` of these.
        name: What the tool is called, for the error messages.

    Raises:
        ConfigurationError: A model could not call it; says why, and how to mend it.
    """
    docs = read_docs(_docstring(function))
    parameters = _parameters(function, name)
    unbound = _lacks_self(function, parameters)
    if unbound:
        del parameters[next(iter(parameters))]
    hints = _hints(function, parameters, name)
    context_parameter = _context_parameter(hints, name)
    fields = {
        key: _field(one, hints.get(key), docs, name) for key, one in parameters.items() if key != context_parameter
    }
    adapter, schema = _compiled(fields, name)
    return Blueprint(docs.description, schema, adapter.validate_json, context_parameter, unbound)


def find_context_parameter(function: Function, name: str) -> str | None:
    """Which parameter of *function* takes a :class:`ToolContext`, or None.

    Raises:
        ConfigurationError: More than one is.
    """
    return _context_parameter(_hints(function, signature_of(function, name), name), name)


# ------------------------------------------------------------------------------------------------ the function itself


def entry_point(function: Function) -> Function:
    """The code that runs when *function* is called: not that of a partial, but not unwrapped either."""
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, staticmethod):
        return function.__func__
    return function if inspect.isroutine(function) else type(function).__call__


def is_async(function: Function) -> bool:
    """Whether calling *function* gives a coroutine at once, so that it needs no thread."""
    return inspect.iscoroutinefunction(entry_point(function))


def given_name(function: Function) -> str:
    """The name a function was defined with, or that of a callable object's class."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def signature_of(function: Function, name: str) -> Parameters:
    """The parameters that a call by name may fill; what a partial has filled by keyword is not among them.

    Raises:
        ConfigurationError: The function does not say what it takes.
    """
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"Tool {name!r}: {function!r} does not say what parameters it takes; wrap it in a function that does."
        ) from None
    while isinstance(function, partial):
        for filled in function.keywords:
            parameters.pop(filled, None)
        function = function.func
    return parameters


def _documented(function: Function) -> Function:
    """The function that was written by hand, below partials, methods, callable objects and decorators."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif isinstance(function, (staticmethod, MethodType)):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.isroutine(function):
            return function
        else:
            function = type(function).__call__


def _docstring(function: Function) -> str | None:
    while isinstance(function, partial):
        function = function.func
    own = _documented(function).__doc__
    return own if own or inspect.isroutine(function) else type(function).__doc__


def _parameters(function: Function, name: str) -> Parameters:
    entry = entry_point(function)
    if inspect.isgeneratorfunction(entry) or inspect.isasyncgenfunction(entry):
        raise ConfigurationError(f"Tool {name!r} is a generator; return one value, for instance a list.")
    parameters = signature_of(function, name)
    for one in parameters.values():
        _check_kind(one, name)
    return parameters


def _check_kind(one: inspect.Parameter, name: str) -> None:
    if one.kind is one.POSITIONAL_ONLY:
        why = f"{one.name!r} is positional-only, and a model sends names; remove the '/' behind it"
    elif one.kind is one.VAR_POSITIONAL:
        why = f"*{one.name} has no names that a model could send; take a list, {one.name}: list[...]"
    elif one.kind is one.VAR_KEYWORD:
        why = f"**{one.name} does not say what a model may send; name each parameter, or use Tool.from_schema(...)"
    else:
        return
    raise ConfigurationError(f"Tool {name!r}: {why}.")


def _lacks_self(function: Function, parameters: Parameters) -> bool:
    """Whether *function* is a method as its class body sees it."""
    first = next(iter(parameters.values()), None)
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    in_class = inspect.isfunction(function) and owner and not owner.endswith("<locals>")
    return bool(in_class and first and first.name in ("self", "cls") and first.annotation is first.empty)


# ------------------------------------------------------------------------------------------------ hints


def _hints(function: Function, parameters: Parameters, name: str) -> dict[str, Any]:
    """The annotations of *parameters* with strings and forward references resolved, ``Annotated`` kept."""

    def probe() -> None:
        """Carries the annotations of the parameters only: an unresolvable return type does no harm."""

    probe.__annotations__ = {key: one.annotation for key, one in parameters.items() if one.annotation is not one.empty}
    module = getattr(_documented(function), "__globals__", {})
    try:
        try:
            return get_type_hints(probe, module, include_extras=True)
        except NameError:
            return get_type_hints(probe, module, _local_names(module), include_extras=True)
    except Exception as error:  # annotations are user code: anything may come out
        raise ConfigurationError(
            f"Tool {name!r}: its annotations cannot be resolved ({type(error).__name__}: {error}); import the types "
            "where the tool is defined, not only under TYPE_CHECKING."
        ) from error


def _local_names(module: Mapping[str, Any]) -> dict[str, Any]:
    """The local names of the *module*'s functions that are running now: where a class in a function is found."""
    names: dict[str, Any] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is module and frame.f_locals is not module:
            names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names


def _context_parameter(hints: Mapping[str, Any], name: str) -> str | None:
    found = [key for key, hint in hints.items() if any(one is ToolContext for one in _alternatives(hint))]
    if len(found) > 1:
        raise ConfigurationError(f"Tool {name!r} takes a ToolContext twice, as {found}; one is enough.")
    return found[0] if found else None


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """What a hint allows: the members of a union, or the hint alone."""
    if get_origin(hint) is Annotated:
        return _alternatives(get_args(hint)[0])
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


# ------------------------------------------------------------------------------------------------ fields and schema

_DOCUMENTED_TYPES: Mapping[str, Any] = {
    "str": str,
    "string": str,
    "int": int,
    "integer": int,
    "float": float,
    "number": float,
    "bool": bool,
    "boolean": bool,
    "list": list,
    "dict": dict,
}


def _field(one: inspect.Parameter, hint: Any, docs: ToolDocs, name: str) -> Any:
    """The hint of one parameter with all that the model should know of it."""
    documented = docs.parameters.get(one.name, ParameterDocs())
    if hint is None:
        hint = _unhinted(one, documented, name)
    description = _description(hint) or documented.text or None
    if one.default is one.empty:
        return Annotated[hint, pydantic.Field(description=description)]
    if one.default is None and not any(kind in (None, NoneType, Any) for kind in _alternatives(hint)):
        hint = Optional[hint]  # noqa: UP045 - "|" is not defined on every special form
    shown = {"default": _shown_default(one, name)}
    return NotRequired[Annotated[hint, pydantic.Field(description=description, json_schema_extra=shown)]]


def _unhinted(one: inspect.Parameter, documented: ParameterDocs, name: str) -> Any:
    """The type of a parameter without annotation: what the docstring says, else any JSON value."""
    if one.default is one.empty and not (documented.text or documented.type):
        raise ConfigurationError(
            f"Tool {name!r}: nothing says what {one.name!r} is; annotate it, for instance {one.name}: str."
        )
    return _DOCUMENTED_TYPES.get(documented.type.partition(",")[0].strip().lower(), Any)


def _description(hint: Any) -> str | None:
    """What ``Annotated`` says in words: ``Field(description=...)``, ``Doc(...)`` or a plain string."""
    for note in reversed(get_args(hint)[1:] if get_origin(hint) is Annotated else ()):
        if isinstance(note, _field_info()):
            note = note.description
        words = getattr(note, "documentation", note)
        if isinstance(words, str):
            return inspect.cleandoc(words)
    return None


def _shown_default(one: inspect.Parameter, name: str) -> Any:
    if isinstance(one.default, _field_info()):
        raise ConfigurationError(
            f"Tool {name!r}: {one.name!r} has Field(...) as its default, which a direct call would receive; "
            f"write {one.name}: Annotated[<type>, Field(...)] = <default>."
        )
    try:
        return to_jsonable_python(one.default)
    except Exception as error:  # a default is user code: its serialiser may raise anything
        raise ConfigurationError(
            f"Tool {name!r}: the default of {one.name!r} ({type(one.default).__name__}) cannot be shown to a model as "
            "JSON; use None and fill it in inside the function."
        ) from error


@cache
def _field_info() -> type[FieldInfo]:
    """The class of what ``Field(...)`` gives."""
    return type(pydantic.Field())


@cache
def _untitled() -> type[GenerateJsonSchema]:
    """Pydantic's generator without the titles it makes of names: they tell a model nothing and cost tokens."""

    # loaded by now: TypeAdapter needs it
    class Untitled(pydantic.json_schema.GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Untitled


def _compiled(fields: Mapping[str, Any], name: str) -> tuple[pydantic.TypeAdapter[dict[str, Any]], dict[str, Any]]:
    try:
        return _adapt(fields)
    except Exception as error:  # types bring their own schema code
        guilty = next((key for key, hint in fields.items() if not _adaptable(key, hint)), "?")
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(
            f"Tool {name!r}: pydantic cannot make a JSON Schema for parameter {guilty!r}: {reason} "
            "Use a JSON-like type, a dataclass or a pydantic model."
        ) from error


def _adapt(fields: Mapping[str, Any]) -> tuple[pydantic.TypeAdapter[dict[str, Any]], dict[str, Any]]:
    """Hand *fields* to pydantic as a TypedDict, which unlike a model allows parameters called ``schema`` or ``_x``."""
    make: Any = TypedDict  # a type checker knows only literal ones
    shape = make("Arguments", dict(fields))
    shape.__pydantic_config__ = pydantic.ConfigDict(
        extra="forbid", allow_inf_nan=False
    )  # 1e400 written out is valid JSON
    adapter: pydantic.TypeAdapter[dict[str, Any]] = pydantic.TypeAdapter(shape)
    schema = adapter.json_schema(schema_generator=_untitled())
    for titled in (schema, *schema.get("$defs", {}).values()):
        titled.pop("title", None)
    return adapter, schema


def _adaptable(key: str, hint: Any) -> bool:
    try:
        _adapt({key: hint})
    except Exception:
        return False
    return True
