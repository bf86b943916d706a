"""From the source's SQL to the engine's."""

import pytest

from reactflow.errors import SqlError
from reactflow.sql.dialect import TableColumn, literal, quoted, read_table, render
from reactflow.sql.tokens import split


def rendered(script):
    (statement,) = split(script)
    return render(script, statement.tokens)


def table(script):
    (statement,) = split(script)
    return read_table(statement)


def test_back_quoted_names_become_names_and_everything_else_stays():
    assert rendered("SELECT `a``b\"c`, 'x`y' -- `no`\nFROM t") == 'SELECT "a`b""c", \'x`y\' -- `no`\nFROM t'


def test_a_text_put_together_is_unknown_where_a_part_is(session, rows):
    assert rendered("CONCAT('a', b, CONCAT(c, 1))") == (
        "(CAST('a' AS VARCHAR) || CAST(b AS VARCHAR) || CAST((CAST(c AS VARCHAR) || CAST(1 AS VARCHAR)) AS VARCHAR))"
    )
    assert rendered("CONCAT()") == "NULL"
    query = "SELECT CONCAT('a', 1, 'b'), CONCAT('a', NULL), CONCAT(\n'x',\n  'y'\n)"
    assert rows(session(), query) == [("a1b", None, "xy")]


def test_lines_stay_the_same_so_that_errors_point_right():
    script = "SELECT CONCAT(\n  'a',\n  b\n), c"

    assert rendered(script).count("\n") == script.count("\n") - 1  # the bracket's own line is gone
    assert rendered(script).endswith("), c")


def test_a_table_keeps_its_columns_and_leaves_out_what_only_the_source_knows():
    found = table(
        """CREATE TABLE IF NOT EXISTS `my cat`.claims (
             id INT NOT NULL COMMENT 'the id', `the text` STRING, at TIMESTAMP_LTZ(3), raw BYTES, d DECIMAL(10, 2),
             tags ARRAY<STRING NOT NULL>, both MAP<STRING, ROW<a INT, `b c` ARRAY<INT>>>, n VARCHAR(20),
             total AS id * 2, WATERMARK FOR at AS at - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED
           ) DISTRIBUTED BY (id) INTO 3 BUCKETS WITH ('Connector' = 'kafka', 'value.format' = 'json')"""
    )

    assert found.columns == (
        TableColumn("id", "INT"),
        TableColumn("the text", "STRING"),
        TableColumn("at", "TIMESTAMPTZ"),
        TableColumn("raw", "BLOB"),
        TableColumn("d", "DECIMAL(10,2)"),
        TableColumn("tags", "STRING[]"),
        TableColumn("both", 'MAP(STRING, STRUCT("a" INT, "b c" INT[]))'),
        TableColumn("n", "VARCHAR"),
    )
    assert (found.bare, found.if_not_exists) == ("claims", True)
    assert found.options == {"connector": "kafka", "value.format": "json"}
    assert found.sql.startswith('CREATE TABLE IF NOT EXISTS "my cat"."claims" ("id" INT NOT NULL, "the text" STRING,')


@pytest.mark.parametrize(
    "script", ["CREATE TABLE t AS SELECT 1", "CREATE VIEW v AS SELECT 1", "SELECT 1", "CREATE TABLE t"]
)
def test_other_statements_are_no_table_with_columns(script):
    assert table(script) is None


def test_a_table_needs_columns():
    with pytest.raises(SqlError, match="A table needs columns"):
        table("CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED)")


def test_names_and_texts_are_quoted():
    assert (quoted('a"b'), literal("it's")) == ('"a""b"', "'it''s'")
