"""Where the lines of a chat come from: a person at a terminal, or a pipe."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

MORE = "\\"
"""At the end of a line: the message goes on in the next."""


class Reader(Protocol):
    """Gives one message after the other."""

    async def read(self) -> str | None:
        """The next message, of one line or more, or None where there are no more.

        Raises:
            KeyboardInterrupt: The user pressed Ctrl-C.
        """
        ...


class PromptReader:
    """A line editor: Enter sends, Alt-Enter or a backslash at the end begins a new line, Ctrl-D ends the chat.

    Args:
        prompt: What stands before the line.
        commands: Offered when Tab is pressed.
        history: The file that keeps what was typed; None keeps it in this process.
        options: For prompt_toolkit, such as another input.
    """

    def __init__(self, prompt: str, commands: Sequence[str], history: Path | None = None, **options: Any) -> None:
        kept: History = FileHistory(str(history)) if history else InMemoryHistory()
        self._session: PromptSession[str] = PromptSession(
            prompt,
            history=kept,
            completer=WordCompleter(list(commands), sentence=True),
            complete_while_typing=False,
            multiline=True,
            prompt_continuation=" " * len(prompt),
            key_bindings=_keys(),
            **options,
        )

    async def read(self) -> str | None:
        """The next message, or None after Ctrl-D."""
        try:
            text = await self._session.prompt_async()
        except EOFError:
            return None
        return text.replace(f"{MORE}\n", "\n")


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith(MORE):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class LineReader:
    """Lines of a file or pipe; a backslash at the end joins a line to the next.

    Args:
        file: Where to read.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    async def read(self) -> str | None:
        """The next message.  Blocks: nothing else is going on, and Ctrl-C must end it at once."""
        lines: list[str] = []
        with _ctrl_c_raises():
            while line := self._file.readline():
                line = line.rstrip("\r\n")
                lines.append(line.removesuffix(MORE))
                if not line.endswith(MORE):
                    break
        return "\n".join(lines) if lines else None


@contextmanager
def _ctrl_c_raises() -> Iterator[None]:
    """Under asyncio Ctrl-C cancels a task, which cannot end a read that blocks."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def make_reader(*, interactive: bool, commands: Sequence[str], history: Path | None) -> Reader:
    """The editor for a person, or the lines of standard input."""
    return PromptReader("> ", commands, history) if interactive else LineReader(sys.stdin)
