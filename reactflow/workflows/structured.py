"""Replies of a fixed form: by a schema where the server enforces one, else by a tool call, else in plain JSON.

What a server can do shows when it is asked.  One that refuses a schema or a tool is not asked that way again in the
same run; and where a reply cannot be read, the next way is tried, three calls at most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, NamedTuple, cast

from reactflow.errors import ModelBehaviorError, ProviderError, WorkflowError
from reactflow.judging.grades import snake
from reactflow.judging.loose_json import Members, find_objects
from reactflow.judging.reply import check_length, stands_alone, strip_thinking
from reactflow.messages import SystemMessage, UserMessage
from reactflow.model import ChatModel, ToolSpec, ask
from reactflow.result import StopReason
from reactflow.workflows.attempt import Trail
from reactflow.workflows.reply import Reply, read_reply
from reactflow.workflows.role import Role, is_model, playing, role_failed

_TRIES = 3
_REFUSALS = frozenset((400, 404, 405, 415, 422, 501))
"""What a server says of a request that it does not support."""


class Way(StrEnum):
    """How a model is held to a form."""

    SCHEMA = "schema"
    TOOL = "tool"
    TEXT = "text"


class Form(NamedTuple):
    """A reply of a fixed form.

    Args:
        name: What a tool is called that takes it.
        description: What such a tool is for.
        schema: The JSON Schema of an object.
        read: Reads a reply, or raises ModelBehaviorError.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    read: Callable[[Reply], Any]


async def ask_for(form: Form, role: Role, prompt: str, trail: Trail, *, repair: str, drafting: bool = False) -> Reply:
    """Ask *role* for a reply of *form*; the prompt says in words too what form that is.

    Args:
        form: What is wanted.
        role: Who is asked; only a ChatModel can be held to a schema or a tool, others are asked twice at most.
        prompt: All it is to know.
        trail: The run so far.
        repair: Added where the last reply could not be read; ``{problem}`` in it says why.
        drafting: As for :meth:`~reactflow.workflows.role.Role.ask`; the text is not shown while it comes.

    Returns:
        The reply; its ``value`` is what the form reads, unless it has a ``flaw`` (refused, filtered, blocked, paused).

    Raises:
        WorkflowError: The role failed, or none of its replies could be read.
    """
    ways: list[Way] = trail.notes.setdefault(f"ways of {id(role.actor)}", _ways(role))
    problem = ""
    for way in (*ways, ways[-1])[:_TRIES]:
        asked = f"{prompt}\n\n{repair.format(problem=problem)}" if problem else prompt
        try:
            reply = await _ask(way, form, role, trail.message(asked), trail, drafting)
            if reply.flaw not in (None, StopReason.TRUNCATED):
                return reply
            if reply.flaw is not None:
                raise ModelBehaviorError("The reply was cut off.")
            value = form.read(reply)
        except ModelBehaviorError as error:
            problem = str(error)
        except WorkflowError as error:
            problem = _passable(error, last=way is ways[-1])
        else:
            ways[:] = ways[ways.index(way) :]
            return replace(reply, value=value)
    raise role_failed(role.name, trail, ModelBehaviorError(f"Its replies could not be read. {problem}".strip()))


def _ways(role: Role) -> list[Way]:
    return [*Way] if is_model(role.actor) else [Way.TEXT]


async def _ask(way: Way, form: Form, role: Role, message: UserMessage, trail: Trail, drafting: bool) -> Reply:
    if way is Way.TOOL:
        return await _ask_by_tool(form, role, message, trail, drafting)
    schema = form.schema if way is Way.SCHEMA else None
    return await role.ask(message, trail, schema=schema, drafting=drafting, shown=False)


async def _ask_by_tool(form: Form, role: Role, message: UserMessage, trail: Trail, drafting: bool) -> Reply:
    """Offer one tool and take the arguments of its call for the reply; text is taken as it is."""
    model, spec = cast(ChatModel, role.actor), ToolSpec(form.name, form.description, form.schema)
    system = (SystemMessage(role.system_prompt),) if role.system_prompt else ()
    request = trail.request.aside(*system, message).replace(tools=(spec,), tool_choice=spec.name, stream=False)
    if drafting:
        request = request.replace(options=trail.request.options)
    with playing(role.name, trail):
        response = await ask(model, request, role=role.name)
    given = next((call.arguments for call in response.message.tool_calls if call.name == spec.name), response.text)
    return read_reply(response.replace(message=replace(response.message, text=given)))


def _passable(error: WorkflowError, *, last: bool) -> str:
    """What a reply was wrong in where another way may help; raises *error* where it will not."""
    cause = error.__cause__
    if isinstance(cause, ModelBehaviorError):
        return str(cause)
    if last or not isinstance(cause, ProviderError) or cause.status not in _REFUSALS:
        raise error
    return ""


def read_object(text: str, needed: Collection[str]) -> dict[str, Any]:
    """The last JSON object in *text* that the model itself wrote, with all keys *needed*; keys are ``lower_case``.

    An object that is quoted, or stands inside a sentence, is somebody else's.

    Raises:
        ModelBehaviorError: There is none, it is damaged, or *text* is too long.
    """
    check_length(text)
    text = strip_thinking(text).strip()
    scan = find_objects(text)
    own = [(found, _plain_object(found.members)) for found in scan.objects if stands_alone(text, found)]
    fitting = [(found, members) for found, members in own if all(key in members for key in needed)]
    if not fitting:
        keys = " and ".join(f'"{key}"' for key in needed)
        raise ModelBehaviorError(f"There is no JSON object with {keys}.")
    found, members = fitting[-1]
    if not found.sure or scan.damage > found.start:
        raise ModelBehaviorError("A JSON object in it is cut off or damaged.")
    return members


def _plain_object(members: Members) -> dict[str, Any]:
    """*members* as a dict; of an object that is nothing but a wrapper around another one, the one inside."""
    while len(members) == 1 and isinstance(members[0][1], Members):
        members = members[0][1]
    return {snake(key): _plain(value) for key, value in members}


def _plain(value: Any) -> Any:
    if isinstance(value, Members):
        return {snake(key): _plain(inner) for key, inner in value}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
