"""Reflexion: an actor tries, an evaluator checks, and a reflector writes down what each failure taught.

Source: Shinn et al., "Reflexion: Language Agents with Verbal Reinforcement Learning", and "AI Engineering Patterns:
Reflexion Loop".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from reactflow.budget import Budget
from reactflow.errors import ConfigurationError, ModelBehaviorError, StoreError, WorkflowError, of_a_model
from reactflow.events import LessonLearned
from reactflow.judge import LLMJudge
from reactflow.judging.evaluators import as_evaluator
from reactflow.phrases import generic_feedback, shorten_middle
from reactflow.result import Judgement, StopReason
from reactflow.workflows.attempt import Attempt, Trail, WorkflowResult
from reactflow.workflows.episodic_memory import Episode, EpisodicMemory
from reactflow.workflows.lesson_prompts import LESSON_FORM, actor_prompt, reflector_prompt, summary_form, summary_prompt
from reactflow.workflows.lessons import Lesson
from reactflow.workflows.reflexion_wording import reflexion_wording
from reactflow.workflows.reply import Reply
from reactflow.workflows.role import Role, as_role, playing, role_failed
from reactflow.workflows.structured import Form, ask_for
from reactflow.workflows.workflow import OnJudgeError, OnRevisionError, Workflow, checked_iterations

log = structlog.get_logger("reactflow")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflexionResult(WorkflowResult):
    """What one run gives back: a workflow's result, and the lessons.

    Args:
        lessons: What this run learnt, oldest first; each with how often it was shown and how often that helped.
    """

    lessons: tuple[Lesson, ...] = ()

    @property
    def passed_at_first(self) -> bool:
        """Whether the first attempt passed; what passed beyond it is the gain of reflection."""
        return bool(self.attempts) and self.attempts[0].passed


class Reflexion(Workflow[ReflexionResult]):
    """Tries a task until its check passes, each time with the lessons of the failures before.

    An attempt is made from the task and the lessons, not from the transcript of earlier ones.  After each that failed
    the reflector, which sees the attempt and the evaluator's own words, writes one short lesson; after the last one
    too, for it comes back with the best attempt, and is there for a later run where the memory has a store.  A store
    that fails once there is an attempt costs the lessons of other runs, with a warning, and never the attempt.

    The evaluator is the ceiling of it all.  Prefer one that checks (a test run, a schema, a function) to one that has
    an opinion, and never let it be the actor.  Where nothing was checked, nothing has passed.

    Args:
        actor: Who tries: an agent, a workflow, a ChatModel, or a function ``(prompt: str) -> str``.
        evaluator: What :func:`~reactflow.judging.evaluators.as_evaluator` takes: a
            :class:`~reactflow.judging.command.CommandEvaluator`, a schema, a function, a model, a list of these.
        reflector: Who writes the lessons, like *actor*.  A plain text is the advice.
        max_attempts: Attempts at most, >= 1.
        memory: How many lessons are shown, and where they are kept.
        family: The tasks that learn from each other, or a function of the task that says so; only with a store.
        summariser: Puts lessons together, like *actor*, once twice ``memory.max_lessons`` are there; None for never.
        show_last_attempt: Whether an attempt is also shown the one before and what the evaluator said of it.
        actor_prompt: The system prompt of an actor that is a ChatModel.
        reflector_prompt: The system prompt of a reflector that is a ChatModel.
        examples: Worked examples for the reflector, instead of the two built-in ones; an empty list for none.
        max_detail_chars: Longer attempts and evaluator output lose their middle in prompts, > 0.
        on_judge_error: When the evaluator's model fails: ``"raise"``, ``"accept"`` (end with the attempt, unjudged, as
            ``judge_error``), or ``"reject"`` (try again; nothing is learnt).
        on_revision_error: What a model's or provider's error does once there is an attempt: ``"return"`` the best so
            far as ``revision_error``, or ``"raise"``.
        stop_when_stalled: Whether attempts that stopped changing, or go back and forth, end the run.
        budget: The limits of each run, all roles together; None for none.
        name: What events and logs call it.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    def __init__(
        self,
        actor: Any,
        evaluator: Any,
        reflector: Any,
        max_attempts: int = 4,
        memory: EpisodicMemory = EpisodicMemory(max_lessons=3),
        *,
        family: str | Callable[[str], str] = "",
        summariser: Any = None,
        show_last_attempt: bool = False,
        actor_prompt: str | None = None,
        reflector_prompt: str | None = None,
        examples: Sequence[str] | None = None,
        max_detail_chars: int = 4000,
        on_judge_error: OnJudgeError = "raise",
        on_revision_error: OnRevisionError = "return",
        stop_when_stalled: bool = True,
        budget: Budget | None = None,
        name: str = "reflexion",
    ) -> None:
        super().__init__(
            name=name,
            max_iterations=checked_iterations(max_attempts, "max_attempts"),
            budget=budget,
            on_judge_error=on_judge_error,
            on_revision_error=on_revision_error,
            stop_when_stalled=stop_when_stalled,
        )
        self.actor = as_role(actor, "actor", actor_prompt)
        self.evaluator = as_evaluator(evaluator)
        self.reflector = as_role(reflector, "reflector", reflector_prompt)
        self.summariser = None if summariser is None else as_role(summariser, "summariser")
        if not isinstance(memory, EpisodicMemory):
            raise ConfigurationError(f"memory={memory!r:.80}: give EpisodicMemory(...).")
        if not isinstance(family, str) and not callable(family):
            raise ConfigurationError(f"family={family!r:.80}: give a text, or a function of the task that gives one.")
        self.memory = memory
        self.family = family
        self.show_last_attempt = show_last_attempt
        self.examples = _checked_examples(examples)
        self.max_detail_chars = checked_iterations(max_detail_chars, "max_detail_chars")
        if isinstance(self.evaluator, LLMJudge) and self.evaluator.model is actor:
            log.warning("evaluator.same_as_actor", workflow=name, advice="a model overlooks its own mistakes")

    def _result_type(self) -> type[ReflexionResult]:
        return ReflexionResult

    def _extras(self, trail: Trail, chosen: Attempt) -> dict[str, Any]:
        return {"lessons": self._work(trail).episode.learnt}

    async def _draft(self, trail: Trail) -> Reply | StopReason:
        work = self._work(trail)
        if work.failed:
            return StopReason.REVISION_ERROR
        lessons = await self._recalled(trail)
        last = trail.latest if trail.attempts and self.show_last_attempt else None
        prompt = actor_prompt(trail.task, lessons, last, self.max_detail_chars)
        return await self.actor.ask(trail.message(prompt), trail, drafting=True)

    async def _judge(self, trail: Trail) -> Judgement:
        judgement = await self._heard(self.evaluator, trail, role="evaluator", what="Attempt")
        if judgement.status == "judged":
            await self._noting(trail, self._work(trail).episode.judged(judgement.passed))
        return judgement

    async def _learn(self, trail: Trail) -> None:
        """Write down what the attempt taught; one that nobody judged taught nothing."""
        if not trail.latest.reviewed:
            return
        work = self._work(trail)
        try:
            lesson = await self._reflect(trail)
        except WorkflowError as error:
            if self.on_revision_error == "raise" or not of_a_model(error):
                raise
            trail.run.warn(f"Attempt {trail.number} taught nothing, so there is no other: {error}")
            work.failed = True
            return
        await self._noting(trail, work.episode.learn(lesson))
        kept = work.episode.learnt[-1]
        trail.request.emit(LessonLearned(attempt=trail.number, advice=kept.advice, trigger=kept.trigger))
        if self.summariser is not None:
            await self._condense(trail)

    async def _reflect(self, trail: Trail) -> Lesson:
        """Ask for the lesson; its evidence is what the evaluator said, not what the reflector makes of it."""
        complaint = trail.latest.complaint
        detail = "" if complaint == generic_feedback(trail.task) else complaint
        prompt = reflector_prompt(
            trail.task,
            trail.latest,
            shorten_middle(detail, self.max_detail_chars, question=trail.task),
            self._work(trail).episode.shown,
            self.examples,
            self.max_detail_chars,
            self.memory.max_advice_chars,
        )
        lesson: Lesson = await self._value(LESSON_FORM, self.reflector, prompt, trail)
        return replace(lesson, evidence=detail or lesson.evidence, uses=0, wins=0)

    async def _condense(self, trail: Trail) -> None:
        """Have the lessons put together where they have become many; a summary that fails changes nothing."""
        episode, limit = self._work(trail).episode, self.memory.max_lessons
        try:
            lessons = await episode.known()
        except StoreError as error:
            trail.run.warn(f"The lessons could not be put together: {error}")
            return
        if self.summariser is None or len(lessons) < 2 * limit:
            return
        prompt = summary_prompt(trail.task, lessons, limit, self.memory.max_advice_chars)
        try:
            summary: Sequence[Lesson] = await self._value(summary_form(lessons), self.summariser, prompt, trail)
        except WorkflowError as error:
            if not of_a_model(error):
                raise
            trail.run.warn(f"The lessons could not be put together: {error}")
            return
        await self._noting(trail, episode.condense(lessons, summary[:limit]))

    async def _value(self, form: Form, role: Role, prompt: str, trail: Trail) -> Any:
        reply = await ask_for(form, role, prompt, trail, repair=reflexion_wording(trail.task).repair)
        if reply.flaw is not None:
            raise role_failed(role.name, trail, ModelBehaviorError(f"It gave no whole answer ({reply.flaw})."))
        return reply.value

    async def _recalled(self, trail: Trail) -> tuple[Lesson, ...]:
        """The lessons for the next attempt.  A store that cannot be read is an error only before the first one."""
        episode = self._work(trail).episode
        try:
            return await episode.recall()
        except StoreError as error:
            if not trail.attempts:
                raise
            trail.run.warn(f"The lessons of other runs could not be read: {error}")
            return episode.shown

    async def _noting(self, trail: Trail, keeping: Awaitable[object]) -> None:
        """Await what writes to the store; a lesson that cannot be kept is no reason to lose an answer."""
        try:
            await keeping
        except StoreError as error:
            trail.run.warn(f"The lessons could not be kept for later runs: {error}")

    def _work(self, trail: Trail) -> _Work:
        if "reflexion" not in trail.notes:
            trail.notes["reflexion"] = _Work(self.memory.open(trail.task, self._family(trail)))
        work: _Work = trail.notes["reflexion"]
        return work

    def _family(self, trail: Trail) -> str:
        with playing("family", trail):
            family = self.family(trail.task) if callable(self.family) else self.family
        if not isinstance(family, str):
            raise ConfigurationError(f"The function of the task family returned {family!r:.80}; return a text.")
        return family


@dataclass(slots=True)
class _Work:
    """What a run knows beside its attempts."""

    episode: Episode
    failed: bool = False  # the reflector could not say what to do differently


def _checked_examples(examples: object) -> tuple[str, ...] | None:
    if examples is None:
        return None
    listed = tuple(examples) if isinstance(examples, Sequence) and not isinstance(examples, str) else (None,)
    if not all(isinstance(each, str) and each.strip() for each in listed):
        raise ConfigurationError(f"examples={examples!r:.80}: give a list of texts, none of them blank.")
    return listed
