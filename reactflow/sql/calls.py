"""The calls of AI_RUN_AGENT in a statement: found, and checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reactflow.errors import SpecError
from reactflow.specs.catalog import Catalog
from reactflow.specs.values import AnyAgentSpec
from reactflow.sql.tokens import Statement, Token, arguments, closing

FUNCTION: Final = "AI_RUN_AGENT"

FORM: Final = "LATERAL TABLE(AI_RUN_AGENT('agent', prompt, request_id)) AS r(status, response)"

_STOP: Final = frozenset(
    """WHERE ON JOIN INNER LEFT RIGHT FULL CROSS NATURAL GROUP HAVING ORDER LIMIT UNION EXCEPT INTERSECT WINDOW QUALIFY
    USING OFFSET FETCH POSITIONAL ASOF SEMI ANTI""".split()  # noqa: SIM905
)
"""What may follow a call that has no alias."""


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One call, by the indexes of its tokens.

    Args:
        start: Of LATERAL, or of TABLE.
        end: After the alias, and after ON TRUE.
        agent: The agent's name.
        prompt: The tokens of the prompt.
        request_id: Those of the request id; empty where there is none.
        log_table: The table that is told of each step, or None.
        debug: Whether errors are told in full.
        alias: What the result is called; empty where it has no name.
        columns: Its two columns.
        outer: Whether a row without a result is kept (LEFT JOIN).
        join: Where the comma or the words of the join begin; *start* where nothing stands before the call.
    """

    start: int
    end: int
    agent: str
    prompt: Sequence[Token]
    request_id: Sequence[Token]
    log_table: str | None
    debug: bool
    alias: str
    columns: tuple[str, str]
    outer: bool
    join: int


def mentions(tokens: Sequence[Token]) -> list[int]:
    """The indexes at which a call begins."""
    return [at for at, token in enumerate(tokens) if token.upper == FUNCTION]


def read_call(statement: Statement, at: int) -> AgentCall:
    """The call whose name is the token at index *at*.

    Raises:
        SqlError: It is not called as it can be; says how.
    """
    tokens = statement.tokens
    opening = at - 1
    before = [token.upper for token in tokens[max(0, at - 3) : at - 1]]
    if opening < 1 or tokens[opening].text != "(" or before[-1:] != ["TABLE"]:
        raise statement.error(f"{FUNCTION} gives a table; write it as {FORM}.", tokens[at].start)
    start = opening - 1 - (before[:1] == ["LATERAL"])
    end = closing(tokens, at + 1) if at + 1 < len(tokens) and tokens[at + 1].text == "(" else None
    outer_end = closing(tokens, opening)
    if end is None or outer_end is None or outer_end != end + 1:
        raise statement.error(f"The brackets of {FUNCTION} do not fit; write {FORM}.", tokens[at].start)
    agent, prompt, request_id, log_table, debug = _arguments(statement, at, arguments(tokens[at + 2 : end]))
    alias, columns, following = _alias(statement, outer_end + 1)
    join, outer = _join(statement, start)
    if outer and [token.upper for token in tokens[following : following + 2]] == ["ON", "TRUE"]:
        following += 2
    elif join < start and tokens[join].text != "," and tokens[following : following + 1]:
        words = [token.upper for token in tokens[following : following + 2]]
        following += 2 if words == ["ON", "TRUE"] else 0
    return AgentCall(start, following, agent, prompt, request_id, log_table, debug, alias, columns, outer, join)


def _arguments(
    statement: Statement, at: int, given: list[Sequence[Token]]
) -> tuple[str, Sequence[Token], Sequence[Token], str | None, bool]:
    """Agent, prompt, request id, log table and debug, out of the five forms of the call."""
    place = statement.tokens[at].start
    if not 2 <= len(given) <= 5 or not all(given):
        raise statement.error(
            f"{FUNCTION} takes (agent, prompt [, request_id [, log_table]] [, MAP['debug', 'true']]).", place
        )
    debug = False
    if given[-1][0].upper == "MAP" and len(given[-1]) > 1 and given[-1][1].text == "[":
        debug = _debug(statement, given[-1])
        given = given[:-1]
    elif len(given) == 5:
        raise statement.error(f"The last argument of {FUNCTION} must be MAP['debug', 'true'].", given[-1][0].start)
    if len(given) < 2:
        raise statement.error(f"{FUNCTION} needs a prompt after the agent.", place)
    name = given[0]
    if any(token.kind not in ("text", "name", "word") and token.text != "." for token in name):
        raise statement.error(f"The first argument of {FUNCTION} is an agent's name, not an expression.", name[0].start)
    log_table = _log_table(statement, given[3]) if len(given) > 3 else None
    return "".join(token.value for token in name), given[1], given[2] if len(given) > 2 else (), log_table, debug


def _log_table(statement: Statement, given: Sequence[Token]) -> str:
    if any(token.kind not in ("text", "name", "word") and token.text != "." for token in given):
        raise statement.error("The log table is given by its name, such as 'agent_log'.", given[0].start)
    return "".join(token.value for token in given)


def _debug(statement: Statement, given: Sequence[Token]) -> bool:
    end = closing(given, 1)
    pairs = arguments(given[2:end]) if end is not None else []
    if len(pairs) % 2:
        raise statement.error("MAP takes pairs: MAP['debug', 'true'].", given[0].start)
    debug = False
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        name, setting = (part[0].value.strip().lower() if len(part) == 1 else "" for part in (key, value))
        if name != "debug" or setting not in ("true", "false"):
            words = f"{FUNCTION} knows one setting: MAP['debug', 'true'] or MAP['debug', 'false']."
            raise statement.error(words, (key or given)[0].start)
        debug = setting == "true"
    return debug


def _alias(statement: Statement, at: int) -> tuple[str, tuple[str, str], int]:
    """Alias, columns, and the index after them."""
    tokens = statement.tokens
    explicit = at < len(tokens) and tokens[at].upper == "AS"
    at += explicit
    named = at < len(tokens) and (tokens[at].kind == "name" or (tokens[at].upper and tokens[at].upper not in _STOP))
    if not named:
        return "", ("status", "response"), at
    alias, at = tokens[at].value, at + 1
    if at >= len(tokens) or tokens[at].text != "(":
        return alias, ("status", "response"), at
    end = closing(tokens, at) or at
    names = [part[0].value for part in arguments(tokens[at + 1 : end]) if part]
    if len(names) != 2:
        words = f"{FUNCTION} gives two columns, so write AS {alias}(status, response)."
        raise statement.error(words, tokens[at].start)
    return alias, (names[0], names[1]), end + 1


def _join(statement: Statement, start: int) -> tuple[int, bool]:
    """Where the join before the call begins, and whether it keeps rows without a result."""
    tokens = statement.tokens
    if start and tokens[start - 1].text == ",":
        return start - 1, False
    at, outer = start, False
    if at and tokens[at - 1].upper == "JOIN":
        at -= 1
        while at and tokens[at - 1].upper in ("CROSS", "INNER", "LEFT", "OUTER"):
            outer = outer or tokens[at - 1].upper == "LEFT"
            at -= 1
        if at and tokens[at - 1].upper in _STOP:
            words = "A call of an agent follows a comma, CROSS JOIN, JOIN or LEFT JOIN."
            raise statement.error(words, tokens[at - 1].start)
    return at, outer


def check_calls(statement: Statement, catalog: Catalog) -> dict[str, AnyAgentSpec]:
    """The agents that *statement* calls, by name: snapshots, which a later ALTER does not change.

    Raises:
        SqlError: A call is not as it can be, or its agent is not defined.
    """
    found: dict[str, AnyAgentSpec] = {}
    calls = mentions(statement.tokens)
    if calls and "VIEW" in statement.words[: calls[0]] and statement.words[0] == "CREATE":
        words = "A view would ask the agent each time it is read; write CREATE TABLE ... AS SELECT."
        raise statement.error(words, statement.tokens[calls[0]].start)
    if calls and statement.words[0] == "EXPLAIN":
        words = "To explain this the agent would have to be asked; explain the query without the call."
        raise statement.error(words, statement.tokens[calls[0]].start)
    for at in calls:
        call = read_call(statement, at)
        try:
            found[call.agent] = catalog.agent(call.agent)
        except SpecError as error:
            raise statement.error(str(error), statement.tokens[at + 2].start) from error
    return found
