"""A redirect is followed with the same request, on the same server only; any other is an error that says why."""

import openai
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from reactflow.errors import ProviderError
from reactflow.events import TextDelta, discard
from reactflow.loopback import Reply, completion, reply_text, stream_text
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.openai_model import OpenAIChatModel
from reactflow.wire.redirect import MAX_REDIRECTS, redirected, unfollowed

PATH = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("url", "location", "target"),
    [
        ("https://h/v1/c", "https://h/v2/c", "https://h/v2/c"),
        ("https://h/v1/c", "HTTPS://H:443/v2/c", "https://h/v2/c"),
        ("https://h:443/v1/c", "https://h/v2/c", "https://h:443/v2/c"),
        ("https://h/v1/c", "https://h:8443/v2/c", None),
        ("https://h/v1/c", "https://h:0/v2/c", None),
        ("https://h/v1/c", "https://h.evil/v2/c", None),
        ("https://h/v1/c", "https://evil/v2/c", None),
        ("http://h:1/v1/c", "http://h:1/v2/c", "http://h:1/v2/c"),
        ("http://[::1]:1/v1/c", "http://[::1]:1/v2/c", "http://[::1]:1/v2/c"),
        # from http to https, and never back
        ("http://h/v1/c", "https://h/v1/c", "https://h/v1/c"),
        ("http://h:80/v1/c", "https://h:443/v1/c", "https://h/v1/c"),
        ("http://[::1]/v1/c", "https://[::1]/v1/c", "https://[::1]/v1/c"),
        ("http://[::1]:80/v1/c", "https://[::1]/v1/c", "https://[::1]/v1/c"),
        ("http://h:8080/v1/c", "https://h/v1/c", None),
        ("http://h:8080/v1/c", "https://h:8080/v1/c", None),
        ("http://h/v1/c", "https://h:80/v1/c", None),
        ("http://h/v1/c", "https://evil/v1/c", None),
        ("https://h/v1/c", "http://h/v1/c", None),
        ("https://h/v1/c", "http://h:443/v1/c", None),
        # the user of the base URL stays, that of the redirect does not count
        ("https://me:pw@h/v1/c", "https://h/v2/c", "https://me:pw@h/v2/c"),
        ("https://me:pw@h/v1/c", "/v2/c", "https://me:pw@h/v2/c"),
        ("http://me:80@h:80/v1/c", "https://you:pw@h/v2/c", "https://me:80@h/v2/c"),
        ("https://h/v1/c", "https://you:pw@h/v2/c", "https://h/v2/c"),
        ("http://h:1/v1/c", "http://h:1@evil/", None),
        ("http://h:1/v1/c", "http://h:1\\@evil/", None),
        ("http://h/v1/c", "https://h\\@evil/", None),
        # seen from the address that was asked
        ("https://h/v1/c?api-version=1", "/v2/c", "https://h/v2/c"),
        ("https://h/v1/c", "/v1/c/?a=b%20c&d=#part", "https://h/v1/c/?a=b%20c&d="),
        ("https://h/v1/c", "d", "https://h/v1/d"),
        ("https://h/v1/c", "", "https://h/v1/c"),
        ("https://h/v1/c", "//h/d", "https://h/d"),
        ("https://h/v1/c", "//evil/d", None),
        ("https://h/v1/c", "///evil/d", "https://h/evil/d"),
        ("https://h/v1/c", "https:///evil/d", "https://h/evil/d"),
        ("https://h/v1/c", "/\\evil/d", "https://h/%5Cevil/d"),
        ("https://h/v1/c", "ftp://h/v1/c", None),
        ("https://h/v1/c", "mailto:me@h", None),
        # as it can be sent
        ("http://h/v1/c", " https://h/d ", "https://h/d"),
        ("http://h/v1/c", "ht\ntps://h/d", "https://h/d"),
        ("http://h/v1/c", "/a b\x7f\0\x1b[é?x y", "http://h/a%20b%7F%00%1B[%C3%A9?x%20y"),
        ("http://h/v1/c", "http://[/", None),
        ("http://h/v1/c", "http://h:99999999/", None),
        ("http://h/v1/c", "http://h:port/", None),
        ("http://h/v1/c", "/\ud800", None),
        ("http://h/v1/c", None, None),
    ],
)
def test_a_request_goes_to_no_other_server_however_it_is_spelled(url, location, target):
    assert [redirected(status, url, location) for status in (307, 308)] == [target, target]


@pytest.mark.parametrize("status", [200, 300, 301, 302, 303, 304, 400])
def test_a_status_that_does_not_ask_for_the_same_request_is_not_followed(status):
    assert redirected(status, "https://h/v1/c", "/v2/c") is None


BASE = "https://h/v1"
OTHER = "it redirects to another server, {}, and neither a key nor a conversation goes there unasked."
PASS = " If that is the right one, pass base_url={!r}."


@pytest.mark.parametrize(
    ("status", "location", "says"),
    [
        (307, "https://o/v1/chat/completions", OTHER.format("https://o" + PATH) + PASS.format("https://o/v1")),
        (301, "https://o/v1/chat/completions/", OTHER.format(f"https://o{PATH}/") + PASS.format("https://o/v1")),
        (
            307,
            "https://me:pw@o:8/v1/chat/completions?token=SECRET#SECRET",
            OTHER.format("https://o:8" + PATH) + PASS.format("https://o:8/v1"),
        ),
        (
            308,
            "//o/chat/completions/chat/completions",
            OTHER.format("https://o/chat/completions/chat/completions") + PASS.format("https://o"),
        ),
        (307, "https://o/login?next=x&token=SECRET", OTHER.format("https://o/login") + " Check base_url."),
        (307, "http://h/v1/chat/completions", OTHER.format("http://h" + PATH) + " Check base_url."),
        (307, "ftp://o/v1/chat/completions", OTHER.format("ftp://o" + PATH) + " Check base_url."),
        (307, "https://:8/v1/chat/completions", OTHER.format("https://:8" + PATH) + " Check base_url."),
        (307, f"https://o/{'x' * 300}{PATH}", OTHER.format(f"https://o/{'x' * 190}") + " Check base_url."),
        (
            301,
            "/v2/chat/completions?token=SECRET",
            "it redirects to https://h/v2/chat/completions by status 301, and only 307 and 308 ask for the same "
            "request again." + PASS.format("https://h/v2"),
        ),
        (
            302,
            "https://H:443/v1/chat/completions/",
            "it redirects to https://H:443/v1/chat/completions/ by status 302, and only 307 and 308 ask for the same "
            "request again. Check base_url.",
        ),
        (
            307,
            PATH,
            f"it redirects more than {MAX_REDIRECTS} times in a row, at last to {BASE}/chat/completions. "
            "Check base_url.",
        ),
        (307, "http://[?token=SECRET", "it redirects to an address that cannot be read. Check base_url."),
    ],
)
def test_the_reason_is_the_true_one_and_holds_no_secret_and_only_a_base_url_that_will_do(status, location, says):
    reason = unfollowed(status, BASE + "/chat/completions", location, BASE + "?api-version=1")

    assert reason == says
    if "pass base_url=" in reason:
        OpenAIChatModel("m", base_url=reason.split("'")[1], api_key="k")


def model_at(server, **settings):
    return OpenAIChatModel("m", base_url=server.base_url, api_key="sk-secret", **settings)


async def ask(model, *, question="Q", stream=False, emit=discard):
    run = Run(question=UserMessage(question))
    return (await model.complete(ChatRequest(messages=(run.question,), run=run, stream=stream, emit=emit))).text


def moving(times, answer, *, status=307):
    """Redirects *times* times, each time to another path, and then answers."""

    def respond(request):
        step = int(request.path.removeprefix("/step").partition("/")[0]) if request.path.startswith("/step") else 0
        if step == times:
            return answer(request)
        return Reply(status=status, headers={"location": f"/step{step + 1}{PATH}"})

    return respond


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_neither_key_nor_conversation_follows_a_redirect_to_another_server(serve, status):
    other = serve(respond=lambda _: reply_text("stolen"))
    moved = Reply(status=status, headers={"location": f"{other.base_url}/chat/completions"})
    server = serve(respond=lambda _: moved)

    with pytest.raises(ProviderError) as caught:
        await ask(model_at(server, headers={"api-key": "secret"}))

    says = OTHER.format(f"{other.base_url}/chat/completions") + PASS.format(other.base_url)
    error, where = caught.value, f"model 'm' at {server.base_url}"
    assert str(error) == f"The request to {where} failed with status {status}: {says}"
    assert str(error.__cause__) == f"Error code: {status} - {says}"
    assert (error.status, error.retryable, type(error.__cause__)) == (status, False, openai.APIStatusError)
    assert (other.requests, len(server.requests)) == ([], 1)


@pytest.mark.parametrize("location", ["https://billing-gateway.test" + PATH, "https://o.test/context-length" + PATH])
async def test_the_words_of_an_address_are_no_reason(serve, location):
    server = serve(respond=lambda _: Reply(status=307, body="<html>rate limit", headers={"location": location}))

    with pytest.raises(ProviderError, match="failed with status 307: it redirects to another server") as caught:
        await ask(model_at(server))

    assert (len(server.requests), caught.value.body) == (1, "<html>rate limit")


async def test_a_key_in_an_address_is_not_shown(serve):
    server = serve(Reply(status=307, headers={"location": "https://o.test/sk-secret" + PATH}))

    with pytest.raises(ProviderError, match=r"to another server, https://o.test/\*\*\*/v1"):
        await ask(model_at(server))


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("size", [10, 2_000_000])
async def test_a_chain_of_redirects_on_the_same_server_carries_the_same_request_to_its_end(serve, status, size):
    def measure(request):
        return reply_text(f"{len(request.body['messages'][-1]['content'])} characters")

    server = serve(respond=moving(MAX_REDIRECTS, measure, status=status))

    assert await ask(model_at(server), question="x" * size) == f"{size} characters"

    steps = [f"/step{step}{PATH}" for step in range(1, MAX_REDIRECTS + 1)]
    assert [request.path for request in server.requests] == [PATH, *steps]
    assert len({request.raw for request in server.requests}) == 1


async def test_a_redirected_stream_arrives_in_its_pieces(serve):
    told = []
    server = serve(respond=moving(1, lambda _: stream_text("FI", "NAL")))

    assert await ask(model_at(server), stream=True, emit=told.append) == "FINAL"

    assert told == [TextDelta("FI"), TextDelta("NAL")]


@pytest.mark.parametrize("size", [10, 2_000_000])
async def test_a_key_from_a_function_goes_along_and_is_asked_for_once(size):
    asked, keys = [], []

    async def key():
        asked.append("asked")
        return f"token-{len(asked)}"

    async def answer(request):
        keys.append(request.headers["Authorization"])
        if len(keys) == 1:
            raise web.HTTPTemporaryRedirect(PATH)
        return web.json_response(completion({"content": "FINAL"}))

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post(PATH, answer)
    async with TestServer(app) as server:
        model = OpenAIChatModel("m", base_url=str(server.make_url("/v1")), api_key=key)
        assert await ask(model, question="x" * size) == "FINAL"

    assert (keys, asked) == (["Bearer token-1"] * 2, ["asked"])


async def test_redirects_in_a_circle_are_an_error(serve):
    server = serve(respond=lambda _: Reply(status=307, headers={"location": PATH}))

    with pytest.raises(ProviderError, match=f"more than {MAX_REDIRECTS} times in a row, at last to {server.base_url}"):
        await ask(model_at(server))

    assert len(server.requests) == MAX_REDIRECTS + 1


async def test_a_chain_that_is_one_too_long_names_where_it_was_to_go_next(serve):
    server = serve(respond=moving(MAX_REDIRECTS + 1, lambda _: reply_text("FINAL")))

    with pytest.raises(ProviderError, match=rf"pass base_url='http://127.0.0.1:\d+/step{MAX_REDIRECTS + 1}/v1'"):
        await ask(model_at(server))

    assert len(server.requests) == MAX_REDIRECTS + 1
