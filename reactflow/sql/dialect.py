"""From the SQL of the source's engine to that of DuckDB, token by token; what is the same in both stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from reactflow.sql.tokens import Statement, Token, arguments, closing

_TYPES: Final = {"BYTES": "BLOB", "TIMESTAMP_LTZ": "TIMESTAMPTZ", "MULTISET": "MAP", "ROW": "STRUCT"}


def quoted(name: str) -> str:
    """*name* as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """*text* as a quoted text."""
    return "'" + text.replace("'", "''") + "'"


def render(script: str, tokens: Sequence[Token]) -> str:
    """*tokens* of *script* as DuckDB reads them; comments and line ends between them stay."""
    parts: list[str] = []
    at = 0
    end = tokens[0].start if tokens else 0
    while at < len(tokens):
        token = tokens[at]
        parts.append(script[end : token.start])
        text, following = _rendered(script, tokens, at)
        parts.append(text)
        end = tokens[following - 1].end
        at = following
    return "".join(parts)


def _rendered(script: str, tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The text of the token at index *at*, or of the call that begins there, and the index after it."""
    token = tokens[at]
    if token.kind == "name" and token.text[0] == "`":
        return quoted(token.value), at + 1
    opens = at + 1 < len(tokens) and tokens[at + 1].text == "("
    if token.upper == "CONCAT" and opens and (end := closing(tokens, at + 1)) is not None:
        return _concat(script, tokens[at + 2 : end]), end + 1
    return token.text, at + 1


def _concat(script: str, tokens: Sequence[Token]) -> str:
    """A text with an unknown part is unknown in the source's engine; DuckDB's own CONCAT skips the part."""
    parts = []
    for part in arguments(tokens):
        if part:
            gap = script[script.rfind("\n", 0, part[0].start) : part[0].start] if _starts_line(script, part[0]) else ""
            parts.append(f"{gap}CAST({render(script, part)} AS VARCHAR)")
    return f"({' || '.join(parts)})" if parts else "NULL"


def _starts_line(script: str, token: Token) -> bool:
    """Whether only blanks stand before *token* in its line; then the line end is kept, so that lines stay the same."""
    before = script[script.rfind("\n", 0, token.start) + 1 : token.start]
    return "\n" in script[: token.start] and not before.strip()


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of CREATE TABLE, its type as DuckDB names it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Table:
    """A CREATE TABLE with columns.

    Args:
        name: As DuckDB reads it, quoted where it was.
        bare: The last part of the name, unquoted.
        columns: What it holds; computed columns and watermarks are left out.
        constraints: NOT NULL and keys, as they go behind a column or the last one.
        options: The options of WITH.
        if_not_exists: Whether an existing one is left alone.
    """

    name: str
    bare: str
    columns: tuple[TableColumn, ...]
    constraints: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    if_not_exists: bool = False

    @property
    def sql(self) -> str:
        """The statement for DuckDB."""
        columns = [
            f"{quoted(column.name)} {column.type}{extra}"
            for column, extra in zip(self.columns, self.constraints, strict=True)
        ]
        exists = "IF NOT EXISTS " if self.if_not_exists else ""
        return f"CREATE TABLE {exists}{self.name} ({', '.join(columns)})"


def read_table(statement: Statement) -> Table | None:
    """The table that *statement* makes from a list of columns, or None where it is another statement."""
    tokens = statement.tokens
    words = statement.words
    if words[:2] != ("CREATE", "TABLE"):
        return None
    at = 5 if words[2:5] == ("IF", "NOT", "EXISTS") else 2
    opening = next((index for index in range(at, len(tokens)) if tokens[index].text == "("), None)
    end = closing(tokens, opening) if opening is not None else None
    if opening is None or end is None or "AS" in words[at:opening] or words[end + 1 : end + 2] == ("AS",):
        return None
    columns, constraints = [], []
    for part in arguments(tokens[opening + 1 : end], opens="(<", closes=")>"):
        found = _column(part)
        if found is not None:
            columns.append(found[0])
            constraints.append(found[1])
    if not columns:
        raise statement.error("A table needs columns, such as (id INT, prompt STRING).", tokens[opening].start)
    name = ".".join(quoted(token.value) for token in tokens[at:opening] if token.text != ".")
    return Table(name, tokens[opening - 1].value, tuple(columns), tuple(constraints), _options(tokens[end:]), at == 5)


def _column(part: Sequence[Token]) -> tuple[TableColumn, str] | None:
    """Column and constraint; None for what is no stored column."""
    words = [token.upper for token in part]
    if not part or (part[0].kind == "word" and words[0] in ("PRIMARY", "UNIQUE", "CONSTRAINT", "WATERMARK")):
        return None
    if len(part) < 2 or words[1] == "AS":
        return None
    kind, following = type_text(part, 1)
    rest = words[following:]
    not_null = any(rest[index : index + 2] == ["NOT", "NULL"] for index in range(len(rest)))
    return TableColumn(part[0].value, kind), " NOT NULL" if not_null else ""


def type_text(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The type at index *at* as DuckDB names it, and the index after it."""
    word, following = tokens[at].upper or tokens[at].value, at + 1
    name = _TYPES.get(word, tokens[at].value)
    if following >= len(tokens):
        return name, following
    if tokens[following].text == "<":
        parts, following = _parameters(tokens, following + 1, word == "ROW")
        if word == "ARRAY":
            return f"{parts[0]}[]", following
        return f"{name}({', '.join(parts)})", following
    if tokens[following].text == "(":
        end = closing(tokens, following) or following
        lengths = "".join(token.text for token in tokens[following : end + 1])
        plain = word in ("STRING", "VARCHAR", "CHAR", "TIMESTAMP", "TIMESTAMP_LTZ", "TIME", "BINARY", "VARBINARY")
        return (name if plain else f"{name}{lengths}"), end + 1
    return name, following


def _parameters(tokens: Sequence[Token], at: int, named: bool) -> tuple[list[str], int]:
    parts = []
    while at < len(tokens) and tokens[at].text != ">":
        label = ""
        if named:
            label, at = f"{quoted(tokens[at].value)} ", at + 1
        kind, at = type_text(tokens, at)
        parts.append(label + kind)
        while at < len(tokens) and tokens[at].text not in (",", ">"):
            at += 1  # NOT NULL, COMMENT
        at += at < len(tokens) and tokens[at].text == ","
    return parts, at + 1


def _options(tokens: Sequence[Token]) -> dict[str, str]:
    for at, token in enumerate(tokens):
        if token.upper == "WITH" and at + 1 < len(tokens) and tokens[at + 1].text == "(":
            end = closing(tokens, at + 1) or len(tokens)
            pairs = [part for part in arguments(tokens[at + 2 : end]) if len(part) == 3]
            return {part[0].value.lower(): part[2].value for part in pairs}
    return {}
