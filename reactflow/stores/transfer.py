"""Conversations as JSON lines: one message a line, so that files of any size are written and read piece by piece.

``{"conversation": "c", "sequence": 1, "message": {"role": "user", "text": "..."}}``
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from reactflow.errors import ConfigurationError
from reactflow.memory import check_conversation_id
from reactflow.messages import Message, is_real_user
from reactflow.store import ConversationStore
from reactflow.stores.codec import decode, encode

PAGE = 500
"""How many messages or ids are read at once."""


async def export_lines(store: ConversationStore, prefix: str = "") -> AsyncIterator[str]:
    """Write the conversations whose id begins with *prefix*, each line without its end.

    Conversations come in the order of their ids, messages in theirs.  Notes are not written.

    Raises:
        StoreError: The store failed, or a message in it cannot be read.
    """
    async for conversation_id in all_conversations(store, prefix):
        name = json.dumps(conversation_id)  # escaped, so that even half a character survives
        after = 0
        while page := await store.oldest(conversation_id, PAGE, after=after):
            for stored in page:
                yield f'{{"conversation":{name},"sequence":{stored.sequence},"message":{encode(stored.message)}}}'
            after = page[-1].sequence


async def all_conversations(store: ConversationStore, prefix: str = "") -> AsyncIterator[str]:
    """The ids that begin with *prefix*, in order, however many."""
    after = ""
    while page := await store.conversations(prefix, after=after, limit=PAGE):
        for conversation_id in page:
            yield conversation_id
        after = page[-1]


async def import_lines(store: ConversationStore, lines: Iterable[str], *, replace: bool = False) -> int:
    """Append what :func:`export_lines` wrote, a turn at a time, and return how many messages.

    Sequence numbers are given anew.  Blank lines are skipped.

    Args:
        store: Where to append.
        lines: With or without their ends.
        replace: Clear each conversation when it is first met; else it is continued.

    Raises:
        ConfigurationError: A line cannot be read; the turns before it are imported.
        StoreError: The store failed.
    """
    turn: list[Message] = []
    current: str | None = None
    met: set[str] = set()
    imported = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        conversation_id, message = _read(number, line)
        if turn and (conversation_id != current or is_real_user(message)):
            imported += await _append(store, current, turn)
        if replace and conversation_id not in met:
            met.add(conversation_id)
            await store.clear(conversation_id)
        current = conversation_id
        turn.append(message)
    return imported + await _append(store, current, turn)


async def _append(store: ConversationStore, conversation_id: str | None, turn: list[Message]) -> int:
    count = len(turn)
    if conversation_id is not None and turn:
        await store.append(conversation_id, tuple(turn))
        turn.clear()
    return count


def _read(number: int, line: str) -> tuple[str, Message]:
    try:
        fields: Any = json.loads(line)
        return check_conversation_id(fields["conversation"]), decode(json.dumps(fields["message"]))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConfigurationError(f"Line {number} holds no message of a conversation: {error!r:.100}.") from error
