"""What a judge is shown of a turn beside the answer: the tool calls and what came back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reactflow.messages import AssistantMessage, Message, ToolCall, ToolMessage, this_turn
from reactflow.phrases import phrases, shorten, shorten_middle

_MAX_ARGUMENTS_CHARS = 500
_FULL_SHARES = 4  # so many long results are always shown together


def gather_evidence(messages: Sequence[Message], max_chars: int = 8000, *, question: str = "") -> str:
    """Render the tool calls of this turn and their results, oldest first, for whoever judges the answer.

    Earlier drafts, feedback and notices are left out.  A result's further lines are indented, so that none of them can
    pass for another call.  A long result loses its middle; where all of them together are
    too long the newest are kept, and a line says how many are missing.

    Args:
        messages: The conversation; what comes after the newest question of a person is this turn.
        max_chars: At most this many characters come back, > 0.
        question: What the user asked; decides the language of what is said about missing parts.
    """
    turn = this_turn(messages)
    calls = {call.id: call for message in turn if isinstance(message, AssistantMessage) for call in message.tool_calls}
    results = [message for message in turn if isinstance(message, ToolMessage)]
    left_out = phrases(question).earlier_left_out
    room = max_chars - len(left_out.format(count=len(results))) - 2
    share = max(1, room // max(1, min(len(results), _FULL_SHARES)) - 2)
    kept: list[str] = []
    for result in reversed(results):
        piece = shorten_middle(_rendered(result, calls), share, question=question)
        room -= len(piece) + 2
        if room < 0:
            break
        kept.append(piece)
    missing = len(results) - len(kept)
    note = (left_out.format(count=missing),) if missing else ()
    return "\n\n".join((*note, *reversed(kept)))[:max_chars]


def _rendered(result: ToolMessage, calls: Mapping[str, ToolCall]) -> str:
    call = calls.get(result.call_id)
    arguments = " ".join(shorten(call.arguments.strip() or "{}", _MAX_ARGUMENTS_CHARS).split("\n")) if call else "..."
    text = "\n   ".join(result.text.splitlines())
    return f"{result.name}({arguments})\n=> {'error: ' if result.is_error else ''}{text}"
