"""Where conversations are kept: the store protocol, and the store of this process.

A store keeps every message it is given, in order; what part of them a model sees is a memory's business.  Subclass
nothing: any object with these members is a store.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Protocol, runtime_checkable

from reactflow.errors import ConfigurationError
from reactflow.fair_lock import FairLocks
from reactflow.messages import Message
from reactflow.storable import storable


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message and its place in the conversation: numbers rise from 1, and none is given twice."""

    sequence: int
    message: Message


@runtime_checkable
class MessageStore(Protocol):
    """Keeps conversations, append-only.

    A note is a small text beside a conversation, such as a summary of its older part.  It goes when the conversation
    is cleared; written *at* a message, it also goes with that message.
    """

    async def append(self, conversation_id: str, messages: Sequence[Message]) -> int:
        """Append *messages* (one or more), all or none, and return the sequence number of the last."""
        ...

    async def newest(self, conversation_id: str, limit: int, *, before: int | None = None) -> Sequence[StoredMessage]:
        """The last *limit* messages (>= 1) before sequence number *before*, oldest first."""
        ...

    async def oldest(self, conversation_id: str, limit: int, *, after: int = 0) -> Sequence[StoredMessage]:
        """The first *limit* messages (>= 1) after sequence number *after*, oldest first."""
        ...

    async def clear(self, conversation_id: str) -> None:
        """Remove the conversation and its notes; an unknown one is no error."""
        ...

    async def note(self, conversation_id: str, name: str) -> str | None:
        """The note called *name*, or None."""
        ...

    async def set_note(self, conversation_id: str, name: str, text: str, *, at: int | None = None) -> None:
        """Write or replace a note.  Does nothing where message *at* is gone: what was cleared must not come back."""
        ...

    def turn(self, conversation_id: str) -> AbstractAsyncContextManager[None]:
        """Hold the conversation while one turn runs; others wait, first come first served.  Not re-entrant."""
        ...


@runtime_checkable
class ConversationStore(MessageStore, Protocol):
    """A store whose conversations can also be listed, cut back and dropped when they are old."""

    async def replace_from(self, conversation_id: str, sequence: int, messages: Sequence[Message] = ()) -> int:
        """Drop message *sequence* (>= 1) and all after it, and append *messages*, as one step.

        Returns the sequence number of the last message, 0 where there is none.  Dropped numbers are not given again.
        """
        ...

    async def conversations(self, prefix: str = "", *, after: str = "", limit: int = 100) -> Sequence[str]:
        """The ids of conversations that hold messages and begin with *prefix*, in the order of their code points.

        Args:
            prefix: What the ids begin with; no character of it is special.
            after: The last id of the page before; the first page where it is empty.
            limit: The most ids to return, >= 1.
        """
        ...

    async def purge(self) -> int:
        """Remove the conversations whose time to live is over, and return how many."""
        ...


@dataclass(slots=True)
class _Conversation:
    used: float = 0.0
    last: int = 0  # outlives the messages, so that no number is given twice
    messages: list[StoredMessage] = field(default_factory=list)
    notes: dict[str, tuple[str, int | None]] = field(default_factory=dict)

    def place(self, sequence: int) -> int:
        """How many messages come before *sequence*."""
        return bisect_left(self.messages, sequence, key=lambda stored: stored.sequence)

    def cut(self, sequence: int) -> None:
        """Drop message *sequence* and all after it, with the notes that hang on them."""
        del self.messages[self.place(sequence) :]
        self.notes = {name: note for name, note in self.notes.items() if (note[1] or 0) < sequence}

    def has(self, sequence: int) -> bool:
        place = self.place(sequence)
        return place < len(self.messages) and self.messages[place].sequence == sequence


class InMemoryStore:
    """Keeps conversations in this process.  Safe to use from several tasks, event loops and threads.

    It must not leak in a server that runs for months: where there are too many conversations, the one unused for
    longest is dropped.  One whose turn is under way stays.

    Args:
        max_conversations: How many to keep, >= 1; None for no limit.
        ttl_seconds: Drop a conversation that was unused for so long, > 0; None for never.
    """

    def __init__(self, *, max_conversations: int | None = 10_000, ttl_seconds: float | None = None) -> None:
        if max_conversations is not None:
            check_whole("InMemoryStore", "max_conversations", max_conversations)
        if ttl_seconds is not None and not ttl_seconds > 0:
            raise ConfigurationError(f"InMemoryStore(ttl_seconds={ttl_seconds!r}): give seconds above 0, or None.")
        self.max_conversations = max_conversations
        self.ttl_seconds = ttl_seconds
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()  # the one unused for longest first
        self._turns = FairLocks()
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._conversations)

    def __repr__(self) -> str:
        return f"InMemoryStore(max_conversations={self.max_conversations}, ttl_seconds={self.ttl_seconds})"

    async def append(self, conversation_id: str, messages: Sequence[Message]) -> int:
        """Append *messages* (one or more), all or none, and return the sequence number of the last."""
        with self._guard:
            conversation = self._use(conversation_id) or _Conversation(time.monotonic())
            self._extend(conversation_id, conversation, messages)
            return conversation.last

    async def newest(self, conversation_id: str, limit: int, *, before: int | None = None) -> tuple[StoredMessage, ...]:
        """The last *limit* messages (>= 1) before sequence number *before*, oldest first."""
        with self._guard:
            conversation = self._use(conversation_id) or _Conversation()
            end = len(conversation.messages) if before is None else conversation.place(before)
            return tuple(conversation.messages[max(0, end - limit) : end])

    async def oldest(self, conversation_id: str, limit: int, *, after: int = 0) -> tuple[StoredMessage, ...]:
        """The first *limit* messages (>= 1) after sequence number *after*, oldest first."""
        with self._guard:
            conversation = self._use(conversation_id) or _Conversation()
            start = conversation.place(after + 1)
            return tuple(conversation.messages[start : start + limit])

    async def clear(self, conversation_id: str) -> None:
        """Remove the conversation and its notes; an unknown one is no error."""
        with self._guard:
            if (conversation := self._use(conversation_id)) is not None:
                conversation.messages.clear()
                conversation.notes.clear()

    async def note(self, conversation_id: str, name: str) -> str | None:
        """The note called *name*, or None."""
        with self._guard:
            conversation = self._use(conversation_id) or _Conversation()
            text, at = conversation.notes.get(name, (None, None))
            return text if at is None or conversation.has(at) else None

    async def set_note(self, conversation_id: str, name: str, text: str, *, at: int | None = None) -> None:
        """Write or replace a note; does nothing where message *at* is gone."""
        with self._guard:
            conversation = self._use(conversation_id) or _Conversation(time.monotonic())
            if at is None or conversation.has(at):
                conversation.notes[name] = (text, at)
                self._conversations[conversation_id] = conversation
                self._drop_unused(keep=conversation_id)

    async def replace_from(self, conversation_id: str, sequence: int, messages: Sequence[Message] = ()) -> int:
        """Drop message *sequence* (>= 1) and all after it, and append *messages*, as one step."""
        check_whole("replace_from", "sequence", sequence)
        kept = storable(messages)
        with self._guard:
            conversation = self._use(conversation_id) or _Conversation(time.monotonic())
            conversation.cut(sequence)
            if kept:
                self._extend(conversation_id, conversation, kept)
            return conversation.messages[-1].sequence if conversation.messages else 0

    async def conversations(self, prefix: str = "", *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """The ids of conversations that hold messages and begin with *prefix*, in the order of their code points."""
        with self._guard:
            live = (
                conversation_id
                for conversation_id, conversation in self._conversations.items()
                if conversation.messages and not self._expired(conversation_id, conversation)
            )
            found = (each for each in live if each.startswith(prefix) and each > after)
            return tuple(nsmallest(limit, found))

    async def purge(self) -> int:
        """Remove the conversations whose time to live is over, and return how many."""
        with self._guard:
            expired = [each for each, conversation in self._conversations.items() if self._expired(each, conversation)]
            for conversation_id in expired:
                del self._conversations[conversation_id]
            return len(expired)

    def turn(self, conversation_id: str) -> AbstractAsyncContextManager[None]:
        """Hold the conversation while one turn runs; others wait, first come first served.  Not re-entrant."""
        return self._turns.hold(conversation_id)

    def _extend(self, conversation_id: str, conversation: _Conversation, messages: Sequence[Message]) -> None:
        conversation.messages.extend(StoredMessage(n, m) for n, m in enumerate(messages, conversation.last + 1))
        conversation.last += len(messages)
        self._conversations[conversation_id] = conversation
        self._drop_unused(keep=conversation_id)

    def _use(self, conversation_id: str) -> _Conversation | None:
        """The conversation, marked as used now; None where there is none, or where its time is up."""
        conversation = self._conversations.get(conversation_id)
        if conversation is None or self._expired(conversation_id, conversation):
            self._conversations.pop(conversation_id, None)
            return None
        conversation.used = time.monotonic()
        self._conversations.move_to_end(conversation_id)
        return conversation

    def _expired(self, conversation_id: str, conversation: _Conversation) -> bool:
        if self.ttl_seconds is None or conversation_id in self._turns:
            return False
        return time.monotonic() - conversation.used > self.ttl_seconds

    def _drop_unused(self, *, keep: str) -> None:
        excess = 0 if self.max_conversations is None else len(self) - self.max_conversations
        unused: list[str] = []
        for conversation_id, conversation in self._conversations.items():
            if conversation_id in self._turns or conversation_id == keep:
                continue
            if len(unused) >= excess and not self._expired(conversation_id, conversation):
                break  # all further ones were used later
            unused.append(conversation_id)
        for conversation_id in unused:
            del self._conversations[conversation_id]


def check_whole(owner: str, name: str, value: object) -> None:
    """Refuse a setting that is not a whole number above 0.

    Raises:
        ConfigurationError: Names the setting and its value.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{owner}({name}={value!r}): give a whole number of at least 1.")
