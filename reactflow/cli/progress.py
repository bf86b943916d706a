"""What a run has done so far, gathered from its events."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from reactflow.budget import Budget
from reactflow.events import (
    DraftReady,
    Event,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ReasoningDelta,
    TextDelta,
    TextWithdrawn,
    ToolFinished,
    ToolStarted,
)
from reactflow.messages import NO_USAGE, Usage


@dataclass(slots=True)
class Progress:
    """Takes events, and knows what is under way.

    Args:
        prices: The budget that knows what models cost; without prices no money is counted.
    """

    prices: Budget | None = None
    started: float = field(default_factory=time.monotonic)
    models: dict[str, ModelStarted] = field(default_factory=dict)  # the call under way, by role
    tools: dict[str, tuple[ToolStarted, float]] = field(default_factory=dict)  # under way, with their start
    said: dict[int, list[str]] = field(default_factory=dict)  # the agent's text by round, as far as it stands
    drafts: list[str] = field(default_factory=list)
    thinking: int = 0  # characters of reasoning in the call under way
    usage: Usage = NO_USAGE
    calls: int = 0
    cost_usd: float | None = None

    def take(self, event: Event) -> None:
        """Note what *event* tells."""
        match event:
            case ModelStarted():
                self.models[event.role] = event
                self.thinking = 0
            case ModelFinished():
                self._model_finished(event)
            case ModelFailed():
                self.models.pop(event.role, None)
            case ToolStarted():
                self.tools[event.call_id] = (event, time.monotonic())
            case ToolFinished():
                self.tools.pop(event.call_id, None)
            case TextDelta(role="agent"):
                self.said.setdefault(event.round, []).append(event.text)
            case TextWithdrawn(role="agent"):
                self.said.pop(event.round, None)
            case ReasoningDelta():
                self.thinking += len(event.text)
            case DraftReady():
                self.drafts.append(event.text)
                self.said.clear()  # it is shown as a draft from now on

    def _model_finished(self, event: ModelFinished) -> None:
        self.models.pop(event.role, None)
        self.usage += event.usage
        self.calls += 1
        price = self.prices.price(event.model) if self.prices else None
        if price is not None and not event.usage.unknown_calls:
            self.cost_usd = (self.cost_usd or 0.0) + price.of(event.usage)

    @property
    def text(self) -> str:
        """What has been said and not been taken back."""
        return "".join(piece for pieces in self.said.values() for piece in pieces)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the first event could come."""
        return time.monotonic() - self.started
