"""Errors of Flink, put where they belong in the script."""

from __future__ import annotations

import re

from reactflow.errors import ReactflowError, WorkflowError
from reactflow.sql.tokens import Statement

_PYTHON = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
_JAVA = re.compile(r"^(?:Caused by|.*): [\w.$]*\.\w+(?:Error|Exception): (.+)$", re.MULTILINE)
_IN_A_CALL = re.compile(r"\(.Error happens inside the class .*, (\w+)\(([\"'])(.*)\2\)\)$")
"""How PyFlink wraps what a call raised; the part in the middle quotes the row."""


def explained(error: Exception, statement: Statement) -> ReactflowError:
    """*error* as one of *statement*: what is wrong, without Flink's trace, which may quote rows."""
    text = str(error)
    _, in_python, trace = text.rpartition("Traceback (most recent call last)")
    if in_python:
        words = f"The job in line {statement.line} failed: {_reason(trace)[:500]}"
        return WorkflowError(words, role="job", iteration=1)
    java = _JAVA.findall(text)
    reason = java[-1] if java else text.splitlines()[0] if text else type(error).__name__
    return statement.error(reason.strip()[:1000])


def _reason(trace: str) -> str:
    """The last line of a Python trace."""
    found = _PYTHON.findall(trace)
    kind, reason = found[-1] if found else ("An error", "no reason was given")
    inside = _IN_A_CALL.search(reason)
    return f"{inside[1]}: {inside[3]}" if inside else f"{kind}: {reason}"
