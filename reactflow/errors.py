"""Every exception reactflow raises, sorted by who can fix it.

* ReactflowError
  - ConfigurationError      you: something was put together wrongly (also a ValueError)
      - DuplicateToolError  two tools of one agent share a name
      - SpecError           a definition of a connection, model, tool or agent breaks a rule
      - SqlError            a statement; says line and column
  - ModelBehaviorError      the model: it broke the protocol
  - ProviderError           the service: network, quota, 5xx; the openai error is the ``__cause__``
  - ToolError               a tool: raise it to tell the model what went wrong and what to do
  - StoreError              the memory's store: the answer may be there, its record is not
      - ConflictError       somebody else wrote to the conversation while the turn ran
  - BudgetExceeded          a limit came before there was any answer
  - WorkflowError           a role of a workflow failed; names role and iteration

Every one of them that is raised after a draft exists carries it as ``partial``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import Indel

from reactflow.result import AgentResult, StopReason


def nearest(word: str, known: Collection[str]) -> list[str]:
    """Up to three of *known* that *word* may have meant, the likeliest first."""
    alike = process.extract(word, sorted(known), scorer=Indel.normalized_similarity, score_cutoff=0.6, limit=3)
    return [each for each, *_ in alike]


def near(word: str, known: Collection[str]) -> str:
    """A hint at what *word* may have meant, and what there is; ends without a full stop."""
    close = nearest(word, known)
    more = f", and {len(known) - 20} more" if len(known) > 20 else ""
    listed = ", ".join(sorted(known)[:20]) + more or "none"
    return f"did you mean {' or '.join(map(repr, close))}? There is: {listed}" if close else f"there is: {listed}"


class ReactflowError(Exception):
    """The root of the tree.

    Attributes:
        partial: The best draft so far as a result, where the run already had one; else None.
    """

    partial: AgentResult | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the message and the facts: an error crosses process borders without its constructor."""
        facts = {key: value for key, value in self.__dict__.items() if key != "meter"}
        return _rebuilt, (type(self), self.args, facts)


def _rebuilt(kind: type[ReactflowError], args: tuple[Any, ...], facts: dict[str, Any]) -> ReactflowError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class ConfigurationError(ReactflowError, ValueError):
    """Something was put together wrongly.  Nothing was lost; the message names the value and the fix."""


class DuplicateToolError(ConfigurationError):
    """Two tools of one agent have the same name."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        super().__init__(
            f"Two tools are called {name!r}; this agent has {sorted(known)}. Rename one with @tool(name=...)."
        )
        self.name = name
        self.known = frozenset(known)


class SpecError(ConfigurationError):
    """A definition of a connection, a model, a tool or an agent breaks a rule.

    Attributes:
        where: What is to blame, in lower case: an option, or ``"key ..."`` where it is not its value but itself; a
            clause, with the name in it where it has several; ``"name"`` for the whole definition.
    """

    def __init__(self, message: str, *, where: str = "name") -> None:
        super().__init__(message)
        self.where = where


class SqlError(ConfigurationError):
    """A statement cannot be carried out.  The message ends with the place, the line, and a mark under the spot.

    Attributes:
        line: Where in the script, from 1.
        column: Where in that line, from 1.
        reason: The message without the place.
    """

    def __init__(self, reason: str, *, line: int, column: int, source: str = "") -> None:
        text = source.splitlines()[line - 1] if 0 < line <= len(source.splitlines()) else ""
        shown = f"\n  {text}\n  {' ' * (column - 1)}^" if text else ""
        super().__init__(f"line {line}, column {column}: {reason}{shown}")
        self.line = line
        self.column = column
        self.reason = reason


class ModelBehaviorError(ReactflowError):
    """The model broke the protocol: an empty reply, an unreadable verdict, an invalid structured answer."""


class ProviderError(ReactflowError):
    """The service behind a model failed.

    Attributes:
        status: The HTTP status, or None where there was no reply.
        request_id: The service's own name for the request, or None.
        body: At most the first 200 characters of a reply that could not be read, or None.
        retryable: Whether the same request may succeed later.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        body: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id
        self.body = body[:200] if body is not None else None
        self.retryable = retryable


class ToolError(ReactflowError):
    """Raised by a tool to tell the model, in its own words, what went wrong and what to do next."""


class StoreError(ReactflowError):
    """A memory store failed.  Raised by a commit, it carries the finished result as ``partial``."""


class ConflictError(StoreError):
    """Somebody else wrote to the conversation while the turn ran, so the turn was not stored.

    Attributes:
        conversation_id: Which conversation.
    """

    def __init__(self, conversation_id: str) -> None:
        super().__init__(
            f"Somebody else wrote to the conversation {conversation_id!r:.80} while this turn ran; run the turn again."
        )
        self.conversation_id = conversation_id


class BudgetExceeded(ReactflowError):
    """A limit came before there was any answer.

    Attributes:
        reason: Which limit, as a stop reason.
        meter: The meter whose limit it was; tells a run's own limit from that of a run inside it.
    """

    meter: object = None

    def __init__(self, message: str, *, reason: StopReason) -> None:
        super().__init__(message)
        self.reason = reason


class WorkflowError(ReactflowError):
    """A role of a workflow failed; the role's own error is the ``__cause__``.

    Attributes:
        role: Which role.
        iteration: In which iteration, from 1.
    """

    def __init__(self, message: str, *, role: str, iteration: int) -> None:
        super().__init__(message)
        self.role = role
        self.iteration = iteration


def of_a_model(error: BaseException | None) -> bool:
    """Whether a model or its provider failed, or a limit came, in whatever role of a workflow.

    All else is a mistake in somebody's own function, which is never hidden.
    """
    if isinstance(error, WorkflowError):
        return of_a_model(error.__cause__)
    return isinstance(error, (BudgetExceeded, ModelBehaviorError, ProviderError))
