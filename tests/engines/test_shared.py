"""What workers share: the log of steps, and one purse."""

import asyncio
import errno
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reactflow import ConfigurationError
from reactflow.batch.job import JobStopped
from reactflow.budget import Price
from reactflow.engines.shared import LogPlace, OwnFile, Purse, SharedSpending, last_word, leaving_word
from reactflow.engines.worker import Work
from reactflow.errors import StoreError, WorkflowError
from reactflow.frozen import FrozenDict
from reactflow.loopback import LoopbackServer, reply_text
from reactflow.messages import Usage
from reactflow.specs.catalog import Catalog
from reactflow.specs.files import read_data
from reactflow.sql.logs import COLUMNS

DOLLAR = FrozenDict({"*": Price(input=1e6, output=0)})
"""A dollar for each token that is read."""


def drafter(url="http://127.0.0.1:9/v1"):
    catalog = Catalog(environment={"HOUSE_KEY": "k"})
    connection = {"type": "openai", "endpoint": url, "api-key": "${HOUSE_KEY}"}
    read_data({"connections": {"house": connection}, "models": {"m": MODEL}, "agents": {"drafter": AGENT}}, catalog)
    return catalog.agent("drafter")


MODEL = {"connection": "house", "model_version": "any"}
AGENT = {"model": "m", "prompt": "You draft."}


@pytest.fixture(autouse=True)
def house_key(monkeypatch):
    monkeypatch.setenv("HOUSE_KEY", "from outside")


def logged(folder):
    return [
        json.loads(line) for path in sorted(Path(folder).iterdir()) for line in path.read_text("utf-8").splitlines()
    ]


async def test_each_worker_logs_the_steps_of_its_rows_with_the_columns_of_a_log_table(tmp_path):
    async with LoopbackServer(respond=lambda _: reply_text("灾情\ud800")) as server:
        place = LogPlace(str(tmp_path), "job", "statement-3")
        work = Work(agent=drafter(server.base_url), log=place)
        for key, prompt in (("1", "hail"), ("2", None)):
            worker = pickle.loads(pickle.dumps(work)).open()
            await worker.answer(prompt, key)
            worker.close()

    rows = sorted(logged(tmp_path), key=lambda row: row["request_id"])
    assert {tuple(row) for row in rows} == {COLUMNS}
    assert [(row["request_id"], row["type"]) for row in rows] == [
        ("1", "model_message"),
        ("1", "model_message"),
        ("1", "model_response"),
        ("1", "outcome"),
        ("2", "error"),
        ("2", "outcome"),
    ]
    assert [row["data"] for row in rows][2] == "灾情\ufffd"
    assert {(row["agent_name"], row["job_id"], row["statement_name"]) for row in rows} == {
        ("drafter", "job", "statement-3")
    }
    assert len(list(tmp_path.iterdir())) == 2


def test_a_log_needs_the_names_of_a_spec():
    with pytest.raises(ConfigurationError, match="is no spec"):
        Work(agent=str.upper, log=LogPlace("x"))


def test_a_folder_that_is_not_on_the_worker_is_not_made_there(tmp_path):
    work = Work(agent=drafter(), log=LogPlace(str(tmp_path / "elsewhere")))
    with pytest.raises(ConfigurationError, match=r"elsewhere cannot be used on this worker.*every node sees"):
        work.open()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("full", [OSError(errno.ENOSPC, "No space left on device"), 2])
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, full):
    class Full:
        def write(self, data):
            if isinstance(full, OSError):
                raise full
            return full

    file = OwnFile(str(tmp_path), ".jsonl")
    file.close()
    file._file = Full()
    with pytest.raises(StoreError, match=r"part-\w+\.jsonl cannot be written: (No space|the disk is full)"):
        file.append(b"three")


def test_threads_of_one_worker_spoil_no_sum(tmp_path):
    spending = SharedSpending(Purse(1e9, str(tmp_path)), DOLLAR)
    with ThreadPoolExecutor(8) as threads:
        for _ in range(2_000):
            threads.submit(spending.add, "m", None, taken=Usage(1, 0))

    assert spending.of_all_usd() == spending.cost_usd == 2_000.0
    spending.close()


def test_workers_see_what_all_of_them_have_spent(tmp_path):
    purse = Purse(5.0, str(tmp_path))
    first, second = SharedSpending(purse, DOLLAR), SharedSpending(purse, DOLLAR)
    (tmp_path / "being-made").touch()
    for _ in range(2):
        first.add("m", None, taken=Usage(1, 0))
    second.add("m", None, taken=Usage(2, 0))
    first.close()
    assert (first.cost_usd, second.cost_usd, second.of_all_usd()) == (2.0, 2.0, 4.0)
    assert str(second.used_up()) == "4.0000 of 5.0 dollars are spent; start it again to go on."
    second.close()


async def test_no_row_is_begun_when_the_money_of_all_is_spent(tmp_path):
    usage = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}
    async with LoopbackServer(respond=lambda _: reply_text("done", usage=usage)) as server:
        work = Work(agent=drafter(server.base_url), purse=Purse(2.0, str(tmp_path)), prices=DOLLAR, concurrency=3)
        worker, other = work.open(), work.open()
        await worker.answer("first", "1")
        await other.answer("second", "2")
        late = await asyncio.gather(*(worker.answer("late", str(key)) for key in range(5)), return_exceptions=True)
        worker.close()
        other.close()

    assert [str(row) for row in late] == ["2.0000 of 2.0 dollars are spent; start it again to go on."] * 5
    assert [type(row) for row in late] == [JobStopped] * 5
    assert len(server.requests) == 2


async def test_the_rows_under_way_are_answered_before_the_job_is_stopped(tmp_path):
    spent, may_end, done = asyncio.Event(), asyncio.Event(), []

    async def agent(prompt):
        others.add("m", None, taken=Usage(9, 0))
        spent.set()
        await may_end.wait()
        done.append(prompt)
        return prompt

    purse = Purse(1.0, str(tmp_path))
    others = SharedSpending(purse, DOLLAR)
    worker = Work(agent=agent, purse=purse, prices=DOLLAR, concurrency=2).open()
    slow = asyncio.create_task(worker.answer("slow", "1"))
    await spent.wait()
    late = asyncio.create_task(worker.answer("late", "2"))
    await asyncio.wait([late], timeout=0.05)
    assert not late.done()
    may_end.set()
    with pytest.raises(JobStopped):
        await late
    assert (done, (await slow).response) == (["slow"], "slow")
    worker.close()
    others.close()


def test_last_words_show_half_a_surrogate_pair_as_every_text_does(tmp_path):
    assert last_word(tmp_path / "none") is None
    with pytest.raises(StoreError), leaving_word(str(tmp_path)):
        raise StoreError("行 \ud83d\ude00 \ud83d")

    assert last_word(tmp_path) == "StoreError: 行 😀 \ufffd"


def test_a_purse_needs_prices_and_dollars(tmp_path):
    with pytest.raises(ConfigurationError, match="needs prices"):
        Work(agent=str.upper, purse=Purse(1.0, str(tmp_path)))
    with pytest.raises(ConfigurationError, match="dollars above 0"):
        Purse(float("nan"), str(tmp_path))


async def test_a_worker_leaves_word_of_what_ends_the_job(tmp_path):
    assert last_word(tmp_path) is None
    work = Work(agent=lambda prompt: 1 / 0, handle_exception="fail", last_words=str(tmp_path))
    worker = work.open()
    with pytest.raises(WorkflowError):
        await worker.answer("灾情", "键")
    worker.close()
    assert "Row '键' failed, and handle_exception is 'fail'" in last_word(tmp_path)
    assert last_word(tmp_path).startswith("WorkflowError: ")
    for folder in (str(tmp_path / "elsewhere"), None):
        with pytest.raises(ConfigurationError, match="cannot be used on this worker"):
            Work(agent=drafter(), log=LogPlace(str(tmp_path / "none")), last_words=folder).open()
