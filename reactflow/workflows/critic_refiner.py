"""CriticRefiner: one role writes, a cheaper one lists what is wrong, and only that is mended.

Source: "Building Self-Critiquing Agents with Gemini API: A Production-Ready Guide to Reflection and Critic-Refiner
Patterns".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from reactflow.budget import Budget
from reactflow.errors import ConfigurationError, ModelBehaviorError, WorkflowError, of_a_model
from reactflow.frozen import FrozenDict
from reactflow.phrases import phrases
from reactflow.result import Issue, Judgement, StopReason
from reactflow.workflows.attempt import Attempt, Trail, best
from reactflow.workflows.critic_wording import critic_wording
from reactflow.workflows.edits import (
    Edit,
    RefusedEdit,
    Span,
    apply_edits,
    locate,
    read_edits,
    share_changed_outside,
)
from reactflow.workflows.loop_config import LoopConfig, LoopResult
from reactflow.workflows.reply import Reply
from reactflow.workflows.review import REVIEW_SCHEMA, all_against, fix_line, read_review, to_mend
from reactflow.workflows.role import as_critic, as_role, evidence, role_failed
from reactflow.workflows.wording import bulleted, fenced, new_mark, wording
from reactflow.workflows.workflow import OnRevisionError, Workflow

Mode: TypeAlias = Literal["edits", "rewrite"]


class CriticRefiner(Workflow[LoopResult]):
    """Writes a text, has it reviewed, and mends what the review flags and nothing else.

    One iteration is one critique and, where it finds an issue at or above the threshold, one revision.  The criteria
    stand from the first round on: later critiques check the earlier issues and what changed, and an issue up to
    severity 2 that is new then does not keep the loop alive.

    A critic that is asked with a prompt names issues, and their severity decides.  What judges drafts by itself (an
    Evaluator) can say no besides: a text that it rejects is never approved, and where all it names is below the
    threshold all of it is mended.

    The text of the highest score comes back; a text without a score is below all that have one.  So that the revision
    of the last iteration can be it, it is reviewed as well, by one critique more, where the critic gives scores.  Where
    no text has a score the latest comes back, reviewed or not.

    Args:
        generator: Who writes: an agent, a workflow, a ChatModel, or a function ``(prompt: str) -> str``.
        critic: Who reviews, likewise, or what judges a draft (an Evaluator, a list of them, a function
            annotated to take a Draft); a smaller model of another family will often do.
        refiner: Who mends; the generator where it is None.
        constraints: What the text must meet, for the generator and the critic.
        config: Limits and the severity threshold.
        mode: ``"edits"``: the refiner says which flagged words become what, and the program does it, so that all else
            stays as it was.  ``"rewrite"``: the refiner writes the text anew, and what changed outside is measured.
        categories: What the critic is to consider one by one; five general ones where it is None.
        generator_prompt: The system prompt of a generator that is a ChatModel; also the refiner's where that is the
            generator.
        critic_prompt: The system prompt of a critic that is a ChatModel.
        judge_final: Whether the last revision is reviewed where the critic gives scores.  False saves that call: the
            last revision is then returned as the latest, unreviewed, whatever the scores of the texts before it.
        on_judge_error: When a model's critique cannot be had: ``"accept"`` (end with the best text, as
            ``judge_error``) or ``"raise"``.  What a critic that is a function raises is an error at once.
        on_revision_error: What a model's or provider's error in a revision does: ``"return"`` the best text so far as
            ``revision_error``, or ``"raise"``.
        budget: Instead of the tokens and seconds of *config*; for limits on cost or calls.
        name: What events and logs call it.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    extra_drafts = 1
    judges_first = True

    def __init__(
        self,
        generator: Any,
        critic: Any,
        refiner: Any = None,
        constraints: str | Sequence[str] = (),
        config: LoopConfig = LoopConfig(),
        *,
        mode: Mode = "edits",
        categories: Sequence[str] | None = None,
        generator_prompt: str | None = None,
        critic_prompt: str | None = None,
        judge_final: bool = True,
        on_judge_error: Literal["accept", "raise"] = "accept",
        on_revision_error: OnRevisionError = "return",
        budget: Budget | None = None,
        name: str = "critic-refiner",
    ) -> None:
        if not isinstance(config, LoopConfig):
            raise ConfigurationError(f"config={config!r}: give LoopConfig(...).")
        super().__init__(
            name=name,
            max_iterations=config.max_iterations,
            budget=config.budget() if budget is None else budget,
            on_judge_error=on_judge_error,
            on_revision_error=on_revision_error,
        )
        if on_judge_error not in ("accept", "raise"):
            raise ConfigurationError(f"on_judge_error={on_judge_error!r}: give 'accept' or 'raise'.")
        if mode not in ("edits", "rewrite"):
            raise ConfigurationError(f"mode={mode!r}: give 'edits' or 'rewrite'.")
        self.generator = as_role(generator, "generator", generator_prompt)
        self.critic = as_critic(critic, "critic", critic_prompt)
        self.refiner = as_role(self.generator if refiner is None else refiner, "refiner")
        self.constraints = _texts("constraints", constraints)
        self.categories = None if categories is None else _texts("categories", categories)
        self.config = config
        self.mode = mode
        self.judge_final = judge_final

    def _result_type(self) -> type[LoopResult]:
        return LoopResult

    async def _draft(self, trail: Trail) -> Reply | StopReason:
        if not trail.attempts:
            return await self.generator.ask(trail.message(self._generation(trail)), trail, drafting=True)
        return await (self._edited(trail) if self.mode == "edits" else self._rewritten(trail))

    async def _judge(self, trail: Trail) -> Judgement:
        if trail.number <= self.max_iterations:
            return await self._reviewed(trail)
        try:  # no iteration asks for this one, so its failure neither ends the run nor names its end
            judgement = await self._reviewed(trail)
        except WorkflowError as error:
            if error.__cause__ is not trail.run.model_error:
                raise  # a mistake in the user's own function
            judgement = self._unjudged(trail, error)
        if judgement.status == "judged":
            return judgement
        trail.run.warn("The last revision could not be judged, so the best text that has a score is returned.")
        return replace(judgement, passed=False)

    async def _reviewed(self, trail: Trail) -> Judgement:
        said, prompt, problem = critic_wording(trail.task), self._review(trail), ""
        for note in ("", said.repair):
            asked = f"{prompt}\n\n{note.format(problem=problem)}" if note else prompt
            try:
                reply = await self.critic.ask_in_form(trail.message(asked), trail, REVIEW_SCHEMA)
                review = read_review(reply, question=trail.task)
                return self._judgement(trail, review, rejected=isinstance(reply.value, Judgement) and not review.passed)
            except ModelBehaviorError as error:
                problem = str(error)
            except WorkflowError as error:
                if not of_a_model(error):
                    raise
                return self._unjudged(trail, error)
        cause = ModelBehaviorError(f"Its review could not be read, twice. {problem}")
        return self._unjudged(trail, role_failed(self.critic.name, trail, cause))

    def _approval(self, trail: Trail) -> StopReason:
        return StopReason.BELOW_THRESHOLD if trail.latest.issues else StopReason.NO_ISSUES

    def _judges_last(self, trail: Trail) -> bool:
        """Where nothing has a score the latest text is returned anyway, and its critique would decide nothing."""
        return self.judge_final and any(each.reviewed and each.score is not None for each in trail.attempts)

    def _choose(self, trail: Trail) -> Attempt:
        beyond = len(trail.attempts) > self.max_iterations
        return trail.latest if beyond and not self.judge_final else best(trail.attempts)

    def _extras(self, trail: Trail, chosen: Attempt) -> dict[str, Any]:
        found = [issue for attempt in trail.attempts for issue in attempt.issues]
        severities = Counter(issue.severity for issue in found)
        work = _work(trail)
        return {
            "overall_score": None if chosen.score is None else round(100 * chosen.score, 6),
            "severity_histogram": FrozenDict({severity: severities[severity] for severity in range(1, 6)}),
            "category_histogram": FrozenDict(Counter(issue.category for issue in found if issue.category)),
            "edits": tuple(work.edits),
            "refused_edits": tuple(work.refused),
            "changed_outside": work.changed_outside,
        }

    def _judgement(self, trail: Trail, review: Judgement, *, rejected: bool) -> Judgement:
        """Whether anything has to be mended: by severity, and all of it where an evaluator *rejected* the text."""
        earlier = [issue for attempt in trail.attempts[:-1] for issue in attempt.issues]
        targets = to_mend(review.issues, earlier if len(trail.attempts) > 1 else None, self.config.severity_threshold)
        if rejected and not targets:
            targets = all_against(review)
        _work(trail).targets = targets
        for flag in review.flags:
            trail.run.warn(f"Critique {trail.iteration}: {flag}")
        fixes = "\n".join(fix_line(critic_wording(trail.task), issue) for issue in targets)
        return Judgement(not targets, fixes or None, review.score, review.confidence, review.issues, flags=review.flags)

    async def _edited(self, trail: Trail) -> Reply | StopReason:
        """The text with the refiner's edits made, as far as they stay inside what was flagged."""
        text, work = trail.latest.draft, _work(trail)
        spans, fixable = self._flagged(trail, text)
        if not fixable:
            return StopReason.NO_PROGRESS
        edits = await self._ask_for_edits(trail, fixable)
        edited = apply_edits(text, edits, spans, may_add=any(not issue.snippet for issue in fixable))
        work.edits += edited.applied
        work.made = edited.applied
        self._refuse(trail, edited.refused)
        if edited.text == text or not edited.text.strip():
            return StopReason.NO_PROGRESS
        return Reply(edited.text, edited.text, messages=trail.reply.messages if trail.reply else ())

    def _flagged(self, trail: Trail, text: str) -> tuple[list[Span], list[Issue]]:
        """The spans that may change, and the issues that can be mended: those with a span, or with no words at all."""
        spans: list[Span] = []
        fixable: list[Issue] = []
        for issue in _work(trail).targets:
            place = locate(text, issue.snippet) if issue.snippet else None
            if isinstance(place, str):
                self._refuse(trail, (RefusedEdit(issue.snippet, place),))
                continue
            fixable.append(issue)
            if place is not None:
                spans.append(place)
        return spans, fixable

    def _refuse(self, trail: Trail, refused: Sequence[RefusedEdit]) -> None:
        for each in refused:
            _work(trail).refused.append(each)
            trail.run.warn(f"Revision {trail.iteration}: {each}.")

    async def _ask_for_edits(self, trail: Trail, issues: Sequence[Issue]) -> tuple[Edit, ...]:
        said, problem = critic_wording(trail.task), ""
        prompt = self._revision(trail, issues, said.edit_format.format(no_words=said.no_words))
        for note in ("", said.edit_repair):
            asked = f"{prompt}\n\n{note.format(problem=problem)}" if note else prompt
            reply = await self.refiner.ask(trail.message(asked), trail, drafting=True, shown=False)
            try:
                if reply.flaw is not None:
                    raise ModelBehaviorError(f"The reply was not whole ({reply.flaw}).")
                return read_edits(reply.text)
            except ModelBehaviorError as error:
                problem = str(error)
        cause = ModelBehaviorError(f"Its edits could not be read, twice. {problem}")
        raise role_failed(self.refiner.name, trail, cause)

    async def _rewritten(self, trail: Trail) -> Reply:
        """The text written anew, and how much of it changed where nothing was flagged."""
        text, work, said = trail.latest.draft, _work(trail), critic_wording(trail.task)
        prompt = self._revision(trail, work.targets, said.rewrite_format)
        reply = await self.refiner.ask(trail.message(prompt), trail, drafting=True)
        spans = [place for issue in work.targets if isinstance(place := locate(text, issue.snippet), tuple)]
        share = share_changed_outside(text, reply.text, spans)
        work.changed_outside = max(work.changed_outside, share)
        work.made = (Edit(text, reply.text),)
        return reply

    def _generation(self, trail: Trail) -> str:
        if not self.constraints:
            return trail.task
        return critic_wording(trail.task).generate.format(task=trail.task, constraints=bulleted(self.constraints))

    def _review(self, trail: Trail) -> str:
        """The critic's prompt; the same in every round but for what is said of earlier ones."""
        said, mark = critic_wording(trail.task), new_mark()
        sections = [(wording(trail.task).task, trail.task), (said.text, trail.latest.draft)]
        if facts := evidence(trail):
            sections.append((phrases(trail.task).evidence, facts))
        again: tuple[str, ...] = ()
        if len(trail.attempts) > 1:
            earlier = dict.fromkeys(
                fix_line(said, issue)
                for attempt in trail.attempts[:-1]
                for issue in attempt.issues
                if issue.severity >= self.config.severity_threshold
            )
            sections.append((said.earlier, "\n".join(earlier)))
            sections.append((said.changes, "\n".join(f"{e.snippet} -> {e.replacement}" for e in _work(trail).made)))
            again = (said.frozen,)
        return "\n\n".join(
            (
                said.review,
                said.data.format(mark=mark),
                f"{said.rubric_heading}\n{said.rubric}",
                f"{said.constraints}\n{bulleted(self.constraints) or said.no_constraints}",
                f"{said.categories_heading}\n{bulleted(self.categories or said.categories)}",
                *again,
                *(fenced(mark, title, text, trail.task) for title, text in sections),
                said.issue_format.format(),
            )
        )

    def _revision(self, trail: Trail, issues: Sequence[Issue], form: str) -> str:
        """The refiner's prompt: the fixes, the text, and the form of the reply."""
        said, mark = critic_wording(trail.task), new_mark()
        return "\n\n".join(
            (
                said.apply,
                said.data.format(mark=mark),
                fenced(mark, said.fixes, "\n".join(fix_line(said, issue) for issue in issues), trail.task),
                fenced(mark, said.text, trail.latest.draft, trail.task),
                form,
            )
        )


def reflect_with_budget(
    task: str,
    constraints: str | Sequence[str] = (),
    config: LoopConfig = LoopConfig(),
    *,
    generator: Any,
    critic: Any,
    refiner: Any = None,
) -> LoopResult:
    """Write a text for *task*, and mend it within the limits of *config*.

    The same as ``CriticRefiner(generator, critic, refiner, constraints, config).run(task)``; blocks.

    Args:
        task: What to write.
        constraints: What the text must meet.
        config: Limits and the severity threshold.
        generator: Who writes: an agent, a workflow, a ChatModel, or a function ``(prompt: str) -> str``.
        critic: Who reviews, likewise, or what judges a draft (an Evaluator, a list of them, a
            function annotated to take a Draft).
        refiner: Who mends; the generator where it is None.

    Raises:
        ConfigurationError: A setting is wrong.
        BudgetExceeded: A limit came before there was any text.
        WorkflowError: A role failed before there was any text.
    """
    return CriticRefiner(generator, critic, refiner, constraints, config).run(task)


@dataclass(slots=True)
class _Work:
    """What a run knows beside its attempts."""

    targets: tuple[Issue, ...] = ()  # what the next revision is to mend
    made: tuple[Edit, ...] = ()  # what the last revision changed
    edits: list[Edit] = field(default_factory=list)
    refused: list[RefusedEdit] = field(default_factory=list)
    changed_outside: float = 0.0


def _work(trail: Trail) -> _Work:
    work: _Work = trail.notes.setdefault("critic_refiner", _Work())
    return work


def _texts(name: str, value: object) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else (None,)
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise ConfigurationError(f"{name}={value!r:.80}: give a text or a list of texts, none of them blank.")
    return texts
