"""Errors of Flink, put where they belong in the script."""

from __future__ import annotations

import re

from reactflow.batch.job import JobStopped
from reactflow.errors import ReactflowError, WorkflowError
from reactflow.result import StopReason
from reactflow.sql.tokens import Statement

_PYTHON = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
_JAVA = re.compile(r"^(?:Caused by|.*): [\w.$]*\.\w+(?:Error|Exception): (.+)$", re.MULTILINE)
_IN_A_CALL = re.compile(r"\(.Error happens inside the class .*, (\w+)\(([\"'])(.*)\2\)\)$")
"""How PyFlink wraps what a call raised; the part in the middle quotes the row."""
_OF_THE_JOB = re.compile(r"Job(?:Execution|Submission)Exception|Failed to (?:execute sql|fetch next result)")
"""What stands in an error that came after the statement had been understood: the statement is not to blame."""


_LOST = re.compile(r"TaskNotRunningException: Task is not running, but in state")
"""A task failed while a checkpoint was made.  The end of the checkpoint sends the task what had to wait for it, and
that nothing can be sent there any more is then taken for the cause."""


def explained(error: Exception, statement: Statement, last_word: str | None = None) -> ReactflowError:
    """*error* as one of *statement*: what is wrong, without Flink's trace, which may quote rows.

    Args:
        error: What PyFlink raised.
        statement: What ran.
        last_word: What a worker wrote before it failed; it counts where Flink lost the reason.
    """
    text = str(error)
    _, in_python, trace = text.rpartition("Traceback (most recent call last)")
    lost = not in_python and _LOST.search(text) is not None
    if lost and last_word is None:
        return _failed(statement, "a task failed, and Flink lost the reason; the log of its task manager has it.")
    if in_python or lost:
        kind, reason = _reason(trace) if in_python else _split(last_word or "")
        if kind == JobStopped.__name__:
            return JobStopped(reason, reason=StopReason.COST_BUDGET)
        return _failed(statement, f"{kind}: {reason}"[:500])
    java = _JAVA.findall(text)
    words = java[-1].strip() if java else text.splitlines()[0] if text else type(error).__name__
    return _failed(statement, words[:1000]) if _OF_THE_JOB.search(text) else statement.error(words[:1000])


def _split(word: str) -> tuple[str, str]:
    kind, _, reason = word.partition(": ")
    return kind, reason


def _failed(statement: Statement, reason: str) -> WorkflowError:
    return WorkflowError(f"The job in line {statement.line} failed: {reason}", role="job", iteration=1)


def _reason(trace: str) -> tuple[str, str]:
    """The kind of error and the reason in the last line of a Python trace."""
    found = _PYTHON.findall(trace)
    kind, reason = found[-1] if found else ("An error", "no reason was given")
    inside = _IN_A_CALL.search(reason)
    return (inside[1], inside[3]) if inside else (kind, reason)
