"""What the models of ResearchReflexion return, and how it is read.

Source: Vahe Sahakyan, "Reflexion", on Towards AI: an answer, a criticism of it, and queries that the program runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reactflow.errors import ModelBehaviorError
from reactflow.frozen import FrozenDict
from reactflow.judging.loose_json import Members
from reactflow.phrases import shorten
from reactflow.workflows.reply import Reply, as_text
from reactflow.workflows.structured import Form, read_object

_MAX_QUERY_CHARS = 300
_MAX_TEXTS = 50

_TEXT: Mapping[str, Any] = FrozenDict(type="string")
_TEXTS: Mapping[str, Any] = FrozenDict(type="array", items={"type": "string"})


def _schema(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return FrozenDict(type="object", properties=properties, required=[*properties], additionalProperties=False)


@dataclass(frozen=True, slots=True)
class DraftOutput:
    """A first answer.

    Args:
        answer: The answer from what the model knows; never blank.
        reflection: Its criticism: what is uncertain, missing or unsupported.
        search_queries: What to look up, as the model wants it; empty where nothing has to be.
    """

    answer: str
    reflection: str = ""
    search_queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FinalOutput(DraftOutput):
    """An answer that was revised by what was found.

    Args:
        references: The addresses of the sources that it rests on, in the order of their numbers in the answer.
    """

    references: tuple[str, ...] = ()


def _read_draft(reply: Reply) -> DraftOutput:
    given = _members(reply, ("answer", "search_queries"))
    return DraftOutput(_answer(given), _words(given.get("reflection")), _queries(given))


def _read_final(reply: Reply) -> FinalOutput:
    given = _members(reply, ("answer",))  # without "references" the markers in the answer count
    references = _texts("references", given.get("references"))
    return FinalOutput(_answer(given), _words(given.get("reflection")), _queries(given), references)


DRAFT = Form(
    "DraftOutput",
    "Hand over the answer, the criticism of it, and the search queries.",
    _schema(answer=_TEXT, reflection=_TEXT, search_queries=_TEXTS),
    _read_draft,
)
"""The form of a first answer."""

FINAL = Form(
    "FinalOutput",
    "Hand over the revised answer, the criticism of it, further search queries, and the references.",
    _schema(answer=_TEXT, reflection=_TEXT, search_queries=_TEXTS, references=_TEXTS),
    _read_final,
)
"""The form of a revised answer."""


def _members(reply: Reply, needed: tuple[str, ...]) -> Mapping[str, Any]:
    value = reply.value
    if isinstance(value, DraftOutput):
        value = {name: getattr(value, name, ()) for name in FinalOutput.__dataclass_fields__}
    elif callable(getattr(value, "model_dump", None)):
        value = value.model_dump()
    if not isinstance(value, Mapping):
        return read_object(reply.text, needed)
    missing = [name for name in needed if name not in value]
    if missing:
        raise ModelBehaviorError(f'There is no "{missing[0]}".')
    return value


def _answer(given: Mapping[str, Any]) -> str:
    answer = _words(given["answer"])
    if not answer:
        raise ModelBehaviorError('The "answer" is blank.')
    return answer


def _words(value: Any) -> str:
    """A text as it is, a list as lines, anything else as JSON."""
    if isinstance(value, (list, tuple)) and not isinstance(value, Members) and all(isinstance(e, str) for e in value):
        return "\n".join(value).strip()
    return as_text(value).strip()


def _queries(given: Mapping[str, Any]) -> tuple[str, ...]:
    queries = _texts("search_queries", given.get("search_queries"))
    return tuple(shorten(" ".join(query.split()), _MAX_QUERY_CHARS) for query in queries)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """A list of texts; one alone is a list too, and of an object the address or the query counts."""
    listed: Iterable[Any] = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
    texts = [_text(each) for each in listed]
    if not all(text is not None for text in texts):
        raise ModelBehaviorError(f'"{name}" is not a list of texts.')
    return tuple(text for text in texts if text)[:_MAX_TEXTS]


def _text(value: Any) -> str | None:
    if isinstance(value, Mapping):
        value = next((value[key] for key in ("url", "link", "query", "source", "title") if key in value), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else None
