"""Failures of a service: what to tell the user, and whether and when to ask again."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reactflow.errors import ProviderError

FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 8.0
LONGEST_RETRY_AFTER_S: Final = 60.0
"""A server that wants a longer pause than this is not asked again; the error says how long it wants."""

_RETRYABLE: Final = frozenset({408, 409, 425, 429})
_OVERFLOW: Final = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "reduce the length",
    "exceeds the maximum number of tokens",
    "max_prompt_tokens",
)
_QUOTA: Final = (
    "insufficient_quota",
    "insufficient balance",
    "insufficient_balance",
    "insufficient credits",
    "exceeded your current quota",
    "billing",
    "arrearage",
    "payment required",
)
_FORM: Final = ("response_format", "response format", "json_schema", "structured output")
_TRANSIENT: Final = (
    "overloaded",
    "rate_limit",
    "rate limit",
    "server_error",
    "internal error",
    "internal_error",
    "unavailable",
    "timeout",
    "timed out",
    "try again",
    "too many requests",
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a server said instead of a reply.

    Args:
        status: The HTTP status, or None where there was none.
        error: The decoded error: OpenAI's ``{"message", "type", "code"}``, any other JSON, or text.
        request_id: The server's name for the request.
        body: The raw text of an answer that could not be read.
        should_retry: What the server itself said about asking again, or None.
    """

    status: int | None = None
    error: Any = None
    request_id: str | None = None
    body: str | None = None
    should_retry: bool | None = None


def explain(refusal: Refusal, *, model: str, base_url: str, hide: Callable[[str], str] = str) -> ProviderError:
    """Make an error of what a server said: what happened, and what to do next; *hide* takes secrets out of a text."""
    said = hide(message_of(refusal.error))
    if said.startswith("<"):
        said = ""  # a web page says nothing worth a sentence
    code = _code_of(refusal.error)
    words = f"{code} {said} {_field(refusal.error, 'type')}".lower()
    status = refusal.status if refusal.status is not None and refusal.status >= 400 else _as_status(code)
    where = f"model {model!r} at {base_url}"
    quoted = f": {said}" if said else ""
    retryable = False
    if status == 402 or any(sign in words for sign in _QUOTA):
        text = f"The quota for {where} is used up{quoted}. Add credit or raise the limit with the provider."
    elif status == 413 or (status in (None, 400, 422, 500) and any(sign in words for sign in _OVERFLOW)):
        text = (
            f"The conversation is too long for {where}{quoted}. "
            "Shorten it (a smaller memory window, shorter tool results) or take a model with a larger context."
        )
    elif status in (401, 403):
        text = f"The credentials for {where} were refused{quoted}. Check OPENAI_API_KEY or api_key=...."
    elif status in (400, 422) and any(sign in words for sign in _FORM):
        text = (
            f"The form of the reply was refused by {where}{quoted}. "
            "Pass response_format='json_object' or 'none', which put a wanted schema into words."
        )
    elif status == 404:
        text = f"There is no {where}{quoted}. Check the model's name and the base URL, which as a rule ends in /v1."
    else:
        moved = refusal.status is not None and 300 <= refusal.status < 400
        retryable = not moved if status is None else status in _RETRYABLE or status >= 500
        if refusal.status == 200 and status is None:
            retryable = any(sign in words for sign in _TRANSIENT)
        text = f"The request to {where} failed{f' with status {status}' if status else ''}{quoted}."
    if refusal.should_retry is not None:
        retryable = refusal.should_retry
    return ProviderError(
        text,
        status=status if status is not None else refusal.status,
        request_id=refusal.request_id,
        body=hide(refusal.body or ""),
        retryable=retryable,
    )


def explain_redirect(refusal: Refusal, *, model: str, base_url: str, hide: Callable[[str], str] = str) -> ProviderError:
    """Make an error of a redirect that was not followed; the refusal's ``error`` says why, and what to do."""
    return ProviderError(
        f"The request to model {model!r} at {base_url} failed with status {refusal.status}: {hide(refusal.error)}",
        status=refusal.status,
        request_id=refusal.request_id,
        body=hide(refusal.body or ""),
    )


def message_of(error: Any) -> str:
    """The sentence in a server's error, at most 500 characters, or an empty text."""
    if isinstance(error, str):
        return error.strip()[:500]
    if isinstance(error, list) and error:
        return message_of(error[0])
    for name in ("message", "error", "detail", "msg", "errors", "error_msg"):
        value = _field(error, name)
        if value and (text := message_of(value)):
            return text
    return ""


def _field(error: Any, name: str) -> Any:
    return (error.get(name) or "") if isinstance(error, dict) else ""


def _code_of(error: Any) -> str:
    inner = _field(error, "error")
    code = _field(error, "code") or _field(error, "status") or (_field(inner, "code") if inner else "")
    return str(code)


def _as_status(code: str) -> int | None:
    return int(code) if code.isdigit() and 400 <= int(code) <= 599 else None


def wanted_wait(headers: Mapping[str, str]) -> float | None:
    """How many seconds a server asks to wait, by ``retry-after-ms`` or ``Retry-After`` (RFC 9110, section 10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        at = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, at.timestamp() - time.time())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def backoff(attempt: int) -> float:
    """Seconds to wait after attempt *attempt*, from 1: doubling, and spread so that clients fall out of step."""
    return min(FIRST_WAIT_S * 2.0 ** (attempt - 1), LONGEST_WAIT_S) * random.uniform(0.75, 1.25)
