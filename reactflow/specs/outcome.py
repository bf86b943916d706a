"""What became of one row: a status out of three, the answer, and the facts."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from reactflow.errors import BudgetExceeded, ProviderError, WorkflowError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.messages import Usage
from reactflow.result import AgentResult, StopReason
from reactflow.specs.options import MASK


class Status(StrEnum):
    """How a row ended.  ``SUCCESS`` of an agent that is reviewed means approved, and nothing less."""

    SUCCESS = "SUCCESS"
    MAX_ITERATIONS = "MAX_ITERATIONS"
    FAILED = "FAILED"


_ENDED_WELL: Final = frozenset(
    {
        StopReason.ANSWERED,
        StopReason.APPROVED,
        StopReason.CONFIDENCE_MET,
        StopReason.NO_ISSUES,
        StopReason.BELOW_THRESHOLD,
        StopReason.RETURN_DIRECT,
    }
)
_LIMITS: Final = frozenset(
    {
        StopReason.MAX_ITERATIONS,
        StopReason.MAX_REFLECTION_ROUNDS,
        StopReason.MAX_ROUNDS,
        StopReason.TOKEN_BUDGET,
        StopReason.TIME_BUDGET,
        StopReason.COST_BUDGET,
        StopReason.CALL_BUDGET,
        StopReason.NO_PROGRESS,
        StopReason.OSCILLATION,
    }
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one row.

    Args:
        status: Out of the closed set; the exact reason is in *metadata*.
        response: The answer; of ``MAX_ITERATIONS`` the last draft, which nobody approved; of ``FAILED`` None.
        metadata: ``stop_reason``, ``approved``, ``iterations``, ``model_calls``, ``input_tokens``,
            ``output_tokens``, ``cost_usd``, ``warnings``; of a failure ``error``, ``error_type``, ``transient`` where
            it may pass, and ``draft`` where there was one.  Plain values only; what is not known is left out.
    """

    status: Status
    response: str | None
    metadata: Mapping[str, Any] = field(default=EMPTY)

    @property
    def text(self) -> str | None:
        """The answer, or the words of the error."""
        return self.metadata.get("error") if self.status is Status.FAILED else self.response

    @property
    def approved(self) -> bool:
        """Whether a reviewer passed this very answer."""
        return self.status is Status.SUCCESS and self.metadata.get("approved") is True


def outcome_of(result: AgentResult) -> Outcome:
    """Read the result of an agent or a workflow.

    What a reviewer approved is a success, whatever else ended the run; what is reviewed and not approved is none.
    """
    reason = result.stop_reason
    facts: dict[str, Any] = {
        "stop_reason": reason.value,
        "approved": result.approved,
        "reviewed": result.reviewed,
        **usage_facts(result.usage, result.cost_usd),
    }
    attempts = getattr(result, "attempts", ())
    if attempts:
        facts["iterations"] = getattr(result, "iterations", len(attempts))
        facts["score"] = attempts[-1].score
    if result.warnings:
        facts["warnings"] = list(result.warnings)
    metadata = FrozenDict({key: value for key, value in facts.items() if value is not None})
    if result.approved or (reason in _ENDED_WELL and not result.reviewed):
        return Outcome(Status.SUCCESS, result.text, metadata)
    if reason in _LIMITS:
        return Outcome(Status.MAX_ITERATIONS, result.text, metadata)
    words = f"The run ended as {reason.value!r}; its text is no approved answer."
    return Outcome(Status.FAILED, None, FrozenDict({**metadata, "error": words, "draft": result.text}))


def usage_facts(usage: Usage, cost_usd: float | None) -> dict[str, Any]:
    """Calls, tokens and money; tokens that no server reported are left out."""
    known = usage.unknown_calls < usage.model_calls
    return {
        "model_calls": usage.model_calls,
        "input_tokens": usage.input_tokens if known else None,
        "output_tokens": usage.output_tokens if known else None,
        "cost_usd": None if cost_usd is None else round(cost_usd, 8),
    }


def failure(error: BaseException, *, debug: bool = False, secrets: Iterable[str] = ()) -> Outcome:
    """A row that failed.

    Args:
        error: Why.
        debug: Give the message and the trace, which may quote the row; otherwise only the kind of error.
        secrets: Texts that must not be shown in either.
    """
    text = _whole(error) if debug else _kind(error)
    for secret in secrets:
        text = text.replace(secret, MASK) if secret else text
    facts: dict[str, Any] = {"error": text, "error_type": type(error).__name__}
    root = error.__cause__ if isinstance(error, WorkflowError) and error.__cause__ is not None else error
    if isinstance(root, (ProviderError, BudgetExceeded, TimeoutError)):
        facts["transient"] = True  # the answers so far are good: they can be used when the row is tried again
    if isinstance(error, BudgetExceeded):
        facts["stop_reason"] = error.reason.value
    partial = getattr(error, "partial", None)
    if isinstance(partial, AgentResult):
        facts |= {"draft": partial.text, **usage_facts(partial.usage, partial.cost_usd)}
    return Outcome(Status.FAILED, None, FrozenDict({key: value for key, value in facts.items() if value is not None}))


def exhausted(outcome: Outcome, policy: str) -> Outcome | None:
    """What a row that reached a limit becomes: itself, None where it is dropped, or a failure."""
    if outcome.status is not Status.MAX_ITERATIONS or policy == "return":
        return outcome
    if policy == "drop":
        return None
    words = f"It was not approved when it reached a limit ({outcome.metadata.get('stop_reason', 'unknown')})."
    metadata = FrozenDict({**outcome.metadata, "error": words, "draft": outcome.response})
    return replace(outcome, status=Status.FAILED, response=None, metadata=metadata)


def _kind(error: BaseException) -> str:
    """What kind of error it was, without a word of what the row or a server said."""
    name = type(error).__name__
    if isinstance(error, WorkflowError):
        cause = f": {_kind(error.__cause__)}" if error.__cause__ is not None else ""
        return f"The {error.role} failed in iteration {error.iteration}{cause}"
    if isinstance(error, ProviderError):
        return f"{name} (HTTP {error.status})" if error.status else f"{name} (no reply)"
    if isinstance(error, BudgetExceeded):
        return f"{name} ({error.reason.value})"
    return name


def _whole(error: BaseException) -> str:
    """The message, then the end of the trace: its beginning is the framework's own."""
    trace = "".join(traceback.format_exception(error)).strip()
    return f"{type(error).__name__}: {error}\n{trace[-MAX_TRACE_CHARS:]}"


MAX_TRACE_CHARS: Final = 4000
