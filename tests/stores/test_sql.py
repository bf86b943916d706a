"""What is particular to SQL databases: the files, the tables and their versions, damaged rows."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from reactflow.errors import ConfigurationError, StoreError
from reactflow.messages import AssistantMessage, UserMessage
from reactflow.store import StoredMessage
from reactflow.stores import open_store
from reactflow.stores.sql import SqlStore
from reactflow.stores.sql_schema import STEPS

TURN = (UserMessage("q"), AssistantMessage("a"))


@pytest.fixture
async def store(tmp_path: Path):
    async with SqlStore(f"sqlite:///{tmp_path}/chat.db") as store:
        yield store


def rows(path: Path, query: str) -> list[tuple]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.commit()
        connection.close()


async def test_messages_survive_the_store(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/chat.db") as store:
        await store.append("c", TURN)
    async with open_store(f"sqlite:///{tmp_path}/chat.db") as store:
        assert await store.oldest("c", 9) == (StoredMessage(1, TURN[0]), StoredMessage(2, TURN[1]))


async def test_the_file_has_a_write_ahead_log_and_readable_rows(store, tmp_path):
    await store.append("c", TURN)
    assert rows(tmp_path / "chat.db", "pragma journal_mode") == [("wal",)]
    joined = "reactflow_messages join reactflow_conversations on number = conversation"
    found = rows(tmp_path / "chat.db", f"select cast(id as text), sequence, body from {joined} order by sequence")
    assert found == [("c", 1, '{"role":"user","text":"q"}'), ("c", 2, '{"role":"assistant","text":"a"}')]


async def test_a_store_in_memory_is_forgotten_and_shared_with_nobody():
    async with SqlStore("sqlite://") as one, SqlStore("sqlite:///:memory:") as other:
        async with one.turn("c"):
            await one.append("c", TURN)
        assert (len(await one.newest("c", 9)), await other.newest("c", 9)) == (2, ())
        assert one.turn_key("c") != other.turn_key("c")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        '{"role":"user"}',
        '{"role":"system","text":"x"}',
        '{"role":"user","text":7}',
        '{"role":"user","text":"x","images":[7]}',
        '{"role":"user","text":"x","more":1}',
        '{"role":"assistant","text":"x","tool_calls":[{"id":"1"}]}',
        '{"role":"assistant","text":"x","tool_calls":["look"]}',
        '{"role":"assistant","text":"x","extra":"y"}',
        '{"role":"tool","text":"x"}',
        "[" * 100_000,
    ],
)
async def test_a_damaged_row_is_a_store_error_that_says_where_and_what_to_do(store, tmp_path, body):
    await store.append("c", TURN)
    await store.append("c", TURN)
    await store.append("d", TURN)
    connection = sqlite3.connect(tmp_path / "chat.db")
    connection.execute("update reactflow_messages set body = ? where sequence = 3", (body,))
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match=r"Message 3 of the conversation 'c' cannot be read.*replace_from\('c', 3\)"):
        await store.newest("c", 9)
    assert len(await store.newest("d", 9)) == 2
    assert len(await store.newest("c", 9, before=3)) == 2
    await store.replace_from("c", 3)
    assert len(await store.newest("c", 9)) == 2


async def test_a_damaged_note_is_a_store_error(store, tmp_path):
    await store.set_note("c", "summary", "s")
    for body in ("", "7"):
        rows(tmp_path / "chat.db", f"update reactflow_notes set body = '{body}'")
        with pytest.raises(StoreError, match="note 'summary'"):
            await store.note("c", "summary")


async def test_a_database_of_version_1_is_brought_up_and_keeps_its_conversations(tmp_path):
    path = tmp_path / "old.db"
    for statement in (
        "create table reactflow_schema (version integer primary key)",
        "create table reactflow_conversations (number integer primary key, tenant blob not null, id blob not null, "
        "last bigint not null, used_ms bigint not null, token blob not null, "
        "constraint reactflow_conversations_id unique (tenant, id))",
        "create table reactflow_messages (conversation bigint, sequence bigint, written_ms bigint not null, "
        "body text not null, primary key (conversation, sequence))",
        "insert into reactflow_schema values (1)",
        "insert into reactflow_conversations values (1, x'', x'63', 1, 1000, x'00')",
        """insert into reactflow_messages values (1, 1, 1000, '{"role":"user","text":"from long ago"}')""",
    ):
        rows(path, statement)
    async with SqlStore(f"sqlite:///{path}") as store:
        assert await store.newest("c", 9) == (StoredMessage(1, UserMessage("from long ago")),)
        await store.set_note("c", "n", "notes are new in version 2")
        assert await store.append("c", TURN) == 3
    assert rows(path, "select version from reactflow_schema") == [(1,), (2,)]
    assert rows(path, "select name from sqlite_master where name = 'reactflow_conversations_age'") != []


async def test_a_database_of_a_newer_version_is_refused(store, tmp_path):
    await store.append("c", TURN)
    await store.aclose()
    rows(tmp_path / "chat.db", "insert into reactflow_schema values (99)")
    with pytest.raises(ConfigurationError, match=f"version 99 .* knows {len(STEPS)}"):
        await store.append("c", TURN)


async def test_a_migration_broken_off_half_way_is_finished(tmp_path):
    path = tmp_path / "chat.db"
    async with SqlStore(f"sqlite:///{path}") as store:
        await store.append("c", TURN)
    rows(path, "delete from reactflow_schema")
    rows(path, "drop index reactflow_conversations_age")
    async with SqlStore(f"sqlite:///{path}") as store:
        assert len(await store.newest("c", 9)) == 2
    assert rows(path, "select version from reactflow_schema") == [(1,), (2,)]


@pytest.mark.parametrize("server", ["postgres", "mariadb"])
async def test_tables_are_made_by_one_of_many_that_start_at_once(server, request):
    import os

    variable = f"REACTFLOW_TEST_{server.upper()}_URL"
    if not os.environ.get(variable):
        pytest.skip(f"needs a server: set {variable} to its address")
    base = os.environ[variable]
    async with SqlStore(base) as main:
        for statement in ("drop database if exists reactflow_fresh", "create database reactflow_fresh"):
            await main._backend._thread.run(lambda server, sql=statement: _execute(server.reading, sql))
    stores = [SqlStore(base.rsplit("/", 1)[0] + "/reactflow_fresh") for _ in range(5)]
    try:
        await asyncio.gather(*(store.append("c", TURN) for store in stores))
        assert len(await stores[0].newest("c", 99)) == 10
    finally:
        for store in stores:
            await store.aclose()


async def _execute(engine, statement: str) -> None:
    async with engine.connect() as connection:
        await connection.execute(text(statement))


async def test_a_read_only_database_is_a_store_error(store, tmp_path):
    await store.append("c", TURN)
    path = tmp_path / "chat.db"
    async with SqlStore(f"sqlite:///file:{path}?mode=ro&uri=true") as read_only:
        with pytest.raises(StoreError, match="readonly"):
            await read_only.append("c", TURN)
        assert read_only.turn_key("c") == store.turn_key("c")
        async with read_only.turn("c"):
            assert len(await read_only.newest("c", 9)) == 2
    assert len(await store.newest("c", 9)) == 2


async def test_a_full_disk_is_a_store_error_and_leaves_whole_turns_only(store):
    await store.append("c", TURN)

    def limit(opened) -> None:
        pages = opened.connection.exec_driver_sql("pragma page_count").scalar()
        opened.connection.exec_driver_sql(f"pragma max_page_count = {pages}")

    await store._backend._thread.run(limit)
    with pytest.raises(StoreError, match="full"):
        await store.append("c", [UserMessage("q"), AssistantMessage("x" * 100_000)])
    assert len(await store.newest("c", 9)) == 2
    await store.append("c", TURN)
    assert [each.sequence for each in await store.newest("c", 9)] == [1, 2, 3, 4]


async def test_a_clock_that_goes_back_changes_no_order_and_ends_no_life(store, monkeypatch):
    await store.append("c", TURN)
    monkeypatch.setattr("reactflow.stores.sql.now_ms", lambda: 1000)
    assert await store.append("c", TURN) == 4
    assert [each.sequence for each in await store.newest("c", 9)] == [1, 2, 3, 4]
    monkeypatch.undo()
    async with SqlStore(store.database, ttl_seconds=60) as living:
        assert len(await living.newest("c", 9)) == 4


@pytest.mark.parametrize(
    "url", ["", "chat.db", "sqlite", "nosuch://x", "oracle+nosuch://x", "sqlite+nosuch:///x", None, 7]
)
def test_a_url_that_names_no_database_is_refused(url):
    with pytest.raises(ConfigurationError, match="database"):
        SqlStore(url)


def test_one_connection_is_not_enough_for_a_server():
    with pytest.raises(ConfigurationError, match="pool_size"):
        SqlStore("postgresql://localhost/x", pool_size=1)


def test_the_word_of_libpq_for_tls_is_understood():
    from reactflow.stores.sql import _driver_url

    assert str(_driver_url("postgres://h/x?sslmode=require")) == "postgresql+asyncpg://h/x?ssl=require"
    assert str(_driver_url("mariadb://h/x")) == "mariadb+asyncmy://h/x"
    assert str(_driver_url("postgresql+psycopg://h/x")) == "postgresql+psycopg://h/x"
