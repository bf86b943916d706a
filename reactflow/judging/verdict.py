"""Read a verdict out of what a judge wrote: tolerantly as to form, strictly as to meaning.

Where is the verdict?
    In the last JSON object that has a key for it and stands by itself: at the start of a line or after a colon, not in
    the middle of a sentence, not in a quotation, and not where the words before or behind it give it to somebody else
    ("The draft says: ...", :mod:`reactflow.judging.attribution`).  Without such an object, in a line that is nothing
    but a verdict ("NOT APPROVED", "Verdict: approved", "通过").  What stands in think-tags is no verdict.

When does it pass?
    Only if that verdict is an approval by itself, what announces it is known as a judge's own words, and nothing else
    in the reply contradicts it or may take it back.  Of two verdicts that disagree the rejection counts, and a flag
    says so: calling it an error instead would let a draft out wherever a failed judge is no obstacle.  A verdict that
    is missing, cut off, or neither yes nor no is an error; so is a bare 1 or 0, which may be a score.

Where are score, confidence, issues and feedback?
    In the object that decided, never in a quoted one.  A judge that contradicted itself gave no score or confidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Any, NamedTuple

from reactflow.errors import ModelBehaviorError
from reactflow.judging.attribution import is_quoted_behind
from reactflow.judging.grades import clean, read_issues, read_share
from reactflow.judging.loose_json import Found, Members
from reactflow.judging.reply import (
    AGAINST,
    CONFIDENCES,
    FEEDBACKS,
    ISSUES,
    MAX_CHARS,
    MAYBE,
    REASONS,
    REST,
    SCORES,
    VERDICTS,
    YES_NO,
    Reply,
    is_announced,
    is_known,
    repeats_data,
    stands_alone,
    take_apart,
)
from reactflow.judging.verdict_words import (
    contradicts,
    forbids,
    has_reservations,
    has_second_thoughts,
    read_word,
    refuses,
)
from reactflow.phrases import generic_feedback
from reactflow.result import Issue, Judgement

CRITICAL = 5
"""The severity that no approval survives."""

_REASON_KEYS = frozenset((*FEEDBACKS, *REASONS))
_NOTHING = r"(?i)(?:no|none|nothing|nil|false|0)\b|无|無|没有|不需要|否|\Z"
_CONTRADICTION = "The judge contradicted itself, so the rejection counts."
_SECOND_THOUGHTS = "The words behind its approval may take it back."


class Verdict(NamedTuple):
    """What a judge wrote, field by field, before any rule turns it into a judgement.

    Args:
        verdict: True or False; None where the reply gives none that can be read.
        confidence: In 0..1, or None.
        score: In 0..1, or None.
        feedback: What to change, or None.
        issues: The single problems.
        flags: What was odd, one short sentence each.
    """

    verdict: bool | None = None
    confidence: float | None = None
    score: float | None = None
    feedback: str | None = None
    issues: tuple[Issue, ...] = ()
    flags: tuple[str, ...] = ()


def read_verdict(text: str, *, question: str = "") -> Judgement:
    """Turn a judge's reply into a judgement.

    An approval that lists an issue of severity 5 is a rejection.  A rejection without feedback gets it from its
    issues; without either it stands, with a general sentence as its feedback.  A flag tells of all but the feedback
    made of issues.

    Args:
        text: The reply.
        question: What the user asked; decides the language of the general sentence.

    Raises:
        ModelBehaviorError: There is no verdict that can be read; the message says what is missing.
    """
    said = read_verdict_fields(text, question=question)
    if said.verdict is None:
        reason = " ".join(said.flags) or "It says neither yes nor no."
        raise ModelBehaviorError(
            f"The judge's reply has no readable verdict. {reason} "
            f'Expected one JSON object with "passed": true or false, got {text.strip()[:200]!r}.'
        )
    passed, feedback, flags = said.verdict, said.feedback, list(said.flags)
    if passed and any(issue.severity >= CRITICAL for issue in said.issues):
        passed = False
        flags.append("The judge approved a draft with a critical issue, so it was read as a rejection.")
    if passed and any(forbids(issue.description) for issue in said.issues):
        passed = False
        flags.append(_CONTRADICTION)
    if not passed and feedback is None:
        feedback = issues_text(said.issues) or None
    if not passed and feedback is None:
        feedback = generic_feedback(question)
        flags.append("The judge rejected the draft without saying why.")
    return Judgement(passed, feedback, said.score, said.confidence, said.issues, flags=tuple(flags))


def issues_text(issues: Iterable[Issue]) -> str:
    """The issues as lines, the worst first: ``- category: description ("snippet") -> suggestion``."""
    return "\n".join(_issue_line(issue) for issue in sorted(issues, key=lambda issue: -issue.severity))


def _issue_line(issue: Issue) -> str:
    said = issue.description  # a part that only repeats it is left out
    where = f"{issue.category}: " if issue.category not in ("", said) else ""
    snippet = f' ("{issue.snippet}")' if issue.snippet not in ("", said) else ""
    mend = f" -> {issue.suggestion}" if issue.suggestion not in ("", said) else ""
    return f"- {where}{said}{snippet}{mend}"


def read_verdict_fields(text: str, *, question: str = "") -> Verdict:
    """Read what a judge's reply says, with None for what it does not say.  Never raises.

    Contradictions are resolved as in :func:`read_verdict`; no other rule is applied, so an approval with a critical
    issue is still an approval here.

    Args:
        text: The reply.
        question: What the user asked; decides the language of what an issue without words gets.
    """
    if len(text) > MAX_CHARS:
        return Verdict(flags=(f"It has {len(text)} characters, more than {MAX_CHARS}.",))
    if repeats_data(text):
        return Verdict(flags=("It repeats what it was to judge.",))
    reply = take_apart(text)
    flags: dict[str, None] = {}
    deciding = [each for each in reply.objects if _decides(each[1])]
    verdict = _of_objects(reply, deciding, flags) if deciding else _of_prose(reply, flags)
    known = [each for each in reply.objects if is_known(each[1]) or _decides(each[1])]
    own = [each for each in known if stands_alone(reply.text, each[0])]
    return _gathered(verdict, reply, own, flags, question)


def _decides(members: Members) -> bool:
    return any(
        key in YES_NO
        or key in VERDICTS
        or _speaks_against(key, value)
        or (key in MAYBE and isinstance(value, str) and read_word(value)[0] is not None)
        for key, value in members
    )


def _of_objects(reply: Reply, deciding: list[tuple[Found, Members]], flags: dict[str, None]) -> bool | None:
    """The verdict of the judge's last object, checked against all else that was said.

    A quoted approval beside a rejection is no contradiction; a quoted rejection beside an approval may be more.
    """
    own = [each for each in deciding if stands_alone(reply.text, each[0])]
    found, members = (own or deciding)[-1]
    verdict = _said(members, flags)
    if verdict is None:
        flags[f"Its verdict {_shown(members)} is neither yes nor no."] = None
        return None
    heard = deciding if verdict else own
    others = [*(each for _, each in heard if each is not members), *(Members([line]) for line in reply.lines)]
    refused = verdict and refuses(reply.text[found.end :])
    if refused or any(_said(each, {}) is (not verdict) for each in others):
        flags[_CONTRADICTION] = None
        return False
    if verdict and (problem := _doubt(reply, found)):
        flags[problem] = None
        return None
    return verdict


def _doubt(reply: Reply, found: Found) -> str | None:
    """Why an approval in this object cannot be taken for the judge's last word, or None."""
    if not found.sure or reply.damage > found.start:
        return "A JSON object in it is cut off or damaged."
    if not stands_alone(reply.text, found):
        return "Its JSON object stands in the middle of a sentence, like a quotation."
    if not is_announced(reply.text, found):
        return "What comes before its JSON object does not say that it is the judge's own verdict."
    if has_second_thoughts(reply.text[found.end :]):
        return _SECOND_THOUGHTS
    return None


def _of_prose(reply: Reply, flags: dict[str, None]) -> bool | None:
    """The verdict of the lines that are nothing but one."""
    said = [word for line in reply.lines if (word := _said(Members([line]), flags)) is not None]
    if reply.damage >= 0:
        flags["A JSON object in it is cut off or damaged."] = None
        return None
    if not said:
        return None
    if any(said) and not all(said):
        flags[_CONTRADICTION] = None
    elif all(said) and has_reservations("\n".join(line for key, line in reply.lines if key == REST)):
        flags["The judge approved with reservations, so it was read as a rejection."] = None
        return False
    elif all(said):
        behind = _behind_verdict(reply.lines)
        if has_second_thoughts(behind) or is_quoted_behind(behind):
            flags[_SECOND_THOUGHTS] = None
            return None
    return all(said)


def _behind_verdict(lines: Members) -> str:
    behind = takewhile(lambda line: line[0] == REST, reversed(lines))
    return "\n".join(words for _, words in reversed(list(behind)))


def _said(members: Members, flags: dict[str, None]) -> bool | None:
    """What one object says.  All its keys must agree; a rejection among them counts."""
    said: list[bool] = []
    unread = refused = False
    for key, value in members:
        if _speaks_against(key, value):
            said.append(False)
        elif key in _REASON_KEYS and isinstance(value, str) and contradicts(value):
            refused = True
        elif key in YES_NO or key in VERDICTS or (key in MAYBE and isinstance(value, str)):
            word, flag = _yes_or_no(value)
            if word is not None:
                said.append(word)
            elif key not in MAYBE and value is not None:
                unread = True
            if flag is not None:
                flags[flag] = None
    if not said or (unread and all(said)):
        return None
    if any(said) and (refused or not all(said)):
        flags[_CONTRADICTION] = None
        return False
    return all(said)


def _speaks_against(key: str, value: Any) -> bool:
    """Whether a member such as ``"must_fix"`` is true, a number above 0, or names anything."""
    if key not in AGAINST or isinstance(value, (bool, int, float)):
        return key in AGAINST and value > 0
    return re.match(_NOTHING, clean(value)) is None


def _yes_or_no(value: Any) -> tuple[bool | None, str | None]:
    if isinstance(value, bool):
        return value, None
    if isinstance(value, list) and not isinstance(value, Members) and len(value) == 1:
        return _yes_or_no(value[0])
    return read_word(value) if isinstance(value, str) else (None, None)


def _shown(members: Members) -> str:
    return repr(next(value for key, value in members if key in YES_NO or key in VERDICTS))[:80]


def _gathered(
    verdict: bool | None, reply: Reply, found: list[tuple[Found, Members]], flags: dict[str, None], question: str
) -> Verdict:
    """The fields, out of the judge's own objects and its prose.

    Numbers may approve by themselves, so they are taken from announced objects only.
    """
    own = [members for _, members in found]
    given = _given(_deciding(verdict, own), reply)
    sure = _given(_deciding(verdict, [members for each, members in found if is_announced(reply.text, each)]), reply)
    issues, issue_flags = read_issues(_first(given, ISSUES), question=question)
    flags |= dict.fromkeys(issue_flags)
    score = _share_of(SCORES, "score", sure, own, flags)
    confidence = _share_of(CONFIDENCES, "confidence", sure, own, flags)
    feedback = [words for key in FEEDBACKS if (words := clean(given.get(key)))]
    feedback = feedback or [words for key in REASONS if (words := clean(given.get(key)))][:1]
    feedback = feedback or [clean(value) for key, value in given.items() if _speaks_against(key, value)]
    if not reply.objects:
        feedback += [line for key, line in reply.lines if key == REST]
    return Verdict(verdict, confidence, score, "\n".join(dict.fromkeys(feedback)) or None, issues, tuple(flags))


def _given(members: Members, reply: Reply) -> dict[str, Any]:
    """Of a key that is given twice the first, and an object before prose."""
    return dict(reversed([*members, *reply.lines]))


def _deciding(verdict: bool | None, own: list[Members]) -> Members:
    """The last object with the verdict that counts; without one the last with any verdict, else the last."""
    deciding = [each for each in own if _decides(each)]
    agreeing = [each for each in deciding if _said(each, {}) is verdict]
    return next(reversed(agreeing or deciding or own), Members())


def _share_of(
    keys: Iterable[str], name: str, given: dict[str, Any], own: list[Members], flags: dict[str, None]
) -> float | None:
    """A score or confidence; None, with a flag, where the judge contradicted itself."""
    share, flag = read_share(_first(given, keys), name)
    if flag is not None:
        flags[flag] = None
    if share is None:
        return None
    shares = {read_share(value, name)[0] for each in own for value in _values(each, keys)} - {None}
    if _CONTRADICTION not in flags and len(shares) < 2:
        return share
    flags[f"The judge contradicted itself, so its {name} was dropped."] = None
    return None


def _values(members: Members, keys: Iterable[str]) -> list[Any]:
    """What *members* give under the first of *keys* that they have: more than one where it is given twice."""
    held = (found for key in keys if (found := [value for name, value in members if name == key and value is not None]))
    return next(held, [])


def _first(given: dict[str, Any], keys: Iterable[str]) -> Any:
    return next((given[key] for key in keys if given.get(key) is not None), None)
