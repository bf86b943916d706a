"""Refuse what must not be asked, before anything else happens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from reactflow.chain import Handler, Order
from reactflow.errors import ConfigurationError
from reactflow.messages import AssistantMessage, last_question
from reactflow.model import ChatRequest, ChatResponse
from reactflow.result import StopReason


@dataclass(frozen=True, slots=True)
class SafeGuardAdvisor:
    """Answers with a refusal where the new question contains one of *words*.

    Looks at the new question only: not at history, tool results or feedback, which the user did not just write.  The
    model is not called, and since the guard sits outside memory nothing is stored.

    Args:
        words: What to refuse, matched without regard to case: ASCII words as whole words, others anywhere.
        refusal: The answer to give instead.
        order: Keep it below ``Order.MEMORY``.
    """

    words: Sequence[str]
    refusal: str = "I can't help with that."
    order: int = Order.GUARD
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (
            isinstance(self.words, str)
            or not self.words
            or not all(isinstance(w, str) and w.strip() for w in self.words)
        ):
            raise ConfigurationError(
                f"SafeGuardAdvisor(words={self.words!r}): give a list of words that are not blank."
            )
        if not self.refusal.strip():
            raise ConfigurationError("SafeGuardAdvisor(refusal=...) is blank; say what the user should read.")
        object.__setattr__(self, "_pattern", re.compile("|".join(map(_as_pattern, self.words)), re.IGNORECASE))

    async def advise(self, request: ChatRequest, call_next: Handler) -> ChatResponse:
        """Refuse, or pass the request on."""
        question = last_question(request.messages)
        if question is not None and self._pattern.search(question.text):
            return ChatResponse(AssistantMessage(self.refusal), stop_reason=StopReason.BLOCKED)
        return await call_next(request)


def _as_pattern(word: str) -> str:
    """Match *word* as a whole where it is ASCII; Chinese has no word borders."""
    escaped = re.escape(word.strip())
    return rf"(?<!\w){escaped}(?!\w)" if word.isascii() else escaped
