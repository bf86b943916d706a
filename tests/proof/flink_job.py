"""``flink_job.py MODE URL FOLDER [CACHE]``: the rows of FOLDER/in.jsonl through an agent, in one of several ways."""

import json
import sys
from pathlib import Path

from engines import OBJECTS

from reactflow.engines.flink import answer_stream, register_agents
from reactflow.engines.flink_session import FlinkSession
from reactflow.engines.flink_settings import FlinkSettings
from reactflow.engines.worker import Work
from reactflow.specs.catalog import Catalog
from reactflow.sql.commands import carry_out
from reactflow.sql.tokens import split

mode, url, folder, cache = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4] or None
objects = OBJECTS.format(url=url)
catalog = Catalog()
for statement in split(objects):
    carry_out(statement, catalog)

SCRIPT = """
CREATE TABLE q (id STRING, `text` STRING);
CREATE TABLE answers (id STRING, status STRING, answer STRING);
INSERT INTO answers SELECT q.id, r.status, r.response
FROM q, LATERAL TABLE(AI_RUN_AGENT('{agent}', q.`text`, q.id)) AS r(status, response) {where};
"""


def run_script(agent, where="", **settings):
    script = objects + SCRIPT.format(agent=agent, where=where)
    tables, outputs = {"q": folder / "in.jsonl"}, {"answers": folder / "out.jsonl"}
    for _ in FlinkSession(FlinkSettings(tables=tables, outputs=outputs, **settings)).run(script):
        pass


def unmended():
    """Without the copies of arguments, PyFlink mixes rows up."""
    from pyflink.fn_execution.table.async_function.operations import AsyncScalarFunctionOperation

    AsyncScalarFunctionOperation.process_element.copies_arguments = True
    run_script("drafter")


def in_a_stream():
    from pyflink.common import Types
    from pyflink.datastream import StreamExecutionEnvironment

    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    environment.set_python_executable(sys.executable)
    rows = [json.loads(line) for line in (folder / "in.jsonl").read_text().splitlines()]
    kind = Types.TUPLE([Types.STRING(), Types.STRING()])
    stream = environment.from_collection([(row["id"], row["text"]) for row in rows], kind)
    work = Work(agent=catalog.agent("drafter"))
    with answer_stream(stream, work, lambda row: (row[1], row[0])).execute_and_collect() as answers:
        lines = [{"id": row[0], "status": status, "answer": text} for row, status, text, _ in answers]
    (folder / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def without_end():
    """An unbounded source, in an environment that exists already; a file of the output is whole every second."""
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.table import StreamTableEnvironment

    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    environment.enable_checkpointing(1000)
    tables = StreamTableEnvironment.create(environment)
    agents = register_agents(tables, catalog)
    watched = "'source.monitor-interval' = '500 ms'"
    form = "'connector' = 'filesystem', 'format' = 'json', 'path' ="
    tables.execute_sql(f"CREATE TABLE q (id STRING, `text` STRING) WITH ({form} '{folder}/watched', {watched})")
    often = "'sink.rolling-policy.rollover-interval' = '1 s', 'sink.rolling-policy.check-interval' = '500 ms'"
    tables.execute_sql(f"CREATE TABLE answers (id STRING, answer STRING) WITH ({form} '{folder}/out', {often})")
    call = "LATERAL TABLE(AI_RUN_AGENT('drafter', q.`text`))"
    tables.execute_sql(agents.sql(f"INSERT INTO answers SELECT q.id, response FROM q, {call}")).wait()


if mode == "script":
    run_script("drafter")
elif mode == "kept":
    kept = {"checkpoints": folder / "kept", "checkpoint_interval_s": 1, "bundle_rows": 50}
    run_script("intake", "WHERE r.status = 'SUCCESS'", work=Work(cache=cache, concurrency=50), **kept)
elif mode == "poison":
    run_script("drafter", work=Work(handle_exception="fail"), restarts=1, restart_delay_s=0.1)
else:
    {"unmended": unmended, "stream": in_a_stream, "endless": without_end}[mode]()
