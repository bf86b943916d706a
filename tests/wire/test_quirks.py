"""Odd replies seen from real servers: the tool runs with the right arguments or the model gets an error it can act
on, the answer is right or an error says what happened, and what is sent next is legal."""

import json
from pathlib import Path
from typing import Any

import pytest

from reactflow.errors import ProviderError
from reactflow.openai_model import OpenAIChatModel

CASES = {case["name"]: case for case in json.loads(Path(__file__).with_name("quirks.json").read_text("utf-8"))}

ADD: list[Any] = [("add", {"a": 1, "b": 2})]
ADDS = """base args_object args_fenced id_null type_missing fr_stop_with_tools tool_name_space text_and_tool hermes_tag
fr_function_call_with_tools s_base s_name_repeated s_index_missing s_same_chunk_finish s_args_replayed"""
FAILS_TO_ADD = """args_truncated args_single_quotes args_nan args_str_int args_missing_arg fr_length_tool
s_fr_length_tool"""

RAN: dict[str, list[Any]] = {
    "args_empty": [("ping", {})],
    "args_nonascii": [("echo", {"text": "北京 café"})],
    "arg_whitespace_kept": [("echo", {"text": "  hi  "})],
    "id_dup": [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})],
    "s_index_from_one": [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})],
    "tool_raises": [("boom", {})],
    "tool_returns_empty_list": [("emptylist", {})],
    "tool_exit": [("sysexit", {})],
    "par_slow": [("slow", {"s": 0.5})] * 3,
    **dict.fromkeys(ADDS.split(), ADD),
}
FAILED = {
    "tool_name_empty": ["unnamed"],
    "s_trunc_exec": ["echo"],
    "tool_raises": ["boom"],
    "tool_exit": ["sysexit"],
    **{name: ["add"] for name in FAILS_TO_ADD.split()},
}


WAYS = [
    pytest.param(name, stream, id=f"{name}-{'streamed' if stream else 'whole'}")
    for name, case in CASES.items()
    for stream in (False, True)
    if name not in ("http_400", "loop_same")  # these have tests of their own
    and (stream or not case["stream"])
]


@pytest.mark.parametrize(("name", "stream"), WAYS)
async def test_an_odd_reply_still_leads_to_the_right_answer(name, stream, serve, script, talk):
    case = CASES[name]
    server = serve(*script(case))

    outcome = await talk(OpenAIChatModel("m", base_url=server.base_url), stream=stream)

    assert (outcome.text, outcome.ran, outcome.failed) == ("FINAL", RAN.get(name, []), FAILED.get(name, []))
    assert outcome.seen == ("FINAL" if stream else "")
    assert len(server.requests) == len(case["replies"])
    server.assert_legal()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_request_that_the_server_calls_bad_is_not_repeated(stream, serve, script, talk):
    server = serve(*script(CASES["http_400"]))

    with pytest.raises(ProviderError, match="failed with status 400: bad request") as caught:
        await talk(OpenAIChatModel("m", base_url=server.base_url), stream=stream)

    assert (caught.value.status, caught.value.retryable, len(server.requests)) == (400, False, 1)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_model_that_never_stops_calling_is_asked_for_an_answer_without_tools(stream, serve, script, talk):
    call, final = script(CASES["base"])
    server = serve(respond=lambda request: call if "tools" in request.body else final)

    outcome = await talk(OpenAIChatModel("m", base_url=server.base_url), stream=stream, max_rounds=3)

    assert (outcome.text, outcome.ran, outcome.result.stop_reason) == ("FINAL", ADD * 3, "max_rounds")
    ids = [message["tool_call_id"] for message in server.requests[-1].body["messages"] if message["role"] == "tool"]
    assert len(set(ids)) == 3
    server.assert_legal()


async def test_a_stream_without_a_finish_reason_is_flagged(serve, script, talk):
    server = serve(*script(CASES["s_no_finish"]))

    outcome = await talk(OpenAIChatModel("m", base_url=server.base_url), stream=True)

    assert list(outcome.result.warnings) == ["A streamed reply came without a finish reason; it may not be complete."]
