"""Log each model call: who, how long, how many tokens."""

from __future__ import annotations

import time
from dataclasses import dataclass

import structlog

from reactflow.chain import Handler, Order
from reactflow.model import ChatRequest, ChatResponse

log = structlog.get_logger("reactflow")


@dataclass(frozen=True, slots=True)
class LoggingAdvisor:
    """Logs every model call at info level, without a word of what was said; a failed one as a warning.

    Args:
        content: Whether to log the last message and the answer too, at debug level.
        order: At 0 and above it logs each model call; below 0 it logs the turn as one.
    """

    content: bool = False
    order: int = Order.LOGGING

    async def advise(self, request: ChatRequest, call_next: Handler) -> ChatResponse:
        """Log around the call."""
        what = "turn" if self.order < 0 else "model"
        bound = log.bind(run_id=request.run.run_id)
        bound.info(f"{what}.asked", messages=len(request.messages), tools=len(request.tools))
        if self.content and request.messages:
            bound.debug(f"{what}.request", text=request.messages[-1].text)
        started = time.perf_counter()
        try:
            response = await call_next(request)
        except Exception as error:
            bound.warning(f"{what}.failed", error=type(error).__name__, elapsed_s=_seconds_since(started))
            raise
        usage = response.usage
        known = usage is not None and not usage.unknown_calls  # unknown, not 0
        bound.info(
            f"{what}.answered",
            elapsed_s=_seconds_since(started),
            input_tokens=usage.input_tokens if usage and known else None,
            output_tokens=usage.output_tokens if usage and known else None,
            tool_calls=[call.name for call in response.message.tool_calls],
            finish_reason=response.finish_reason,
        )
        if self.content:
            bound.debug(f"{what}.response", text=response.text)
        return response


def _seconds_since(started: float) -> float:
    return round(time.perf_counter() - started, 3)
