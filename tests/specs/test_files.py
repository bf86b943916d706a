"""Catalogues from TOML and YAML."""

import builtins
import json

import pytest

from reactflow.errors import ConfigurationError, SpecError
from reactflow.specs.catalog import Catalog
from reactflow.specs.files import read_data, read_file
from reactflow.specs.values import digest

TOML = """
[agents.intake]
type = "reflection"
agents = ["extractor", "critic"]
max_iterations = 3
comment = "Only what was approved goes out."

[agents.extractor]
model = "claims"
prompt = "提取 JSON。"
tools = ["add", "web"]

[agents.critic]
model = "claims"
prompt = "Review."

[models.claims]
connection = "openai"
model_version = "gpt-4o"
params = { temperature = 0.2, stop = ["a"] }
input = { message = "STRING" }

[connections.openai]
type = "openai"
endpoint = "https://example.org/v1"
api-key = "${KEY}"

[connections.server]
type = "mcp_server"
endpoint = "https://example.org/mcp"

[functions]
add = "operator:add"

[tools.add]
function = "add"
side_effect = true

[tools.web]
connection = "server"
allowed_tools = ["search", "read"]
"""


def catalog():
    return Catalog(environment={"KEY": "k"})


def test_a_toml_file_defines_in_any_order_what_sql_defines(tmp_path):
    (tmp_path / "claims.toml").write_text(TOML, "utf-8")
    made = catalog()

    read_file(tmp_path / "claims.toml", made)

    spec = made.main_agent()
    assert (spec.name, spec.max_iterations, spec.comment) == ("intake", 3, "Only what was approved goes out.")
    assert spec.drafter.prompt == "提取 JSON。"
    assert spec.drafter.model.params == {"temperature": 0.2, "stop": ("a",)}
    assert [tool.allowed for tool in spec.drafter.tools] == [(), ("search", "read")]
    assert spec.drafter.tools[0].side_effect is True


def test_yaml_and_toml_make_the_same_agent(tmp_path):
    import tomllib

    (tmp_path / "claims.toml").write_text(TOML, "utf-8")
    (tmp_path / "claims.yaml").write_text(json.dumps(tomllib.loads(TOML)), "utf-8")  # JSON is YAML
    one, other = catalog(), catalog()

    read_file(tmp_path / "claims.toml", one)
    read_file(tmp_path / "claims.yaml", other)

    assert digest(one.main_agent()) == digest(other.main_agent())


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[agents", "cannot be read"),
        ("[agent_s.a]\nx = 1", "has a table 'agent_s'; did you mean 'agents'"),
        ("agents = 1", "must hold tables called connections, models"),
        ("[agents]\na = 1", "agent 'a' must be a table of its own"),
        ("[agents.a]\nmodel = 'm'\nprompt = 'p'", "There is no model 'm'"),
        ("[agents.a]\nagents = ['b', 'b']\n[agents.b]\nagents = ['a', 'a']", "need each other in a circle"),
        ("[agents.a]\nmodel = 1\nprompt = 'p'", "model must be a text"),
        ("[agents.a]\nagents = [1, 2]", "agents must be a list of names"),
        ("[models.a]\ninput = 'x'", "input must be a table of columns"),
        ("[agents.a]\nagents = 'b'\ntype = 'reflection'\n[agents.b]\nprompt = 'p'", "needs a model"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path, text, match):
    (tmp_path / "x.toml").write_text(text, "utf-8")

    with pytest.raises(ConfigurationError, match=match) as caught:
        read_file(tmp_path / "x.toml", catalog())

    assert "x.toml" in str(caught.value)


def test_a_file_that_is_not_there_or_no_yaml_cannot_be_read(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_file(tmp_path / "none.toml", catalog())
    (tmp_path / "x.yaml").write_text("a: [", "utf-8")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_file(tmp_path / "x.yaml", catalog())


def test_without_the_extra_a_yaml_file_is_a_clear_error(tmp_path, monkeypatch):
    real = builtins.__import__

    def without_yaml(name, *args, **kwargs):
        if name == "yaml":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    (tmp_path / "x.yml").write_text("agents: {}", "utf-8")
    monkeypatch.setattr(builtins, "__import__", without_yaml)

    with pytest.raises(ConfigurationError, match=r"pip install 'reactflow\[batch\]'"):
        read_file(tmp_path / "x.yml", catalog())


def test_data_from_python_is_read_like_a_file():
    made = catalog()
    connection = {"type": "openai", "endpoint": "https://example.org"}

    read_data({"connections": {"c": connection}, "tools": {}}, made)

    assert made.names("connection") == ["c"]
    with pytest.raises(SpecError, match="the data: Connection 'c' exists"):
        read_data({"connections": {"c": connection}}, made)
