"""What is sent to workers, and what a worker does with it."""

import asyncio
import pickle

import pytest

from reactflow import ConfigurationError, WorkflowError
from reactflow.engines.worker import Work, kept_keys, keys_in_environment
from reactflow.loopback import LoopbackServer, reply_error, reply_text
from reactflow.specs.catalog import Catalog
from reactflow.specs.outcome import Status
from reactflow.sql.commands import carry_out
from reactflow.sql.tokens import split

SCRIPT = """
CREATE CONNECTION house WITH ('type' = 'openai', 'endpoint' = '{url}', 'api-key' = '{key}');
CREATE MODEL m WITH ('provider' = 'openai', 'openai.connection' = 'house', 'openai.model_version' = 'any');
CREATE AGENT drafter USING MODEL m USING PROMPT 'You draft.';
CREATE AGENT critic USING MODEL m USING PROMPT 'You review.';
CREATE AGENT intake USING AGENTS drafter, critic WITH ('type' = 'reflection', 'max_iterations' = '2');
"""


def catalog_of(url="http://127.0.0.1:9/v1", key="${HOUSE_KEY}"):
    catalog = Catalog(environment={"HOUSE_KEY": "from outside"})
    for statement in split(SCRIPT.format(url=url, key=key)):
        carry_out(statement, catalog)
    return catalog


@pytest.fixture
def house_key(monkeypatch):
    monkeypatch.setenv("HOUSE_KEY", "from outside")


async def ask(work, *rows):
    worker = pickle.loads(pickle.dumps(work)).open()
    try:
        return await asyncio.gather(*(worker.answer(prompt, key) for prompt, key in rows))
    finally:
        worker.close()


async def test_a_pickled_agent_answers_in_another_process_with_the_key_of_its_environment(house_key):
    async with LoopbackServer(
        respond=lambda request: reply_text(f"to {request.body['messages'][-1]['content']}")
    ) as it:
        work = Work(agent=catalog_of(it.base_url).agent("drafter"))
        assert b"from outside" not in pickle.dumps(work)

        outcomes = await ask(work, ("灾情如何?", "1"), (None, "2"))

    assert [(each.status, each.response) for each in outcomes] == [
        (Status.SUCCESS, "to 灾情如何?"),
        (Status.FAILED, None),
    ]
    it.assert_legal()


async def test_no_more_rows_are_under_way_than_were_allowed():
    under_way, most, three = 0, 0, asyncio.Event()

    async def work_of(prompt):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if most == 3:
            three.set()
        await three.wait()
        await asyncio.sleep(0.01)  # so that a fourth would be seen
        under_way -= 1
        return prompt

    worker = Work(agent=work_of, concurrency=3).open()
    outcomes = await asyncio.gather(*(worker.answer(f"row {number}", str(number)) for number in range(10)))
    worker.close()

    assert most == 3
    assert [each.response for each in outcomes] == [f"row {number}" for number in range(10)]


async def test_a_paid_answer_is_not_paid_again_by_a_second_worker(tmp_path, house_key):
    async with LoopbackServer(reply_text("once")) as server:
        work = Work(agent=catalog_of(server.base_url).agent("drafter"), cache=str(tmp_path / "cache.db"))
        first = await ask(work, ("row 1", "1"))
        second = await ask(work, ("row 1", "1"))

    assert first == second
    assert len(server.requests) == 1


async def test_a_failing_row_ends_the_job_only_where_that_was_asked_for(house_key):
    async with LoopbackServer(respond=lambda _: reply_error(400, "no")) as server:
        work = Work(agent=catalog_of(server.base_url).agent("drafter"), handle_exception="fail")
        with pytest.raises(WorkflowError, match="Row '7' failed"):
            await ask(work, ("row 7", "7"))


@pytest.mark.parametrize(("policy", "left"), [({"on_exhausted": "drop"}, 0), ({"only_approved": True}, 0), ({}, 1)])
async def test_what_nobody_approved_is_left_out_where_that_was_asked_for(policy, left, house_key):
    def respond(request):
        review = "APPROVED" in request.body["messages"][-1]["content"]
        return reply_text('{"verdict": "REQUIRED_CHANGES", "confidence": 0.1}' if review else "draft")

    async with LoopbackServer(respond=respond) as server:
        outcomes = await ask(Work(agent=catalog_of(server.base_url).agent("intake"), **policy), ("row 1", "1"))

    assert sum(outcome is not None for outcome in outcomes) == left


def test_a_key_that_a_script_wrote_out_is_not_sent_but_named():
    catalog = catalog_of(key="written-out-key")
    spec = catalog.agent("intake")
    assert kept_keys(spec) == {"=connection/house/api-key"}
    with pytest.raises(ConfigurationError, match=r"write 'api-key' = '\$\{NAME\}'"):
        Work(agent=spec)

    named, variables = keys_in_environment(spec, catalog.secrets)

    assert variables == {"REACTFLOW_CONNECTION_HOUSE_API_KEY": "written-out-key"}
    assert named.critic.model.connection.api_key == "${REACTFLOW_CONNECTION_HOUSE_API_KEY}"
    assert b"written-out-key" not in pickle.dumps(Work(agent=named))


def test_two_connections_that_would_share_a_variable_are_refused():
    script = SCRIPT.format(url="http://127.0.0.1:9/v1", key="first-key")
    script = script.replace("CREATE AGENT critic USING MODEL m", "CREATE AGENT critic USING MODEL n").replace(
        "CREATE AGENT drafter",
        """CREATE CONNECTION `House` WITH ('type' = 'openai', 'endpoint' = 'http://127.0.0.1:9', 'api-key' = 'second');
        CREATE MODEL n WITH ('provider' = 'openai', 'openai.connection' = 'House', 'openai.model_version' = 'any');
        CREATE AGENT drafter""",
    )
    catalog = Catalog(environment={})
    for statement in split(script):
        carry_out(statement, catalog)
    with pytest.raises(ConfigurationError, match="rename one of them"):
        keys_in_environment(catalog.agent("intake"), catalog.secrets)


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"timeout_s": 0}])
def test_numbers_that_cannot_be_are_refused(wrong):
    with pytest.raises(ConfigurationError):
        Work(agent=str.upper, **wrong)
