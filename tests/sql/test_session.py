"""Scripts: calls of agents in every form, policies, tables that are files, errors, and what it costs."""

import asyncio
import builtins
import gzip
import json

import pyarrow.parquet as pq
import pytest

from reactflow.background import run_blocking
from reactflow.batch.calls import Spending
from reactflow.batch.job import JobSettings, JobStopped
from reactflow.batch.journal import Journal
from reactflow.budget import Price
from reactflow.errors import ConfigurationError, SqlError, WorkflowError
from reactflow.sql.session import SessionSettings, SqlSession

CALL = "LATERAL TABLE(AI_RUN_AGENT('extractor', c.description))"

LOG = """CREATE TABLE agent_log (agent_name STRING NOT NULL, job_id STRING NOT NULL, request_id STRING NOT NULL,
    statement_name STRING NOT NULL, iteration INT NOT NULL, type STRING NOT NULL, data STRING NOT NULL,
    metrics STRING);"""


# ------------------------------------------------------------------------------------------------ the whole script

SCRIPT = """
-- The connection; its key comes from the environment.
CREATE CONNECTION openai_connection
WITH ('type' = 'openai', 'endpoint' = 'https://api.openai.com/v1/chat/completions', 'api-key' = '<your key>');

CREATE MODEL claims_model INPUT (message STRING) OUTPUT (response STRING)
WITH ('provider' = 'openai', 'openai.connection' = 'openai_connection', 'openai.model_version' = 'gpt-4o',
      'task' = 'text_generation');

CREATE TABLE submitted (id INT, customer INT, description STRING, image STRING, latitude DOUBLE);

CREATE AGENT extractor USING MODEL claims_model USING PROMPT 'You extract; one JSON object.';
CREATE AGENT critic USING MODEL claims_model USING PROMPT 'You review claims.';
CREATE AGENT intake USING AGENTS extractor, critic
WITH ('type' = 'reflection', 'pass_condition' = 'approval', 'max_iterations' = '3');

CREATE TABLE approved (id INT, customer INT, claim STRING);

INSERT INTO approved
SELECT c.id, c.customer, r.response AS claim
FROM submitted AS c,
LATERAL TABLE(
  AI_RUN_AGENT(
    'intake',
    CONCAT('description=', c.description, '; image=', c.image, '; lat=', CAST(c.latitude AS STRING)),
    CAST(c.id AS STRING)
  )
) AS r(status, response){where};
"""

SUBMITTED = [
    {"id": 1, "customer": 10, "description": "hail on the roof", "image": "a.png", "latitude": 37.5},
    {"id": 2, "customer": 11, "description": "a flood", "image": "b.png", "latitude": 1},
    {"id": 3, "customer": 12, "description": "never good", "image": "c.png", "latitude": 1},
    {"id": 4, "customer": 13, "description": "a flood", "image": None, "latitude": 1},
]


@pytest.fixture
def submitted(folder):
    path = folder / "submitted.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in SUBMITTED))
    return path


def claims(folder):
    return [tuple(json.loads(line).values())[::2] for line in (folder / "approved.jsonl").read_text().splitlines()]


def files(folder, submitted):
    return {"tables": {"submitted": submitted}, "outputs": {"approved": folder / "approved.jsonl"}}


def test_without_a_look_at_the_status_the_insert_writes_what_nobody_approved(session, model, folder, submitted):
    run = session(script=SCRIPT.format(where=""), **files(folder, submitted))

    assert claims(folder) == [
        (1, "better: hail on the roof"),
        (2, "better: a flood"),
        (3, "better still: never good"),  # three drafts, none approved
        (4, "The prompt is NULL, so nothing was asked."),  # a text with an unknown part
    ]
    assert len(model.seen) == 4 + 4 + 6
    assert run.catalog.secrets


def test_with_a_look_at_the_status_approved_means_approved(session, folder, submitted):
    session(script=SCRIPT.format(where="\nWHERE r.status = 'SUCCESS'"), **files(folder, submitted))

    assert [row[0] for row in claims(folder)] == [1, 2]


def test_rows_at_their_limit_can_be_dropped_by_the_agent_itself(session, rows):
    run = session()
    rows(run, "ALTER AGENT intake SET ('on_exhausted' = 'drop')")

    found = rows(run, "SELECT id, status FROM claims c, LATERAL TABLE(AI_RUN_AGENT('intake', c.description))")

    assert found == [(1, "SUCCESS"), (2, "SUCCESS")]


def test_rows_at_their_limit_can_be_failed_by_the_job(session, rows):
    run = session(job=JobSettings(on_exhausted="fail"))

    found = rows(
        run, "SELECT id, r.* FROM claims c, LATERAL TABLE(AI_RUN_AGENT('intake', c.description)) r WHERE id = 3"
    )

    assert found == [(3, "FAILED", "It was not approved when it reached a limit (max_iterations).")]


# ------------------------------------------------------------------------------------------------ the forms of the call


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, status, response FROM claims c, {call} WHERE id = 2",
        "SELECT c.id, r.status, r.response FROM claims AS c, {call} AS r WHERE c.id = 2",
        "SELECT id, s, t FROM claims c, {call} AS r(s, t) WHERE id = 2",
        "SELECT id, s, t FROM claims c CROSS JOIN {call} r(s, t) WHERE id = 2",
        "SELECT id, s, t FROM claims c JOIN {call} r(s, t) ON TRUE WHERE id = 2",
        "SELECT id, s, t FROM claims c INNER JOIN {call} r(s, t) ON TRUE WHERE id = 2",
        "SELECT id, s, t FROM claims c LEFT JOIN {call} r(s, t) ON TRUE WHERE id = 2",
        "SELECT id, s, t FROM (SELECT * FROM claims WHERE id = 2) c, {call} r(s, t)",
        "WITH two AS (SELECT * FROM claims WHERE id = 2) SELECT id, s, t FROM two AS c, {call} r(s, t)",
        "WITH r AS (SELECT c.id, status, response FROM claims c, {call} WHERE id = 2) SELECT * FROM r",
        "SELECT * FROM (SELECT id, status, response FROM claims c, {call}) WHERE id = 2",
        "SELECT id, status, response FROM claims c, {call} WHERE id = 2 AND status LIKE 'S%' ORDER BY id LIMIT 5",
        "SELECT id, status, response FROM claims c, {call} WHERE id BETWEEN 2 AND 2 AND (id = 2 OR id = 3)",
        "SELECT id, status, response FROM claims /*+ OPTIONS('a'='b') */ c, {call} WHERE id = 2",
    ],
)
def test_a_call_stands_wherever_a_table_can(session, rows, query):
    assert rows(session(), query.format(call=CALL)) == [(2, "SUCCESS", "draft: a flood")]


@pytest.mark.parametrize(
    "arguments",
    [
        "'extractor', c.description",
        "`extractor`, `description`",
        "'extractor', c.description, CAST(c.id AS STRING)",
        "'extractor', c.description, MAP['debug', 'true']",
        "'extractor', c.description, c.id, MAP['debug', true]",
        "'extractor', c.description, CAST(c.id AS STRING), 'agent_log', MAP['DEBUG', 'FALSE']",
        "'extractor', c.description, CAST(c.id AS STRING), `agent_log`",
    ],
)
def test_each_documented_form_of_the_arguments_is_taken(session, rows, arguments):
    run = session()
    rows(run, LOG)

    found = rows(run, f"SELECT id, status FROM claims c, LATERAL TABLE(AI_RUN_AGENT({arguments})) WHERE c.id = 1")

    assert found == [(1, "SUCCESS")]


def test_a_call_needs_no_table_before_it(session, rows):
    run = session()

    assert rows(run, "SELECT * FROM LATERAL TABLE(AI_RUN_AGENT('extractor', 'hi'))") == [("SUCCESS", "draft: hi")]
    assert rows(run, "SELECT r.b FROM TABLE(AI_RUN_AGENT('extractor', 'hi')) AS r(a, b)") == [("draft: hi",)]


def test_several_tables_with_columns_of_one_name_keep_them_apart(session, rows):
    run = session()
    rows(run, "CREATE TABLE people (id INT, name STRING); INSERT INTO people VALUES (1, 'Ada'), (2, '王')")

    query = f"SELECT c.id, p.id, p.name, r.response FROM claims c JOIN people p ON p.id = c.id, {CALL} r ORDER BY 1"
    assert rows(run, query) == [(1, 1, "Ada", "draft: hail on the roof"), (2, 2, "王", "draft: a flood")]
    assert len(rows(run, f"SELECT * FROM claims c, people p, {CALL} r")[0]) == 4 + 2 + 2


def test_columns_that_using_makes_one_are_one(session, rows):
    run = session()
    rows(run, "CREATE TABLE people (id INT, name STRING); INSERT INTO people VALUES (1, 'Ada'), (2, '王')")

    query = f"FROM claims c JOIN people p USING (id), {CALL} r ORDER BY c.id"
    assert rows(run, f"SELECT id, name, response {query}")[1] == (2, "王", "draft: a flood")
    assert len(rows(run, f"SELECT * {query}")[0]) == 4 + 1 + 2
    assert rows(run, f"SELECT p.id, c.id {query}") == [(1, 1), (2, 2)]


def test_a_table_function_stands_before_a_call(session, rows):
    query = "SELECT range, response FROM range(2), LATERAL TABLE(AI_RUN_AGENT('extractor', CAST(range AS STRING)))"

    assert rows(session(), query) == [(0, "draft: 0"), (1, "draft: 1")]


def test_one_agent_can_read_what_another_said(session, rows, model):
    query = """SELECT y.response, z.response FROM claims c, LATERAL TABLE(AI_RUN_AGENT('extractor', c.description)) y,
               LATERAL TABLE(AI_RUN_AGENT('extractor', y.response)) z WHERE c.id = 2"""

    assert rows(session(), query) == [("draft: a flood", "draft: draft: a flood")]
    assert len(model.seen) == 2


def test_two_selects_with_calls_make_one_result(session, rows):
    one = f"SELECT response FROM claims c, {CALL} WHERE id ="

    assert rows(session(), f"{one} 1 UNION ALL {one} 2") == [("draft: hail on the roof",), ("draft: a flood",)]


def test_answers_can_make_a_table(session, rows):
    run = session()

    assert rows(run, f"CREATE TABLE answers AS SELECT c.id, response FROM claims c, {CALL}") == "3 rows written."
    assert rows(run, "SELECT count(*) FROM answers") == [(3,)]


def test_a_call_may_stand_behind_an_insert_with_common_tables(session, rows):
    run = session()
    rows(run, "CREATE TABLE answers (id INT, text STRING)")

    said = rows(
        run,
        f"INSERT INTO answers WITH two AS (SELECT * FROM claims WHERE id < 3) SELECT c.id, response FROM two c, {CALL}",
    )

    assert said == "2 rows written."
    assert rows(run, "SELECT text FROM answers ORDER BY id") == [("draft: hail on the roof",), ("draft: a flood",)]


def test_answers_stand_beside_their_rows_however_long_each_takes(session, rows):
    run = session()
    rows(run, "CREATE TABLE many AS SELECT i AS id, 'row ' || i AS text FROM range(1500) t(i)")

    query = (
        "SELECT count(*) FROM many, LATERAL TABLE(AI_RUN_AGENT('extractor', text)) WHERE response = 'draft: ' || text"
    )
    assert rows(run, query) == [(1500,)]


# ------------------------------------------------------------------------------------------------ no row asked in vain


@pytest.mark.parametrize(
    ("rest", "asked"),
    [
        ("WHERE amount > 50", 2),
        ("WHERE amount > 50 AND r.status = 'SUCCESS'", 2),
        ("WHERE r.response LIKE '%flood%' AND id = 2", 1),
        ("WHERE id = 2 OR r.status = 'FAILED'", 3),
        ("WHERE CASE WHEN id = 1 AND amount > 1 THEN TRUE ELSE FALSE END", 1),
        ("WHERE id BETWEEN 1 AND 2", 2),
        ("LIMIT 1", 1),
        ("WHERE id > 1 LIMIT 1", 1),
        ("WHERE r.status = 'FAILED' LIMIT 1", 3),
        ("ORDER BY r.response LIMIT 1", 3),
        ("", 3),
    ],
)
def test_only_the_rows_that_are_needed_are_asked(session, rows, model, rest, asked):
    rows(session(), f"SELECT c.id, UPPER(r.response) FROM claims c, {CALL} r {rest}")

    assert len(model.seen) == asked


@pytest.mark.parametrize("chosen", ["count(*)", "DISTINCT r.status", "max(id) OVER ()"])
def test_a_limit_after_a_summary_does_not_limit_what_is_summarised(session, rows, model, chosen):
    rows(session(), f"SELECT {chosen} FROM claims c, {CALL} r LIMIT 1")

    assert len(model.seen) == 3


def test_what_is_random_is_decided_once(session, rows, model):
    found = rows(
        session(),
        "SELECT c.id, r.status FROM claims c, LATERAL TABLE(AI_RUN_AGENT('extractor', c.description, uuid())) r "
        "WHERE random() < 2 AND id > 0",
    )

    assert len(found) == 3


# ------------------------------------------------------------------------------------------------ failures


def test_a_failing_row_is_a_row_with_a_status_and_without_debug_it_tells_only_the_kind(session, rows, model):
    run = session()
    answer = model.complete

    async def fails(request):
        if "flood" in request.messages[-1].text:
            raise RuntimeError("a-key-written-out: no flood")
        return await answer(request)

    model.complete = fails

    found = rows(run, f"SELECT id, status, response FROM claims c, {CALL}")
    assert found[1] == (2, "FAILED", "RuntimeError")
    assert [row[1] for row in found] == ["SUCCESS", "FAILED", "SUCCESS"]

    debug = CALL.replace("c.description", "c.description, MAP['debug', 'true']")
    told = rows(run, f"SELECT response FROM claims c, {debug} WHERE id = 2")[0][0]
    assert "RuntimeError: ******: no flood" in told


def test_a_failing_row_can_end_the_statement(session, rows):
    run = session()
    rows(run, "ALTER AGENT extractor SET ('handle_exception' = 'fail'); INSERT INTO claims (id) VALUES (4)")

    with pytest.raises(WorkflowError, match="handle_exception is 'fail'"):
        rows(run, f"SELECT * FROM claims c, {CALL}")


def test_a_statement_that_has_failed_pays_for_no_call_more(session, rows, model):
    run = session(job=JobSettings(handle_exception="fail", concurrency=5))
    rows(run, "CREATE TABLE many AS SELECT CAST(NULLIF(range, 0) AS VARCHAR) AS text FROM range(2000)")

    async def turns_of_the_loop():
        for _ in range(500):
            await asyncio.sleep(0)

    with pytest.raises(WorkflowError) as error:  # which holds the frames that a collector would close
        rows(run, "SELECT * FROM many, LATERAL TABLE(AI_RUN_AGENT('extractor', text))")
    at_the_error = len(model.seen)
    run_blocking(turns_of_the_loop())

    assert (len(model.seen), error.value is not None) == (at_the_error, True)
    assert len(model.seen) < 100


def test_a_left_join_keeps_rows_without_an_answer(session, rows):
    run = session(job=JobSettings(on_exhausted="drop"))

    query = "SELECT id, status FROM claims c LEFT JOIN LATERAL TABLE(AI_RUN_AGENT('intake', description)) ON TRUE"
    assert rows(run, query) == [(1, "SUCCESS"), (2, "SUCCESS"), (3, None)]


@pytest.mark.parametrize(
    ("script", "place", "reason"),
    [
        ("SELECT AI_RUN_AGENT('extractor', 'x')", (1, 8), "AI_RUN_AGENT gives a table; write it as LATERAL TABLE"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('nobody', 'x'))", (1, 42), "There is no agent 'nobody'; there is:"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('extractor'))", (1, 29), "AI_RUN_AGENT takes (agent, prompt"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('a', 'b', 'c', 'd', 'e'))", (1, 62), "must be MAP['debug', 'true']"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('a', MAP['debug', 'true']))", (1, 29), "needs a prompt"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('a', 'b', MAP['debug']))", (1, 52), "MAP takes pairs"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('a', 'b', MAP['trace', 'x']))", (1, 56), "knows one setting"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT(lower('a'), 'b'))", (1, 42), "name, not an expression"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('extractor', 'b')) r(a, b, c)", (1, 62), "gives two columns"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('extractor', 'b'), 1)", (1, 29), "brackets of AI_RUN_AGENT"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('extractor', 'b', 'c', 1 + 1))", (1, 65), "by its name"),
        ("SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('extractor', 'b', 'c', 'none'))", (1, 15), "no log table 'none'"),
        (
            "SELECT 1 FROM LATERAL TABLE(AI_RUN_AGENT('extractor', 'b', 'c', 'claims'))",
            (1, 15),
            "must have the columns",
        ),
        ("SELECT 1 FROM claims c,\n LATERAL TABLE(AI_RUN_AGENT('extractor', c.descriptio))", (2, 44), '"descriptio"'),
        ("CREATE OR REPLACE VIEW v AS SELECT 1 FROM claims c, {call}", (1, 67), "write CREATE TABLE ... AS SELECT"),
        ("EXPLAIN SELECT 1 FROM claims c, {call}", (1, 47), "explain the query without the call"),
        ("SELECT 1 FROM claims c FULL JOIN {call} ON TRUE", (1, 24), "CROSS JOIN, JOIN or LEFT JOIN"),
        ("SELECT id, (SELECT max(status) FROM {call} r) FROM claims c", (1, 79), 'table "c" not found'),
        ("SELECT 1\nFROM claim", (2, 6), "Table with name claim does not exist"),
        ("SELEC 1", (1, 1), "syntax error"),
        ("SELECT `none` FROM claims", (1, 8), "none"),
        ("DELETE FROM claims USING LATERAL TABLE(AI_RUN_AGENT('extractor', 'b'))", (1, 26), "in the FROM of a SELECT"),
    ],
)
def test_an_error_says_line_and_column_in_the_script_as_it_was_written(session, rows, script, place, reason):
    run = session()

    with pytest.raises(SqlError) as caught:
        rows(run, script.replace("{call}", CALL))

    assert reason in caught.value.reason
    assert (caught.value.line, caught.value.column) == place


def test_statements_before_an_error_have_run_and_those_after_it_have_not(session, rows):
    run = session()

    with pytest.raises(SqlError, match="line 2"):
        rows(run, "CREATE TABLE one (a INT);\nSELEC 1;\nCREATE TABLE two (a INT)")

    assert rows(run, "SELECT table_name FROM duckdb_tables() WHERE table_name IN ('one', 'two')") == [("one",)]


# ------------------------------------------------------------------------------------------------ the log


def test_the_log_holds_each_message_reply_tool_call_and_result_and_how_the_row_ended(session, rows, model):
    def price(city: str) -> str:
        return f"1000 in {city}"

    run = session(functions={"price": price})
    rows(run, LOG + "CREATE TOOL price USING FUNCTION price WITH ('type' = 'function');")
    rows(run, "ALTER AGENT extractor ADD TOOL price")
    from reactflow.messages import AssistantMessage, ToolCall
    from reactflow.model import ChatResponse

    answer = model.complete

    async def with_a_tool(request):
        if request.tools and type(request.messages[-1]).__name__ == "UserMessage":
            return ChatResponse(AssistantMessage("", (ToolCall("c1", "price", '{"city": "Oslo"}'),)))
        return ChatResponse(AssistantMessage("draft")) if request.tools else await answer(request)

    model.complete = with_a_tool
    call = "AI_RUN_AGENT('intake', c.description, CAST(c.id AS STRING), 'agent_log')"
    rows(run, f"SELECT * FROM claims c, LATERAL TABLE({call}) WHERE id = 3")

    log = rows(run, "SELECT agent_name, request_id, iteration, type, data FROM agent_log")
    kinds = [(name, iteration, kind) for name, _, iteration, kind, _ in log]
    assert kinds[:6] == [
        ("extractor", 1, "model_message"),
        ("extractor", 1, "model_message"),
        ("extractor", 1, "model_response"),
        ("extractor", 1, "tool_call"),
        ("extractor", 1, "tool_response"),
        ("extractor", 1, "model_response"),
    ]
    assert [json.loads(row[4]) for row in log[3:5]] == [
        {"id": "c1", "name": "price", "arguments": '{"city": "Oslo"}'},
        {"id": "c1", "name": "price", "text": "1000 in Oslo"},
    ]
    assert ("critic", 2, "model_response") in kinds
    assert {row[1] for row in log} == {"3"}
    assert kinds[-1] == ("intake", 2, "outcome")
    assert json.loads(log[-1][4])["stop_reason"] == "no_progress"
    facts = rows(run, "SELECT DISTINCT job_id, statement_name FROM agent_log")
    assert facts == [(run.job_id, f"statement-{run._statements - 2}")]


def test_errors_are_in_the_log_too(session, rows, model):
    run = session()
    rows(run, LOG)

    async def fails(request):
        raise RuntimeError("no")

    model.complete = fails
    call = "AI_RUN_AGENT('extractor', c.description, CAST(c.id AS STRING), 'agent_log')"
    rows(run, f"SELECT * FROM claims c, LATERAL TABLE({call}) WHERE id = 3")

    log = rows(run, "SELECT type, data FROM agent_log WHERE type IN ('error', 'outcome')")
    assert log == [
        ("error", "RuntimeError"),
        ("error", "RuntimeError"),
        ("outcome", '{"status": "FAILED", "error_type": "RuntimeError"}'),
    ]


# ------------------------------------------------------------------------------------------------ journal and money


def test_what_was_answered_before_is_not_asked_again(session, rows, model, folder):
    journal = Journal(folder / "answers.db")
    query = f"SELECT id, response FROM claims c, {CALL}"
    first = rows(session(job=JobSettings(journal=journal)), query)
    asked = len(model.seen)

    assert rows(session(job=JobSettings(journal=journal)), query) == first
    assert len(model.seen) == asked


def test_a_statement_ends_when_the_money_is_used_up(session, rows):
    spending = Spending({"*": Price(input=1e6, output=0)})
    run = session(job=JobSettings(concurrency=1, spending=spending, max_cost_usd=15))

    with pytest.raises(JobStopped, match="after 2 rows"):
        rows(run, f"SELECT id, response FROM claims c, {CALL}")


def test_a_watcher_hears_how_far_a_statement_is(session, rows):
    heard = []
    run = session(watch=lambda report: heard.append((report.rows, round(report.fraction, 2))))

    rows(run, f"SELECT id FROM claims c, {CALL}")

    assert heard == [(1, 0.33), (2, 0.67), (3, 1.0)]


def test_an_agent_that_is_altered_answers_later_statements_as_it_is_then(session, rows, model):
    run = session()

    rows(run, f"SELECT id FROM claims c, {CALL} WHERE id = 1")
    rows(run, f"ALTER AGENT extractor SET PROMPT 'You are new.'; SELECT id FROM claims c, {CALL} WHERE id = 1")

    assert [request.messages[0].text for request in model.seen] == ["You extract; it's -- all {JSON}.", "You are new."]


# ------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.tsv", "in.parquet", "in.jsonl.gz"])
def test_a_table_reads_a_file_with_the_columns_it_declares(session, rows, folder, name):
    data = {
        "in.jsonl": b'{"id": 1, "text": "a", "more": 1}\n{"id": "x", "text": "b"}\nno json\n{"id": 3}\n',
        "in.csv": b"more,id,text\n1,1,a\n1,x,b\n1,,\n1,3,\n",
        "in.tsv": b"more\tid\ttext\n1\t1\ta\n1\tx\tb\n1\t\t\n1\t3\t\n",
    }
    data["in.jsonl.gz"] = gzip.compress(data["in.jsonl"])
    if name == "in.parquet":
        import pyarrow as pa

        table = pa.table({"more": [1] * 4, "id": ["1", "x", None, "3"], "text": ["a", "b", None, None]})
        pq.write_table(table, folder / name)
    else:
        (folder / name).write_bytes(data[name])
    run = session(script="CREATE TABLE t (id INT, text STRING)", tables={"t": folder / name})

    assert rows(run, "SELECT * FROM t") == [(1, "a"), (None, "b"), (None, None), (3, None)]


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.parquet"])
def test_a_table_that_no_statement_creates_has_the_columns_of_its_file(session, rows, folder, name):
    (folder / "in.jsonl").write_text('{"id": 1, "text": "中"}\n')
    (folder / "in.csv").write_text("id,text\n1,中\n")
    import pyarrow as pa

    pq.write_table(pa.table({"id": [1], "text": ["中"]}), folder / "in.parquet")

    assert rows(session(script="", tables={"t": folder / name}), "SELECT id, text FROM t") == [(1, "中")]


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet", "out.jsonl.gz"])
def test_a_table_is_written_to_its_file_when_the_script_has_run(session, rows, folder, name):
    session(script="CREATE TABLE t (id INT, text STRING); INSERT INTO t VALUES (1, '中')", outputs={"t": folder / name})

    assert rows(session(script="", tables={"t": folder / name}), "SELECT id, text FROM t") == [(1, "中")]
    assert [path.name for path in folder.iterdir()] == [name]


def test_numbers_that_json_does_not_know_are_null_in_a_file_of_json_lines(session, folder):
    numbers = "'nan'::DOUBLE AS \"a b\", '-inf'::FLOAT AS b, 0.5::DOUBLE AS c, 'NaN' AS d"
    session(script=f"CREATE TABLE t AS SELECT {numbers}", outputs={"t": folder / "t.jsonl"})

    assert (folder / "t.jsonl").read_text() == '{"a b":null,"b":null,"c":0.5,"d":"NaN"}\n'


def test_a_table_says_itself_which_file_it_is(session, folder):
    (folder / "in.jsonl").write_text('{"id": 7}\n')

    session(
        script="""CREATE TABLE a (id INT) WITH ('connector' = 'filesystem', 'path' = 'in.jsonl', 'format' = 'json');
                  CREATE TABLE b (id INT) WITH ('connector' = 'filesystem', 'path' = 'out.csv', 'format' = 'csv');
                  INSERT INTO b SELECT id + 1 FROM a""",
        folder=folder,
    )

    assert (folder / "out.csv").read_text() == "id\n8\n"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ("'connector' = 'filesystem'", "needs a 'path'"),
        ("'connector' = 'filesystem', 'path' = 'x', 'format' = 'orc'", "'orc'"),
    ],
)
def test_a_file_that_cannot_be_told_is_an_error(session, rows, options, match):
    with pytest.raises(ConfigurationError, match=match):
        rows(session(), f"CREATE TABLE t (id INT) WITH ({options})")


def test_a_file_that_is_not_there_is_told_before_anything_runs(session, folder):
    with pytest.raises(ConfigurationError, match="There is no file"):
        session(script="SELECT 1", tables={"t": folder / "none.jsonl"})
    with pytest.raises(ConfigurationError, match="There is no folder"):
        session(script="CREATE TABLE t (a INT)", outputs={"t": folder / "none" / "x.jsonl"})
    with pytest.raises(SqlError, match="Table with name t does not exist"):
        session(script="SELECT 1", outputs={"t": folder / "x.jsonl"})


def test_tables_outlive_a_session_in_a_file_of_the_engine(session, rows, folder):
    database = str(folder / "claims.duckdb")
    session(database=database).engine.close()

    assert rows(session(database=database, script=""), "SELECT count(*) FROM claims") == [(3,)]


def test_statements_for_the_sources_own_engine_are_passed_over(session, rows):
    run = session(script="")

    for script in ("SET 'sql.state-ttl' = '1 d'", "BEGIN STATEMENT SET", "END", "EXECUTE STATEMENT SET"):
        assert rows(run, script).endswith("not needed here; nothing was done.")
    assert rows(run, "SET threads = 2") == "Done."


def test_without_the_extra_sql_is_a_clear_error(monkeypatch):
    real = builtins.__import__

    def without_duckdb(name, *args, **kwargs):
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_duckdb)

    with pytest.raises(ConfigurationError, match=r"pip install 'reactflow\[sql\]'"):
        SqlSession(SessionSettings())
