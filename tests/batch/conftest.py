"""Files of rows."""

import json

import pytest


@pytest.fixture
def rows(tmp_path):
    """Write rows as JSON lines and return the path."""

    def write(*rows, name="in.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
        return path

    return write


@pytest.fixture
def read():
    """Read JSON lines."""
    return lambda path: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
