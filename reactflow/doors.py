"""The ways into an agent or a workflow: call, run and stream, plain or async, over one coroutine.

The core is async.  The plain doors hand it to one event loop in the background, so they work in a script, in a
notebook whose own loop is running, and in any thread, and connections stay open between calls.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from reactflow.answer_stream import AnswerStream, Drafts
from reactflow.budget import NO_BUDGET, Budget, Meter
from reactflow.errors import ConfigurationError, ConflictError, ReactflowError, StoreError
from reactflow.events import Emit, Event, RunFinished, RunStarted, discard
from reactflow.frozen import FrozenDict
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run, acting_as, current_run
from reactflow.result import AgentResult
from reactflow.revise import FLAGS
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
            if not isinstance(getattr(self, name), (Mapping, type(None))):
                raise ConfigurationError(f"{name}={getattr(self, name)!r}: give a dict, or leave it out.")
        if self.max_rounds is not ...:
            check_max_rounds(self.max_rounds)
        if not isinstance(self.budget, (Budget, type(None), EllipsisType)):
            raise ConfigurationError(f"budget={self.budget!r}: give Budget(...), or None for no limit.")


def check_max_rounds(value: object) -> None:
    """Raise ConfigurationError unless *value* is None or a whole number from 1."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigurationError(f"max_rounds={value!r}: give a whole number from 1, or None for no limit.")


def read_question(question: object) -> UserMessage:
    """Return *question* as a message, or raise ConfigurationError where it is none or blank."""
    message = UserMessage(question) if isinstance(question, str) else question
    if not isinstance(message, UserMessage):
        raise ConfigurationError(f"question={question!r:.80}: give a text or a UserMessage.")
    if not message.text.strip() and not message.images:
        raise ConfigurationError("The question is blank; give it some text.")
    return message


class Doors(Generic[ResultT]):
    """All ways to start a run.  A subclass has a ``name``, a ``budget`` and ``_perform``."""

    name: str
    budget: Budget | None
    max_rounds: int | None = 10
    holds_back: bool = False
    """Whether streamed text may still be rejected, so that it is shown only after the verdict."""

    async def _perform(self, request: ChatRequest) -> ResultT:
        """Carry out one run; the question is the only message of *request*."""
        raise NotImplementedError  # abstract

    def _partial(self, run: Run) -> ResultT | None:
        """The best draft of a run that failed, or None where it had none."""
        return None

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
        return await self._launch(read_question(question), Call(**settings), emit=discard, stream=False)

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
        message, call = read_question(question), Call(**settings)
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        answers = AnswerStream(_from_any_thread(events), drafts=drafts, holds_back=self.holds_back)
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
        inside, role = current_run.set(run), acting_as.set(None)
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
        except ReactflowError as error:
            error.partial = error.partial or self._partial(run)
            raise
        finally:
            current_run.reset(inside)
            acting_as.reset(role)

    def _open(self, question: UserMessage, call: Call, emit: Emit) -> Run:
        parent = current_run.get()
        budget = self.budget if call.budget is ... else call.budget
        meter = Meter(
            budget or NO_BUDGET, parent=parent.meter if parent else None, role=acting_as.get() or self.name or "agent"
        )
        return Run(
            question=question,
            meter=meter,
            conversation_id=call.conversation_id,
            max_rounds=self.max_rounds if call.max_rounds is ... else call.max_rounds,
            emit=emit,
            parent=parent,
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
        else:
            loop.call_soon_threadsafe(events.put_nowait, event)

    return emit


class _Background:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.blocked = False  # its own thread waits in a plain door that an async tool called
        self.thread = threading.Thread(target=self._serve, name="reactflow-loop", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            unfinished = asyncio.all_tasks(self.loop)
            for task in unfinished:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*unfinished, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def close(self) -> None:
        """Stop the loop, cancelling what still runs on it.  A forked child has no such thread."""
        if self.pid == os.getpid() and self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(timeout=5)


_shared: _Background | None = None
_starting = threading.Lock()


def _shared_loop() -> _Background:
    """The loop that all plain doors of this process share, so that connections stay open between calls."""
    global _shared
    with _starting:
        if _shared is None or _shared.pid != os.getpid():  # a forked child needs a thread of its own
            _shared = _Background()
            atexit.register(_shared.close)
        return _shared


@contextmanager
def _loop_to_wait_for() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that this thread may block on: the shared one, or a new one where that would wait for itself."""
    shared = _shared_loop()
    on_it = threading.get_ident() == shared.thread.ident
    if not on_it and not shared.blocked:
        yield shared.loop
        return
    own, was_blocked = _Background(), shared.blocked
    shared.blocked = True
    try:
        yield own.loop
    finally:
        shared.blocked = was_blocked
        own.close()


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* to its end from plain code and return what it returns.  An interrupt cancels it."""
    with _loop_to_wait_for() as loop:
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_END = object()


def stream_blocking(events: AsyncGenerator[Event, None]) -> Iterator[Event]:
    """Iterate over *events* from plain code.  Ending the iteration early closes them."""
    buffer: queue.SimpleQueue[Any] = queue.SimpleQueue()

    async def pump() -> None:
        try:
            async for event in events:
                buffer.put(event)
        finally:
            await events.aclose()
            buffer.put(_END)

    with _loop_to_wait_for() as loop:
        pumping = asyncio.run_coroutine_threadsafe(pump(), loop)
        try:
            while (event := buffer.get()) is not _END:
                yield event
            pumping.result()
        finally:
            pumping.cancel()
