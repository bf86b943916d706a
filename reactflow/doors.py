"""The ways into an agent or a workflow: call, run and stream, plain or async, over one coroutine.

The core is async.  The plain doors hand it to one event loop in the background, so they work in a script, in a
notebook whose own loop is running, and in any thread, and connections stay open between calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, replace
from types import EllipsisType, NoneType
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from reactflow.answer_stream import AnswerStream, Drafts, check_drafts
from reactflow.background import run_blocking, stream_blocking
from reactflow.budget import NO_BUDGET, Budget, Meter
from reactflow.errors import ConfigurationError, ConflictError, StoreError, near
from reactflow.events import Emit, Event, RunFinished, RunStarted, discard
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.judge import FLAGS
from reactflow.messages import UserMessage, readable
from reactflow.model import ChatRequest, Run, acting_as, current_run, drafting_for
from reactflow.result import AgentResult
from reactflow.toolbox import Tool, ToolContext
from reactflow.tooling.definition import ToolOptions

T = TypeVar("T")
ResultT = TypeVar("ResultT", bound=AgentResult)


class Settings(TypedDict, total=False):
    """What one call may set; ``...`` keeps the agent's own setting.

    * conversation_id: Whose memory to read and write; without one memory is left alone.
    * context: Seeds the run's context, which advisors and tools can read.
    * options: Model options such as ``temperature``, for the agent's own calls.
    * max_rounds: Model calls that may use tools, for each attempt; None for no limit.
    * budget: The limits of this run; None for no limit.
    """

    conversation_id: str | None
    context: Mapping[str, Any] | None
    options: Mapping[str, Any] | None
    max_rounds: int | EllipsisType | None
    budget: Budget | EllipsisType | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The settings of one call, checked."""

    conversation_id: str | None = None
    context: Mapping[str, Any] | None = None
    options: Mapping[str, Any] | None = None
    max_rounds: int | EllipsisType | None = ...
    budget: Budget | EllipsisType | None = ...

    def __post_init__(self) -> None:
        if self.conversation_id is not None and (
            not isinstance(self.conversation_id, str) or not self.conversation_id.strip()
        ):
            raise ConfigurationError(
                f"conversation_id={self.conversation_id!r}: give a text that is not blank, "
                "or leave it out for no memory."
            )
        for name in ("context", "options"):
            check_mapping(name, getattr(self, name))
        if self.max_rounds is not ...:
            check_max_rounds(self.max_rounds)
        if not isinstance(self.budget, (Budget, type(None), EllipsisType)):
            raise ConfigurationError(f"budget={self.budget!r}: give Budget(...), or None for no limit.")


def check_mapping(name: str, value: object) -> Mapping[str, Any]:
    """Return *value*, empty where it is None, or raise ConfigurationError where it is no mapping."""
    if not isinstance(value, (Mapping, NoneType)):
        raise ConfigurationError(f"{name}={value!r}: give a dict, or leave it out.")
    return value or EMPTY


def check_max_rounds(value: object) -> None:
    """Raise ConfigurationError unless *value* is None or a whole number from 1."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigurationError(f"max_rounds={value!r}: give a whole number from 1, or None for no limit.")


def read_settings(settings: Settings) -> Call:
    """Return *settings* checked.

    Raises:
        ConfigurationError: A value is wrong.
        TypeError: There is no such setting, as of any call with a wrong keyword.
    """
    unknown = sorted(settings.keys() - Settings.__annotations__.keys())
    if unknown:
        raise TypeError(f"There is no setting {unknown[0]!r} of a call: {near(unknown[0], Settings.__annotations__)}.")
    return Call(**settings)


def read_question(question: object) -> UserMessage:
    """Return *question* as a message, or raise ConfigurationError where it is none or blank."""
    message = UserMessage(question) if isinstance(question, str) else question
    if not isinstance(message, UserMessage):
        raise ConfigurationError(f"question={question!r:.80}: give a text or a UserMessage.")
    if not message.text.strip() and not message.images:
        raise ConfigurationError("The question is blank; give it some text.")
    text = readable(message.text)
    return message if text is message.text else replace(message, text=text)


class Doors(Generic[ResultT]):
    """All ways to start a run.  A subclass has a ``name``, a ``budget`` and ``_perform``."""

    name: str
    budget: Budget | None
    max_rounds: int | None = 10
    holds_back: bool = False
    """Whether streamed text may still be rejected, so that it is shown only after the verdict."""

    async def _perform(self, request: ChatRequest) -> ResultT:
        """Carry out one run; the question is the only message of *request*.

        A ReactflowError that comes out has this run's best draft as its ``partial``, or None where it had none.
        """
        raise NotImplementedError  # abstract

    def call(self, question: str | UserMessage, **settings: Unpack[Settings]) -> str:
        """Ask, and return the answer's text."""
        return self.run(question, **settings).text

    def run(self, question: str | UserMessage, **settings: Unpack[Settings]) -> ResultT:
        """Ask, and return the whole result.  Blocks, also where an event loop is running.

        Raises:
            ConfigurationError: A setting is wrong; nothing was called.
            BudgetExceeded: A limit came before there was an answer.
            ReactflowError: See :mod:`reactflow.errors`; ``partial`` holds the best draft where there was one.
        """
        return run_blocking(self.arun(question, **settings))

    async def arun(self, question: str | UserMessage, **settings: Unpack[Settings]) -> ResultT:
        """Ask, and return the whole result; see :meth:`run`."""
        return await self._launch(read_question(question), read_settings(settings), emit=discard, stream=False)

    def stream(
        self, question: str | UserMessage, *, drafts: Drafts = "hide", **settings: Unpack[Settings]
    ) -> Iterator[Event]:
        """Ask, and yield the run's events as they happen; see :meth:`astream`."""
        return stream_blocking(self.astream(question, drafts=drafts, **settings))

    async def astream(
        self, question: str | UserMessage, *, drafts: Drafts = "hide", **settings: Unpack[Settings]
    ) -> AsyncGenerator[Event, None]:
        """Ask, and yield the run's events as they happen; the last one is ``RunFinished`` with the result.

        The text deltas that are not withdrawn, joined, are the answer.  Ending the iteration early cancels the run.

        Args:
            question: What to ask.
            drafts: With reflection, ``"hide"`` shows text only after the verdict; ``"tag"`` shows every draft under
                its round, and ``AnswerRevised`` where the answer is not the draft that was shown.
            settings: See :class:`Settings`.
        """
        message, call = read_question(question), read_settings(settings)
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        answers = AnswerStream(_from_any_thread(events), drafts=check_drafts(drafts), holds_back=self.holds_back)
        task = asyncio.create_task(self._launch(message, call, emit=answers, stream=True))
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # seen: a listener that has gone wants no report of how the run ended

    def as_tool(self, name: str | None = None, *, description: str, **options: Unpack[ToolOptions]) -> Tool:
        """Make a tool of it for another agent; the model gives the ``question`` and reads the answer.

        It runs inside the calling run: within its budget, counted there under the tool's name, with its context but
        without its conversation.  An answer that a reviewer did not approve says so in a last line.

        Args:
            name: What the model calls it by; its own name where it is None.
            description: When to use it and what comes back.
            options: See :class:`~reactflow.toolbox.Tool`.

        Raises:
            ConfigurationError: The name cannot be that of a tool, or an option is wrong.
        """
        known = self.name if name is None else name

        async def ask(question: str, context: ToolContext) -> str:
            seed = {key: value for key, value in context.items() if key not in FLAGS}
            role = acting_as.set(known)
            try:
                return _for_a_model(await self.arun(question, context=seed))
            finally:
                acting_as.reset(role)

        return Tool.from_schema(known, description, _QUESTION, ask, **options)

    async def _launch(self, question: UserMessage, call: Call, *, emit: Emit, stream: bool) -> ResultT:
        """Open a run, carry it out, commit what memory noted, and close it."""
        run = self._open(question, call, emit)
        request = ChatRequest(
            messages=(question,),
            run=run,
            options=FrozenDict(call.options or {}),
            stream=stream,
            context=FrozenDict(call.context or {}),
            emit=emit,
        )
        inside, role, drafting = current_run.set(run), acting_as.set(None), drafting_for.set(None)
        try:
            async with run.resources:
                emit(
                    RunStarted(
                        run_id=run.run_id, question=question.text, conversation_id=run.conversation_id, agent=self.name
                    )
                )
                result = await self._perform(request)
                await _commit(run, result)
            emit(RunFinished(result=result))
            return result
        finally:
            current_run.reset(inside)
            acting_as.reset(role)
            drafting_for.reset(drafting)

    def _open(self, question: UserMessage, call: Call, emit: Emit) -> Run:
        parent = current_run.get()
        budget = self.budget if call.budget is ... else call.budget
        meter = Meter(
            budget or NO_BUDGET, parent=parent.meter if parent else None, role=acting_as.get() or self.name or "agent"
        )
        effects = drafting_for.get()
        return Run(
            question=question,
            meter=meter,
            conversation_id=call.conversation_id,
            max_rounds=self.max_rounds if call.max_rounds is ... else call.max_rounds,
            emit=emit,
            parent=parent,
            effects={} if effects is None else effects,
        )


_QUESTION: Mapping[str, Any] = FrozenDict(
    type="object",
    properties={"question": {"type": "string", "minLength": 1, "description": "What to ask, complete in itself."}},
    required=["question"],
    additionalProperties=False,
)


def _for_a_model(result: AgentResult) -> str:
    if result.approved or not result.reflections:
        return result.text
    return f"{result.text}\n\n[A reviewer did not approve this answer: {result.stop_reason}.]"


async def _commit(run: Run, result: AgentResult) -> None:
    """Store what memory noted, once.  A commit that has begun is finished before a cancel goes on."""
    if run.commit is None:
        return
    storing = asyncio.ensure_future(run.commit())
    cancelled: asyncio.CancelledError | None = None
    while not storing.done():
        try:
            await asyncio.wait([storing])
        except asyncio.CancelledError as cancel:
            cancelled = cancel
    if cancelled is not None:
        raise cancelled
    error = storing.exception()
    if isinstance(error, ConflictError):
        error.partial = result
        raise error  # as it is: whoever runs the turn again looks for its type
    if error is not None:
        failed = StoreError(f"The answer is there but could not be stored: {error}. It is in error.partial.")
        failed.partial = result
        raise failed from error


def _from_any_thread(events: asyncio.Queue[Event | None]) -> Emit:
    """An ``emit`` that plain functions in other threads may call too."""
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def emit(event: Event) -> None:
        if threading.get_ident() == home:
            events.put_nowait(event)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(events.put_nowait, event)

    return emit
