"""What an agent remembers of a conversation.

A store keeps every message; a memory decides how many of them the next model call sees.  So a window can be changed
later, and nothing that was said is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from reactflow.errors import ConfigurationError
from reactflow.messages import Message, is_real_user
from reactflow.storable import storable
from reactflow.store import InMemoryStore, MessageStore, StoredMessage, check_whole

__all__ = [
    "ChatMemory",
    "InMemoryStore",
    "MessageStore",
    "StoreMemory",
    "StoredMessage",
    "WindowChatMemory",
    "check_conversation_id",
    "check_store",
    "read_window",
    "window_start",
]


@runtime_checkable
class ChatMemory(Protocol):
    """What a model sees of a conversation, and where its turns are kept.  Subclass nothing.

    A conversation id is a string that is not blank, else a ConfigurationError; there is no shared default.  A store
    that fails raises a StoreError.

    A memory that asks a model for what it shows also has ``async recall(request) -> Sequence[Message]``; a run calls
    that in place of ``get``, so that the model call counts toward it.
    """

    async def get(self, conversation_id: str) -> Sequence[Message]:
        """What a model should see of the conversation, oldest first, from a user message on."""
        ...

    async def add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Append *messages*, all or none.  System messages are left out; an empty list is no error."""
        ...

    async def clear(self, conversation_id: str) -> None:
        """Forget the conversation; an unknown one is no error."""
        ...

    def turn(self, conversation_id: str) -> AbstractAsyncContextManager[None]:
        """Hold the conversation while one turn runs; others wait, first come first served.  Not re-entrant."""
        ...


class StoreMemory:
    """The part that all memories over a store share; a subclass adds what it shows."""

    __slots__ = ()
    store: MessageStore

    async def add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Append *messages*, all or none.  System messages are left out; an empty list is no error.

        Raises:
            ConfigurationError: The id is blank or no string, or one of *messages* is no message.
            StoreError: The store failed; nothing was stored.
        """
        check_conversation_id(conversation_id)
        if kept := storable(messages):
            await self.store.append(conversation_id, kept)

    async def clear(self, conversation_id: str) -> None:
        """Forget the conversation; an unknown one is no error."""
        await self.store.clear(check_conversation_id(conversation_id))

    def turn(self, conversation_id: str) -> AbstractAsyncContextManager[None]:
        """Hold the conversation in the store, so that all memories over one store share the turn."""
        return self.store.turn(check_conversation_id(conversation_id))


@dataclass(frozen=True, slots=True, eq=False)
class WindowChatMemory(StoreMemory):
    """Shows the newest turns that fit into a number of messages.

    A turn is a user message and all that follows it up to the next one.  It is shown whole or not at all, so a tool
    call is never parted from its result.  The newest turn is always shown, however long.

    Args:
        max_messages: How many messages to show, >= 1.
        store: Where the conversation is kept; in this process by default.
    """

    max_messages: int = 20
    store: MessageStore = field(default_factory=InMemoryStore)

    def __post_init__(self) -> None:
        check_whole("WindowChatMemory", "max_messages", self.max_messages)
        check_store("WindowChatMemory", self.store)

    async def get(self, conversation_id: str) -> tuple[Message, ...]:
        """The newest turns that fit, oldest first.

        Raises:
            ConfigurationError: The id is blank or no string.
            StoreError: The store failed.
        """
        window = await read_window(self.store, check_conversation_id(conversation_id), self.max_messages)
        return tuple(stored.message for stored in window)


MAX_PAGE = 1_000
"""Most messages to read from a store at once."""


def one_each(message: Message) -> int:
    """Count a message as 1."""
    return 1


async def read_window(
    store: MessageStore,
    conversation_id: str,
    limit: int,
    *,
    cost: Callable[[Message], int] = one_each,
    page: int | None = None,
) -> tuple[StoredMessage, ...]:
    """Read the newest turns whose messages cost at most *limit* together, and the newest turn whatever it costs.

    Reads from the end, so the effort does not grow with the conversation.  What comes before the first user message
    is never shown: models refuse a conversation that starts with anything else.

    Args:
        store: Where to read.
        conversation_id: Which conversation.
        limit: The most that the window may cost, >= 1.
        cost: What one message costs, >= 0.
        page: How many messages to read at first; *limit* where it is None.
    """
    size = min(page or limit, MAX_PAGE)
    found: tuple[StoredMessage, ...] = ()
    while True:
        older = await store.newest(conversation_id, size, before=found[0].sequence if found else None)
        found = (*older, *found)
        start, full = window_start(found, limit, cost)
        if full or len(older) < size:
            return found[start:]
        size = min(2 * size, MAX_PAGE)


def window_start(
    found: Sequence[StoredMessage], limit: int, cost: Callable[[Message], int] = one_each
) -> tuple[int, bool]:
    """Where the window begins in *found*, and whether nothing older could be part of it."""
    start, total = len(found), 0
    for index in range(len(found) - 1, -1, -1):
        message = found[index].message
        total += cost(message)
        if total > limit and start < len(found):
            return start, True
        if is_real_user(message):
            start = index
    return start, total >= limit and start < len(found)


def check_conversation_id(conversation_id: object) -> str:
    """Return *conversation_id*.

    Raises:
        ConfigurationError: It is no string, or blank.
    """
    if not isinstance(conversation_id, str):
        raise ConfigurationError(f"The conversation id is {conversation_id!r:.80}; give a string.")
    if not conversation_id.strip():
        raise ConfigurationError(
            f"The conversation id {conversation_id!r:.80} is blank; give each conversation a name of its own."
        )
    return conversation_id


def check_store(owner: str, store: object) -> None:
    """Refuse a store that lacks a method of the protocol.

    Raises:
        ConfigurationError: Names what is missing.
    """
    wanted = ("append", "newest", "oldest", "clear", "note", "set_note", "turn")
    missing = [name for name in wanted if not callable(getattr(store, name, None))]
    if missing or isinstance(store, type):
        raise ConfigurationError(
            f"{owner}(store={store!r:.80}) is no message store ({', '.join(missing) or 'it is a class'}); "
            "give one such as InMemoryStore()."
        )
