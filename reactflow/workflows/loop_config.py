"""The limits of a critic-refiner run, and what it comes back with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reactflow.budget import Budget
from reactflow.errors import ConfigurationError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.result import StopReason
from reactflow.workflows.attempt import WorkflowResult
from reactflow.workflows.edits import Edit, RefusedEdit
from reactflow.workflows.workflow import checked_iterations


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """The limits of one run, and which issues are worth a revision.

    Args:
        max_iterations: Critiques at most, each with a revision where it finds something, >= 1.
        max_total_tokens: Tokens read and written by all roles, > 0; None for no limit.
        timeout_seconds: Wall-clock seconds, > 0; None for no limit.
        severity_threshold: Issues from this severity on are mended, 1 (trivial) to 5 (critical).

    Raises:
        ConfigurationError: A value is out of its bounds.
    """

    max_iterations: int = 2
    max_total_tokens: int | None = 50_000
    timeout_seconds: float | None = 30.0
    severity_threshold: int = 3

    def __post_init__(self) -> None:
        checked_iterations(self.max_iterations)
        threshold = self.severity_threshold
        if isinstance(threshold, bool) or not isinstance(threshold, int) or not 1 <= threshold <= 5:
            raise ConfigurationError(f"severity_threshold={threshold!r}: give a whole number from 1 to 5.")
        self.budget()

    def budget(self) -> Budget:
        """The limits as a budget."""
        return Budget(max_tokens=self.max_total_tokens, max_seconds=self.timeout_seconds)


_LABELS = {
    StopReason.NO_ISSUES: "no_issues",
    StopReason.BELOW_THRESHOLD: "no_issues",
    StopReason.MAX_ITERATIONS: "max_iterations",
    StopReason.TIME_BUDGET: "timeout",
    StopReason.TOKEN_BUDGET: "budget",
    StopReason.COST_BUDGET: "budget",
    StopReason.CALL_BUDGET: "budget",
    StopReason.NO_PROGRESS: "no_progress",
    StopReason.OSCILLATION: "no_progress",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult(WorkflowResult):
    """What one run gives back: a workflow's result, and what is worth charting.

    Args:
        overall_score: The critic's score for the returned text, 0 to 100; None where nobody scored it.
        severity_histogram: How many issues of each severity, 1 to 5, all critiques found together.
        category_histogram: The same by category, as the critic named it.
        edits: The edits that were made, oldest first.
        refused_edits: Edits, and issues, that could not be acted upon, and why.
        changed_outside: The largest share of text outside flagged spans that one revision changed, 0.0 to 1.0;
            always 0.0 in the mode ``"edits"``.
    """

    overall_score: float | None = None
    severity_histogram: Mapping[int, int] = field(default_factory=lambda: FrozenDict(dict.fromkeys(range(1, 6), 0)))
    category_histogram: Mapping[str, int] = field(default=EMPTY)
    edits: tuple[Edit, ...] = ()
    refused_edits: tuple[RefusedEdit, ...] = ()
    changed_outside: float = 0.0

    @property
    def final_text(self) -> str:
        """The text; the same as ``text``."""
        return self.text

    @property
    def stopped_reason(self) -> str:
        """One label for charts: ``no_issues``, ``max_iterations``, ``budget``, ``timeout`` or ``no_progress``.

        The exact ``stop_reason`` stands where none of these fits (``judge_error``, ``revision_error``, ...).
        """
        return _LABELS.get(self.stop_reason, self.stop_reason.value)

    @property
    def total_input_tokens(self) -> int:
        """Tokens read by all roles."""
        return self.usage.input_tokens

    @property
    def total_output_tokens(self) -> int:
        """Tokens written by all roles."""
        return self.usage.output_tokens
