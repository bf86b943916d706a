"""Our statements: their grammar, their effect, and errors with line, column and the fix."""

import builtins
from functools import lru_cache

import pytest

from reactflow.errors import ConfigurationError, SqlError
from reactflow.specs.catalog import Catalog
from reactflow.sql import grammar
from reactflow.sql.commands import carry_out, is_ours, read
from reactflow.sql.tokens import split

BASE = """
CREATE CONNECTION c WITH ('type' = 'openai', 'endpoint' = 'https://example.org/v1', 'api-key' = 'sk-secret-1');
CREATE MODEL m INPUT (message STRING) OUTPUT (response ARRAY<ROW<a STRING, b DECIMAL(10, 2)>> NOT NULL)
WITH ('provider' = 'openai', 'openai.connection' = 'c', 'openai.model_version' = 'gpt-4o');
CREATE FUNCTION f AS 'operator:neg' LANGUAGE PYTHON;
CREATE TOOL t USING FUNCTION f COMMENT 'negates' WITH ('type' = 'function');
CREATE AGENT a USING MODEL m USING PROMPT 'You are a; it''s -- {all}
of two lines.' USING TOOLS t;
CREATE AGENT `b` USING MODEL `m` USING PROMPT 'Review.' COMMENT 'reviews' WITH ('max_iterations' = '5');
"""


@pytest.fixture
def catalog():
    made = Catalog(environment={})
    run(made, BASE)
    return made


def run(catalog, script):
    answer = None
    for statement in split(script):
        assert is_ours(statement)
        answer = carry_out(statement, catalog)
    return answer


def error(catalog, script):
    with pytest.raises(SqlError) as caught:
        run(catalog, script)
    return caught.value


def test_strings_names_and_types_are_read_as_they_are_meant(catalog):
    spec = catalog.agent("a")

    assert spec.prompt == "You are a; it's -- {all}\nof two lines."
    assert spec.model.outputs == (("response", "ARRAY<ROW<a STRING, b DECIMAL(10, 2)>>"),)
    assert [tool.name for tool in spec.tools] == ["t"]
    assert (catalog.agent("b").max_iterations, catalog.agent("b").comment) == (5, "reviews")


def test_an_agent_may_stand_in_a_catalogue_and_a_database(catalog):
    run(catalog, "CREATE AGENT prod.`main db`.a USING MODEL m USING PROMPT 'p'")

    assert catalog.agent("prod.main db.a").prompt == "p"
    assert run(catalog, "SHOW CREATE AGENT prod.`main db`.a").rows[0][0].startswith("CREATE AGENT prod.`main db`.a\n")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "CREATE AGENT IF NOT EXISTS a USING MODEL none USING PROMPT ''",
            "Agent a exists already; nothing was changed.",
        ),
        ("create agent x using agents a, b with ('TYPE' = 'REFLECTION')", "Agent x created."),
        ("ALTER AGENT a SET PROMPT 'New.'", "Agent a altered."),
        ("ALTER AGENT a SET MODEL m", "Agent a altered."),
        ("ALTER AGENT a REMOVE TOOL t", "Agent a altered."),
        ("ALTER AGENT b ADD TOOL t", "Agent b altered."),
        ("ALTER AGENT a SET ('max_iterations' = '2', 'on_exhausted' = 'drop')", "Agent a altered."),
        ("ALTER AGENT IF EXISTS z SET PROMPT 'x'", "Agent z does not exist; nothing was changed."),
        ("ALTER CONNECTION c SET ('api-key' = 'another')", "Connection c altered."),
        ("DROP AGENT b", "Agent b dropped."),
        ("DROP AGENT IF EXISTS z", "Agent z does not exist; nothing was changed."),
    ],
)
def test_statements_that_change_something_say_what(catalog, script, message):
    assert run(catalog, script).message == message


def test_objects_are_listed_and_described(catalog):
    assert run(catalog, "SHOW AGENTS").rows == (("a",), ("b",))
    assert run(catalog, "SHOW AGENTS LIKE 'b%'").rows == (("b",),)
    assert run(catalog, "SHOW FUNCTIONS").columns == ("function name",)
    assert run(catalog, "DESC CONNECTION c").rows == (
        ("name", "c"),
        ("type", "openai"),
        ("endpoint", "https://example.org/v1"),
        ("api-key", "******"),
    )
    assert ("tools", "t") in run(catalog, "DESCRIBE AGENT EXTENDED a").rows


@pytest.mark.parametrize("kind", ["CONNECTION c", "MODEL m", "TOOL t", "FUNCTION f", "AGENT a", "AGENT b"])
def test_the_statement_that_is_shown_makes_the_same_object(catalog, kind):
    shown = run(catalog, f"SHOW CREATE {kind}").rows[0][0]
    assert "sk-secret-1" not in shown

    other = Catalog(environment={})
    for each in ("CONNECTION c", "MODEL m", "FUNCTION f", "TOOL t", "AGENT a", "AGENT b"):
        run(other, run(catalog, f"SHOW CREATE {each}").rows[0][0])

    assert run(other, f"SHOW CREATE {kind}").rows[0][0] == shown


def test_a_table_called_like_one_of_our_kinds_is_the_engines(catalog):
    ours = ["DESCRIBE model", "CREATE TABLE agent (a INT)", "SHOW TABLES", "SELECT 1", "DROP TABLE model", "DESC tool"]
    assert not any(is_ours(statement) for script in ours for statement in split(script))
    macro = "CREATE FUNCTION add(a, b) AS a + b"
    assert not any(is_ours(statement) for statement in split(macro))


@pytest.mark.parametrize(
    ("script", "place", "reason"),
    [
        ("CREATE AGENT x\nUSING MODEL m\nUSING PROMPT hello", (3, 14), "hello must be in single quotes: 'hello'."),
        ("CREATE AGENT x WITH ('max_iterations' = 3)", (1, 41), "3 must be in single quotes: '3'."),
        ("CREATE AGENT x WITH ('a' = 'b' 'c' = 'd')", (1, 32), "A comma is missing before 'c'."),
        ("CREATE AGENT x USING USING MODEL m", (1, 22), "AGENT, AGENTS, MODEL, PROMPT, TOOL or TOOLS"),
        ("CREATE AGENT x USING MODEL m USING MODEL m", (1, 30), "USING MODEL is given twice; keep one of them."),
        ("CREATE AGENT x WITH ('a' = 'b', 'A' = 'c')", (1, 33), "Option 'a' is given twice; keep one of them."),
        ('CREATE AGENT x USING PROMPT "hi"', (1, 29), "it is in double quotes; write a text in single quotes."),
        ("CREATE AGENT x USING MODEL 'm'", (1, 28), "write it bare or in back-quotes: `m`."),
        ("CREATE AGENT using USING MODEL m", (1, 14), "using is a keyword; put it in back-quotes: `using`."),
        ("CREATE AGENT x USING MODEL", (1, 27), "The statement ends too early; a name is missing."),
        ("CREATE FUNCTION g AS 'a:b' LANGUAGE JAVA", (1, 37), "write LANGUAGE PYTHON."),
        ("CREATE AGENT x USING MODEL n USING PROMPT 'p'", (1, 28), "There is no model 'n'; there is: m."),
        ("CREATE AGENT x USING MODEL m\nUSING PROMPT 'p' USING TOOLS t, u", (2, 33), "There is no tool 'u'"),
        ("CREATE AGENT x USING AGENTS a WITH ('type' = 'reflection')", (1, 29), "takes two, drafter and critic, not 1"),
        ("CREATE AGENT x USING AGENTS a,\n nobody WITH ('type' = 'reflection')", (2, 2), "There is no agent 'nobody'"),
        ("CREATE AGENT x USING AGENTS WITH ('type' = 'reflection')", (1, 22), "not 0"),
        ("CREATE AGENT a USING MODEL m USING PROMPT 'p'", (1, 14), "CREATE AGENT IF NOT EXISTS"),
        ("ALTER AGENT a SET ('max_iterations' = '0')", (1, 39), "give a whole number from 1"),
        ("ALTER AGENT a SET ('max_iteration' = '1')", (1, 20), "did you mean 'max_iterations'"),
        ("ALTER AGENT a ADD TOOL u", (1, 24), "There is no tool 'u'"),
        ("ALTER AGENT a ADD TOOL t", (1, 24), "has tool 't' already"),
        ("ALTER MODEL m SET PROMPT 'x'", (1, 13), "takes SET ('option' = 'value') only"),
        ("ALTER AGENT z SET PROMPT 'x'", (1, 13), "There is no agent 'z'"),
        ("DROP MODEL m", (1, 12), "is used by Agent 'a', Agent 'b'"),
        ("DESCRIBE AGENT z", (1, 16), "There is no agent 'z'; there is: a, b."),
        ("SHOW AGENT", (1, 6), "Found 'AGENT' where"),
        ("CREATE CONNECTION d WITH ('type' = 'openai', 'endpoint' = 'https://${NO}/v1')", (1, 59), "export NO="),
    ],
)
def test_an_error_says_line_column_and_the_fix(catalog, script, place, reason):
    caught = error(catalog, script)

    assert (caught.line, caught.column) == place
    assert reason in caught.reason


@pytest.mark.parametrize(
    "value", ["'sk-secret-2'", "sk-secret-2", '"sk-secret-2"', "'sk-secret-2' extra", "'sk-secret-2", "'sk-secret-2'')"]
)
def test_no_error_ever_shows_a_key(catalog, value):
    script = f"CREATE CONNECTION d WITH ('type' = 'nothing', 'endpoint' = 'https://x', 'api-key' = {value})"

    assert "sk-secret" not in str(error(catalog, script))


def test_a_misspelt_key_is_an_error_that_does_not_show_it(catalog):
    caught = error(catalog, "CREATE CONNECTION d WITH ('type'='openai','endpoint'='https://x','api_key'='sk-secret-2')")

    assert "did you mean 'api-key'" in caught.reason
    assert "sk-secret" not in str(caught)


def test_the_line_is_shown_with_a_mark_under_the_spot(catalog):
    assert str(error(catalog, "DROP AGENT\n  z")).splitlines()[-2:] == ["    z", "    ^"]


def test_a_bad_statement_changes_nothing(catalog):
    error(catalog, "ALTER AGENT a SET ('max_iterations' = '0')")

    assert catalog.agent("a").max_iterations == 10


def test_a_command_is_a_value_with_the_place_of_each_part():
    (statement,) = split("CREATE AGENT x USING MODEL m WITH ('a' = 'b')")

    command = read(statement)

    assert (command.action, command.kind, command.name) == ("create", "agent", "x")
    assert (command.clauses, command.options) == ({"model": "m"}, {"a": "b"})
    assert (command.spots["model"], command.spots["key a"], command.spots["a"]) == (27, 35, 41)


def test_without_the_extra_sql_is_a_clear_error(monkeypatch):
    real = builtins.__import__

    def without_lark(name, *args, **kwargs):
        if name.startswith("lark"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(grammar, "_parser", lru_cache(grammar._parser.__wrapped__))
    monkeypatch.setattr(builtins, "__import__", without_lark)

    with pytest.raises(ConfigurationError, match=r"pip install 'reactflow\[sql\]'"):
        run(Catalog(), "SHOW AGENTS")
