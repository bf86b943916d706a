"""DrafterCritic: one role drafts, another reviews, until the review meets the pass condition.

Source: Confluent, "Improve Agent Output with Reflection Workflows".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import structlog

from reactflow.budget import Budget
from reactflow.errors import BudgetExceeded, ConfigurationError, ModelBehaviorError, WorkflowError
from reactflow.frozen import FrozenDict
from reactflow.judging.verdict import Verdict, read_verdict_fields
from reactflow.phrases import generic_feedback, phrases, shorten_middle
from reactflow.result import Issue, Judgement, StopReason
from reactflow.workflows.attempt import APPROVED, REQUIRED_CHANGES, Attempt, Critique, Trail, WorkflowResult, best
from reactflow.workflows.reply import Reply
from reactflow.workflows.role import as_critic, as_role, evidence, is_model, role_failed
from reactflow.workflows.wording import bulleted, default_criteria, fenced, new_mark, wording
from reactflow.workflows.workflow import OnJudgeError, Workflow

log = structlog.get_logger("reactflow")

PassCondition: TypeAlias = Literal["approval", "confidence"]

DEFAULT_CONFIDENCE = 0.8

VERDICT_SCHEMA: Mapping[str, Any] = FrozenDict(
    type="object",
    properties={
        "verdict": {"type": "string", "enum": [APPROVED, REQUIRED_CHANGES]},
        "confidence": {"type": "number"},
        "issues": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "field": {"type": "string"},
                    "severity": {"type": "string", "enum": ["high", "medium", "low"]},
                    "description": {"type": "string"},
                },
                "required": ["field", "severity", "description"],
                "additionalProperties": False,
            },
        },
        "suggestions": {"type": "string"},
    },
    required=["verdict", "confidence", "issues", "suggestions"],
    additionalProperties=False,
)
"""The form of a critique, for models that can be held to one."""


class DrafterCritic(Workflow[WorkflowResult]):
    """Has a draft reviewed and written again until it passes, at most *max_iterations* times.

    Each iteration is one draft and one critique.  The first draft is made from the task alone; later ones from the
    task, the previous draft, and the critic's issues and suggestions.  The critic gets the task, the draft, its
    criteria, the form of the reply and the rules of decision, all written here; the user writes only the criteria.

    A role that fails ends the run at once with a :class:`~reactflow.errors.WorkflowError`.  A critique that cannot be
    read is asked for once more; then *on_judge_error* decides.

    Args:
        drafter: Who drafts: an agent, a workflow, a ChatModel, or a function ``(prompt: str) -> str``.
        critic: Who reviews, likewise, or what judges a draft (an Evaluator, a list of them, a
            function annotated to take a Draft).  An agent's own system prompt is its criteria.
        pass_condition: ``"approval"`` reads only the critique's ``verdict``, ``"confidence"`` only its
            ``confidence``.  What contradicts the outcome is a warning.  What an evaluator rejects passes under neither.
        confidence_value: The least confidence that passes, 0 to 1; 0.8 where it is left out.  Only with
            ``"confidence"``.
        max_iterations: Drafts, and critiques, at most; >= 1.
        criteria: What the critic checks, a text or a list; goes into its prompt.  None leaves an agent or function to
            its own instructions, and asks a model whether the draft is complete, clear, reliable and ready.
        drafter_prompt: The system prompt of a drafter that is a ChatModel.
        critic_prompt: The system prompt of a critic that is a ChatModel.
        return_best: Where no draft passed, return the best by the critic's score, or by its confidence where it gives
            no score; otherwise the last.
        on_judge_error: After a second unreadable critique: ``"raise"``, ``"accept"`` (end with the draft, unjudged,
            as ``judge_error``), or ``"reject"`` (go on).
        stop_when_stalled: Whether drafts that stopped changing, or go back and forth, end the run.
        max_review_chars: The review is cut at this length in the drafter's prompt, > 0.
        budget: The limits of each run, both roles together; None for none.
        name: What events and logs call it.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    def __init__(
        self,
        drafter: Any,
        critic: Any,
        pass_condition: PassCondition = "approval",
        confidence_value: float | None = None,
        max_iterations: int = 20,
        *,
        criteria: str | Sequence[str] | None = None,
        drafter_prompt: str | None = None,
        critic_prompt: str | None = None,
        return_best: bool = False,
        on_judge_error: OnJudgeError = "raise",
        stop_when_stalled: bool = True,
        max_review_chars: int = 8000,
        budget: Budget | None = None,
        name: str = "drafter-critic",
    ) -> None:
        super().__init__(
            name=name,
            max_iterations=max_iterations,
            budget=budget,
            on_judge_error=on_judge_error,
            stop_when_stalled=stop_when_stalled,
        )
        self.drafter = as_role(drafter, "drafter", drafter_prompt)
        self.critic = as_critic(critic, "critic", critic_prompt)
        self.pass_condition, self.confidence_value = _checked_condition(pass_condition, confidence_value)
        self.criteria = _checked_criteria(criteria)
        self.return_best = return_best
        if isinstance(max_review_chars, bool) or not isinstance(max_review_chars, int) or max_review_chars < 1:
            raise ConfigurationError(f"max_review_chars={max_review_chars!r}: give a whole number from 1.")
        self.max_review_chars = max_review_chars
        if drafter is critic:
            log.warning(
                "critic.same_as_drafter", workflow=name, advice="a role overlooks its own mistakes; use another critic"
            )

    async def _draft(self, trail: Trail) -> Reply:
        prompt = trail.message(self._refinement(trail)) if trail.attempts else trail.question
        return await self.drafter.ask(prompt, trail, drafting=True)

    async def _judge(self, trail: Trail) -> Critique:
        prompt, said, problem = self._review(trail), wording(trail.task), ""
        for note in ("", said.verdict_repair):
            asked = f"{prompt}\n\n{note.format(problem=problem)}" if note else prompt
            try:
                reply = await self.critic.ask_in_form(trail.message(asked), trail, VERDICT_SCHEMA)
            except WorkflowError as error:
                if not isinstance(error.__cause__, (BudgetExceeded, ModelBehaviorError)):
                    raise
                return self._unread(trail, error)
            verdict = _fields(reply, trail.task)
            rejected = isinstance(reply.value, Judgement) and not reply.value.passed
            passed = False if rejected else self._passes(verdict)
            if passed is not None and reply.flaw is None:
                return self._critique(trail, verdict, passed)
            problem = self._missing(reply, verdict)
        cause = ModelBehaviorError(f"Its critique could not be read, twice. {problem}")
        return self._unread(trail, role_failed(self.critic.name, trail, cause))

    def _approval(self, trail: Trail) -> StopReason:
        return StopReason.APPROVED if self.pass_condition == "approval" else StopReason.CONFIDENCE_MET

    def _choose(self, trail: Trail) -> Attempt:
        return best(trail.attempts) if self.return_best else trail.latest

    def _passes(self, verdict: Verdict) -> bool | None:
        """Whether the pass condition is met; None where the field it reads is not there."""
        if self.pass_condition == "approval":
            return verdict.verdict
        return None if verdict.confidence is None else verdict.confidence >= self.confidence_value

    def _critique(self, trail: Trail, verdict: Verdict, passed: bool) -> Critique:
        feedback, flags = verdict.feedback, [*verdict.flags, *self._contradictions(verdict, passed)]
        if not passed and not feedback and not verdict.issues:
            feedback = generic_feedback(trail.task)
            flags.append("The critic named neither an issue nor a suggestion.")
        for flag in flags:
            trail.run.warn(f"Critique {trail.iteration}: {flag}")
        return Critique(
            passed,
            feedback,
            verdict.confidence if verdict.score is None else verdict.score,
            verdict.confidence,
            verdict.issues,
            flags=tuple(flags),
            verdict=_word(verdict.verdict),
        )

    def _contradictions(self, verdict: Verdict, passed: bool) -> list[str]:
        """Where what the pass condition does not read says something else."""
        word, confidence = _word(verdict.verdict), verdict.confidence
        if self.pass_condition == "confidence":
            if verdict.verdict is None or verdict.verdict is passed:
                return []
            outcome = "passed" if passed else "did not pass"
            return [f"The verdict is {word}, but the draft {outcome} at confidence {confidence:g}."]
        found = []
        if passed and confidence is not None and confidence < DEFAULT_CONFIDENCE:
            found.append(f"The verdict is {word} at a confidence of only {confidence:g}.")
        if passed and any(issue.severity >= 5 for issue in verdict.issues):
            found.append(f"The verdict is {word}, but there is an issue of high severity.")
        return found

    def _missing(self, reply: Reply, verdict: Verdict) -> str:
        if reply.flaw is not None:
            return f"The reply was not whole ({reply.flaw})."
        field = "verdict" if self.pass_condition == "approval" else "confidence"
        return " ".join((f'There is no readable "{field}".', *verdict.flags))

    def _unread(self, trail: Trail, error: WorkflowError) -> Critique:
        return Critique(self._unjudged(trail, error).passed, status="unjudged")

    def _review(self, trail: Trail) -> str:
        """The critic's prompt: task, draft, criteria, form of the reply, rules of decision."""
        said, mark = wording(trail.task), new_mark()
        criteria: str | Sequence[str] | None = self.criteria
        if criteria is None and is_model(self.critic.actor) and self.critic.system_prompt is None:
            criteria = default_criteria(trail.task)
        rules = said.verdict_rules
        if self.pass_condition == "confidence":
            rules += "\n" + said.confidence_rule.format(threshold=f"{self.confidence_value:g}")
        sections = [(said.task, trail.task), (said.draft, trail.latest.draft)]
        if facts := evidence(trail):
            sections.append((phrases(trail.task).evidence, facts))
        return "\n\n".join(
            (
                said.review_role,
                said.data.format(mark=mark),
                *(fenced(mark, title, text, trail.task) for title, text in sections),
                said.own_criteria if criteria is None else f"{said.criteria}\n{bulleted(criteria)}",
                said.verdict_format.format(),
                rules,
            )
        )

    def _refinement(self, trail: Trail) -> str:
        """The drafter's prompt: task, previous draft, issues and suggestions."""
        said, mark = wording(trail.task), new_mark()
        return "\n\n".join(
            (
                said.refine.format(mark=mark),
                fenced(mark, said.task, trail.task, trail.task),
                fenced(mark, said.previous_draft, trail.latest.draft, trail.task),
                fenced(mark, said.review, self._feedback(trail), trail.task),
                said.improve,
            )
        )

    def _feedback(self, trail: Trail) -> str:
        """Issues and suggestions, read from the critique's own fields; its raw text is never passed on."""
        said, attempt = wording(trail.task), trail.latest
        lines = [_issue_line(said.issue, issue) for issue in sorted(attempt.issues, key=lambda each: -each.severity)]
        if attempt.feedback:
            lines.append(f"{said.suggestions}\n{attempt.feedback}")
        return shorten_middle(
            "\n".join(lines) or generic_feedback(trail.task), self.max_review_chars, question=trail.task
        )


def _fields(reply: Reply, task: str) -> Verdict:
    """What a critique says; an evaluator's judgement is read as it is."""
    said = reply.value
    if isinstance(said, Judgement):
        return Verdict(said.passed, said.confidence, said.score, said.feedback, said.issues, said.flags)
    return read_verdict_fields(reply.text, question=task)


def _word(verdict: bool | None) -> str | None:
    return None if verdict is None else APPROVED if verdict else REQUIRED_CHANGES


def _issue_line(form: str, issue: Issue) -> str:
    where = f"{issue.category}: " if issue.category else ""
    suggestion = f" -> {issue.suggestion}" if issue.suggestion not in ("", issue.description) else ""
    return form.format(where=where, description=issue.description + suggestion, severity=issue.severity)


def _checked_condition(condition: object, confidence: object) -> tuple[PassCondition, float]:
    known = condition.strip().casefold() if isinstance(condition, str) else condition
    if known not in ("approval", "confidence"):
        raise ConfigurationError(f"pass_condition={condition!r}: give 'approval' or 'confidence'.")
    if confidence is None:
        return known, DEFAULT_CONFIDENCE
    if known == "approval":
        raise ConfigurationError(
            f"confidence_value={confidence!r} does nothing under pass_condition='approval'; "
            "leave it out, or use pass_condition='confidence'."
        )
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 <= confidence <= 1:
        raise ConfigurationError(f"confidence_value={confidence!r}: give a number from 0 to 1.")
    return known, float(confidence)


def _checked_criteria(criteria: object) -> str | tuple[str, ...] | None:
    if criteria is None:
        return None
    points = (criteria,) if isinstance(criteria, str) else tuple(criteria) if isinstance(criteria, Sequence) else ()
    if not points or not all(isinstance(point, str) and point.strip() for point in points):
        raise ConfigurationError(f"criteria={criteria!r:.80}: give a text or a list of texts, none of them blank.")
    return criteria if isinstance(criteria, str) else points
