"""Events and results written as JSON, and read again."""

import asyncio
import json
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from reactflow import (
    AgentResult,
    AssistantMessage,
    ConfigurationError,
    Issue,
    Judgement,
    ProviderError,
    Reflection,
    ReflectionAgent,
    SimpleReactAgent,
    StopReason,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    WindowChatMemory,
)
from reactflow.event_json import (
    RunFailed,
    SseReader,
    event_from_json,
    event_to_json,
    event_to_sse,
    json_lines,
    read_json_lines,
    result_from_json,
    result_to_json,
    run_failed,
    sse_stream,
    without_context,
)
from reactflow.events import (
    AnswerRevised,
    DraftReady,
    Event,
    IterationStarted,
    LessonLearned,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ReasoningDelta,
    RevisionStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    TextWithdrawn,
    ToolFinished,
    ToolStarted,
    VerdictGiven,
    WarningRaised,
)
from reactflow.frozen import FrozenDict
from reactflow.testing import ScriptedChatModel, calls, says
from reactflow.value_json import from_data, to_data

RESULT = AgentResult(
    text="Sunny in 北京 🌤",
    output={"city": "北京", "days": [1, 2], "none": None},
    stop_reason=StopReason.MAX_REFLECTION_ROUNDS,
    approved=False,
    reviewed=True,
    messages=(
        SystemMessage("Be short."),
        UserMessage("Weather?", images=("https://example.org/a.png",)),
        AssistantMessage("", (ToolCall("c1", "weather", '{"city": "北京"}'),), FrozenDict(reasoning_content="hm")),
        ToolMessage("no such city", call_id="c1", name="weather", is_error=True),
        UserMessage("Again.", synthetic="reflection"),
        AssistantMessage("Sunny in 北京 🌤"),
    ),
    usage=Usage(10, 5, cached_tokens=2, model_calls=3, unknown_calls=1),
    usage_by_role=FrozenDict(agent=Usage(8, 4, model_calls=2), judge=Usage(2, 1)),
    cost_usd=0.0125,
    rounds=2,
    reflections=(Reflection("Sunny", Judgement(False, "Where?", 0.4, 0.9, (Issue("no place", 4),), flags=("odd",))),),
    warnings=("careful",),
    context=FrozenDict({"reflection.judgement": Judgement(True), "tenant": "a", "pair": (1, "x"), 7: "seven"}),
    elapsed_s=1.5,
    run_id="r1",
    conversation_id="c1",
)

EVENTS = [
    RunStarted(run_id="r1", question="为什么？", conversation_id=None, agent="a"),
    ModelStarted(round=1, role="agent", model="m"),
    TextDelta("line one\nline two\r\u2028\u0085", 1),
    ReasoningDelta("hm", 1, "judge"),
    TextWithdrawn(1),
    ModelFinished(round=1, role="agent", model="m", usage=Usage(1, 2), elapsed_s=0.5, finish_reason="stop"),
    ModelFailed(round=2, role="judge", model="m", error="ProviderError", elapsed_s=0.25),
    ToolStarted(call_id="c1", name="weather", arguments='{"city": "北京"}'),
    ToolFinished(call_id="c1", name="weather", text="☀", is_error=False, elapsed_s=0.1),
    DraftReady(draft=1, text="Sunny"),
    VerdictGiven(draft=1, passed=False, feedback="Where?", score=0.4),
    RevisionStarted(revision=1, feedback="Where?"),
    AnswerRevised(text="Sunny in Paris", round=2),
    WarningRaised(text="careful"),
    IterationStarted(iteration=2, max_iterations=4),
    LessonLearned(attempt=1, advice="先查看目录。", trigger="imports"),
    RunFinished(result=RESULT),
    RunFailed(error="ProviderError", message="gone", partial=RESULT),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTurned(Event):
    """An event of a user's own."""

    page: int
    notes: tuple[str, ...] = ()
    weights: "list[float] | None" = None
    place: "tuple[int, str] | str" = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedResult(AgentResult):
    """A result of a user's own workflow."""

    ranking: tuple[Issue, ...] = ()


class Colour(Enum):
    RED = "red"


def test_the_list_of_events_in_these_tests_is_complete():
    ours = {cls for cls in Event.__subclasses__() if cls.__module__.startswith("reactflow.")}

    assert {cls.__name__ for cls in ours if "workflows" not in cls.__module__} == {type(e).__name__ for e in EVENTS}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event):
    line = event_to_json(event)

    assert event_from_json(line) == event_from_json(line.encode()) == event
    assert len(line.splitlines()) == 1


def test_an_event_is_an_object_of_its_fields_with_its_name_as_type():
    assert event_to_json(TextDelta("北", 2)) == '{"type":"text_delta","text":"北","round":2,"role":"agent"}'


def test_a_result_comes_back_as_it_was():
    assert result_from_json(result_to_json(RESULT)) == RESULT
    assert json.loads(result_to_json(RESULT, indent=2))["stop_reason"] == "max_reflection_rounds"


def test_what_comes_back_is_read_only_again():
    read = result_from_json(result_to_json(RESULT))

    assert (type(read.context), type(read.usage_by_role), type(read.messages)) == (FrozenDict, FrozenDict, tuple)


def test_a_result_and_an_event_of_your_own_come_back_too():
    ranked = RankedResult(text="x", ranking=(Issue("a", 1),))
    turned = PageTurned(page=3, notes=("a", "b"), weights=[0.5, 1], place=(1, "x"))

    assert result_from_json(result_to_json(ranked)) == ranked
    assert event_from_json(event_to_json(RunFinished(result=ranked))) == RunFinished(result=ranked)
    assert event_from_json(event_to_json(turned)) == turned


def test_a_result_of_a_class_that_is_not_loaded_is_read_as_a_plain_one():
    text = json.dumps({"type": "marvellous_result", "text": "x", "marvel": 9})

    assert result_from_json(text) == AgentResult(text="x")


def test_fields_that_a_newer_version_added_are_left_out():
    assert event_from_json('{"type": "text_delta", "text": "x", "colour": "red"}') == TextDelta("x")


class Report(BaseModel):
    day: date


class Connection:
    def __repr__(self):
        return "Connection(password='secret')"


class Broken(dict):
    def items(self):
        raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("value", "back"),
    [
        (Report(day=date(2025, 1, 2)), {"day": "2025-01-02"}),
        (date(2025, 1, 2), "2025-01-02"),
        ({"a"}, ["a"]),
        (b"\xff", "_w=="),
        (Colour.RED, "red"),
        ({"$value": 1}, {"$value": 1}),
        ({"$x": 1, "y": 2}, {"$x": 1, "y": 2}),
        ({(1, 2): {"a": (3,)}}, {(1, 2): {"a": (3,)}}),
        (float("inf"), float("inf")),
        (2**80, 2**80),
        ("\ud800", "\ufffd"),
        (Connection(), "<Connection>"),
        ([Connection()], ["<Connection>"]),
        (Usage(1, 2), Usage(1, 2)),
        (StopReason.ANSWERED, "answered"),
    ],
    ids=str,
)
def test_an_output_of_any_type_can_be_written_and_comes_back_as_far_as_json_knows_it(value, back):
    assert from_data(json.loads(json.dumps(to_data(value)))) == back


def test_not_a_number_comes_back_as_such_also_in_a_field_for_numbers():
    read = event_from_json(event_to_json(VerdictGiven(draft=1, passed=False, score=float("nan"))))

    assert isinstance(read, VerdictGiven)
    assert read.score != read.score


def test_a_circle_and_a_broken_object_do_not_break_the_event():
    circle: list[object] = []
    circle.extend([circle, {"again": circle}])

    text = result_to_json(replace(RESULT, output=circle, context=FrozenDict(bad=Broken(a=1))))

    assert "$opaque" in text


def test_what_lies_too_deep_is_left_out():
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]

    assert "$opaque" in result_to_json(replace(RESULT, output=deep))


def test_an_event_whose_types_exist_only_while_types_are_checked_comes_back_too():
    @dataclass(frozen=True)
    class Odd(Event):
        words: "NoSuchType"  # noqa: F821

    assert event_from_json(event_to_json(Odd(("a", 1)))) == Odd(("a", 1))


def test_what_nothing_can_write_does_not_tell_its_secrets():
    assert "secret" not in result_to_json(replace(RESULT, output=Connection(), context=FrozenDict(db=Connection())))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=12,
)


@given(json_values)
def test_any_context_comes_back_as_it_was(value):
    text = event_to_json(RunFinished(result=AgentResult(text="", context=FrozenDict(value=value))))

    read = event_from_json(text)

    assert isinstance(read, RunFinished)
    assert read.result.context == {"value": value}
    assert type(read.result.context["value"]) is type(value)
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        (
            '{"type": "run_finished", "result": {"text": "", "context": {"a": ' + "[" * 5_000 + "]" * 5_000 + "}}}",
            "read",
        ),
        ("[]", r"the event is \[\]; it must be an object"),
        ("{}", "nothing is known of the event"),
        ('{"type": "no_such"}', "nothing is known of the event"),
        ('{"type": "event"}', "nothing is known of the event"),
        ('{"type": "text_delta"}', "is no text_delta"),
        ('{"type": "text_delta", "text": 5}', "the event.text is 5; it must be a text"),
        ('{"type": "text_delta", "text": "x", "round": true}', "the event.round is True; it must be a whole number"),
        ('{"type": "text_delta", "text": "x", "round": {"$float": "1"}}', "it must be a whole number"),
        ('{"type": "verdict_given", "draft": 1, "passed": 1}', "it must be true or false"),
        ('{"type": "verdict_given", "draft": 1, "passed": true, "score": "x"}', "it must be a number"),
        ('{"type": "run_finished", "result": {"text": "", "stop_reason": "bored"}}', "it must be one of"),
        ('{"type": "run_finished", "result": {"text": "", "stop_reason": ["x"]}}', "it must be one of"),
        ('{"type": "run_finished", "result": {"text": "", "messages": {}}}', "it must be a list"),
        ('{"type": "run_finished", "result": {"text": "", "context": []}}', "it must be an object"),
        ('{"type": "run_finished", "result": {"text": "", "context": {"$tuple": []}}}', "it must be an object"),
        ('{"type": "run_finished", "result": {"text": "", "context": {"$pairs": [1]}}}', r"what \$pairs stands for"),
        ('{"type": "run_finished", "result": {"text": "", "context": {"a": {"$x": 1}}}}', r"it must be one of \$value"),
        ('{"type": "run_finished", "result": {"text": "", "context": {"a": {"$value": {}}}}}', "it must be one of"),
        ('{"type": "run_finished", "result": {"text": "", "usage_by_role": {"a": 1}}}', "role.a is 1"),
        ('{"type": "run_finished", "result": {"text": "", "messages": [{"type": "poem"}]}}', r"messages\[0\].type"),
        ('{"type": "run_finished", "result": {"text": "", "messages": [{"text": "x"}]}}', "it must be one of"),
        ('{"type": "page_turned", "page": 1, "place": [1]}', "it must be a text"),
        ('{"type": "page_turned", "page": 1, "place": [1, "x", 2]}', "it must be a text"),
        (
            '{"type": "run_finished", "result": {"text": "", "reflections": [{"draft": "", "judgement": '
            '{"passed": true, "status": "maybe"}}]}}',
            r"judgement.status is 'maybe'; it must be one of \['judged', 'unjudged'\]",
        ),
    ],
)
def test_what_is_no_event_is_refused_and_the_error_names_the_place(text, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        event_from_json(text)


def test_json_lines_are_read_from_a_file_and_blank_lines_are_skipped(tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(event_to_json(event) for event in EVENTS) + "\n\n", "utf-8")

    with file.open(encoding="utf-8") as lines:
        assert list(read_json_lines(lines)) == EVENTS


def test_a_server_sent_event_names_its_type_so_that_a_page_can_listen_to_it():
    assert event_to_sse(TextWithdrawn(1)) == (
        'event: text_withdrawn\ndata: {"type":"text_withdrawn","round":1,"role":"agent"}\n\n'
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_server_sent_events_are_read_from_pieces_that_end_anywhere(size, end):
    body = "\ufeff: hello\n\nretry: 5\nid: 1\n\n" + "".join(map(event_to_sse, EVENTS)) + "data: {half"
    sent = body.replace("\n", end).encode()
    reader = SseReader()

    read = [event for at in range(0, len(sent), size) for event in reader.feed(sent[at : at + size])]
    read += reader.feed(b"")  # with "\r" alone the very last end is known to be one only when more comes

    assert read == EVENTS


def test_data_on_several_lines_is_one_event():
    assert SseReader().feed(b'data: {"type": "text_delta",\ndata:"text": "x"}\n\n') == [TextDelta("x")]


async def as_stream(*items):
    for item in items:
        if isinstance(item, BaseException):
            raise item
        yield item


async def test_events_may_come_from_any_async_iterable():
    class Two:
        def __init__(self):
            self.left = [TextDelta("y"), TextDelta("x")]

        def __aiter__(self):
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    assert list(read_json_lines([line async for line in json_lines(Two())])) == [TextDelta("x"), TextDelta("y")]


async def test_a_failure_is_the_last_line_and_tells_what_there_was():
    error = ProviderError("the server is gone")
    error.partial = RESULT

    lines = [line async for line in json_lines(as_stream(TextDelta("x"), error))]

    assert list(read_json_lines(lines)) == [
        TextDelta("x"),
        RunFailed(error="ProviderError", message="the server is gone", partial=RESULT),
    ]


def test_an_error_that_is_not_reactflows_is_not_quoted():
    failed = run_failed(RuntimeError("password=secret"))

    assert failed == RunFailed(error="RuntimeError", message="The run failed; the server's log says why.")


async def test_the_runs_context_stays_on_the_server_unless_told_otherwise():
    finished = RunFinished(result=RESULT)
    reader = SseReader()

    private = [event async for chunk in sse_stream(as_stream(finished)) for event in reader.feed(chunk)]
    whole = [
        event async for chunk in sse_stream(as_stream(finished), keep_context=True) for event in reader.feed(chunk)
    ]

    assert private == [RunFinished(result=replace(RESULT, context=FrozenDict()))]
    assert whole == [finished]
    failed = run_failed(ProviderError("gone"))
    assert without_context(failed) is failed
    assert without_context(EVENTS[-1]) == replace(EVENTS[-1], partial=replace(RESULT, context=FrozenDict()))


async def test_a_silent_stream_sends_comments_that_a_reader_skips():
    reader, quiet_enough, sent = SseReader(), asyncio.Event(), []

    async def silent():
        yield TextDelta("x")
        await quiet_enough.wait()
        yield TextDelta("y")

    async with asyncio.timeout(60):
        async for chunk in sse_stream(silent(), keep_alive_s=0.04):
            sent.append(chunk)
            if sent.count(b": still here\n\n") == 2:
                quiet_enough.set()

    assert [event for chunk in sent for event in reader.feed(chunk)] == [TextDelta("x"), TextDelta("y")]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_a_run_of_a_reflection_agent_comes_back_event_by_event():
    model = ScriptedChatModel(calls("add", a=2, b=3), says("4", usage=Usage(5, 1)), says("five"))
    agent = ReflectionAgent(model=model, tools=[add], evaluator=lambda draft: draft.text == "five")

    events = [event async for event in agent.astream("2 + 3?", context={"tenant": "a"})]
    back = [event_from_json(event_to_json(event)) for event in events]

    assert back == events


class Streaming:
    """A model that writes word after word until it is told to stop."""

    name = "streaming"

    def __init__(self):
        self.open = False
        self.began = asyncio.Event()

    async def complete(self, request):
        self.open = True
        self.began.set()
        try:
            while True:
                request.emit(TextDelta("word "))
                await asyncio.sleep(0.001)
        finally:
            self.open = False


@pytest.mark.parametrize("write", [sse_stream, json_lines], ids=lambda write: write.__name__)
async def test_a_reader_that_stops_early_closes_the_models_stream_and_leaves_no_half_stored_turn(write):
    model, memory = Streaming(), WindowChatMemory()
    agent = SimpleReactAgent(model=model, memory=memory)

    body = write(agent.astream("Go on for ever.", conversation_id="c1"))
    seen = [await anext(body) for _ in range(4)]
    assert model.open
    await body.aclose()

    assert len(seen) == 4
    assert not model.open
    assert await memory.get("c1") == ()


async def test_a_reader_that_is_cancelled_while_it_waits_closes_the_models_stream_too():
    model = Streaming()
    agent = SimpleReactAgent(model=model)

    async def read():
        async for _ in sse_stream(agent.astream("Go on for ever.")):
            pass

    reading = asyncio.create_task(read())
    await model.began.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert not model.open
