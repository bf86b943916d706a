"""Between a model and an MCP server: names that a model may use, and text of what a tool answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from reactflow.errors import ToolError
from reactflow.tooling.results import as_text

MAX_NAME = 64
"""How long a model's name for a tool may be; that of a server may have 128 characters."""

_LEGAL = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME}}}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def legal_names(names: Iterable[str], prefix: str = "") -> dict[str, str]:
    """What a model calls each tool, by the server's *names*; no two are the same, and each depends on *names* only.

    A legal name stays.  In another ``_`` stands for each character that models do not take; where that is too long,
    says nothing or is taken, a short hash of the server's name makes it unique.
    """
    wanted = {name: prefix + name for name in names}
    shown = {name: full for name, full in wanted.items() if _LEGAL.fullmatch(full)}
    for name, full in wanted.items():
        if name not in shown:
            plain = _ILLEGAL.sub("_", full)
            says = _ILLEGAL.sub("", name).strip("_-")
            fits = says and _LEGAL.fullmatch(plain) and plain not in shown.values()
            shown[name] = plain if fits else _with_hash(plain if says else f"{prefix}tool", name)
    return {name: shown[name] for name in wanted}


def _with_hash(plain: str, name: str) -> str:
    return f"{_ILLEGAL.sub('_', plain)[: MAX_NAME - 9]}_{sha256(name.encode()).hexdigest()[:8]}"


def answer_text(result: Any) -> str:
    """The text of a ``CallToolResult``, for a model.

    Text passes unchanged, one line break between two parts.  Structured content follows as JSON, unless the text says
    the same already, as the protocol asks servers to do; a list that a server wrote as one text for each item is given
    as the list.  Of pictures, sound and files there is only a note.

    Raises:
        ToolError: The server says that the call failed; the text says why.
    """
    parts = [_shown(block) for block in result.content]
    if result.structured_content is not None:
        parts = _with_data(parts, result.structured_content)
    text = "\n".join(parts)
    if result.is_error:
        raise ToolError(text)
    return text


def _with_data(texts: list[str], data: Any) -> list[str]:
    value = data["result"] if isinstance(data, dict) and data.keys() == {"result"} else data  # how servers wrap it
    read = [_read(text) for text in texts]
    if len(texts) == 1 and (texts[0] == value or read[0] in (value, data)):
        return texts
    if value in (texts, read):
        return [as_text(value)]
    return [*texts, as_text(data)]


def _shown(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    if block.type == "resource_link":
        return f"[{block.name}: {block.uri}]{f' {block.description}' if block.description else ''}"
    if block.type != "resource":
        return _not_shown(block.type, block.mime_type, block.data)
    if hasattr(block.resource, "text"):
        return str(block.resource.text)
    return _not_shown(block.resource.uri, block.resource.mime_type, block.resource.blob)


def _not_shown(what: str, mime_type: str | None, data: str) -> str:
    size = len(data.rstrip("=")) * 3 // 4  # of base64
    return f"[{what}, {mime_type or 'unknown type'}, {size} bytes, not shown]"


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
