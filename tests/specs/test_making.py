"""Every rule of creation, and what the words of the error say."""

import pickle

import pytest

from reactflow.errors import SpecError
from reactflow.specs.making import Definition
from reactflow.specs.values import AgentSpec, ConnectionSpec, ModelSpec, ReflectionSpec, ToolsetSpec, as_data, digest


def create(catalog, kind, name="x", /, clauses=None, **options):
    options = {key.replace("__", "-"): value for key, value in options.items()}
    catalog.create(Definition(kind=kind, name=name, clauses=clauses or {}, options=options))
    return catalog.find(kind, name)


def reflect(catalog, agents=("a", "b"), clauses=None, **options):
    options = {"type": "reflection"} | options
    return create(catalog, "agent", clauses={"agents": agents, **(clauses or {})}, **options)


def standard(catalog, clauses=None, **options):
    return create(catalog, "agent", clauses={"model": "m", "prompt": "Be brief.", **(clauses or {})}, **options)


def test_an_agent_of_two_others_reflects_with_the_defaults_of_the_source(catalog):
    spec = reflect(catalog)

    assert isinstance(spec, ReflectionSpec)
    assert (spec.drafter.name, spec.critic.name) == ("a", "b")
    assert (spec.pass_condition, spec.confidence_value, spec.max_iterations) == ("approval", None, 20)
    assert (spec.on_exhausted, spec.handle_exception) == ("return", "continue")


def test_a_standard_agent_has_the_defaults_of_the_source(catalog):
    spec = standard(catalog)

    assert isinstance(spec, AgentSpec)
    assert (spec.max_iterations, spec.max_consecutive_failures, spec.request_timeout) == (10, 3, None)
    assert (spec.model.version, spec.prompt, spec.tools) == ("gpt-4o", "Be brief.", ())


@pytest.mark.parametrize(
    ("clauses", "match"),
    [
        ({"model": "m"}, "leave out USING MODEL"),
        ({"prompt": "p"}, "leave out USING PROMPT"),
        ({"tools": ("t",)}, "leave out USING TOOLS"),
        ({"agents": ()}, "takes two, drafter and critic, not 0"),
        ({"agents": ("a",)}, "not 1"),
        ({"agents": ("a", "b", "a")}, "not 3"),
        ({"agents": ("a", "nobody")}, "There is no agent 'nobody'; there is: a, b"),
        ({"agents": ("a", "x")}, "would be a part of itself|its own sub-agent"),
    ],
)
def test_a_reflecting_agent_is_made_of_two_others_and_nothing_else(catalog, clauses, match):
    with pytest.raises(SpecError, match=match):
        reflect(catalog, clauses=clauses)

    assert catalog.names("agent") == ["a", "b"]


def test_sub_agents_need_the_type_and_the_type_needs_sub_agents(catalog):
    with pytest.raises(SpecError, match="needs the option 'type' = 'reflection'"):
        create(catalog, "agent", clauses={"agents": ("a", "b")})
    with pytest.raises(SpecError, match="needs USING AGENTS drafter, critic"):
        create(catalog, "agent", type="reflection")


@pytest.mark.parametrize(
    ("options", "match", "where"),
    [
        ({"pass_condition": "often"}, "give 'approval' or 'confidence'", "pass_condition"),
        ({"max_iterations": "0"}, "give a whole number from 1", "max_iterations"),
        ({"max_iterations": "2.5"}, "give a whole number from 1", "max_iterations"),
        ({"max_iterations": "²"}, "give a whole number from 1", "max_iterations"),
        ({"pass_condition": "confidence", "confidence_value": "1.1"}, "from 0 to 1", "confidence_value"),
        ({"pass_condition": "confidence", "confidence_value": "NaN"}, "is no number", "confidence_value"),
        ({"pass_condition": "confidence", "confidence_value": "95%"}, "is no number", "confidence_value"),
        ({"confidence_value": "0.9"}, "does nothing under 'pass_condition' = 'approval'", "confidence_value"),
        ({"request_timeout": "0"}, "give seconds above 0", "request_timeout"),
        ({"on_exhausted": "ignore"}, "'return' or 'drop' or 'fail'", "on_exhausted"),
        ({"handle_exception": "skip"}, "'continue' or 'fail'", "handle_exception"),
        ({"max_iteration": "3"}, "did you mean 'max_iterations'", "key max_iteration"),
        ({"max_consecutive_failures": "3"}, "has no option", "key max_consecutive_failures"),
        ({"type": "loop"}, "'standard' or 'reflection'", "type"),
    ],
)
def test_a_wrong_option_is_named_with_what_to_give_instead(catalog, options, match, where):
    with pytest.raises(SpecError, match=match) as caught:
        reflect(catalog, **options)

    assert caught.value.where == where


@pytest.mark.parametrize("value", ["0", "1", "0.95"])
def test_the_bounds_of_the_confidence_belong_to_it(catalog, value):
    spec = reflect(catalog, pass_condition="CONFIDENCE", confidence_value=value)

    assert (spec.pass_condition, spec.confidence_value) == ("confidence", float(value))


def test_keys_and_values_of_options_are_read_whatever_their_case(catalog):
    spec = reflect(catalog, type="Reflection", PASS_CONDITION="Approval", Max_Iterations="3")

    assert (spec.pass_condition, spec.max_iterations) == ("approval", 3)


def test_an_option_given_in_two_cases_is_given_twice(catalog):
    with pytest.raises(SpecError, match="'max_iterations' is given twice"):
        reflect(catalog, MAX_ITERATIONS="3", max_iterations="4")


@pytest.mark.parametrize(
    ("clauses", "options", "match", "where"),
    [
        ({"model": None}, {}, "needs a model: USING MODEL my_model", "model"),
        ({"prompt": None}, {}, "needs a prompt", "prompt"),
        ({"prompt": "  "}, {}, "its prompt is blank", "prompt"),
        ({"prompt": "p" * 65_537}, {}, "has 65537 characters; 65536 are the most", "prompt"),
        ({"model": "n"}, {}, "There is no model 'n'; there is: m", "model"),
        ({"tools": ("t", "u")}, {}, "There is no tool 'u'", "tools u"),
        ({"tools": ("t", "t")}, {}, "listed twice", "tools"),
        ({}, {"pass_condition": "approval"}, "is for 'type' = 'reflection'", "pass_condition"),
        ({}, {"confidence_value": "0.9"}, "is for 'type' = 'reflection'", "confidence_value"),
        ({}, {"max_consecutive_failures": "0"}, "whole number from 1", "max_consecutive_failures"),
        ({}, {"tokens_management_strategy": "forget"}, "'summarize' or 'trim'", "tokens_management_strategy"),
    ],
)
def test_a_standard_agent_needs_model_and_prompt_and_only_its_own_options(catalog, clauses, options, match, where):
    with pytest.raises(SpecError, match=match) as caught:
        standard(catalog, clauses, **options)

    assert caught.value.where == where


def test_the_longest_prompt_is_taken(catalog):
    assert len(standard(catalog, {"prompt": "提" * 65_536}).prompt) == 65_536


def test_reflecting_agents_may_be_nested(catalog):
    catalog.create(
        Definition(kind="agent", name="inner", clauses={"agents": ("a", "b")}, options={"type": "reflection"})
    )

    spec = reflect(catalog, ("inner", "b"))

    assert isinstance(spec.drafter, ReflectionSpec)


def test_nesting_in_a_circle_is_refused_when_it_would_arise(catalog):
    catalog.create(
        Definition(kind="agent", name="inner", clauses={"agents": ("a", "b")}, options={"type": "reflection"})
    )
    reflect(catalog, ("inner", "b"))

    with pytest.raises(SpecError, match="would be a part of itself"):
        catalog.alter("agent", "inner", {"clauses": {"agents": ("x", "b")}})


def test_one_agent_in_both_roles_is_allowed_with_a_warning(catalog):
    reflect(catalog, ("a", "a"))

    assert catalog.warnings == ["Agent 'x': drafter and critic are the same; an agent overlooks its own mistakes."]


@pytest.mark.parametrize(
    ("options", "match", "where"),
    [
        ({"endpoint": "https://example.org"}, "needs the option 'type'", "type"),
        ({"type": "openai"}, "needs the option 'endpoint'", "endpoint"),
        ({"type": "opnai", "endpoint": "https://x"}, "did you mean 'openai'", "type"),
        ({"type": "bedrock", "endpoint": "https://x"}, "OpenAI-compatible gateway", "type"),
        ({"type": "a2a", "endpoint": "https://x"}, "MCP server", "type"),
        ({"type": "openai", "endpoint": "example.org"}, "give a URL", "endpoint"),
        ({"type": "openai", "endpoint": "ftp://example.org"}, "give a URL", "endpoint"),
        (
            {"type": "openai", "endpoint": "https://x", "api_key": "s3cret-s3cret"},
            "did you mean 'api-key'",
            "key api_key",
        ),
        ({"type": "openai", "endpoint": "https://x", "api__key": "${NONE}"}, "export NONE=", "api-key"),
        ({"type": "openai", "endpoint": "https://${NONE}/v1"}, "export NONE=", "endpoint"),
    ],
)
def test_a_connection_is_checked_without_a_word_of_its_secrets(catalog, options, match, where):
    with pytest.raises(SpecError, match=match) as caught:
        create(catalog, "connection", **options)

    assert caught.value.where == where
    assert "s3cret" not in str(caught.value)


def test_a_password_in_an_endpoint_is_refused_and_not_repeated(catalog):
    with pytest.raises(SpecError, match="holds a password") as caught:
        create(catalog, "connection", type="openai", endpoint="https://me:s3cret@example.org")

    assert "s3cret" not in str(caught.value)


def test_a_key_written_out_in_python_is_refused_and_not_repeated():
    with pytest.raises(SpecError, match="must be a reference such as") as caught:
        ConnectionSpec(name="c", type="openai", endpoint="https://example.org", api_key="s3cret")

    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "match", "where"),
    [
        ({"openai.model_version": "g"}, "needs the option 'openai.connection'", "openai.connection"),
        ({"openai.connection": "c"}, "needs the option 'openai.model_version'", "openai.model_version"),
        ({"connection": "nope", "model_version": "g"}, "There is no connection 'nope'", "connection"),
        ({"connection": "tools", "model_version": "g"}, "has no models", "connection"),
        ({"connection": "c", "model_version": "g", "task": "embedding"}, "'text_generation'", "task"),
        ({"connection": "c", "openai.connection": "c", "model_version": "g"}, "given twice", "openai.connection"),
        ({"connection": "c", "model_version": "g", "temperature": "0"}, "has no option", "key temperature"),
        ({"provider": "azureopenai", "connection": "c", "model_version": "g"}, "is of type 'openai'", "provider"),
    ],
)
def test_a_model_is_checked_against_its_connection(catalog, options, match, where):
    with pytest.raises(SpecError, match=match) as caught:
        create(catalog, "model", **options)

    assert caught.value.where == where


def test_options_of_a_model_are_read_as_json(catalog):
    params = {"openai.params.temperature": "0.2", "openai.params.stop": '["a"]', "openai.params.user": "me"}

    spec = create(catalog, "model", connection="c", model_version="g", **params)

    assert spec.params == {"temperature": 0.2, "stop": ("a",), "user": "me"}
    assert hash(spec) == hash(pickle.loads(pickle.dumps(spec)))


@pytest.mark.parametrize(
    ("clauses", "options", "match", "where"),
    [
        ({"function": "f"}, {}, "needs the option 'type'", "type"),
        ({"function": "f"}, {"type": "sql"}, "'function' or 'mcp'", "type"),
        ({"function": "f"}, {"type": "mcp"}, "needs USING CONNECTION", "type"),
        ({"connection": "tools"}, {"type": "function"}, "needs USING FUNCTION", "type"),
        ({"connection": "tools"}, {"type": "mcp"}, "allowed_tools names the tools", "name"),
        ({"connection": "c"}, {"type": "mcp", "allowed_tools": "s"}, "one of type 'mcp_server'", "connection"),
        ({"connection": "tools"}, {"type": "a2a", "agent_card_path": "/x"}, "MCP server", "type"),
        ({"function": "f"}, {"type": "function", "allowed_tools": "s"}, "a function is one tool", "allowed_tools"),
        ({"function": "f"}, {"type": "function", "request_timeout": "soon"}, "is no number", "request_timeout"),
        ({"function": "g"}, {"type": "function"}, "CREATE FUNCTION g AS", "function"),
    ],
)
def test_a_tool_is_checked_by_its_type(catalog, clauses, options, match, where):
    with pytest.raises(SpecError, match=match) as caught:
        create(catalog, "tool", clauses=clauses, **options)

    assert caught.value.where == where


def test_the_allowed_tools_are_a_list_with_blanks_trimmed(catalog):
    options = {"type": "mcp", "allowed_tools": " search , read,, search "}

    spec = create(catalog, "tool", clauses={"connection": "tools"}, **options)

    assert (spec.allowed, spec.request_timeout, spec.side_effect) == (("search", "read"), 30.0, False)


def test_a_function_is_named_as_module_and_attribute(catalog):
    with pytest.raises(SpecError, match="'module:attribute'"):
        create(catalog, "function", clauses={"reference": "operator.neg"})


def test_specs_hash_pickle_and_hold_no_secret(catalog):
    spec = reflect(catalog)
    again = pickle.loads(pickle.dumps(spec))

    assert (again, hash(again), digest(again)) == (spec, hash(spec), digest(spec))
    assert "k-123456" not in repr(spec) + str(as_data(spec))


def test_the_digest_changes_with_what_can_change_an_answer_and_with_nothing_else(catalog):
    before = digest(catalog.agent("a"))

    catalog.alter("agent", "a", {"options": {"on_exhausted": "drop", "handle_exception": "fail"}})
    catalog.alter("connection", "c", {"options": {"api-key": "another-key"}})
    assert digest(catalog.agent("a")) == before

    catalog.alter("agent", "a", {"clauses": {"prompt": "You are somebody else."}})
    assert digest(catalog.agent("a")) != before


@pytest.mark.parametrize(
    "make",
    [
        lambda c: ConnectionSpec(name=" ", type="openai", endpoint="https://x"),
        lambda c: ModelSpec(name="", connection=c, version="g"),
        lambda c: ToolsetSpec(name="", function="a:b"),
        lambda c: AgentSpec(name="", model=ModelSpec(name="m", connection=c, version="g"), prompt="p"),
        lambda c: ModelSpec(name="m", connection=c, version=" "),
        lambda c: ToolsetSpec(name="t"),
        lambda c: ToolsetSpec(name="t", function="a:b", request_timeout=0),
        lambda c: AgentSpec(
            name="a", model=ModelSpec(name="m", connection=c, version="g"), prompt="p", max_iterations=True
        ),
    ],
)
def test_the_same_rules_hold_for_specs_made_in_python(make):
    connection = ConnectionSpec(name="c", type="openai", endpoint="https://example.org")

    with pytest.raises(SpecError):
        make(connection)


def test_an_option_must_be_a_plain_value():
    with pytest.raises(SpecError, match="must be a text or a number"):
        Definition(kind="agent", name="x", options={"type": ["reflection"]})  # type: ignore[dict-item]
