"""Whole replies: what they carry decides, not what they say of themselves."""

import json

import pytest

from reactflow.messages import ToolCall, Usage
from reactflow.wire.calls import settle_arguments, settle_name
from reactflow.wire.reply import BadReply, read_reply, read_usage, settle
from reactflow.wire.text import ThinkSplitter


def body(message=None, *, finish="stop", **fields):
    choice = {"index": 0, "message": message or {"content": "FINAL"}, "finish_reason": finish}
    return {"choices": [choice], **fields}


def response(reply, offered=("add",), used=()):
    data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return settle(read_reply(data), offered=offered, used=used)


def calling(*calls, **message):
    return body({"content": None, "tool_calls": list(calls), **message}, finish="tool_calls")


def call(arguments="{}", name="add", id="c1"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("raw", "settled"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('  {"a": "  x  "} ', '{"a": "  x  "}'),
        (None, "{}"),
        ("", "{}"),
        (" \n", "{}"),
        ("null", "{}"),
        ([], "{}"),
        ("[]", "{}"),
        ({"a": "北京"}, '{"a": "北京"}'),
        ('"{\\"a\\": 1}"', '{"a": 1}'),
        ('""', "{}"),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('{"a": 1}{"a": 1}', '{"a": 1}'),
        ('{"a": 1} {"a":1}\n{"a": 1}', '{"a": 1}'),
        ('{"a": "x\ny"}', '{"a": "x\\ny"}'),
        ('{"a": "\\ud800"}', '{"a": "�"}'),
    ],
)
def test_arguments_are_read_where_there_is_one_way_to_read_them(raw, settled):
    assert settle_arguments(raw) == settled


@pytest.mark.parametrize(
    "raw",
    [
        '{"a": 1, "b',
        "{'a': 1}",
        '{"a": NaN}',
        '{"a": 1}{"a": 2}',
        '{"a": 1} or so',
        "[1]",
        "[1][1]",
        "7",
        '"x"',
        "{" * 9999,
    ],
)
def test_arguments_that_cannot_be_read_stay_as_the_model_wrote_them(raw):
    assert settle_arguments(raw) == raw


@pytest.mark.parametrize(("raw", "text"), [([1], "[1]"), (7, "7"), (True, "true"), ({"a": float("nan")}, '{"a": NaN}')])
def test_arguments_of_another_type_become_text_that_is_no_object(raw, text):
    assert settle_arguments(raw) == text


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("add", "add"),
        (" add\n", "add"),
        ("functions.add", "add"),
        ("default_api:add", "add"),
        ("functions.other", "other"),
        ("天气", "天气"),
        ("加法", "_"),
        ("add numbers!", "add_numbers_"),
        ("x" * 99, "x" * 64),
        ("", "unnamed"),
        (None, "unnamed"),
        (7, "unnamed"),
    ],
)
def test_a_name_is_the_offered_one_or_one_that_servers_accept_back(raw, name):
    assert settle_name(raw, {"add", "天气"}) == name


def test_missing_blank_repeated_and_overlong_ids_get_fresh_ones():
    raw = [call(id=id) for id in ("c1", None, "", " ", 7, "c1", "x" * 65, "used", "c9")]

    ids = [each.id for each in response(calling(*raw), used={"used"}).message.tool_calls]

    assert (ids[0], ids[-1], len(set(ids))) == ("c1", "c9", 9)
    assert all(len(id) == 9 and id.isalnum() for id in ids[1:-1])


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "c1", "function": {"name": "add", "parameters": {"a": 1}}},
        {"id": "c1", "name": "add", "arguments": '{"a": 1}'},
        {"id": "c1", "function": "add", "arguments": {"a": 1}},
    ],
)
def test_a_call_in_an_unusual_form_is_read(entry):
    assert response(calling(entry)).message.tool_calls == (ToolCall("c1", "add", '{"a": 1}'),)


def test_a_single_call_in_place_of_the_list_is_read_and_null_entries_are_none():
    assert response(body({"tool_calls": call()})).message.tool_calls == (ToolCall("c1", "add"),)
    assert response(calling(None, call(), None)).message.tool_calls == (ToolCall("c1", "add"),)


def test_a_legacy_function_call_is_read():
    reply = response(
        body({"content": None, "function_call": {"name": "add", "arguments": '{"a": 1}'}}, finish="function_call")
    )

    (only,) = reply.message.tool_calls
    assert (only.name, only.arguments, reply.finish_reason) == ("add", '{"a": 1}', "tool_calls")


@pytest.mark.parametrize("calls", [7, "add", True, ["add"], [7]])
def test_something_else_in_the_place_of_the_calls_is_an_error(calls):
    with pytest.raises(BadReply, match="cannot be read"):
        response(body({"content": "x", "tool_calls": calls}))


def test_a_vendors_fields_of_a_call_are_kept():
    signed = {**call(), "extra_content": {"google": {"thought_signature": "s"}}}

    assert response(calling(signed)).message.extra == {
        "call_fields": {"c1": {"extra_content": {"google": {"thought_signature": "s"}}}}
    }


@pytest.mark.parametrize(
    ("content", "text", "think"),
    [
        ("FINAL", "FINAL", None),
        ([{"type": "text", "text": "FI"}, "NAL", None], "FINAL", None),
        ({"type": "text", "text": "FINAL"}, "FINAL", None),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"text": "FINAL"}], "FINAL", "hm"),
        ("<think>hm</think>FINAL", "FINAL", "hm"),
        ("<think>\nhm\n</think>\n\nFINAL", "FINAL", "\nhm\n"),
        ("hm, so\n</think>\n\nFINAL", "FINAL", "hm, so\n"),
        ("<think>a</think><thinking>b</thinking>FINAL", "FINAL", "ab"),
        ("One.\n<think>hm</think>Two.", "One.\nTwo.", "hm"),
        ("<think>never closed", "", "never closed"),
        ("Write `<think>` and `</think>`.", "Write `<think>` and `</think>`.", None),
        ("So <think> is never closed", "So <think> is never closed", None),
        ("a </think> b", "a </think> b", None),
        ("It is 4.</think>FINAL", "FINAL", "It is 4."),
        ("It is 4.</think>\n\nFINAL", "FINAL", "It is 4."),
        ("so 4 </think>\nFINAL", "FINAL", "so 4 "),
        ("so 4</think>FINAL", "FINAL", "so 4"),
        ("so 4</think>final", "final", "so 4"),
        ("so 4</think> FINAL", "FINAL", "so 4"),
        ("so 4</think>", "", "so 4"),
        ("so 4</think> ", "", "so 4"),
        ("so 4</think>**FINAL**", "**FINAL**", "so 4"),
        ("It is 4.</think> final", "final", "It is 4."),
        ("Close it with foo</think> and go on.", "Close it with foo</think> and go on.", None),
        ("Close it with foo</think>, then go on.", "Close it with foo</think>, then go on.", None),
        ("用 foo</think>，然后继续。", "用 foo</think>，然后继续。", None),
        ("so 4 </think>FINAL", "FINAL", "so 4 "),
        ("所以是四。</think>FINAL", "FINAL", "所以是四。"),
        ("It is 4.</reasoning>\nFINAL", "FINAL", "It is 4."),
        ("It is 4.</think>", "", "It is 4."),
        ("请用</think>结束", "请用</think>结束", None),
        ("The tag (</think>) ends it.", "The tag (</think>) ends it.", None),
        ("It ends with </think>", "It ends with </think>", None),
        ("It ends with </think>.", "It ends with </think>.", None),
        ("<reasoning>hm</reasoning>FINAL", "FINAL", "hm"),
        ("\n<reasoning>\nhm\n</reasoning>\n\nFINAL", "FINAL", "\nhm\n"),
        ("<seed:think>hm</seed:think>FINAL", "FINAL", "hm"),
        ("<thoughts>hm</thoughts>FINAL", "FINAL", "hm"),
        ("FINAL\n<reasoning>why</reasoning>", "FINAL\n<reasoning>why</reasoning>", None),
        ("a < b and <thin", "a < b and <thin", None),
        ("<|im_start|>", "<|im_start|>", None),
        ("  \n", "", None),
        ("<think>hm</think> \n ", "", "hm"),
        (None, "", None),
        ([], "", None),
    ],
)
def test_text_and_thinking_are_told_apart(content, text, think):
    message = response(body({"content": content})).message

    assert (message.text, message.extra.get("think")) == (text, think)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "x\n</think>\n\n<thi" + "n" * 3 + "k> One <think>two</think> `<think>` three\n</think>four <thought>five",
            "four <thought>five",
        ),
        ("So it is 4.</think>FINAL", "FINAL"),
        ("So it is 4 </think>\nFINAL", "FINAL"),
        ("It is 4.</think>", ""),
        (
            "<reasoning>hm</reasoning>\n\nFINAL, see <reasoning> and </reasoning> too",
            "FINAL, see <reasoning> and </reasoning> too",
        ),
        ("It ends with </think>", "It ends with </think>"),
        ("Close it with foo</think> and go on.", "Close it with foo</think> and go on."),
        ("so 4</think> FINAL", "FINAL"),
    ],
)
def test_a_splitter_tells_the_same_however_a_text_is_cut(text, left):
    for size in range(1, len(text)):
        splitter, words = ThinkSplitter(), []
        pieces = [piece for at in range(0, len(text), size) for piece in splitter.feed(text[at : at + size])]
        for kind, piece in [*pieces, *splitter.close()]:
            words = [] if kind == "withdrawn" else [*words, piece] if kind == "text" else words
        assert "".join(words) == left, size


@pytest.mark.parametrize("content", [7, True, [7]])
def test_content_of_another_type_is_an_error(content):
    with pytest.raises(BadReply, match="content is"):
        response(body({"content": content}))


def test_reasoning_and_signatures_are_kept_and_the_rest_is_not():
    message = {"content": "x", "reasoning_content": "hm", "thought_signature": "s", "annotations": [], "x_mood": 1}

    assert response(body(message)).message.extra == {"reasoning_content": "hm", "thought_signature": "s"}


def test_a_refusal_is_the_text():
    refused = response(body({"content": None, "refusal": "I will not."}))

    assert (refused.text, refused.finish_reason) == ("I will not.", "refusal")


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "stop"),
        (None, "stop"),
        ("", "stop"),
        (7, "stop"),
        ("eos_token", "stop"),
        ("tool_calls", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
    ],
)
def test_finish_reasons_are_told_in_one_language(finish, reason):
    assert response(body(finish=finish)).finish_reason == reason


@pytest.mark.parametrize("finish", ["stop", "function_call", None, "eos"])
def test_a_reply_with_calls_is_one_whatever_it_says(finish):
    reply = calling(call())
    reply["choices"][0]["finish_reason"] = finish

    assert response(reply).finish_reason == "tool_calls"


@pytest.mark.parametrize("finish", ["error", "abort", "insufficient_system_resource"])
def test_a_reply_that_the_server_gave_up_is_an_error(finish):
    with pytest.raises(BadReply, match="gave up"):
        response(body(finish=finish))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(10, 5)),
        ({"input_tokens": 10, "output_tokens": 5.0}, Usage(10, 5)),
        ({"prompt_tokens": 10, "total_tokens": 15}, Usage(10, 5)),
        ({"completion_tokens": 5, "total_tokens": 15}, Usage(10, 5)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(10, 5, 4)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 99}, Usage(10, 5, 10)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": None}, Usage(10, 5)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": None, "completion_tokens": None}, None),
        ({"prompt_tokens": -1, "completion_tokens": 5}, None),
        ({"prompt_tokens": True, "completion_tokens": 5}, None),
        ({"prompt_tokens": "10", "completion_tokens": 5}, None),
        ({"prompt_tokens": float("inf"), "completion_tokens": 5}, None),
        ({"prompt_tokens": 10}, None),
        ([], None),
        (None, None),
    ],
)
def test_usage_is_counted_only_where_it_was_reported(usage, expected):
    assert read_usage(usage) == expected


@pytest.mark.parametrize(
    ("data", "says", "retryable"),
    [
        (b"", "is empty", True),
        (b" \n", "is empty", True),
        (b"<html>502</html>", "web page", False),
        (b'{"choices": [', "not JSON", True),
        (b"[" * 100_000, "nested too deeply", True),
        (b"[]", "is list", True),
        (b"null", "is NoneType", True),
        (b"{}", "no choices", True),
        (b'{"choices": null}', "no choices", True),
        (b'{"choices": []}', "no choices", True),
        (b'{"choices": [null]}', "no choices", True),
        (b'{"choices": "x"}', "choices are", True),
        (b'{"choices": [7]}', "choices are", True),
        (b'{"choices": [{}]}', "no message", True),
        (b'{"choices": [{"message": null}]}', "no message", True),
        (b'{"choices": [{"message": "x"}]}', "no message", True),
        (b'{"error": {"message": "x"}}', "is an error", True),
        (b'{"error": "x", "choices": []}', "is an error", True),
        (b'[{"error": {"code": 429, "message": "x"}}]', "is an error", True),
        (b'{"detail": "x"}', "is an error", True),
        (b'{"choices": [{"error": {"code": 502}, "message": {"content": ""}}]}', "is an error", True),
    ],
)
def test_a_reply_that_is_none_says_why(data, says, retryable):
    with pytest.raises(BadReply, match=says) as caught:
        read_reply(data)

    assert caught.value.retryable is retryable


def test_odd_but_clear_replies_are_read():
    two = {"choices": [{"index": 1, "message": {"content": "OTHER"}}, {"index": 0, "message": {"content": "FINAL"}}]}
    one = {"choices": {"delta": {"content": "FINAL"}}, "error": None}
    plain = {"choices": [{"text": "FINAL"}]}
    tricky = b'{"choices": [{"message": {"content": "FI\\ud800NAL\xff"}}]}'

    assert [response(reply).text for reply in (two, one, plain)] == ["FINAL"] * 3
    assert response(tricky).text == "FI�NAL�"
