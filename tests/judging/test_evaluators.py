import asyncio
import functools
import re
import threading

import pytest

from reactflow.agent import SimpleReactAgent
from reactflow.budget import Budget
from reactflow.errors import ConfigurationError, ProviderError, WorkflowError
from reactflow.judge import Draft, Evaluator, LLMJudge
from reactflow.judging.evaluators import EvaluatorList, FunctionEvaluator, SchemaEvaluator, as_evaluator
from reactflow.messages import AssistantMessage, UserMessage
from reactflow.model import ChatRequest, ChatResponse, Run
from reactflow.phrases import CHINESE, ENGLISH
from reactflow.reflection import ReflectionAgent
from reactflow.result import Issue, Judgement, StopReason
from reactflow.testing import ScriptedChatModel
from reactflow.workflows.best_of_n import BestOfN


def draft_of(text="hello", question="Say hello."):
    return Draft(question, text, "", ChatRequest(messages=(), run=Run(UserMessage(question))))


def judged(evaluator, text="hello", question="Say hello."):
    return as_evaluator(evaluator).evaluate(draft_of(text, question))


class Gives:
    """An evaluator that gives what it was made with, and counts."""

    def __init__(self, outcome, *, uses_model=False, log=None, name=""):
        self.outcome, self.uses_model, self.log, self.name = outcome, uses_model, log, name

    async def evaluate(self, draft):
        if self.log is not None:
            self.log.append(self.name)
        return self.outcome


class Approving:
    name = "approving"

    async def complete(self, request):
        return ChatResponse(AssistantMessage('{"passed": true}'))


def test_an_evaluator_is_one_already():
    evaluator = Gives(True)

    assert as_evaluator(evaluator) is evaluator


async def test_a_model_becomes_a_judge():
    model = Approving()

    assert as_evaluator(model) == LLMJudge(model)
    assert await judged(model) == Judgement(True)


def test_a_schema_a_type_a_list_and_a_function_become_evaluators():
    assert isinstance(as_evaluator({"type": "object"}), SchemaEvaluator)
    assert isinstance(as_evaluator(dict[str, int]), SchemaEvaluator)
    assert isinstance(as_evaluator([len]), EvaluatorList)
    assert isinstance(as_evaluator((len,)), EvaluatorList)
    assert isinstance(as_evaluator(len), FunctionEvaluator)
    assert all(isinstance(as_evaluator(each), Evaluator) for each in ({"type": "object"}, [len], len))


@pytest.mark.parametrize("value", [None, 3, "strict", 0.5, {1, 2}])
def test_what_judges_nothing_is_named(value):
    with pytest.raises(ConfigurationError, match=re.escape(f"{value!r} judges nothing")):
        as_evaluator(value)


@pytest.mark.parametrize("value", [Gives, Approving])
def test_a_class_is_not_taken_for_its_instance(value):
    with pytest.raises(ConfigurationError, match=rf"is a class; give an instance, {value.__name__}\(\.\.\.\)"):
        as_evaluator(value)


async def test_a_function_gets_the_draft():
    seen = []

    def check(draft):
        seen.append(draft)
        return True

    assert await judged(check) == Judgement(True)
    assert [draft.text for draft in seen] == ["hello"]


async def test_a_function_whose_parameter_is_a_str_gets_the_text():
    def plain(text: str) -> bool:
        return text == "hello"

    async def later(text: "str", strict: bool = False) -> bool:
        return text == "hello"

    class Callable:
        async def __call__(self, text: str) -> bool:
            return text == "hello"

    for function in (plain, later, Callable()):
        assert await judged(function) == Judgement(True)


async def test_a_partial_gets_the_draft():
    assert await judged(functools.partial(lambda draft, words: draft.text == words, words="hello")) == Judgement(True)


async def test_an_annotation_that_cannot_be_resolved_is_no_obstacle():
    def check(draft: "NotImportedHere") -> bool:  # noqa: F821
        return draft.text == "hello"

    assert await judged(check) == Judgement(True)


@pytest.mark.parametrize(
    ("value", "judgement"),
    [
        (True, Judgement(True)),
        (False, Judgement(False, ENGLISH.generic_feedback)),
        ((False, "Add the date."), Judgement(False, "Add the date.")),
        ((False, ""), Judgement(False, ENGLISH.generic_feedback)),
        ((False, None), Judgement(False, ENGLISH.generic_feedback)),
        ((True, None), Judgement(True)),
        ((True, "Fine."), Judgement(True, "Fine.")),
        (Judgement(False, "x", 0.5), Judgement(False, "x", 0.5)),
    ],
)
async def test_a_function_returns_a_bool_a_pair_or_a_judgement(value, judgement):
    assert await judged(lambda draft: value) == judgement


@pytest.mark.parametrize("value", [None, "", "fine", 1, 0, [], (True,), (True, "x", 1), ("yes", "x"), (False, 7)])
async def test_anything_else_is_an_error_so_that_a_forgotten_return_does_not_pass(value):
    def is_short(draft):
        return value

    with pytest.raises(ConfigurationError, match="Evaluator is_short returned"):
        await judged(is_short)


async def test_a_bare_no_gets_feedback_in_the_language_of_the_question():
    assert (await judged(lambda draft: False, question="为什么？")).feedback == CHINESE.generic_feedback


async def test_a_plain_function_does_not_block_the_loop():
    names, all_here = [], threading.Barrier(10, timeout=60)

    def slow(draft):
        names.append(threading.current_thread().name)
        all_here.wait()
        return True

    await asyncio.gather(*(judged(slow) for _ in range(10)))

    assert set(names) == {"reactflow-call"}


async def test_a_plain_function_that_returns_an_awaitable_is_awaited():
    async def later(draft):
        return True

    assert await judged(lambda draft: later(draft)) == Judgement(True)


async def test_what_a_function_raises_passes_through():
    def broken(draft):
        raise ZeroDivisionError("oops")

    with pytest.raises(ZeroDivisionError):
        await judged(broken)


@pytest.mark.parametrize("function", [lambda: True, lambda draft, other: True, lambda *, draft: True])
def test_a_function_must_take_exactly_one_argument(function):
    with pytest.raises(ConfigurationError, match="must take exactly one argument"):
        as_evaluator(function)


async def test_a_function_without_a_signature_gets_the_draft():
    with pytest.raises(ConfigurationError, match="returned 3"):
        await judged(functools.partial(max, 3, key=lambda each: each == 3))
    assert as_evaluator(dict.fromkeys).uses_model is False


def test_a_function_can_say_that_it_asks_a_model():
    def check(draft):
        return True

    assert as_evaluator(check).uses_model is False
    check.uses_model = True
    assert as_evaluator(check).uses_model is True


async def test_a_list_passes_what_all_of_it_pass():
    assert await judged([Gives(True), Gives(Judgement(True, score=0.8)), lambda draft: True]) == Judgement(
        True, score=0.8
    )


async def test_all_that_is_wrong_is_said_at_once():
    judgement = await judged([Gives(Judgement(False, "Too long.")), Gives(True), lambda draft: (False, "No date.")])

    assert judgement == Judgement(False, "Too long.\n\nNo date.")


async def test_no_model_is_asked_about_a_draft_that_code_rejects():
    log = []
    evaluators = [
        Gives(True, uses_model=True, log=log, name="model"),
        Gives(False, log=log, name="first check"),
        Gives(True, log=log, name="second check"),
    ]

    assert (await judged(evaluators)).passed is False
    assert log == ["first check", "second check"]


async def test_models_come_after_code_in_their_own_order():
    log = []
    evaluators = [
        Gives(True, uses_model=True, log=log, name="model 1"),
        Gives(True, log=log, name="check"),
        Gives(Judgement(False, "m2"), uses_model=True, log=log, name="model 2"),
        Gives(Judgement(False, "m3"), uses_model=True, log=log, name="model 3"),
    ]

    assert await judged(evaluators) == Judgement(False, "m2\n\nm3")
    assert log == ["check", "model 1", "model 2", "model 3"]


async def test_the_lowest_score_and_confidence_count_and_nothing_is_lost():
    judgement = await judged(
        [
            Gives(Judgement(True, "nice", 0.9, 0.5, (Issue("a"),), flags=("x", "y"))),
            Gives(Judgement(False, "bad", 0.4, 0.7, (Issue("b"),), flags=("x",))),
            Gives(Judgement(False, None, None, None, status="unjudged")),
        ]
    )

    assert judgement == Judgement(False, "bad", 0.4, 0.5, (Issue("a"), Issue("b")), "judged", ("x", "y"))


@pytest.mark.parametrize(
    ("others", "status"),
    [
        ([Judgement(True), Judgement(True, status="unjudged")], "unjudged"),
        ([Judgement(False, status="unjudged"), Judgement(True)], "unjudged"),
        ([Judgement(False, "no"), Judgement(True, status="unjudged")], "judged"),
        ([Judgement(False, "so", status="unjudged"), Judgement(False, "no")], "judged"),
    ],
)
async def test_a_rejection_is_one_beside_an_evaluator_that_could_not_judge(others, status):
    judgement = await judged([Gives(each) for each in others])

    assert (judgement.passed, judgement.status) == (
        False if status == "judged" else all(o.passed for o in others),
        status,
    )
    assert judgement.feedback == ("no" if status == "judged" else None)


class Fails:
    uses_model = True

    async def evaluate(self, draft):
        raise ProviderError("HTTP 500")


@pytest.mark.parametrize("order", [1, -1])
async def test_a_rejection_is_one_beside_an_evaluator_whose_model_failed(order):
    judgement = await judged([Gives(Judgement(False, "no"), uses_model=True), Fails()][::order])

    assert judgement == Judgement(False, "no", flags=("One of the evaluators failed: HTTP 500",))


def a_workflow_whose_drafter(raises):
    def drafter(prompt):
        raise raises

    return BestOfN(drafter, lambda draft: True, 1)


async def test_a_rejection_stands_beside_a_judging_workflow_whose_model_failed():
    workflow = a_workflow_whose_drafter(raises=ProviderError("HTTP 500"))

    judgement = await judged([Gives(Judgement(False, "no"), uses_model=True), workflow])

    assert (judgement.passed, judgement.feedback) == (False, "no")
    assert judgement.flags[0].startswith("One of the evaluators failed: The drafter failed in iteration 1")
    with pytest.raises(WorkflowError, match="HTTP 500"):
        await judged([Gives(True), workflow])


async def test_a_mistake_in_a_judging_workflow_is_not_hidden_by_a_rejection():
    workflow = a_workflow_whose_drafter(raises=KeyError("price"))

    with pytest.raises(WorkflowError, match="KeyError: 'price'"):
        await judged([Gives(Judgement(False, "no"), uses_model=True), workflow])


async def test_a_rejection_stands_beside_a_judging_agent_that_reached_its_own_limit():
    spent = SimpleReactAgent(model=ScriptedChatModel(), budget=Budget(max_seconds=1e-9))

    result = await ReflectionAgent(
        model=ScriptedChatModel("a", "b"),
        evaluator=[Gives(Judgement(False, "no"), uses_model=True), as_evaluator(spent)],
    ).arun("Q")

    assert (result.stop_reason, len(result.reflections)) == (StopReason.MAX_REFLECTION_ROUNDS, 2)


@pytest.mark.parametrize("part", [{"issues": iter([Issue("g", severity=5)])}, {"flags": "abc"}, {"flags": None}])
async def test_a_judgement_with_what_is_no_list_is_refused(part):
    with pytest.raises(ConfigurationError, match=f"returned {next(iter(part))}="):
        await judged([Gives(Judgement(False, "no", **part))])


def test_a_class_of_agents_is_none():
    with pytest.raises(ConfigurationError, match="is a class; give an instance"):
        as_evaluator(SimpleReactAgent)


async def test_a_model_that_failed_is_an_error_where_nobody_rejected_the_draft():
    with pytest.raises(ProviderError, match="HTTP 500"):
        await judged([Gives(True), Fails(), Gives(True, uses_model=True)])


async def test_praise_is_kept_where_all_pass():
    assert (await judged([Gives(Judgement(True, "nice")), Gives(Judgement(True, "good"))])).feedback == "nice\n\ngood"


def test_lists_in_lists_are_flattened():
    first, second, third = Gives(True), Gives(True), Gives(True, uses_model=True)

    evaluator = as_evaluator([first, [second, (third,)]])

    assert evaluator.evaluators == (first, second, third)
    assert evaluator.uses_model is True
    assert as_evaluator([first]).uses_model is False


async def test_a_judgement_of_one_in_a_list_is_checked():
    with pytest.raises(ConfigurationError, match="Evaluator Gives returned score=7"):
        await judged([Gives(Judgement(True, score=7))])


@pytest.mark.parametrize("value", [[], (), [[]]])
def test_an_empty_list_is_refused(value):
    with pytest.raises(ConfigurationError, match="empty list of evaluators would pass everything"):
        as_evaluator(value)


async def test_an_error_of_one_in_a_list_passes_through():
    class Down:
        name = "down"

        async def complete(self, request):
            raise ProviderError("down")

    with pytest.raises(ProviderError):
        await judged([lambda draft: True, Down()])
