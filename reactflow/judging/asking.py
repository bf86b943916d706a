"""Ask for a reply of a fixed form, of a server that may not know how to hold a model to one.

What a server can do shows when it is asked.  Where it refuses the form, the same request goes out once more without it;
the prompt says in words too which form is wanted, and the reply is read as tolerantly as ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from reactflow.errors import ProviderError, ReactflowError

T = TypeVar("T")

_REFUSALS = frozenset((400, 404, 405, 415, 422, 501))
"""What a server says of a request that it does not support."""

_FORM_WORDS = ("response_format", "json_schema")
"""What it names where it says so under another status."""

_refusing: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by id: equal models may have other servers


def refuses_form(error: BaseException) -> bool:
    """Whether *error*, or its cause, may be a server's refusal of the form that it was asked for."""
    failures = [each for each in (error, error.__cause__) if isinstance(each, ProviderError)]
    return any(each.status in _REFUSALS or any(word in str(each) for word in _FORM_WORDS) for each in failures)


def takes_schemas(model: Any) -> bool:
    """Whether nothing is known of *model* but that its server takes schemas."""
    return _refusing.get(id(model)) is not model


def note_refusal(model: Any) -> None:
    """Remember, as long as *model* lives, that its server refuses schemas."""
    with suppress(TypeError):  # an object that takes no weak references is asked anew each time
        _refusing[id(model)] = model


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
