"""``reactflow memory``: look after stored conversations, those of ``reactflow chat`` or any others."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from reactflow.cli.failures import telling
from reactflow.cli.state import kept_conversations
from reactflow.cli.terminal import clean, indented, join, make_console, on_terminal, say
from reactflow.errors import ConfigurationError
from reactflow.messages import AssistantMessage, Message, ToolMessage, UserMessage
from reactflow.store import ConversationStore, StoredMessage
from reactflow.stores import open_store
from reactflow.stores.transfer import all_conversations, export_lines, import_lines

PAGE = 500
"""How many messages are read at once."""

app = typer.Typer(
    name="memory",
    help="List, show, export, import and clear stored conversations.",
    epilog="Without --store the conversations of 'reactflow chat' are meant.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Store = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", envvar="REACTFLOW_STORE", help="Which store, as sqlite:///chat.db."),
]
Tenant = Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose conversations.")]
Prefix = Annotated[str, typer.Argument(help="Only conversations whose name begins so.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]

Work = Callable[[ConversationStore, Console], Coroutine[Any, Any, None]]


@app.command("list")
def _list(prefix: Prefix = "", store: Store = None, tenant: Tenant = "", debug: Debug = False) -> None:
    """Print the names of conversations, one a line."""

    async def work(opened: ConversationStore, out: Console) -> None:
        async for name in all_conversations(opened, prefix):
            say(out, clean(name), wrap=True)

    _run(work, store, tenant, debug=debug)


@app.command("show")
def _show(
    conversation: Annotated[str, typer.Argument(help="Its name.")],
    last: Annotated[int | None, typer.Option("--last", "-n", metavar="N", min=1, help="Only so many.")] = None,
    store: Store = None,
    tenant: Tenant = "",
    debug: Debug = False,
) -> None:
    """Print the messages of one conversation, with their numbers."""

    async def work(opened: ConversationStore, out: Console) -> None:
        empty = True
        async for stored in _messages(opened, conversation, last):
            _print_message(out, stored)
            empty = False
        if empty:
            raise ConfigurationError(f"There is no conversation {conversation!r:.80} in this store.")

    _run(work, store, tenant, debug=debug)


@app.command("export")
def _export(
    prefix: Prefix = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Else standard output.")] = None,
    store: Store = None,
    tenant: Tenant = "",
    debug: Debug = False,
) -> None:
    """Write conversations as JSON lines, one message a line."""

    async def work(opened: ConversationStore, out: Console) -> None:
        with _written(output) as write:
            async for line in export_lines(opened, prefix):
                write(line.encode() + b"\n")

    _run(work, store, tenant, debug=debug)


@app.command("import")
def _import(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What export wrote; - for standard input.")],
    replace: Annotated[bool, typer.Option("--replace", help="Clear each conversation first.")] = False,
    store: Store = None,
    tenant: Tenant = "",
    debug: Debug = False,
) -> None:
    """Append conversations from JSON lines, a turn at a time."""

    async def work(opened: ConversationStore, out: Console) -> None:
        with _lines_of(file) as lines:
            say(out, f"{await import_lines(opened, lines, replace=replace)} messages imported")

    _run(work, store, tenant, debug=debug)


@app.command("clear")
def _clear(
    conversations: Annotated[list[str], typer.Argument(help="Their names.")],
    store: Store = None,
    tenant: Tenant = "",
    debug: Debug = False,
) -> None:
    """Forget conversations for good."""

    async def work(opened: ConversationStore, out: Console) -> None:
        for name in conversations:
            await opened.clear(name)

    _run(work, store, tenant, debug=debug)


def _run(work: Work, url: str | None, tenant: str, *, debug: bool) -> None:
    async def carried_out() -> None:
        async with _opened(url, tenant) as store:
            await work(store, make_console(sys.stdout))

    with telling(make_console(sys.stderr), debug=debug):
        asyncio.run(carried_out())


@asynccontextmanager
async def _opened(url: str | None, tenant: str) -> AsyncIterator[ConversationStore]:
    if not url:
        if tenant:
            raise ConfigurationError("The conversations of 'reactflow chat' have no tenants; --tenant needs --store.")
        async with kept_conversations() as (kept, _):
            yield kept
        return
    store = open_store(url, **({"tenant": tenant} if tenant else {}))
    try:
        yield store
    finally:
        if (close := getattr(store, "aclose", None)) is not None:  # the one in memory has nothing to close
            await close()


async def _messages(store: ConversationStore, name: str, last: int | None) -> AsyncIterator[StoredMessage]:
    after = 0
    if last is not None:
        newest = await store.newest(name, last)
        after = newest[0].sequence - 1 if newest else 0
    while page := await store.oldest(name, PAGE, after=after):
        for stored in page:
            yield stored
        after = page[-1].sequence


def _print_message(out: Console, stored: StoredMessage) -> None:
    message = stored.message
    say(out, (f"{stored.sequence} {clean(_speaker(message))}", "bold"))
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    lines = [message.text] if message.text else []
    lines += [f"-> {call.name} {call.arguments}" for call in calls]
    text = join([clean("\n".join(lines))])
    out.print(indented(text, 2, fold=on_terminal(out)), soft_wrap=not on_terminal(out))


def _speaker(message: Message) -> str:
    match message:
        case UserMessage(synthetic=None):
            return "user"
        case UserMessage(synthetic=author):
            return f"user ({author})"
        case ToolMessage(name=name, is_error=is_error):
            return f"tool {name}{' failed' if is_error else ''}"
    return "assistant"


@contextmanager
def _written(path: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Where an export goes; a file gets its name only when it is whole."""
    if path is None:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("wb") as file:
            yield file.write
        unfinished.replace(path)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink()
        if isinstance(error, OSError):
            raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from error
        raise


@contextmanager
def _lines_of(file: str) -> Iterator[Iterable[str]]:
    try:
        if file == "-":
            yield (line.decode() for line in sys.stdin.buffer)
        else:
            with open(file, encoding="utf-8-sig") as lines:
                yield lines
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file} is no UTF-8 text, byte {error.start} of a line.") from error
