"""What a critic found: read from its reply, and sorted into what has to be mended and what has not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reactflow.errors import ModelBehaviorError
from reactflow.frozen import FrozenDict
from reactflow.judging.grades import read_issues, read_share, worst
from reactflow.judging.reply import ISSUES, SCORES, check_length, is_announced, repeats_data, stands_alone, take_apart
from reactflow.judging.verdict import read_verdict_fields
from reactflow.progress import SIMILAR, similarity
from reactflow.result import Issue, Judgement
from reactflow.workflows.critic_wording import CriticWording
from reactflow.workflows.reply import Reply

REVIEW_SCHEMA: Mapping[str, Any] = FrozenDict(
    type="object",
    properties={
        "issues": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "category": {"type": "string"},
                    "snippet": {"type": "string"},
                    "suggestion": {"type": "string"},
                    "severity": {"type": "integer", "enum": [1, 2, 3, 4, 5]},
                },
                "required": ["category", "snippet", "suggestion", "severity"],
                "additionalProperties": False,
            },
        },
        "overall_score": {"type": "integer"},
    },
    required=["issues", "overall_score"],
    additionalProperties=False,
)
"""The form of a review, for models that can be held to one."""

MINOR = 2
"""The severity up to which an issue that was not there in an earlier round does not keep the loop alive."""

_UNNAMED_SEVERITY = 4  # of what an evaluator rejects without naming an issue


def read_review(reply: Reply, *, question: str = "") -> Judgement:
    """Read what a critic wrote.  ``passed`` is True where it found no issue at all.

    Of several objects with issues all issues count, so that one quoted from the text cannot hide the critic's own;
    and so do all of one object, under whatever names.

    Args:
        reply: What it wrote.
        question: The task; decides the language of what an issue without words gets.

    Raises:
        ModelBehaviorError: No list of issues can be read, one of them is only true or false, it is empty beside a
            rejection, or the reply was cut off or is too long.
    """
    if isinstance(reply.value, Judgement):
        return _of_evaluator(reply.value)
    if reply.flaw is not None:
        raise ModelBehaviorError(f"The reply was not whole ({reply.flaw}).")
    check_length(reply.text)
    if repeats_data(reply.text):
        raise ModelBehaviorError("It repeats what it was to review.")
    said = take_apart(reply.text)
    if said.damage >= 0 or not all(found.sure for found, _ in said.objects):
        raise ModelBehaviorError("A JSON object in it is cut off or damaged.")
    alone = [(found, members) for found, members in said.objects if stands_alone(said.text, found)]
    own = [members for _, members in alone]
    issues, flags = _issues([value for members in own for key, value in members if key in ISSUES], question)
    if not issues and not any(is_announced(said.text, found) for found, _ in alone):
        raise ModelBehaviorError("What comes before its JSON object does not say that it is the critic's own.")
    if not issues and read_verdict_fields(reply.text, question=question).verdict is False:
        raise ModelBehaviorError('It rejects the text, but its list of "issues" is empty.')
    scored = [
        dict(members) for members in own if any(key in ISSUES and isinstance(each, list) for key, each in members)
    ]
    score, odd_score = _score(_first(scored[-1], SCORES))
    if odd_score is not None:
        flags[odd_score] = None
    return Judgement(not issues, score=score, issues=issues, flags=tuple(flags))


def _issues(lists: Sequence[Any], question: str) -> tuple[tuple[Issue, ...], dict[str, None]]:
    """The issues of all *lists*, the worst of them where they are many, and what was odd."""
    if not any(isinstance(each, list) for each in lists):
        raise ModelBehaviorError('There is no JSON object with a list of "issues".')
    if any(isinstance(each, list) and any(isinstance(issue, bool) for issue in each) for each in lists):
        raise ModelBehaviorError('An issue in "issues" is only true or false; each must be an object that names it.')
    issues: dict[Issue, None] = {}
    flags: dict[str, None] = {}
    for each in lists:
        some, odd = read_issues(each, question=question)
        issues |= dict.fromkeys(some)
        flags |= dict.fromkeys(odd)
    return tuple(issue for issue, _ in worst([(issue, None) for issue in issues])), flags


def _first(given: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((given[key] for key in keys if key in given), None)


def _score(value: Any) -> tuple[float | None, str | None]:
    """``overall_score``, 0 to 100, as a share; a fraction up to 1.0 is taken for one already."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and (isinstance(value, int) or value > 1):
        value = f"{value}%"
    return read_share(value, "overall_score")


def _of_evaluator(judgement: Judgement) -> Judgement:
    if judgement.passed or judgement.issues:
        return judgement
    return replace(judgement, issues=(_unnamed(judgement.feedback),))


def to_mend(issues: Iterable[Issue], earlier: Sequence[Issue] | None, threshold: int) -> tuple[Issue, ...]:
    """The issues worth a revision, the worst first.

    Args:
        issues: What the critic found.
        earlier: What it found in earlier rounds; None in the first.  After that a new issue counts only above
            :data:`MINOR`, because a critic can go on finding trifles for ever.
        threshold: The least severity that counts.
    """

    def counts(issue: Issue) -> bool:
        old = earlier is None or issue.severity > MINOR or any(_same(issue, other) for other in earlier)
        return issue.severity >= threshold and old

    return _worst_first(filter(counts, issues))


def all_against(judgement: Judgement) -> tuple[Issue, ...]:
    """All that an evaluator says against a text, the worst first: its issues, and its feedback where none says it."""
    said = judgement.feedback
    rest = [_unnamed(said)] if said and not any(said in issue.description for issue in judgement.issues) else []
    return _worst_first((*rest, *judgement.issues))


def _worst_first(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    return tuple(sorted(issues, key=lambda issue: -issue.severity))


def _unnamed(feedback: str | None) -> Issue:
    return Issue(feedback or "It was rejected without a reason.", severity=_UNNAMED_SEVERITY)


def _same(issue: Issue, other: Issue) -> bool:
    """Whether two rounds speak of one problem: about the same words, or where no words are named, in the same ones."""
    if issue.snippet and other.snippet:
        return issue.snippet == other.snippet
    return similarity(issue.description, other.description) > SIMILAR


def fix_line(said: CriticWording, issue: Issue) -> str:
    """One issue as a line: ``- [severity 4, category] words -> what to write instead``."""
    kind = f"severity {issue.severity}" + (f", {issue.category}" if issue.category else "")
    instead = issue.suggestion or (issue.description if issue.description != issue.snippet else said.take_out)
    return f"- [{kind}] {issue.snippet or said.no_words} -> {instead}"
