"""What the commands for many rows share: their options, and the settings they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any

from reactflow.batch.calls import Spending
from reactflow.batch.job import JobSettings
from reactflow.batch.journal import Journal
from reactflow.batch.limits import Limits
from reactflow.budget import Price
from reactflow.cli.loading import load
from reactflow.cli.options import LIMITS, OUTPUT, option
from reactflow.errors import ConfigurationError
from reactflow.specs.building import Workshop

DEFINITIONS, ROWS = "Definitions", "Rows"


class OnExhausted(StrEnum):
    """What becomes of a row that reached a limit."""

    RETURN = "return"
    DROP = "drop"
    FAIL = "fail"


class HandleException(StrEnum):
    """What a failing row does to the job."""

    CONTINUE = "continue"
    FAIL = "fail"


Concurrency = Annotated[int, option("--concurrency", "-j", metavar="N", help="Rows under way at a time.", panel=ROWS)]
OnExhaustedOption = Annotated[
    OnExhausted | None,
    option("--on-exhausted", help="A row at its limit: return its last draft, drop it, or fail it.", panel=ROWS),
]
HandleExceptionOption = Annotated[
    HandleException | None,
    option("--handle-exception", help="A failing row: continue with the others, or fail the job.", panel=ROWS),
]
RequestsPerMinute = Annotated[
    float | None, option("--requests-per-minute", metavar="N", help="Model calls a minute.", panel=LIMITS)
]
TokensPerMinute = Annotated[
    float | None, option("--tokens-per-minute", metavar="N", help="Tokens a minute, read and written.", panel=LIMITS)
]
BudgetUsd = Annotated[
    float | None,
    option("--budget-usd", metavar="USD", help="Begin no new row once so much is spent; needs --price.", panel=LIMITS),
]
Prices = Annotated[
    list[str] | None,
    option(
        "--price",
        metavar="MODEL=IN/OUT",
        help="Dollars for a million tokens read and written; 'gpt-4o=2.5/10', '*=1/2/0.1' with cached ones.",
        panel=LIMITS,
    ),
]
Functions = Annotated[
    list[str] | None,
    option("--function", metavar="NAME=MODULE:ATTR", help="A function that tools may use.", panel=DEFINITIONS),
]
Endpoint = Annotated[
    str | None,
    option("--endpoint", metavar="URL", help="The server, instead of those of the connections.", panel=DEFINITIONS),
]
Overrides = Annotated[
    list[str] | None,
    option(
        "--set",
        metavar="NAME.OPTION=VALUE",
        help="An option of a connection or a model, instead of the one that is written: 'house.api-key=${KEY}'.",
        panel=DEFINITIONS,
    ),
]
JobJson = Annotated[bool, option("--json", help="What the job came to, as JSON.", panel=OUTPUT)]
JobQuiet = Annotated[bool, option("--quiet", "-q", help="No progress.", panel=OUTPUT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What was typed."""

    concurrency: int = 100
    on_exhausted: OnExhausted | None = None
    handle_exception: HandleException | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    budget_usd: float | None = None
    price: list[str] | None = None
    function: list[str] | None = None
    endpoint: str | None = None
    set: list[str] | None = field(default=None, repr=False)  # may hold a key

    @property
    def prices(self) -> dict[str, Price]:
        """By model name.

        Raises:
            ConfigurationError: One is not of the form that is asked for.
        """
        return {name: _price(name, value) for name, value in pairs("--price", self.price, "gpt-4o=2.5/10")}

    @property
    def overrides(self) -> dict[str, str]:
        """By ``"name.option"``; the endpoint is that of every model server."""
        given = dict(pairs("--set", self.set, "house.endpoint=http://127.0.0.1:8000/v1"))
        return {**({"*.endpoint": self.endpoint} if self.endpoint else {}), **given}

    def functions(self) -> dict[str, Any]:
        """By the name that tools use."""
        given = pairs("--function", self.function, "lookup=claims:lookup")
        return {name: load("--function", place) for name, place in given}

    def workshop(self, **more: Any) -> Workshop:
        """What agents are built with."""
        return Workshop(prices=self.prices, functions=self.functions(), **more)

    def job(self, journal: Journal | None, **more: Any) -> JobSettings:
        """How rows are run."""
        return JobSettings(
            concurrency=self.concurrency,
            on_exhausted=self.on_exhausted.value if self.on_exhausted else None,
            handle_exception=self.handle_exception.value if self.handle_exception else None,
            max_cost_usd=self.budget_usd,
            limits=Limits(self.requests_per_minute, self.tokens_per_minute),
            spending=Spending(self.prices),
            journal=journal,
            **more,
        )


def options_of(given: Mapping[str, Any]) -> JobOptions:
    """The options among a command's parameters."""
    return JobOptions(**{name: given[name] for name in JobOptions.__dataclass_fields__ if name in given})


def pairs(name: str, given: Iterable[str] | None, example: str) -> list[tuple[str, str]]:
    """``key=value`` each.

    Raises:
        ConfigurationError: One has no ``=``, or nothing on one side of it.
    """
    found = []
    for each in given or ():
        key, equals, value = each.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise ConfigurationError(f"{name} {each!r}: write it like {example!r}.")
        found.append((key.strip(), value.strip()))
    return found


def _price(name: str, value: str) -> Price:
    try:
        numbers = [float(part) for part in value.split("/")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(isfinite(each) and each >= 0 for each in numbers):
        raise ConfigurationError(f"--price {name}={value}: write dollars for a million tokens, such as {name}=2.5/10.")
    return Price(input=numbers[0], output=numbers[1], cached=numbers[2] if len(numbers) > 2 else None)


def open_journal(place: str | None, default: str | None) -> Journal | None:
    """The journal at *place*; none for ``none``.

    Raises:
        StoreError: The file cannot be used.
    """
    path = place or default
    return None if path is None or path == "none" else Journal(path)
