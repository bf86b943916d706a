"""What a worker of Ray does with a batch; whole jobs on Ray are in tests/proof."""

import json
from importlib.util import find_spec

import pyarrow
import pytest

from reactflow import ConfigurationError, WorkflowError
from reactflow.batch.rows import Asking
from reactflow.engines import ray
from reactflow.engines.worker import Work


async def said(batch, asking=None, **policies):
    async def shout(prompt):
        return prompt.upper()

    actor = ray.AgentActor(Work(agent=shout, **policies), asking or Asking("text", "id"))
    (table,) = [table async for table in actor(pyarrow.table(batch))]
    return table.to_pylist()


async def test_each_row_keeps_its_columns_and_gets_its_own_answer():
    rows = await said({"id": [1, 2, 3], "text": ["a", "中b", None], "status": ["x", "y", "z"]})
    assert [(row["id"], row["input_status"], row["status"], row["response"]) for row in rows] == [
        (1, "x", "SUCCESS", "A"),
        (2, "y", "SUCCESS", "中B"),
        (3, "z", "FAILED", None),
    ]
    assert json.loads(rows[2]["metadata"])["error_type"] == "NoPrompt"


async def test_no_two_columns_get_one_name():
    (row,) = await said({"id": [1], "text": ["a"], "status": ["new"], "input_status": ["old"]})
    assert (row["status"], row["input_status"], row["input_input_status"]) == ("SUCCESS", "old", "new")


async def test_a_row_without_a_key_is_a_row_that_failed():
    rows = await said({"id": ["1", None], "text": ["a", "b"]})
    assert [row["status"] for row in rows] == ["SUCCESS", "FAILED"]
    assert json.loads(rows[1]["metadata"]) == {
        "error": "Column 'id', the key, is empty.",
        "error_type": "BadRow",
        "model_calls": 0,
    }


async def test_a_failing_row_ends_the_job_where_that_was_asked_for():
    with pytest.raises(ExceptionGroup) as raised:
        await said({"id": ["1"], "text": [None]}, handle_exception="fail")
    assert isinstance(raised.value.exceptions[0], WorkflowError)


async def test_a_column_that_is_not_there_is_a_mistake_of_the_caller():
    with pytest.raises(ConfigurationError, match="There is no column 'question'"):
        await said({"id": ["1"], "text": ["a"]}, Asking("question", "id"))


async def test_an_empty_batch_stays_empty():
    batch = {"id": pyarrow.array([], pyarrow.string()), "text": pyarrow.array([], pyarrow.string())}
    assert await said(batch) == []


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"workers": True}, {"cpus": 0}])
def test_numbers_that_cannot_be_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="give a whole number"):
        ray.answer(None, Work(), **wrong)


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed here")
def test_a_missing_extra_is_named():
    with pytest.raises(ConfigurationError, match=r"pip install 'reactflow\[ray\]'"):
        ray.ray_data()
