"""The catalogue: what is defined, altered, dropped and shown."""

import pytest

from reactflow.errors import SpecError
from reactflow.specs.catalog import Catalog, known_kind
from reactflow.specs.making import Definition
from reactflow.specs.options import resolve

KEY = "written-out-key"


def test_a_taken_name_is_refused_unless_that_is_allowed(catalog):
    again = Definition(kind="agent", name="a", clauses={"model": "m", "prompt": "Another."})

    with pytest.raises(SpecError, match="CREATE AGENT IF NOT EXISTS"):
        catalog.create(again)

    assert catalog.create(again, if_not_exists=True) is False
    assert catalog.agent("a").prompt == "You are a."


def test_what_is_in_use_cannot_be_dropped(catalog):
    for kind, name, user in (("model", "m", "Agent 'a', Agent 'b'"), ("connection", "c", "Model 'm'")):
        with pytest.raises(SpecError, match=f"is used by {user}; drop that first"):
            catalog.drop(kind, name)
    with pytest.raises(SpecError, match="Function 'f' is used by Tool 't'"):
        catalog.drop("function", "f")

    assert catalog.drop("tool", "t") is True
    assert catalog.drop("function", "f") is True


def test_dropping_what_is_not_there_is_an_error_unless_that_is_allowed(catalog):
    with pytest.raises(SpecError, match="There is no agent 'z'; there is: a, b"):
        catalog.drop("agent", "z")

    assert catalog.drop("agent", "z", if_exists=True) is False


def test_altering_what_is_not_there_is_an_error_unless_that_is_allowed(catalog):
    with pytest.raises(SpecError, match="There is no agent 'z'"):
        catalog.alter("agent", "z", {})

    assert catalog.alter("agent", "z", {}, if_exists=True) is False


def test_a_spec_is_a_snapshot_that_later_changes_do_not_reach(catalog):
    before = catalog.agent("a")

    catalog.alter("agent", "a", {"clauses": {"prompt": "New."}, "options": {"max_iterations": "3"}})
    catalog.alter("model", "m", {"options": {"openai.model_version": "gpt-5"}})

    assert (before.prompt, before.max_iterations, before.model.version) == ("You are a.", 10, "gpt-4o")
    after = catalog.agent("a")
    assert (after.prompt, after.max_iterations, after.model.version) == ("New.", 3, "gpt-5")


def test_a_change_that_breaks_what_uses_it_is_undone(catalog):
    with pytest.raises(SpecError, match="has no models"):
        catalog.alter("connection", "c", {"options": {"type": "mcp_server"}})

    assert catalog.find("connection", "c").type == "openai"
    assert catalog.agent("a").model.connection.type == "openai"


def test_tools_are_added_and_removed_one_by_one(catalog):
    catalog.alter("agent", "a", {"add_tool": "t"})
    assert [tool.name for tool in catalog.agent("a").tools] == ["t"]

    with pytest.raises(SpecError, match="has tool 't' already"):
        catalog.alter("agent", "a", {"add_tool": "t"})
    with pytest.raises(SpecError, match="has no tool 'u'; there is: t"):
        catalog.alter("agent", "a", {"remove_tool": "u"})

    catalog.alter("agent", "a", {"remove_tool": "t"})
    assert catalog.agent("a").tools == ()


def test_a_key_that_is_written_out_is_kept_aside_and_never_shown():
    catalog = Catalog(environment={})
    options = {"type": "openai", "endpoint": "https://example.org", "api-key": KEY}
    catalog.create(Definition(kind="connection", name="{c}", options=options))

    spec = catalog.find("connection", "{c}")

    assert resolve(spec.api_key, catalog.secrets, {}, "test") == KEY
    shown = [repr(spec), repr(catalog.describe("connection", "{c}")), repr(catalog.shown("connection", "{c}"))]
    assert not any(KEY in text for text in shown)
    assert ("api-key", "******") in catalog.describe("connection", "{c}")


def test_a_reference_to_a_key_is_shown_as_it_is(catalog):
    assert ("api-key", "${KEY}") in catalog.describe("connection", "c")


def test_overrides_win_over_what_a_script_says():
    catalog = Catalog(
        overrides={"*.endpoint": "http://127.0.0.1:1/v1", "c.api-key": "${MINE}"}, environment={"MINE": "x"}
    )
    catalog.create(
        Definition(
            kind="connection", name="c", options={"type": "openai", "endpoint": "https://example.org", "api-key": KEY}
        )
    )
    mcp = {"type": "mcp_server", "endpoint": "https://example.org/mcp"}
    catalog.create(Definition(kind="connection", name="t", options=mcp))

    connection = catalog.find("connection", "c")

    assert (connection.endpoint, connection.api_key) == ("http://127.0.0.1:1/v1", "${MINE}")
    assert catalog.find("connection", "t").endpoint == "https://example.org/mcp"
    assert catalog.secrets == {}


def test_describing_an_agent_tells_also_what_holds_by_default(catalog):
    catalog.create(
        Definition(
            kind="agent",
            name="r",
            clauses={"agents": ("a", "b")},
            options={"type": "reflection", "max_iterations": "3"},
            comment="two of them",
        )
    )

    assert catalog.describe("agent", "r") == [
        ("name", "r"),
        ("agents", "a, b"),
        ("type", "reflection"),
        ("max_iterations", "3"),
        ("on_exhausted", "return"),
        ("handle_exception", "continue"),
        ("pass_condition", "approval"),
        ("comment", "two of them"),
    ]


def test_describing_a_model_shows_its_columns(catalog):
    given = Definition(
        kind="model",
        name="n",
        clauses={"input": (("message", "STRING"), ("n", "INT"))},
        options={"connection": "c", "model_version": "g"},
    )
    catalog.create(given)

    assert ("input", "message STRING, n INT") in catalog.describe("model", "n")


def test_the_main_agent_is_the_one_that_is_no_part_of_another(catalog):
    with pytest.raises(SpecError, match="Which agent is meant"):
        catalog.main_agent()
    with pytest.raises(SpecError, match="None is defined"):
        Catalog().main_agent()

    reflection = {"type": "reflection"}
    catalog.create(Definition(kind="agent", name="r", clauses={"agents": ("a", "b")}, options=reflection))
    assert catalog.main_agent().name == "r"


def test_functions_that_the_caller_hands_over_need_no_statement():
    catalog = Catalog(functions=["lookup"])
    catalog.create(Definition(kind="tool", name="t", clauses={"function": "lookup"}, options={"type": "function"}))

    assert catalog.find("tool", "t").function == "lookup"


def test_kinds_are_known_in_singular_and_plural_whatever_their_case():
    assert [known_kind(word) for word in ("AGENT", "models", "Tool", "table", "")] == [
        "agent",
        "model",
        "tool",
        None,
        None,
    ]
