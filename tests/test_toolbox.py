"""Running the tools that a reply asks for: one result per call, in order, whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator
from structlog.testing import capture_logs

from reactflow.budget import Budget, Meter
from reactflow.chain import ToolHandler, ToolRequest
from reactflow.errors import BudgetExceeded, ConfigurationError, ToolError
from reactflow.events import Event, ToolFinished, ToolStarted
from reactflow.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from reactflow.model import ChatRequest, ChatResponse, Run, ToolSpec
from reactflow.result import StopReason
from reactflow.toolbox import Tool, ToolContext, ToolRunner, check_tools, tool


def reply(*calls: ToolCall, finish_reason: str | None = "tool_calls") -> ChatResponse:
    return ChatResponse(AssistantMessage("", calls), finish_reason=finish_reason)


def call(name: str, id: str = "1", /, **arguments: Any) -> ToolCall:
    return ToolCall(id, name, json.dumps(arguments))


def asked(*tools: Any, run: Run | None = None, **rest: Any) -> ChatRequest:
    return ChatRequest(messages=(), run=run or Run(question=UserMessage("q")), tools=check_tools(tools), **rest)


async def result_of(made: Any, /, arguments: str = "{}", *, runner: ToolRunner = ToolRunner()) -> ToolMessage:
    """Run one call of one tool."""
    request = asked(made)
    (message,) = await runner.run(reply(ToolCall("1", request.tools[0].name, arguments)), request)
    assert (message.call_id, message.name) == ("1", request.tools[0].name)
    return message


@dataclass(frozen=True)
class Passing:
    order: int = 0

    async def advise_tool(self, tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
        return await call_next(tool_request)


@tool
async def add(a: int, b: int = 0) -> int:
    return a + b


@tool
def echo(text: str) -> str:
    return text


# ------------------------------------------------------------------------------------------------ results


async def test_a_call_gets_its_result():
    assert await result_of(add, '{"a": 2, "b": 3}') == ToolMessage("5", call_id="1", name="add")


async def test_no_calls_have_no_results():
    assert await ToolRunner().run(reply(), asked(add)) == ()


async def test_results_come_in_the_order_of_the_calls_not_of_their_ends():
    @tool
    async def late(s: float) -> float:
        await asyncio.sleep(s)
        return s

    calls = [call("late", "a", s=0.02), call("late", "b", s=0), call("late", "c", s=0.01)]

    results = await ToolRunner().run(reply(*calls), asked(late))

    assert [(result.call_id, result.text) for result in results] == [("a", "0.02"), ("b", "0.0"), ("c", "0.01")]


async def test_a_repeated_id_still_gives_one_result_for_each_call():
    results = await ToolRunner().run(reply(call("add", "x", a=1), call("add", "x", a=2)), asked(add))

    assert results == (ToolMessage("1", "x", "add"), ToolMessage("2", "x", "add"))


async def test_a_result_that_is_text_is_not_quoted_again():
    assert (await result_of(echo, '{"text": "{\\"t\\": 1}"}')).text == '{"t": 1}'


async def test_other_results_are_json_with_readable_characters():
    def find() -> dict[str, Any]:
        return {"城市": "北京", "day": dt.date(2026, 1, 2), "none": None}

    assert (await result_of(find)).text == '{"城市":"北京","day":"2026-01-02","none":null}'


async def test_a_long_result_is_cut_with_a_note():
    short = tool(echo.function, name="echo", max_result_chars=3)

    assert (await result_of(short, '{"text": "abcdef"}')).text == "abc\n[3 of 6 characters were left out]"


async def test_a_coroutine_that_a_plain_function_returns_is_awaited():
    @tool
    def later() -> Awaitable[str]:
        return asyncio.sleep(0, "done")

    assert (await result_of(later)).text == "done"


async def test_a_tool_may_return_a_message_of_which_text_and_flag_count():
    def odd() -> ToolMessage:
        return ToolMessage("no such city", call_id="mine", name="mine", is_error=True)

    assert await result_of(odd) == ToolMessage("no such city", "1", "odd", is_error=True)


async def test_a_plain_function_runs_in_a_thread_of_its_own_and_an_async_one_does_not():
    def plain() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def coroutine() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert [(await result_of(made)).text for made in (plain, coroutine)] == ["false", "true"]


async def test_the_context_of_the_run_reaches_the_tool():
    async def whoami(ctx: ToolContext) -> str:
        return f"{ctx['tenant']} {ctx.run_id} {ctx.conversation_id} {ctx.call_id} {ctx.tool_name}"

    run = Run(question=UserMessage("q"), run_id="r1", conversation_id="c1")
    request = asked(whoami, run=run, context={"tenant": "acme"})

    (message,) = await ToolRunner().run(reply(call("whoami")), request)

    assert message.text == "acme r1 c1 1 whoami"


# ------------------------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize("arguments", ["", "  ", "null", "{}", None])
async def test_missing_arguments_are_an_empty_object(arguments: Any):
    async def ping(n: int = 1) -> int:
        return n

    assert (await result_of(ping, arguments)).text == "1"
    advised = ToolRunner(tool_advisors=(Passing(),))
    assert (await result_of(ping, arguments, runner=advised)).text == "1"


async def test_arguments_arrive_as_the_types_of_the_hints():
    async def day_after(day: dt.date) -> dt.date:
        return day + dt.timedelta(days=1)

    assert (await result_of(day_after, '{"day": "2026-02-28"}')).text == '"2026-03-01"'


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"a": ', "The arguments could not be read: Expecting value"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("[1]", "must be a JSON object, not list"),
        ("{}", "arguments: 'a' is a required property"),
        ('{"a": "2"}', 'arguments.a: "2" breaks the rule type: "integer"'),
        ('{"a": 1, "c": 2}', "('c' was unexpected)"),
        ('{"a": %s}' % ("[" * 50_000 + "]" * 50_000), "nested too deeply"),
    ],
    ids=lambda value: value[:20],
)
async def test_arguments_that_do_not_fit_are_an_error_and_nothing_runs(arguments: str, reason: str):
    ran: list[int] = []

    @tool
    async def note(a: int) -> None:
        ran.append(a)

    for runner in (ToolRunner(), ToolRunner(tool_advisors=(Passing(),))):
        message = await result_of(note, arguments, runner=runner)
        assert (message.is_error, reason in message.text) == (True, True)
    assert ran == []


async def test_what_a_validator_of_the_users_refuses_is_an_error_for_the_model():
    def even(n: int) -> int:
        if n == 3:
            raise RuntimeError("a bug")
        if n % 2:
            raise ValueError("must be even")
        return n

    async def halve(n: Annotated[int, AfterValidator(even)]) -> int:
        return n // 2

    assert (await result_of(halve, '{"n": 4}')).text == "2"
    assert "arguments.n: 1: Value error, must be even" in (await result_of(halve, '{"n": 1}')).text
    assert "could not be converted (RuntimeError)" in (await result_of(halve, '{"n": 3}')).text


@pytest.mark.parametrize("runner", [ToolRunner(), ToolRunner(tool_advisors=(Passing(),))], ids=["plain", "advised"])
async def test_arguments_at_the_edge_of_what_can_be_read_and_written_are_run_or_refused(runner: ToolRunner):
    ran: list[object] = []
    deep = '{"x": ' + "[" * 900 + "]" * 900 + "}"
    note = Tool.from_schema("note", "", {"type": "object"}, ran.append, pass_dict=True, side_effect=True)

    async def below(frames: int) -> ToolMessage:
        return await below(frames - 1) if frames else await result_of(note, deep, runner=runner)

    texts = [(await below(frames)).text for frames in range(90)]  # so near the limit, each step fails somewhere

    assert {text.partition(".")[0] for text in texts} <= {
        "null",
        "The arguments could not be read: it is nested too deeply",
        "The arguments are nested too deeply",
    }
    assert len(ran) == texts.count("null")


async def test_the_size_limit_of_arguments_names_both_numbers():
    small = tool(echo.function, name="echo", max_argument_chars=15)

    message = await result_of(small, '{"text": "123456"}')

    assert message.is_error
    assert "18 characters and 'echo' takes at most 15" in message.text


# ------------------------------------------------------------------------------------------------ what goes wrong


async def test_an_unknown_tool_is_answered_with_near_names():
    results = await ToolRunner().run(reply(call("ad", "1"), call("weather", "2")), asked(add, echo))

    assert [result.text for result in results] == [
        "There is no tool 'ad'. Did you mean 'add'? Offered: add, echo.",
        "There is no tool 'weather'. Offered: add, echo.",
    ]
    assert all(result.is_error for result in results)


async def test_a_tool_that_was_not_offered_is_unknown():
    (message,) = await ToolRunner().run(reply(call("add", a=1)), asked())

    assert message.text == "There is no tool 'add': no tools are offered. Answer in text."


async def test_names_are_listed_up_to_a_bound():
    many = [tool(echo.function, name=f"t{number}") for number in range(60)]

    (message,) = await ToolRunner().run(reply(call("x" * 500)), asked(*many))

    assert message.text.endswith("t48, t49 and 10 more.")
    assert len(message.text) < 500


async def test_a_spec_without_a_function_is_a_configuration_error():
    request = asked().replace(tools=(ToolSpec("add"),))

    with pytest.raises(ConfigurationError, match="'add' was offered to the model but cannot run"):
        await ToolRunner().run(reply(call("add")), request)


class Secretive(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("city"), "'fail' failed with KeyError: 'city'"),
        (ValueError(), "'fail' failed with ValueError"),
        (Secretive(), "'fail' failed with Secretive"),
        (ValueError("x" * 1200), f"'fail' failed with ValueError: {'x' * 1000}"),
        (TimeoutError("mine"), "'fail' failed with TimeoutError: mine"),
        (SystemExit(3), "'fail' failed with SystemExit: 3"),
        (ExceptionGroup("two", [ValueError("a")]), "'fail' failed with ExceptionGroup: two (1 sub-exception)"),
        (asyncio.CancelledError(), "'fail' was cancelled from within and has no result. Try again, or do without it."),
        (ToolError("Ask for another city."), "Ask for another city."),
        (ToolError(), "'fail' failed."),
        (
            BudgetExceeded("spent", reason=StopReason.TOKEN_BUDGET),
            "'fail' failed with BudgetExceeded: spent",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_exception_becomes_an_error_message(error: BaseException, text: str, is_async: bool):
    async def fail_async() -> None:
        raise error

    def fail_plain() -> None:
        raise error

    made = tool(fail_async if is_async else fail_plain, name="fail")
    alone = await result_of(made)
    _, among_others = await ToolRunner().run(reply(call("add", a=1), call("fail")), asked(add, made))

    assert (alone.text.splitlines()[0], alone.is_error) == (text, True)
    assert among_others == alone


async def test_a_stop_iteration_becomes_an_error_message():
    def fail() -> None:
        raise StopIteration

    assert (await result_of(fail)).text.startswith("'fail' failed with RuntimeError: StopIteration")


async def test_a_failure_is_logged_by_class_without_its_words():
    async def fail(word: str) -> None:
        raise ValueError(f"secret {word}")

    with capture_logs() as logs:
        await result_of(fail, '{"word": "x"}')

    assert logs == [
        {"event": "tool.failed", "log_level": "warning", "tool": "fail", "call_id": "1", "error": "ValueError"}
    ]


async def test_what_goes_as_planned_is_not_logged():
    async def refuse() -> None:
        raise ToolError("no")

    with capture_logs() as logs:
        await result_of(add, '{"a": 1}')
        await result_of(add, '{"a": "1"}')
        await result_of(refuse)

    assert logs == []


async def test_on_error_words_an_exception_for_the_model():
    @tool(on_error=lambda error: f"Not now: {type(error).__name__}")
    async def fail() -> None:
        raise ValueError("postgres://user:password@host")

    assert await result_of(fail) == ToolMessage("Not now: ValueError", "1", "fail", is_error=True)


async def test_what_on_error_raises_ends_the_run_as_it_is():
    error = ValueError("a bug")

    def reraise(error: Exception) -> str:
        raise error

    @tool(on_error=reraise)
    async def fail() -> None:
        raise error

    with pytest.raises(ValueError, match="a bug") as caught:
        await result_of(fail)
    assert caught.value is error


async def test_a_result_that_cannot_be_written_is_an_error():
    async def opaque() -> object:
        return object()

    message = await result_of(opaque)

    assert message.is_error
    assert message.text == "'opaque' ran, but its result, a object, has no JSON form. Do without it."


async def test_a_tool_that_takes_too_long_is_given_up():
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            ended.append("slow")

    def blocking() -> None:
        time.sleep(0.1)

    made = [tool(slow, timeout=0.01), tool(blocking, timeout=0.01, side_effect=True)]
    texts = [(await result_of(each)).text for each in made]

    assert texts == [
        "'slow' did not finish within 0.01 s and was given up. Ask for less, or do without it.",
        "'blocking' did not finish within 0.01 s and was given up. It may have taken effect all the same: check "
        "before you repeat it. Ask for less, or do without it.",
    ]
    assert ended == ["slow"]


async def test_a_tool_that_turns_its_time_out_into_another_error_is_still_too_slow():
    @tool(timeout=0.01)
    async def stubborn() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            raise ValueError("lost the connection") from None

    assert (await result_of(stubborn)).text.startswith("'stubborn' did not finish within 0.01 s")


@pytest.mark.parametrize("finish_reason", ["length", "content_filter", "refusal"])
async def test_a_reply_that_was_cut_runs_no_tool(finish_reason: str):
    ran: list[int] = []
    events: list[Event] = []

    @tool
    async def note(a: int) -> None:
        ran.append(a)

    request = asked(note, emit=events.append)
    results = await ToolRunner().run(
        reply(call("note", "1", a=1), ToolCall("2", "note", '{"a": '), finish_reason=finish_reason), request
    )

    assert ran == []
    assert [(result.call_id, result.is_error) for result in results] == [("1", True), ("2", True)]
    assert "cut before it was complete" in results[0].text
    assert finish_reason in results[0].text
    assert [type(event) for event in events] == [ToolStarted, ToolFinished] * 2
    assert request.run.tool_calls == {}


# ------------------------------------------------------------------------------------------------ cancellation


def waiting(ended: list[str], begun: Callable[[], None] = lambda: None) -> Tool:
    @tool
    async def wait(name: str) -> None:
        begun()
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    return wait


@pytest.mark.parametrize("count", [1, 3])
async def test_a_cancel_ends_all_async_tools_before_it_goes_on(count: int):
    ended: list[str] = []
    begun = asyncio.Semaphore(0)
    calls = [call("wait", str(number), name=str(number)) for number in range(count)]
    task = asyncio.create_task(ToolRunner().run(reply(*calls), asked(waiting(ended, begun.release))))
    for _ in calls:
        await begun.acquire()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == [str(number) for number in range(count)]


async def test_a_second_cancel_does_not_leave_a_tool_running():
    ended: list[str] = []
    begun, tidying = asyncio.Semaphore(0), asyncio.Semaphore(0)

    @tool
    async def tidy() -> None:
        begun.release()
        try:
            await asyncio.sleep(10)
        finally:
            tidying.release()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)
            ended.append("tidy")

    task = asyncio.create_task(ToolRunner().run(reply(call("tidy", "1"), call("tidy", "2")), asked(tidy)))
    for reached in (begun, tidying):
        await reached.acquire()
        await reached.acquire()
        task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["tidy", "tidy"]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("answer", ["never mind", ValueError("interrupted")], ids=["returns", "raises"])
async def test_a_tool_that_catches_everything_does_not_swallow_a_cancel(answer: Any, count: int):
    begun = asyncio.Event()

    @tool
    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.sleep(10)
        except BaseException:
            if isinstance(answer, Exception):
                raise answer from None
        return str(answer)

    calls = [call("stubborn", str(number)) for number in range(count)]
    task = asyncio.create_task(ToolRunner().run(reply(*calls), asked(stubborn)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    run = Run(question=UserMessage("q"), meter=Meter(Budget(max_seconds=0.01)))
    with pytest.raises(BudgetExceeded):
        await ToolRunner().run(reply(*calls), asked(stubborn, run=run))


async def test_a_listener_that_cancels_the_run_is_obeyed():
    def cancel(event: Event) -> None:
        task.cancel()

    async def wait() -> None:
        await asyncio.sleep(10)

    task = asyncio.create_task(ToolRunner().run(reply(call("wait")), asked(wait, emit=cancel)))

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit])
def test_an_interrupt_is_never_swallowed(error: type[BaseException], count: int):
    @tool
    async def interrupt() -> None:
        raise error

    calls = [call("interrupt", str(number)) for number in range(count)]

    async def main() -> None:
        await ToolRunner().run(reply(*calls), asked(interrupt))

    with pytest.raises(error):
        asyncio.run(main())


@pytest.mark.parametrize("count", [1, 2])
async def test_the_deadline_of_the_run_cuts_the_batch(count: int, clock: Any):
    ended: list[str] = []
    begun: list[None] = []
    run = Run(question=UserMessage("q"), meter=Meter(Budget(max_seconds=0.02)))
    calls = [call("wait", str(number), name=str(number)) for number in range(count)]

    with pytest.raises(BudgetExceeded) as caught:
        await ToolRunner().run(reply(*calls), asked(waiting(ended, lambda: begun.append(None)), run=run))

    assert caught.value.reason is StopReason.TIME_BUDGET
    assert len(ended) == len(begun)  # all of them, but on a machine that stands still just then


async def test_a_tool_with_a_run_of_its_own_may_hand_over_what_it_has_at_the_deadline(unhurried: None):
    outer = Run(question=UserMessage("q"), meter=Meter(Budget(max_seconds=0.02)))

    async def ask_other() -> str:
        inner = Meter(parent=outer.meter)
        try:
            await inner.cut(asyncio.sleep(10))
        except BudgetExceeded:
            return "the best so far"
        raise AssertionError

    (message,) = await ToolRunner().run(reply(call("ask_other")), asked(ask_other, run=outer))

    assert message.text == "the best so far"


# ------------------------------------------------------------------------------------------------ concurrency


@dataclass
class Gauge:
    """How many run at once."""

    now: int = 0
    most: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def enter(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def leave(self) -> None:
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize(("max_parallel", "most"), [(1, 1), (3, 3), (8, 5)])
async def test_calls_of_one_reply_run_side_by_side_up_to_the_bound(max_parallel: int, most: int):
    gauge = Gauge()

    @tool
    async def work() -> None:
        gauge.enter()
        await asyncio.sleep(0.005)
        gauge.leave()

    calls = [call("work", str(number)) for number in range(5)]
    await ToolRunner(max_parallel=max_parallel).run(reply(*calls), asked(work))

    assert gauge.most == most


async def test_blocking_tools_run_side_by_side_too():
    gate = threading.Barrier(3, timeout=60)

    def meet() -> str:
        gate.wait()
        return "met"

    results = await ToolRunner().run(reply(*(call("meet", str(number)) for number in range(3))), asked(meet))

    assert [result.text for result in results] == ["met"] * 3


async def test_two_runs_do_not_share_a_bound():
    gauge = Gauge()

    @tool
    async def work() -> None:
        gauge.enter()
        await asyncio.sleep(0.005)
        gauge.leave()

    runner = ToolRunner(max_parallel=1)
    batch = reply(call("work", "1"), call("work", "2"))
    await asyncio.gather(*(runner.run(batch, asked(work)) for _ in range(4)))

    assert gauge.most == 4


# ------------------------------------------------------------------------------------------------ limits


async def test_a_tool_runs_as_often_in_a_turn_as_it_may():
    ran: list[int] = []

    @tool(max_calls=2)
    async def note(a: int) -> int:
        ran.append(a)
        return a

    request = asked(note)
    first = await ToolRunner().run(reply(*(call("note", str(a), a=a) for a in range(3))), request)
    request.run.attempt += 1
    (second,) = await ToolRunner().run(reply(call("note", "9", a=9)), request)

    assert [result.is_error for result in first] == [False, False, True]
    assert first[2].text == second.text
    assert second.text == ("'note' may run 2 times for one question and has done so. Go on with the results you have.")
    assert ran == [0, 1]
    assert request.run.tool_calls == {"note": 2}


async def test_calls_that_do_not_start_do_not_count():
    request = asked(tool(add.function, max_calls=1))

    results = await ToolRunner(max_tool_calls=1).run(
        reply(call("add", "1", a="x"), call("nothing", "2"), call("add", "3", a=1)), request
    )

    assert [result.is_error for result in results] == [True, True, False]
    assert request.run.tool_calls == {"add": 1}


async def test_all_tools_together_run_as_often_in_a_turn_as_they_may():
    request = asked(add, echo)
    batch = reply(call("add", "1", a=1), call("echo", "2", text="x"), call("add", "3", a=1))

    results = await ToolRunner(max_tool_calls=2).run(batch, request)

    assert [result.is_error for result in results] == [False, False, True]
    assert results[2].text == "All 2 tool calls for one question are used up. Answer with the results you have."
    assert request.run.tool_calls == {"add": 1, "echo": 1}


@pytest.mark.parametrize(
    "options",
    [
        {"max_parallel": 0},
        {"max_parallel": None},
        {"max_parallel": True},
        {"max_tool_calls": 0},
        {"max_tool_calls": 1.5},
    ],
)
def test_a_limit_that_is_no_positive_number_is_refused(options: dict[str, Any]):
    with pytest.raises(ConfigurationError, match="give a whole number above 0"):
        ToolRunner(**options)


# ------------------------------------------------------------------------------------------------ side effects


def paying(paid: list[int], **options: Any) -> Tool:
    @tool(side_effect=True, **options)
    async def pay(amount: int, note: str = "") -> str:
        paid.append(amount)
        if amount < 0:
            raise ValueError("no")
        return f"payment {len(paid)}"

    return pay


async def test_a_side_effect_is_not_repeated_in_a_later_draft():
    paid: list[int] = []
    request = asked(paying(paid, max_calls=1))
    (first,) = await ToolRunner().run(reply(ToolCall("a", "pay", '{"amount": 5, "note": "x"}')), request)
    request.run.attempt = 2

    (again,) = await ToolRunner().run(reply(ToolCall("b", "pay", ' {"note":"x","amount":5}')), request)
    request.run.attempt = 3
    (once_more,) = await ToolRunner().run(reply(ToolCall("c", "pay", '{"amount": 5, "note": "x"}')), request)

    assert (first, again, once_more) == tuple(ToolMessage("payment 1", id, "pay") for id in "abc")
    assert paid == [5]
    assert request.run.tool_calls == {"pay": 1}


async def test_repeats_inside_one_draft_errors_and_other_arguments_run():
    paid: list[int] = []
    request = asked(paying(paid))
    runner = ToolRunner()

    await runner.run(
        reply(call("pay", "1", amount=5), call("pay", "2", amount=5), call("pay", "3", amount=-1)), request
    )
    await runner.run(reply(call("pay", "4", amount=5)), request)
    assert sorted(paid) == [-1, 5, 5, 5]

    request.run.attempt = 2
    await runner.run(
        reply(call("pay", "5", amount=-1), call("pay", "6", amount=6), call("pay", "7", amount=6)), request
    )
    assert sorted(paid) == [-1, -1, 5, 5, 5, 6, 6]


async def test_a_tool_without_side_effects_runs_again_in_a_later_draft():
    ran: list[int] = []

    async def look(a: int) -> None:
        ran.append(a)

    request = asked(look)
    for request.run.attempt in (1, 2):
        await ToolRunner().run(reply(call("look", a=1)), request)

    assert ran == [1, 1]


# ------------------------------------------------------------------------------------------------ advisors


@dataclass(frozen=True)
class Advising:
    """An advisor made of a function."""

    function: Callable[[ToolRequest, ToolHandler], Awaitable[ToolMessage]]
    order: int = 0

    async def advise_tool(self, tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
        return await self.function(tool_request, call_next)


async def test_advisors_surround_each_call_nested_by_order():
    trace: list[str] = []

    def tracing(name: str, order: int) -> Advising:
        async def trace_it(tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
            trace.append(f"{name} {tool_request.name} {dict(tool_request.arguments)}")
            message = await call_next(tool_request)
            return replace(message, text=f"{name}({message.text})")

        return Advising(trace_it, order)

    runner = ToolRunner(tool_advisors=(tracing("inner", 5), tracing("outer", 1)))

    assert (await result_of(add, '{"a": 1}', runner=runner)).text == "outer(inner(1))"
    assert trace == ["outer add {'a': 1}", "inner add {'a': 1}"]


async def test_an_advisor_may_change_the_arguments_which_are_checked_again():
    def with_arguments(arguments: str) -> ToolRunner:
        async def change(tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
            return await call_next(tool_request.replace(call=replace(tool_request.call, arguments=arguments)))

        return ToolRunner(tool_advisors=(Advising(change),))

    assert (await result_of(add, '{"a": 1}', runner=with_arguments('{"a": 7}'))).text == "7"
    assert (await result_of(add, '{"a": 1}', runner=with_arguments('{"a": "x"}'))).is_error


async def test_an_advisor_may_send_the_call_to_another_tool():
    async def reroute(tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
        return await call_next(tool_request.replace(call=call("echo", "other", text="hi")))

    (message,) = await ToolRunner(tool_advisors=(Advising(reroute),)).run(reply(call("add", a=1)), asked(add, echo))

    assert message == ToolMessage("hi", call_id="1", name="add")


async def test_an_advisor_that_answers_by_itself_still_answers_this_call():
    async def cached(tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
        return ToolMessage("cached", call_id="of another time", name="whatever")

    request = asked(add)
    (message,) = await ToolRunner(tool_advisors=(Advising(cached),)).run(reply(call("add", a=1)), request)

    assert message == ToolMessage("cached", call_id="1", name="add")
    assert request.run.tool_calls == {}


async def test_every_run_that_an_advisor_asks_for_counts():
    async def twice(tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
        await call_next(tool_request)
        return await call_next(tool_request)

    request = asked(add)
    await ToolRunner(tool_advisors=(Advising(twice),)).run(reply(call("add", a=1)), request)

    assert request.run.tool_calls == {"add": 2}


@pytest.mark.parametrize("count", [1, 3])
async def test_an_error_of_an_advisor_passes_through_and_nothing_is_left_running(count: int):
    ended: list[str] = []
    begun = asyncio.Semaphore(0)
    cause = OSError("disk")
    error = LookupError("no ticket")
    error.__cause__ = cause

    async def fail_last(tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
        if tool_request.call.id == str(count):
            for _ in range(count - 1):
                await begun.acquire()
            raise error
        return await call_next(tool_request)

    runner = ToolRunner(tool_advisors=(Advising(fail_last),))
    calls = [call("wait", str(number), name=str(number)) for number in range(1, count + 1)]

    with pytest.raises(LookupError) as caught:
        await runner.run(reply(*calls), asked(waiting(ended, begun.release)))

    assert caught.value is error
    assert caught.value.__cause__ is cause
    assert len(ended) == count - 1


async def test_the_tool_sees_the_request_that_an_advisor_passes_on():
    told: list[Event] = []

    async def redirect(tool_request: ToolRequest, call_next: ToolHandler) -> ToolMessage:
        request = tool_request.request.with_context(tenant="acme").replace(emit=told.append)
        return await call_next(tool_request.replace(request=request))

    async def whoami(ctx: ToolContext) -> str:
        ctx.emit(Event())
        return str(ctx["tenant"])

    assert (await result_of(whoami, runner=ToolRunner(tool_advisors=(Advising(redirect),)))).text == "acme"
    assert told == [Event()]


# ------------------------------------------------------------------------------------------------ events


async def test_each_call_tells_of_its_start_and_of_what_the_model_will_read():
    events: list[Event] = []
    request = asked(add, emit=events.append)

    await ToolRunner(max_parallel=1).run(reply(call("add", "1", a=1), call("nothing", "2")), request)

    started = [event for event in events if isinstance(event, ToolStarted)]
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert [type(event) for event in events] == [ToolStarted, ToolFinished] * 2
    assert started == [
        ToolStarted(call_id="1", name="add", arguments='{"a": 1}'),
        ToolStarted(call_id="2", name="nothing", arguments="{}"),
    ]
    assert [(event.call_id, event.text, event.is_error) for event in finished] == [
        ("1", "1", False),
        ("2", "There is no tool 'nothing'. Offered: add.", True),
    ]
    assert all(0 <= event.elapsed_s < 5 for event in finished)


async def test_an_event_of_a_blocking_tool_comes_before_its_end():
    events: list[Event] = []

    @dataclass(frozen=True, slots=True)
    class Progress(Event):
        share: float

    def work(ctx: ToolContext) -> None:
        ctx.emit(Progress(0.5))

    await ToolRunner().run(reply(call("work")), asked(work, emit=events.append))

    assert [type(event) for event in events] == [ToolStarted, Progress, ToolFinished]


# ------------------------------------------------------------------------------------------------ whatever happens


@tool
async def do(what: str, wait: float = 0) -> Any:
    """Behave in one of many ways."""
    await asyncio.sleep(wait)
    return BEHAVIOURS[what]()


@tool
def do_blocking(what: str) -> Any:
    return BEHAVIOURS[what]()


def throw(error: BaseException) -> Callable[[], Any]:
    def behave() -> Any:
        raise error

    return behave


BEHAVIOURS: dict[str, Callable[[], Any]] = {
    "text": lambda: "ok",
    "value": lambda: {"a": [1]},
    "none": lambda: None,
    "opaque": object,
    "error": throw(ValueError("x")),
    "tool_error": throw(ToolError("x")),
    "exit": throw(SystemExit(1)),
    "cancelled": throw(asyncio.CancelledError()),
    "budget": throw(BudgetExceeded("x", reason=StopReason.TOKEN_BUDGET)),
    "message": lambda: ToolMessage("x", "other", "other"),
}
GOOD = {"text", "value", "none", "message"}

any_call = st.builds(
    ToolCall,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["do", "do", "do", "do_blocking", "dont"]),
    st.builds(lambda what: json.dumps({"what": what}), st.sampled_from(sorted(BEHAVIOURS)))
    | st.builds(
        lambda what, wait: json.dumps({"what": what, "wait": wait}),
        st.sampled_from(sorted(BEHAVIOURS)),
        st.sampled_from([0, 0.001]),
    )
    | st.sampled_from(["", "null", '{"what": ', '{"what": 1}', "[]", '{"what": "text", "what": "text"}']),
)


def succeeds(one: ToolCall) -> bool:
    """Whether a call should end well, read from what it says."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        arguments = json.loads(one.arguments)
        extra = set(arguments) - {"what", *(("wait",) if one.name == "do" else ())}
        repeated = one.arguments.count('"what"') > 1
        return one.name != "dont" and not extra and not repeated and arguments["what"] in GOOD
    return False


@settings(max_examples=60)
@given(st.lists(any_call, max_size=12), st.integers(1, 4), st.booleans())
def test_every_call_gets_exactly_one_result_in_order(calls: list[ToolCall], max_parallel: int, advised: bool):
    runner = ToolRunner(tool_advisors=(Passing(),) if advised else (), max_parallel=max_parallel)
    events: list[Event] = []

    results = asyncio.run(runner.run(reply(*calls), asked(do, do_blocking, emit=events.append)))

    assert [(result.call_id, result.name) for result in results] == [(one.id, one.name) for one in calls]
    assert [not result.is_error for result in results] == [succeeds(one) for one in calls]
    assert sum(isinstance(event, ToolFinished) for event in events) == len(calls)
