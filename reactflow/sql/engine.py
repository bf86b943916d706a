"""DuckDB: loaded where it is used, and its errors put where they belong in the script."""

from __future__ import annotations

import re
from typing import Any

from reactflow.errors import ConfigurationError, SqlError
from reactflow.sql.tokens import Statement, place


def duckdb() -> Any:
    """The module duckdb.

    Raises:
        ConfigurationError: The extra ``sql`` is missing.
    """
    try:
        import duckdb as module
    except ImportError as error:
        raise ConfigurationError("SQL needs the extra 'sql': pip install 'reactflow[sql]'.") from error
    return module


def explain(error: Exception, statement: Statement) -> SqlError:
    """*error* of the engine as one of *statement*: what is wrong, without the engine's own picture of the place."""
    text = str(error)
    reason = text.split("\n\nLINE ")[0].strip()
    line, word = _spot(text)
    at = _find(statement, line, word)
    return statement.error(reason if reason.endswith((".", "!", "?")) else f"{reason}.", at)


def _spot(text: str) -> tuple[int, str]:
    """Line and word that the engine points at; 1 and nothing where it points at none."""
    found = re.search(r"^LINE (\d+): (.*)\n( *)\^", text, re.MULTILINE)
    if found is None:
        return 1, ""
    column = len(found[3]) - len(f"LINE {found[1]}: ")
    name = re.match(r"[\w$.\"]+", found[2][max(0, column) :])
    return int(found[1]), name[0].split(".")[-1].strip('"') if name else ""


def _find(statement: Statement, line: int, word: str) -> int | None:
    """The character of *word* in *statement*: in the same line if it is there, else where it stands first."""
    if not word:
        return None
    first, _ = place(statement.script, statement.tokens[0].start)
    same = [token for token in statement.tokens if token.value.lower() == word.lower()]
    there = [token for token in same if place(statement.script, token.start)[0] == first + line - 1]
    return (there or same)[0].start if same else None
