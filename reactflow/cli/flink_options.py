"""The options of ``reactflow sql --engine flink``, and the settings they make."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from reactflow.cli import job_options as options
from reactflow.cli.options import option
from reactflow.engines.flink_settings import FlinkSettings
from reactflow.engines.worker import Work
from reactflow.errors import ConfigurationError

FLINK = "Flink"

Parallelism = Annotated[
    int, option("--parallelism", metavar="N", help="Subtasks of each operator; each has --concurrency.", panel=FLINK)
]
Checkpoints = Annotated[
    str | None,
    option(
        "--checkpoints",
        metavar="FOLDER",
        help="Keep there what the same command needs to go on after it was stopped.",
        panel=FLINK,
    ),
]
FlinkOptions = Annotated[
    list[str] | None,
    option("--flink", metavar="KEY=VALUE", help="An option of Flink itself; may be given again.", panel=FLINK),
]


def read(
    given: Mapping[str, Any], tables: Mapping[str, Path], outputs: Mapping[str, Path], folder: Path = Path()
) -> FlinkSettings:
    """The settings for what was typed; relative paths in the script start from *folder*.

    Raises:
        ConfigurationError: An option does not go with Flink, or has a value that cannot be.
    """
    if given["database"] != ":memory:":
        raise ConfigurationError("--database is of the engine of this process, not of Flink.")
    job = options.options_of(given)
    job.job(None)  # refuses what cannot be, before Flink is started
    work = Work(
        functions=job.functions(),
        concurrency=job.concurrency,
        on_exhausted=job.on_exhausted.value if job.on_exhausted else None,
        handle_exception=job.handle_exception.value if job.handle_exception else None,
        cache=None if given["cache"] in (None, "none") else str(Path(given["cache"]).resolve()),
        requests_per_minute=job.requests_per_minute,
        tokens_per_minute=job.tokens_per_minute,
        prices=job.prices,
        debug=given["debug"],
    )
    return FlinkSettings(
        work=work,
        tables=tables,
        outputs=outputs,
        overrides=job.overrides,
        folder=folder,
        max_cost_usd=job.budget_usd,
        parallelism=given["parallelism"],
        checkpoints=None if given["checkpoints"] is None else Path(given["checkpoints"]),
        options=dict(options.pairs("--flink", given["flink"], "jobmanager.rpc.address=flink")),
    )


def refuse(given: Mapping[str, Any]) -> None:
    """Raise ConfigurationError where an option of Flink was given without it."""
    if given["checkpoints"] is not None or given["flink"] or given["parallelism"] != 1:
        raise ConfigurationError("--parallelism, --checkpoints and --flink need --engine flink.")


def session(settings: FlinkSettings) -> Any:
    """A FlinkSession; its module is loaded here, because it needs PyFlink and Java.

    Raises:
        ConfigurationError: The extra is missing.
    """
    return importlib.import_module("reactflow.engines.flink_session").FlinkSession(settings)
