"""The conversation of a chat, kept over restarts, whose last turn can be asked again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from reactflow.memory import StoreMemory, check_conversation_id, read_window, window_start
from reactflow.messages import Message, is_real_user, readable
from reactflow.storable import storable
from reactflow.store import ConversationStore, StoredMessage

PAGE = 500


@dataclass(slots=True, eq=False)
class Conversation(StoreMemory):
    """Shows the newest turns, as ``WindowChatMemory`` does, and can replace the last one.

    Args:
        store: Where conversations are kept.
        conversation_id: Which one this is.
        max_messages: How many messages a model sees, >= 1.
    """

    store: ConversationStore
    conversation_id: str
    max_messages: int = 40
    _replaced: tuple[StoredMessage, ...] = field(default=(), init=False)  # the turn that is being asked again

    async def get(self, conversation_id: str) -> tuple[Message, ...]:
        """The newest turns that fit, oldest first."""
        room = self.max_messages + len(self._replaced)
        window = await read_window(self.store, check_conversation_id(conversation_id), room)
        if self._replaced and window[-len(self._replaced) :] != self._replaced:
            self._replaced = ()  # somebody else has added to the conversation: nothing of theirs may be lost
        found = window[: len(window) - len(self._replaced)]
        start, _ = window_start(found, self.max_messages)
        return tuple(one.message for one in found[start:])

    async def add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Append *messages*, in place of the turn that is being asked again where there is one."""
        if self._replaced:
            await self.store.replace_from(conversation_id, self._replaced[0].sequence, storable(messages))
        else:
            await StoreMemory.add(self, conversation_id, messages)

    async def everything(self) -> tuple[Message, ...]:
        """The whole conversation, oldest first."""
        kept: list[Message] = []
        after = 0
        while page := await self.store.oldest(self.conversation_id, PAGE, after=after):
            kept.extend(one.message for one in page)
            after = page[-1].sequence
        return tuple(kept)

    @asynccontextmanager
    async def asking_again(self, asked: str | None) -> AsyncIterator[str | None]:
        """Leave the last turn out, and let what is added meanwhile take its place.

        Args:
            asked: What was asked last, where the caller knows: a turn that left no trace replaces none.

        Yields:
            The question to ask, or None where there is none.
        """
        turn = await self._last_turn()
        if not turn or (asked is not None and turn[0].message.text != readable(asked)):
            yield asked
            return
        self._replaced = turn
        try:
            yield turn[0].message.text
        finally:
            self._replaced = ()

    async def _last_turn(self) -> tuple[StoredMessage, ...]:
        window = await read_window(self.store, self.conversation_id, 1)
        starts = [at for at, one in enumerate(window) if is_real_user(one.message)]
        return tuple(window[starts[-1] :]) if starts else ()
