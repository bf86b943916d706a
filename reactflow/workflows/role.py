"""The roles of a workflow: anything that answers can play one.

An agent or another workflow, a model, or a function ``(prompt: str) -> str``, plain or async.  A role is asked with
one prompt and has no memory: what it should know of earlier rounds is in the prompt.  Where a role judges, an
evaluator (:mod:`reactflow.judge`) can play it too; it gets the draft itself instead of a prompt.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from reactflow.delegate import Delegate, ask_delegate
from reactflow.doors import Settings
from reactflow.errors import BudgetExceeded, ConfigurationError, ModelBehaviorError, WorkflowError
from reactflow.events import Emit, Event, TextDelta, TextWithdrawn
from reactflow.judge import Draft, Evaluator, check_judgement, gather_evidence
from reactflow.judging.asking import ask_in_form
from reactflow.judging.evaluators import as_evaluator
from reactflow.messages import SystemMessage, UserMessage
from reactflow.model import ChatModel, acting_as, ask, drafting_for
from reactflow.result import Judgement
from reactflow.threads import cancels, run_in_thread
from reactflow.workflows.attempt import Trail
from reactflow.workflows.reply import Reply, as_text, read_reply


@dataclass(frozen=True, slots=True)
class Role:
    """One part in a workflow, and who plays it; made by :func:`as_role`.

    Args:
        name: What events, errors and the usage table call it.
        actor: An object with ``arun``, a ChatModel, an Evaluator, or a function.
        system_prompt: Standing instructions for a ChatModel; other actors have their own.
    """

    name: str
    actor: Any
    system_prompt: str | None = None

    async def ask(
        self,
        prompt: str | UserMessage,
        trail: Trail,
        *,
        schema: Mapping[str, Any] | None = None,
        drafting: bool = False,
        shown: bool | None = None,
    ) -> Reply:
        """Put *prompt* to the actor, inside the run's budget; what it uses is counted under the role's name.

        Args:
            prompt: All it is to know.
            trail: The run so far.
            schema: The JSON Schema that a ChatModel's answer should satisfy; other actors are not told.
            drafting: The reply is a draft of the answer, or makes one: the actor gets the caller's model options.
            shown: Whether a listener may see its text as a draft; None for where *drafting*.

        Raises:
            BudgetExceeded: A limit of the run was reached before the call, or its deadline came during it.
            ConfigurationError: Something was put together wrongly.
            WorkflowError: Anything else went wrong; names role and iteration, and has the error as its cause.
        """
        message = UserMessage(prompt) if isinstance(prompt, str) else prompt
        with playing(self.name, trail, drafting=drafting):
            reply = await self._ask(message, trail, schema, drafting, drafting if shown is None else shown)
        for warning in reply.warnings:
            trail.run.warn(f"{self.name}: {warning}")
        return reply

    async def ask_in_form(self, prompt: UserMessage, trail: Trail, schema: Mapping[str, Any]) -> Reply:
        """As :meth:`ask`; a ChatModel whose server refuses *schema* is asked without it.

        Args:
            prompt: All it is to know, the form of the reply in words too.
            trail: The run so far.
            schema: The JSON Schema that the reply of a ChatModel should satisfy.

        Raises:
            WorkflowError: As :meth:`ask`; also where an evaluator could not judge.
        """
        if not is_model(self.actor):
            reply = await self.ask(prompt, trail)
            with playing(self.name, trail):
                _check_judged(reply.value)
            return reply
        return await ask_in_form(self.actor, schema, lambda schema: self.ask(prompt, trail, schema=schema))

    async def _ask(
        self, message: UserMessage, trail: Trail, schema: Mapping[str, Any] | None, drafting: bool, shown: bool
    ) -> Reply:
        if is_agent(self.actor):
            work = self._ask_agent(message, trail, drafting, shown)
            return read_reply(await trail.run.meter.cut(work, recovers=True))
        if is_model(self.actor):
            return await self._ask_model(message, trail, schema, drafting, shown)
        if is_evaluator(self.actor):
            judgement = await trail.run.meter.cut(evaluate(self.actor, trail), recovers=True)
            return Reply(as_text(judgement), judgement)
        return read_reply(await trail.run.meter.cut(call(self.actor, message.text), recovers=True))

    async def _ask_model(
        self, message: UserMessage, trail: Trail, schema: Mapping[str, Any] | None, drafting: bool, shown: bool
    ) -> Reply:
        system = (SystemMessage(self.system_prompt),) if self.system_prompt else ()
        request = trail.request.aside(*system, message).replace(response_schema=schema)
        if drafting:
            request = request.replace(options=trail.request.options)
        if shown:
            request = request.replace(emit=_as_draft(trail.number, request.emit))
        else:
            request = request.replace(stream=False)
        for _ in range(2):
            response = await ask(cast(ChatModel, self.actor), request, role=self.name)
            if response.text.strip():
                return read_reply(response)
        raise ModelBehaviorError(f"Model {self.actor.name!r} twice gave no text. Use another model, or another prompt.")

    async def _ask_agent(self, message: UserMessage, trail: Trail, drafting: bool, shown: bool) -> Any:
        if not isinstance(self.actor, Delegate):
            return await self.actor.arun(message.text)
        request = trail.request
        settings: Settings = {"context": request.context}
        if drafting:
            settings["options"] = request.options
        if trail.run.max_rounds is not None:
            settings["max_rounds"] = trail.run.max_rounds
        draft = trail.number if shown else 0
        return await ask_delegate(self.actor, message, request, role=self.name, draft=draft, **settings)


@contextmanager
def playing(role: str, trail: Trail, *, drafting: bool = False) -> Iterator[None]:
    """Count what runs inside under *role*, and let its errors say which role failed, and when.

    A role that is *drafting* repeats no side effect of an earlier draft.

    Limits of the run, a cancel of it and wrong settings pass through as they are: they are no failure of the role.  A
    limit of the role's own is one.
    """
    before, effects = acting_as.set(role), drafting_for.set(trail.run.effects if drafting else None)
    try:
        yield
    except ConfigurationError:
        raise
    except (
        Exception,
        SystemExit,
        asyncio.CancelledError,
    ) as error:  # an actor may be user code: whatever comes out, the error says where
        if isinstance(error, asyncio.CancelledError) and cancels():
            raise
        if isinstance(error, BudgetExceeded) and trail.run.meter.raised(error):
            raise
        raise role_failed(role, trail, error) from error
    finally:
        acting_as.reset(before)
        drafting_for.reset(effects)


def role_failed(role: str, trail: Trail, cause: BaseException) -> WorkflowError:
    """The error that says which role failed, in which iteration, and why."""
    reason = f"{type(cause).__name__}: {cause}".removesuffix(": ")
    error = WorkflowError(
        f"The {role} failed in iteration {trail.iteration}: {reason} (The role's own error is the cause.)",
        role=role,
        iteration=trail.iteration,
    )
    error.__cause__ = cause
    return error


def as_role(actor: Any, name: str, system_prompt: str | None = None, *, judges: bool = False) -> Role:
    """Let *actor* play the role called *name*; an evaluator can only where the role *judges*.

    Raises:
        ConfigurationError: Nothing it has can answer, or *system_prompt* is given for what is no ChatModel.
    """
    if not judges and is_evaluator(actor.actor if isinstance(actor, Role) else actor):
        raise ConfigurationError(
            f"{name}={actor!r:.80} judges drafts and writes none; give an agent, a workflow, a ChatModel, or a "
            "function (prompt: str) -> str."
        )
    if isinstance(actor, Role):
        return replace(actor, name=name)
    known = is_agent(actor) or is_model(actor) or is_evaluator(actor) or callable(actor)
    if isinstance(actor, type) or not known:
        raise ConfigurationError(
            f"{name}={actor!r:.80} cannot answer; give an agent, a workflow, a ChatModel such as "
            "OpenAIChatModel('gpt-5-mini'), or a function (prompt: str) -> str."
        )
    if system_prompt is not None and not is_model(actor):
        raise ConfigurationError(
            f"{name}={actor!r:.80} has its own instructions; a system prompt can be given to a ChatModel only."
        )
    if system_prompt is not None and (not isinstance(system_prompt, str) or not system_prompt.strip()):
        raise ConfigurationError(f"The {name}'s prompt is {system_prompt!r:.80}; give a text, or None for none.")
    return Role(name, actor, system_prompt)


def as_critic(actor: Any, name: str, system_prompt: str | None = None) -> Role:
    """Let *actor* play a role that judges: what :func:`as_role` takes, a schema, a list, or a function of a Draft.

    Raises:
        ConfigurationError: It can neither answer nor judge.
    """
    if isinstance(actor, (list, tuple, Mapping, type)) or _takes_a_draft(actor):
        actor = as_evaluator(actor)
    return as_role(actor, name, system_prompt, judges=True)


def _takes_a_draft(actor: Any) -> bool:
    """Whether *actor* is a function whose first parameter is annotated ``Draft``."""
    hints = getattr(actor, "__annotations__", {}) if inspect.isroutine(actor) else {}
    return next((hint for name, hint in hints.items() if name != "return"), None) in (Draft, "Draft")


def is_agent(actor: Any) -> bool:
    """Whether *actor* is an agent or a workflow."""
    return callable(getattr(actor, "arun", None))


def is_model(actor: Any) -> bool:
    """Whether *actor* is a ChatModel."""
    return not is_agent(actor) and callable(getattr(actor, "complete", None)) and hasattr(actor, "name")


def is_evaluator(actor: Any) -> bool:
    """Whether *actor* judges drafts by itself, without a prompt."""
    return not is_agent(actor) and not is_model(actor) and callable(getattr(actor, "evaluate", None))


def _check_judged(value: object) -> None:
    """Make sure that what a role gave is no judgement that says nothing; why it does not goes into the error."""
    if isinstance(value, Judgement) and value.status == "unjudged":
        why = " ".join((*value.flags, *([value.feedback] if value.feedback else ())))
        raise ModelBehaviorError(f"The evaluator could not judge the text. {why}".rstrip())


async def evaluate(evaluator: Evaluator, trail: Trail) -> Judgement:
    """Let *evaluator* judge the newest draft, with the tool calls that led to it as evidence."""
    draft = Draft(question=trail.task, text=trail.latest.draft, evidence=evidence(trail), request=trail.request)
    return check_judgement(await evaluator.evaluate(draft), evaluator, question=trail.task)


async def hear(evaluator: Evaluator, trail: Trail, *, role: str, what: str) -> Judgement:
    """What *evaluator*, in the part of *role*, says of the newest draft; what was odd about it is a warning on *what*.

    Raises:
        BudgetExceeded: A limit of the run came first.
        WorkflowError: It failed.
    """
    with playing(role, trail):
        judgement = await trail.run.meter.cut(evaluate(evaluator, trail), recovers=True)
    for flag in judgement.flags:
        trail.run.warn(f"{what} {trail.number}: {flag}")
    return judgement


def evidence(trail: Trail) -> str:
    """The tool calls that an agent made for the newest draft, and their results; empty where there were none."""
    return "" if trail.reply is None else gather_evidence(trail.reply.messages, question=trail.task)


async def call(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, async or plain; a plain one in a thread of its own."""
    if inspect.iscoroutinefunction(function):
        return await function(*args)
    value = await run_in_thread(lambda: function(*args))
    return await value if inspect.isawaitable(value) else value


def _as_draft(number: int, emit: Emit) -> Emit:
    """An *emit* that passes a model's text on as that of draft *number*, to be shown by the rules for drafts."""

    def passed_on(event: Event) -> None:
        if isinstance(event, (TextDelta, TextWithdrawn)):
            event = replace(event, role="agent", round=number)
        emit(event)

    return passed_on
