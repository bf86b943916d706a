"""``reactflow doctor``: what is configured, which server answers, what it can do, and how to mend what it cannot."""

import json
import re
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from reactflow.cli.app import app
from reactflow.loopback import LoopbackServer, Reply, completion, reply_calls, reply_error, reply_text, stream_text
from reactflow.wire.legality import check_request


def state(ended, name):
    """The sign and the words of a finding, and its fix."""
    found = re.search(rf"^([✓▲✗]) {re.escape(name)} +(.*)\n((?:    .*\n)*)", ended.out, re.MULTILINE)
    assert found, f"no {name} in:\n{ended.out}"
    return found[1], found[2], " ".join(found[3].split())


class Server:
    """A whole server for the doctor: lists models, and answers each of its questions well unless told otherwise."""

    def __init__(self, *, models=("m",), status=200, **answers):
        self.models, self.status, self.answers, self.faults = models, status, answers, []

    def __call__(self, request):
        if request.path.endswith("/models"):
            return Reply(body={"data": [{"id": name} for name in self.models]}, status=self.status)
        body = request.body
        self.faults += check_request(body)
        if "response_format" in body:
            return self.answers.get("schema", reply_text('{"sum": 5}'))
        if body["messages"][-1]["role"] == "tool":
            return self.answers.get("result", reply_text("5"))
        if "tools" in body:
            return self.answers.get("tools", reply_calls(("add", {"a": 2, "b": 3})))
        if body.get("stream"):
            return self.answers.get("stream", stream_text("1\n", "2\n", "3\n"))
        return self.answers.get("first", reply_text("OK"))


@contextmanager
def running(respond):
    """The address of a server that answers by *respond*."""
    with LoopbackServer(respond=respond, check=False) as server:
        yield server.base_url


@pytest.fixture
def doctor(reactflow):
    """Examine a server that answers as described."""

    def examine(**server):
        answers = Server(**server)
        with running(answers) as base_url:
            ended = reactflow("doctor", "--base-url", base_url, "--model", "m", "--timeout", "5")
        assert answers.faults == []
        return ended

    return examine


def test_without_a_server_the_doctor_says_how_to_get_one(reactflow):
    ended = reactflow("doctor")

    assert ended.code == 0
    assert state(ended, "key")[:2] == ("▲", "OPENAI_API_KEY is not set")
    sign, words, fix = state(ended, "server")
    assert (sign, words) == ("▲", "none: the offline model answers by rules.")
    assert "export OPENAI_API_KEY=..." in fix


def test_a_good_server_passes_everything(doctor):
    ended = doctor()

    assert ended.code == 0
    assert state(ended, "server")[:2] == ("✓", "answers and lists 1 models")
    assert state(ended, "answers")[1].endswith(", with token counts")
    assert state(ended, "streaming")[:2] == ("✓", "in 3 pieces")
    assert state(ended, "tools")[:2] == ("✓", "called, and the result was taken back")
    assert state(ended, "JSON schema")[:2] == ("✓", "kept")
    assert "✗" not in ended.out


@pytest.mark.parametrize(
    ("name", "answers", "found", "fix"),
    [
        ("tools", {"tools": reply_text("It is 5.")}, "the model answered in words", "--enable-auto-tool-choice"),
        ("tools", {"tools": reply_calls(("add", {"a": 2}))}, 'the call came as add({"a": 2})', "tool_mode"),
        ("tools", {"tools": reply_calls(("add", "{oops"))}, "the call came as add({oops", "tool_mode"),
        ("JSON schema", {"schema": reply_text("five")}, "not kept: 'five'", "response_format='json_object'"),
        ("JSON schema", {"schema": reply_text('{"sum": "5"}')}, "not kept", "response_format"),
        ("JSON schema", {"schema": reply_text("[5]")}, "not kept", "response_format"),
        ("JSON schema", {"schema": reply_error(400, "no response_format here")}, "no response_format here", ""),
        ("answers", {"first": reply_error(500, "on fire")}, "on fire", ""),
        ("answers", {"first": Reply(body=completion({"content": " "}))}, "an empty reply", "Try another model"),
    ],
)
def test_what_a_server_cannot_do_comes_with_a_fix_and_ends_with_3(doctor, name, answers, found, fix):
    ended = doctor(**answers)

    sign, words, mend = state(ended, name)
    assert (ended.code, sign) == (3, "✗")
    assert found in words
    assert fix in mend


def test_what_is_only_worth_knowing_is_no_failure(doctor):
    ended = doctor(first=reply_text("OK", usage=None), stream=stream_text("1 2 3"), models=("n", "mm", "q"))

    assert ended.code == 0
    assert state(ended, "answers")[0] == "▲"
    assert "without token counts" in state(ended, "answers")[1]
    assert state(ended, "streaming")[:2] == ("▲", "the reply came in one piece")
    assert state(ended, "server") == ("▲", "answers, but does not list 'm'", "It has mm; choose with --model.")


def test_without_a_first_answer_the_rest_is_not_tried(doctor):
    assert "streaming" not in doctor(first=reply_error(400, "no")).out


@pytest.mark.parametrize(
    ("status", "models", "sign", "words"),
    [
        (401, (), "✗", "refused the key (401)"),
        (404, (), "▲", "answers, but lists no models (404 from"),
        (200, (), "✓", "answers and lists 0 models"),
    ],
)
def test_the_list_of_models_tells_mistakes_apart(doctor, status, models, sign, words):
    found = state(doctor(status=status, models=models), "server")

    assert found[0] == sign
    assert words in found[1]


@pytest.mark.parametrize("body", ["<html>", json.dumps([1]), json.dumps({"data": None})])
def test_a_list_that_is_none_is_worth_knowing(reactflow, body):
    def answer(request):
        return Reply(body=body) if request.path.endswith("/models") else reply_error(400, "no")

    with running(answer) as base_url:
        ended = reactflow("doctor", "--base-url", base_url)

    assert state(ended, "server")[0] == "▲"


def test_a_server_that_is_not_there_is_told_with_what_to_look_at(reactflow):
    with LoopbackServer() as server:
        address = server.base_url

    ended = reactflow("doctor", "--base-url", address, "--timeout", "5")

    assert ended.code == 3
    assert state(ended, "server")[0] == "✗"
    assert "Is it running, and is the address right?" in state(ended, "server")[2]


def test_a_server_that_never_answers_is_given_up(reactflow):
    def answer(request):
        return Reply(body={}, delay=5) if request.path.endswith("completions") else reply_error(404, "no list")

    with running(answer) as base_url:
        ended = reactflow("doctor", "--base-url", base_url, "--timeout", "0.2")

    assert ended.code == 3
    assert state(ended, "answers") == ("✗", "no reply within 0.20 s", "Wait longer with --timeout.")


def test_the_key_is_never_shown_and_goes_to_its_own_server_only(reactflow, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", " test-key-of-nobody")
    with LoopbackServer() as elsewhere:

        def answer(request):
            moved = Reply(status=302, headers={"Location": f"{elsewhere.base_url}/models"}, body="")
            return moved if request.path.endswith("/models") else reply_error(400, "no")

        with running(answer) as base_url:
            ended = reactflow("doctor", "--base-url", base_url, "--timeout", "2")

    assert "nobody" not in ended.out + ended.err
    assert state(ended, "key") == (
        "▲",
        "OPENAI_API_KEY is set, 18 characters",
        "It begins or ends with a blank; set it again.",
    )
    assert elsewhere.requests == []


def test_a_key_without_a_blank_is_fine(doctor, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")

    assert state(doctor(), "key")[:2] == ("✓", "OPENAI_API_KEY is set, 8 characters")


def test_a_password_in_the_address_is_not_shown(reactflow):
    ended = reactflow("doctor", "--base-url", "http://me:hidden@127.0.0.1:9/v1", "--model", "m", "--timeout", "5")

    assert state(ended, "model")[1] == "m at http://***@127.0.0.1:9/v1"
    assert "hidden" not in ended.out + ended.err


def test_a_wrong_address_is_wrong_use(reactflow):
    ended = reactflow("doctor", "--base-url", "nonsense")

    assert (ended.code, state(ended, "model")[0]) == (2, "✗")


def test_a_state_folder_that_cannot_be_used_is_told(reactflow, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REACTFLOW_STATE_DIR", str(tmp_path / "file"))

    ended = reactflow("doctor")

    assert (ended.code, state(ended, "state")[0]) == (2, "✗")


def test_a_state_folder_that_cannot_be_written_is_told(reactflow, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)

    ended = reactflow("doctor")

    assert ended.code == 2
    assert "cannot be written" in state(ended, "state")[1]


def test_a_terminal_that_cannot_write_chinese_is_told():
    ended = CliRunner(charset="ascii").invoke(app, ["doctor"])

    assert ended.exit_code == 0
    assert "export LANG=C.UTF-8" in ended.stdout
