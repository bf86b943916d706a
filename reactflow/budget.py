"""Limits of a run, and the meter that counts toward them.

The meter is shared by everything one run does: the agent, its judges, and sub-agents used as tools or roles, whose
own meters report to it.  It refuses new work once a limit is reached and cuts running work at the deadline.
Cuts belong at the leaves (a model call, a tool batch, an evaluator), never around code that recovers: of two nested
time-outs with one deadline the outer one would win, and the inner run's draft would be lost.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from math import isfinite, ldexp
from typing import TypeVar

from reactflow.errors import BudgetExceeded, ConfigurationError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.messages import NO_USAGE, Usage
from reactflow.result import StopReason

T = TypeVar("T")

RECOVERY_S = 0.1
"""How much longer than the deadline a leaf may take that can hold a run of its own; halved at each level down, so
that of two nested cuts the inner one comes first and its run can hand over what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens of one model.

    Args:
        input: A million tokens read, >= 0.
        output: A million tokens written, >= 0.
        cached: A million tokens read from a prompt cache; *input* where it is None.
    """

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            if value is None and name == "cached":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0 or not isfinite(value):
                raise ConfigurationError(f"Price({name}={value!r}): give US dollars for a million tokens, >= 0.")

    def of(self, usage: Usage) -> float:
        """What *usage* costs in US dollars."""
        cached = self.input if self.cached is None else self.cached
        fresh_tokens = usage.input_tokens - usage.cached_tokens
        return (fresh_tokens * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one run may use, all its roles together.  None means no limit.

    A limit that is reached stops new calls; only *max_seconds* also cuts a running one.  So tokens and money can
    pass their limit by what the calls already under way use.

    Args:
        max_tokens: Tokens read and written, > 0.  A call whose server reports nothing counts by an estimate.
        max_seconds: Wall-clock seconds from the start of the run, > 0.
        max_cost_usd: US dollars, > 0; needs *prices*.
        max_model_calls: Calls of any model, > 0.
        prices: A :class:`Price` by model name; ``"*"`` stands for every model not named.

    Raises:
        ConfigurationError: A limit is not a positive number, or *max_cost_usd* comes without *prices*.
    """

    max_tokens: int | None = None
    max_seconds: float | None = None
    max_cost_usd: float | None = None
    max_model_calls: int | None = None
    prices: Mapping[str, Price] = field(default=EMPTY)

    def __post_init__(self) -> None:
        for name, whole in (
            ("max_tokens", True),
            ("max_seconds", False),
            ("max_cost_usd", False),
            ("max_model_calls", True),
        ):
            value = getattr(self, name)
            number = int if whole else (int, float)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, number) or not value > 0 or not isfinite(value)
            ):
                kind = "a whole number" if whole else "a finite number"
                raise ConfigurationError(f"Budget({name}={value!r}): give {kind} above 0, or None for no limit.")
        if self.max_cost_usd is not None and not self.prices:
            raise ConfigurationError(
                "Budget(max_cost_usd=...) needs prices={'model-name': Price(input=..., output=...)}; "
                "'*' stands for any model."
            )
        if not isinstance(self.prices, Mapping) or not all(isinstance(each, Price) for each in self.prices.values()):
            raise ConfigurationError(
                f"Budget(prices={self.prices!r:.80}): give {{'model-name': Price(input=..., output=...)}}."
            )
        object.__setattr__(self, "prices", FrozenDict(self.prices))

    def price(self, model: str) -> Price | None:
        """The price of *model*, or None where this budget names none."""
        return self.prices.get(model) or self.prices.get("*")


NO_BUDGET = Budget()


class Meter:
    """Counts what one run uses and says when a limit is reached.  Safe to use from several threads.

    Args:
        budget: The limits.
        parent: The meter of the run this run is a part of; it counts everything too, and its limits hold here.
        role: Under which role the parent counts what this run uses.
    """

    def __init__(self, budget: Budget = NO_BUDGET, *, parent: Meter | None = None, role: str = "agent") -> None:
        self.budget = budget
        self.parent = parent
        self.role = role
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.started = time.monotonic()
        self.usage_by_role: dict[str, Usage] = {}
        self.usage = NO_USAGE
        self.estimated_tokens = 0
        self.cost_usd = 0.0
        self.calls = 0
        own = None if budget.max_seconds is None else self.started + budget.max_seconds
        above = None if parent is None else parent.deadline
        self.deadline: float | None = min((at for at in (own, above) if at is not None), default=None)
        self._timekeeper: Meter = parent._timekeeper if parent is not None and own != self.deadline else self
        self._lock = threading.Lock()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    @property
    def tokens(self) -> int:
        """Tokens so far, with the estimate for calls that reported nothing."""
        return self.usage.total_tokens + self.estimated_tokens

    @property
    def needs_estimate(self) -> bool:
        """Whether a limit depends on tokens, so that a call that reports none must be guessed."""
        limited = self.budget.max_tokens is not None or self.budget.max_cost_usd is not None
        return limited or (self.parent is not None and self.parent.needs_estimate)

    def begin_call(self, model: str) -> None:
        """Count a call of *model* that is about to start, or refuse it where a limit is reached, here or further out.

        Raises:
            BudgetExceeded: Which limit, and how much was used.
            ConfigurationError: A cost limit is set and nothing says what *model* costs.
        """
        with self._lock:  # of two threads only one may take the last call
            self._check(model)
            self.calls += 1
        if self.parent is not None:
            self.parent.begin_call(model)

    def _check(self, model: str) -> None:
        budget = self.budget
        if budget.max_cost_usd is not None and budget.price(model) is None:
            raise ConfigurationError(
                f"Budget(max_cost_usd=...) has no price for model {model!r}; "
                f"add prices={{{model!r}: Price(input=..., output=...)}}."
            )
        if budget.max_tokens is not None and self.tokens >= budget.max_tokens:
            raise self._exceeded(StopReason.TOKEN_BUDGET, f"{self.tokens} of {budget.max_tokens} tokens are used")
        if budget.max_cost_usd is not None and self.cost_usd >= budget.max_cost_usd:
            raise self._exceeded(
                StopReason.COST_BUDGET, f"{self.cost_usd:.4f} of {budget.max_cost_usd} dollars are spent"
            )
        if budget.max_model_calls is not None and self.calls >= budget.max_model_calls:
            raise self._exceeded(StopReason.CALL_BUDGET, f"all {budget.max_model_calls} model calls are made")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise self._out_of_time()

    def raised(self, error: BudgetExceeded) -> bool:
        """Whether *error* tells of a limit of this run or of one that it is a part of, not of one inside it."""
        meter: Meter | None = self
        while meter is not None and meter is not error.meter:
            meter = meter.parent
        return meter is not None

    def record(self, usage: Usage, *, role: str, model: str, estimate: Usage = NO_USAGE) -> None:
        """Count what a finished call used.

        Args:
            usage: As the server reported it.
            role: Who asked.
            model: The model's name, for its price.
            estimate: Tokens to assume where the server reported nothing.
        """
        price = self.budget.price(model)
        with self._lock:
            known = self.usage_by_role.get(role)
            self.usage_by_role[role] = usage if known is None else known + usage
            self.usage += usage
            self.estimated_tokens += estimate.total_tokens
            if price is not None:
                self.cost_usd += price.of(usage) + price.of(estimate)
        if self.parent is not None:
            self.parent.record(usage, role=self.role, model=model, estimate=estimate)

    async def cut(self, work: Awaitable[T], *, recovers: bool = False) -> T:
        """Await *work*, and cancel it at the deadline.

        Args:
            work: One leaf: a model call, a tool batch, an evaluator, an advisor's own waiting.
            recovers: The work may hold a run of its own that ends at the same deadline and hands over its best
                answer; give it up to :data:`RECOVERY_S` to do so.

        Raises:
            BudgetExceeded: The deadline came first.
        """
        if self.deadline is None:
            return await work
        grace = ldexp(RECOVERY_S, -self.depth) if recovers else 0.0  # a half at each depth, however deep
        try:
            async with asyncio.timeout(max(0.0, self.deadline + grace - time.monotonic())) as scope:
                return await work
        except TimeoutError:
            if scope.expired():
                raise self._out_of_time() from None
            raise

    def _out_of_time(self) -> BudgetExceeded:
        keeper = self._timekeeper
        return keeper._exceeded(StopReason.TIME_BUDGET, f"the time is up after {keeper.elapsed_s:.2f} s")

    def _exceeded(self, reason: StopReason, facts: str) -> BudgetExceeded:
        error = BudgetExceeded(
            f"The budget is used up before there was an answer: {facts}. Raise it in Budget(...).", reason=reason
        )
        error.meter = self
        return error
