"""The chooser: a URL in, a store out."""

import importlib.abc
import sys

import pytest

from reactflow.errors import ConfigurationError
from reactflow.store import InMemoryStore
from reactflow.stores import open_store
from reactflow.stores.redis import RedisStore
from reactflow.stores.sql import SqlStore


@pytest.mark.parametrize(
    ("url", "kind", "database"),
    [
        ("sqlite:///chat.db", SqlStore, "chat.db"),
        ("sqlite+aiosqlite:///chat.db", SqlStore, "chat.db"),
        ("postgresql://u:pw@db/x", SqlStore, "postgresql://db:/x"),
        ("postgres://u:pw@db:5/x?sslmode=require", SqlStore, "postgresql://db:5/x"),
        ("mysql://u:pw@db/x", SqlStore, "mysql://db:/x"),
        ("mariadb://u:pw@db/x", SqlStore, "mariadb://db:/x"),
        ("redis://u:p%40w@db:6379/1?x=y", RedisStore, "redis://db:6379/1"),
        ("rediss://db", RedisStore, "rediss://db"),
        ("VALKEY://db:1", RedisStore, "redis://db:1"),
    ],
)
def test_the_url_chooses(url, kind, database):
    store = open_store(url, tenant="acme")
    assert type(store) is kind
    assert store.database.endswith(database)
    assert "acme" in repr(store)
    assert "pw" not in repr(store)


def test_the_store_of_this_process_has_a_url_too():
    store = open_store("memory://", max_conversations=3)
    assert isinstance(store, InMemoryStore)
    assert store.max_conversations == 3


@pytest.mark.parametrize("url", ["", "chat.db", "mongodb://u:secret@host", None, 7])
def test_any_other_url_is_refused_without_its_password(url):
    with pytest.raises(ConfigurationError, match="no store for") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_a_redis_url_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match="no address of Redis"):
        RedisStore("localhost:6379")
    with pytest.raises(ConfigurationError, match="lease_s"):
        RedisStore("redis://localhost", lease_s=0)


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [
        ("sqlite:///x", "sqlalchemy", "sqlite"),
        ("postgresql://h/x", "asyncpg", "postgres"),
        ("mysql://h/x", "asyncmy", "mysql"),
        ("mariadb://h/x", "greenlet", "mysql"),
        ("redis://h", "redis", "redis"),
    ],
)
def test_a_missing_driver_is_named_with_the_extra_that_brings_it(url, package, extra, monkeypatch):
    class Missing(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(ConfigurationError) as caught:
        open_store(url)
    assert repr(package) in str(caught.value)
    assert f"pip install 'reactflow[{extra}]'" in str(caught.value)
