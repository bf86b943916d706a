"""Our statements as values, each part with its place in the script, and their effect on the catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from reactflow.errors import SpecError, SqlError
from reactflow.frozen import EMPTY
from reactflow.specs.catalog import Catalog, known_kind
from reactflow.specs.making import Definition, Kind
from reactflow.sql.grammar import parse
from reactflow.sql.tokens import Statement, Token


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement of ours gives back: a small table.

    Args:
        columns: Their names.
        rows: Texts.
        message: What was done, in a few words; of a statement that shows something it is empty.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One of our statements.

    Args:
        action: ``create``, ``alter``, ``drop``, ``describe``, ``show`` or ``show_create``.
        kind: Of what.
        name: Which one; empty for ``show``.
        clauses: What follows the name.
        options: What stands in brackets after WITH or SET.
        comment: For people.
        lenient: IF EXISTS, or IF NOT EXISTS.
        pattern: Of SHOW ... LIKE.
        spots: Where in the script each part is, by the same words as :attr:`SpecError.where`.
    """

    action: str
    kind: Kind
    name: str = ""
    clauses: Mapping[str, Any] = field(default=EMPTY)
    options: Mapping[str, str] = field(default=EMPTY)
    comment: str = ""
    lenient: bool = False
    pattern: str = "%"
    spots: Mapping[str, int] = field(default=EMPTY)


_OURS: Final = re.compile(r"(CREATE|ALTER|DROP|DESCRIBE|DESC|SHOW)$")


def is_ours(statement: Statement) -> bool:
    """Whether *statement* is about a connection, a model, a tool, a function in Python, or an agent."""
    words = [token.upper for token in statement.tokens[:4]]
    if not words or not _OURS.match(words[0]):
        return False
    rest = words[1:]
    if words[0] == "SHOW" and rest[:1] == ["CREATE"]:
        rest = rest[1:]
    if not rest or known_kind(rest[0]) is None or len(statement.tokens) < 2:
        return False
    if known_kind(rest[0]) != "function":
        return words[0] not in ("DESCRIBE", "DESC") or len(statement.tokens) > 2  # DESCRIBE model: a table called so
    return words[0] != "CREATE" or _in_python(statement)


def _in_python(statement: Statement) -> bool:
    """Whether a function is one in Python; the engine has macros of its own under the same words."""
    words = [token.upper for token in statement.tokens]
    at = words.index("AS") if "AS" in words else -1
    return at > 0 and len(words) > at + 1 and statement.tokens[at + 1].kind == "text"


def read(statement: Statement) -> Command:
    """The command that *statement* is.

    Raises:
        SqlError: It is none, or a clause or option is given twice.
    """
    (tree,) = parse(statement).children
    return _Reader(statement).command(tree)


class _Reader:
    """Reads one tree; keeps where each part is."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.clauses: dict[str, Any] = {}
        self.options: dict[str, str] = {}
        self.comment = ""
        self.spots: dict[str, int] = {}

    def command(self, tree: Any) -> Command:
        action, _, kind = tree.data.partition("_")
        parts = {child.data: child for child in tree.children if hasattr(child, "data")}
        if tree.data == "show_create":
            action, kind = tree.data, ""
        if action != "create":
            word = parts["kinds" if action == "show" else "kind"].children[0].value
            kind = cast(str, known_kind(word.text))
        name = self.name(parts["name"]) if "name" in parts else ""
        if "name" in parts:
            self.spots["name"] = _start(parts["name"])
        for child in tree.children:
            if hasattr(child, "data"):
                self.clause(child)
        return Command(
            action=action,
            kind=cast(Kind, kind),
            name=name,
            clauses=self.clauses,
            options=self.options,
            comment=self.comment,
            lenient="if_exists" in parts or "if_not_exists" in parts,
            pattern=self.text(parts["text"]) if action == "show" and "text" in parts else "%",
            spots=self.spots,
        )

    def clause(self, tree: Any) -> None:
        """Note one clause."""
        handlers: dict[str, Callable[[Any], None]] = {
            "with": self.with_,
            "set_options": self.with_,
            "comment": lambda tree: setattr(self, "comment", self.text(tree.children[-1])),
            "reference": lambda tree: self.keep("reference", self.text(tree.children[0]), tree),
            "language": self.language,
        }
        if tree.data in handlers:
            self.once(tree)
            handlers[tree.data](tree)
        elif tree.data.startswith(("using_", "set_", "add_", "remove_")) or tree.data in ("input", "output"):
            self.once(tree)
            self.keep(_clause_name(tree.data), self.value(tree), tree)

    def once(self, tree: Any) -> None:
        seen = f"clause {tree.data}"
        if seen in self.spots:
            words = tree.data.removesuffix("_").replace("_", " ").upper()
            raise self.statement.error(f"{words} is given twice; keep one of them.", _start(tree))
        self.spots[seen] = _start(tree)

    def keep(self, name: str, value: Any, tree: Any) -> None:
        self.clauses[name] = value
        self.spots[name] = _start(tree.children[-1]) if tree.children else _start(tree)

    def value(self, tree: Any) -> Any:
        last = tree.children[-1]
        match getattr(last, "data", None):
            case "name":
                return self.name(last)
            case "names":
                for each in last.children:
                    self.spots[f"{_clause_name(tree.data)} {self.name(each)}"] = _start(each)
                return tuple(self.name(each) for each in last.children)
            case "text":
                return self.text(last)
            case "columns":
                return tuple(self.column(each) for each in last.children)
        return ()  # USING AGENTS without any

    def with_(self, tree: Any) -> None:
        for pairs in tree.children:
            for pair in getattr(pairs, "children", ()):
                key, value = pair.children
                name = self.text(key).strip().lower()
                if name in self.options:
                    raise self.statement.error(f"Option '{name}' is given twice; keep one of them.", _start(key))
                self.options[name] = self.text(value)
                self.spots[f"key {name}"], self.spots[name] = _start(key), _start(value)

    def language(self, tree: Any) -> None:
        token: Token = tree.children[0].value
        if token.upper != "PYTHON":
            raise self.statement.error(f"LANGUAGE {token.text} is not supported; write LANGUAGE PYTHON.", token.start)

    def column(self, tree: Any) -> tuple[str, str]:
        part, kind = tree.children[:2]
        tokens = _tokens(kind)
        return part.children[0].value.value, self.statement.script[tokens[0].start : tokens[-1].end]

    def name(self, tree: Any) -> str:
        return ".".join(part.children[0].value.value for part in tree.children if hasattr(part, "data"))

    def text(self, tree: Any) -> str:
        return cast(str, tree.children[0].value.value)


def _clause_name(data: str) -> str:
    return data if data in ("add_tool", "remove_tool") else data.removeprefix("using_").removeprefix("set_")


def _tokens(tree: Any) -> list[Token]:
    if not hasattr(tree, "data"):
        return [tree.value]
    return [token for child in tree.children for token in _tokens(child)]


def _start(tree: Any) -> int:
    return min(token.start for token in _tokens(tree)) if _tokens(tree) else 0


def carry_out(statement: Statement, catalog: Catalog) -> Answer:
    """Do what one of our statements says.

    Raises:
        SqlError: It cannot be done; points at the part that is to blame.
    """
    command = read(statement)
    try:
        return _DO[command.action](command, catalog)
    except SpecError as error:
        raise statement.error(str(error), _blame(command, error)) from error


def _blame(command: Command, error: SpecError) -> int | None:
    clause = error.where.split(" ")[0]
    for spot in (error.where, clause, f"add_{clause.removesuffix('s')}", f"remove_{clause.removesuffix('s')}", "name"):
        if spot in command.spots:
            return command.spots[spot]
    return None


def _create(command: Command, catalog: Catalog) -> Answer:
    definition = Definition(
        kind=command.kind,
        name=command.name,
        clauses=command.clauses,
        options=command.options,
        comment=command.comment,
    )
    made = catalog.create(definition, if_not_exists=command.lenient)
    return _done(command, "created" if made else "exists already; nothing was changed")


def _alter(command: Command, catalog: Catalog) -> Answer:
    clauses = {name: value for name, value in command.clauses.items() if not name.endswith("_tool")}
    changes = {"clauses": clauses, "options": command.options, **command.clauses}
    if command.kind != "agent" and command.clauses:
        raise SpecError(f"ALTER {command.kind.upper()} takes SET ('option' = 'value') only.")
    found = catalog.alter(command.kind, command.name, changes, if_exists=command.lenient)
    return _done(command, "altered" if found else "does not exist; nothing was changed")


def _drop(command: Command, catalog: Catalog) -> Answer:
    found = catalog.drop(command.kind, command.name, if_exists=command.lenient)
    return _done(command, "dropped" if found else "does not exist; nothing was changed")


def _describe(command: Command, catalog: Catalog) -> Answer:
    return Answer(("property", "value"), tuple(catalog.describe(command.kind, command.name)))


def _show(command: Command, catalog: Catalog) -> Answer:
    pattern = command.pattern.replace("%", "*").replace("_", "?")
    names = [name for name in catalog.names(command.kind) if fnmatchcase(name, pattern)]
    return Answer((f"{command.kind} name",), tuple((name,) for name in names))


def _show_create(command: Command, catalog: Catalog) -> Answer:
    return Answer(("statement",), ((_written(catalog.shown(command.kind, command.name)),),))


def _written(given: Definition) -> str:
    """The statement that makes *given*."""
    lines = [f"CREATE {given.kind.upper()} {_name(given.name)}"]
    for clause, value in given.clauses.items():
        if clause in ("input", "output"):
            lines.append(f"{clause.upper()} ({', '.join(f'{_name(name)} {kind}' for name, kind in value)})")
        elif clause == "reference":
            lines.append(f"AS {_text(value)} LANGUAGE PYTHON")
        elif clause == "prompt":
            lines.append(f"USING PROMPT {_text(value)}")
        elif value:
            names = (value,) if isinstance(value, str) else value
            lines.append(f"USING {clause.upper()} {', '.join(_name(name) for name in names)}")
    if given.comment:
        lines.append(f"COMMENT {_text(given.comment)}")
    if given.options:
        pairs = ",\n  ".join(f"{_text(key)} = {_text(value)}" for key, value in given.options.items())
        lines.append(f"WITH (\n  {pairs}\n)")
    return "\n".join(lines)


def _name(name: str) -> str:
    bare = re.compile(r"[^\W\d]\w*")
    return ".".join(part if bare.fullmatch(part) else f"`{part}`" for part in name.split("."))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _done(command: Command, what: str) -> Answer:
    return Answer(message=f"{command.kind.capitalize()} {command.name} {what}.")


_DO: Final[Mapping[str, Callable[[Command, Catalog], Answer]]] = {
    "create": _create,
    "alter": _alter,
    "drop": _drop,
    "describe": _describe,
    "show": _show,
    "show_create": _show_create,
}

__all__ = ["Answer", "Command", "SqlError", "carry_out", "is_ours", "read"]
