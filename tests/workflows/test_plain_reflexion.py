"""The plain loop over plain functions."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.errors import ConfigurationError
from reactflow.result import EvalResult, Judgement
from reactflow.workflows.lessons import Lesson
from reactflow.workflows.plain_reflexion import ReflexionState, reflexion_loop


def scripted(*outputs):
    """An actor that gives *outputs* in order, and what it was given."""
    seen, left = [], list(outputs)

    def actor(task, memory):
        seen.append((task, memory))
        return left.pop(0)

    return actor, seen


def fails(output):
    return EvalResult(False, f"{output} is wrong")


def reflect(output, detail):
    return f"Not {output}: {detail}"


def test_an_output_that_passes_ends_the_loop():
    actor, seen = scripted("a", "b", "c")

    state = reflexion_loop("task", actor, lambda output: EvalResult(output == "b", "no"), reflect)

    assert state == ReflexionState("task", ["Not a: no"], "b", True, "b", None)
    assert seen == [("task", []), ("task", ["Not a: no"])]


def test_at_the_limit_every_lesson_and_the_best_output_come_back():
    actor, _ = scripted("a", "b", "c", "d")
    scores = {"a": 0.1, "b": 0.9, "c": 0.4, "d": 0.2}

    state = reflexion_loop("task", actor, lambda output: EvalResult(False, "no", scores[output]), reflect)

    assert (state.last_output, state.passed, state.best_output, state.best_score) == ("d", False, "b", 0.9)
    assert state.memory == ["Not a: no", "Not b: no", "Not c: no", "Not d: no"]


def test_where_there_are_no_scores_the_latest_output_is_the_best():
    actor, _ = scripted("a", "b")

    state = reflexion_loop("task", actor, fails, reflect, max_attempts=2)

    assert (state.best_output, state.best_score, state.last_output) == ("b", None, "b")


def test_an_output_that_passed_is_the_best_even_where_a_failed_one_scored_higher():
    actor, _ = scripted("a", "b")
    results = {"a": EvalResult(False, "no", 0.9), "b": EvalResult(True, score=0.2)}

    state = reflexion_loop("task", actor, results.get, reflect)

    assert (state.best_output, state.best_score) == ("b", 0.2)


def test_attempt_four_has_the_lessons_of_attempts_one_to_three_and_later_ones_the_last_three():
    actor, seen = scripted(*"abcde")

    reflexion_loop("task", actor, fails, lambda output, detail: output, max_attempts=5)

    assert [memory for _, memory in seen[3:]] == [["a", "b", "c"], ["b", "c", "d"]]


def test_ten_equal_failures_leave_one_lesson():
    state = reflexion_loop("task", lambda task, memory: "x", fails, reflect, max_attempts=10)

    assert state.memory == ["Not x: x is wrong"]


def test_outputs_may_be_any_object_and_lessons_may_be_lessons():
    outputs = [{"files": ["a.py"]}, object()]
    actor, _ = scripted(*outputs)

    state = reflexion_loop(
        "task", actor, lambda output: EvalResult(output is outputs[1], "no"), lambda output, detail: Lesson(detail)
    )

    assert (state.last_output, state.memory) == (outputs[1], [Lesson("no")])


def test_the_lessons_are_handed_over_as_a_list_of_the_actors_own():
    def actor(task, memory):
        memory.append("scribbled")
        return "x"

    assert reflexion_loop("task", actor, fails, lambda output, detail: "", max_attempts=2).memory == []


@pytest.mark.parametrize("result", [True, Judgement(True), EvalResult(True)])
def test_a_bool_and_a_judgement_are_results_too(result):
    assert reflexion_loop("task", lambda task, memory: "x", lambda output: result, reflect).passed is True


def test_what_was_let_through_unjudged_has_not_passed():
    result = Judgement(True, "The judge was down.", status="unjudged")

    state = reflexion_loop("task", lambda task, memory: "x", lambda output: result, reflect, max_attempts=1)

    assert (state.passed, state.memory) == (False, ["Not x: The judge was down."])


@pytest.mark.parametrize(
    "result",
    [
        None,
        1,
        "yes",
        EvalResult(1),
        *(EvalResult(False, score=score) for score in (float("nan"), 1.5, -0.1, True, "0.5", 1j)),
    ],
)
def test_a_check_that_gave_no_verdict_passes_nothing(result):
    with pytest.raises(ConfigurationError, match="evaluator_fn returned"):
        reflexion_loop("task", lambda task, memory: "x", lambda output: result, reflect)


def test_a_lesson_must_be_a_text():
    with pytest.raises(ConfigurationError, match="reflect_fn returned None"):
        reflexion_loop("task", lambda task, memory: "x", fails, lambda output, detail: None)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, None])
def test_a_limit_that_is_no_whole_number_from_one_is_refused(limit):
    with pytest.raises(ConfigurationError, match="max_attempts"):
        reflexion_loop("task", lambda task, memory: "x", fails, reflect, max_attempts=limit)


def test_functions_run_in_the_calling_thread_and_their_errors_come_out_as_they_are():
    def actor(task, memory):
        raise KeyError(threading.get_ident())

    with pytest.raises(KeyError) as caught:
        reflexion_loop("task", actor, fails, reflect)

    assert caught.value.args == (threading.get_ident(),)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=8))
def test_a_larger_limit_never_returns_a_worse_output(scores):
    best = []
    for limit in range(1, len(scores) + 1):
        numbers = iter(range(limit))
        state = reflexion_loop(
            "task",
            lambda task, memory, numbers=numbers: next(numbers),
            lambda output: EvalResult(False, "no", scores[output]),
            reflect,
            max_attempts=limit,
        )
        best.append(-1.0 if state.best_score is None else state.best_score)

    assert best == sorted(best)
