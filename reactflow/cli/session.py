"""The turns of a chat: ask, cancel, ask again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reactflow.advisors.chat_memory import ChatMemoryAdvisor
from reactflow.cli.ask import Screen, watch
from reactflow.cli.conversation import Conversation
from reactflow.cli.failures import tell
from reactflow.cli.reasons import ExitCode, code_of_error, code_of_result
from reactflow.cli.terminal import say
from reactflow.doors import Doors
from reactflow.errors import ReactflowError
from reactflow.memory import ChatMemory
from reactflow.messages import AssistantMessage, Message, UserMessage
from reactflow.result import AgentResult


@dataclass(slots=True)
class Chat:
    """Asks one agent again and again.

    Args:
        agent: The agent or workflow.
        screen: Where to write.
        conversation_id: The conversation in the agent's memory.
        settings: For every run.
        interactive: Whether a person types.
        conversation: Where the conversation is kept, for an agent made here; the user's own keeps its own.
        place: The file that it is kept in.
    """

    agent: Any
    screen: Screen
    conversation_id: str
    settings: Mapping[str, Any]
    interactive: bool = False
    conversation: Conversation | None = None
    place: Path | None = None
    turns: list[tuple[str, AgentResult]] = field(default_factory=list)  # of this session
    asked: str | None = None
    outcome: AgentResult | BaseException | None = None  # of the last turn
    code: ExitCode = ExitCode.ANSWERED

    @property
    def memory(self) -> ChatMemory | None:
        """What the agent remembers with, or None."""
        return self.conversation or memory_of(self.agent)

    async def everything(self) -> tuple[Message, ...]:
        """The conversation as far as it is known here: all that is kept, or the turns of this session."""
        if self.conversation is not None:
            return await self.conversation.everything()
        turns = ((UserMessage(question), AssistantMessage(result.text)) for question, result in self.turns)
        return tuple(message for turn in turns for message in turn)

    async def turn(self, question: str) -> None:
        """Ask *question* and write what comes.  Ctrl-C cancels this turn, and nothing of it is kept."""
        self.asked, self.outcome = question, None
        view = self.screen.view(self.agent)
        asking = asyncio.ensure_future(watch(self.agent, question, view, self._settings()))
        with _ctrl_c_cancels(asking):
            try:
                self._answered(question, await asking)
            except asyncio.CancelledError as error:
                self._failed(error, ExitCode.INTERRUPTED)
                if _is_cancelled_itself():
                    raise
                say(self.screen.err, ("Cancelled; nothing of this turn is kept.", "yellow"))
            except Exception as error:
                self._failed(error, code_of_error(error))
                tell(self.screen.err, error, debug=self.screen.debug)
                if isinstance(error, ReactflowError) and error.partial is not None:
                    self.screen.answer(error.partial.text)

    async def again(self) -> None:
        """Ask the last question again.  Where the conversation is kept here, the new answer replaces the old one."""
        failed = self.asked is not None and not isinstance(self.outcome, AgentResult)
        if self.conversation is None or failed:
            await self._ask_again(self.asked)
            return
        async with self.conversation.asking_again(self.asked) as question:
            await self._ask_again(question)

    async def _ask_again(self, question: str | None) -> None:
        if question is None:
            say(self.screen.err, "There is no question yet.")
        else:
            await self.turn(question)

    def _settings(self) -> Mapping[str, Any]:
        own = {"conversation_id": self.conversation_id} if isinstance(self.agent, Doors) else {}
        return {**self.settings, **own}

    def _answered(self, question: str, result: AgentResult) -> None:
        self.outcome, self.code = result, code_of_result(result.stop_reason)
        self.turns.append((question, result))
        self.screen.answer(result.text)
        self.screen.summary(result)

    def _failed(self, error: BaseException, code: ExitCode) -> None:
        self.outcome, self.code = error, code


def memory_of(agent: object) -> ChatMemory | None:
    """The memory that was given to *agent*, or None."""
    advisors = getattr(getattr(agent, "delegate", agent), "advisors", ())
    return next((each.memory for each in advisors if isinstance(each, ChatMemoryAdvisor)), None)


@contextmanager
def _ctrl_c_cancels(task: asyncio.Future[Any]) -> Iterator[None]:
    """Let the first Ctrl-C cancel *task*, and a second one, where that takes too long, end the program."""
    loop = asyncio.get_running_loop()

    def cancel(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_cancelled_itself() -> bool:
    """Whether the chat is to end, and not only its turn."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
