"""Ask for a reply of a fixed form, of a server that may not know how to hold a model to one.

What a server can do shows when it is asked.  Where it refuses the form, the same request goes out once more without it;
the prompt says in words too which form is wanted, and the reply is read as tolerantly as ever.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from reactflow.errors import ProviderError, ReactflowError

T = TypeVar("T")

_REFUSALS: Final = frozenset((400, 405, 415, 422, 501))
"""What a server says of a request that it does not support."""

_FORM: Final = ("response_format", "json_schema")
"""What it names where it says so under another status."""

_AT_404: Final = ("parameter", "support", "json", "schema")
"""What a router names that finds nobody for such a request; any other 404 is about the model or the address."""

_TOO_LONG: Final = re.compile(
    "conversation is too long|prompt is too long|input is too long|reduce the length|too many tokens|"
    "maximum number of tokens|max_prompt_tokens|maximum context|context[ _](length|window|size)"
)
_NO_MODEL: Final = re.compile(
    r"(no such|unknown) model|model[ _]not[ _]found|model\b.{0,80}\b(does )?not (exist|found)"
)

MOST_HELD: Final = 64
"""How many models without weak references are remembered, the latest."""

_refusing: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by id: equal models may have other servers
_held: deque[Any] = deque(maxlen=MOST_HELD)


def refuses_form(error: BaseException) -> bool:
    """Whether *error*, or its cause, may be a server's refusal of the form that it was asked for."""
    failures = [each for each in (error, error.__cause__) if isinstance(each, ProviderError)]
    return any(map(_refuses_form, failures))


def _refuses_form(error: ProviderError) -> bool:
    theirs = (error.body or str(error)).lower()
    said = f"{error} {theirs}".lower()
    if _TOO_LONG.search(said):
        return False
    if any(word in said for word in _FORM):
        return True
    if error.status == 404:
        return any(word in theirs for word in _AT_404)
    return error.status in _REFUSALS and not _NO_MODEL.search(theirs)


def takes_schemas(model: Any) -> bool:
    """Whether nothing is known of *model* but that its server takes schemas."""
    return _refusing.get(id(model)) is not model and not any(each is model for each in tuple(_held))


def note_refusal(model: Any) -> None:
    """Remember, as long as *model* lives, that its server refuses schemas."""
    try:
        _refusing[id(model)] = model
    except TypeError:  # it takes no weak reference
        _held.append(model)


async def ask_in_form(
    model: Any, schema: Mapping[str, Any], asking: Callable[[Mapping[str, Any] | None], Awaitable[T]]
) -> T:
    """Ask with *schema*, or without it where the server of *model* refuses it.

    A refusal is remembered once the same question went well without the schema, so it costs each model one request.

    Args:
        model: Who is asked.
        schema: The JSON Schema of the reply.
        asking: Asks once, with the schema that it is given; the prompt says in words too which form is wanted.

    Raises:
        ReactflowError: What *asking* raised, and not over the schema.
    """
    if not takes_schemas(model):
        return await asking(None)
    try:
        return await asking(schema)
    except ReactflowError as error:
        if not refuses_form(error):
            raise
    reply = await asking(None)
    note_refusal(model)
    return reply
