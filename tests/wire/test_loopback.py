"""The loopback server: scripted replies, a record of what came, and a strict judge of it."""

import asyncio
import json
import subprocess
import sys
import time

import aiohttp
import pytest

from reactflow.loopback import (
    LoopbackServer,
    Reply,
    chunk,
    completion,
    reply_calls,
    reply_error,
    reply_text,
    respond_in_turn,
    respond_with_rounds,
    stream_text,
)
from reactflow.wire.legality import check_request

USER = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "3"}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def talk(*messages, **fields):
    return {"model": "m", "messages": list(messages), **fields}


@pytest.mark.parametrize(
    "body",
    [
        talk(USER),
        talk({"role": "system", "content": "x"}, USER, {"role": "assistant", "content": "y"}, USER),
        talk(
            {
                "role": "user",
                "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "u"}}],
            }
        ),
        talk(USER, CALLING, RESULT, tools=[TOOL], tool_choice="auto", parallel_tool_calls=False),
        talk(USER, CALLING, RESULT, USER),
        talk(USER, {**CALLING, "content": "look"}, RESULT),
        talk(
            USER, CALLING, RESULT, {**CALLING, "tool_calls": [{**CALL, "id": "c2"}]}, {**RESULT, "tool_call_id": "c2"}
        ),
        talk(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "add"}}),
        talk(USER, stream=True, stream_options={"include_usage": True}),
    ],
)
def test_a_legal_request_has_no_violations(body):
    assert check_request(body, strict_fields=True) == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ([], "not a JSON object"),
        ({"messages": [USER]}, "model must be"),
        (talk(USER, stream="yes"), "stream must be a boolean"),
        (talk(USER, stream_options={}), "only allowed when stream"),
        (talk(USER, mood=1), "unknown field 'mood'"),
        (talk(), "messages must be a non-empty list"),
        (talk("x"), "unknown role None"),
        (talk({"role": "judge", "content": "x"}), "unknown role 'judge'"),
        (talk(USER, {"role": "system", "content": "x"}, USER), "only allowed first"),
        (talk({"role": "user", "content": " "}), "must be a non-empty string"),
        (talk({"role": "user", "content": []}), "content is empty"),
        (talk({"role": "user", "content": ["x"]}), "unknown kind of part"),
        (talk({"role": "user", "content": [{"type": "text", "text": ""}]}), "text is empty"),
        (talk({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}), "has no url"),
        (talk(USER, {"role": "assistant", "content": None}, USER), "must be a non-empty string"),
        (talk(USER, {"role": "assistant", "content": "a"}), "last message must be"),
        (talk(USER, *[{"role": "assistant", "content": "a"}] * 2, USER), "two assistant messages"),
        (talk(USER, {**CALLING, "tool_calls": []}, USER), "non-empty list"),
        (talk(USER, {**CALLING, "content": ""}, RESULT), "must be a non-empty string"),
        (talk(USER, {**CALLING, "tool_calls": ["x"]}, RESULT), "must have the type"),
        (talk(USER, {**CALLING, "tool_calls": [{**CALL, "id": ""}]}, RESULT), "1 to 64 characters"),
        (talk(USER, {**CALLING, "tool_calls": [CALL, CALL]}, RESULT, RESULT), "is not unique"),
        (talk(USER, CALLING), "have no tool message"),
        (talk(USER, CALLING, USER), "no tool message directly after"),
        (talk(USER, CALLING, {**RESULT, "tool_call_id": "c9"}), "out of order"),
        (talk(USER, CALLING, RESULT, RESULT), "that no call asked for"),
        (talk(USER, RESULT), "that no call asked for"),
        (talk(USER, CALLING, {**RESULT, "content": ""}), "must be a non-empty string"),
        (
            talk(USER, {**CALLING, "tool_calls": [{**CALL, "function": {"name": "a b", "arguments": "{}"}}]}, RESULT),
            "a-z",
        ),
        (
            talk(USER, {**CALLING, "tool_calls": [{**CALL, "function": {"name": "add", "arguments": "[]"}}]}, RESULT),
            "object",
        ),
        (
            talk(USER, {**CALLING, "tool_calls": [{**CALL, "function": {"name": "add", "arguments": {}}}]}, RESULT),
            "object",
        ),
        (
            talk(
                USER,
                {**CALLING, "tool_calls": [{**CALL, "function": {"name": "x", "arguments": '{"a": NaN}'}}]},
                RESULT,
            ),
            "object",
        ),
        (talk(USER, tools=[]), "tools must be a non-empty list"),
        (talk(USER, tools=["x"]), "must have the type"),
        (talk(USER, tools=[TOOL, TOOL]), "two tools are called 'add'"),
        (talk(USER, tools=[{"type": "function", "function": {"name": "加"}}]), "must be 1 to 64"),
        (talk(USER, tools=[{"type": "function", "function": {"name": "x", "description": None}}]), "description"),
        (talk(USER, tools=[{"type": "function", "function": {"name": "x", "parameters": {}}}]), "of the type object"),
        (
            talk(
                USER,
                tools=[
                    {"type": "function", "function": {"name": "x", "parameters": {"type": "object", "required": 7}}}
                ],
            ),
            "no JSON Schema",
        ),
        (talk(USER, tool_choice="auto"), "only allowed beside tools"),
        (talk(USER, parallel_tool_calls=True), "only allowed beside tools"),
        (talk(USER, tools=[TOOL], tool_choice="maybe"), "'maybe' is unknown"),
        (talk(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "x"}}), "not among the tools"),
    ],
)
def test_an_illegal_request_is_told_what_is_wrong(body, says):
    violations = check_request(body, strict_fields=True)

    assert any(says in violation for violation in violations), violations


async def post(server, body, *, path="/chat/completions"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with (
        aiohttp.ClientSession() as session,
        session.post(server.base_url + path, data=data, headers={"Authorization": "Bearer secret"}) as response,
    ):
        return response.status, await response.read()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (talk(), "messages must be"),
        (b"{", "is not JSON"),
        (b"\xff", "is not UTF-8"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b"", "is empty"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "\\ud800"}]}', "lone surrogate"),
    ],
)
async def test_an_illegal_request_gets_a_400_and_is_noted(serve, body, says):
    server = serve(reply_text("unused"))

    status, reply = await post(server, body)

    assert (status, json.loads(reply)["error"]["type"]) == (400, "invalid_request_error")
    assert says in json.loads(reply)["error"]["message"]
    with pytest.raises(AssertionError, match=f"illegal requests:\nrequest 1: .*{says}"):
        server.assert_legal()


async def test_a_request_to_another_path_is_illegal(serve):
    server = serve(reply_text("unused"))

    assert (await post(server, talk(USER), path="/completions"))[0] == 400
    assert server.violations == ["request 1: there is nothing at /v1/completions"]


async def test_the_check_can_be_left_out(serve):
    server = serve(reply_text("ok"), check=False)

    assert (await post(server, talk()))[0] == 200
    server.assert_legal()


async def test_a_valid_surrogate_pair_is_no_violation(serve):
    server = serve(reply_text("ok"))

    assert (await post(server, b'{"model": "m", "messages": [{"role": "user", "content": "\\ud83d\\ude00"}]}'))[
        0
    ] == 200


async def test_a_request_is_recorded_without_the_key(serve):
    server = serve(reply_text("ok"))
    await post(server, talk(USER))

    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/chat/completions", talk(USER))
    assert "secret" not in repr(request) + repr(request.headers)


async def test_replies_come_in_order_and_one_too_many_is_a_violation(serve):
    server = serve(reply_text("one"), lambda request: reply_text(request.body["messages"][0]["content"]))

    texts = [json.loads((await post(server, talk(USER)))[1]) for _ in range(3)]

    assert [text["choices"][0]["message"]["content"] for text in texts[:2]] == ["one", "hi"]
    assert texts[2]["error"]["message"] == "the script has no reply left"
    assert server.violations == ["request 3: the script has no reply left"]


def events_of(data):
    return [json.loads(line[6:]) for line in data.splitlines() if line.startswith(b"data: {")]


async def test_a_reply_is_streamed_where_a_stream_is_asked_for(serve):
    server = serve(reply_calls(("add", {"a": 1}), text="look"), reply_text("ok"), stream_text("o", "k"))
    ask = talk(USER, stream=True)

    calls, whole, pieces = [(await post(server, ask))[1] for _ in range(3)]

    assert events_of(calls)[0]["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert [event["choices"][0]["delta"].get("content") for event in events_of(whole)[:2]] == ["ok", None]
    assert events_of(pieces)[-1]["usage"]["total_tokens"] == 15
    assert all(data.endswith(b"data: [DONE]\n\n") for data in (calls, whole, pieces))


async def test_an_odd_body_goes_out_whole_even_where_a_stream_is_asked_for(serve):
    server = serve(Reply(body={"choices": [7]}), Reply(body={"choices": []}))

    assert [json.loads((await post(server, talk(USER, stream=True)))[1]) for _ in range(2)] == [
        {"choices": [7]},
        {"choices": []},
    ]


async def test_status_headers_and_delay_are_the_scripts(serve):
    server = serve(reply_error(429, "later", code="rate", delay=0.2, headers={"Retry-After": "1"}), delay=0.1)
    started = time.monotonic()

    status, data = await post(server, talk(USER))

    assert (status, json.loads(data)["error"]) == (
        429,
        {"message": "later", "type": None, "param": None, "code": "rate"},
    )
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize("reply", [Reply(body="half", end="drop"), Reply(events=[chunk({})], end="drop")])
async def test_a_dropped_connection_breaks_the_body(serve, reply):
    server = serve(reply)

    with pytest.raises(aiohttp.ClientPayloadError):
        await post(server, talk(USER))


async def test_a_server_that_hangs_can_still_be_stopped():
    with LoopbackServer(Reply(body="x", end="hang"), Reply(events=[], end="hang")) as server:
        asking = [asyncio.create_task(post(server, talk(USER))) for _ in range(2)]
        await asyncio.sleep(0.2)
        assert not any(task.done() for task in asking)
        stopping = asyncio.get_running_loop().run_in_executor(None, server.stop)
        results = await asyncio.gather(*asking, return_exceptions=True)
        await stopping

    assert all(isinstance(result, aiohttp.ClientError) for result in results)


async def test_the_server_is_a_context_manager_of_both_kinds():
    async with LoopbackServer(reply_text("ok")) as server:
        assert (await post(server, talk(USER)))[0] == 200
    LoopbackServer().stop()  # one that never began


async def test_a_thousand_requests_at_once_wait_side_by_side():
    async with (
        LoopbackServer(respond=lambda request: reply_text("ok"), delay=0.2) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        started = time.monotonic()

        async def ask():
            async with session.post(server.base_url + "/chat/completions", json=talk(USER)) as response:
                return response.status

        statuses = await asyncio.gather(*(ask() for _ in range(1000)))

    assert statuses == [200] * 1000
    assert time.monotonic() - started < 100


def test_ready_responders_answer_by_the_conversation_or_in_turn():
    class Asked:
        body = talk(USER)

    rounds = respond_with_rounds(1, result_chars=5, deltas=2)
    first = rounds(Asked)
    Asked.body = talk(USER, CALLING, RESULT)
    assert json.loads(first.body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])["note"] == "xxxxx"
    assert rounds(Asked).body == completion({"content": "word word "})
    Asked.body["stream"] = True
    assert len(rounds(Asked).events) == 5
    turns = respond_in_turn("a", "b")
    assert [turns(Asked).body["choices"][0]["message"]["content"] for _ in range(3)] == ["a", "b", "a"]


@pytest.mark.parametrize(("arguments", "answer"), [(["--tool-rounds", "0"], "word "), (["--texts", "a"], "a")])
async def test_the_server_runs_as_a_program_too(arguments, answer):
    command = [sys.executable, "-m", "reactflow.loopback", "--no-check", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220

        class Program:
            base_url = process.stdout.readline().strip()

        status, data = await post(Program, talk(USER))
        process.stdin.close()

    assert (status, process.returncode) == (200, 0)
    assert json.loads(data)["choices"][0]["message"]["content"] == answer
