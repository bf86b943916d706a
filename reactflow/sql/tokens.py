"""Tokens of a script, and the script cut into statements.

Only as much is understood as it takes to know where a text, a name or a comment ends; what the words mean is for the
grammar of our own statements and for the engine's parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

from reactflow.errors import SqlError

TokenKind: TypeAlias = Literal["word", "name", "text", "number", "mark"]
"""A bare word; a quoted name; a quoted text; a number; anything else, one character or an operator."""

_TOKEN: Final = re.compile(
    r"""
    (?P<skip>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<text>[nNeE]?'(?:[^']|'')*')
  | (?P<name>`(?:[^`]|``)*`|"(?:[^"]|"")*")
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d][\w$]*)
  | (?P<mark><>|<=|>=|!=|\|\||::|=>|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)

_OPENS: Final = {"'": "text", "`": "name", '"': "name", "/*": "comment"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Args:
        kind: What it is.
        text: As it was written.
        start: Its first character in the script, from 0.
    """

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The character after its last one."""
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        """The word in capitals; empty for what is no bare word."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """What a quoted text or name stands for; else the token as it was written."""
        if self.kind not in ("text", "name"):
            return self.text
        body = self.text.lstrip("nNeE") if self.kind == "text" else self.text
        quote = body[0]
        return body[1:-1].replace(quote * 2, quote)


@dataclass(frozen=True)
class Statement:
    """One statement of a script, without its semicolon.

    Args:
        script: The whole script it stands in.
        tokens: At least one.
    """

    script: str
    tokens: tuple[Token, ...]

    @cached_property
    def text(self) -> str:
        """As it was written, comments inside included."""
        return self.script[self.tokens[0].start : self.tokens[-1].end]

    @property
    def words(self) -> tuple[str, ...]:
        """Its tokens in capitals; empty where one is no bare word."""
        return tuple(token.upper for token in self.tokens)

    @property
    def line(self) -> int:
        """Where it begins, from 1."""
        return place(self.script, self.tokens[0].start)[0]

    def error(self, reason: str, at: int | None = None) -> SqlError:
        """The error *reason* at character *at* of the script, or at the statement's beginning."""
        return error_at(self.script, self.tokens[0].start if at is None else at, reason)


def place(script: str, at: int) -> tuple[int, int]:
    """Line and column of character *at*, both from 1."""
    before = script[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def error_at(script: str, at: int, reason: str) -> SqlError:
    """The error *reason* at character *at* of *script*; a secret in the shown line is masked."""
    line, column = place(script, at)
    return SqlError(reason, line=line, column=column, source=mask(script))


_SECRET: Final = re.compile(
    r"""('[\w.-]*(?:api[-_]?key|token|password|secret)[\w.-]*'\s*=?\s*)
        (?!'\$\{[^{}']+\}')('(?:[^'\n]|'')*'?|"[^"\n]*"?|[^\s'",()=][^\s'",()]*)""",
    re.IGNORECASE | re.VERBOSE,
)


def mask(script: str) -> str:
    """*script* with the values of secret options masked, as many characters long as they were."""
    return _SECRET.sub(lambda found: f"{found[1]}{'*' * len(found[2])}", script)


def tokenize(script: str) -> list[Token]:
    """The tokens of *script*, comments and blanks left out.

    Raises:
        SqlError: A text, a name or a comment does not end.
    """
    tokens = []
    at = 0
    while at < len(script):
        found = _TOKEN.match(script, at)
        assert found is not None  # the last branch takes any character
        kind, text = found.lastgroup, found[0]
        opened = _OPENS.get(script[at : at + 2]) or (_OPENS.get(text) if kind == "mark" else None)
        if kind == "mark" and opened:
            end = {"text": "'", "name": text, "comment": "*/"}[opened]
            raise error_at(script, at, f"This {opened} does not end; close it with {end}")
        if kind != "skip":
            tokens.append(Token(kind, text, at))  # type: ignore[arg-type]
        at = found.end()
    return tokens


def split(script: str) -> Iterator[Statement]:
    """The statements of *script*, in order.

    Raises:
        SqlError: A text, a name or a comment does not end.
    """
    tokens: list[Token] = []
    for token in tokenize(script.lstrip("\ufeff")):
        if token.text == ";" and token.kind == "mark":
            if tokens:
                yield Statement(script.lstrip("\ufeff"), tuple(tokens))
            tokens = []
        else:
            tokens.append(token)
    if tokens:
        yield Statement(script.lstrip("\ufeff"), tuple(tokens))


def closing(tokens: Sequence[Token], at: int) -> int | None:
    """The index of the bracket that closes the one at index *at*; None where it is not closed."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    depth = 0
    for index in range(at, len(tokens)):
        token = tokens[index]
        if token.kind != "mark":
            continue
        depth += (token.text in pairs) - (token.text in pairs.values())
        if depth == 0:
            return index
    return None


def arguments(tokens: Sequence[Token], *, opens: str = "([{", closes: str = ")]}") -> list[Sequence[Token]]:
    """*tokens* cut at the commas that stand in no bracket."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "mark":
            depth += (token.text in opens) - (token.text in closes)
        if token.kind == "mark" and token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [] if parts == [[]] else list(parts)
