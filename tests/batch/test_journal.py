"""What was paid for is on disk before it is used."""

import sqlite3
from contextlib import closing

import pytest

from reactflow.batch.calls import RowCalls, Spending
from reactflow.batch.journal import Journal, RowId
from reactflow.batch.limits import Limits
from reactflow.budget import Price
from reactflow.errors import StoreError
from reactflow.frozen import FrozenDict
from reactflow.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage
from reactflow.model import ChatRequest, ChatResponse, Run
from reactflow.specs.outcome import Outcome, Status
from reactflow.testing import ScriptedChatModel, says

ROW = RowId.of("spec", "7", "Write.")


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "answers.db")
    yield made
    made.close()


def request(*texts):
    question = UserMessage(texts[-1])
    before = tuple(SystemMessage(text) for text in texts[:-1])
    return ChatRequest(messages=(*before, question), run=Run(question=question))


def calls_of(journal, row=ROW, **more):
    return RowCalls(row, journal=journal, limits=Limits(), spending=Spending(), **more)


def test_a_response_comes_back_from_disk_as_it_was(journal):
    message = AssistantMessage("你好 \ud800", (ToolCall("1", "add", '{"a": 1}'),), FrozenDict(reasoning="hm"))
    response = ChatResponse(message, Usage(3, 4, 1), "tool_calls")

    journal.note(ROW, "s", response)

    assert journal.step(ROW, "s") == response
    assert journal.step(ROW, "another") is None
    assert journal.step(RowId.of("spec", "7", "Write it."), "s") is None


def test_a_response_without_usage_comes_back_without(journal):
    journal.note(ROW, "s", ChatResponse(AssistantMessage("hi")))

    assert journal.step(ROW, "s") == ChatResponse(AssistantMessage("hi"))


def test_the_result_of_a_tool_comes_back_from_disk_as_it_was(journal):
    result = ToolMessage("你好 \ud800", "1", "add", is_error=True)

    journal.note(ROW, "s", result)

    assert journal.step(ROW, "s") == result


def test_a_response_that_has_no_json_form_is_not_kept(journal):
    journal.note(ROW, "s", ChatResponse(AssistantMessage("hi", extra={"odd": object()})))

    assert journal.step(ROW, "s") is None


def test_a_finished_row_is_kept_and_its_steps_are_not(journal):
    outcome = Outcome(Status.MAX_ITERATIONS, "draft 中文", FrozenDict(stop_reason="max_iterations", iterations=3))
    journal.note(ROW, "s", ChatResponse(AssistantMessage("hi")))

    journal.finish(ROW, outcome)

    assert journal.finished(ROW) == outcome
    assert journal.step(ROW, "s") is None


@pytest.mark.parametrize("transient", [True, False])
def test_a_failed_row_is_tried_again_with_its_answers_unless_the_model_itself_failed(journal, transient):
    journal.note(ROW, "s", ChatResponse(AssistantMessage("hi")))

    journal.finish(ROW, Outcome(Status.FAILED, None, FrozenDict({"transient": True} if transient else {})))

    assert journal.finished(ROW) is None
    assert (journal.step(ROW, "s") is not None) is transient


def test_a_file_that_is_no_journal_is_a_clear_error(tmp_path):
    (tmp_path / "x").write_text("no database, " * 100)

    with pytest.raises(StoreError, match="Delete it, or name another with --cache"):
        Journal(tmp_path / "x")


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        ("UPDATE finished SET metadata = '{\"a'", "JSONDecodeError"),
        ("UPDATE finished SET metadata = NULL", "TypeError"),
        ("UPDATE finished SET metadata = '[1]'", "TypeError"),
        ("UPDATE finished SET status = 'DONE'", "ValueError: 'DONE' is not a valid Status"),
        ("UPDATE steps SET answer = '{\"te'", "JSONDecodeError"),
        ("UPDATE steps SET answer = '{}'", "KeyError"),
        ("UPDATE steps SET answer = '7'", "TypeError"),
        ("UPDATE steps SET answer = x'ff'", "UnicodeDecodeError"),
    ],
)
def test_a_damaged_row_says_which_file_it_is_and_what_to_do(tmp_path, journal, damage, kind):
    journal.finish(ROW, Outcome(Status.SUCCESS, "a"))
    journal.note(ROW, "s", ChatResponse(AssistantMessage("hi")))
    with closing(sqlite3.connect(tmp_path / "answers.db")) as database, database:
        database.execute(damage)

    with pytest.raises(StoreError) as error:
        journal.finished(ROW) if "finished" in damage else journal.step(ROW, "s")

    said = str(error.value)
    assert said.startswith(f"The answer cache {tmp_path / 'answers.db'} is damaged where it keeps row '7' ({kind}")
    assert said.endswith("Delete the file, or name another with --cache.")


def test_a_key_that_is_half_a_character_is_kept(journal):
    row = RowId.of("spec", "k\ud800", "Write.")
    journal.finish(row, Outcome(Status.SUCCESS, "a"))

    assert journal.finished(row).response == "a"


def test_a_closed_journal_is_a_clear_error(journal):
    journal.close()

    with pytest.raises(StoreError, match="cannot be read"):
        journal.step(ROW, "s")
    with pytest.raises(StoreError, match="cannot be written"):
        journal.note(ROW, "s", ChatResponse(AssistantMessage("hi")))


async def test_what_was_answered_is_not_asked_again(journal):
    model = ScriptedChatModel(says("one", usage=Usage(5, 1)), says("two"))
    first = calls_of(journal)
    assert [(await first(model, request("a"), "agent")).text for _ in range(2)] == ["one", "two"]

    again = calls_of(journal)
    assert [(await again(model, request("a"), "agent")).text for _ in range(2)] == ["one", "two"]

    assert len(model.seen) == 2


async def test_marks_that_are_new_each_time_do_not_make_a_new_question(journal):
    model = ScriptedChatModel(says("one"))
    await calls_of(journal)(model, request("a 0123456789abcdef b"), "critic")

    assert (await calls_of(journal)(model, request("a fedcba9876543210 b"), "critic")).text == "one"


@pytest.mark.parametrize("changed", [("b",), ("system", "a")])
async def test_another_question_is_asked(journal, changed):
    model = ScriptedChatModel(says("one"), says("two"))
    await calls_of(journal)(model, request("a"), "agent")

    assert (await calls_of(journal)(model, request(*changed), "agent")).text == "two"


async def test_another_role_another_row_and_another_agent_are_asked(journal):
    model = ScriptedChatModel(*(says(str(number)) for number in range(4)))
    await calls_of(journal)(model, request("a"), "agent")

    await calls_of(journal)(model, request("a"), "critic")
    await calls_of(journal, RowId.of("spec", "8", "Write."))(model, request("a"), "agent")
    await calls_of(journal, RowId.of("other", "7", "Write."))(model, request("a"), "agent")

    model.assert_finished()


async def test_only_what_was_asked_now_is_counted_as_spent(journal):
    spending = Spending({"*": Price(input=1, output=2)})
    model = ScriptedChatModel(says("one", usage=Usage(1_000_000, 500_000)), says("two"))

    for _ in range(2):
        await RowCalls(ROW, journal=journal, limits=Limits(), spending=spending)(model, request("a"), "agent")
    await RowCalls(ROW, journal=None, limits=Limits(), spending=spending)(model, request("a"), "agent")

    assert (round(spending.cost_usd, 4), spending.replayed) == (2.0, 1)
    assert spending.usage == Usage(1_000_000, 500_000, model_calls=2, unknown_calls=1)


async def test_where_a_server_reports_nothing_money_is_counted_by_a_guess():
    spending = Spending({"*": Price(input=1e6, output=1e6)})
    model = ScriptedChatModel(says("four words, or so...."), says("x", usage=Usage(0, 0, unknown_calls=1)))

    for _ in range(2):
        await RowCalls(ROW, journal=None, limits=Limits(), spending=spending)(model, request("a" * 40), "agent")

    assert spending.cost_usd == (10 + 6) + (10 + 1)
    assert spending.usage.unknown_calls == 2


async def test_what_is_no_response_passes_through_uncounted(journal):
    class Odd:
        name = "odd"

        async def complete(self, request):
            return "text"

    spending = Spending()
    row = RowCalls(ROW, journal=journal, limits=Limits(), spending=spending)

    assert await row(Odd(), request("a"), "agent") == "text"
    assert spending.usage.model_calls == 0


async def test_a_listener_hears_of_each_call_and_each_error(journal):
    heard = []
    listening = calls_of(journal, listen=lambda request, role, said, seconds: heard.append((role, said)))
    trouble = RuntimeError("no")
    model = ScriptedChatModel(says("one"), trouble)

    response = await listening(model, request("a"), "agent")
    with pytest.raises(RuntimeError):
        await listening(model, request("b"), "critic")

    assert heard == [("agent", response), ("critic", trouble)]


async def test_without_a_journal_a_tool_runs_each_time():
    results = [ToolMessage(text, "1", "look") for text in ("one", "two")]

    async def work(results=iter(results)):
        return next(results)

    row = RowCalls(ROW, journal=None, limits=Limits(), spending=Spending())

    assert [await row.run_tool(ToolCall("1", "look", "{}"), work) for _ in range(2)] == results
