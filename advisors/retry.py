"""Ask again when the model broke the protocol."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from reactflow.chain import Handler, Order
from reactflow.errors import ConfigurationError, ModelBehaviorError
from reactflow.model import ChatRequest, ChatResponse


@dataclass(frozen=True, slots=True)
class RetryAdvisor:
    """Ask the rest of the chain again when it raises one of *errors*.

    Makes between 1 and ``attempts`` calls, without a pause.  The last error passes through unchanged, so that the
    caller sees what the model did and not that somebody retried.  The transport of ``OpenAIChatModel`` retries by
    itself; this is for other models and for broken protocol.

    Args:
        attempts: Calls at the most, >= 1.
        errors: Exception types worth another try.
        order: At ``Order.RETRY`` each model call is retried; below 0, the whole turn.
    """

    attempts: int = 2
    errors: tuple[type[Exception], ...] = (ModelBehaviorError,)
    order: int = Order.RETRY

    def __post_init__(self) -> None:
        if isinstance(self.attempts, bool) or not isinstance(self.attempts, int) or self.attempts < 1:
            raise ConfigurationError(f"RetryAdvisor(attempts={self.attempts!r}): give a whole number from 1.")

    async def advise(self, request: ChatRequest, call_next: Handler) -> ChatResponse:
        """Call, and call again after an error."""
        for _ in range(self.attempts - 1):
            with suppress(*self.errors):
                return await call_next(request)
        return await call_next(request)
