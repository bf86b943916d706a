"""What the demos share: which model to use, and how events look in a terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable
from unicodedata import east_asian_width

import reactflow
from reactflow.events import (
    DraftReady,
    Event,
    LessonLearned,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    RevisionStarted,
    RunFinished,
    ToolFinished,
    ToolStarted,
    VerdictGiven,
    WarningRaised,
)
from reactflow.messages import Usage
from reactflow.offline_model import OfflineChatModel

WIDTH = min(110, shutil.get_terminal_size((100, 24)).columns)
DEFAULT_MODEL = "gpt-5-mini"


def choose_model() -> reactflow.ChatModel:
    """The model that the environment names, else the offline one; says which in one line.

    ``OPENAI_API_KEY`` chooses an :class:`~reactflow.OpenAIChatModel`, ``OPENAI_BASE_URL`` its server and
    ``REACTFLOW_MODEL`` its name; ``REACTFLOW_GGUF`` names a file for a :class:`~reactflow.LocalChatModel`.
    """
    if file := os.environ.get("REACTFLOW_GGUF", "").strip():
        local = reactflow.LocalChatModel(file, temperature=0, max_tokens=1000)
        print(f"Model: {local.name}, in this process")
        return local
    if os.environ.get("OPENAI_API_KEY", "").strip():
        model = reactflow.OpenAIChatModel(os.environ.get("REACTFLOW_MODEL", "").strip() or DEFAULT_MODEL)
        print(f"Model: {model.name}")
        return model
    print(
        "Offline model, rules and no AI, because OPENAI_API_KEY is not set. For a real one: "
        "export OPENAI_API_KEY=... (and OPENAI_BASE_URL, REACTFLOW_MODEL)."
    )
    return OfflineChatModel()


def watch(events: Iterable[Event]) -> None:
    """Show a run as it happens, then its answer; an error ends the program with one line."""
    try:
        for event in events:
            show(event)
            if isinstance(event, RunFinished):
                finish(event.result)
    except reactflow.ReactflowError as error:
        sys.exit(f"{type(error).__name__}: {error}")


def show(event: Event) -> None:
    """Print *event*, if a person who watches the run wants to see it."""
    match event:
        case ModelStarted(role="agent"):
            print(f"\nround {event.round}")
        case ModelStarted():
            print(f"\n{event.role} {event.round}")
        case ToolStarted():
            line("call", f"{event.name} {event.arguments}")
        case ToolFinished():
            line("error" if event.is_error else "result", event.text, at_most=1)
        case ModelFinished():
            line("tokens", f"{event.usage.input_tokens} in, {event.usage.output_tokens} out")
        case ModelFailed():
            line("failed", event.error)
        case DraftReady():
            print(f"\ndraft {event.draft}")
            line("text", event.text, at_most=4)
        case VerdictGiven():
            verdict = "not judged" if event.status != "judged" else "accepted" if event.passed else "rejected"
            score = "" if event.score is None else f", score {event.score:g}"
            line("verdict", f"draft {event.draft} {verdict}{score}")
            if event.feedback:
                line("feedback", event.feedback)
        case LessonLearned():
            line("lesson", event.advice)
        case RevisionStarted():
            print(f"\nrevision {event.revision}: the draft goes back with this feedback")
        case WarningRaised():
            line("warning", event.text)


def line(name: str, text: str, *, at_most: int = 20) -> None:
    """Print *text* behind *name*, wrapped, and no more than *at_most* lines of it."""
    room = WIDTH - 11
    lines = [part for each in text.splitlines() for part in wrapped(each, room)] or [""]
    shown = lines[:at_most] if len(lines) <= at_most else [*lines[: at_most - 1], f"{lines[at_most - 1]} …"]
    print("\n".join(f"{' ' * 11 if at else f'  {name:<9}'}{part}" for at, part in enumerate(shown)), flush=True)


def wrapped(text: str, width: int) -> list[str]:
    """Cut *text* into lines of at most *width* columns; a Chinese character takes two and may begin a line."""
    lines, used = [""], 0
    for piece in re.findall(r"\s+|[^\s\u2e80-\uffef]{1,40}|.", text):
        columns = sum(2 if east_asian_width(character) in "WF" else 1 for character in piece)
        if used + columns > width - 2:
            lines, used, piece = [*lines, ""], 0, piece.lstrip()
        lines[-1] += piece
        used += columns
    return lines


def finish(result: reactflow.AgentResult) -> None:
    """Print the answer and one line on how it came about."""
    print(f"\n{'-' * WIDTH}\n{result.text}\n{'-' * WIDTH}")
    drafts = result.attempts if isinstance(result, reactflow.WorkflowResult) else result.reflections
    steps = f"{count(result.rounds, 'round')}, {count(max(0, len(drafts) - 1), 'revision')}"
    tokens = ", ".join(f"{role} {told(usage)}" for role, usage in result.usage_by_role.items())
    print(f"{result.stop_reason}: {steps}; tokens: {tokens}; {result.elapsed_s:.2f} s")


def told(usage: Usage) -> str:
    """Tokens read and written, and how many calls reported none."""
    unknown = f" (+ {count(usage.unknown_calls, 'call')} unknown)" if usage.unknown_calls else ""
    return f"{usage.input_tokens} in + {usage.output_tokens} out{unknown}"


def count(number: int, thing: str) -> str:
    """A number and the thing it counts."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
