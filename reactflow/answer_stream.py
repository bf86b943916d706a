"""What a listener sees of the text while drafts may still be rejected.

The rule that holds in every mode: the text deltas that were not withdrawn, joined, are the answer; or, in ``"tag"``
mode, the text of ``AnswerRevised`` where there was one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from reactflow.errors import ConfigurationError
from reactflow.events import AnswerRevised, Emit, Event, RunFinished, TextDelta, TextWithdrawn

Drafts: TypeAlias = Literal["hide", "tag"]


def check_drafts(drafts: Drafts) -> Drafts:
    """Return *drafts*, or raise ConfigurationError where there is no such way to show them."""
    if drafts not in ("hide", "tag"):
        raise ConfigurationError(f"drafts={drafts!r}: give 'hide' or 'tag'.")
    return drafts


@dataclass(slots=True)
class AnswerStream:
    """An ``emit`` that passes events on, and holds text back until it is known to be the answer.

    Args:
        emit: Where the events go.
        drafts: ``"hide"`` or ``"tag"``; see :meth:`reactflow.doors.Doors.astream`.
        holds_back: Whether text may still be rejected; where not, it is passed on as it comes.
    """

    emit: Emit
    drafts: Drafts
    holds_back: bool
    rounds: dict[int, list[TextDelta]] = field(default_factory=dict)  # text that was not withdrawn

    @property
    def _hidden(self) -> bool:
        return self.holds_back and self.drafts == "hide"

    def __call__(self, event: Event) -> None:
        """Take one event of the run."""
        if isinstance(event, TextDelta | TextWithdrawn) and event.role != "agent":
            return  # a judge's words are no part of the answer
        if isinstance(event, TextDelta):
            self.rounds.setdefault(event.round, []).append(event)
        elif isinstance(event, TextWithdrawn):
            self.rounds.pop(event.round, None)
        elif isinstance(event, RunFinished):
            self._settle(event)
        if not (self._hidden and isinstance(event, TextDelta | TextWithdrawn)):
            self.emit(event)

    def _settle(self, finished: RunFinished) -> None:
        """Make what was shown agree with the answer."""
        answer = finished.result.text
        said = {round: "".join(delta.text for delta in deltas) for round, deltas in self.rounds.items()}
        if self._hidden:
            deltas = next((self.rounds[round] for round in reversed(said) if said[round] == answer), None)
            for delta in deltas or [TextDelta(answer, finished.result.rounds)]:
                self.emit(delta)
        elif "".join(said.values()) != answer:
            self._correct(answer, finished.result.rounds)

    def _correct(self, answer: str, round: int) -> None:
        if self.holds_back:
            self.emit(AnswerRevised(text=answer, round=round))
            return
        for shown in self.rounds:
            self.emit(TextWithdrawn(shown))
        self.emit(TextDelta(answer, round))
