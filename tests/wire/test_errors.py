"""What goes wrong is said once, clearly, with the facts as attributes and the openai error as the cause."""

import asyncio
import email.utils
import socket
import time

import openai
import pytest

from reactflow.budget import Budget, Meter
from reactflow.errors import ConfigurationError, ProviderError
from reactflow.loopback import Reply, reply_error, reply_text
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.openai_model import MAX_ERROR_BYTES, OpenAIChatModel
from reactflow.wire.failure import Refusal, backoff, explain, message_of, wanted_wait

QUICK = {"retry-after-ms": "1"}


async def ask(server, *, budget=None, stream=False, **settings):
    run = Run(question=UserMessage("?"), meter=Meter(budget or Budget()))
    request = ChatRequest(messages=(run.question,), run=run, stream=stream)
    return (await OpenAIChatModel("m", base_url=server.base_url, **settings).complete(request)).text


async def error_of(server, **settings):
    with pytest.raises(ProviderError) as caught:
        await ask(server, **settings)
    return caught.value


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("reactflow.wire.failure.FIRST_WAIT_S", 0.01)


@pytest.mark.parametrize(
    ("reply", "says", "cause"),
    [
        (reply_error(400, "no such field"), "failed with status 400: no such field", openai.BadRequestError),
        (reply_error(401, "bad key"), "credentials for model 'm' .* refused: bad key", openai.AuthenticationError),
        (reply_error(402, "pay"), "quota for model 'm' .* is used up: pay", openai.APIStatusError),
        (reply_error(403, "no"), "credentials .* refused", openai.PermissionDeniedError),
        (reply_error(404, "gone"), "There is no model 'm'.*ends in /v1", openai.NotFoundError),
        (reply_error(413, "big"), "conversation is too long", openai.APIStatusError),
        (reply_error(400, "no json_schema"), "no json_schema. Pass response_format", openai.BadRequestError),
        (reply_error(422, "x"), "failed with status 422", openai.UnprocessableEntityError),
        (reply_error(400, "Please reduce the length of the messages"), "too long", openai.BadRequestError),
        (reply_error(500, "exceeds the available context size"), "too long", openai.InternalServerError),
        (reply_error(429, "x", code="insufficient_quota"), "quota", openai.RateLimitError),
        (Reply(status=400, body="<html>nginx</html>"), "failed with status 400.", openai.BadRequestError),
        (Reply(status=418, body="short"), "status 418: short", openai.APIStatusError),
    ],
)
async def test_a_refusal_says_what_to_do_and_is_not_repeated(serve, reply, says, cause):
    server = serve(reply)

    error = await error_of(server)

    assert error.status == reply.status
    assert not error.retryable
    assert type(error.__cause__) is cause
    assert len(server.requests) == 1
    with pytest.raises(ProviderError, match=says):
        raise error


async def test_an_error_carries_the_request_id_and_at_most_two_hundred_characters_of_the_body(serve):
    server = serve(Reply(status=400, body="x" * 500, headers={"x-request-id": "req-7"}))

    error = await error_of(server)

    assert (error.request_id, error.body, error.__cause__.status_code) == ("req-7", "x" * 200, 400)


@pytest.mark.parametrize("status", [400, 503])
async def test_a_refusal_whose_body_never_ends_is_one_all_the_same(serve, status):
    endless = Reply(status=status, events=[b"no such field " * 10_000], end="hang", headers=QUICK)

    error = await error_of(serve(endless, endless), timeout=20, retries=0)

    assert (error.status, error.retryable) == (status, status == 503)
    assert error.body == ("no such field " * 20)[:200]
    assert len(error.__cause__.response.content) == MAX_ERROR_BYTES


@pytest.mark.parametrize(
    ("reply", "says", "asked"),
    [
        (Reply(body={"error": {"message": "upstream overloaded", "code": 502}}), "status 502: upstream overloaded", 3),
        (Reply(body={"error": {"message": "model is overloaded"}}), "failed: model is overloaded", 3),
        (Reply(body={"error": {"message": "no such model", "code": "404"}}), "There is no model", 1),
        (Reply(body={"error": "odd request"}), "failed: odd request", 1),
        (Reply(body={"detail": [{"msg": "field required"}]}), "failed: field required", 1),
        (Reply(body="<!doctype html><h1>Welcome</h1>"), "web page, not JSON .* begins '<!doctype", 1),
        (Reply(body="Service is warming up"), "not JSON", 3),
        (Reply(body={"choices": []}), "no choices", 3),
        (Reply(body=b'{"choices": [{"mess'), "not JSON", 3),
        (Reply(body=b""), "is empty", 3),
        (Reply(body=b'{"choices": [', end="drop"), "hung up in the middle of its reply", 3),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_reply_that_is_none_in_spite_of_its_status_is_an_error(serve, reply, says, asked, stream):
    server = serve(*[reply] * asked)

    error = await error_of(server, stream=stream)

    assert error.status in (200, 404, 502)
    assert isinstance(error.__cause__, openai.APIError)
    assert len(server.requests) == asked
    with pytest.raises(ProviderError, match=says):
        raise error


async def test_an_unreadable_body_is_in_the_error(serve):
    error = await error_of(serve(Reply(body="<p>" + "x" * 500)), retries=0)

    assert error.body == "<p>" + "x" * 197
    assert isinstance(error.__cause__, openai.APIResponseValidationError)


async def test_a_server_that_repeats_the_key_does_not_get_it_into_the_error(serve):
    key = "sk-very-secret"
    server = serve(reply_error(401, f"Incorrect API key provided: {key}"), Reply(body=f"<p>{key}"))

    for _ in range(2):
        error = await error_of(server, api_key=key, retries=0)
        assert key not in str(error) + error.body
        assert "***" in str(error) + error.body


async def test_the_key_is_not_in_the_models_name_or_form(serve):
    model = OpenAIChatModel("m", base_url="https://x.test/v1", api_key="sk-very-secret")

    assert repr(model) == "OpenAIChatModel('m', base_url='https://x.test/v1')"


async def test_a_failing_server_is_asked_again_until_the_retries_are_used_up(serve):
    server = serve(*[reply_error(503, "down", headers=QUICK)] * 2, reply_text("up"), *[reply_error(503, "down")] * 2)

    assert await ask(server) == "up"
    assert (await error_of(server, retries=1)).retryable
    assert len(server.requests) == 5


@pytest.mark.parametrize(("header", "asked"), [("true", 2), ("false", 1), ("maybe", 1)])
async def test_a_server_may_say_itself_whether_to_ask_again(serve, header, asked):
    server = serve(reply_error(400, "x", headers={"x-should-retry": header}), reply_text("ok"))

    if asked == 2:
        assert await ask(server) == "ok"
    else:
        await error_of(server)
    assert len(server.requests) == asked


async def test_a_pause_that_is_too_long_is_not_waited_for(serve):
    server = serve(reply_error(429, "later", headers={"Retry-After": "3600"}))
    started = time.monotonic()

    error = await error_of(server)

    assert (error.retryable, len(server.requests), time.monotonic() - started < 60) == (True, 1, True)


async def test_an_attempt_that_could_only_begin_after_the_deadline_is_not_made(serve):
    server = serve(reply_error(503, "down", headers={"Retry-After": "50"}))

    error = await error_of(server, budget=Budget(max_seconds=45))

    assert (error.status, len(server.requests)) == (503, 1)


async def test_a_server_that_says_nothing_is_given_up(serve):
    server = serve(Reply(end="hang"), reply_text("ok", delay=5))
    started = time.monotonic()

    error = await error_of(server, timeout=0.3, retries=0)

    assert "did not answer in time: 0.3 s are over" in str(error)
    assert isinstance(error.__cause__, openai.APITimeoutError)
    assert (error.status, error.retryable, time.monotonic() - started < 60) == (None, True, True)


async def test_a_server_that_stops_in_its_reply_is_given_up(serve):
    for limit in (1, 10, 60):  # a slow machine may need longer until the beginning is there
        server = serve(Reply(events=["{", 0.1, '"a": '], end="hang"))
        error = await error_of(server, timeout=limit, retries=0)
        if "6 bytes" in str(error):
            break

    assert "stopped in the middle of its reply: nothing more came; 6 bytes had come by then" in str(error)
    assert isinstance(error.__cause__, openai.APITimeoutError)


async def test_a_server_that_is_not_there_is_asked_again_and_then_an_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    class Nobody:
        base_url = f"http://127.0.0.1:{port}/v1"

    error = await error_of(Nobody)

    assert "could not be reached, or hung up" in str(error)
    assert isinstance(error.__cause__, openai.APIConnectionError)
    assert not isinstance(error.__cause__, openai.APITimeoutError)
    assert error.__cause__.__cause__ is not None


async def test_a_connection_cut_before_any_reply_is_no_time_out(serve):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(10)

        class Rude:
            base_url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

        def hang_up():
            connection, _ = listener.accept()
            connection.recv(100_000)
            connection.close()

        asking = asyncio.create_task(error_of(Rude, retries=0))
        await asyncio.to_thread(hang_up)
        error = await asking

    assert "could not be reached, or hung up" in str(error)
    assert error.retryable


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (b"nonsense\r\n\r\n", "hung up"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "hung up in the middle"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[/\r\nContent-Length: 0\r\n\r\n", "address that cannot be read"),
        (b"HTTP/1.1 307 Found\r\nLocation: http://[/\r\nContent-Length: 0\r\n\r\n", "address that cannot be read"),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", "is empty"),
    ],
)
async def test_broken_http_is_a_typed_error_too(reply, says):

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as broken:

        class Broken:
            base_url = f"http://127.0.0.1:{broken.sockets[0].getsockname()[1]}/v1"

        with pytest.raises(ProviderError, match=says):
            await ask(Broken, retries=0)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_the_wanted_pause_is_read_in_each_of_its_forms(headers, seconds):
    assert wanted_wait(headers) == seconds


def test_the_wanted_pause_may_be_a_date():
    at = email.utils.formatdate(time.time() + 30, usegmt=True)

    assert 28 <= wanted_wait({"retry-after": at}) <= 30


def test_pauses_double_up_to_a_bound_and_are_spread(monkeypatch):
    monkeypatch.setattr("reactflow.wire.failure.FIRST_WAIT_S", 0.5)
    pauses = {attempt: [backoff(attempt) for _ in range(200)] for attempt in (1, 2, 9)}

    for attempt, middle in ((1, 0.5), (2, 1.0), (9, 8.0)):
        assert 0.75 * middle <= min(pauses[attempt]) < max(pauses[attempt]) <= 1.25 * middle
        assert len(set(pauses[attempt])) > 100


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"message": " x "}, "x"),
        ({"error": {"message": "x"}}, "x"),
        ({"error": "x"}, "x"),
        ([{"message": "x"}], "x"),
        ({"errors": [{"detail": "x"}]}, "x"),
        ("x" * 900, "x" * 500),
        ({"message": None}, ""),
        (None, ""),
        (7, ""),
    ],
)
def test_the_sentence_is_found_in_any_form_of_error(error, message):
    assert message_of(error) == message


def test_an_error_without_a_status_may_be_repeated():
    assert explain(Refusal(error="x"), model="m", base_url="u").retryable


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "There is no API key for https://api.openai.com/v1. Set OPENAI_API_KEY or pass api_key="),
        ({"base_url": "https://x.test/v1"}, "no API key for https://x.test/v1"),
        ({"api_key": "a\nb"}, "no HTTP header can carry"),
        ({"api_key": "键"}, "no HTTP header can carry"),
        ({"api_key": "k", "base_url": "x.test/v1"}, "must begin with http:// or https://"),
        ({"api_key": "k", "base_url": "https://"}, "name a host"),
        ({"api_key": "k", "base_url": "https://x.test/v1/chat/completions"}, "must end before /chat/completions"),
        ({"api_key": "k", "timeout": 0}, "timeout=0"),
        ({"api_key": "k", "timeout": float("nan")}, "timeout=nan"),
        ({"api_key": "k", "stream_read_timeout": -1}, "stream_read_timeout=-1"),
        ({"api_key": "k", "retries": -1}, "retries=-1.*>= 0"),
        ({"api_key": "k", "tool_mode": "magic"}, "tool_mode='magic'.*'native', 'json_schema', 'text'"),
        ({"api_key": "k", "response_format": "xml"}, "response_format='xml'"),
        ({"api_key": "k", "tools": []}, "'tools' is set by the framework"),
        ({"api_key": "k", "max_retries": 0}, r"'max_retries' is no option of a model.*OpenAIChatModel\(retries="),
        ({"api_key": "k", "extra_headers": {}}, r"'extra_headers' is no option of a model.*\(headers="),
    ],
)
def test_a_model_that_cannot_work_is_refused_when_it_is_made(settings, says):
    with pytest.raises(ConfigurationError, match=says):
        OpenAIChatModel("m", **settings)


@pytest.mark.parametrize("name", ["", " ", None, 7])
def test_a_model_needs_a_name(name):
    with pytest.raises(ConfigurationError, match="give the model's name"):
        OpenAIChatModel(name, api_key="k")


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:8000", "api.localhost", "127.8.0.1"])
def test_a_server_on_this_machine_needs_no_key(host):
    assert OpenAIChatModel("m", base_url=f"http://{host}/v1/").name == "m"


def test_key_and_url_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", " sk-1\n")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://x.test/v1/")

    assert repr(OpenAIChatModel(" m ")) == "OpenAIChatModel('m', base_url='https://x.test/v1')"
