"""A catalogue with the parts that most tests need."""

import pytest

from reactflow.specs.catalog import Catalog
from reactflow.specs.making import Definition

CONNECTION = {"type": "openai", "endpoint": "https://example.org/v1/chat/completions", "api-key": "${KEY}"}
MODEL = {"provider": "openai", "openai.connection": "c", "openai.model_version": "gpt-4o", "task": "text_generation"}


@pytest.fixture
def catalog() -> Catalog:
    """Connection ``c``, MCP connection ``tools``, model ``m``, function ``f``, tool ``t``, agents ``a`` and ``b``."""
    made = Catalog(environment={"KEY": "k-123456"})
    mcp = {"type": "mcp_server", "endpoint": "https://example.org/mcp"}
    made.create(Definition(kind="connection", name="c", options=CONNECTION))
    made.create(Definition(kind="connection", name="tools", options=mcp))
    made.create(Definition(kind="model", name="m", options=MODEL))
    made.create(Definition(kind="function", name="f", clauses={"reference": "operator:neg"}))
    made.create(Definition(kind="tool", name="t", clauses={"function": "f"}, options={"type": "function"}))
    for name in ("a", "b"):
        made.create(Definition(kind="agent", name=name, clauses={"model": "m", "prompt": f"You are {name}."}))
    return made
