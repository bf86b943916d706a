"""One model object for every event loop, thread and process."""

import asyncio
import gc
import logging
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from reactflow.loopback import LoopbackServer, reply_text
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.openai_model import OpenAIChatModel, _connections


@pytest.fixture
def server():
    with LoopbackServer(respond=lambda request: reply_text("hello")) as server:
        yield server


@pytest.fixture
def model(server):
    return OpenAIChatModel("m", base_url=server.base_url)


async def say(model):
    question = UserMessage("hi")
    return (await model.complete(ChatRequest(messages=(question,), run=Run(question=question)))).text


def say_in_child(model, answers):
    answers.put(asyncio.run(say(model)))


def test_the_same_model_works_in_one_event_loop_after_another(model, server, caplog):
    caplog.set_level(logging.WARNING)

    assert [asyncio.run(say(model)) for _ in range(3)] == ["hello"] * 3

    with warnings.catch_warnings(record=True) as caught:
        gc.collect()
    assert ([str(warning.message) for warning in caught], caplog.messages) == ([], [])
    assert [loop for loop in _connections._held if loop.is_closed()] == []


def test_ten_threads_share_a_model(model):
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: asyncio.run(say(model)), range(30)))

    assert answers == ["hello"] * 30


async def test_a_running_loop_and_another_threads_loop_share_a_model(model):
    mine = await say(model)
    others = await asyncio.to_thread(lambda: asyncio.run(say(model)))

    assert (mine, others, await say(model)) == ("hello", "hello", "hello")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
async def test_a_forked_process_opens_connections_of_its_own(model):
    await say(model)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=say_in_child, args=(model, answers))

    child.start()
    theirs = await asyncio.to_thread(answers.get, timeout=20)
    await asyncio.to_thread(child.join, 20)

    assert (theirs, child.exitcode, await say(model)) == ("hello", 0, "hello")


PROGRAM = """
import asyncio, os, sys, threading
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.openai_model import OpenAIChatModel
model = OpenAIChatModel("m", base_url={url!r})
async def say():
    question = UserMessage("hi")
    return (await model.complete(ChatRequest(messages=(question,), run=Run(question=question)))).text
"""


def run_program(server, body):
    """What a program of its own prints, on standard output and on standard error."""
    program = PROGRAM.format(url=server.base_url) + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=120)
    return done.stdout, done.stderr


def test_a_child_that_exits_in_good_order_leaves_its_parents_connections_alone(server):
    said = run_program(
        server,
        """
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        def ask():
            print(asyncio.run_coroutine_threadsafe(say(), loop).result(60), flush=True)
        ask()
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        ask()
        """,
    )

    assert said[0] == "hello\nhello\n"
    assert "nclosed c" not in said[1]


def test_a_loop_that_is_never_closed_leaves_no_complaint_at_exit(server):
    said = run_program(
        server,
        """
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        print(asyncio.run_coroutine_threadsafe(say(), loop).result())
        other = asyncio.new_event_loop()
        print(other.run_until_complete(say()))
        """,
    )

    assert said[0] == "hello\nhello\n"
    assert "nclosed c" not in said[1]  # neither a client session nor a connector


def test_a_loop_closed_without_its_generators_is_cleared_away_later(model, caplog):
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(say(model)) == "hello"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the transports' own; their loop was closed over their heads
        loop.close()
        assert asyncio.run(say(model)) == "hello"
        del loop
        gc.collect()

    assert [loop for loop in _connections._held if loop.is_closed()] == []
    assert caplog.messages == []


async def test_a_model_that_is_dropped_leaves_the_connections_to_the_next(server):
    for _ in range(3):
        assert await say(OpenAIChatModel("m", base_url=server.base_url)) == "hello"
        gc.collect()

    held = await _connections.get()
    assert len(held.lines) == 0


async def test_fifty_tasks_of_a_fresh_loop_open_one_set_of_connections(model):
    assert await asyncio.gather(*(say(model) for _ in range(50))) == ["hello"] * 50


def test_a_pickled_model_goes_on_in_another_process(model):
    copy = pickle.loads(pickle.dumps(model))

    assert (asyncio.run(say(copy)), repr(copy)) == ("hello", repr(model))


def test_threads_that_come_and_go_leave_nothing_behind(model):
    def work():
        asyncio.run(say(model))

    for _ in range(5):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert len([loop for loop in _connections._held if loop.is_closed()]) == 0
