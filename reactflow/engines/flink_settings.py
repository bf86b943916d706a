"""How scripts run on Flink."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reactflow.engines.worker import Work
from reactflow.errors import ConfigurationError
from reactflow.frozen import EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkSettings:
    """How scripts run on Flink.

    Args:
        work: Policies of every agent; its own agent is left aside.
        tables: Files to read tables from, by the table's name.
        outputs: Files to write tables to when a script has run, by the table's name.
        overrides: Options that win over those of CREATE CONNECTION, as in the engine of this process.
        folder: What relative paths in the script start from.
        max_cost_usd: Dollars that a run of a script may cost, all workers together, > 0; the work needs prices then.
        parallelism: Subtasks of each operator, >= 1.
        checkpoints: Where jobs keep what they need to go on; on a disk that every node sees.  None for nowhere.
        checkpoint_interval_s: Seconds between checkpoints, > 0.  A job also waits so long at its end.
        restarts: How often a job that fails begins again from its last checkpoint by itself, >= 0.
        restart_delay_s: Seconds before it does.
        bundle_rows: Rows that a worker takes before it waits for all of them, >= 1; a checkpoint waits for so many.
            Twice the rows in flight by default.
        options: Any of Flink's own options; they win.
    """

    work: Work = field(default_factory=Work)
    tables: Mapping[str, Path] = field(default=EMPTY)
    outputs: Mapping[str, Path] = field(default=EMPTY)
    overrides: Mapping[str, str] = field(default=EMPTY)
    folder: Path = field(default_factory=Path)
    max_cost_usd: float | None = None
    parallelism: int = 1
    checkpoints: Path | None = None
    checkpoint_interval_s: float = 5.0
    restarts: int = 3
    restart_delay_s: float = 10.0
    bundle_rows: int | None = None
    options: Mapping[str, str] = field(default=EMPTY)

    def __post_init__(self) -> None:
        bundle = 1 if self.bundle_rows is None else self.bundle_rows
        if self.parallelism < 1 or bundle < 1 or self.restarts < 0 or not self.checkpoint_interval_s > 0:
            raise ConfigurationError(
                f"parallelism={self.parallelism}, bundle_rows={self.bundle_rows}, restarts={self.restarts}, "
                f"checkpoint_interval_s={self.checkpoint_interval_s}: give numbers from 1, from 1, from 0, above 0."
            )

    def flink_options(self) -> dict[str, str]:
        """All of that as Flink's options."""
        restart = {"restart-strategy.type": "none"}
        if self.restarts:
            restart = {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": str(self.restarts),
                "restart-strategy.fixed-delay.delay": f"{round(self.restart_delay_s * 1000)} ms",
            }
        return {
            "parallelism.default": str(self.parallelism),
            "python.executable": sys.executable,
            "python.client.executable": sys.executable,
            "python.fn-execution.bundle.size": str(self.bundle_rows or 2 * self.work.concurrency),
            "execution.checkpointing.interval": f"{round(self.checkpoint_interval_s * 1000)} ms",
            "execution.checkpointing.timeout": "1 h",  # it waits for the rows in flight
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            **restart,
            **self.options,
        }
