"""What holds for every database: tenants, turns between processes, trouble."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from reactflow.errors import ConfigurationError, ConflictError, StoreError
from reactflow.messages import AssistantMessage, Message, UserMessage
from reactflow.stores import open_store


def turn(number: int) -> list[Message]:
    return [UserMessage(f"q{number}"), AssistantMessage(f"a{number}")]


async def texts(store, conversation_id: str = "c") -> list[str]:
    return [stored.message.text for stored in await store.oldest(conversation_id, 1000)]


def in_another_process(store, do: str, database: str, **settings: object) -> subprocess.Popen[str]:
    """Run *do* on the same database and tenant in a new process; it prints and reads lines."""
    url = os.environ.get(f"REACTFLOW_TEST_{database.upper()}_URL", store.database)
    code = f"""
import asyncio
from reactflow.messages import AssistantMessage, UserMessage
from reactflow.stores import open_store

async def main():
    async with open_store({url!r}, tenant={store.tenant!r}, overlap={store.overlap!r}, **{settings!r}) as store:
{do}

asyncio.run(main())
"""
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


HOLD = """
        async with store.turn("c"):
            print("held", flush=True)
            await asyncio.to_thread(input)
            await store.append("c", [UserMessage("theirs"), AssistantMessage("a")])
"""


async def line_from(process: subprocess.Popen[str]) -> str:
    return (await asyncio.to_thread(process.stdout.readline)).strip()


async def test_a_turn_waits_for_that_of_another_process(database, opened):
    store = opened(database)
    with in_another_process(store, HOLD, database) as other:
        assert await line_from(other) == "held"

        async def ours() -> None:
            async with store.turn("c"):
                await store.append("c", turn(1))

        waiting = asyncio.create_task(ours())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        async with asyncio.timeout(60), store.turn("another"):
            pass
        other.communicate("go on\n")
    async with asyncio.timeout(60):
        await waiting
    assert await texts(store) == ["theirs", "a", "q1", "a1"]


async def test_a_process_that_is_killed_in_the_middle_of_a_turn_leaves_nothing_locked(database, opened):
    lease = {"lease_s": 0.5} if database == "redis" else {}
    store = opened(database, **lease)
    with in_another_process(store, HOLD, database, **lease) as other:
        assert await line_from(other) == "held"
        other.send_signal(signal.SIGKILL)
    async with asyncio.timeout(60), store.turn("c"):
        await store.append("c", turn(1))
    assert await texts(store) == ["q1", "a1"]


async def test_turns_that_append_do_not_wait_for_another_process(database, opened):
    store = opened(database, overlap="append")
    with in_another_process(store, HOLD, database) as other:
        assert await line_from(other) == "held"
        async with asyncio.timeout(60), store.turn("c"):
            await store.append("c", turn(1))
        other.communicate("go on\n")
    assert await texts(store) == ["q1", "a1", "theirs", "a"]


async def test_a_turn_that_another_process_overtook_is_a_conflict_and_not_stored(database, opened):
    store, other = opened(database, overlap="conflict"), opened(database, overlap="append")
    await store.append("c", turn(0))
    async with store.turn("c"):
        await other.append("c", turn(1))
        with pytest.raises(ConflictError, match="while this turn ran") as caught:
            await store.append("c", turn(2))
    assert caught.value.conversation_id == "c"
    assert isinstance(caught.value, StoreError)
    async with store.turn("c"):
        await store.append("c", turn(3))
        await store.append("c", turn(4))
        await store.replace_from("c", 5, turn(5))
        await store.append("c", turn(6))
    await store.append("c", turn(7))  # outside of a turn nothing is expected
    assert await texts(store) == [text for n in (0, 1, 5, 6, 7) for text in (f"q{n}", f"a{n}")]


async def test_a_conversation_that_is_new_conflicts_too(database, opened):
    store, other = opened(database, overlap="conflict"), opened(database, overlap="append")
    async with store.turn("c"):
        await other.append("c", turn(1))
        with pytest.raises(ConflictError):
            await store.append("c", turn(2))
    async with store.turn("d"):
        await store.append("d", turn(3))
    assert (await texts(store), await texts(store, "d")) == (["q1", "a1"], ["q3", "a3"])


async def test_no_tenant_reaches_the_conversations_of_another(database, opened):
    one, other = opened(database), opened(database)
    base = one.tenant
    pairs = [(f"{base}a", "bc"), (f"{base}ab", "c"), (f"{base}%", "c"), (f"{base}'", "c"), (f"{base}A", "bc")]
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(opened(database, tenant=tenant)) for tenant, _ in pairs]
        for number, (store, (_, conversation_id)) in enumerate(zip(stores, pairs, strict=True)):
            await store.append(conversation_id, turn(number))
            await store.set_note(conversation_id, "n", str(number))
        for number, (store, (_, conversation_id)) in enumerate(zip(stores, pairs, strict=True)):
            assert await store.conversations() == (conversation_id,)
            assert await texts(store, conversation_id) == [f"q{number}", f"a{number}"]
            assert await store.note(conversation_id, "n") == str(number)
        await stores[0].clear("bc")
        assert await stores[4].conversations() == ("bc",)
    assert await other.conversations() == ()


async def test_two_stores_over_one_database_share_the_queue_and_know_it(database, opened):
    one, other = opened(database), opened(database)
    assert one.turn_key("c") == other.turn_key("c")
    assert one.turn_key("c") != one.turn_key("d")
    assert one.turn_key("c") != opened(database, tenant="another").turn_key("c")


async def test_a_closed_store_opens_again_when_it_is_used(database, opened):
    store = opened(database)
    await store.aclose()
    await store.append("c", turn(1))
    async with store.turn("c"):
        pass
    await store.aclose()
    await store.aclose()
    async with store.turn("c"):
        assert await texts(store) == ["q1", "a1"]


async def test_a_store_that_is_closed_in_the_middle_of_a_turn_ends_it(database, opened):
    store = opened(database, **({"lease_s": 0.5} if database == "redis" else {}))
    async with store.turn("c"):
        await store.aclose()
    async with asyncio.timeout(60), store.turn("c"):
        await store.append("c", turn(1))


async def test_a_program_that_forgets_to_close_its_stores_ends_without_a_word(database, opened):
    store = opened(database)
    url = os.environ.get(f"REACTFLOW_TEST_{database.upper()}_URL", store.database)
    code = f"""
import asyncio, gc, threading, time
from reactflow import UserMessage, open_store

async def use(store):
    async with store.turn("c"):
        await store.append("c", [UserMessage("q")])

kept, lost = (open_store({url!r}, tenant={store.tenant!r}) for _ in range(2))
asyncio.run(use(kept))
asyncio.run(use(lost))
del lost
gc.collect()
until = time.monotonic() + 60
while (left := sum(thread.name.startswith("reactflow") for thread in threading.enumerate())) > 1:
    assert time.monotonic() < until
    time.sleep(0.01)
print(left)
"""
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", code]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert len(await store.newest("c", 9)) == 2


async def test_an_id_that_is_too_long_is_refused_and_says_by_how_much(database, opened):
    store = opened(database)
    with pytest.raises(ConfigurationError, match="701 bytes"):
        await store.append("x" * 701, turn(1))
    with pytest.raises(ConfigurationError, match="702 bytes"):
        store.turn("京" * 234)
    for blank in ("", " ", None):
        with pytest.raises(ConfigurationError, match="conversation id"):
            await store.newest(blank, 1)


async def test_what_json_cannot_hold_is_refused(database, opened):
    store = opened(database)
    with pytest.raises(ConfigurationError, match="cannot keep"):
        await store.append("c", [AssistantMessage("a", extra={"raw": object()})])
    with pytest.raises(ConfigurationError, match="note is a text"):
        await store.set_note("c", "n", 7)
    assert await texts(store) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_forked_child_opens_connections_of_its_own(database, opened):
    store = opened(database)
    await store.append("c", turn(1))
    async with store.turn("c"):
        pass

    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio._set_running_loop(None)

            async def work() -> None:
                async with store.turn("c"):
                    await store.append("c", turn(2))

            asyncio.run(work())
            code = 0
        finally:
            os._exit(code)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert status == 0
    async with asyncio.timeout(60), store.turn("c"):
        await store.append("c", turn(3))
    assert await texts(store) == ["q1", "a1", "q2", "a2", "q3", "a3"]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:pw@127.0.0.1:1/x",
        "mysql://u:pw@127.0.0.1:1/x",
        "redis://u:pw@127.0.0.1:1/0",
        "sqlite:////no/x.db",
    ],
)
async def test_a_database_that_cannot_be_reached_is_a_store_error_that_hides_the_password(url):
    async with open_store(url, timeout_s=1) as store:
        with pytest.raises(StoreError) as caught:
            await store.newest("c", 1)
        assert "pw" not in str(caught.value)
        assert "pw" not in repr(store)
        if not url.startswith("sqlite"):
            with pytest.raises(StoreError):
                async with store.turn("c"):
                    raise AssertionError("there is no turn without a database")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"tenant": 7}, "tenant"),
        ({"tenant": "x" * 191}, "tenant"),
        ({"overlap": "queue"}, "overlap"),
        ({"ttl_seconds": 0}, "ttl_seconds"),
        ({"timeout_s": None}, "timeout_s"),
        ({"pool_size": 0}, "pool_size"),
        ({"pool_size": True}, "pool_size"),
    ],
)
@pytest.mark.parametrize("url", ["sqlite:///chat.db", "redis://localhost"])
def test_a_wrong_setting_is_refused(url, settings, named):
    with pytest.raises(ConfigurationError, match=named):
        open_store(url, **settings)
