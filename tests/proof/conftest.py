"""Long proofs, each on every real database; run by hand or by .ci/run, never by a plain pytest."""

import os
import sys
from pathlib import Path
from uuid import uuid4

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules that the proofs and their processes share

SERVERS = {name: f"REACTFLOW_TEST_{name.upper()}_URL" for name in ("postgres", "mariadb", "redis")}


@pytest.fixture(params=["sqlite", *(pytest.param(name, marks=pytest.mark.service(SERVERS[name])) for name in SERVERS)])
def database(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def url(database: str, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/chat.db" if database == "sqlite" else os.environ[SERVERS[database]]


@pytest.fixture
def tenant() -> str:
    return uuid4().hex
