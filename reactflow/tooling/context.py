"""What a tool may know of the run it serves."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reactflow.events import Emit, Event, discard
from reactflow.frozen import EMPTY
from reactflow.messages import ToolCall
from reactflow.model import ChatRequest


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ToolContext(Mapping[str, Any]):
    """The run's context as a read-only mapping, and the names of the run and the call.

    A tool's parameter annotated ``ToolContext`` receives it and is not shown to the model.  In a test build one by
    hand: ``ToolContext({"tenant": "acme"})``.

    Args:
        context: What the caller and the advisors know, such as the tenant.
        run_id: Names the run in events and logs.
        conversation_id: The conversation, or None.
        call_id: The id of the call that is running.
        tool_name: What the model called the tool.
        emit: Tells the run's listeners of an event; may be called from any thread.
    """

    context: Mapping[str, Any] = EMPTY
    run_id: str = field(default="", kw_only=True)
    conversation_id: str | None = field(default=None, kw_only=True)
    call_id: str = field(default="", kw_only=True)
    tool_name: str = field(default="", kw_only=True)
    emit: Emit = field(default=discard, kw_only=True)

    @classmethod
    def of(cls, call: ToolCall, request: ChatRequest) -> ToolContext:
        """The context of *call*, made in answer to *request*; to be built in the thread of the run's event loop."""
        return cls(
            request.context,
            run_id=request.run.run_id,
            conversation_id=request.run.conversation_id,
            call_id=call.id,
            tool_name=call.name,
            emit=_from_any_thread(request.emit),
        )

    def __getitem__(self, key: str) -> Any:
        return self.context[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.context)

    def __len__(self) -> int:
        return len(self.context)

    def __repr__(self) -> str:  # the keys only: values may be credentials
        return f"ToolContext({', '.join(map(str, self.context))})"


def _from_any_thread(emit: Emit) -> Emit:
    """An *emit* for blocking tools too: listeners expect to be called from the run's own thread."""
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def emit_from_anywhere(event: Event) -> None:
        if threading.get_ident() == home:
            emit(event)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(emit, event)

    return emit_from_anywhere
