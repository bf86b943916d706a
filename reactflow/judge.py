"""What an evaluator is, and the one that asks a model.

An evaluator looks at a draft and says whether it may go out.  Code comes first: a function, a schema or a test run
(:mod:`reactflow.judging.evaluators`) knows more than any model where it applies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from reactflow.delegate import Delegate, ask_delegate
from reactflow.errors import ConfigurationError, ModelBehaviorError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.judging.asking import ask_in_form
from reactflow.judging.evidence import gather_evidence
from reactflow.judging.reply import strip_thinking
from reactflow.judging.verdict import Verdict, issues_text, read_verdict, read_verdict_fields
from reactflow.messages import AssistantMessage, SystemMessage, UserMessage
from reactflow.model import CUT_SHORT, ChatModel, ChatRequest, ChatResponse, acting_as, ask, cut_short
from reactflow.phrases import blank_answer_feedback, generic_feedback, phrases, shorten, shorten_middle
from reactflow.result import EvalResult, Issue, Judgement, StopReason

__all__ = [
    "VERDICT_SCHEMA",
    "Draft",
    "Evaluator",
    "Issue",
    "Judgement",
    "LLMJudge",
    "Verdict",
    "check_judgement",
    "gather_evidence",
    "issues_text",
    "read_verdict",
    "read_verdict_fields",
]

_MAX_REPLAYED_CHARS = 4000

VERDICT_SCHEMA: Mapping[str, Any] = FrozenDict(
    type="object",
    properties={  # the reasons before the verdict, so that the model has thought before it decides
        "issues": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"description": {"type": "string"}, "severity": {"type": "integer"}},
                "required": ["description", "severity"],
                "additionalProperties": False,
            },
        },
        "feedback": {"type": ["string", "null"]},
        "score": {"type": ["number", "null"]},
        "passed": {"type": "boolean"},
    },
    required=["issues", "feedback", "score", "passed"],
    additionalProperties=False,
)
"""What a judge is asked to reply with; strict enough for servers that enforce schemas."""


REQUIRED = "reflection.required"
FEEDBACK = "reflection.feedback"
JUDGEMENT = "reflection.judgement"
SKIP = "reflection.skip"
"""Context keys.  The first three are on every judged response; the last, on a request, says not to judge."""

FLAGS = (REQUIRED, FEEDBACK, JUDGEMENT, SKIP)


def judgement_of(response: ChatResponse) -> Judgement | None:
    """What an evaluator said of this very draft, or None where nobody judged it."""
    judgement = response.context.get(JUDGEMENT)
    return judgement if isinstance(judgement, Judgement) else None


@dataclass(frozen=True, slots=True)
class Draft:
    """A finished answer that has yet to be judged.

    Args:
        question: What the user asked in this turn.
        text: The answer.
        evidence: The tool calls of this turn and their results, rendered by
            :func:`~reactflow.judging.evidence.gather_evidence`; empty where there were none.
        request: The request that the answer belongs to; ``request.aside(...)`` is how a judge asks a model.
    """

    question: str
    text: str
    evidence: str
    request: ChatRequest


@runtime_checkable
class Evaluator(Protocol):
    """Anything that judges a draft.  Subclass nothing.

    An evaluator that asks a model may say so with a true attribute ``uses_model``: in a list it then comes after
    those that do not.
    """

    async def evaluate(self, draft: Draft) -> Judgement | bool:
        """Say whether *draft* may go out, and if not, what to change."""
        ...


def check_judgement(value: object, evaluator: object, *, question: str = "") -> Judgement:
    """Make sure that what an evaluator returned is a judgement.

    Args:
        value: What it returned; a bool stands for a judgement without words.
        evaluator: Who returned it, for the message.
        question: What the user asked; decides the language of the sentence that a bare False gets as feedback.

    Raises:
        ConfigurationError: It is neither, or one of its fields is not what it should be.
    """
    if isinstance(value, bool):
        return Judgement(value, None if value else generic_feedback(question))
    if isinstance(value, EvalResult):
        value = value.as_judgement()
    name = _name_of(evaluator)
    if not isinstance(value, Judgement):
        raise ConfigurationError(
            f"Evaluator {name} returned {value!r:.80}; return a Judgement or a bool (bool(...) makes one)."
        )
    if value.status not in ("judged", "unjudged"):
        raise ConfigurationError(f"Evaluator {name} returned status={value.status!r:.80}; give 'judged' or 'unjudged'.")
    if not isinstance(value.passed, bool):
        raise ConfigurationError(f"Evaluator {name} returned passed={value.passed!r:.80}; give True or False.")
    for part in ("score", "confidence"):
        number = getattr(value, part)
        if number is not None and (
            isinstance(number, bool) or not isinstance(number, (int, float)) or not 0.0 <= number <= 1.0
        ):
            raise ConfigurationError(f"Evaluator {name} returned {part}={number!r:.80}; give a number in 0..1 or None.")
    if value.feedback is not None and not isinstance(value.feedback, str):
        raise ConfigurationError(f"Evaluator {name} returned feedback={value.feedback!r:.80}; give words or None.")
    for part, kind in (("issues", Issue), ("flags", str)):
        found = getattr(value, part)
        if not isinstance(found, (tuple, list)) or not all(isinstance(each, kind) for each in found):
            raise ConfigurationError(
                f"Evaluator {name} returned {part}={found!r:.80}; give a tuple of {kind.__name__}."
            )
    if not all(each.severity in range(1, 6) and isinstance(each.description, str) for each in value.issues):
        raise ConfigurationError(
            f"Evaluator {name} returned issues={value.issues!r:.80}; a severity is a whole number from 1 "
            "to 5, a description words."
        )
    return value


def _name_of(evaluator: object) -> str:
    """What its author calls it: the function's name where a function judges."""
    function = getattr(evaluator, "function", None)
    name = getattr(function, "__name__", None) if callable(function) else None
    return name if isinstance(name, str) else type(evaluator).__name__


@runtime_checkable
class CanAnswer(Protocol):
    """An agent or a workflow, as far as a judge needs to know it."""

    async def arun(self, question: str, /) -> Any:
        """Answer *question*; the ``text`` of what comes back is the answer."""
        ...


@dataclass(frozen=True, slots=True)
class LLMJudge:
    """Lets a model judge the draft, with its evidence, by criteria.

    The model sees neither the agent's system prompt nor the history, gets no tools, and is sent no temperature or
    token limit unless *options* say so.  Question, draft and evidence are data between lines with a random mark, so
    that no text in them can pass for an instruction or for the verdict.  The draft is shown as it would go out, its
    thinking too; one that is blank, or nothing but thinking, is rejected without a call.  A server that refuses the
    schema of the verdict is asked without it, and from then on at once.

    Args:
        model: Who judges; another one than the drafter's as a rule, a cheaper one will often do.  An agent or a
            workflow can judge too, with its own tools and system prompt: it gets all of it as one message.
        criteria: What a draft must meet, as one text or a list; complete, clear, reliable and ready to hand over
            where it is None.
        prompt: Replaces the opening instructions; ``{criteria}`` in it stands for the criteria.  What says that the
            rest is data, and which format is wanted, is always added.
        options: Model options such as ``temperature``; an agent has its own.
        max_feedback_chars: Feedback is cut at this length, with an ellipsis, > 0.
        max_evidence_chars: Of longer evidence only the end is shown, > 0.
        max_draft_chars: A longer question or draft loses its middle, visibly, > 0.
        repairs: How often a reply that cannot be read is asked for once more, >= 0.
    """

    model: ChatModel | CanAnswer
    criteria: str | Sequence[str] | None = field(default=None, kw_only=True)
    prompt: str | None = field(default=None, kw_only=True)
    options: Mapping[str, Any] = field(default=EMPTY, kw_only=True, hash=False)
    max_feedback_chars: int = field(default=500, kw_only=True)
    max_evidence_chars: int = field(default=8000, kw_only=True)
    max_draft_chars: int = field(default=20_000, kw_only=True)
    repairs: int = field(default=1, kw_only=True)
    uses_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.model, type) or not isinstance(self.model, (ChatModel, CanAnswer)):
            raise ConfigurationError(
                f"LLMJudge needs a chat model or an agent, not {self.model!r:.80}; give LLMJudge(model)."
            )
        if self.options and not isinstance(self.model, ChatModel):
            raise ConfigurationError(
                "LLMJudge(options=...) cannot set the options of an agent; set them where it is made."
            )
        for name, least in (
            ("max_feedback_chars", 1),
            ("max_evidence_chars", 1),
            ("max_draft_chars", 1),
            ("repairs", 0),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigurationError(f"LLMJudge({name}={value!r}): give a whole number from {least}.")
        object.__setattr__(self, "criteria", _checked_criteria(self.criteria))
        object.__setattr__(self, "options", FrozenDict(self.options or {}))

    async def evaluate(self, draft: Draft) -> Judgement:
        """Ask for a verdict on *draft*, and once more where it cannot be read.

        Raises:
            ModelBehaviorError: The judge refused, or gave no verdict that can be read.
            BudgetExceeded: A limit came before the verdict.
        """
        if not strip_thinking(draft.text).strip():
            return Judgement(False, blank_answer_feedback(draft.question))
        request = self._request(draft)
        for attempt in range(self.repairs + 1):
            response = await self._ask(request)
            try:
                return self._read(response, draft.question)
            except ModelBehaviorError:
                if attempt == self.repairs or cut_short(response) in (StopReason.REFUSED, StopReason.FILTERED):
                    raise
            request = _once_more(request, response, draft.question)
        raise AssertionError("the last attempt returns or raises")  # pragma: no cover

    async def _ask(self, request: ChatRequest) -> ChatResponse:
        model = self.model
        if not isinstance(model, ChatModel):
            return await _ask_agent(model, request)
        request = request.replace(stream=False)
        return await ask_in_form(
            model, VERDICT_SCHEMA, lambda schema: ask(model, request.replace(response_schema=schema), role="judge")
        )

    def _request(self, draft: Draft) -> ChatRequest:
        """A request on the same run, without tools or history."""
        mark = os.urandom(8).hex()
        said = phrases(draft.question)
        parts = (
            (said.question, shorten_middle(draft.question, self.max_draft_chars, question=draft.question)),
            (said.draft, shorten_middle(draft.text, self.max_draft_chars, question=draft.question)),
            (said.evidence, _end_of(draft.evidence, self.max_evidence_chars) or said.no_evidence),
        )
        data = "\n\n".join(f"--- {name} {mark} ---\n{words}\n--- {said.end} {mark} ---" for name, words in parts)
        system = SystemMessage(self._instructions(draft.question, mark))
        aside = draft.request.aside(system, UserMessage(data))
        return aside.replace(options=self.options)

    def _instructions(self, question: str, mark: str) -> str:
        said = phrases(question)
        criteria = self.criteria or (() if self.prompt is not None else said.criteria)
        listed = criteria if isinstance(criteria, str) else "\n".join(f"- {each}" for each in criteria)
        opening = said.judge_role if self.prompt is None else self.prompt
        if "{criteria}" in opening:
            opening = opening.replace("{criteria}", listed)
        elif listed:
            opening = f"{opening}\n\n{said.judge_criteria}\n{listed}"
        return "\n\n".join(
            (opening, said.judge_format.format(chars=self.max_feedback_chars), said.judge_data.format(mark=mark))
        )

    def _read(self, response: ChatResponse, question: str) -> Judgement:
        reason = cut_short(response)
        if reason is not None:
            raise ModelBehaviorError(
                f"Judge {getattr(self.model, 'name', self.model)!r:.80} gave no whole verdict: its reply ended with "
                f"finish_reason={response.finish_reason!r} ({reason.value})."
            )
        judgement = read_verdict(response.text, question=question)
        if judgement.feedback is None:
            return judgement
        return replace(judgement, feedback=shorten(judgement.feedback, self.max_feedback_chars))


def _checked_criteria(criteria: object) -> str | tuple[str, ...] | None:
    if criteria is None or isinstance(criteria, str):
        return criteria or None
    listed = tuple(criteria) if isinstance(criteria, Sequence) else ()
    if not listed or not all(isinstance(each, str) and each.strip() for each in listed):
        raise ConfigurationError(f"LLMJudge(criteria={criteria!r:.80}): give a text, or a list of at least one text.")
    return listed


async def _ask_agent(agent: CanAnswer, request: ChatRequest) -> ChatResponse:
    """Ask somebody who takes one message; what it uses, does and warns of counts as the judge's."""
    question = "\n\n".join(message.text for message in request.messages)
    before = acting_as.set("judge")
    try:
        if isinstance(agent, Delegate):
            context = {key: value for key, value in request.context.items() if key not in FLAGS}
            result: Any = await ask_delegate(agent, UserMessage(question), request, role="judge", context=context)
        else:
            result = await agent.arun(question)
    finally:
        acting_as.reset(before)
    for warning in getattr(result, "warnings", ()):
        request.run.warn(f"judge: {warning}")
    if getattr(result, "reflections", ()) and not getattr(result, "approved", True):
        raise ModelBehaviorError("The judging agent's own reviewer did not approve its verdict.")
    ended = getattr(result, "stop_reason", None)
    finish = next((finish for finish, reason in CUT_SHORT.items() if reason is ended), None)
    return ChatResponse(AssistantMessage(str(getattr(result, "text", result))), finish_reason=finish)


def _end_of(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else "…" + text[len(text) - max_chars + 1 :]


def _once_more(request: ChatRequest, response: ChatResponse, question: str) -> ChatRequest:
    """Show the model what could not be read and ask again; a blank reply is not shown, because servers refuse it."""
    repair = phrases(question).judge_repair
    if not response.text.strip():
        *before, last = request.messages
        return request.replace(messages=(*before, UserMessage(f"{last.text}\n\n{repair}")))
    shown = shorten_middle(response.text, _MAX_REPLAYED_CHARS, question=question)
    reply = replace(response.message, text=shown, tool_calls=())
    return request.followed_by(reply, UserMessage(repair, synthetic="judge_repair"))
