"""What a tool is, and how functions become one."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from reactflow.errors import ConfigurationError, DuplicateToolError, ToolError
from reactflow.events import Event
from reactflow.messages import ToolCall, ToolMessage, UserMessage
from reactflow.model import ChatRequest, Run, ToolSpec
from reactflow.threads import run_in_thread
from reactflow.toolbox import Tool, ToolContext, answers_directly, as_tool, check_tools, tool


@tool
def weather(city: str, days: int = 1) -> str:
    """Forecast the weather.

    Args:
        city: The city.
        days: How many days.
    """
    return f"{city}: {days}"


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def lookup(city: str) -> str:
    return city


# ------------------------------------------------------------------------------------------------ @tool


def test_a_bare_decorator_makes_a_tool_that_is_shown_to_a_model():
    assert isinstance(weather, Tool)
    assert isinstance(weather, ToolSpec)
    assert (weather.name, weather.description) == ("weather", "Forecast the weather.")
    assert weather.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city."},
            "days": {"type": "integer", "description": "How many days.", "default": 1},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_decorated_function_is_still_called_like_a_function():
    assert weather("Beijing") == "Beijing: 1"
    assert weather("Oslo", days=2) == "Oslo: 2"
    assert list(inspect.signature(weather).parameters) == ["city", "days"]


async def test_a_decorated_async_function_is_still_awaited():
    @tool
    async def double(n: int) -> int:
        return 2 * n

    assert await double(2) == 4
    assert (double.is_async, weather.is_async) == (True, False)


def test_options_go_in_by_name():
    @tool(
        name="forecast",
        description="Say it.",
        timeout=2.5,
        max_result_chars=10,
        max_argument_chars=20,
        max_calls=3,
        return_direct=True,
        side_effect=True,
    )
    def 天气(city: str) -> str:
        """Not this."""
        return city

    assert (天气.name, 天气.description, 天气.timeout_s) == ("forecast", "Say it.", 2.5)
    assert (天气.max_result_chars, 天气.max_argument_chars, 天气.max_calls) == (10, 20, 3)
    assert (天气.return_direct, 天气.side_effect) == (True, True)
    assert 天气("北京") == "北京"


def test_by_default_there_is_no_limit():
    assert (weather.timeout_s, weather.max_result_chars, weather.max_argument_chars, weather.max_calls) == (None,) * 4


def test_a_tool_is_a_value():
    changed = dataclasses.replace(weather, name="forecast", max_calls=1)

    assert (changed.name, changed.max_calls, changed("Rome")) == ("forecast", 1, "Rome: 1")
    assert changed.validator is weather.validator
    assert changed != weather
    assert dataclasses.replace(changed, name="weather", max_calls=None) == weather
    assert len({weather, weather, changed}) == 2
    assert repr(weather) == "Tool('weather')"


def test_a_tool_of_an_object_without_a_hash_has_one():
    @dataclasses.dataclass
    class Prefixed:
        prefix: str

        def __call__(self, word: str) -> str:
            return self.prefix + word

    made = tool(Prefixed("a"), name="prefixed", on_error=Prefixed("b"))

    assert made in {made}


def test_a_change_of_the_schema_is_compiled_anew():
    changed = dataclasses.replace(weather, parameters=CITY)

    assert changed.read_arguments('{"city": "Rome", "more": 1}') == {"city": "Rome", "more": 1}


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    def plain(self, item: str) -> str:
        """Find an item."""
        return f"{self.name}: {item}"

    @tool(max_calls=2)
    def found(self, item: str) -> str:
        """Find an item."""
        return f"{self.name}: {item}"

    @tool
    async def ordered(self, item: str, ctx: ToolContext) -> str:
        return f"{self.name}: {item} for {ctx['tenant']}"

    @staticmethod
    @tool
    def free(item: str) -> str:
        return item

    @tool
    @staticmethod
    def freed(item: str) -> str:
        return item

    def __call__(self, item: str) -> str:
        """Call for an item."""
        return f"{self.name} called for {item}"


def test_bound_methods_are_tools():
    plain = as_tool(Shop("A").plain)

    assert (plain.name, plain.description, list(plain.parameters["properties"])) == ("plain", "Find an item.", ["item"])
    assert plain("tea") == "A: tea"


def test_a_decorated_method_is_a_tool_of_each_instance():
    a, b = Shop("A"), Shop("B")

    assert (a.found("tea"), b.found(item="tea"), Shop.found(a, "tea")) == ("A: tea", "B: tea", "A: tea")
    assert list(a.found.parameters["properties"]) == ["item"]
    assert a.found.max_calls == 2
    assert a.found.validator is b.found.validator
    assert check_tools([a.found, a.ordered, a.free, a.freed]) == (a.found, a.ordered, a.free, a.freed)
    assert (a.free("x"), a.freed("x"), Shop.free("x")) == ("x", "x", "x")


@pytest.mark.parametrize("method", [Shop.found, Shop.plain])
def test_a_method_without_its_object_cannot_be_given_to_an_agent(method: Any):
    with pytest.raises(ConfigurationError, match=r"is a method without its object; give it as instance\.(found|plain)"):
        as_tool(method)


def test_callable_objects_and_partials_are_tools():
    called = as_tool(Shop("A").__call__)
    renamed = tool(Shop("B"), name="b")
    filled = as_tool(functools.partial(weather.function, days=7))

    assert (called.name, renamed.description) == ("__call__", "Call for an item.")
    assert as_tool(Shop("A")).name == "Shop"
    assert renamed("tea") == "B called for tea"
    assert (filled.name, list(filled.parameters["properties"]), filled("Rome")) == ("weather", ["city"], "Rome: 7")


def test_a_partial_of_a_tool_is_a_tool():
    filled = as_tool(functools.partial(weather, days=7))

    assert (filled.name, filled.description, filled("Rome")) == ("weather", "Forecast the weather.", "Rome: 7")
    assert list(filled.parameters["properties"]) == ["city"]
    assert Tool.__name__ == "Tool"


def test_a_tool_that_is_an_attribute_stays_the_same_tool():
    class Holder:
        held = weather

    assert Holder().held is weather
    assert Holder.held is weather


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: tool(lambda x: x), "A lambda has no name"),
        (lambda: tool(int), "is a class; give a function or an instance, int"),
        (lambda: tool(weather), "is a tool already; change a copy with dataclasses.replace"),
        (lambda: tool("weather"), "'weather' is no function"),
        (lambda: as_tool(3), "3 is no function"),
        (lambda: as_tool(None), "None is no function"),
        (lambda: tool(lookup, name=""), "'' cannot be the name of a tool"),
        (lambda: tool(lookup, name="天气"), "'天气' cannot be the name of a tool"),
        (lambda: tool(lookup, name="a b"), "'a b' cannot be the name of a tool"),
        (lambda: tool(lookup, name="x" * 65), "cannot be the name of a tool"),
        (lambda: tool(lookup, name="x\n"), "cannot be the name of a tool"),
        (lambda: tool(lookup, name=3), "3 cannot be the name of a tool"),
        (lambda: tool(lookup, timeout=0), "timeout_s=0; give a finite number of seconds above 0"),
        (lambda: tool(lookup, timeout=float("nan")), "timeout_s=nan"),
        (lambda: tool(lookup, timeout=float("inf")), "timeout_s=inf"),
        (lambda: tool(lookup, timeout=True), "timeout_s=True"),
        (lambda: tool(lookup, timeout="5"), "timeout_s='5'"),
        (lambda: tool(lookup, max_calls=0), "max_calls=0; give a whole number above 0"),
        (lambda: tool(lookup, max_calls=1.5), "max_calls=1.5"),
        (lambda: tool(lookup, max_result_chars=-1), "max_result_chars=-1"),
        (lambda: tool(lookup, max_argument_chars=-1), "max_argument_chars=-1"),
        (lambda: Tool.from_schema("x", "", CITY, 3), "3 is no function"),
        (lambda: Tool.from_schema("x", "", [], lookup), "must be a JSON Schema as a dict, not \\[\\]"),
        (lambda: Tool.from_schema("x", "", {"type": "array"}, lookup), "must be the schema of an object"),
        (lambda: Tool.from_schema("x y", "", CITY, lookup), "'x y' cannot be the name"),
        (lambda: Tool.from_schema("x", "", CITY, lambda: 1), r"the schema has \['city'\], which the function does not"),
        (lambda: Tool.from_schema("x", "", {}, lookup), r"the function needs \['city'\], which the schema does not"),
        (lambda: check_tools(weather), r"tools must be a list .* not Tool\('weather'\)"),
        (lambda: check_tools("weather"), "tools must be a list"),
        (lambda: check_tools({"weather": weather}), "tools must be a list"),
        (lambda: check_tools([weather, 3]), "3 is no function"),
    ],
)
def test_what_cannot_work_is_refused_where_it_is_defined(make: Any, reason: str):
    with pytest.raises(ConfigurationError, match=reason):
        make()


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="timout"):
        tool(lookup, timout=3)  # type: ignore[call-overload]


# ------------------------------------------------------------------------------------------------ raw schemas


def test_a_raw_schema_is_shown_as_it_is_and_copied():
    raw: dict[str, Any] = {**CITY, "properties": {"city": {"type": "string", "title": "City"}}}
    made = Tool.from_schema("lookup", "Look up.", raw, lookup, timeout=3)
    raw["properties"]["city"]["type"] = "integer"

    assert made.parameters == {
        "type": "object",
        "properties": {"city": {"type": "string", "title": "City"}},
        "required": ["city"],
    }
    assert (made.description, made.timeout_s, made("Rome")) == ("Look up.", 3, "Rome")
    with pytest.raises(TypeError, match="read-only"):
        made.parameters["type"] = "array"  # type: ignore[index]


@pytest.mark.parametrize("nothing", [{}, None])
def test_an_empty_schema_means_no_arguments(nothing: Any):
    made = Tool.from_schema("ping", "", nothing, lambda: "pong")

    assert made.parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_function_with_keywords_takes_any_schema():
    made = Tool.from_schema("x", "", {**CITY, "required": []}, lambda **arguments: arguments)

    assert made(city="Rome") == {"city": "Rome"}


# ------------------------------------------------------------------------------------------------ arguments and context


def asked(context: Mapping[str, Any] | None = None) -> ChatRequest:
    run = Run(question=UserMessage("q"), run_id="r1", conversation_id="c1")
    return ChatRequest(messages=(), run=run, context=context or {})


def bound(made: Tool, arguments: str, request: ChatRequest | None = None) -> Any:
    call = ToolCall("call_1", made.name, arguments)
    return made.bind(call, made.read_arguments(arguments), request or asked())()


def test_too_many_characters_of_arguments_are_refused_with_both_numbers():
    short = tool(lookup, max_argument_chars=20)

    assert short.read_arguments('{"city": "12345678"}') == {"city": "12345678"}
    with pytest.raises(ToolError, match="have 21 characters and 'lookup' takes at most 20"):
        short.read_arguments('{"city": "123456789"}')


def test_raw_arguments_reach_the_function_as_keywords_or_as_one_dict():
    schema = {"type": "object", "properties": {"from": {"type": "string"}}}
    keywords = Tool.from_schema("a", "", schema, lambda **given: given)
    one_dict = Tool.from_schema("b", "", schema, lambda given: given, pass_dict=True)

    assert bound(keywords, '{"from": "x"}') == bound(one_dict, '{"from": "x"}') == {"from": "x"}


def test_the_context_is_filled_in_whatever_the_function_takes():
    def typed(ctx: ToolContext, city: str) -> str:
        return f"{city} {ctx['tenant']}"

    def raw(given: dict[str, Any], ctx: ToolContext) -> str:
        return f"{given['city']} {ctx['tenant']}"

    request = asked({"tenant": "acme"})
    made = [tool(typed), Tool.from_schema("k", "", CITY, typed), Tool.from_schema("d", "", CITY, raw, pass_dict=True)]

    async def run() -> list[str]:
        return [bound(each, '{"city": "Rome"}', request) for each in made]

    assert asyncio.run(run()) == ["Rome acme"] * 3


async def test_a_context_knows_its_run_and_call_and_is_read_only():
    told: list[Event] = []
    request = asked({"tenant": "acme", "key": "secret"}).replace(emit=told.append)
    context = ToolContext.of(ToolCall("call_1", "weather"), request)

    assert dict(context) == {"tenant": "acme", "key": "secret"}
    assert (context["tenant"], context.get("user"), len(context), "key" in context) == ("acme", None, 2, True)
    assert (context.run_id, context.conversation_id) == ("r1", "c1")
    assert (context.call_id, context.tool_name) == ("call_1", "weather")
    assert repr(context) == "ToolContext(tenant, key)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.run_id = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        context["tenant"] = "other"  # type: ignore[index]


async def test_events_of_a_blocking_tool_arrive_in_the_threads_of_the_run():
    told: list[tuple[Event, int]] = []
    event, home = Event(), threading.get_ident()
    request = asked().replace(emit=lambda event: told.append((event, threading.get_ident())))
    context = ToolContext.of(ToolCall("1", "t"), request)

    context.emit(event)
    await run_in_thread(lambda: context.emit(event))

    assert told == [(event, home), (event, home)]


def test_an_event_after_the_end_of_the_run_is_dropped():
    told: list[Event] = []

    async def build() -> ToolContext:
        return ToolContext.of(ToolCall("1", "t"), asked().replace(emit=told.append))

    context = asyncio.run(build())
    thread = threading.Thread(target=context.emit, args=(Event(),))
    thread.start()
    thread.join()

    assert told == []


def test_a_context_for_a_test_is_built_by_hand():
    context = ToolContext({"tenant": "acme"})

    assert (context["tenant"], context.run_id, context.conversation_id) == ("acme", "", None)
    assert context.emit(Event()) is None


# ------------------------------------------------------------------------------------------------ lists of tools


def test_functions_and_tools_become_tools_in_order():
    made = check_tools(each for each in (lookup, weather))

    assert [each.name for each in made] == ["lookup", "weather"]
    assert made[1] is weather
    assert check_tools([]) == ()


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(DuplicateToolError) as caught:
        check_tools([weather, lookup, tool(lookup, name="weather")])

    assert (caught.value.name, caught.value.known) == ("weather", {"weather", "lookup"})


@pytest.mark.parametrize(
    ("names", "errors", "expected"),
    [
        (["direct"], [False], True),
        (["direct", "direct"], [False, False], True),
        (["direct", "plain"], [False, False], False),
        (["direct"], [True], False),
        (["direct", "direct"], [False, True], False),
        (["plain"], [False], False),
        (["unknown"], [True], False),
        ([], [], False),
    ],
)
def test_results_are_the_answer_where_every_call_is_direct_and_none_failed(
    names: list[str], errors: list[bool], expected: bool
):
    offered = (tool(lookup, name="direct", return_direct=True), tool(lookup, name="plain"), ToolSpec("spec"))
    calls = [ToolCall(str(number), name) for number, name in enumerate(names)]
    results = [ToolMessage("x", call.id, call.name, failed) for call, failed in zip(calls, errors, strict=True)]

    assert answers_directly(calls, results, offered) is expected
    assert answers_directly(calls, results, offered[1:]) is False
