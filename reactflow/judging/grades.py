"""What a judge's numbers and lists mean: scores, severities, single issues.

Each reader returns the value and, where it was odd, one short sentence for the judgement's flags.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from reactflow.judging.loose_json import Members
from reactflow.judging.verdict_words import vocabulary
from reactflow.phrases import phrases
from reactflow.result import Issue

MAX_ISSUES = 50
"""Of more issues than this the mildest are left out, with a flag."""

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,4})?"
_FRACTION = r"(?i)(\d+(?:\.\d+)?)\s*(?:/|out of)\s*(\d+)"
_BLANKS = frozenset(("", "null", "none", "n/a", "na", "nil", "无", "無", "没有", "-"))

_SEVERITIES = {
    word: severity
    for severity, names in {
        5: "critical blocker fatal severe high highest 致命 严重 嚴重 高",
        4: "major significant serious 重要 较高",
        3: "medium moderate normal med mid 中 中等 一般",
        2: "minor 轻微 較低 较低",
        1: "low lowest trivial info informational nit cosmetic suggestion 低 微小 建议",
    }.items()
    for word in vocabulary(names)
}

_SEVERITY_LABEL = r"[\W_]{0,4}([^\W\d_]{1,20})\W{0,3}[:：]"  # "[critical]: the sum is wrong"

_ISSUE_KEYS = {
    name: vocabulary(keys)
    for name, keys in {
        "description": "description issue problem message detail details comment explanation reason 描述 问题 说明",
        "suggestion": "suggestion suggestions fix recommendation suggested_fix 建议 修改建议",
        "snippet": "snippet quote excerpt original text span 原文 片段",
        "category": "category field section type kind location path rule criterion name title 类别 字段 位置",
        "severity": "severity level priority importance 严重程度 严重性 级别",
    }.items()
}


def clean(value: Any) -> str:
    """*value* as words: a list as lines, an object as ``key: value`` lines; "none" and its like are empty.

    Lone surrogates become U+FFFD, because no server and no store takes them.
    """
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, Members):
        return "\n".join(f"{key}: {words}" for key, each in value if (words := clean(each)))
    if isinstance(value, list):
        lines = [words for each in value if (words := clean(each))]
        return lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines)
    text = str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
    return "" if text.casefold().rstrip(".。") in _BLANKS else text


def read_share(value: Any, name: str) -> tuple[float | None, str | None]:
    """A score or confidence as a number from 0 to 1.

    ``n%``, ``n/m`` and whole numbers from 2 to 100 are taken for what they mean.  Anything else above 1, a negative
    number, NaN, an infinity and a bool are no score.
    """
    if value is None or (isinstance(value, str) and value.strip().casefold() in _BLANKS):
        return None, None
    share = None if isinstance(value, bool) else _share(value)
    if share is None or not 0.0 <= share <= 1.0:
        return None, f"The {name} {_shown(value)} is not between 0 and 1, so it was dropped."
    return share + 0.0, None  # -0.0 is 0.0


def _share(value: Any) -> float | None:
    if isinstance(value, (int, float)):
        if not 0 <= value <= 100:  # NaN is not either
            return None
        return value / 100 if value >= 2 and value == int(value) else float(value)
    if not isinstance(value, str):
        return None
    text = unicodedata.normalize("NFKC", value).strip().casefold()
    if fraction := re.fullmatch(_FRACTION, text):
        part, whole = float(fraction[1]), float(fraction[2])
        return part / whole if whole else None
    percent = text.endswith(("%", "percent"))
    number_text = text.removesuffix("%").removesuffix("percent").strip()
    if not re.fullmatch(_NUMBER, number_text):
        return None
    return float(number_text) / 100 if percent else _share(float(number_text))


def read_severity(value: Any) -> tuple[int, str | None]:
    """A severity from 1 to 5; high, medium and low are 5, 3 and 1.  What cannot be read is 3, with a flag."""
    if value is None or value == "":
        return 3, None
    text = unicodedata.normalize("NFKC", str(value)).casefold()
    number = None if isinstance(value, bool) else re.search(_NUMBER, text)
    if number is not None and isfinite(float(number.group())):
        exact = float(number.group())
        severity = round(min(5.0, max(1.0, exact)))
        return severity, None if severity == exact else f"The severity {_shown(value)} was read as {severity}."
    words = re.findall(r"[^\W\d_]+", text)
    known = next((_SEVERITIES[word] for word in words if word in _SEVERITIES), None)
    return (known, None) if known else (3, f"The severity {_shown(value)} is unknown, so it was read as 3.")


def read_issues(value: Any, *, question: str = "") -> tuple[tuple[Issue, ...], tuple[str, ...]]:
    """The single problems, out of a list of words or objects, one of them alone, or an object of them by name.

    An issue without words is an issue all the same; *question* decides the language of the words it gets.  Blank
    words in a list ("none", null) are none.
    """
    unsaid = phrases(question).no_description
    read = [_issue(item, unsaid) for item in _items(value)]
    kept = worst([(issue, flag) for issue, flag in read if issue is not None])
    flags = dict.fromkeys(flag for _, flag in kept if flag is not None)
    if sum(issue is not None for issue, _ in read) > MAX_ISSUES:
        flags[f"Only the {MAX_ISSUES} worst issues were read."] = None
    return tuple(issue for issue, _ in kept), tuple(flags)


def worst(issues: Sequence[tuple[Issue, str | None]]) -> list[tuple[Issue, str | None]]:
    """The :data:`MAX_ISSUES` worst of *issues*, in the order they have."""
    ranked = sorted(range(len(issues)), key=lambda at: -issues[at][0].severity)
    return [issues[at] for at in sorted(ranked[:MAX_ISSUES])]


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, Members):
        if any(snake(key) in _ISSUE_KEYS["description"] + _ISSUE_KEYS["suggestion"] for key, _ in value):
            yield value
        else:
            for key, each in value:
                yield Members([("category", key), *(each if isinstance(each, Members) else [("description", each)])])
    elif isinstance(value, list):
        yield from value
    elif value is not False:  # there are none
        yield value


def _issue(item: Any, unsaid: str) -> tuple[Issue | None, str | None]:
    if isinstance(item, bool):
        return Issue(unsaid), f"An issue is only {str(item).lower()}, without words."
    if not isinstance(item, Members):
        words = clean(item)
        label = re.match(_SEVERITY_LABEL, words.casefold())
        severity = _SEVERITIES.get(label[1], 3) if label else 3
        return (Issue(words, severity) if words else None), None
    given = {snake(key): each for key, each in reversed(item)}
    parts = {
        name: next((words for key in keys if (words := clean(given.get(key)))), "")
        for name, keys in _ISSUE_KEYS.items()
        if name != "severity"
    }
    described = parts["description"] or parts["suggestion"] or parts["snippet"] or parts["category"]
    parts["description"] = described or _other_words(item) or unsaid
    rating = next((given[key] for key in _ISSUE_KEYS["severity"] if key in given), None)
    severity, flag = read_severity(rating)
    return Issue(severity=severity, **parts), flag if parts["description"] != unsaid else "An issue has no words."


def _other_words(item: Members) -> str:
    """What an issue says under keys of its own."""
    return clean(Members(each for each in item if snake(each[0]) not in _ISSUE_KEYS["severity"]))


def snake(key: str) -> str:
    """A key as ``lower_case_words``, without markdown around it."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unicodedata.normalize("NFKC", key).strip(" *_`#\"'"))
    return re.sub(r"[\s\-_]+", "_", words).casefold()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
