"""The page in docs/how-to/stream-to-a-page.md: its code runs as it stands, on a real server."""

import asyncio
import re
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
import uvicorn

from reactflow import ProviderError, SimpleReactAgent, WindowChatMemory
from reactflow.event_json import RunFailed, SseReader
from reactflow.events import RunFinished, RunStarted, TextDelta, TextWithdrawn, ToolFinished
from reactflow.testing import ScriptedChatModel, calls, says

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "stream-to-a-page.md"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def page():
    """The names of the page's first block."""
    names = {}
    exec(compile(blocks("python")[0], str(PAGE), "exec"), names)
    return names


@contextmanager
def served(app):
    """The address of *app* on a real server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


async def events_of(url, question):
    reader = SseReader()
    async with aiohttp.ClientSession() as session, session.get(f"{url}/ask", params={"question": question}) as reply:
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        return [event async for chunk in reply.content.iter_any() for event in reader.feed(chunk)]


def test_the_server_is_twenty_lines_of_code():
    lines = [line for line in blocks("python")[0].splitlines() if line.strip()]

    assert len(lines) <= 20


async def test_a_run_reaches_the_page_as_events(page):
    with served(page["app"]) as url:
        events = await events_of(url, "What is the weather in Beijing?")

    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == events[-1].text


async def test_a_failure_and_a_blank_question_reach_the_page_as_the_last_event(page):
    page["agent"] = SimpleReactAgent(model=ScriptedChatModel(ProviderError("The service is down.")))
    with served(page["app"]) as url:
        failed, blank = await events_of(url, "Hi"), await events_of(url, "")

    assert failed[-1] == RunFailed(error="ProviderError", message="The service is down.")
    assert blank == [RunFailed(error="ConfigurationError", message="The question is blank; give it some text.")]


async def test_a_reader_that_leaves_ends_the_run_and_nothing_of_the_turn_is_kept(page):
    began, ended = threading.Event(), threading.Event()

    class Endless:
        name = "endless"

        async def complete(self, request):
            began.set()
            try:
                while True:
                    request.emit(TextDelta("word "))
                    await asyncio.sleep(0.005)
            finally:
                ended.set()

    memory = WindowChatMemory()
    page["agent"] = SimpleReactAgent(model=Endless(), memory=memory)
    page["agent"].astream = lambda question: SimpleReactAgent.astream(page["agent"], question, conversation_id="c")
    with served(page["app"]) as url, socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as reader:
        reader.sendall(b"GET /ask?question=Hi HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.to_thread(began.wait, 60)
        assert b"text_delta" in await asyncio.to_thread(read_until, reader, b"text_delta")
        reader.close()
        assert await asyncio.to_thread(ended.wait, 60)

    assert await memory.get("c") == ()


def read_until(connection, words):
    got, until = b"", time.monotonic() + 60
    while words not in got and time.monotonic() < until:
        got += connection.recv(65_536)
    return got


async def test_a_page_may_be_given_only_what_it_may_see(page):
    exec(blocks("python")[1], page)
    model = ScriptedChatModel(says("Hm.") + calls("weather", city="Paris"), says("Fine."))
    agent = SimpleReactAgent(model=model, tools=[page["weather"]])

    events = [event async for event in page["shown"](agent.astream("Paris?"))]

    assert not any(isinstance(event, ToolFinished) for event in events)
    assert [type(event) for event in events] == [TextDelta, TextWithdrawn, TextDelta, RunFinished]


def test_another_program_reads_the_same_bytes(page, capsys):
    exec(blocks("python")[2], page)

    assert capsys.readouterr().out.startswith("Weather (Paris)")


def test_the_page_listens_to_events_by_their_names():
    (html,) = blocks("html")

    assert set(re.findall(r'on\("(\w+)"', html)) == {"text_delta", "text_withdrawn", "run_finished", "run_failed"}
