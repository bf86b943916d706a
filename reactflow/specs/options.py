"""Options as SQL writes them: text keys and text values, both whatever their case."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from math import isfinite
from typing import Any

from reactflow.errors import SpecError, near

SENSITIVE = frozenset(
    {"api-key", "api_key", "apikey", "token", "password", "secret", "client-secret", "auth-token", "bearer-token"}
)
"""Options whose value is a secret: never shown, and never part of a spec."""

REFERENCE = re.compile(r"\$\{([^{}]+)\}")
"""``${NAME}``: an environment variable, or a secret that the catalogue keeps."""

MASK = "******"


def read_options(given: Mapping[str, Any], what: str) -> dict[str, str]:
    """*given* with its keys in lower case and its values as text.

    Raises:
        SpecError: A key occurs twice, or a value is no plain value.
    """
    found: dict[str, str] = {}
    for key, value in given.items():
        name = str(key).strip().lower()
        if name in found:
            raise SpecError(f"{what}: option {name!r} is given twice; keep one of them.", where=f"key {name}")
        if isinstance(value, bool):
            value = str(value).lower()
        if not isinstance(value, (str, int, float)):
            raise SpecError(f"{what}: option {name!r} must be a text or a number.", where=name)
        found[name] = str(value)
    return found


def check_known(options: Iterable[str], known: Collection[str], what: str) -> None:
    """Raise SpecError for an option that nobody reads: most often a misspelt one, and it may hold a secret."""
    for name in options:
        if name not in known:
            raise SpecError(f"{what} has no option {name!r}: {near(name, known)}.", where=f"key {name}")


def whole(options: Mapping[str, str], name: str, default: int, what: str) -> int:
    """A whole number from 1."""
    text = options.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[+]?[0-9]{1,9}", text.strip()) or int(text) < 1:
        raise SpecError(f"{what}: {name} = {text!r}; give a whole number from 1, such as '{default}'.", where=name)
    return int(text)


def number(options: Mapping[str, str], name: str, what: str) -> float | None:
    """A finite number, or None where there is none."""
    text = options.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise SpecError(f"{what}: {name} = {text!r} is no number.", where=name)
    return value


def seconds(options: Mapping[str, str], name: str, what: str) -> float | None:
    """A number of seconds above 0, or None."""
    value = number(options, name, what)
    if value is not None and value <= 0:
        raise SpecError(f"{what}: {name} = {options[name]!r}; give seconds above 0.", where=name)
    return value


def choice(options: Mapping[str, str], name: str, default: str, known: Collection[str], what: str) -> str:
    """One of *known*, whatever its case."""
    value = options.get(name, default).strip().lower()
    if value not in known:
        listed = " or ".join(repr(each) for each in known)
        raise SpecError(f"{what}: {name} = {options[name]!r}; give {listed}.", where=name)
    return value


def flag(options: Mapping[str, str], name: str, what: str) -> bool:
    """``true`` or ``false``; false where it is left out."""
    return choice(options, name, "false", ("true", "false"), what) == "true"


def is_reference(value: str) -> bool:
    """Whether *value* is nothing but ``${NAME}``."""
    return REFERENCE.fullmatch(value.strip()) is not None


def resolve(
    text: str, secrets: Mapping[str, str], environment: Mapping[str, str], what: str, where: str = "name"
) -> str:
    """*text* with each ``${NAME}`` replaced by the secret or the environment variable of that name.

    Raises:
        SpecError: There is none.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        if name in secrets:
            return secrets[name]
        if name not in environment:
            words = f"{what} needs the environment variable {name}, which is not set: export {name}=..."
            raise SpecError(words, where=where)
        return environment[name]

    return REFERENCE.sub(value_of, text)
