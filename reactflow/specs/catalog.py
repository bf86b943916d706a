"""The catalogue: what is defined, by kind and name, and what may be shown of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from reactflow.errors import SpecError, near
from reactflow.specs.making import KINDS, Definition, Kind, make_agent, make_connection, make_model, make_tool
from reactflow.specs.options import MASK, SENSITIVE, is_reference, resolve
from reactflow.specs.values import AnyAgentSpec, ReflectionSpec


class Catalog:
    """Keeps definitions, and makes specs of them.

    A definition is checked as a whole when it is created, and so is everything that uses it when it is altered.
    Secrets that were written out stay here; the specs hold references to them.

    Args:
        overrides: Options that win over those of a definition, by ``"name.option"``; a name of ``"*"`` stands for
            every connection but those of MCP servers.
        functions: Names of functions that tools may use and the caller hands over, next to those defined here.
        environment: Where ``${NAME}`` is looked up; the process's own by default.

    Attributes:
        secrets: What references stand for, by name; never shown.
        warnings: What a careful caller should know, oldest first.
    """

    def __init__(
        self,
        *,
        overrides: Mapping[str, str] | None = None,
        functions: Iterable[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._found: dict[tuple[str, str], Definition] = {}
        self._overrides = dict(overrides or {})
        self._functions = set(functions)
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        self.secrets: dict[str, str] = {}
        self.warnings: list[str] = []

    def create(self, given: Definition, *, if_not_exists: bool = False) -> bool:
        """Add *given*.

        Returns:
            Whether it was added; False where it exists and *if_not_exists* is true.

        Raises:
            SpecError: A rule of creation is broken, or the name is taken.
        """
        if (given.kind, given.name) in self._found:
            if if_not_exists:
                return False
            raise SpecError(
                f"{given.title} exists; drop it first, alter it, or write CREATE {given.kind.upper()} IF NOT EXISTS."
            )
        kept = self._without_secrets(self._overridden(given))
        self._check(kept)
        self._found[kept.kind, kept.name] = kept
        return True

    def alter(self, kind: Kind, name: str, changes: Mapping[str, Any], *, if_exists: bool = False) -> bool:
        """Change a definition: ``{"clauses": {...}, "options": {...}, "add_tool": t, "remove_tool": t}``.

        Returns:
            Whether there was one.

        Raises:
            SpecError: There is none, or it, or something that uses it, would break a rule; then nothing has changed.
        """
        before = self._found.get((kind, name))
        if before is None and if_exists:
            return False
        before = before or self._definition(kind, name)
        given = replace(
            before,
            clauses={**before.clauses, **changes.get("clauses", {}), **self._tools(before, changes)},
            options={**before.options, **changes.get("options", {})},
        )
        after = self._without_secrets(given)
        self._found[kind, name] = after
        try:
            self._check(after)  # first: it may be a part of itself
            for each in self._users(after):
                self._check(each)
        except SpecError:
            self._found[kind, name] = before
            raise
        return True

    def _tools(self, before: Definition, changes: Mapping[str, Any]) -> dict[str, Any]:
        tools = list(before.clauses.get("tools", ()))
        added, removed = changes.get("add_tool"), changes.get("remove_tool")
        if added is not None:
            if added in tools:
                raise SpecError(f"{before.title} has tool {added!r} already.", where="tools")
            tools.append(added)
        if removed is not None:
            if removed not in tools:
                raise SpecError(f"{before.title} has no tool {removed!r}; {near(removed, tools)}.", where="tools")
            tools.remove(removed)
        return {} if added is None and removed is None else {"tools": tuple(tools)}

    def drop(self, kind: Kind, name: str, *, if_exists: bool = False) -> bool:
        """Remove a definition that nothing uses.

        Returns:
            Whether there was one.

        Raises:
            SpecError: There is none, or something uses it.
        """
        if if_exists and (kind, name) not in self._found:
            return False
        found = self._definition(kind, name)
        users = sorted(each.title for each in self._users(found, directly=True))
        if users:
            raise SpecError(f"{found.title} is used by {', '.join(users)}; drop that first.")
        del self._found[kind, name]
        return True

    def names(self, kind: Kind) -> list[str]:
        """What is defined of *kind*, sorted."""
        return sorted(name for each, name in self._found if each == kind)

    def shown(self, kind: Kind, name: str) -> Definition:
        """A definition as it may be shown: its secrets are masked.

        Raises:
            SpecError: There is none.
        """
        found = self._definition(kind, name)
        hidden = {key: MASK for key, value in found.options.items() if value.startswith(f"${{{VAULT}")}
        return replace(found, options={**found.options, **hidden})

    def describe(self, kind: Kind, name: str) -> list[tuple[str, str]]:
        """Property and value, secrets masked; of an agent also the settings that hold where none is written."""
        found = self.shown(kind, name)
        rows = [("name", found.name)]
        rows += [(key, _shown(value)) for key, value in found.clauses.items() if value]
        rows += list(found.options.items())
        if kind == "agent":
            rows += [(key, value) for key, value in _settings(self.agent(name)) if key not in found.options]
        return [*rows, ("comment", found.comment)] if found.comment else rows

    def agent(self, name: str) -> AnyAgentSpec:
        """The spec of an agent as it is defined now; later changes do not reach into it.

        Raises:
            SpecError: There is none.
        """
        return cast(AnyAgentSpec, self.find("agent", name))

    def main_agent(self) -> AnyAgentSpec:
        """The one agent that is no part of another.

        Raises:
            SpecError: There is none, or more than one.
        """
        parts = {name for each in self._found.values() for kind, name in each.uses() if kind == "agent"}
        tops = [name for name in self.names("agent") if name not in parts]
        if len(tops) != 1:
            raise SpecError(f"Which agent is meant? {near('', tops) if tops else 'None is defined'}.")
        return self.agent(tops[0])

    def find(self, kind: str, name: str) -> Any:
        """The spec of a connection, model, tool or agent; of a function its reference.

        Raises:
            SpecError: There is none.
        """
        if kind == "function":
            return self._function(name)
        return self._make(self._definition(cast(Kind, kind), name))

    def _make(self, given: Definition) -> Any:
        if given.kind == "connection":
            return make_connection(given)
        return {"model": make_model, "tool": make_tool, "agent": make_agent}[given.kind](given, self.find)

    def _function(self, name: str) -> str:
        found = self._found.get(("function", name))
        if found is not None:
            return cast(str, found.clauses["reference"])
        if name in self._functions:
            return name
        known = {*self.names("function"), *self._functions}
        raise SpecError(
            f"There is no function {name!r}; {near(name, known)}. Define it: CREATE FUNCTION {name} AS "
            "'module:attribute' LANGUAGE PYTHON.",
            where="function",
        )

    def _definition(self, kind: Kind, name: str) -> Definition:
        found = self._found.get((kind, name))
        if found is None:
            where = {"tool": f"tools {name}", "agent": f"agents {name}"}.get(kind, kind)
            raise SpecError(f"There is no {kind} {name!r}; {near(name, self.names(kind))}.", where=where)
        return found

    def _users(self, found: Definition, *, directly: bool = False) -> list[Definition]:
        """What uses *found*, and what uses that."""
        users = [each for each in self._found.values() if (found.kind, found.name) in each.uses()]
        return users if directly else users + [further for each in users for further in self._users(each)]

    def _check(self, given: Definition) -> None:
        if given.kind == "function":
            if ":" not in given.clauses.get("reference", ""):
                raise SpecError(f"{given.title}: name the Python function as 'module:attribute'.", where="reference")
            return
        if any(given.name in self._reach(name) for kind, name in given.uses() if kind == given.kind):
            raise SpecError(f"{given.title} would be a part of itself.", where="agents")
        spec = self._make(given)
        for key, value in given.options.items():
            if key in ("endpoint", "api-key"):
                resolve(value, self.secrets, self.environment, f"{given.title}: {key}", key)
        if isinstance(spec, ReflectionSpec) and spec.drafter == spec.critic:
            self.warnings.append(
                f"{given.title}: drafter and critic are the same; an agent overlooks its own mistakes."
            )

    def _reach(self, name: str) -> set[str]:
        """*name* and every agent that is a part of it."""
        reached, waiting = {name}, [name]
        while waiting:
            found = self._found.get(("agent", waiting.pop()))
            parts = set(() if found is None else found.clauses.get("agents", ())) - reached
            reached |= parts
            waiting += parts
        return reached

    def _overridden(self, given: Definition) -> Definition:
        changes = {}
        for key, value in self._overrides.items():
            name, _, option = key.rpartition(".")
            every = name == "*" and given.kind == "connection" and given.options.get("type", "").lower() != "mcp_server"
            if every or (name == given.name and given.kind in ("connection", "model")):
                changes[option.lower()] = value
        return replace(given, options={**given.options, **changes}) if changes else given

    def _without_secrets(self, given: Definition) -> Definition:
        kept = dict(given.options)
        for key, value in given.options.items():
            if key in SENSITIVE and not is_reference(value):
                self.secrets[_vault(given, key)] = value
                kept[key] = f"${{{_vault(given, key)}}}"
        return replace(given, options=kept)


VAULT = "="
"""How the names of secrets that were written out begin.  No environment variable is called so."""


def _vault(given: Definition, key: str) -> str:
    return f"{VAULT}{given.kind}/{given.name.replace('{', '(').replace('}', ')')}/{key}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return ", ".join(each if isinstance(each, str) else " ".join(each) for each in value)


def _settings(spec: AnyAgentSpec) -> list[tuple[str, str]]:
    """The settings that hold where none is written."""
    names = ["max_iterations", "request_timeout", "on_exhausted", "handle_exception"]
    names += (
        ["pass_condition", "confidence_value"] if isinstance(spec, ReflectionSpec) else ["max_consecutive_failures"]
    )
    rows = [("type", "reflection" if isinstance(spec, ReflectionSpec) else "standard")]
    return rows + [(name, str(getattr(spec, name))) for name in names if getattr(spec, name) is not None]


def known_kind(word: str) -> Kind | None:
    """The kind that *word* names, singular or plural, whatever its case; None for another word."""
    singular = word.lower().removesuffix("s")
    return next((kind for kind in KINDS if kind == singular), None)
