"""What a tool is, and how a function becomes one.

A tool is the :class:`ToolSpec` that the model is shown, with the function behind it and the limits around it.
``@tool`` makes one of a function and leaves it callable as before; a plain function in ``tools=[...]`` becomes one by
the same code.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MethodType
from typing import Any, Generic, TypeAlias, TypedDict, Unpack, cast, overload

from typing_extensions import ParamSpec, TypeVar

from reactflow.errors import ConfigurationError, ToolError
from reactflow.frozen import FrozenDict
from reactflow.messages import ToolCall
from reactflow.model import ChatRequest, ToolSpec
from reactflow.tooling.arguments import Validator, check_arguments, compile_schema, not_convertible, read_json
from reactflow.tooling.context import ToolContext
from reactflow.tooling.schema import Convert, find_context_parameter, given_name, is_async, read_function, signature_of

P = ParamSpec("P", default=...)
R = TypeVar("R", default=Any)

NO_ARGUMENTS: Mapping[str, Any] = FrozenDict(type="object", properties={}, additionalProperties=False)
"""The schema of a tool that takes nothing."""

_NAME = r"[a-zA-Z0-9_-]{1,64}"


OnError: TypeAlias = Callable[[Exception], str]
"""Words an exception for the model.  What it raises instead ends the run."""


@dataclass(frozen=True, slots=True, repr=False)
class Tool(ToolSpec, Generic[P, R]):
    """A function that a model may call.  As a rule made by ``@tool``; still callable like the function itself.

    Args:
        name: What the model calls it by: 1 to 64 of ``a-z A-Z 0-9 _ -``.
        description: When to use it and what comes back.
        parameters: The JSON Schema of its arguments, an object; empty for a tool that takes nothing.
        function: What runs; a plain one in a thread of its own.
        timeout_s: Seconds after which the model is told that it took too long, > 0; None for no limit.  A plain
            function goes on in its thread, because Python cannot stop one.
        max_result_chars: Characters of a result that the model gets to read, > 0; None for all.
        max_argument_chars: Characters of arguments that are accepted, > 0; None for any number.
        max_calls: How often it may run in one turn, drafts and revisions together, > 0; None for no limit.  In a
            workflow each draft that an agent makes is a turn of that agent.
        return_direct: The result is the answer: the model is not asked again.
        side_effect: In a later draft of the same turn, or of the same run of a workflow, a call with the same
            arguments gets the earlier successful result instead of running again.
        on_error: Words an exception of the function for the model; by default its class and message, cut.  What it
            raises instead ends the run.
        pass_dict: Give the function its arguments as one dict instead of as keywords.

    Raises:
        ConfigurationError: It could not work; says why, and how to mend it.
    """

    function: Callable[P, R] = field(kw_only=True, hash=False)  # a callable object may have no hash
    timeout_s: float | None = field(default=None, kw_only=True)
    max_result_chars: int | None = field(default=None, kw_only=True)
    max_argument_chars: int | None = field(default=None, kw_only=True)
    max_calls: int | None = field(default=None, kw_only=True)
    return_direct: bool = field(default=False, kw_only=True)
    side_effect: bool = field(default=False, kw_only=True)
    on_error: OnError | None = field(default=None, kw_only=True, hash=False)
    pass_dict: bool = field(default=False, kw_only=True)
    convert: Convert | None = field(default=None, kw_only=True, compare=False)  # None: the arguments go in as they are
    context_parameter: str | None = field(default=None, kw_only=True)
    unbound: bool = field(default=False, kw_only=True)  # a method in its class, waiting for an instance
    validator: Validator = field(default=cast(Validator, None), kw_only=True, compare=False)  # filled in when built
    is_async: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        _check_name(self.name, self.function)
        for limit, whole in _LIMITS:
            _check_limit(self.name, limit, getattr(self, limit), whole)
        if self.validator is None or self.validator.schema is not self.parameters:
            schema = FrozenDict(copy.deepcopy(_checked_mapping(self.parameters, self.name)))
            object.__setattr__(self, "parameters", schema)
            object.__setattr__(self, "validator", compile_schema(schema, self.name))
        object.__setattr__(self, "is_async", is_async(self.function))

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        function: Callable[..., Any],
        *,
        pass_dict: bool = False,
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Make a tool of a JSON Schema that somebody else wrote.

        The arguments are checked against it and reach *function* as the JSON values they are, as keywords or, with
        *pass_dict*, as one dict.  A parameter annotated ``ToolContext`` is filled in.

        Raises:
            ConfigurationError: The schema is not that of an object or not valid, or does not fit the function.
        """
        _check_callable(function)
        made = Tool(
            name,
            description,
            parameters,
            function=function,
            context_parameter=find_context_parameter(function, name),
            pass_dict=pass_dict,
            **_fields(options),
        )
        if not pass_dict:
            _check_keywords(made)
        return made

    def read_arguments(self, text: str) -> dict[str, Any]:
        """Read and check what a model wrote as arguments.

        Raises:
            ToolError: They are too long, no JSON object, or do not fit the schema; says what to do, for the model.
        """
        if self.max_argument_chars is not None and len(text or "") > self.max_argument_chars:
            raise ToolError(
                f"The arguments have {len(text)} characters and {self.name!r} takes at most "
                f"{self.max_argument_chars}. Call again with less, in several calls if need be."
            )
        arguments = read_json(text)
        check_arguments(self.validator, arguments)
        return arguments

    def bind(self, call: ToolCall, arguments: dict[str, Any], request: ChatRequest) -> Callable[[], Any]:
        """The call of the function with checked *arguments*, ready to run.

        Raises:
            ToolError: They cannot be converted to what the hints ask for; says why, for the model.
        """
        keywords = {} if self.pass_dict else arguments
        if self.convert is not None:
            try:
                keywords = self.convert(call.arguments if arguments else "{}")
            except Exception as error:  # pydantic's own error, or whatever a validator of the user's raises
                raise not_convertible(error) from error
        if self.context_parameter is not None:
            keywords = {**keywords, self.context_parameter: ToolContext.of(call, request)}
        function = cast(Callable[..., Any], self.function)
        return (lambda: function(arguments, **keywords)) if self.pass_dict else lambda: function(**keywords)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, with no model, no checks and no limits: for tests and other code."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool[..., R]:
        """Let ``@tool`` stand on a method: ``obj.search`` is the tool with its ``self`` filled in."""
        if instance is None or not self.unbound:
            return self
        return replace(self, function=MethodType(self.function, instance), unbound=False)

    @property
    def __name__(self) -> str:  # what is built on functions, such as a partial of a tool, looks for these two
        return self.name

    @property
    def __wrapped__(self) -> Callable[P, R]:
        return self.function

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


_LIMITS = (("timeout_s", False), ("max_result_chars", True), ("max_argument_chars", True), ("max_calls", True))


class ToolOptions(TypedDict, total=False):
    """The options of ``@tool`` and ``Tool.from_schema``; :class:`Tool` says what each one does."""

    timeout: float | None
    max_result_chars: int | None
    max_argument_chars: int | None
    max_calls: int | None
    return_direct: bool
    side_effect: bool
    on_error: OnError | None


def _fields(options: ToolOptions) -> dict[str, Any]:
    fields: dict[str, Any] = dict(options)
    if "timeout" in fields:
        fields["timeout_s"] = fields.pop("timeout")
    return fields


def _check_name(name: object, function: object) -> None:
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        raise ConfigurationError(
            f"{name!r} cannot be the name of a tool ({function!r:.80}): models take 1 to 64 ASCII letters, digits, "
            "'_' and '-'. Give another with @tool(name='...')."
        )


def _checked_mapping(parameters: object, name: str) -> dict[str, Any]:
    if parameters is None or isinstance(parameters, Mapping):
        return dict(parameters or NO_ARGUMENTS)
    raise ConfigurationError(f"Tool {name!r}: its parameters must be a JSON Schema as a dict, not {parameters!r:.80}.")


def _check_limit(name: str, limit: str, value: object, whole: bool) -> None:
    number = int if whole else (int, float)
    if value is None or (
        isinstance(value, number)
        and not isinstance(value, bool)
        and isfinite(cast(float, value))
        and cast(float, value) > 0
    ):
        return
    kind = "a whole number" if whole else "a finite number of seconds"
    raise ConfigurationError(f"Tool {name!r}: {limit}={value!r}; give {kind} above 0, or None for no limit.")


def _check_keywords(made: Tool) -> None:
    """Refuse a function that could not be called with the arguments that its schema describes."""
    parameters = signature_of(made.function, made.name).values()
    offered, required = set(made.parameters.get("properties", ())), set(made.parameters.get("required", ()))
    named = {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    unknown = sorted(offered - named)
    if unknown and not any(one.kind is one.VAR_KEYWORD for one in parameters):
        raise ConfigurationError(
            f"{made!r}: the schema has {unknown}, which the function does not take; add the parameters or **kwargs."
        )
    needed = {one.name for one in parameters if one.default is one.empty and one.kind not in _VARIADIC}
    missing = sorted(needed - required - {made.context_parameter})
    if missing:
        raise ConfigurationError(
            f"{made!r}: the function needs {missing}, which the schema does not require; "
            "add them to its 'required' or give them defaults."
        )


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

# ------------------------------------------------------------------------------------------------ making tools


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool[P, R]: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Unpack[ToolOptions]
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, async or plain.

    The schema comes from the type hints, the descriptions from the docstring (Google, NumPy or Sphinx style) or from
    ``Annotated[..., Field(description=...)]``.  A parameter annotated :class:`ToolContext` is filled in and not shown
    to the model.  A parameter without a hint takes any JSON value, if it has a default or is documented.

    Args:
        function: A function, a method, an object with ``__call__`` or a ``functools.partial``.
        name: Instead of the function's own name.
        description: Instead of the docstring.
        options: See :class:`Tool`; the time-out is called ``timeout`` here, in seconds.

    Raises:
        ConfigurationError: A model could not call it; says why, and how to mend it.

    Example::

        @tool(timeout=10)
        async def weather(city: str, days: int = 1) -> dict:
            \"""Forecast the weather.

            Args:
                city: The city's name, as in "Beijing".
                days: How many days, 1 to 7.
            \"""
    """
    if function is None:
        return lambda function: _made(function, name, description, options)
    return _made(function, name, description, options)


def _made(function: Callable[..., Any], name: str | None, description: str | None, options: ToolOptions) -> Tool:
    _check_callable(function)
    name = given_name(function) if name is None else name
    if name == "<lambda>":
        raise ConfigurationError("A lambda has no name that a model could use; give one with tool(..., name='...').")
    _check_name(name, function)
    plan = read_function(function, name)
    return Tool(
        name,
        plan.description if description is None else description,
        plan.schema,
        function=function,
        convert=plan.convert,
        context_parameter=plan.context_parameter,
        unbound=plan.unbound,
        **_fields(options),
    )


def _check_callable(function: object) -> None:
    if isinstance(function, Tool):
        raise ConfigurationError(f"{function!r} is a tool already; change a copy with dataclasses.replace(...).")
    if isinstance(function, type):
        raise ConfigurationError(f"{function!r} is a class; give a function or an instance, {function.__name__}(...).")
    if not callable(function):
        raise ConfigurationError(f"{function!r:.80} is no function and cannot be a tool; options go in by name.")


def as_tool(obj: object) -> Tool:
    """Return *obj* where it is a tool, else make one of it as ``@tool`` would.

    Raises:
        ConfigurationError: It is neither a tool nor a function that can be one.
    """
    made = obj if isinstance(obj, Tool) else _made(cast(Callable[..., Any], obj), None, None, {})
    if made.unbound:
        raise ConfigurationError(f"{made!r} is a method without its object; give it as instance.{made.name}.")
    return made
