"""A script's statements as Flink takes them; what Flink's own parser understands is left as it was written.

    ..., LATERAL TABLE(AI_RUN_AGENT('a', <prompt>, <key>)) AS r(status, response)

calls one row after the other there.  An async function can have many calls in flight, but gives a value and no table::

    ... CROSS JOIN UNNEST(IFNULL(f(<prompt>, <key>)[<check>], <mixed up>)) AS r(status, response)

It gives a map from the check of what it was asked to a list of its answer, or to an empty list where the row is to be
left out.  PyFlink 2.3 is known to hand a call the arguments of another row; then the map lacks the check of this row,
which so becomes a failed one and never gets the other row's answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from reactflow.batch.rows import Record
from reactflow.batch.sources import format_of
from reactflow.errors import ConfigurationError
from reactflow.specs.values import AnyAgentSpec
from reactflow.sql.calls import AgentCall, mentions, read_call
from reactflow.sql.dialect import Table, literal, read_table
from reactflow.sql.files import connected_file
from reactflow.sql.logs import COLUMNS
from reactflow.sql.tokens import Statement, Token

MIXED_UP: Final = "The engine handed this row's call the data of another row; nothing was taken from it."

_TYPE: Final = "ROW<status STRING, response STRING>"


def check_of(prompt: str | None, key: str | None) -> str:
    """What tells the call of one row from those of others; the statement computes the same from the row itself."""
    text = "|".join(part for part in (key, prompt) if part is not None)
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


_GROUPING: Final = (("EXECUTE", "STATEMENT", "SET", "BEGIN"), ("BEGIN", "STATEMENT", "SET"), ("END",))
"""What groups statements: here each one is a job of its own, one after the other."""


def ungrouped(statement: Statement) -> Statement | None:
    """*statement* without the words that group it with others; None where nothing is left."""
    for words in _GROUPING:
        if statement.words[: len(words)] == words:
            rest = statement.tokens[len(words) :]
            return Statement(statement.script, rest) if rest else None
    return statement


def back_quoted(name: str) -> str:
    """*name* as Flink quotes it."""
    return "`" + name.replace("`", "``") + "`"


def translate(
    statement: Statement, agents: Mapping[str, AnyAgentSpec], function: Callable[[AnyAgentSpec, AgentCall], str]
) -> str:
    """*statement* with each call of an agent replaced by that of a function.

    Args:
        statement: What was written.
        agents: Those it calls, by name.
        function: The name of the function that runs an agent as a call says.

    Raises:
        SqlError: A call cannot be made on this engine.
    """
    parts, at = [], 0
    for number, place in enumerate(mentions(statement.tokens), 1):
        call = read_call(statement, place)
        parts.append(_between(statement, at, call.join))
        parts.append(_unnested(statement, call, function(agents[call.agent], call), number))
        at = call.end
    parts.append(_between(statement, at, len(statement.tokens)))
    return " ".join(part for part in parts if part)


def _between(statement: Statement, start: int, end: int) -> str:
    return statement.script[statement.tokens[start].start : statement.tokens[end - 1].end] if start < end else ""


def _unnested(statement: Statement, call: AgentCall, function: str, number: int) -> str:
    prompt, key = (_as_text(statement, tokens) for tokens in (call.prompt, call.request_id))
    answer = f"{function}({prompt}, {key})[MD5(CONCAT_WS('|', {key}, {prompt}))]"
    failed = f"ARRAY[CAST(ROW('FAILED', {literal(MIXED_UP)}) AS {_TYPE})]"
    alias = back_quoted(call.alias or f"reactflow_r{number}")
    columns = ", ".join(map(back_quoted, call.columns))
    alone = "(VALUES (0)) AS reactflow_one(n) " if call.join == call.start else ""
    join, on = ("LEFT JOIN", " ON TRUE") if call.outer else ("CROSS JOIN", "")
    return f"{alone}{join} UNNEST(IFNULL({answer}, {failed})) AS {alias}({columns}){on}"


def _as_text(statement: Statement, tokens: Iterable[Token]) -> str:
    given = list(tokens)
    text = statement.script[given[0].start : given[-1].end] if given else "NULL"
    return f"CAST({text} AS STRING)"


def log_folder(name: str, shown: Statement) -> Path:
    """Where workers write the rows of a log table.

    Args:
        name: What the call says.
        shown: The statement that makes the table, as Flink shows it.

    Raises:
        ConfigurationError: It has other columns, or is no folder of JSON lines.
    """
    table = read_table(shown)
    if table is None or tuple(column.name for column in table.columns) != COLUMNS:
        raise ConfigurationError(f"Log table {name!r} must have the columns {', '.join(COLUMNS)}, in this order.")
    options, path = table.options, table.options.get("path", "").removeprefix("file://")
    if (options.get("connector"), options.get("format")) != ("filesystem", "json") or not path or "://" in path:
        raise ConfigurationError(
            f"Log table {name!r} must be a folder of JSON lines that every worker sees: leave out its options, or "
            "write WITH ('connector' = 'filesystem', 'path' = '/shared/log', 'format' = 'json')."
        )
    return Path(path)


def plain_file(table: Table, folder: Path) -> Path | None:
    """The file that *table* is, where its options are only those that the engine of this process knows; else None.

    Flink itself would take the path for a folder, the head of a CSV file for a row, and a relative path for one that
    starts where its own process runs.
    """
    path = table.options.get("path", "")
    if not table.options.keys() <= {"connector", "path", "format"} or "://" in path.removeprefix("file://"):
        return None
    with suppress(ConfigurationError):
        found = connected_file(table, folder)
        if found is not None and not found.is_dir():
            format_of(found)
            return found
    return None


def with_connector(statement: Statement, options: Mapping[str, str], *, instead: bool = False) -> str | None:
    """*statement* with *options* where it makes a table that says nothing of where it is, or *instead* of what it
    says; else None."""
    words = statement.words
    if instead:
        return f"{_between(statement, 0, words.index('WITH'))} {_with(options)}"
    if words[:2] != ("CREATE", "TABLE") or "WITH" in words or "LIKE" in words:
        return None
    table = read_table(statement)
    if table is not None:
        return f"{statement.text} {_with(options)}"
    at = words.index("AS") if "AS" in words else None
    if at is None:
        return None
    return f"{_between(statement, 0, at)} {_with(options)} {_between(statement, at, len(words))}"


def written_table(statement: Statement) -> str:
    """The last part of the name of the table that INSERT INTO, or INSERT OVERWRITE, writes to."""
    tokens = [token for token in statement.tokens if token.upper not in ("INSERT", "INTO", "OVERWRITE")]
    at = 0
    while at + 2 < len(tokens) and tokens[at + 1].text == ".":
        at += 2
    return tokens[at].value if tokens else ""


def create_table(name: str, columns: Mapping[str, str], options: Mapping[str, str]) -> str:
    """The statement that makes a table."""
    listed = ", ".join(f"{back_quoted(column)} {kind}" for column, kind in columns.items())
    return f"CREATE TABLE {back_quoted(name)} ({listed}) {_with(options)}"


def _with(options: Mapping[str, str]) -> str:
    return f"WITH ({', '.join(f'{literal(key)} = {literal(value)}' for key, value in options.items())})"


_ONE_FILE: Final = {
    "sink.parallelism": "1",
    "sink.rolling-policy.file-size": "1000000 tb",
    "sink.rolling-policy.rollover-interval": "36500 d",
    "sink.rolling-policy.inactivity-interval": "36500 d",
}


def json_files(place: str) -> dict[str, str]:
    """The options of a table that is a folder of JSON lines, or one such file.

    A value that does not fit its column is NULL: such a row fails, and no other.  A statement writes one file, and
    Flink gives it the last name when all rows are in it: so the name tells that the statement has ended.
    """
    form = {"connector": "filesystem", "path": place, "format": "json", "json.ignore-parse-errors": "true"}
    return form | _ONE_FILE


def columns_of(records: Iterable[Record], first: int = 1000) -> dict[str, str]:
    """The columns of *records* with their types, as the first ones show them; a mix of types is text."""
    seen: dict[str, set[type]] = {}
    for record in islice(records, first):
        for name, value in record.data.items():
            seen.setdefault(str(name), set()).update(() if value is None else (type(value),))
    return {name: _type_of(types) for name, types in seen.items()}


def _type_of(types: set[type]) -> str:
    if types and types <= {int, float}:
        return "BIGINT" if types == {int} else "DOUBLE"
    return "BOOLEAN" if types == {bool} else "STRING"


def as_json_row(record: Record) -> dict[str, Any]:
    """*record* as a line of a table's file; one with a flaw is a row of NULLs."""
    return {} if record.flaw else dict(record.data)
