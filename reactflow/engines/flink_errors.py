"""Errors of Flink, put where they belong in the script."""

from __future__ import annotations

import re

from reactflow.errors import ReactflowError, WorkflowError
from reactflow.sql.tokens import Statement


def explained(error: Exception, statement: Statement) -> ReactflowError:
    """*error* as one of *statement*: what is wrong, without Flink's trace, which may quote rows."""
    text = str(error)
    python = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    java = re.findall(r"^(?:Caused by|.*): [\w.$]*\.(\w+(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    if "Traceback (most recent call last)" in text:
        kind, reason = python[-1] if python else (type(error).__name__, "no reason was given")
        words = f"The job in line {statement.line} failed: {kind}: {reason[:500]}"
        return WorkflowError(words, role="job", iteration=1)
    reason = java[-1][1] if java else text.splitlines()[0] if text else type(error).__name__
    return statement.error(reason.strip()[:1000])
