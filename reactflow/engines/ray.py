"""Ray Data: the rows of a dataset through an agent, in as many processes as the cluster has room for.

    work = Work(agent=spec)
    dataset = answer(ray.data.read_json("claims/"), work, asking=Asking("Claim: {description}"), workers=4)
    dataset.write_json("intake/")

Each row gets the columns ``status``, ``response`` and ``metadata``, as in the output of ``reactflow batch``.
"""

from __future__ import annotations

import asyncio
from typing import Any

from reactflow.batch.columns import RESULT, output_names
from reactflow.batch.rows import Asking, Record, Row, as_json
from reactflow.engines.worker import Work, Worker
from reactflow.errors import ConfigurationError
from reactflow.frozen import FrozenDict
from reactflow.messages import readable
from reactflow.specs.outcome import Outcome, Status

BATCHES_AT_ONCE = 4
"""How many batches Ray Data gives to one worker at the same time."""


def ray_data() -> Any:
    """The module ray.data.

    Raises:
        ConfigurationError: The extra is missing.
    """
    try:
        import ray.data
    except ImportError as error:
        raise ConfigurationError("Ray needs the extra 'ray': pip install 'reactflow[ray]'.") from error
    return ray.data


def answer(dataset: Any, work: Work, *, asking: Asking | None = None, workers: int = 1, cpus: float = 1.0) -> Any:
    """Put each row of *dataset* to the agent.

    Args:
        dataset: A ``ray.data.Dataset``.
        work: The agent and its policies; ``concurrency`` is that of one worker.
        asking: What of a row is asked, and the column that names it: ``prompt`` and ``id`` by default.
        workers: Processes, >= 1.
        cpus: Processors that each of them reserves, > 0.  Leave some over: reading and writing take one at least,
            and :func:`resume_in` takes one more, without which the job would wait for ever.

    Returns:
        The dataset with ``status``, ``response`` and ``metadata``, the last one as JSON; input columns of these names
        become ``input_...``.  It is lazy, as Ray's are.

    Raises:
        ConfigurationError: The extra is missing, or a number cannot be.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1 or not cpus > 0:
        raise ConfigurationError(
            f"workers={workers!r}, cpus={cpus!r}: give a whole number from 1, and a number over 0."
        )
    given = asking or Asking()
    return dataset.map_batches(
        AgentActor,
        fn_constructor_args=(work, Asking(given.prompt, given.key or "id")),  # a row has no number here
        compute=ray_data().ActorPoolStrategy(size=workers),
        batch_size=max(1, 2 * work.concurrency // BATCHES_AT_ONCE),  # so that one slow row does not leave slots empty
        batch_format="pyarrow",
        num_cpus=cpus,
    )


def resume_in(folder: str, key: str = "id") -> None:
    """Let the datasets of this process note finished rows in *folder*, and leave them out when they run again.

    A row is finished when it has been written, so what a filter takes out is asked again; give the answers a
    ``cache``, or keep such rows in the output.  The notes are deleted when a run has ended well.

    Args:
        folder: On a disk, or in a store such as ``s3://``, that every node sees.
        key: The column that names a row; each value once.

    Raises:
        ConfigurationError: The extra is missing.
    """
    ray_data()
    from ray.data.checkpoint import CheckpointConfig

    ray_data().DataContext.get_current().checkpoint_config = CheckpointConfig(id_column=key, checkpoint_path=folder)


class AgentActor:
    """What runs in a worker; Ray makes it there, once, and calls it with one batch after the other.

    Args:
        work: The agent and its policies.
        asking: What of a row is asked; its key names a column.
    """

    def __init__(self, work: Work, asking: Asking) -> None:
        self._worker: Worker = work.open()
        self._asking = asking

    async def __call__(self, batch: Any) -> Any:
        """Yield *batch*, an Arrow table, with the answers."""
        records = [Record(number, data) for number, data in enumerate(batch.to_pylist(), 1)]
        if records:
            self._asking.check(records[0])
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._answer(self._asking.read(record))) for record in records]
        yield _with_answers(batch, [task.result() for task in tasks])

    async def _answer(self, row: Row) -> Outcome | None:
        if row.flaw is not None:
            facts = FrozenDict(error=row.flaw, error_type="BadRow", model_calls=0)
            return self._worker.settle(Outcome(Status.FAILED, None, facts), row.key)
        return await self._worker.answer(row.prompt, row.key)


def _with_answers(batch: Any, outcomes: list[Outcome | None]) -> Any:
    """*batch* without the rows that are left out, and with three columns more."""
    import pyarrow

    kept = [at for at, outcome in enumerate(outcomes) if outcome is not None]
    names = output_names(batch.column_names)
    table = batch.take(pyarrow.array(kept, pyarrow.int64())).rename_columns(
        [names[each] for each in batch.column_names]
    )
    answers = [_columns(outcome) for outcome in outcomes if outcome is not None]
    for at, name in enumerate(RESULT):
        table = table.append_column(name, pyarrow.array([answer[at] for answer in answers], pyarrow.string()))
    return table


def _columns(outcome: Outcome) -> tuple[str, str | None, str | None]:
    facts = {key: value for key, value in outcome.metadata.items() if key != "transient"}
    return outcome.status.value, outcome.response and readable(outcome.response), as_json(facts)
