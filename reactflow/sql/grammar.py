"""The statements about connections, models, tools, functions and agents; every other one is the engine's to read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from reactflow.errors import ConfigurationError, SqlError
from reactflow.specs.making import KINDS
from reactflow.sql.tokens import Statement, Token, mask

_KINDS: Final = " ".join(kind.upper() for kind in KINDS)
_PLURALS: Final = " ".join(f"{kind.upper()}S" for kind in KINDS)
_SOFT: Final = "PROMPT INPUT OUTPUT COMMENT LANGUAGE EXTENDED ADD REMOVE DESC LIKE"
_HARD: Final = "CREATE ALTER DROP DESCRIBE SHOW IF NOT EXISTS NULL AS SET USING WITH"
_KEYWORDS: Final = frozenset(f"{_KINDS} {_PLURALS} {_SOFT} {_HARD}".split())

GRAMMAR: Final = f"""
start: create_connection | create_model | create_tool | create_function | create_agent
     | alter | drop | describe | show | show_create

create_connection: CREATE CONNECTION [if_not_exists] name (comment | with)*
create_model: CREATE MODEL [if_not_exists] name (input | output | comment | with)*
create_tool: CREATE TOOL [if_not_exists] name (using_function | using_connection | comment | with)*
create_function: CREATE FUNCTION [if_not_exists] name AS reference [LANGUAGE language]
create_agent: CREATE AGENT [if_not_exists] name agent_clause*
?agent_clause: using_model | using_prompt | using_tools | using_agents | comment | with

alter: ALTER kind [if_exists] name change
change: SET MODEL name -> set_model
      | SET PROMPT text -> set_prompt
      | SET "(" [pairs] ")" -> set_options
      | ADD TOOL name -> add_tool
      | REMOVE TOOL name -> remove_tool
drop: DROP kind [if_exists] name
describe: (DESCRIBE | DESC) kind [EXTENDED] name
show: SHOW kinds [LIKE text]
show_create: SHOW CREATE kind name

if_not_exists: IF NOT EXISTS
if_exists: IF EXISTS

input: INPUT "(" columns ")"
output: OUTPUT "(" columns ")"
using_model: USING MODEL name
using_prompt: USING PROMPT text
using_tools: USING (TOOL | TOOLS) names
using_agents: USING (AGENT | AGENTS) [names]
using_function: USING FUNCTION name
using_connection: USING CONNECTION name
comment: COMMENT text
with: WITH "(" [pairs] ")"
reference: text
language: WORD

kind: {" | ".join(_KINDS.split())}
kinds: {" | ".join(_PLURALS.split())}
names: name ("," name)*
name: part ("." part)*
part: NAME | WORD | {" | ".join(f"{_KINDS} {_PLURALS} {_SOFT}".split())}
columns: column ("," column)*
column: part type [NOT NULL] [COMMENT text]
type: (WORD | NAME) [lengths | fields]
!lengths: "(" NUMBER ("," NUMBER)* ")"
!fields: "<" field ("," field)* ">"
field: type | part type
pairs: pair ("," pair)*
pair: text "=" text
text: TEXT

%declare {_KINDS} {_PLURALS} {_SOFT} {_HARD} NAME WORD TEXT NUMBER OTHER
"""

_MARKS: Final = {"(": "LPAR", ")": "RPAR", ",": "COMMA", ".": "DOT", "=": "EQUAL", "<": "LESSTHAN", ">": "MORETHAN"}


def type_of(token: Token) -> str:
    """The grammar's name for *token*."""
    if token.kind == "word":
        return token.upper if token.upper in _KEYWORDS else "WORD"
    return _MARKS.get(token.text, "OTHER") if token.kind == "mark" else token.kind.upper()


@cache
def _parser() -> Any:
    try:
        import lark
        from lark.lexer import Lexer
    except ImportError as error:
        raise ConfigurationError("SQL needs the extra 'sql': pip install 'reactflow[sql]'.") from error

    class Tokens(Lexer):
        """Hands the statement's own tokens to the parser."""

        def __init__(self, conf: Any) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any = None) -> Iterator[Any]:
            for token in lexer_state:
                yield lark.Token(type_of(token), token, start_pos=token.start)

    return lark.Lark(GRAMMAR, parser="lalr", lexer=Tokens, maybe_placeholders=False)


def parse(statement: Statement) -> Any:
    """The tree of one of our statements.

    Raises:
        SqlError: It is none; says where, what was expected there, and how to mend it.
        ConfigurationError: The extra ``sql`` is missing.
    """
    parser = _parser()
    import lark

    try:
        return parser.parse(statement.tokens)
    except lark.UnexpectedInput as error:
        raise _explain(statement, error) from None


def _explain(statement: Statement, error: Any) -> SqlError:
    found = getattr(error, "token", None)
    expected = set(getattr(error, "accepts", None) or getattr(error, "expected", None) or ())
    if found is None or found.type == "$END":
        last = statement.tokens[-1]
        return statement.error(f"The statement ends too early; {_wanted(expected)} is missing.", last.end)
    token: Token = found.value
    if mask(statement.script)[token.start : token.end] != token.text:
        return statement.error("A secret must be in single quotes: 'api-key' = '${NAME}'.", token.start)
    return statement.error(_advice(token, expected), token.start)


def _advice(token: Token, expected: set[str]) -> str:
    shown = token.text if len(token.text) <= 40 else f"{token.text[:37]}..."
    if "TEXT" in expected and token.kind in ("word", "number"):
        return f"{shown} must be in single quotes: '{token.text}'."
    if "TEXT" in expected and token.text.startswith('"'):
        return f"{shown} is a name, because it is in double quotes; write a text in single quotes."
    if "COMMA" in expected and token.kind == "text":
        return f"A comma is missing before {shown}."
    if "NAME" in expected and token.kind == "text":
        return f"A name was expected, not a text; write it bare or in back-quotes: `{token.value}`."
    if "NAME" in expected and token.upper in _KEYWORDS:
        return f"A name was expected, and {shown} is a keyword; put it in back-quotes: `{token.text}`."
    return f"Found {shown!r} where {_wanted(expected)} was expected."


_WORDS: Final = {
    "TEXT": "a text in single quotes",
    "NAME": "a name",
    "WORD": "a name",
    "NUMBER": "a number",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "a comma",
    "DOT": "'.'",
    "EQUAL": "'='",
    "LESSTHAN": "'<'",
    "MORETHAN": "'>'",
    "$END": "the end of the statement",
}


def _wanted(expected: set[str]) -> str:
    """What would have been right, in words; where any name would, the keywords that are names too are left out."""
    kept = {name for name in expected if name in _WORDS or "NAME" not in expected or name in _HARD.split()}
    words = sorted({_WORDS.get(name, name) for name in kept})
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}" if words else "something else"
