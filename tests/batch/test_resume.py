"""The same command again: what was paid for is kept, whatever ended the job."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from reactflow.agent import SimpleReactAgent
from reactflow.batch.calls import Spending
from reactflow.batch.job import JobSettings, run_batch
from reactflow.batch.journal import Journal
from reactflow.batch.sinks import Sink
from reactflow.batch.sources import open_source
from reactflow.messages import Usage
from reactflow.specs.running import AgentRunner
from reactflow.testing import ScriptedChatModel, calls, says
from reactflow.workflows.drafter_critic import DrafterCritic


async def batch(agent, source, out, **settings):
    return await run_batch(AgentRunner(agent), open_source(source), Sink(out), settings=JobSettings(**settings))


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


async def cut_off(agent, reached, *where, **settings):
    """Run the job until the model waits, and end it there."""
    task = asyncio.create_task(batch(agent, *where, **settings))
    await reached.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def waiting():
    """A reply that never comes, and the event that it is waited for."""
    reached = asyncio.Event()

    async def wait(_):
        reached.set()
        await asyncio.Event().wait()

    return wait, reached


async def test_a_row_cut_off_in_the_middle_goes_on_after_the_answers_it_has(rows, read, tmp_path):
    where = rows({"id": 1, "prompt": "Write."}), tmp_path / "out.jsonl"
    kept = {"journal": Journal(tmp_path / "answers.db"), "fingerprint": "x"}
    no = json.dumps({"verdict": "REQUIRED_CHANGES", "confidence": 0.1, "issues": [], "suggestions": "longer"})
    yes = json.dumps({"verdict": "APPROVED", "confidence": 0.9, "issues": [], "suggestions": ""})
    cut, reached = waiting()
    first = ScriptedChatModel(says("one", usage=Usage(3, 1)), says(no, usage=Usage(3, 1)), cut)
    await cut_off(DrafterCritic(first, first), reached, *where, **kept)

    rest = ScriptedChatModel(says("two longer", usage=Usage(3, 1)), says(yes, usage=Usage(3, 1)))
    spending = Spending()
    await batch(DrafterCritic(rest, rest), *where, **kept, spending=spending)

    (row,) = read(tmp_path / "out.jsonl")
    assert (row["status"], row["response"]) == ("SUCCESS", "two longer")
    assert (row["metadata"]["model_calls"], row["metadata"]["input_tokens"]) == (4, 12)  # what the row cost in all
    assert (spending.usage, spending.replayed) == (Usage(6, 2, model_calls=2), 2)  # what this run cost
    rest.assert_finished()


async def test_a_row_cut_off_after_tools_ran_goes_on_with_their_results(rows, read, tmp_path):
    where = rows({"id": 1, "prompt": "Look."}), tmp_path / "out.jsonl"
    kept = {"journal": Journal(tmp_path / "answers.db"), "fingerprint": "x"}
    ran = []

    def look(where: str) -> str:
        """Look somewhere; what is there is never the same."""
        ran.append(where)
        if where == "down":
            raise LookupError("dark")
        return f"你好 {len(ran)}"

    cut, reached = waiting()
    first = ScriptedChatModel(calls("look", where="up") + calls("look", where="up"), calls("look", where="down"), cut)
    await cut_off(SimpleReactAgent(model=first, tools=[look]), reached, *where, **kept)

    rest = ScriptedChatModel(calls("look", where="up"), says("done"))
    report = await batch(SimpleReactAgent(model=rest, tools=[look]), *where, **kept)

    assert ran == ["up", "up", "down", "up"]
    assert rest.seen[0].messages == first.seen[2].messages
    assert report.spending.replayed == 2
    assert read(tmp_path / "out.jsonl")[0]["metadata"]["model_calls"] == 4
    rest.assert_finished()


async def test_a_tool_that_asks_a_model_runs_again_and_gets_the_answers_it_had(rows, read, tmp_path):
    where = rows({"id": 1, "prompt": "Ask."}), tmp_path / "out.jsonl"
    kept = {"journal": Journal(tmp_path / "answers.db"), "fingerprint": "x"}

    def asking(model, expert):
        tool = SimpleReactAgent(model=expert).as_tool("expert", description="Knows.")
        return SimpleReactAgent(model=model, tools=[tool])

    cut, reached = waiting()
    question = calls("expert", question="why?")
    await cut_off(asking(ScriptedChatModel(question, cut), ScriptedChatModel(says("because"))), reached, *where, **kept)

    await batch(asking(ScriptedChatModel(says("done")), ScriptedChatModel()), *where, **kept)

    (row,) = read(tmp_path / "out.jsonl")
    assert (row["response"], row["metadata"]["model_calls"]) == ("done", 3)


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

folder, blocked, enough = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
ended = 0
log = open(folder / "calls.log", "a", buffering=1)

class Model:
    name = "counting"

    async def complete(self, request):
        global ended
        text = request.messages[-1].text
        row = text[text.index("row-"):][:8]
        if int(row[4:]) >= blocked:
            await asyncio.Event().wait()
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
        ended += 1
        if ended == enough:
            print("enough", flush=True)
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

    def start(blocked, enough=0):
        command = [sys.executable, "-c", JOB, tmp_path, str(blocked), str(enough)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    # Killed twice, the second time while it goes on after the first.  From some row on answers do not come, so that
    # it cannot be done before the kill; what it does at that moment is left to chance.
    for blocked, enough in ((75, 60), (140, 100)):
        process = start(blocked, enough)
        assert "enough\n" in process.stdout  # waits for that line
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert not (tmp_path / "out.jsonl").exists()

    process = start(blocked=count)
    printed, _ = process.communicate()
    assert process.returncode == 0

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
