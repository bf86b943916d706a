"""The Reflexion loop as one plain function over plain functions.

Source: "AI Engineering Patterns: Reflexion Loop".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reactflow.errors import ConfigurationError
from reactflow.frozen import FrozenList
from reactflow.result import EvalResult, Judgement
from reactflow.workflows.episodic_memory import EpisodicMemory
from reactflow.workflows.lessons import Lesson, alike
from reactflow.workflows.workflow import checked_iterations

_SHOWN = EpisodicMemory().max_lessons


@dataclass(frozen=True, slots=True)
class ReflexionState:
    """Where a loop ended.

    Args:
        task: What was asked.
        memory: The lessons, oldest first, no two alike.
        last_output: What the actor last returned.
        passed: Whether that passed; then it is the best output too.
        best_output: The output with the highest score; of equals, and where none has a score, the latest.
        best_score: The score of the best output, or None.
    """

    task: str
    memory: Sequence[Any] = FrozenList()
    last_output: Any = None
    passed: bool = False
    best_output: Any = None
    best_score: float | None = None


def reflexion_loop(
    task: str,
    actor_fn: Callable[[str, list[Any]], Any],
    evaluator_fn: Callable[[Any], EvalResult | Judgement | bool],
    reflect_fn: Callable[[Any, str], str | Lesson],
    max_attempts: int = 4,
) -> ReflexionState:
    """Try a task until it passes, each time with the lessons of the failures before.

    Runs in the calling thread, and lets every exception through.  :class:`~reactflow.workflows.reflexion.Reflexion`
    is the same with models, limits, events and a memory that stays.

    Args:
        task: What to do.
        actor_fn: Gets the task and the lessons, oldest first and the last three at most; may return any object.
        evaluator_fn: Gets that object.  Where nothing could be checked, the result must not be a pass.
        reflect_fn: Gets the object and the evaluator's detail, and returns a lesson; a blank one is not kept.
        max_attempts: Attempts at most, >= 1.

    Raises:
        ConfigurationError: *max_attempts* is no whole number from 1, or a function returned what it must not.
    """
    checked_iterations(max_attempts, "max_attempts")
    memory: list[Any] = []
    best: tuple[Any, EvalResult] | None = None
    output, result = None, EvalResult(False)
    for _ in range(max_attempts):
        output = actor_fn(task, memory[-_SHOWN:])
        result = _checked(evaluator_fn(output))
        if best is None or _rank(result) >= _rank(best[1]):
            best = output, result
        if result.passed:
            break
        lesson = _checked_lesson(reflect_fn(output, result.detail))
        if str(lesson).strip() and not any(alike(str(each), str(lesson)) for each in memory):
            memory.append(lesson)
    best_output, best_result = best or (output, result)
    return ReflexionState(task, FrozenList(memory), output, result.passed, best_output, best_result.score)


def _rank(result: EvalResult) -> tuple[bool, float]:
    return result.passed, -math.inf if result.score is None else result.score


def _checked(value: Any) -> EvalResult:
    """What an evaluator returned; nothing but a plain True passes, so that a check which did not run cannot."""
    if isinstance(value, bool):
        return EvalResult(value)
    if isinstance(value, Judgement):
        judged = value.status == "judged"
        value = EvalResult(value.passed and judged, value.feedback or "", value.score if judged else None)
    if not isinstance(value, EvalResult) or not isinstance(value.passed, bool):
        raise ConfigurationError(f"evaluator_fn returned {value!r:.80}; return EvalResult(passed, detail) or a bool.")
    score: Any = value.score
    if score is not None and (
        isinstance(score, bool) or not isinstance(score, (int, float)) or not 0.0 <= score <= 1.0
    ):
        raise ConfigurationError(f"evaluator_fn returned score={score!r:.80}; give a number in 0..1 or None.")
    return value


def _checked_lesson(value: Any) -> str | Lesson:
    if not isinstance(value, (str, Lesson)):
        raise ConfigurationError(f"reflect_fn returned {value!r:.80}; return the lesson as a text.")
    return value
