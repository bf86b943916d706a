"""The job: order, concurrency, policies, money, and going on after a kill."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

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
from reactflow.workflows.drafter_critic import DrafterCritic


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


async def test_failed_rows_are_tried_again_by_the_same_command(rows, read, tmp_path):
    source = rows({"id": 1, "prompt": "a"}, {"id": 2, "prompt": "b"})
    journal = Journal(tmp_path / "answers.db")
    asked = []

    async def agent(prompt):
        asked.append(prompt)
        if asked.count(prompt) == 1 and prompt == "b":
            raise OSError
        return prompt

    for _ in range(2):
        await batch(agent, source, tmp_path / "out.jsonl", journal=journal, fingerprint="x")

    assert asked == ["a", "b", "b"]
    assert [row["status"] for row in read(tmp_path / "out.jsonl")] == ["SUCCESS", "SUCCESS"]


async def test_a_row_that_was_changed_is_asked_again_and_so_is_another_agent(rows, tmp_path):
    journal = Journal(tmp_path / "answers.db")
    asked = []

    def agent(prompt):
        asked.append(prompt)
        return prompt

    for prompt, fingerprint in (("a", "x"), ("a", "x"), ("b", "x"), ("b", "y")):
        source = rows({"id": 1, "prompt": prompt})
        await batch(agent, source, tmp_path / "out.jsonl", journal=journal, fingerprint=fingerprint)

    assert asked == ["a", "b", "b"]


async def test_a_row_cut_off_in_the_middle_goes_on_after_the_answers_it_has(rows, tmp_path):
    source = rows({"id": 1, "prompt": "Write."})
    journal = Journal(tmp_path / "answers.db")
    no = json.dumps({"verdict": "REQUIRED_CHANGES", "confidence": 0.1, "issues": [], "suggestions": "longer"})
    yes = json.dumps({"verdict": "APPROVED", "confidence": 0.9, "issues": [], "suggestions": ""})

    reached = asyncio.Event()

    async def cut(_):
        reached.set()
        await asyncio.sleep(60)

    first = ScriptedChatModel(says("one", usage=Usage(3, 1)), says(no, usage=Usage(3, 1)), cut)
    task = asyncio.create_task(
        batch(DrafterCritic(first, first), source, tmp_path / "out.jsonl", journal=journal, fingerprint="x")
    )
    await reached.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    rest = ScriptedChatModel(says("two longer", usage=Usage(3, 1)), says(yes, usage=Usage(3, 1)))
    spending = Spending()
    await batch(
        DrafterCritic(rest, rest), source, tmp_path / "out.jsonl", journal=journal, fingerprint="x", spending=spending
    )

    (row,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (row["status"], row["response"]) == ("SUCCESS", "two longer")
    assert (row["metadata"]["model_calls"], row["metadata"]["input_tokens"]) == (4, 12)  # what the row cost in all
    assert (spending.usage, spending.replayed) == (Usage(6, 2, model_calls=2), 2)  # what this run cost
    rest.assert_finished()


async def test_requests_a_minute_hold_for_the_whole_job(rows, tmp_path):
    source = rows(*({"prompt": str(number)} for number in range(14)))
    started = time.monotonic()

    await batch(shout, source, tmp_path / "out.jsonl", limits=Limits(requests=600))

    assert 0.38 <= time.monotonic() - started < 1.0


async def test_a_hundred_calls_are_in_flight_all_the_time(rows, tmp_path):
    source = rows(*({"prompt": str(number)} for number in range(1000)))
    peak = running = 0

    async def agent(prompt):
        nonlocal peak, running
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.2)
        running -= 1
        return prompt

    journal = Journal(tmp_path / "answers.db")
    report = await batch(agent, source, tmp_path / "out.jsonl", concurrency=100, journal=journal, fingerprint="x")

    assert peak == 100
    assert report.elapsed_s < 2.0 * 1.5  # alone it is 2.06; tests/benchmarks has the figure


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


# ------------------------------------------------------------------------------------------------ kill -9

JOB = """
import asyncio, sys
from pathlib import Path
from reactflow.batch.job import JobSettings, run_batch
from reactflow.batch.journal import Journal
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import open_source
from reactflow.messages import AssistantMessage, Usage
from reactflow.model import ChatResponse
from reactflow.specs.running import AgentRunner
from reactflow.workflows.drafter_critic import DrafterCritic

folder = Path(sys.argv[1])
log = open(folder / "calls.log", "a", buffering=1)

class Model:
    name = "counting"

    async def complete(self, request):
        text = request.messages[-1].text
        row = text[text.index("row-"):][:8]
        review = "APPROVED" in text
        again = "longer" in text or "version-2" in text
        step = f"{row} {'review' if review else 'draft'} {'again' if again else 'first'}"
        log.write(f"begin {step}\\n")
        await asyncio.sleep(0.01)
        if review:
            verdict = "APPROVED" if "version-2" in text else "REQUIRED_CHANGES"
            said = '{"verdict": "%s", "confidence": 0.9, "issues": [], "suggestions": "longer"}' % verdict
        else:
            said = f"version-2 of {row}" if "longer" in text else f"version-1 of {row}"
        log.write(f"end {step}\\n")
        return ChatResponse(AssistantMessage(said), Usage(10, 5), "stop")

async def main():
    model = Model()
    settings = JobSettings(concurrency=20, journal=Journal(folder / "answers.db"), fingerprint="x")
    runner = AgentRunner(DrafterCritic(model, model))
    report = await run_batch(runner, open_source(folder / "in.jsonl"), Sink(folder / "out.jsonl"), settings=settings)
    print(report.rows, report.from_journal)

asyncio.run(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_after_kill_9_no_paid_answer_is_asked_again_and_no_row_is_written_twice(rows, read, tmp_path):
    count = 150
    rows(*({"id": number, "prompt": f"Write row-{number:04}."} for number in range(count)))
    log = tmp_path / "calls.log"

    def start():
        return subprocess.Popen([sys.executable, "-c", JOB, tmp_path], stdout=subprocess.PIPE, text=True)

    for paid in (60, 300):  # killed twice, the second time while it goes on after the first
        process = start()
        while not log.exists() or log.read_text().count("end ") < paid:
            assert process.poll() is None
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert not (tmp_path / "out.jsonl").exists()

    process = start()
    printed, _ = process.communicate(timeout=60)

    out = read(tmp_path / "out.jsonl")
    assert [(row["id"], row["status"], row["response"]) for row in out] == [
        (number, "SUCCESS", f"version-2 of row-{number:04}") for number in range(count)
    ]
    assert {row["metadata"]["model_calls"] for row in out} == {4}
    assert int(printed.split()[-1]) > 0
    ends = Counter(line for line in log.read_text().splitlines() if line.startswith("end "))
    assert len(ends) == count * 4
    # One coroutine at most can be between the end of its call and the journal when the kill comes.
    assert sum(ends.values()) - len(ends) <= 2
