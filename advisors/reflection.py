"""Judge each answer, and mark the ones that must be revised."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from reactflow.chain import Handler, Order
from reactflow.errors import BudgetExceeded, ConfigurationError
from reactflow.events import DraftReady, VerdictGiven
from reactflow.judge import (
    FEEDBACK,
    JUDGEMENT,
    REQUIRED,
    SKIP,
    Draft,
    Evaluator,
    check_judgement,
    gather_evidence,
    issues_text,
)
from reactflow.judging.evaluators import as_evaluator
from reactflow.messages import this_turn
from reactflow.model import ChatRequest, ChatResponse, cut_short
from reactflow.phrases import blank_answer_feedback, generic_feedback, shorten_middle
from reactflow.result import Judgement, Reflection
from reactflow.threads import cancels

OnJudgeError = Literal["accept", "reject", "raise"]


@dataclass(frozen=True, slots=True)
class ReflectionAdvisor:
    """Judges every reply that has no tool calls and says in the response's context what came out.

    It sets ``reflection.required`` (always, on a judged reply), ``reflection.feedback`` (text, or None) and
    ``reflection.judgement``, and holds no state.  Sending the draft back is the agent's business.  A reply that was
    cut, filtered or refused is no draft and is not judged.

    Args:
        evaluator: Anything :func:`~reactflow.judging.evaluators.as_evaluator` takes: a model (asked with the default
            criteria), an Evaluator, a function, a JSON Schema, a list of them.
        order: Advisors of a higher order change what is judged; those of a lower one change the answer afterwards.
        on_judge_error: When the evaluator itself fails: ``"accept"`` the draft as it is (stop reason
            ``judge_error``), ``"reject"`` it, or ``"raise"``.
        max_feedback_chars: Feedback is cut at this length, > 0.
        max_evidence_chars: The evidence shown to the evaluator is cut at this length, > 0.
    """

    evaluator: Any
    order: int = Order.REFLECTION
    on_judge_error: OnJudgeError = "accept"
    max_feedback_chars: int = 1000
    max_evidence_chars: int = 8000
    given: Any = field(init=False, repr=False, compare=False)
    """The evaluator as it was given, so that an agent can tell whether it was told to let its own model judge."""
    reflects: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.on_judge_error not in ("accept", "reject", "raise"):
            raise ConfigurationError(f"on_judge_error={self.on_judge_error!r}: give 'accept', 'reject' or 'raise'.")
        for name in ("max_feedback_chars", "max_evidence_chars"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name}={value!r}: give a whole number from 1.")
        if self.order < 0:
            raise ConfigurationError(
                f"ReflectionAdvisor(order={self.order!r}) would see the turn when it is over; give an order from 0 on."
            )
        object.__setattr__(self, "given", self.evaluator)
        object.__setattr__(self, "evaluator", as_evaluator(self.evaluator))

    async def advise(self, request: ChatRequest, call_next: Handler) -> ChatResponse:
        """Judge the reply where it is an answer."""
        response = await call_next(request)
        skipped = request.context.get(SKIP, False)
        if skipped or response.message.tool_calls or response.stop_reason is not None or cut_short(response):
            return response
        run = request.run
        # before judging: nothing further out may lose a finished answer
        run.drafts[run.attempt] = response.replace(transcript=tuple(this_turn(request.messages)))
        request.emit(DraftReady(draft=run.attempt, text=response.text))
        try:
            judgement = await self._judge(request, response)
        except ConfigurationError:
            raise
        except (
            Exception,
            SystemExit,
            asyncio.CancelledError,
        ) as error:  # user code: anything may come out
            if isinstance(error, asyncio.CancelledError) and cancels():
                raise
            if isinstance(error, BudgetExceeded) and run.meter.raised(error):
                return response.replace(stop_reason=error.reason)
            if self.on_judge_error == "raise":
                raise
            run.warn(f"The evaluator failed ({type(error).__name__}: {error}), so the answer was not judged.")
            judgement = Judgement(passed=self.on_judge_error == "accept", status="unjudged")
        return self._marked(request, response, judgement)

    async def _judge(self, request: ChatRequest, response: ChatResponse) -> Judgement:
        question = request.run.question.text
        if not response.text.strip():
            return Judgement(passed=False, feedback=blank_answer_feedback(question))
        evidence = gather_evidence(this_turn(request.messages), self.max_evidence_chars, question=question)
        draft = Draft(question=question, text=response.text, evidence=evidence, request=request)
        evaluator: Evaluator = self.evaluator
        verdict: Any = evaluator.evaluate(draft)
        if inspect.isawaitable(verdict):
            verdict = await request.run.meter.cut(verdict, recovers=True)
        return check_judgement(verdict, evaluator, question=question)

    def _marked(self, request: ChatRequest, response: ChatResponse, judgement: Judgement) -> ChatResponse:
        run = request.run
        feedback = judgement.feedback or issues_text(judgement.issues) or None
        if not judgement.passed:
            question = run.question.text
            feedback = shorten_middle(
                feedback or generic_feedback(question), self.max_feedback_chars, question=question
            )
        run.reflections.append(Reflection(response.text, judgement))
        request.emit(
            VerdictGiven(
                draft=run.attempt,
                passed=judgement.passed,
                feedback=feedback,
                score=judgement.score,
                status=judgement.status,
            )
        )
        marked = response.with_context(
            **{
                REQUIRED: not judgement.passed,
                FEEDBACK: None if judgement.passed else feedback,
                JUDGEMENT: judgement,
            }
        )
        run.drafts[run.attempt] = marked.replace(transcript=run.drafts[run.attempt].transcript)
        return marked
