"""What the roles of Reflexion are asked, and how their lessons are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reactflow.errors import ModelBehaviorError
from reactflow.frozen import FrozenDict
from reactflow.judging.loose_json import find_objects
from reactflow.judging.reply import stands_alone, strip_thinking
from reactflow.phrases import shorten_middle
from reactflow.workflows.attempt import Attempt
from reactflow.workflows.lessons import Lesson
from reactflow.workflows.reflexion_wording import reflexion_wording
from reactflow.workflows.reply import Reply
from reactflow.workflows.structured import Form, read_object
from reactflow.workflows.wording import fenced, new_mark, wording

_LESSON: Mapping[str, Any] = FrozenDict(
    type="object",
    properties={"trigger": {"type": "string"}, "advice": {"type": "string"}},
    required=["trigger", "advice"],
    additionalProperties=False,
)
_LESSONS: Mapping[str, Any] = FrozenDict(
    type="object",
    properties={
        "lessons": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "trigger": {"type": "string"},
                    "advice": {"type": "string"},
                    "from": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["trigger", "advice", "from"],
                "additionalProperties": False,
            },
        }
    },
    required=["lessons"],
    additionalProperties=False,
)


def actor_prompt(task: str, lessons: Sequence[Lesson], last: Attempt | None, max_chars: int) -> str:
    """The task with the lessons behind it, and where *last* is given that attempt and what was said of it."""
    said, mark = reflexion_wording(task), new_mark()
    parts = [task]
    if lessons:
        parts += [said.lessons.format(mark=mark), fenced(mark, said.lessons_heading, numbered(lessons), task)]
    if last is not None:
        draft = shorten_middle(last.draft, max_chars, question=task)
        check = shorten_middle(last.complaint, max_chars, question=task) or said.no_detail
        parts += [said.last, fenced(mark, said.attempt, draft, task), fenced(mark, said.check, check, task), said.again]
    if lessons:
        parts.append(said.heed)
    return "\n\n".join(parts)


def reflector_prompt(
    task: str,
    attempt: Attempt,
    detail: str,
    shown: Sequence[Lesson],
    examples: Sequence[str] | None,
    max_chars: int,
    max_advice_chars: int,
) -> str:
    """What is to be learnt from *attempt*: worked examples, the task, the attempt, the evaluator's own words.

    Args:
        task: What was asked.
        attempt: What failed.
        detail: What the evaluator said of it; may be empty.
        shown: The lessons that the attempt was made with.
        examples: Worked examples; the built-in ones where it is None.
        max_chars: The attempt loses its middle at this length; *detail* is cut already.
        max_advice_chars: How long an advice may be.
    """
    said, mark = reflexion_wording(task), new_mark()
    draft = shorten_middle(attempt.draft, max_chars, question=task)
    worked = said.examples if examples is None else examples
    parts = [said.reflect]
    if worked:
        parts += [said.examples_heading, *worked]
    parts += [
        said.data.format(mark=mark),
        fenced(mark, wording(task).task, task, task),
        fenced(mark, said.attempt, draft, task),
        fenced(mark, said.check, detail or said.no_detail, task),
    ]
    if shown:
        parts += [fenced(mark, said.earlier, numbered(shown), task), said.earlier_failed]
    return "\n\n".join((*parts, said.reflection_format.format(chars=max_advice_chars)))


def summary_prompt(task: str, lessons: Sequence[Lesson], count: int, max_advice_chars: int) -> str:
    """How *lessons* become at most *count*."""
    said, mark = reflexion_wording(task), new_mark()
    listed = "\n".join(
        f"{line}\n   {each.evidence}".rstrip() for line, each in zip(_lines(lessons), lessons, strict=True)
    )
    return "\n\n".join(
        (
            said.condense.format(count=count),
            said.data.format(mark=mark),
            fenced(mark, said.lessons_heading, listed, task),
            said.condense_format.format(chars=max_advice_chars),
        )
    )


def numbered(lessons: Sequence[Lesson]) -> str:
    """The lessons as a list: number, trigger in brackets, advice."""
    return "\n".join(_lines(lessons))


def _lines(lessons: Sequence[Lesson]) -> list[str]:
    return [
        f"{number}. {f'({each.trigger}) ' if each.trigger else ''}{each.advice}"
        for number, each in enumerate(lessons, 1)
    ]


def _read_lesson(reply: Reply) -> Lesson:
    """A lesson as it is, an object with ``advice``, JSON with such an object, or a plain text that is the advice."""
    if isinstance(reply.value, Lesson):
        return reply.value
    if isinstance(reply.value, Mapping):
        return _made(reply.value)
    text = strip_thinking(reply.text).strip()
    return _made(read_object(text, ["advice"]) if _is_json(text) else {"advice": text})


def _is_json(text: str) -> bool:
    """Whether *text* is meant as JSON; a sentence may begin with a bracket or a fence and is none."""
    return '"advice"' in text or any(stands_alone(text, found) for found in find_objects(text).objects)


def _made(given: Mapping[str, Any]) -> Lesson:
    advice, trigger = given.get("advice"), given.get("trigger")
    if not isinstance(advice, str) or not advice.strip():
        raise ModelBehaviorError('There is no "advice".')
    return Lesson(advice, trigger=trigger if isinstance(trigger, str) else "")


LESSON_FORM = Form("write_lesson", "Write down the lesson of a failed attempt.", _LESSON, _read_lesson)
"""One lesson."""


def summary_form(lessons: Sequence[Lesson]) -> Form:
    """What *lessons* are put together into, each with the evidence, uses and wins of those it comes from."""

    def read(reply: Reply) -> tuple[Lesson, ...]:
        given = reply.value if isinstance(reply.value, Mapping) else read_object(reply.text, ["lessons"])
        listed = given.get("lessons")
        if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(each, Mapping) for each in listed):
            raise ModelBehaviorError('"lessons" is not a list of objects.')
        return tuple(_joined(_made(each), _sources(each.get("from"), lessons)) for each in listed)

    return Form("write_lessons", "Write down the lessons, put together.", _LESSONS, read)


def _sources(numbers: Any, lessons: Sequence[Lesson]) -> list[Lesson]:
    listed = numbers if isinstance(numbers, (list, tuple)) else [numbers]
    return [lessons[at - 1] for at in dict.fromkeys(listed) if type(at) is int and 1 <= at <= len(lessons)]


def _joined(lesson: Lesson, sources: Sequence[Lesson]) -> Lesson:
    evidence = dict.fromkeys(each.evidence for each in sources if each.evidence)
    return replace(
        lesson,
        evidence="\n".join(evidence),
        uses=sum(each.uses for each in sources),
        wins=sum(each.wins for each in sources),
    )
