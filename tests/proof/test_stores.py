"""No turn is lost, torn or mixed: many processes at once, kills in the middle, servers that restart, full disks."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from turns import agent_on, all_messages, check_turns

from reactflow import StoreError
from reactflow.stores import open_store

HERE = Path(__file__).parent
PROCESSES, TURNS, CONVERSATIONS = 50, 20, 10
KILLS = 100


def test_fifty_processes_lose_tear_and_mix_nothing_in_a_thousand_turns(url, tenant):
    command = [sys.executable, HERE / "writers.py", url, tenant, *map(str, (PROCESSES, TURNS, CONVERSATIONS))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    questions = asyncio.run(all_questions(url, tenant))
    assert len(questions) == PROCESSES * TURNS
    assert set(questions) == {f"{writer}.{turn}" for writer in range(PROCESSES) for turn in range(TURNS)}


async def all_questions(url, tenant):
    """Those of all conversations, once they are found to be whole turns in order."""
    async with open_store(url, tenant=tenant) as store:
        stored = [await all_messages(store, f"c{number}") for number in range(CONVERSATIONS)]
    return [question for messages in stored for question in check_turns(messages)]


async def test_a_hundred_kills_leave_whole_turns_and_the_next_one_works(url, tenant):
    command = [sys.executable, HERE / "killed.py", url, tenant, str(KILLS)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2


@pytest.mark.parametrize("how", ["restart", "kill"])
async def test_a_server_that_goes_in_the_middle_of_a_turn_costs_at_most_that_turn(database, url, tenant, how):
    if database == "sqlite":
        return  # no server
    lease = {"lease_s": 0.5} if database == "redis" else {}
    async with open_store(url, tenant=tenant, timeout_s=20, **lease) as store:
        agent = agent_on(store)
        await agent.arun("before", conversation_id="c")
        if database == "redis":
            await on_disk(store)

        async with store.turn("c"):
            await services("restart" if how == "restart" else "kill", database)
            if how == "kill":
                await services("start", database)
            # what the turn would store now goes to a server that has forgotten the connection
            await store.append("d", await messages_of("other", store))
        try:
            await agent.arun("after", conversation_id="c")
        except StoreError:
            await agent.arun("after", conversation_id="c")
        assert check_turns(await all_messages(store, "c")) == ["before", "after"]
        assert check_turns(await all_messages(store, "d")) == ["other"]


async def on_disk(store):
    """Wait until Redis has written its log, which it does a moment after the reply."""
    async with asyncio.timeout(60):
        while True:
            told = await store._run("look", lambda redis: redis.info("persistence"))
            if told["aof_buffer_length"] == told["aof_pending_bio_fsync"] == 0:
                return
            await asyncio.sleep(0.1)


async def messages_of(question, store):
    """One whole turn, taken elsewhere."""
    memory = open_store("memory://")
    await agent_on(memory).arun(question, conversation_id="x")
    return await all_messages(memory, "x")


async def services(command: str, name: str) -> None:
    script = ["bash", HERE / "services.sh", command, name]
    done = await asyncio.to_thread(subprocess.run, script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


FULL_DISK = """
import asyncio, resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from turns import agent_on, all_messages, check_turns
from reactflow import StoreError
from reactflow.stores import open_store

async def main(url, path):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with open_store(url) as store:
        await agent_on(store).arun("fits", conversation_id="c")
        size = Path(path + "-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, resource.RLIM_INFINITY))
        try:
            await agent_on(store, padding=500_000).arun("unfit", conversation_id="c")
        except StoreError as error:
            assert error.partial.text.startswith("unfit 4 ")
            print(type(error.__cause__).__name__)
        await agent_on(store).arun("fits-too", conversation_id="c")
        print(check_turns(await all_messages(store, "c")))

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


async def test_a_full_disk_is_a_store_error_with_the_answer_and_stores_nothing_of_it(tmp_path):
    path = f"{tmp_path}/chat.db"
    command = [sys.executable, "-c", FULL_DISK, f"sqlite:///{path}", path, HERE]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.stdout == "StoreError\n['fits', 'fits-too']\n", done.stderr
    async with open_store(f"sqlite:///{path}") as store:
        assert check_turns(await all_messages(store, "c")) == ["fits", "fits-too"]
