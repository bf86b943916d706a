"""What is sent: legal everywhere, and each request a prefix of the next."""

import json
from itertools import pairwise

import pytest

from reactflow.errors import ConfigurationError
from reactflow.frozen import FrozenDict
from reactflow.loopback import Reply, completion, reply_calls, reply_text
from reactflow.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from reactflow.model import ChatRequest, Run, ToolSpec
from reactflow.openai_model import OpenAIChatModel
from reactflow.wire.request import RequestWriter, is_strict

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
QUESTION = UserMessage("What is 1 + 2?")
CALLING = AssistantMessage("", (ToolCall("c1", "add", '{"a": 1}'),))
RESULT = ToolMessage("3", "c1", "add")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def request_of(*messages, **fields):
    return ChatRequest(messages=messages or (QUESTION,), run=Run(question=QUESTION), **fields)


def sent(request, **settings):
    return json.loads(RequestWriter(model="m", **settings).write(request))


def sent_message(message, **settings):
    return sent(request_of(QUESTION, message, QUESTION), **settings)["messages"][1]


async def test_each_request_of_a_run_is_a_prefix_of_the_next(serve, talk):
    calls = [reply_calls(("echo", {"text": f"第{number}步"}), text="look") for number in range(4)]
    server = serve(*calls, reply_text("FINAL"))

    await talk(OpenAIChatModel("m", base_url=server.base_url, temperature=0.5), system_prompt="Be short.")

    bodies = [request.raw for request in server.requests]
    assert len(bodies) == 5
    for body, later in pairwise(bodies):
        assert later.startswith(body.removesuffix(b"]}"))
    server.assert_legal()


def test_a_message_is_written_once_for_all_rounds_of_a_run():
    writer = RequestWriter(model="m")
    request = request_of(QUESTION)
    writer.write(request)
    pieces = writer.written.of(request.run).messages
    first = pieces[id(QUESTION)][1]

    writer.write(request.followed_by(CALLING, RESULT))

    assert pieces[id(QUESTION)][1] is first
    assert len(pieces) == 3


def test_what_was_written_for_a_run_goes_with_it():
    writer = RequestWriter(model="m")
    writer.write(request_of(QUESTION))

    assert len(writer.written._notes) == 0


def test_an_empty_text_is_never_sent():
    messages = sent(request_of(SystemMessage(" "), UserMessage(""), CALLING, ToolMessage("", "c1", "add")))["messages"]

    assert [message["content"] for message in messages] == ["(no text)", None, "(no output)"]
    assert "messages" in sent(request_of(QUESTION, AssistantMessage(" \n"), QUESTION))
    assert len(sent(request_of(QUESTION, AssistantMessage(" \n"), QUESTION))["messages"]) == 2


def test_a_request_without_a_word_is_refused():
    with pytest.raises(ConfigurationError, match="no message with any text"):
        sent(request_of(SystemMessage("")))


def test_images_go_as_parts_and_a_blank_text_beside_them_does_not():
    shown = sent(
        request_of(UserMessage("Look.", ("https://x/y.png",)), UserMessage(" ", ("data:image/png;base64,AA",)))
    )

    assert shown["messages"][0]["content"] == [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
    ]
    assert [part["type"] for part in shown["messages"][1]["content"]] == ["image_url"]


def test_lone_surrogates_become_replacement_characters_and_pairs_are_joined():
    assert sent(request_of(UserMessage("a\ud800b\ud83d\ude00c 北京")))["messages"][0]["content"] == "a�b😀c 北京"


@pytest.mark.parametrize("arguments", ['{"a": 1, "b', "{'a': 1}", '{"a": NaN}', "[1]", '"x"', "7", "null", ""])
def test_arguments_that_cannot_be_read_are_sent_back_as_an_empty_object(arguments):
    call = sent_message(AssistantMessage("", (ToolCall("c1", "add", arguments),)))["tool_calls"][0]

    assert call == {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}


def test_tools_and_what_belongs_to_them_are_sent_together_or_not_at_all():
    options = {"parallel_tool_calls": False, "tool_choice": "required"}
    without = sent(request_of(tool_choice="none"), options=options)
    with_tools = sent(request_of(tools=(ADD, ToolSpec("ping")), tool_choice="add"), options=options)

    assert without.keys() == {"model", "messages"}
    assert with_tools["parallel_tool_calls"] is False
    assert with_tools["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert with_tools["tools"][1]["function"] == {
        "name": "ping",
        "parameters": {"type": "object", "properties": {}},
    }


@pytest.mark.parametrize(
    ("history", "tools"),
    [((QUESTION, CALLING, RESULT), ["add"]), ((QUESTION,), None)],
    ids=["with tool calls", "without"],
)
def test_a_server_that_insists_on_tools_beside_tool_history_gets_them(history, tools):
    final = sent(request_of(*history, tool_choice="none"), keep_tools_on_final=True)

    assert [tool["function"]["name"] for tool in final["tools"]] == tools if tools else "tools" not in final
    assert final.get("tool_choice") == ("none" if tools else None)


def test_the_tools_kept_for_the_final_request_are_the_ones_of_the_run():
    writer = RequestWriter(model="m", keep_tools_on_final=True)
    request = request_of(QUESTION, tools=(ADD,))
    writer.write(request)
    final = json.loads(writer.write(request.followed_by(CALLING, RESULT).replace(tools=(), tool_choice="none")))

    assert final["tools"][0]["function"]["description"] == "Add."
    assert final["tool_choice"] == "none"


THINKING = FrozenDict(
    reasoning_content="hm", reasoning_details=[{"type": "x"}], think="so", call_fields={"c1": {"s": 1}}
)


@pytest.mark.parametrize(
    ("replay", "with_calls", "without"),
    [
        (None, ("hm", "<think>so</think>\n\nlook"), (None, "look")),
        (True, ("hm", "<think>so</think>\n\nlook"), ("hm", "<think>so</think>\n\nlook")),
        (False, (None, "look"), (None, "look")),
    ],
)
def test_thinking_goes_back_where_the_server_wants_it(replay, with_calls, without):
    calling = AssistantMessage("look", CALLING.tool_calls, THINKING)
    call = sent(request_of(QUESTION, calling, RESULT), replay_reasoning=replay)["messages"][1]
    answer = sent_message(AssistantMessage("look", extra=THINKING), replay_reasoning=replay)

    assert (call.get("reasoning_content"), call["content"]) == with_calls
    assert (answer.get("reasoning_content"), answer["content"]) == without
    assert call["reasoning_details"] == answer["reasoning_details"] == [{"type": "x"}]  # signatures always
    assert call["tool_calls"][0]["s"] == 1
    assert {"think", "call_fields"}.isdisjoint(call.keys() | answer.keys())


def test_the_options_of_a_request_win_and_none_leaves_one_out():
    body = sent(
        request_of(options={"temperature": 0, "seed": None, "extra_body": {"top_k": 5}}),
        options={"temperature": 1, "seed": 7, "stop": ["\n"]},
    )

    assert body == {
        "model": "m",
        "temperature": 0,
        "stop": ["\n"],
        "top_k": 5,
        "messages": [{"role": "user", "content": QUESTION.text}],
    }


@pytest.mark.parametrize("name", ["messages", "model", "stream", "tools"])
def test_an_option_that_the_framework_sets_is_refused(name):
    with pytest.raises(ConfigurationError, match=f"The option '{name}' is set by the framework"):
        sent(request_of(options={name: 1}))


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_an_option_that_is_no_json_is_refused_when_the_model_is_made(value):
    with pytest.raises(ConfigurationError, match="cannot be written as JSON"):
        OpenAIChatModel("m", api_key="k", temperature=value)


def test_a_tool_whose_schema_is_no_json_is_refused():
    with pytest.raises(ConfigurationError, match="parameters of a tool"):
        sent(request_of(tools=(ToolSpec("bad", parameters={"type": object()}),)))


def test_a_stream_asks_for_its_usage_unless_told_not_to():
    assert sent(request_of(stream=True))["stream_options"] == {"include_usage": True}
    assert "stream_options" not in sent(request_of(stream=True), options={"stream_options": None})
    assert "stream_options" not in sent(request_of(), options={"stream_options": {"include_usage": True}})


def test_a_schema_is_sent_as_the_response_format():
    body = sent(request_of(response_schema=SCHEMA))

    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    }


@pytest.mark.parametrize(
    ("response_format", "field", "schema"),
    [
        ("json_object", {"type": "json_object"}, SCHEMA),
        ("none", None, SCHEMA),
        ("json_schema", None, {"type": "array", "items": {"type": "integer"}}),
    ],
)
def test_a_schema_that_the_server_cannot_take_is_put_into_words(response_format, field, schema):
    request = request_of(SystemMessage("Be short."), QUESTION, response_schema=schema)
    writer = RequestWriter(model="m", response_format=response_format)
    body = json.loads(writer.write(request))
    again = writer.write(request)

    system = body["messages"][0]["content"]
    assert body.get("response_format") == field
    assert system.startswith("Be short.\n\nAnswer with JSON that satisfies this JSON Schema")
    assert json.dumps(schema) in system
    assert json.loads(again) == body
    assert len(writer.written.of(request.run).messages) == 2  # the same words are the same message


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (SCHEMA, True),
        ({**SCHEMA, "required": []}, False),
        ({**SCHEMA, "additionalProperties": True}, False),
        ({**SCHEMA, "minProperties": 1}, False),
        ({"type": "array", "items": {**SCHEMA, "required": []}}, False),
        ({"type": ["object", "null"]}, False),
        ({"anyOf": [{"type": "null"}, SCHEMA]}, True),
        ({**SCHEMA, "$defs": {"x": {"type": "object"}}}, False),
        (True, False),
    ],
)
def test_only_a_schema_that_openai_would_take_is_called_strict(schema, strict):
    assert is_strict(schema) is strict


async def test_a_body_of_megabytes_is_sent_in_pieces(serve):
    server = serve(reply_text("ok"))
    image = "data:image/png;base64," + "A" * (3 << 20)
    request = request_of(UserMessage("Look.", (image,)))

    response = await OpenAIChatModel("m", base_url=server.base_url).complete(request)

    assert response.text == "ok"
    assert server.requests[0].body["messages"][0]["content"][1]["image_url"]["url"] == image
    assert server.requests[0].headers["content-length"] == str(len(server.requests[0].raw))
    server.assert_legal()


async def test_headers_carry_what_the_user_and_the_environment_add_and_nothing_of_the_machine(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    server = serve(reply_text("ok"))

    await OpenAIChatModel("m", base_url=server.base_url, headers={"X-Title": "tests"}).complete(request_of())

    headers = server.requests[0].headers
    assert (headers["x-title"], headers["openai-organization"]) == ("tests", "org-1")
    assert headers["content-type"] == "application/json"
    assert [name for name in headers if name.startswith("x-stainless")] == []


async def test_a_key_may_come_from_a_function(serve):
    seen: list[str] = []
    server = serve(reply_text("one"), reply_text("two"))

    async def key() -> str:
        seen.append("asked")
        return f"key-{len(seen)}"

    model = OpenAIChatModel("m", base_url=server.base_url, api_key=key)

    assert [(await model.complete(request_of())).text for _ in range(2)] == ["one", "two"]
    assert seen == ["asked", "asked"]


async def test_a_query_in_the_base_url_stays_behind_the_path(serve):
    server = serve(reply_text("ok"))

    response = await OpenAIChatModel("m", base_url=server.base_url + "?api-version=1").complete(request_of())

    assert (response.text, server.requests[0].path) == ("ok", "/v1/chat/completions")


async def test_call_ids_are_unique_in_the_whole_conversation(serve, talk):
    again = completion(
        {"content": None, "tool_calls": [{"id": "call_1", "function": {"name": "ping"}}]}, finish_reason="tool_calls"
    )
    server = serve(Reply(body=again), Reply(body=again), reply_text("FINAL"))

    outcome = await talk(OpenAIChatModel("m", base_url=server.base_url))

    assert outcome.ran == [("ping", {}), ("ping", {})]
    server.assert_legal()
