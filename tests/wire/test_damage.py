"""Any one thing wrong with a good reply: the answer is right or a typed error says what happened; never a hang, an
untyped exception or an illegal request after it."""

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reactflow.errors import ReactflowError
from reactflow.loopback import USAGE, LoopbackServer, Reply, as_events, chunk, completion
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.openai_model import OpenAIChatModel
from reactflow.wire.receive import Reception

CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
MESSAGES = [
    {"content": "FINAL"},
    {"content": "<think>secret</think>FINAL", "refusal": None},
    {"content": None, "tool_calls": [CALL]},
    {"content": "let me see", "reasoning_content": "secret", "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
]
OTHERS: list[Any] = [None, True, 0, -1, 1.5, "", "X", [], {}, [None], ["X"], {"X": 1}, [[]], float("nan"), "\ud800"]
GONE = object()
TWICE = object()


def whole(message: dict[str, Any]) -> dict[str, Any]:
    return completion(message, finish_reason="tool_calls" if "tool_calls" in message else "stop")


def in_fragments(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The same reply as a server streams it: text and arguments in pieces."""
    events: list[dict[str, Any]] = [chunk({"role": "assistant", "content": None})]
    content = message["content"] or ""
    events += [chunk({"content": content[at : at + 4]}) for at in range(0, len(content), 4)]
    for index, call in enumerate(message.get("tool_calls", ())):
        function = {**call["function"], "arguments": ""}
        events.append(chunk({"tool_calls": [{**call, "index": index, "function": function}]}))
        pieces = [call["function"]["arguments"][:7], call["function"]["arguments"][7:]]
        events += [chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in pieces]
    return [*events, *as_events(whole(message))[1:]]


def as_bytes(event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to everything inside *value*."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, item in inside for path in ((*at, key), *places(item, (*at, key)))]


def damaged(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    value = copy.deepcopy(value)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    key = path[-1]
    if by is GONE:
        del holder[key]
    elif by is not TWICE:
        holder[key] = by
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[f"{key}_again"] = holder[key]
    return value


def texts(reply: Any) -> list[str]:
    """Every text that stands anywhere in *reply*, in order."""
    if isinstance(reply, str):
        return [reply]
    inside = reply.values() if isinstance(reply, dict) else reply if isinstance(reply, list) else ()
    return [text for item in inside for text in texts(item)]


class Stage:
    """One server, one loop and one model for all examples."""

    def __init__(self, talk: Any) -> None:
        self.talk = talk
        self.script: list[Reply] = []
        self.server = LoopbackServer(respond=lambda request: self.script.pop(0) if self.script else FINAL).start()
        self.model = OpenAIChatModel("m", base_url=self.server.base_url, retries=0, timeout=40, stream_read_timeout=20)
        self.runner = asyncio.Runner()

    def play(self, reply: Reply, *, stream: bool) -> Any:
        """What comes of it: an outcome, or None for a typed error."""
        self.script[:] = [reply]
        self.server.violations.clear()
        try:
            return self.runner.run(asyncio.wait_for(self.talk(self.model, stream=stream), 60))
        except ReactflowError:
            return None
        finally:
            self.server.assert_legal()

    def close(self) -> None:
        self.runner.close()
        self.server.stop()


FINAL = Reply(body=completion({"content": "FINAL"}))


@pytest.fixture(scope="module")
def stage(talk):
    stage = Stage(talk)
    yield stage
    stage.close()


def faults(outcome: Any, reply: Any) -> list[str]:
    """What is wrong with what came of *reply*; a typed error is always right."""
    if outcome is None:
        return []
    tagged = "<think>secret</think>" in "".join(texts(reply))  # where the damage hit the tags nobody can tell
    wrong = {
        "the answer is blank": not outcome.text.strip(),
        "the thinking is in the answer": tagged and "secret" in outcome.text,
        "a tool ran that was not called so": any(each != ("add", {"a": 1, "b": 2}) for each in outcome.ran),
    }
    return [fault for fault, found in wrong.items() if found]


MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@MANY
@given(message=st.sampled_from(MESSAGES), by=st.sampled_from([GONE, TWICE, *OTHERS]), data=st.data())
def test_a_damaged_whole_reply_gives_the_answer_or_a_typed_error(stage, message, by, data):
    good = whole(message)
    bad = damaged(good, data.draw(st.sampled_from(places(good))), by)

    outcome = stage.play(Reply(body=bad), stream=False)

    assert faults(outcome, bad) == []


@MANY
@given(message=st.sampled_from(MESSAGES), by=st.sampled_from([GONE, TWICE, *OTHERS]), data=st.data())
def test_a_damaged_stream_gives_the_answer_or_a_typed_error(stage, message, by, data):
    good = in_fragments(message)
    bad = damaged(good, data.draw(st.sampled_from(places(good))), by)
    end = data.draw(st.sampled_from(["done", "close", "drop"]))

    outcome = stage.play(Reply(events=[as_bytes(event) for event in bad], end=end), stream=True)

    assert faults(outcome, bad) == []


@MANY
@given(message=st.sampled_from(MESSAGES), data=st.data())
def test_a_reply_cut_anywhere_gives_a_typed_error_or_the_whole_answer(stage, message, data):
    sent = b"".join(map(as_bytes, in_fragments(message)))
    cut = data.draw(st.integers(0, len(sent) - 1))

    outcome = stage.play(Reply(events=[sent[:cut]], end="close"), stream=True)

    if outcome is not None:
        assert outcome.text == "FINAL"
        assert [arguments for _, arguments in outcome.ran] in ([], [{"a": 1, "b": 2}], [{"a": 1, "b": 2}] * 2)


async def receive(pieces: list[bytes]) -> Any:
    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    run = Run(question=UserMessage("?"))
    told: list[Any] = []
    request = ChatRequest(messages=(run.question,), run=run, stream=True, emit=told.append)
    until = asyncio.get_running_loop().time() + 5
    return await Reception(request, timeout=5, pause=5, until=until).read(chunks()), told


@settings(max_examples=100, deadline=None)
@given(
    message=st.sampled_from(MESSAGES),
    borders=st.sets(st.integers(1, 2000), max_size=60),
    line_end=st.sampled_from([b"\n", b"\r\n"]),
    thinks=st.text("<>/thinkF\n `", max_size=30),
)
@example(message=MESSAGES[1], borders=set(range(1, 2000)), line_end=b"\r\n", thinks="")
def test_where_a_stream_is_cut_into_pieces_makes_no_difference(message, borders, line_end, thinks):
    message = {**message, "content": (message["content"] or "") + thinks}
    lines = [b"data: " + json.dumps(event).encode() for event in in_fragments(message)]
    sent = b"".join(line + line_end * 2 for line in [*lines, b"data: [DONE]"])
    marks = [0, *sorted(border for border in borders if border < len(sent)), len(sent)]
    pieces = [sent[start:end] for start, end in pairwise(marks)]

    in_pieces, told = asyncio.run(receive(pieces))
    at_once, _ = asyncio.run(receive([json.dumps(whole(message)).encode()]))

    assert (in_pieces.text, in_pieces.think, in_pieces.usage) == (at_once.text, at_once.think, at_once.usage)
    assert [(c.id, c.name, c.arguments) for c in in_pieces.calls] == [
        (c.id, c.name, c.arguments) for c in at_once.calls
    ]
    assert in_pieces.usage.total_tokens == USAGE["total_tokens"]
    assert visible(told) == in_pieces.text


def visible(told: list[Any]) -> str:
    seen = ""
    for event in told:
        kind = type(event).__name__
        seen = seen + event.text if kind == "TextDelta" else "" if kind == "TextWithdrawn" else seen
    return seen
