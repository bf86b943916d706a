"""Logs on standard error, where they disturb neither an answer nor a pipe."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


class _StandardError:
    """Writes to standard error as it is at that moment: a live view replaces it to print above its moving part."""

    def msg(self, message: str) -> None:
        """Write one line."""
        print(message, file=sys.stderr, flush=True)

    log = debug = info = warning = error = critical = exception = msg


def send_logs_to_stderr(*, debug: bool) -> None:
    """Set up structlog for a program at a terminal.

    Args:
        debug: Whether debug lines are shown; else warnings and worse.
    """
    level = logging.DEBUG if debug else logging.WARNING
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=_logger,
        cache_logger_on_first_use=False,
    )


def _logger(*_: Any) -> _StandardError:
    return _StandardError()
