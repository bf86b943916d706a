"""Where a text, a name, a comment and a statement end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.errors import SqlError
from reactflow.sql.tokens import Token, arguments, closing, mask, place, split, tokenize


def texts(script):
    return [statement.text for statement in split(script)]


def test_a_semicolon_ends_a_statement_but_not_in_texts_names_and_comments():
    script = "a 'x;''y' `b;``c` \"d;\" -- e;\n /* f; */ g; ;\n;h -- the end"

    assert texts(script) == ["a 'x;''y' `b;``c` \"d;\" -- e;\n /* f; */ g", "h"]


def test_tokens_have_kind_text_place_and_value():
    assert tokenize("SELECT `a``b`, 'it''s' <> 1.5e3 中文") == [
        Token("word", "SELECT", 0),
        Token("name", "`a``b`", 7),
        Token("mark", ",", 13),
        Token("text", "'it''s'", 15),
        Token("mark", "<>", 23),
        Token("number", "1.5e3", 26),
        Token("word", "中文", 32),
    ]
    assert [token.value for token in tokenize("`a``b` 'it''s' \"c\"\"d\" e")] == ["a`b", "it's", 'c"d', "e"]


@pytest.mark.parametrize(
    ("script", "line", "column", "match"),
    [
        ("SELECT\n 'abc", 2, 2, "This text does not end; close it with '"),
        ("SELECT `abc", 1, 8, "This name does not end; close it with `"),
        ('SELECT "abc', 1, 8, 'This name does not end; close it with "'),
        ("SELECT 1 /* abc", 1, 10, r"This comment does not end; close it with \*/"),
    ],
)
def test_what_does_not_end_is_told_with_line_and_column(script, line, column, match):
    with pytest.raises(SqlError, match=match) as caught:
        list(split(script))

    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).endswith("^")


def test_a_mark_at_the_beginning_of_a_file_is_no_part_of_it():
    assert texts("\ufeffSELECT 1") == ["SELECT 1"]


def test_brackets_and_arguments_are_found():
    tokens = tokenize("f(a, (b, c), [d, e], g('x,y'))")

    assert closing(tokens, 1) == len(tokens) - 1
    assert [[token.text for token in part] for part in arguments(tokens[2:-1])] == [
        ["a"],
        ["(", "b", ",", "c", ")"],
        ["[", "d", ",", "e", "]"],
        ["g", "(", "'x,y'", ")"],
    ]
    assert (closing(tokenize("(a"), 0), arguments([])) == (None, [])


@pytest.mark.parametrize(
    ("script", "masked"),
    [
        ("'api-key' = 'sk-123'", "'api-key' = ********"),
        ("'API_KEY'='a''b', 'x'='y'", "'API_KEY'=******, 'x'='y'"),
        ("'my.token' = \"abc\"", "'my.token' = *****"),
        ("'api-key' = sk-123)", "'api-key' = ******)"),
        ("'api-key' 'sk-123'", "'api-key' ********"),
        ("'api-key' = '${OPENAI_API_KEY}'", "'api-key' = '${OPENAI_API_KEY}'"),
        ("'endpoint' = 'https://x'", "'endpoint' = 'https://x'"),
    ],
)
def test_secrets_are_masked_wherever_a_script_is_shown(script, masked):
    assert mask(script) == masked


def test_places_count_from_one():
    assert [place("ab\ncd", at) for at in (0, 1, 3, 4)] == [(1, 1), (1, 2), (2, 1), (2, 2)]


@given(st.text(alphabet="ab'`\"-/*;\n() ", max_size=40))
def test_any_text_is_either_read_whole_or_refused_with_a_place(script):
    try:
        statements = list(split(script))
    except SqlError:
        return
    assert all(statement.tokens and statement.text for statement in statements)
