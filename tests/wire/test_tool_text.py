"""Tool calls written as text: found where they are meant, and never in an ordinary answer."""

import json

import pytest

from reactflow.loopback import reply_text, stream_text
from reactflow.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from reactflow.model import ChatRequest, Run, ToolSpec
from reactflow.openai_model import OpenAIChatModel
from reactflow.wire.request import RequestWriter
from reactflow.wire.tool_text import (
    GO_ON,
    LOOKS_LIKE_CALL,
    READ_FROM_TEXT,
    envelope_schema,
    read_bare,
    read_envelope,
    read_tagged,
)

OFFERED = {"add", "ping"}
CALL = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


def plain(calls):
    return [(call.name, call.arguments) for call in calls]


FOUND = [("add", {"a": 1, "b": 2})]


@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        (f"<tool_call>{CALL}</tool_call>", FOUND, ""),
        (f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>{CALL}</tool_call>", FOUND * 2, ""),
        (f"Let me see.\n<tool_call>\n{CALL}\n</tool_call>", FOUND, "Let me see."),
        (f"  <tools>{CALL}</tools>", FOUND, ""),
        (f"<tool_call>{CALL}", FOUND, ""),
        ('<tool_call>{"name": "ping"}</tool_call>', [("ping", None)], ""),
        ('<tool_call>{"function": {"name": "ping", "arguments": "{}"}}</tool_call>', [("ping", "{}")], ""),
        ("<tool_call>{'name': 'add'}</tool_call>", [("add", "{'name': 'add'}")], ""),
        ("<tool_call>add(1, 2)</tool_call>", [(None, "add(1, 2)")], ""),
    ],
)
def test_calls_between_tags_are_found(text, calls, rest):
    found, left = read_tagged(text, OFFERED)

    assert (plain(found), left) == (calls, rest)


@pytest.mark.parametrize(
    "text",
    [
        "FINAL",
        f"Write `<tool_call>{CALL}</tool_call>` to call it.",
        f"Write:\n```\n<tool_call>{CALL}</tool_call>\n```\n",
        f"So:\n```xml\n<tool_call>{CALL}</tool_call>\n```",
        'An example:\n<tool_call>{"name": "other", "arguments": {}}</tool_call>',
        "An example:\n<tool_call>...</tool_call>",
    ],
)
def test_an_answer_that_speaks_of_the_tags_stays_an_answer(text):
    assert read_tagged(text, OFFERED) == ([], text)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (CALL, FOUND),
        (f"\n{CALL}\n", FOUND),
        (f"```json\n{CALL}\n```", FOUND),
        (f'```\n[{CALL}, {{"name": "ping", "arguments": {{}}}}]\n```', [*FOUND, ("ping", {})]),
        (f"{CALL}\n{CALL}\n", FOUND),
        ('{"tool": "add", "parameters": {"a": 1, "b": 2}}', FOUND),
        ('{"type": "function", "name": "functions.add", "arguments": {}}', [("functions.add", {})]),
    ],
)
def test_a_reply_that_is_nothing_but_a_call_is_one(text, calls):
    assert plain(read_bare(text, OFFERED)) == calls


def test_half_a_surrogate_pair_in_a_call_is_what_it_is_in_an_answer():
    text = '{"name": "add", "arguments": {"a": "\ud83d\ude00 \ud83d"}}'

    assert plain(read_bare(text, OFFERED)) == [("add", {"a": "😀 \ufffd"})]


@pytest.mark.parametrize(
    "text",
    [
        "FINAL",
        "7",
        "[]",
        "{}",
        '{"name": "add"}',
        '{"name": "add", "age": 7}',
        '{"name": "other", "arguments": {}}',
        '{"name": "add", "arguments": [1]}',
        '{"name": "add", "arguments": {}, "because": "x"}',
        f"The call is {CALL}",
        f"```json\n{CALL}\n```\nis how to call it.",
        f"[{CALL}, 7]",
        "{broken",
    ],
)
def test_any_other_reply_is_an_answer(text):
    assert read_bare(text, OFFERED) == []


@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        ('{"tool": "add", "arguments": {"a": 1, "b": 2}}', FOUND, ""),
        ('```json\n{"tool": "ping", "arguments": {}}\n```', [("ping", {})], ""),
        ('{"tool": "other", "arguments": {}}', [("other", {})], ""),
        (CALL, FOUND, ""),
        ('{"answer": "FINAL"}', [], "FINAL"),
        ('{"answer": {"n": 1}}', [], '{"n": 1}'),
        ("FINAL", [], "FINAL"),
        ('{"n": 1}', [], '{"n": 1}'),
        ('{"answer": "x", "n": 1}', [], '{"answer": "x", "n": 1}'),
    ],
)
def test_an_envelope_holds_a_call_or_an_answer(text, calls, rest):
    found, left = read_envelope(text, OFFERED)

    assert (plain(found), left) == (calls, rest)


def test_the_envelopes_schema_offers_each_tool_and_an_answer():
    reference = ToolSpec("tree", "", {"type": "object", "$defs": {}, "properties": {"x": {"$ref": "#/$defs/x"}}})
    forms = envelope_schema((ADD, reference), None, None)["anyOf"]

    assert [form["properties"].get("tool") for form in forms] == [{"const": "add"}, {"const": "tree"}, None]
    assert forms[0]["properties"]["arguments"]["required"] == ["a"]
    assert forms[1]["properties"]["arguments"] == {"type": "object"}
    assert forms[2]["properties"] == {"answer": {"type": "string"}}


@pytest.mark.parametrize(
    ("choice", "tools", "answers"),
    [("required", 2, 0), ("ping", 1, 0), ("none", 0, 1), ("auto", 2, 1)],
)
def test_the_envelopes_schema_follows_the_tool_choice(choice, tools, answers):
    forms = envelope_schema((ADD, ToolSpec("ping")), choice, {"type": "object"})["anyOf"]

    assert [("tool" in form["properties"]) for form in forms] == [True] * tools + [False] * answers


HISTORY = (
    SystemMessage("Be short."),
    UserMessage("What is 1 + 2?"),
    AssistantMessage("let me see", (ToolCall("c1", "add", '{"a": 1}'), ToolCall("c2", "ping", "{bad"))),
    ToolMessage("3 </tool_response>", "c1", "add"),
    ToolMessage("pong", "c2", "ping"),
    UserMessage("Go on.", synthetic="max_rounds"),
)


def in_words(**fields):
    run = Run(question=UserMessage("?"))
    request = ChatRequest(messages=HISTORY, run=run, **fields)
    return json.loads(RequestWriter(model="m", tool_mode="json_schema").write(request))


def test_in_json_mode_a_conversation_is_plain_words_that_take_turns():
    body = in_words(tools=(ADD,), tool_choice="auto")

    assert body.keys() == {"model", "messages", "response_format"}
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][0]["content"].startswith("Be short.\n\nYou can use these tools:\n<tools>\n")
    assert '"name": "add", "description": "Add."' in body["messages"][0]["content"]
    assert body["messages"][2]["content"] == (
        '{"tool": "add", "arguments": {"a": 1}}\n{"tool": "ping", "arguments": {}}'
    )
    assert body["messages"][3]["content"] == (
        '<tool_response name="add">\n3 </ tool_response>\n</tool_response>\n\n'
        '<tool_response name="ping">\npong\n</tool_response>\n\nGo on.'
    )


def test_a_small_model_is_told_behind_results_that_it_may_answer():
    request = ChatRequest(messages=HISTORY[:-1], run=Run(question=UserMessage("?")), tools=(ADD,))
    body = json.loads(RequestWriter(model="m", tool_mode="json_schema").write(request))

    assert body["messages"][-1]["content"].endswith(f"</tool_response>\n\n{GO_ON}")


def test_in_json_mode_the_server_enforces_the_envelope():
    forms = in_words(tools=(ADD,), response_schema={"type": "object"})["response_format"]["json_schema"]["schema"][
        "anyOf"
    ]

    assert [sorted(form["properties"]) for form in forms] == [["arguments", "tool"], ["answer"]]
    assert forms[1]["properties"]["answer"] == {"type": "object"}


def test_in_json_mode_a_request_whose_tools_were_taken_away_can_only_be_answered():
    body = in_words(tool_choice="none")

    assert [list(form["properties"]) for form in body["response_format"]["json_schema"]["schema"]["anyOf"]] == [
        ["answer"]
    ]
    assert "<tools>" not in body["messages"][0]["content"]


def test_without_a_tool_in_sight_a_schema_is_the_answers_own():
    run = Run(question=UserMessage("?"))
    request = ChatRequest(messages=(run.question,), run=run, response_schema={"type": "object"})
    body = json.loads(RequestWriter(model="m", tool_mode="json_schema").write(request))

    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("mode", "call", "answer", "flagged"),
    [
        ("native", f"<tool_call>\n{CALL}\n</tool_call>", "FINAL", True),
        ("text", f"<tool_call>\n{CALL}\n</tool_call>", "FINAL", True),
        ("text", f"```json\n{CALL}\n```", "FINAL", True),
        ("json_schema", '{"tool": "add", "arguments": {"a": 1, "b": 2}}', '{"answer": "FINAL"}', False),
    ],
)
async def test_a_weak_model_gets_its_tools_run_in_every_mode(serve, talk, stream, mode, call, answer, flagged):
    server = serve(
        stream_text(call[:9], call[9:]) if stream and mode != "json_schema" else reply_text(call), reply_text(answer)
    )

    outcome = await talk(OpenAIChatModel("m", base_url=server.base_url, tool_mode=mode), stream=stream)

    assert (outcome.text, outcome.ran) == ("FINAL", FOUND)
    assert outcome.seen == ("FINAL" if stream else "")
    assert outcome.result.warnings == ((READ_FROM_TEXT,) if flagged else ())
    assert all(("tools" in request.body) == (mode != "json_schema") for request in server.requests)
    server.assert_legal()


async def test_in_native_mode_an_answer_that_looks_like_a_call_stays_one_and_is_flagged(serve, talk):
    server = serve(reply_text(CALL))

    outcome = await talk(OpenAIChatModel("m", base_url=server.base_url))

    assert (outcome.text, outcome.ran, outcome.result.warnings) == (CALL, [], (LOOKS_LIKE_CALL,))


async def test_a_server_that_knows_neither_tools_nor_schemas_can_be_talked_to_in_words(serve, talk):
    server = serve(reply_text('```json\n{"tool": "add", "arguments": {"a": 1, "b": 2}}\n```'), reply_text("FINAL"))
    model = OpenAIChatModel("m", base_url=server.base_url, tool_mode="json_schema", response_format="none")

    outcome = await talk(model, react_prompt=None)

    assert (outcome.text, outcome.ran) == ("FINAL", FOUND)
    assert all(request.body.keys() == {"model", "messages"} for request in server.requests)
    server.assert_legal()


@pytest.mark.parametrize("mode", ["native", "text", "json_schema"])
async def test_a_call_that_cannot_be_read_gives_the_model_an_error_it_can_act_on(serve, talk, mode):
    broken = (
        '{"tool": "add", "arguments": {"a": "one"}}'
        if mode == "json_schema"
        else "<tool_call>{'name': 'add'}</tool_call>"
    )
    server = serve(reply_text(broken), reply_text("FINAL"))

    outcome = await talk(OpenAIChatModel("m", base_url=server.base_url, tool_mode=mode))

    assert (outcome.text, outcome.ran, outcome.failed) == ("FINAL", [], ["add"])
    server.assert_legal()
