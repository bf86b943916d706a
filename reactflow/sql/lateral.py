"""A query with a call of an agent, taken apart: the rows that are asked, and the query that reads the answers.

    SELECT ... FROM <left>, LATERAL TABLE(AI_RUN_AGENT('a', <prompt>, <key>)) AS r WHERE ...

The rows of *left* are kept in a table with their prompt and key; the agent answers them, many at a time; then the
query runs as it was written, with *left* and the call read from that table, side by side.  No engine waits for a model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from reactflow.sql.calls import AgentCall, mentions, read_call
from reactflow.sql.dialect import quoted
from reactflow.sql.engine import duckdb
from reactflow.sql.tokens import Statement, Token, closing

_AFTER_WHERE: Final = frozenset(
    """GROUP HAVING ORDER LIMIT OFFSET FETCH UNION EXCEPT INTERSECT WINDOW QUALIFY SAMPLE USING""".split()  # noqa: SIM905
)

_ROW_BY_ROW: Final = frozenset("CAST COALESCE CONCAT UPPER LOWER TRIM JSON_VALUE REGEXP_EXTRACT STRUCT_PACK".split())  # noqa: SIM905
"""Functions of one row: where a query calls no others and groups nothing, its LIMIT says how many rows are needed."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One table of *left* with the columns that it has.

    Args:
        alias: What the query calls it.
        columns: Its columns, in order; None for one that the query cannot name.
    """

    alias: str
    columns: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The rows that one call asks.

    Args:
        call: The call.
        rows: The SELECT of all columns of *left*, then prompt and key, as c0, c1, ...; the last two are text.
        before: The statement up to *left*, with FROM.
        after: What follows the call; conditions that *rows* has applied are TRUE in it.
        relations: The tables of *left*, in order.
    """

    call: AgentCall
    rows: str
    before: str
    after: str
    relations: tuple[Relation, ...]

    def answered(self, table: str) -> str:
        """The statement with *left* and the call read from *table*: rows c0, c1, ..., status, response."""
        parts, at = [], 0
        for relation in self.relations:
            named = enumerate(relation.columns, at)
            columns = [f"c{index} AS {quoted(name)}" for index, name in named if name is not None]
            parts.append(f"(SELECT {', '.join(columns or ['NULL'])} FROM {table}) AS {quoted(relation.alias)}")
            at += len(relation.columns)
        alias = quoted(self.call.alias or f"{table}_answer")
        names = ", ".join(map(quoted, self.call.columns))
        parts.append(f"(SELECT status, response FROM {table}) AS {alias}({names})")
        return f"{self.before} {' POSITIONAL JOIN '.join(parts)} {self.after}"


class Scope:
    """The SELECT around a call: where its parts begin."""

    def __init__(self, statement: Statement, call: AgentCall) -> None:
        self.statement = statement
        self.tokens = statement.tokens
        self.call = call
        self.from_ = self._backwards("FROM", call.join)
        self.select = self._backwards("SELECT", self.from_) if self.from_ is not None else None
        self.end = self._end()

    def _backwards(self, word: str, at: int) -> int | None:
        depth = 0
        for index in range(at - 1, -1, -1):
            token = self.tokens[index]
            if token.kind == "mark":
                depth += (token.text in ")]}") - (token.text in "([{")
            if depth < 0:
                return None
            if depth == 0 and token.upper == word:
                return index
        return None

    def _end(self) -> int:
        depth = 0
        for index in range(self.call.end, len(self.tokens)):
            token = self.tokens[index]
            if token.kind == "mark":
                depth += (token.text in "([{") - (token.text in ")]}")
            if depth < 0:
                return index
        return len(self.tokens)

    def clause(self, word: str) -> int | None:
        """The index of *word* after the call, in this SELECT itself."""
        depth = 0
        for index in range(self.call.end, self.end):
            token = self.tokens[index]
            if token.kind == "mark":
                depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0 and token.upper == word:
                return index
        return None

    def text(self, start: int, end: int) -> str:
        """The tokens from *start* to before *end*, as written."""
        if start >= end:
            return ""
        return self.statement.script[self.tokens[start].start : self.tokens[end - 1].end]

    def with_clause(self) -> str:
        """The common tables that are complete before the call, as a WITH clause; empty where there are none."""
        found: list[str] = []
        recursive = False
        for at, token in enumerate(self.tokens[: self.call.start]):
            if token.upper != "WITH" or not self._opens_a_query(at):
                continue
            recursive = recursive or self.tokens[at + 1].upper == "RECURSIVE"
            found += self._common_tables(at + 1 + (self.tokens[at + 1].upper == "RECURSIVE"))
        return f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(found)} " if found else ""

    def _opens_a_query(self, at: int) -> bool:
        """Whether the WITH at index *at* begins the statement, a bracket around the call, or what is inserted."""
        if at and self.tokens[at - 1].text == "(":
            end = closing(self.tokens, at - 1)
            return end is None or end > self.call.start
        depth = sum((token.text in "([{") - (token.text in ")]}") for token in self.tokens[:at] if token.kind == "mark")
        return depth == 0

    def _common_tables(self, at: int) -> list[str]:
        found = []
        while at < self.call.start:
            start = at
            while at < self.call.start and self.tokens[at].upper != "AS":
                at += 1
            while at < self.call.start and self.tokens[at].text != "(":
                at += 1
            end = closing(self.tokens, at) if at < self.call.start else None
            if end is None or end >= self.call.start:
                break
            found.append(self.text(start, end + 1))
            if end + 1 >= len(self.tokens) or self.tokens[end + 1].text != ",":
                break
            at = end + 2
        return found


def take_apart(statement: Statement, engine: Any, *, may_drop: dict[str, bool]) -> Question | None:
    """The rows that the first call in *statement* asks, or None where it has no call.

    Args:
        statement: In the engine's own SQL, but for the calls.
        engine: Reads the query; runs nothing.
        may_drop: For each agent, whether it may leave rows out.

    Raises:
        SqlError: The call stands where it cannot.
        duckdb.Error: What is around it is wrong.
    """
    found = mentions(statement.tokens)
    if not found:
        return None
    call = read_call(statement, found[0])
    scope = Scope(statement, call)
    if scope.from_ is None or scope.select is None:
        raise statement.error("A call of an agent stands in the FROM of a SELECT.", statement.tokens[call.start].start)
    with_clause = scope.with_clause()
    left = scope.text(scope.from_ + 1, call.join)
    relations = _relations(engine, with_clause, left, scope)
    pushed, kept, after = _conditions(engine, scope, with_clause, left)
    source = f" FROM {left}" if left else ""
    where = f" WHERE {' AND '.join(f'({each})' for each in pushed)}" if pushed else ""
    limit = "" if kept or may_drop.get(call.agent, False) else _limit(scope)
    columns = [f"{quoted(relation.alias)}.*" for relation in relations]
    prompt = f"CAST(({_words(statement, call.prompt)}) AS VARCHAR)"
    key = f"CAST(({_words(statement, call.request_id)}) AS VARCHAR)" if call.request_id else "CAST(NULL AS VARCHAR)"
    names = [f"c{index}" for index in range(sum(len(relation.columns) for relation in relations))]
    rows = (
        f"SELECT * FROM ({with_clause}SELECT {', '.join([*columns, prompt, key])}{source}{where}{limit}) "
        f"AS rows({', '.join([*names, 'prompt', 'request_id'])})"
    )
    before = statement.script[statement.tokens[0].start : statement.tokens[scope.from_].end]
    return Question(call=call, rows=rows, before=before, after=after, relations=relations)


def _words(statement: Statement, tokens: Sequence[Token]) -> str:
    return statement.script[tokens[0].start : tokens[-1].end]


def _relations(engine: Any, with_clause: str, left: str, scope: Scope) -> tuple[Relation, ...]:
    if not left:
        return ()
    query = f"{with_clause}SELECT * FROM {left}"
    engine.execute(f"{query} LIMIT 0")  # says what is wrong with it in words
    (text,) = engine.execute("SELECT json_serialize_sql(CAST(? AS VARCHAR))", [query]).fetchone() or ("{}",)
    tree = json.loads(text)["statements"][0]["node"]["from_table"]
    shared = _shared(tree) - _qualified(scope.tokens)
    relations = []
    for alias in _aliases(tree):
        described = engine.execute(f"{with_clause}SELECT {quoted(alias)}.* FROM {left} LIMIT 0").description or []
        names = [column[0] for column in described]
        kept = tuple(None if (alias.lower(), name.lower()) in shared else name for name in names)
        relations.append(Relation(alias, kept))
    return tuple(relations)


def _shared(tree: dict[str, Any]) -> set[tuple[str, str]]:
    """Table and column of what JOIN ... USING makes one column of: the one on the right has no name of its own."""
    if tree["type"] != "JOIN":
        return set()
    right = {(alias.lower(), name.lower()) for alias in _aliases(tree["right"]) for name in tree["using_columns"]}
    return right | _shared(tree["left"]) | _shared(tree["right"])


def _qualified(tokens: Sequence[Token]) -> set[tuple[str, str]]:
    """What the statement calls ``table.column``."""
    threes = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return {(table.value.lower(), name.value.lower()) for table, dot, name in threes if dot.text == "."}


def _aliases(tree: dict[str, Any]) -> list[str]:
    """The names of the tables in a FROM, in order."""
    if tree["type"] == "JOIN":
        return _aliases(tree["left"]) + _aliases(tree["right"])
    if tree["alias"]:
        return [tree["alias"]]
    if tree["type"] == "TABLE_FUNCTION":
        return [tree["function"]["function_name"]]
    return [tree["table_name"]] if tree.get("table_name") else []


def _conditions(engine: Any, scope: Scope, with_clause: str, left: str) -> tuple[list[str], list[str], str]:
    """Conditions that concern *left* alone, so that no row is asked in vain; the others; the rest of the statement."""
    start = scope.statement.tokens[scope.call.end - 1].end
    where = scope.clause("WHERE")
    rest = scope.statement.script[start : scope.statement.tokens[-1].end]
    if where is None or not left:
        return [], [], rest
    end = min((at for word in _AFTER_WHERE if (at := scope.clause(word)) is not None), default=scope.end)
    pushed, kept = [], []
    for part in _conjuncts(scope.tokens[where + 1 : end]):
        condition = _words(scope.statement, part)
        try:
            engine.execute(f"{with_clause}SELECT 1 FROM {left} WHERE ({condition}) LIMIT 0")
        except duckdb().Error:  # it needs what is not there yet: the answer, or a later table
            kept.append(condition)
        else:
            pushed.append(condition)
    script, tokens = scope.statement.script, scope.tokens
    before = script[start : tokens[where].end]
    after = script[tokens[end - 1].end : tokens[-1].end]
    return pushed, kept, f"{before} {' AND '.join(f'({each})' for each in kept) or 'TRUE'} {after}"


def _conjuncts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """*tokens* cut at the ANDs between conditions; not cut at all where there is an OR between them."""
    parts: list[list[Token]] = [[]]
    depth = between = 0
    for token in tokens:
        if token.kind == "mark":
            depth += (token.text in "([{") - (token.text in ")]}")
        word = token.upper if depth == 0 else ""
        depth += (token.upper == "CASE") - (token.upper == "END")
        if word == "OR":
            return [tokens]
        between += word == "BETWEEN"
        if word == "AND" and not between:
            parts.append([])
            continue
        between -= word == "AND"
        parts[-1].append(token)
    return [part for part in parts if part]


def _limit(scope: Scope) -> str:
    """The LIMIT of the query, where it may as well hold for the rows that are asked."""
    at = scope.clause("LIMIT")
    if at is None or at + 1 >= scope.end or scope.tokens[at + 1].kind != "number":
        return ""
    assert scope.select is not None
    assert scope.from_ is not None
    chosen = scope.tokens[scope.select + 1 : scope.from_]
    calls = {token.upper for token, then in pairwise(chosen) if token.upper and then.text == "("}
    others = ("GROUP", "HAVING", "ORDER", "UNION", "EXCEPT", "INTERSECT", "QUALIFY", "OFFSET", "JOIN")
    grouped = any(scope.clause(word) is not None for word in others) or calls - _ROW_BY_ROW
    if grouped or any(token.upper in ("DISTINCT", "OVER") for token in chosen):
        return ""
    following = scope.tokens[scope.call.end : scope.clause("WHERE") or at]
    return "" if any(token.text == "," for token in following) else f" LIMIT {scope.tokens[at + 1].text}"
