"""Every store that can be reached, each with conversations of its own."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from reactflow.store import ConversationStore
from reactflow.stores import open_store

SERVERS = {name: f"REACTFLOW_TEST_{name.upper()}_URL" for name in ("postgres", "mariadb", "redis")}

OpenStore = Callable[..., ConversationStore]


@pytest.fixture(
    params=["memory", "sqlite", *(pytest.param(name, marks=pytest.mark.service(SERVERS[name])) for name in SERVERS)]
)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["sqlite", *(pytest.param(name, marks=pytest.mark.service(SERVERS[name])) for name in SERVERS)])
def database(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[OpenStore]:
    """A function that opens a store of one kind; all it opens in one test share a database and a fresh tenant."""
    stores: list[ConversationStore] = []
    tenant = uuid4().hex

    def open_one(kind: str, **settings: object) -> ConversationStore:
        if kind == "memory":
            return open_store("memory://", **settings)
        url = f"sqlite:///{tmp_path}/chat.db" if kind == "sqlite" else os.environ[SERVERS[kind]]
        store = open_store(url, **{"tenant": tenant, **settings})
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        await store.aclose()


@pytest.fixture
def store(kind: str, opened: OpenStore) -> ConversationStore:
    return opened(kind)
