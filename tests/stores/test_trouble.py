"""Connections that drop, pools that run dry, steps that hang: recovery or a typed error, and never half a turn."""

import asyncio
import sqlite3
import threading
from contextlib import contextmanager
from functools import partial

import pytest
from sqlalchemy import text

from reactflow.errors import StoreError
from reactflow.messages import AssistantMessage, Message, UserMessage
from reactflow.stores import sql_work
from reactflow.stores.database import lock_number


def turn(number: int) -> list[Message]:
    return [UserMessage(f"q{number}"), AssistantMessage(f"a{number}")]


async def texts(store, conversation_id: str = "c") -> list[str]:
    return [stored.message.text for stored in await store.oldest(conversation_id, 1000)]


async def drop_connections(store) -> None:
    """End all connections of the server but the one that says so."""
    if store.database.startswith("redis"):
        await store._run("kill", lambda redis: redis.execute_command("CLIENT", "KILL", "TYPE", "normal"))
        return

    def kill(connection) -> None:
        if connection.dialect.name == "postgresql":
            mine = "pid <> pg_backend_pid() and datname = current_database()"
            connection.execute(text(f"select pg_terminate_backend(pid) from pg_stat_activity where {mine}"))
            return
        others = "select id from information_schema.processlist where id <> connection_id() and user = 'reactflow'"
        for number in list(connection.scalars(text(others))):
            connection.execute(text(f"kill {number}"))

    await store._backend.run(kill, write=False)


SERVERS = pytest.mark.parametrize("database", ["postgres", "mariadb", "redis"], indirect=True)
SQL_SERVERS = pytest.mark.parametrize("database", ["postgres", "mariadb"], indirect=True)


@pytest.fixture
def database(request) -> str:
    request.getfixturevalue("needs")(request.param)
    return request.param


@pytest.fixture
def needs():
    import os

    def check(name: str) -> None:
        variable = f"REACTFLOW_TEST_{name.upper()}_URL"
        if not os.environ.get(variable):
            (pytest.fail if os.environ.get("REACTFLOW_CI") == "1" else pytest.skip)(
                f"needs a server: set {variable} to its address"
            )

    return check


@pytest.fixture
def impatient(monkeypatch):
    """Makes a store give up after 0.4 s inside a block; before and after it a slow machine has all its time."""

    @contextmanager
    def giving_up(store):
        timed, name = (store, "timeout_s") if store.database.startswith("redis") else (store._backend, "_timeout_s")
        with monkeypatch.context() as patch:
            patch.setattr(timed, name, 0.4)
            yield

    return giving_up


@SERVERS
async def test_connections_that_drop_are_replaced_even_in_the_middle_of_a_turn(database, opened):
    store, killer = opened(database), opened(database)
    await store.append("c", turn(1))
    await killer.append("c", turn(2))
    async with store.turn("c"):
        await drop_connections(killer)
        await store.append("c", turn(3))
    async with asyncio.timeout(10), store.turn("c"):
        await store.append("c", turn(4))
    assert await texts(store) == [text for n in (1, 2, 3, 4) for text in (f"q{n}", f"a{n}")]


@SERVERS
async def test_a_pool_that_ran_dry_is_a_store_error_and_recovers(database, opened, impatient):
    store = opened(database, pool_size=2)
    await store.append("c", turn(1))
    taken, release = threading.Barrier(3), threading.Event()

    async def wait() -> None:
        await asyncio.to_thread(taken.wait)
        await asyncio.to_thread(release.wait)

    async def hold_in_sql(server) -> None:
        async with server.reading.connect() as connection:
            await connection.execute(text("select 1"))
            await wait()

    async def hold_in_redis(redis) -> None:
        async with redis.client() as connection:
            await connection.ping()
            await wait()

    thread, hold = (store._thread, hold_in_redis) if database == "redis" else (store._backend._thread, hold_in_sql)
    holding = [asyncio.create_task(thread.run(hold)) for _ in range(2)]
    await asyncio.to_thread(taken.wait)
    with impatient(store), pytest.raises(StoreError, match="failed to append"):
        await store.append("c", turn(2))
    release.set()
    await asyncio.gather(*holding)
    await store.append("c", turn(3))
    assert await texts(store) == ["q1", "a1", "q3", "a3"]


@SQL_SERVERS
async def test_a_step_that_hangs_is_a_store_error_and_stores_nothing(database, opened, impatient):
    store, other = opened(database), opened(database)
    await store.append("c", turn(1))
    locked, release = threading.Event(), threading.Event()

    async def block(server) -> None:
        async with server.engine.begin() as connection:
            await connection.execute(text("update reactflow_conversations set last = last"))
            locked.set()
            await asyncio.to_thread(release.wait)

    await other.append("d", turn(1))
    blocking = asyncio.create_task(other._backend._thread.run(block))
    await asyncio.to_thread(locked.wait)
    with impatient(store), pytest.raises(StoreError, match="TimeoutError"):
        await store.append("c", turn(2))
    release.set()
    await blocking
    await store.append("c", turn(3))
    assert await texts(store) == ["q1", "a1", "q3", "a3"]


async def test_a_locked_file_is_a_store_error_and_stores_nothing(opened, tmp_path):
    store = opened("sqlite", timeout_s=0.2)
    await store.append("c", turn(1))
    blocker = sqlite3.connect(tmp_path / "chat.db", isolation_level=None)
    blocker.execute("begin immediate")
    with pytest.raises(StoreError, match="locked"):
        await store.append("c", turn(2))
    assert await texts(store) == ["q1", "a1"]
    blocker.execute("rollback")
    blocker.close()
    await store.append("c", turn(3))
    assert await texts(store) == ["q1", "a1", "q3", "a3"]


async def test_a_file_that_another_process_is_opening_is_waited_for(opened, tmp_path):
    blocker = sqlite3.connect(tmp_path / "chat.db", isolation_level=None, check_same_thread=False)
    blocker.execute("begin exclusive")
    blocker.execute("create table other (x)")

    def release() -> None:
        blocker.execute("commit")
        blocker.close()

    asyncio.get_running_loop().call_later(0.1, release)
    store = opened("sqlite", timeout_s=60)
    await store.append("c", turn(1))
    assert await texts(store) == ["q1", "a1"]


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres"), pytest.param("mariadb")])
async def test_a_batch_that_is_sent_again_because_its_reply_was_lost_is_stored_once(kind, opened, needs):
    if kind != "sqlite":
        needs(kind)
    store = opened(kind)
    for batch in (store._batch(store.key("c"), turn(1)), store._batch(store.key("c"), turn(2))):
        work = partial(sql_work.append, batch=batch)
        ends = [await store._backend.run(work, write=True) for _ in range(3)]
        assert len(set(ends)) == 1
    batch = store._batch(store.key("c"), turn(3))
    work = partial(sql_work.replace_from, batch=batch, sequence=3)
    assert [await store._backend.run(work, write=True) for _ in range(2)] == [6, 6]
    assert await texts(store) == ["q1", "a1", "q3", "a3"]


async def test_a_script_that_is_sent_again_because_its_reply_was_lost_is_stored_once(opened, needs, monkeypatch):
    needs("redis")
    store = opened("redis")
    monkeypatch.setattr("os.urandom", lambda size: b"t" * size)
    assert [await store.append("c", turn(1)) for _ in range(3)] == [2, 2, 2]
    assert await texts(store) == ["q1", "a1"]


async def test_a_lease_is_renewed_while_the_turn_runs_and_ends_when_nobody_does(opened, needs, until):
    needs("redis")
    store, other = opened("redis", lease_s=1.5), opened("redis", lease_s=1.5)
    key = store.key("c")
    number = lock_number(b"", key.tenant, key.id)
    lease = f"reactflow:turn:{number}"

    async def renewed() -> bool:
        return await store._run("look", lambda redis: redis.pttl(lease)) <= 1500

    async with store.turn("c"):
        await store._run("lengthen", lambda redis: redis.pexpire(lease, 600_000))  # a slow machine does not lose it
        await until(renewed)
        assert not await other._locks().try_lock(number)
    assert await other._locks().try_lock(number)
    _, renewing = other._locks()._held[number]
    renewing.get_loop().call_soon_threadsafe(renewing.cancel)  # as a crash would
    async with asyncio.timeout(60), store.turn("c"):
        await store._run("steal", lambda redis: redis.set(lease, b"somebody else"))
        await asyncio.sleep(0.7)  # the lease is no longer ours: it is neither renewed nor given back
    assert await store._run("look", lambda redis: redis.get(lease)) == b"somebody else"
    await store._run("tidy", lambda redis: redis.delete(lease))
