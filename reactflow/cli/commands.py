"""The slash commands of a chat."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from reactflow.cli.failures import tell
from reactflow.cli.narrator import called, counted, money, seconds, tokens
from reactflow.cli.reasons import REASONS, explain_error
from reactflow.cli.session import Chat
from reactflow.cli.terminal import clean, on_terminal, one_line, say
from reactflow.messages import AssistantMessage, Message, ToolMessage
from reactflow.result import AgentResult
from reactflow.value_json import MESSAGES, to_data


@dataclass(frozen=True, slots=True)
class Command:
    """What a slash command does: *run* gets the chat and the words after the command."""

    words: str
    run: Callable[[Chat, str], Awaitable[None]]


async def run_command(chat: Chat, line: str) -> bool:
    """Carry out the command in *line*.

    Returns:
        False where the user wants to leave.
    """
    name, _, rest = line.partition(" ")
    if name in LEAVE:
        return False
    command = COMMANDS.get(name)
    if command is None:
        say(chat.screen.err, f"There is no {one_line(name, 40)}. {_names()}", wrap=True)
        return True
    try:
        await command.run(chat, rest.strip())
    except Exception as error:  # a command that fails must not end the chat
        tell(chat.screen.err, error, debug=chat.screen.debug)
    return True


async def _help(chat: Chat, _: str) -> None:
    rows = [*((name, command.words) for name, command in COMMANDS.items()), (LEAVE[0], "end the chat (or Ctrl-D)")]
    _table(chat, rows)
    _print(chat, "Enter sends; Alt-Enter, or a backslash at the end of the line, begins a new line.")
    _print(chat, "Ctrl-C cancels the answer that is being written.")


async def _tools(chat: Chat, _: str) -> None:
    tools = getattr(getattr(chat.agent, "delegate", chat.agent), "tools", ())
    if not tools:
        _print(chat, "No tools. Start with --tool module:function to give some.")
    _table(chat, [(tool.name, one_line(tool.description)) for tool in tools])


async def _advisors(chat: Chat, _: str) -> None:
    explain = getattr(chat.agent, "explain", None)
    _print(chat, explain() if explain else repr(chat.agent))


async def _memory(chat: Chat, _: str) -> None:
    if chat.memory is None:
        _print(chat, "This agent has no memory: each question stands alone. Give it memory=... to change that.")
        return
    shown = await chat.memory.get(chat.conversation_id)
    where = f", kept in {chat.place}" if chat.place else ""
    count = counted(len(shown), "message")
    _print(chat, f"Conversation {chat.conversation_id!r}{where}: the model sees {count}.")
    _table(chat, [(_who(message), one_line(message.text, 400)) for message in shown])


async def _clear(chat: Chat, _: str) -> None:
    if chat.memory is not None:
        await chat.memory.clear(chat.conversation_id)
    chat.turns.clear()
    chat.asked = chat.outcome = None
    _print(chat, "The conversation is forgotten.")


async def _retry(chat: Chat, _: str) -> None:
    await chat.again()


async def _save(chat: Chat, name: str) -> None:
    messages = await chat.everything()
    if not messages:
        _print(chat, "There is nothing to save yet.")
        return
    file = name or f"{_safe(chat.conversation_id)}-{time.strftime('%Y%m%d-%H%M%S')}.md"
    _print(chat, _saved(Path(file), chat.conversation_id, messages))


def _saved(file: Path, name: str, messages: Sequence[Message]) -> str:
    """Write *messages*, and say how that went."""
    text = _as_json(messages) if file.suffix == ".json" else _as_markdown(name, messages)
    try:
        with file.expanduser().open("x", encoding="utf-8") as out:  # never over another file
            out.write(text)
    except FileExistsError:
        return f"{file} is there already; give another name: /save other.md"
    except OSError as error:
        return f"{file} cannot be written: {error.strerror}. Give another name: /save ~/chat.md"
    return f"Saved {counted(len(messages), 'message')} to {file}."


async def _why(chat: Chat, _: str) -> None:
    if chat.outcome is None:
        _print(chat, "There is no answer yet.")
    elif isinstance(chat.outcome, AgentResult):
        _table(chat, list(why(chat.outcome)))
    elif isinstance(chat.outcome, asyncio.CancelledError):
        _print(chat, "The last turn was cancelled.")
    else:
        _print(chat, f"The last turn failed. {explain_error(chat.outcome)}")


def why(result: AgentResult) -> Iterable[tuple[str, str]]:
    """How an answer came about: why it stopped, what was called, what was said of each draft, what it cost."""
    yield "stopped", f"{result.stop_reason}: {REASONS[result.stop_reason]}"
    answers = {message.call_id: message for message in result.messages if isinstance(message, ToolMessage)}
    for message in result.messages:
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            answer = answers.get(call.id)
            said = one_line(answer.text, 200) if answer else "no result"
            yield "tool", f"{called(call.name, call.arguments)}: {said}"
    for number, reflection in enumerate(result.reflections, 1):
        judgement = reflection.judgement
        verdict = "not judged" if judgement.status != "judged" else "approved" if judgement.passed else "rejected"
        said = one_line(judgement.feedback or "", 400)
        yield f"draft {number}", f"{verdict}: {said}" if said else verdict
    for role, usage in result.usage_by_role.items():
        yield one_line(role), f"{tokens(usage)} in {counted(usage.model_calls, 'model call')}"
    yield from (("warning", one_line(warning)) for warning in result.warnings)
    yield "took", ", ".join(filter(None, (seconds(result.elapsed_s), money(result.cost_usd))))


COMMANDS: Mapping[str, Command] = {
    "/help": Command("this list", _help),
    "/tools": Command("the tools that the agent may call", _tools),
    "/advisors": Command("the chain of advisors around the model", _advisors),
    "/memory": Command("what the model sees of the conversation", _memory),
    "/why": Command("how the last answer came about", _why),
    "/retry": Command("ask the last question again", _retry),
    "/save": Command("write the conversation to a file: /save [name.md or name.json]", _save),
    "/clear": Command("forget the conversation", _clear),
}
LEAVE = ("/quit", "/exit")


def _names() -> str:
    return f"Commands: {' '.join((*COMMANDS, LEAVE[0]))}"


def _print(chat: Chat, text: str) -> None:
    say(chat.screen.out, clean(text), wrap=True)


def _table(chat: Chat, rows: Sequence[tuple[str, str]]) -> None:
    """Two columns; on a terminal the second wraps within itself."""
    out, width = chat.screen.out, max((cell_len(name) for name, _ in rows), default=0)
    if not on_terminal(out):
        for name, words in rows:
            _print(chat, f"{set_cell_size(name, width)}  {words}")
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, words in rows:
        grid.add_row(Text(clean(name)), Text(clean(words)))
    out.print(grid)


_WHO: Mapping[type, str] = dict(zip(MESSAGES, ("system", "you", "agent", "tool"), strict=True))


def _who(message: Message) -> str:
    return _WHO[type(message)]


def _safe(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name).strip("-") or "chat"


def _as_json(messages: Sequence[Message]) -> str:
    return json.dumps(to_data(tuple(messages), tuple[Message, ...]), ensure_ascii=False, indent=2) + "\n"


def _as_markdown(name: str, messages: Sequence[Message]) -> str:
    parts = [f"# Conversation {name}", *(f"## {_who(message).capitalize()}\n\n{message.text}" for message in messages)]
    return "\n\n".join(parts) + "\n"
