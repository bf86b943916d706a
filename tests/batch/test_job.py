"""The job: order, concurrency, policies, money, memory."""

import asyncio
import json
import subprocess
import sys

import pytest

from reactflow.batch.calls import Spending
from reactflow.batch.job import Job, JobSettings, JobStopped, in_flight, run_batch
from reactflow.batch.journal import Journal
from reactflow.batch.limits import Limits
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import open_source
from reactflow.budget import Price
from reactflow.errors import ConfigurationError, WorkflowError
from reactflow.frozen import FrozenDict
from reactflow.messages import Usage
from reactflow.specs.outcome import Outcome, Status
from reactflow.specs.running import AgentRunner
from reactflow.testing import ScriptedChatModel, says


async def batch(agent, source, out, *, asking=None, watch=None, **settings):
    runner = agent if isinstance(agent, AgentRunner) else AgentRunner(agent)
    return await run_batch(
        runner, open_source(source), Sink(out), asking=asking, settings=JobSettings(**settings), watch=watch
    )


async def shout(prompt):
    await asyncio.sleep(0)
    return prompt.upper()


# ------------------------------------------------------------------------------------------------ in flight


async def gathered(*args, **settings):
    return [pair async for pair in in_flight(*args, **settings)]


async def slow_first(number):
    await asyncio.sleep(0.05 if number == 0 else 0)
    return -number


async def test_results_come_in_the_order_of_the_items_or_as_they_are_done():
    assert await gathered(range(4), slow_first, concurrency=4) == [(0, 0), (1, -1), (2, -2), (3, -3)]
    assert (await gathered(range(4), slow_first, concurrency=4, ordered=False))[-1] == (0, 0)


@pytest.mark.parametrize("ordered", [True, False])
async def test_no_more_than_so_many_are_under_way_or_wait(ordered):
    taken, running, peak = 0, 0, 0

    def items():
        nonlocal taken
        for number in range(50):
            taken += 1
            yield number

    async def work(number):
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.001)
        running -= 1
        return number

    seen = 0
    async for _ in in_flight(items(), work, concurrency=5, window=10, ordered=ordered):
        seen += 1
        assert taken <= seen + 10
    assert (seen, peak) == (50, 5)


async def test_what_the_work_raises_comes_out_and_the_rest_is_cancelled():
    cancelled = []

    async def work(number):
        if number == 1:
            raise KeyError(number)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    with pytest.raises(KeyError):
        await gathered(range(3), work, concurrency=3)
    assert sorted(cancelled) == [0, 2]


async def test_what_the_items_raise_comes_out():
    def items():
        yield 1
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        await gathered(items(), slow_first, concurrency=2)


async def test_a_reader_that_stops_early_leaves_nothing_running():
    before = len(asyncio.all_tasks())
    results = in_flight(range(100), slow_first, concurrency=3, ordered=False)

    await anext(results)
    await results.aclose()

    assert len(asyncio.all_tasks()) == before


# ------------------------------------------------------------------------------------------------ rows to rows


async def test_each_row_is_written_once_with_status_response_and_metadata(rows, read, tmp_path):
    source = rows({"id": 1, "prompt": "你好 a"}, {"id": 2, "prompt": "b", "status": "old"})

    report = await batch(shout, source, tmp_path / "out.jsonl")

    metadata = {"stop_reason": "answered"}
    assert read(tmp_path / "out.jsonl") == [
        {"id": 1, "prompt": "你好 a", "status": "SUCCESS", "response": "你好 A", "metadata": metadata},
        {"id": 2, "prompt": "b", "input_status": "old", "status": "SUCCESS", "response": "B", "metadata": metadata},
    ]
    assert (report.rows, report.written, report.by_status, report.fraction) == (2, 2, {"SUCCESS": 2}, 1.0)


async def test_one_poison_row_is_a_row_with_a_status_and_the_job_goes_on(tmp_path, read):
    source = tmp_path / "in.jsonl"
    source.write_text(
        '{"prompt": "a"}\n{"prompt"\n{"prompt": null}\n{"other": 1}\n{"prompt": "boom"}\n{"prompt": "z"}\n'
    )

    async def agent(prompt):
        if prompt == "boom":
            raise RuntimeError("the prompt was boom")
        return prompt

    report = await batch(agent, source, tmp_path / "out.jsonl")

    out = read(tmp_path / "out.jsonl")
    assert [row["status"] for row in out] == ["SUCCESS", "FAILED", "FAILED", "FAILED", "FAILED", "SUCCESS"]
    errors = [row["metadata"]["error"] for row in out[1:5]]
    assert errors[0].startswith("Row 2 is no JSON")
    assert errors[1:] == [
        "The prompt is NULL, so nothing was asked.",
        "The row has no column 'prompt'.",
        "RuntimeError",
    ]
    assert report.by_status == {"SUCCESS": 2, "FAILED": 4}


async def test_a_failing_row_can_end_the_job(rows, tmp_path):
    async def agent(prompt):
        raise RuntimeError(prompt)

    with pytest.raises(WorkflowError, match="Row '1' failed, and handle_exception is 'fail': RuntimeError"):
        await batch(agent, rows({"id": 1, "prompt": "a"}), tmp_path / "out.jsonl", handle_exception="fail")

    assert not (tmp_path / "out.jsonl").exists()


async def turns_of_the_loop():
    for _ in range(500):
        await asyncio.sleep(0)


@pytest.mark.parametrize("failing", ["the row", "the watcher"])
async def test_a_job_that_has_failed_pays_for_no_call_more(rows, tmp_path, monkeypatch, failing):
    calls = 0

    async def agent(prompt):
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        if prompt == "1" and failing == "the row":
            raise RuntimeError
        return prompt

    def watch(report):
        if failing == "the watcher":
            raise WorkflowError("broken", role="watcher", iteration=1)

    source = rows(*({"prompt": str(number)} for number in range(2_000)))
    with pytest.raises(WorkflowError) as error:  # which holds the frames that a collector would close
        await batch(agent, source, tmp_path / "out.jsonl", concurrency=5, handle_exception="fail", watch=watch)
    at_the_error = calls
    await turns_of_the_loop()

    assert (calls, error.value is not None) == (at_the_error, True)
    assert calls < 20


AT_THE_LIMIT = Outcome(Status.MAX_ITERATIONS, "draft", FrozenDict(stop_reason="max_iterations"))


@pytest.mark.parametrize(
    ("policy", "written"),
    [
        ("return", [("MAX_ITERATIONS", "draft")]),
        ("drop", []),
        ("fail", [("FAILED", None)]),
        (None, [("MAX_ITERATIONS", "draft")]),
    ],
)
async def test_rows_at_a_limit_are_returned_dropped_or_failed(rows, read, tmp_path, policy, written):
    report = await batch(
        lambda prompt: AT_THE_LIMIT, rows({"prompt": "a"}), tmp_path / "out.jsonl", on_exhausted=policy
    )

    assert [(row["status"], row["response"]) for row in read(tmp_path / "out.jsonl")] == written
    assert report.rows == 1


async def test_only_approved_rows_are_written_where_that_is_asked_for(rows, read, tmp_path):
    outcomes = {
        "approved": Outcome(Status.SUCCESS, "a", FrozenDict(approved=True)),
        "answered": Outcome(Status.SUCCESS, "b", FrozenDict(approved=False)),
        "limit": AT_THE_LIMIT,
        "failed": Outcome(Status.FAILED, None),
    }
    source = rows(*({"prompt": name} for name in outcomes))

    report = await batch(outcomes.get, source, tmp_path / "out.jsonl", only_approved=True)

    assert [row["prompt"] for row in read(tmp_path / "out.jsonl")] == ["approved"]
    assert (report.rows, report.written) == (4, 1)


async def test_only_approved_needs_somebody_who_reviews(rows, tmp_path):
    with pytest.raises(ConfigurationError, match="Nobody reviews"):
        await batch(ScriptedChatModel(), rows({"prompt": "a"}), tmp_path / "out.jsonl", only_approved=True)


@pytest.mark.parametrize("settings", [{"concurrency": 0}, {"concurrency": True}, {"max_cost_usd": 1.0}])
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(ConfigurationError):
        JobSettings(**settings)


async def test_a_journal_needs_to_know_the_agent_it_keeps_answers_of():
    with pytest.raises(ConfigurationError, match="needs a fingerprint"):
        Job(AgentRunner(shout), JobSettings(journal=Journal(":memory:")))


async def test_a_watcher_hears_how_far_the_job_is(rows, tmp_path):
    heard = []

    await batch(
        shout,
        rows(*({"prompt": str(number)} for number in range(5))),
        tmp_path / "out.jsonl",
        watch=lambda report: heard.append((report.rows, report.fraction > 0)),
    )

    assert heard == [(number, True) for number in range(1, 6)]


async def test_the_job_stops_when_its_money_is_used_up_and_the_same_command_goes_on(rows, read, tmp_path):
    source = rows(*({"id": number, "prompt": f"question {number}"} for number in range(6)))
    journal = Journal(tmp_path / "answers.db")

    async def run(model):
        spending = Spending({"*": Price(input=1, output=0)})
        settings = {"journal": journal, "fingerprint": "x", "spending": spending, "max_cost_usd": 2.5, "concurrency": 1}
        return await batch(model, source, tmp_path / "out.jsonl", **settings)

    dollar = Usage(1_000_000, 0)
    with pytest.raises(JobStopped, match=r"3\.0000 of 2\.5 dollars are spent after 3 rows; start it again to go on"):
        await run(ScriptedChatModel(*(says("yes", usage=dollar) for _ in range(3))))
    assert not (tmp_path / "out.jsonl").exists()

    report = await run(ScriptedChatModel(*(says("no", usage=Usage(1, 0)) for _ in range(3))))

    assert [row["response"] for row in read(tmp_path / "out.jsonl")] == ["yes"] * 3 + ["no"] * 3
    assert report.from_journal == 3


async def test_a_row_sends_its_request_before_the_next_one_begins(rows, tmp_path):
    told = []

    async def agent(prompt):
        told.append(f"begin {prompt}")
        asyncio.get_running_loop().call_soon(told.append, f"send {prompt}")  # as an HTTP client does
        await asyncio.sleep(0.01)
        return prompt

    await batch(agent, rows({"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"}), tmp_path / "out.jsonl")

    assert told == ["begin a", "send a", "begin b", "send b", "begin c", "send c"]


async def test_requests_a_minute_hold_for_the_whole_job(rows, tmp_path, quickest):
    source = rows(*({"prompt": str(number)} for number in range(14)))

    def run():
        return batch(shout, source, tmp_path / "out.jsonl", limits=Limits(requests=600))

    assert 0.38 <= await quickest(run, below=1.0) < 1.0


async def test_a_hundred_calls_are_in_flight_all_the_time(rows, tmp_path):
    source = rows(*({"prompt": str(number)} for number in range(1000)))
    hundred = asyncio.Barrier(100)

    async def agent(prompt):
        await hundred.wait()  # of fewer none would ever be done
        return prompt

    journal = Journal(tmp_path / "answers.db")
    report = await batch(agent, source, tmp_path / "out.jsonl", concurrency=100, journal=journal, fingerprint="x")

    assert report.by_status == {"SUCCESS": 1000}


MEMORY = """
import asyncio, json, resource, sys
from reactflow.batch.job import JobSettings, run_batch
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import open_source
from reactflow.specs.running import AgentRunner

async def agent(prompt):
    return prompt

async def main(folder):
    peaks = []
    for name in ("small", "large"):
        await run_batch(AgentRunner(agent), open_source(f"{folder}/{name}.jsonl"), Sink(f"{folder}/out.jsonl"))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps(peaks))

asyncio.run(main(sys.argv[1]))
"""


def test_memory_does_not_grow_with_the_file(tmp_path):
    for name, count in (("small", 2_000), ("large", 30_000)):
        with (tmp_path / f"{name}.jsonl").open("w") as file:
            for number in range(count):
                file.write(json.dumps({"id": number, "prompt": "x" * 1000}) + "\n")

    done = subprocess.run([sys.executable, "-c", MEMORY, tmp_path], capture_output=True, text=True, check=True)

    small, large = json.loads(done.stdout)
    assert large - small < 8  # MB; the larger file has 30
