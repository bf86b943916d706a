"""A conversation in the terminal: read, answer, and go on."""

from __future__ import annotations

from reactflow.cli.commands import COMMANDS, LEAVE, run_command
from reactflow.cli.conversation import Conversation
from reactflow.cli.narrator import counted
from reactflow.cli.reader import Reader
from reactflow.cli.reasons import ExitCode
from reactflow.cli.session import Chat
from reactflow.cli.terminal import one_line, say

WORDS = (*COMMANDS, *LEAVE)
"""What a line editor offers after a slash."""


async def converse(chat: Chat, reader: Reader) -> ExitCode:
    """Answer what is read, until there is no more or the user leaves.

    Returns:
        How the last turn ended, for a script; a person has seen it, and leaving is no failure.
    """
    await _greet(chat)
    while (text := await _next(chat, reader)) is not None:
        if text.startswith("/"):
            if not await run_command(chat, text):
                break
        elif text:
            await chat.turn(text)
    return ExitCode.ANSWERED if chat.interactive else chat.code


async def _next(chat: Chat, reader: Reader) -> str | None:
    try:
        text = await reader.read()
    except KeyboardInterrupt:
        if not chat.interactive:
            raise
        say(chat.screen.err, ("Ctrl-D or /quit ends the chat.", "dim"))
        return ""
    return None if text is None else text.strip()


async def _greet(chat: Chat) -> None:
    if chat.screen.quiet:
        return
    known = await _known(chat.conversation)
    facts = f"Conversation {one_line(chat.conversation_id, 40)!r}{known}. /help lists the commands, Ctrl-D ends it."
    say(chat.screen.err, (facts, "dim"), wrap=True)
    if chat.memory is None:
        say(chat.screen.err, ("This agent has no memory: each question stands alone.", "yellow"), wrap=True)


async def _known(conversation: Conversation | None) -> str:
    if conversation is None:
        return ""
    count = len(await conversation.everything())
    return f", with {counted(count, 'message')} from before (/clear forgets them)" if count else ""
