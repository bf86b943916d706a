"""Evaluators made of what is at hand: a function, a schema, a command, a model, or a list of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_origin, get_type_hints

from reactflow.errors import BudgetExceeded, ConfigurationError, ReactflowError, of_a_model
from reactflow.judge import CanAnswer, Draft, Evaluator, LLMJudge, check_judgement
from reactflow.judging.command import CommandEvaluator
from reactflow.judging.schema import SchemaEvaluator
from reactflow.model import ChatModel
from reactflow.result import Judgement
from reactflow.threads import run_in_thread

__all__ = [
    "CommandEvaluator",
    "EvaluatorList",
    "FunctionEvaluator",
    "SchemaEvaluator",
    "as_evaluator",
    "check_judgement",
]


def as_evaluator(value: Any) -> Evaluator:
    """Make an evaluator of *value*.

    * an :class:`~reactflow.judge.Evaluator` is one already
    * a chat model, an agent or a workflow becomes an :class:`~reactflow.judge.LLMJudge`
    * a list or tuple becomes an :class:`EvaluatorList`
    * a JSON Schema (a dict) or a type that pydantic knows becomes a :class:`SchemaEvaluator`
    * a function becomes a :class:`FunctionEvaluator`

    Raises:
        ConfigurationError: It is none of these.
    """
    if isinstance(value, type) and any(hasattr(value, name) for name in ("evaluate", "complete", "arun")):
        raise ConfigurationError(f"{value!r} is a class; give an instance, {value.__name__}(...).")
    if callable(getattr(value, "evaluate", None)):
        return cast(Evaluator, value)
    if isinstance(value, (ChatModel, CanAnswer)):
        return LLMJudge(value)
    if isinstance(value, (list, tuple)):
        return EvaluatorList(value)
    if isinstance(value, (Mapping, type)) or get_origin(value) is not None:
        return SchemaEvaluator(value)
    if callable(value):
        return FunctionEvaluator(value)
    raise ConfigurationError(
        f"{value!r:.80} judges nothing; give an object with async evaluate(draft), a chat model, an agent, "
        "a function, a JSON Schema, a type, or a list of these."
    )


@dataclass(frozen=True, slots=True)
class FunctionEvaluator:
    """Lets a function judge.

    It takes the :class:`~reactflow.judge.Draft`, or the answer's text where its parameter is annotated ``str``.  It
    returns a bool, a pair of a bool and the feedback, or a Judgement; anything else is an error, None above all,
    because a forgotten ``return`` must not decide.  A plain function runs in a thread of its own, an async one in the
    event loop.  What it raises passes through.

    Args:
        function: With exactly one required parameter.
    """

    function: Callable[..., Any]
    _wants_text: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_wants_text", _wants_text(self.function))

    @property
    def uses_model(self) -> bool:
        """Whether the function says that it asks a model, by an attribute of this name."""
        return bool(getattr(self.function, "uses_model", False))

    async def evaluate(self, draft: Draft) -> Judgement:
        """Call the function.

        Raises:
            ConfigurationError: What it returned is no judgement.
        """
        argument = draft.text if self._wants_text else draft
        if _is_async(self.function):
            value = await self.function(argument)
        else:
            value = await run_in_thread(lambda: self.function(argument))
            value = await value if inspect.isawaitable(value) else value
        if isinstance(value, tuple) and len(value) == 2:
            value = Judgement(*value) if value[1] else value[0]
        return check_judgement(value, self, question=draft.question)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _wants_text(function: Callable[..., Any]) -> bool:
    """Whether the one parameter of *function* is annotated ``str``."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    required = [each for each in parameters if each.default is each.empty and each.kind not in _VARIADIC]
    positional = [each for each in parameters if each.kind in _POSITIONAL]
    if not positional or len(required) > 1 or (required and required[0] is not positional[0]):
        raise ConfigurationError(
            f"{function!r:.80} cannot judge: it must take exactly one argument, the Draft or (annotated str) the text."
        )
    try:
        hints = get_type_hints(function if inspect.isroutine(function) else type(function).__call__)
    except (AttributeError, NameError, TypeError):  # annotations that cannot be resolved, a partial
        hints = {}
    return hints.get(positional[0].name, positional[0].annotation) in (str, "str")


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


@dataclass(frozen=True, slots=True)
class EvaluatorList:
    """Several evaluators as one: a draft passes if all of them pass it.

    Those that ask no model come first, and where one of them rejects the draft no model is asked.  All of a group are
    heard, so that one revision can mend everything.  Score and confidence are the lowest that was given.  A rejection
    is one whatever the others say: beside it, one that could not judge, or whose model failed, changes nothing.

    Args:
        evaluators: At least one of what :func:`as_evaluator` takes; lists in it are flattened.

    Raises:
        ConfigurationError: It is empty, or holds something that judges nothing.
    """

    evaluators: tuple[Evaluator, ...]

    def __init__(self, evaluators: Iterable[Any]) -> None:
        flat: list[Evaluator] = []
        for each in map(as_evaluator, evaluators):
            flat.extend(each.evaluators if isinstance(each, EvaluatorList) else (each,))
        if not flat:
            raise ConfigurationError("An empty list of evaluators would pass everything; give at least one.")
        object.__setattr__(self, "evaluators", tuple(flat))

    @property
    def uses_model(self) -> bool:
        """Whether any of them asks a model."""
        return any(_uses_model(each) for each in self.evaluators)

    async def evaluate(self, draft: Draft) -> Judgement:
        """Ask them one after the other.

        Raises:
            ModelBehaviorError: A model gave no verdict that can be read, and nobody rejected the draft.
            ProviderError: A model's service failed, and nobody rejected the draft.
            WorkflowError: One of these happened in a workflow that judges, and nobody rejected the draft.
        """
        judgements: list[Judgement] = []
        failed: list[Exception] = []
        for group in (False, True):
            for each in self.evaluators:
                if _uses_model(each) is not group:
                    continue
                try:
                    judgements.append(check_judgement(await each.evaluate(draft), each, question=draft.question))
                except ReactflowError as error:
                    own_limit = isinstance(error, BudgetExceeded) and draft.request.run.meter.raised(error)
                    if own_limit or not of_a_model(error):  # a limit of this run, and not one of an agent that judges
                        raise
                    failed.append(error)
            if failed or not all(judgement.passed for judgement in judgements):
                break
        if failed and not any(map(_rejects, judgements)):
            raise failed[0]
        flags = tuple(f"One of the evaluators failed: {error}" for error in failed)
        judgement = judgements[0] if len(judgements) == 1 else _combined(judgements)
        return replace(judgement, flags=judgement.flags + flags) if flags else judgement


def _uses_model(evaluator: Evaluator) -> bool:
    return bool(getattr(evaluator, "uses_model", False))


def _rejects(judgement: Judgement) -> bool:
    """Whether it is a verdict against the draft, and not only what stands for one."""
    return judgement.status == "judged" and not judgement.passed


def _combined(judgements: list[Judgement]) -> Judgement:
    passed = all(judgement.passed for judgement in judgements)
    rejections = list(filter(_rejects, judgements))
    heard = rejections or [judgement for judgement in judgements if passed or not judgement.passed]
    unjudged = not rejections and any(each.status == "unjudged" for each in judgements)
    feedback = dict.fromkeys(judgement.feedback for judgement in heard if judgement.feedback)
    return replace(
        judgements[0],
        passed=passed,
        feedback="\n\n".join(feedback) or None,
        score=min((each.score for each in judgements if each.score is not None), default=None),
        confidence=min((each.confidence for each in judgements if each.confidence is not None), default=None),
        issues=tuple(issue for each in judgements for issue in each.issues),
        status="unjudged" if unjudged else "judged",
        flags=tuple(dict.fromkeys(flag for each in judgements for flag in each.flags)),
    )
