"""Agents as functions of Flink: for SQL in a TableEnvironment, and as an operator on a DataStream.

This module needs the extra ``flink``: PyFlink 2.3 and Java 17.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Final

from reactflow.engines.flink_sql import back_quoted, check_of, log_folder, translate
from reactflow.engines.shared import LogPlace
from reactflow.engines.worker import Work, Worker, keys_in_environment
from reactflow.errors import ConfigurationError
from reactflow.specs.catalog import Catalog
from reactflow.specs.values import AnyAgentSpec
from reactflow.sql.calls import AgentCall, check_calls
from reactflow.sql.tokens import Statement, split

try:
    import pyflink
    from pyflink.common import Configuration, Row, Time, Types
    from pyflink.datastream import AsyncDataStream, AsyncFunction
    from pyflink.table import DataTypes, EnvironmentSettings, ResultKind, TableEnvironment
    from pyflink.table.udf import AsyncScalarFunction, udf
    from pyflink.util.java_utils import get_j_env_configuration
except ImportError as error:
    raise ConfigurationError("Flink needs the extra 'flink' and Java 17: pip install 'reactflow[flink]'.") from error

A_DAY_MS: Final = 86_400_000
"""Flink's own limit of one call.  It would end the job, so it is far beyond the limit of a row, which does not."""

_ANSWER: Final = DataTypes.ROW(
    [DataTypes.FIELD("status", DataTypes.STRING()), DataTypes.FIELD("response", DataTypes.STRING())]
)
_ANSWERS: Final = DataTypes.MAP(DataTypes.STRING(), DataTypes.ARRAY(_ANSWER))


def new_environment(options: Mapping[str, str]) -> Any:
    """A TableEnvironment for sources with and without an end; where it runs is among its *options*."""
    remote = options.get("execution.target", "local") != "local"
    configuration = Configuration()
    if remote:  # clusters as they are downloaded cannot run Python; this part of PyFlink goes with the job
        jars = sorted((Path(pyflink.__file__).parent / "opt").glob("flink-python-*.jar"))
        configuration.set_string("pipeline.jars", ";".join(jar.as_uri() for jar in jars))
    for key, value in options.items():
        configuration.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration)
    environment = TableEnvironment.create(settings.build())
    if remote:  # PyFlink takes any place for this process here, and would let the workers call back into it
        remove_option(environment, "python.loopback-server.address")
    return environment


def remove_option(environment: Any, key: str) -> None:
    """Take an option back, also from where a job has left it for the jobs after it."""
    environment.get_config().get_configuration().remove_config(key)
    get_j_env_configuration(environment._get_j_env()).removeKey(key)


def shows_rows(done: Any) -> bool:
    """Whether the ``TableResult`` *done* is one of rows, and not just a word that something was done."""
    return bool(done.get_result_kind() == ResultKind.SUCCESS_WITH_CONTENT)


class AgentScalarFunction(AsyncScalarFunction):  # type: ignore[misc]  # PyFlink has no types
    """The function behind AI_RUN_AGENT.  Called with a prompt and a key, it gives a map from their check to a list of
    ``(status, response)``: one, or none where the row is left out.

    Args:
        work: The agent and its policies.
    """

    def __init__(self, work: Work) -> None:
        self.work = work
        self._worker: Worker | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        copy_arguments()  # here and no later: the operation binds its method right after it has unpickled this

    def open(self, function_context: Any) -> None:
        """Build the agent in the worker."""
        self._worker = self.work.open()

    def close(self) -> None:
        """Let go of what the agent holds."""
        if self._worker is not None:
            self._worker.close()

    def is_deterministic(self) -> bool:
        """No: it must be called once for each row, at run time."""
        return False

    async def eval(self, prompt: str | None, key: str | None) -> dict[str, list[Any]]:
        """Answer one row."""
        assert self._worker is not None
        outcome = await self._worker.answer(prompt, key)
        answers = [] if outcome is None else [Row(outcome.status.value, outcome.text)]
        return {check_of(prompt, key): answers}


def copy_arguments() -> None:
    """Let PyFlink's operation for async functions copy its arguments.

    It hands one and the same list to every call, and fills in the next row before an earlier call has read it
    (FLINK-39532, in 2.3.0).  Done once in a process; harmless where that is mended.
    """
    from pyflink.fn_execution.table.async_function.operations import AsyncScalarFunctionOperation as Operation

    original = Operation.process_element
    if getattr(original, "copies_arguments", False):
        return

    @wraps(original)
    def process_element(self: Any, value: Any) -> Any:
        return original(self, list(value))

    process_element.copies_arguments = True  # type: ignore[attr-defined]
    Operation.process_element = process_element


class FlinkAgents:
    """The agents of a catalogue in one TableEnvironment; made by :func:`register_agents`.

    Args:
        environment: A ``TableEnvironment`` or ``StreamTableEnvironment``.
        catalog: Where agents are defined.
        work: Policies of every agent; its own agent is left aside.
    """

    def __init__(self, environment: Any, catalog: Catalog, work: Work) -> None:
        self.environment = environment
        self.catalog = catalog
        self.work = work
        self.variables: dict[str, str] = {}
        self._job_id = secrets.token_hex(8)
        self._statements = 0
        self._names: dict[tuple[object, ...], str] = {}

    def function(self, spec: AnyAgentSpec, *, debug: bool = False, log: LogPlace | None = None) -> str:
        """The name of the function ``(prompt, key)`` that runs *spec*; it is registered the first time."""
        sent, variables = keys_in_environment(spec, self.catalog.secrets)
        self.variables |= variables
        kind = (sent, debug, log, self.work.purse, self.work.last_words)
        name = self._names.get(kind)
        if name is None:
            work = replace(self.work, agent=sent, debug=debug or self.work.debug, log=log)
            made = udf(AgentScalarFunction(work), result_type=_ANSWERS, deterministic=False)
            name = self._names[kind] = f"reactflow_agent_{len(self._names) + 1}"
            self.environment.create_temporary_system_function(name, made)
        return name

    def translate(self, statement: Statement, number: int | None = None) -> str:
        """*statement* as Flink takes it, with the agents as they are defined now.

        Args:
            statement: What was written.
            number: Names it in log tables, from 1; by default it counts on.

        Raises:
            SqlError: A call is wrong, its agent is not defined, or its log table is none.
        """
        self._statements = number or self._statements + 1

        def function(spec: AnyAgentSpec, call: AgentCall) -> str:
            return self.function(spec, debug=call.debug, log=self._log_of(statement, call))

        return translate(statement, check_calls(statement, self.catalog), function)

    def sql(self, text: str, number: int | None = None) -> str:
        """The one statement in *text*, ready for ``execute_sql`` or ``sql_query``.

        Raises:
            SqlError: A call is wrong, its agent is not defined, its log table is none, or there are several statements.
        """
        statements = list(split(text))
        if len(statements) != 1:
            raise ConfigurationError(f"There are {len(statements)} statements; give one.")
        return self.translate(statements[0], number)

    def _log_of(self, statement: Statement, call: AgentCall) -> LogPlace | None:
        if call.log_table is None:
            return None
        place = statement.tokens[call.start].start
        name = ".".join(back_quoted(part) for part in call.log_table.split("."))
        try:
            with self.environment.execute_sql(f"SHOW CREATE TABLE {name}").collect() as rows:
                ((shown,),) = rows
        except Exception as error:  # a Java exception
            raise statement.error(f"There is no log table {call.log_table!r}; create it first.", place) from error
        try:
            folder = log_folder(call.log_table, next(split(shown)))
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ConfigurationError) as error:
            raise statement.error(str(error), place) from error
        return LogPlace(str(folder), self._job_id, f"statement-{self._statements}")


def register_agents(environment: Any, catalog: Catalog, work: Work | None = None) -> FlinkAgents:
    """Let statements in an existing TableEnvironment call the agents of *catalog*.

        agents = register_agents(environment, catalog)
        environment.execute_sql(agents.sql("INSERT INTO t SELECT ... LATERAL TABLE(AI_RUN_AGENT('a', q.text)) ..."))

    It sets what the calls rely on: how many are in flight, no second try of a whole agent, no time limit that would
    end the job.  Restarts and checkpoints are left to the environment.

    Args:
        environment: A ``TableEnvironment`` or ``StreamTableEnvironment``.
        catalog: Where agents are defined, also later ones.
        work: Policies of every agent; its own agent is left aside.

    Returns:
        What translates statements.  Keys that a script wrote out are in its ``variables`` after that, and must be in
        the environment of the workers.
    """
    work = work or Work()
    config = environment.get_config()
    config.set("table.exec.async-scalar.max-concurrent-operations", str(2 * work.concurrency))  # one may be slow
    config.set("table.exec.async-scalar.timeout", f"{A_DAY_MS} ms")
    config.set("table.exec.async-scalar.retry-strategy", "NO_RETRY")
    return FlinkAgents(environment, catalog, work)


class AgentStreamFunction(AsyncFunction):  # type: ignore[misc]  # PyFlink has no types
    """The operator behind :func:`answer_stream`.

    Args:
        work: The agent and its policies.
        read: Prompt and key of an element; it is pickled.
    """

    def __init__(self, work: Work, read: Callable[[Any], tuple[str | None, str | None]]) -> None:
        self._work = work
        self._read = read
        self._worker: Worker | None = None

    def open(self, runtime_context: Any) -> None:
        """Build the agent in the worker."""
        self._worker = self._work.open()

    def close(self) -> None:
        """Let go of what the agent holds."""
        if self._worker is not None:
            self._worker.close()

    async def async_invoke(self, value: Any) -> list[Any]:
        """Answer one element."""
        assert self._worker is not None
        outcome = await self._worker.answer(*self._read(value))
        if outcome is None:
            return []
        metadata = json.dumps(dict(outcome.metadata), ensure_ascii=False, default=str)
        return [(value, outcome.status.value, outcome.response, metadata)]


def answer_stream(
    stream: Any, work: Work, read: Callable[[Any], tuple[str | None, str | None]], *, ordered: bool = False
) -> Any:
    """Put each element of a DataStream to an agent, bounded or not.

    Args:
        stream: A ``DataStream``.
        work: The agent and its policies; ``concurrency`` is that of one subtask.
        read: Prompt and key of an element; it is pickled.
        ordered: Whether answers come in the order of their elements; else as they are done.

    Returns:
        A ``DataStream`` of ``(element, status, response, metadata)``, the last one as JSON.
    """
    kind = Types.TUPLE([stream.get_type(), Types.STRING(), Types.STRING(), Types.STRING()])
    wait = AsyncDataStream.ordered_wait if ordered else AsyncDataStream.unordered_wait
    return wait(stream, AgentStreamFunction(work, read), Time.milliseconds(A_DAY_MS), work.concurrency, kind)
