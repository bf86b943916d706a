"""``reactflow memory``: look after stored conversations from the command line."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from reactflow.errors import ConfigurationError, ReactflowError
from reactflow.messages import AssistantMessage, Message, ToolMessage, UserMessage
from reactflow.store import ConversationStore
from reactflow.stores import open_store
from reactflow.stores.transfer import all_conversations, export_lines, import_lines

VARIABLE = "REACTFLOW_STORE"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the commands; the parsed arguments then hold all that :func:`run` needs."""
    parser.add_argument("--store", metavar="URL", default=os.environ.get(VARIABLE), help=f"or set {VARIABLE}")
    parser.add_argument("--tenant", default="", help="whose conversations")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser("list", help="print the ids of conversations")
    command.add_argument("prefix", nargs="?", default="", help="only ids that begin with this")
    command = commands.add_parser("show", help="print one conversation")
    command.add_argument("conversation")
    command.add_argument("--last", type=_whole, metavar="N", help="only the last N messages")
    command = commands.add_parser("export", help="write conversations as JSON lines")
    command.add_argument("prefix", nargs="?", default="", help="only ids that begin with this")
    command.add_argument("--output", type=Path, metavar="FILE", help="a file; standard output if left out")
    command = commands.add_parser("import", help="append conversations from JSON lines")
    command.add_argument("input", type=Path, metavar="FILE", help="a file, or - for standard input")
    command.add_argument("--replace", action="store_true", help="clear each conversation first")
    command = commands.add_parser("clear", help="forget conversations for good")
    command.add_argument("conversations", nargs="+", metavar="conversation")


async def run(arguments: argparse.Namespace) -> None:
    """Carry out the command.

    Raises:
        ReactflowError: The store cannot be reached, or a file cannot be read.
    """
    if not arguments.store:  # no default: a look must not leave a new, empty file behind
        raise ConfigurationError(f"Which store? Give --store sqlite:///chat.db, or set {VARIABLE}.")
    settings = {"tenant": arguments.tenant} if arguments.tenant else {}
    store = open_store(arguments.store, **settings)
    try:
        await COMMANDS[arguments.command](store, arguments)
    finally:
        if (close := getattr(store, "aclose", None)) is not None:
            await close()


async def _list(store: ConversationStore, arguments: argparse.Namespace) -> None:
    async for conversation_id in all_conversations(store, arguments.prefix):
        print(_printable(conversation_id))


async def _show(store: ConversationStore, arguments: argparse.Namespace) -> None:
    page_of = partial(store.oldest, arguments.conversation, 500)
    page = await (page_of() if arguments.last is None else store.newest(arguments.conversation, arguments.last))
    if not page:
        raise ConfigurationError(f"There is no conversation {arguments.conversation!r:.80} in this store.")
    while page:
        for stored in page:
            print(_described(stored.sequence, stored.message))
        page = await page_of(after=page[-1].sequence)


async def _export(store: ConversationStore, arguments: argparse.Namespace) -> None:
    lines = export_lines(store, arguments.prefix)
    if arguments.output is None:
        async for line in lines:
            print(line)
        return
    unfinished = arguments.output.with_name(arguments.output.name + ".part")
    with unfinished.open("w", encoding="utf-8") as file:
        async for line in lines:
            file.write(line + "\n")
    unfinished.replace(arguments.output)  # so that a broken export does not pass for a whole one


async def _import(store: ConversationStore, arguments: argparse.Namespace) -> None:
    if str(arguments.input) == "-":
        count = await import_lines(store, sys.stdin, replace=arguments.replace)
    else:
        with arguments.input.open(encoding="utf-8") as file:
            count = await import_lines(store, file, replace=arguments.replace)
    print(f"{count} messages imported")


async def _clear(store: ConversationStore, arguments: argparse.Namespace) -> None:
    for conversation_id in arguments.conversations:
        await store.clear(conversation_id)


COMMANDS = {"list": _list, "show": _show, "export": _export, "import": _import, "clear": _clear}


def _described(sequence: int, message: Message) -> str:
    match message:
        case UserMessage(synthetic=None):
            speaker = "user"
        case UserMessage(synthetic=author):
            speaker = f"user ({author})"
        case ToolMessage(name=name, is_error=is_error):
            speaker = f"tool {name}{' failed' if is_error else ''}"
        case _:
            speaker = "assistant"
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    lines = [message.text] if message.text else []
    lines += [f"-> {call.name} {call.arguments}" for call in calls]
    text = "\n".join(lines).replace("\n", "\n    ")
    shown = _printable(text, keep="\n")
    return f"{sequence} {speaker}: {shown}"


def _printable(text: str, keep: str = "") -> str:
    """Escape what would steer the terminal or cannot be written."""
    return "".join(char if char.isprintable() or char in keep else ascii(char)[1:-1] for char in text)


def _whole(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``python -m reactflow.stores``; returns the exit status, 0 for success, 1 for an error."""
    parser = argparse.ArgumentParser("reactflow memory", description="Look after stored conversations.")
    add_commands(parser)
    try:
        asyncio.run(run(parser.parse_args(argv)))
    except (ReactflowError, OSError, UnicodeDecodeError) as error:
        print(f"reactflow memory: {error}", file=sys.stderr)
        return 1
    return 0
