"""Streams: the same reply in every way that servers cut it."""

import asyncio
import json
import time
import tracemalloc

import pytest

from reactflow.errors import ProviderError
from reactflow.events import ReasoningDelta, TextDelta, TextWithdrawn
from reactflow.loopback import Reply, chunk, completion, reply_text, stream_text
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.openai_model import OpenAIChatModel
from reactflow.wire import receive as receive_module
from reactflow.wire.receive import Reception
from reactflow.wire.reply import BadReply, settle
from reactflow.wire.stream import DONE, EventReader

OFFERED = {"add", "get_weather", "ping"}


def piece(arguments=None, *, name=None, id=None, index=0):
    """One fragment of one call, as the delta of an event."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fields = (("index", index), ("id", id), ("function", function))
    return chunk({"tool_calls": [{key: value for key, value in fields if value is not None}]})


END = chunk({}, finish_reason="tool_calls")


async def receive(*events, end=b"data: [DONE]\n\n", emit=None):
    async def chunks():
        for event in events:
            yield event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
        yield end

    run = Run(question=UserMessage("?"))
    request = ChatRequest(messages=(run.question,), run=run, stream=True, emit=emit or (lambda event: None))
    until = asyncio.get_running_loop().time() + 5
    heard = await Reception(request, timeout=5, pause=5, until=until).read(chunks())
    return settle(heard, offered=OFFERED, used=())


async def calls_of(*events):
    message = (await receive(*events, END)).message
    return [(call.name, call.arguments) for call in message.tool_calls]


ONE = [("add", '{"a": 1, "b": 2}')]
TWO = [("add", '{"a": 1}'), ("add", '{"a": 2}')]


SIDE_BY_SIDE = [
    *(piece('{"a":', name="add", id=f"c{index}", index=index) for index in (0, 1)),
    *(piece(f" {index + 1}}}", index=index) for index in (0, 1)),
]


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        ([piece('{"a": 1, ', name="add", id="c1"), piece('"b": 2}')], ONE),
        ([piece('{"a": 1, ', name="add", id="c1"), piece('"b": 2}', name="", id="")], ONE),
        ([piece('{"a": 1, ', name="add", id="c1"), piece('"b": 2}', name="add", id="c1")], ONE),
        ([piece('{"a": 1, ', name="add", id="c1", index=None), piece('"b": 2}', id="c1", index=None)], ONE),
        ([piece('{"a": 1, ', name="add", index=None), piece('"b": 2}', index=None)], ONE),
        ([piece('{"a": 1, ', name="add", id="x1"), piece('"b": 2}', id="x2")], ONE),
        ([piece('{"a": 1, ', name="add"), piece('"b": 2}', id="late")], ONE),
        ([piece('{"a": 1, ', name="add", id="c1", index="0"), piece('"b": 2}', index="0")], ONE),
        ([piece('{"a": 1, "b": 2}', name="add", id="c1"), piece('{"a": 1, "b": 2}', name="add", id="c1")], ONE),
        ([piece('{"a": 1, "b": 2}', name="add"), piece('{"a": 1, "b": 2}', name="add")], ONE),
        ([piece('{"a": 1, "b": 2}', name="add"), piece("", name="add")], ONE),
        ([piece('{"a"', name="add", id="c1"), piece('{"a": 1'), piece('{"a": 1, "b": 2}')], ONE),
        ([piece('{"a": 1, ', name="add", id="c1"), piece('"b": 2}'), piece('{"a": 1, '), piece('"b": 2}')], ONE),
        ([piece({"a": 1, "b": 2}, name="add", id="c1")], ONE),
        ([piece('{"a": 1}', name="add", id="c1"), piece('{"a": 2}', name="add", id="c2")], TWO),
        ([piece('{"a": 1}', name="add", id="c1", index=1), piece('{"a": 2}', name="add", id="c1", index=2)], TWO),
        ([piece('{"a": 1}', name="add"), piece('{"a": 2}', name="add")], TWO),
        ([piece('{"a": 1}', name="add", index=None), piece('{"a": 2}', name="add", index=None)], TWO),
        ([piece('{"a": 1}', name="add", id="c1", index=None), piece('{"a": 2}', name="add", id="c2", index=None)], TWO),
        (SIDE_BY_SIDE, TWO),
        ([piece("{}", name="add", id="c1"), piece(name="ping")], [("add", "{}"), ("ping", "{}")]),
        ([piece(name="get_", id="c1"), piece(name="weather"), piece("{}")], [("get_weather", "{}")]),
        ([piece(name="get", id="c1"), piece(name="get_weather"), piece("{}")], [("get_weather", "{}")]),
        ([piece(name="ping", id="c1")], [("ping", "{}")]),
        ([piece("{}")], [("unnamed", "{}")]),
        (
            [chunk({"tool_calls": [None]}), chunk({"tool_calls": {"id": "c1", "function": {"name": "ping"}}})],
            [("ping", "{}")],
        ),
        ([chunk({"function_call": {"name": "add"}}), chunk({"function_call": {"arguments": '{"a": 1, "b": 2}'}})], ONE),
    ],
)
async def test_fragments_become_the_calls_that_the_model_made(events, calls):
    assert await calls_of(*events) == calls


async def test_a_function_call_beside_the_tool_calls_says_the_same_again():
    function = {"name": "ping", "arguments": "{}"}
    delta = {"function_call": function, "tool_calls": [{"index": 0, "id": "c1", "function": function}]}

    assert await calls_of(chunk(delta)) == [("ping", "{}")]


@pytest.mark.parametrize("calls", [7, "add", [7]])
async def test_something_else_in_the_place_of_the_calls_is_an_error(calls):
    with pytest.raises(BadReply, match="cannot be read"):
        await receive(chunk({"tool_calls": calls}), END)


async def test_reasoning_is_told_apart_and_its_pieces_are_joined():
    told = []
    details = [{"type": "reasoning.text", "index": 0, "text": "h"}]
    more = [{"type": "reasoning.text", "index": 0, "text": "m", "signature": "s"}, {"type": "reasoning.encrypted"}]

    reply = await receive(
        chunk({"reasoning_content": "h", "reasoning": "h", "reasoning_details": details}),
        chunk({"reasoning_content": "m", "reasoning": "m", "reasoning_details": more}),
        chunk({"content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "FINAL"}]}),
        chunk({"thought_signature": "t", "x_mood": 1}, finish_reason="stop"),
        emit=told.append,
    )

    assert reply.message.extra == {
        "reasoning_content": "hm",
        "reasoning": "hm",
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "hm", "signature": "s"},
            {"type": "reasoning.encrypted"},
        ],
        "thought_signature": "t",
        "think": "so",
    }
    assert told == [ReasoningDelta("h"), ReasoningDelta("m"), ReasoningDelta("so"), TextDelta("FINAL")]


async def test_thinking_whose_beginning_the_template_swallowed_is_withdrawn():
    told = []

    reply = await receive(
        chunk({"content": "let me see"}),
        chunk({"content": "\n</think>\n\nFINAL"}, finish_reason="stop"),
        emit=told.append,
    )

    assert (reply.text, reply.message.extra) == ("FINAL", {"think": "let me see\n"})
    assert told[-2:] == [TextWithdrawn(), TextDelta("FINAL")]


async def test_thinking_that_ends_in_mid_line_is_withdrawn_from_a_stream_too():
    told = []

    reply = await receive(
        chunk({"content": "so it is 4."}),
        chunk({"content": "</thi"}),
        chunk({"content": "nk>FINAL"}, finish_reason="stop"),
        emit=told.append,
    )

    assert (reply.text, reply.message.extra) == ("FINAL", {"think": "so it is 4."})
    assert told == [TextDelta("so it is 4."), TextWithdrawn(), TextDelta("FINAL")]


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
async def test_a_surrogate_pair_that_is_cut_between_two_events_is_one_character(field):
    told = []

    reply = await receive(
        chunk({field: "sun \ud83d"}),
        chunk({field: "\ude00 and \ud83d"}),
        chunk({field: " half, \ude00"}),
        chunk({"content": "!"}),
        chunk({field: "\ud83d"}, finish_reason="stop"),
        emit=told.append,
    )

    shown = "sun 😀 and \ufffd half, \ufffd\ufffd"
    assert {"content": reply.text, **reply.message.extra}[field].replace("!", "") == shown
    assert "".join(event.text for event in told).replace("!", "") == shown


async def test_a_surrogate_pair_that_is_cut_in_the_arguments_of_a_call_is_one_character():
    first = [piece('{"a": "\ud83d', name="add", id="c0"), piece('{"a": "\ud83c', name="add", id="c1", index=1)]
    second = [piece('\ude00"}'), piece('\udf1e"}', index=1)]

    assert await calls_of(*first, *second) == [("add", '{"a": "😀"}'), ("add", '{"a": "🌞"}')]


def message_of(content):
    return {"choices": [{"index": 0, "message": {"content": content}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "event",
    [
        chunk({"content": "half \ud83d"}, finish_reason="stop"),
        chunk({"content": "half \ud83d"}),
        chunk({"content": [{"type": "text", "text": "half \ud83d"}]}),
        chunk({"refusal": "half \ud83d"}),
        message_of("half \ud83d"),
        message_of([{"type": "text", "text": "half \ud83d"}]),
    ],
)
async def test_half_a_character_at_the_end_is_shown_as_one_in_a_whole_reply_is(event):
    assert (await receive(event)).text == "half \ufffd"


async def test_half_a_character_at_the_end_of_a_call_or_of_another_choice_adds_nothing():
    other = chunk({"content": "OTHER \ud83d"})
    other["choices"][0]["index"] = 1

    reply = await receive(
        chunk({"content": "FINAL"}), other, piece('{"a": "\ud83d', name="add", id="c1", index=None), END
    )

    assert reply.text == "FINAL"
    assert [(call.name, call.arguments) for call in reply.message.tool_calls] == [("add", '{"a": "')]


async def test_a_streamed_refusal_is_the_text():
    reply = await receive(chunk({"refusal": "I will "}), chunk({"refusal": "not."}), chunk({}, finish_reason="stop"))

    assert (reply.text, reply.finish_reason) == ("I will not.", "refusal")


async def test_of_two_choices_the_first_counts():
    other = chunk({"content": "OTHER"})
    other["choices"][0]["index"] = 1

    assert (
        await receive(chunk({"content": "FI"}), other, chunk({"content": "NAL"}, finish_reason="stop"))
    ).text == "FINAL"


async def test_usage_is_a_running_total_wherever_it_stands():
    in_choice = chunk({}, finish_reason="stop")
    in_choice["choices"][0]["usage"] = {"prompt_tokens": 10, "completion_tokens": 5}

    assert (await receive(chunk({"content": "x"}), in_choice)).usage.total_tokens == 15
    running = [chunk({"content": "x"}, usage={"prompt_tokens": 10, "completion_tokens": n}) for n in (1, 2, 3)]
    assert (await receive(*running, chunk({}, finish_reason="stop"))).usage.output_tokens == 3


@pytest.mark.parametrize(
    "event", [b"data: null\n\n", b"data: {}\n\n", b'data: {"type": "ping"}\n\n', b"data:\n\n", b"event: x\n\n"]
)
async def test_an_event_that_says_nothing_is_skipped(event):
    assert (await receive(event, chunk({"content": "FINAL"}, finish_reason="stop"), event)).text == "FINAL"


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (b"data: {broken\n\n", "not JSON"),
        (b"data: 7\n\n", "is int"),
        (b'data: {"error": {"message": "overloaded"}}\n\n', "is an error"),
        (b'data: {"choices": [{"delta": 7}]}\n\n', "delta that is 7"),
        (b'data: {"choices": [{"delta": {"content": 7}}]}\n\n', "content is 7"),
        (b'data: {"choices": [{"delta": {}, "finish_reason": "error"}]}\n\n', "gave up"),
    ],
)
async def test_an_event_that_is_wrong_is_an_error(event, says):
    with pytest.raises(BadReply, match=says):
        await receive(chunk({"content": "FI"}), event, chunk({"content": "NAL"}, finish_reason="stop"))


async def test_a_single_message_in_a_stream_is_read():
    whole = {"choices": [{"message": {"content": "FINAL"}, "finish_reason": "stop"}]}

    assert (await receive(whole)).text == "FINAL"


async def test_a_stream_that_only_closes_is_complete_with_a_finish_reason_and_not_without():
    assert (await receive(chunk({"content": "FINAL"}, finish_reason="stop"), end=b"")).text == "FINAL"
    assert (await receive(chunk({"content": "FINAL"}), end=b"data: [DONE]")).text == "FINAL"
    last = b"data: " + json.dumps(chunk({"content": "NAL"}, finish_reason="stop")).encode()
    assert (await receive(chunk({"content": "FI"}), end=last)).text == "FINAL"
    with pytest.raises(BadReply, match="ended in the middle"):
        await receive(chunk({"content": "FINAL"}), end=b"")


def test_events_are_found_however_their_lines_are_written():
    text = (
        b'\xef\xbb\xbf: hi\nevent: x\rdata:{"a":1}\r\n\r\nid: 7\ndata: {"a":\ndata: 2}\n\nretry: 5\n\ndata: [DONE]\n\n'
    )
    reader = EventReader()

    events = [event for at in range(len(text)) for event in reader.feed(text[at : at + 1])]

    assert events[-1] is DONE
    assert events[-2] == {"a": 2}


async def stream(server, told=None, **settings):
    run = Run(question=UserMessage("?"))
    emit = (told if told is not None else []).append
    request = ChatRequest(messages=(run.question,), run=run, stream=True, emit=emit)
    return await OpenAIChatModel("m", base_url=server.base_url, **settings).complete(request)


async def test_a_whole_reply_to_a_request_for_a_stream_is_read(serve):
    body = json.dumps(completion({"content": "FINAL"}))
    server = serve(Reply(body=body), Reply(body=" \n" + body))

    assert [(await stream(server)).text for _ in range(2)] == ["FINAL", "FINAL"]


async def test_a_stream_in_reply_to_a_request_for_a_whole_reply_is_read(serve):
    server = serve(stream_text("FI", "NAL"))
    run = Run(question=UserMessage("?"))

    reply = await OpenAIChatModel("m", base_url=server.base_url).complete(
        ChatRequest(messages=(run.question,), run=run)
    )

    assert reply.text == "FINAL"


@pytest.mark.parametrize("finish", ["stop", None])
async def test_a_server_that_leaves_the_stream_open_after_its_end_is_not_waited_for(serve, monkeypatch, finish):
    monkeypatch.setattr(receive_module, "AFTER_END_S", 0.2)
    end = [b"data: [DONE]\n\n"] if finish is None else []
    open_end = stream_text("FINAL", finish_reason=finish)
    server = serve(Reply(events=[*open_end.events, *end], end="hang"))
    started = time.monotonic()

    assert (await stream(server)).text == "FINAL"
    assert time.monotonic() - started < 60


async def test_a_connection_that_breaks_after_the_finish_reason_takes_nothing_away(serve):
    server = serve(Reply(events=stream_text("FINAL").events, end="drop"))

    assert (await stream(server, retries=0)).text == "FINAL"


async def test_comments_keep_a_stream_alive_only_until_the_time_out(serve):
    alive = [part for _ in range(300) for part in (": still here\n\n", 0.1)]
    for _ in range(3):  # a machine that stands still for 0.4 s looks like a server that is silent
        server = serve(Reply(events=[chunk({"content": "FI"}), *alive]))
        started = time.monotonic()
        with pytest.raises(ProviderError, match="stopped in the middle of its reply"):
            await stream(server, timeout=1.0, stream_read_timeout=0.4, retries=0)
        if (took := time.monotonic() - started) > 0.9:
            break

    assert 0.9 < took < 25


async def test_a_silent_stream_is_given_up_after_the_pause_and_not_before(serve):
    slow = [part for word in ["one", "two", "three", "four"] for part in (chunk({"content": word}), 0.5)]
    end = chunk({}, finish_reason="stop")

    for last in (False, False, True):  # a machine that stands still for a second looks like a server that is silent
        try:
            reply = await stream(serve(Reply(events=[*slow, end])), stream_read_timeout=1.5, retries=0)
            break
        except ProviderError:
            if last:
                raise
    assert reply.text == "onetwothreefour"
    server, told = serve(Reply(events=[*slow, 20, end])), []
    with pytest.raises(ProviderError, match="stopped in the middle"):
        await stream(server, told, stream_read_timeout=1.5, retries=0)
    assert told[-1] == TextWithdrawn()


async def test_connections_are_used_again_after_a_stream(serve):
    ports = set()

    def respond(request):
        ports.add(request.peer)
        return stream_text("FI", "NAL")

    server = serve(respond=respond)
    model = OpenAIChatModel("m", base_url=server.base_url)
    run = Run(question=UserMessage("?"))

    for _ in range(5):
        await model.complete(ChatRequest(messages=(run.question,), run=run, stream=True))

    assert len(ports) == 1


async def test_a_reply_without_an_end_in_size_is_an_error(serve, monkeypatch):
    monkeypatch.setattr(receive_module, "MAX_REPLY_BYTES", 10_000)
    server = serve(reply_text("x" * 20_000), stream_text(*["x" * 1000] * 20))

    for _ in range(2):
        with pytest.raises(ProviderError, match="longer than 10000 bytes"):
            await stream(server, retries=0)


async def taken(chunks, *, stream=False):
    """What is made of *chunks*, for a request of a whole reply or of a stream, in at most ten seconds."""
    run = Run(question=UserMessage("?"))
    request = ChatRequest(messages=(run.question,), run=run, stream=stream)
    reception = Reception(request, timeout=10, pause=10, until=asyncio.get_running_loop().time() + 10)
    return settle(await reception.read(chunks), offered=(), used=())


@pytest.mark.parametrize("blank", [b" ", b"\n", b"\r\n", b"\t", b"\xef\xbb\xbf"])
async def test_a_long_run_of_blanks_before_a_reply_is_not_kept(blank):
    async def chunks():
        for _ in range(128):
            yield blank * ((1 << 16) // len(blank))
        yield json.dumps(completion({"content": "FINAL"})).encode()

    tracemalloc.start()
    try:
        assert (await taken(chunks())).text == "FINAL"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [1, 5])
async def test_blanks_before_a_stream_are_skipped(size):
    text = b"\xef\xbb\xbf \r\n\n\t data: " + json.dumps(chunk({"content": "FINAL"}, finish_reason="stop")).encode()

    async def chunks():
        for at in range(0, len(text), size):
            yield text[at : at + size]

    assert (await taken(chunks())).text == "FINAL"


async def test_a_stream_that_nobody_asked_for_must_be_there_as_soon_as_a_whole_reply(monkeypatch):
    loop = asyncio.get_running_loop()
    later = [0.0]
    monkeypatch.setattr(loop, "time", lambda now=loop.time: now() + later[0])

    async def chunks():
        for _ in range(5):
            yield b"data: " + json.dumps(chunk({"content": "x"})).encode() + b"\n\n"
            later[0] += 4  # nobody waits for it
            await asyncio.sleep(0)
        yield b"data: [DONE]\n\n"

    with pytest.raises(TimeoutError, match="nothing more came"):
        await taken(chunks())
    assert (await taken(chunks(), stream=True)).text == "xxxxx"
