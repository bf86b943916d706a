"""What a judge's reply consists of: the JSON objects in it and the prose around them, without the thinking before."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from reactflow.errors import ModelBehaviorError
from reactflow.judging.attribution import is_quoted_before, is_quoted_behind, may_approve
from reactflow.judging.grades import snake
from reactflow.judging.loose_json import Found, Members, Scan, find_objects
from reactflow.judging.verdict_words import is_undone, read_word, vocabulary

MAX_CHARS = 100_000
"""A longer reply is not read."""

YES_NO = frozenset(
    vocabulary(
        "passed pass passes approved approve is_approved is_passed accepted accept is_accepted acceptable "
        "通过 通過 是否通过 是否通過 合格 是否合格"
    )
)
VERDICTS = frozenset(
    vocabulary("verdict final_verdict decision final_decision 结论 結論 最终结论 裁决 判定 评审结果 审核结果")
)
MAYBE = frozenset(
    vocabulary(
        "status result outcome judgement judgment conclusion recommendation evaluation review assessment "
        "结果 决定 评审 最终评审 判断 审核"
    )
)
"""Keys that hold a verdict only where their value is one."""
AGAINST = frozenset(
    vocabulary(
        "rejected failed needs_revision needs_changes requires_changes requires_revision revision_required "
        "changes_required required_changes required_fixes must_fix blocking blocked blockers blocking_issues "
        "critical_issues 需要修改 需修改 必须修改 严重问题"
    )
)
"""Keys that speak against the draft where they are true, or list something."""
SCORES = vocabulary("overall_score score overall quality_score quality rating total_score 总分 评分 得分 分数")
CONFIDENCES = vocabulary("confidence confidence_score confidence_level certainty 置信度 信心")
FEEDBACKS = vocabulary(
    "feedback suggestions suggestion improvements recommendations 反馈 建议 改进建议 修改建议 改进意见"
)
REASONS = vocabulary("comments comment reason reasons explanation rationale critique summary 意见 评语 理由 原因 说明")
ISSUES = vocabulary("issues problems errors violations findings defects 问题 问题列表")
REST = "rest"
"""The key of prose that is neither a verdict nor labelled."""

_KNOWN = frozenset((*YES_NO, *VERDICTS, *AGAINST, *SCORES, *CONFIDENCES, *FEEDBACKS, *REASONS, *ISSUES))
_SHARES = frozenset((*SCORES, *CONFIDENCES))
_WRAPPERS = VERDICTS | MAYBE | frozenset(vocabulary("critique judge final"))
_ENVELOPES = frozenset(vocabulary("response output data answer reply"))
"""Keys of the judge's whole reply where nothing known stands beside them; else the draft's, which it repeats."""

_THINKING = re.compile(r"<(/?)(?:\w+:)?(?:think|thinking|thought|thoughts|reasoning)>", re.IGNORECASE)
_BEFORE = r"(?i)(?:[:：=]|<[^<>\n]{1,40}>|^\s*(?:[-*•]|\d{1,2}[.)])?)[\s`~*]*(?:json[c5]?)?\s*$"
_AFTER_SENTENCE = r"[.!?。！？]['\"”’)）]*\s*$"
_FENCE_LINE = r"(?m)^[>\s]{0,8}--- [^\n]{0,200}?[0-9a-f]{16} ---[ \t]*$"
_LOOK_BEHIND = 200  # characters before an object; the rest of a long line is not searched again for every object in it
_QUOTED_LINE = re.compile(rf"\s{{0,{_LOOK_BEHIND}}}+[>\s]")
_LABELLED = r"(?i)(?P<key>[^\W\d][\w \-]{0,40}?)\s*(?:[:：=|]|\s[-–—]\s|\bis\b(?=\s))\s*(?P<value>\S.*)"
_LABEL = r"(?P<key>[^\W\d][\w \-]{0,40})[:：]"
_MID_LINE = (
    r"(?i)\b(?:verdict|decision)\s*(?:[:：=]|\bis\b[:：]?)\s*(?P<value>[^.;。；\n]+)"
    r"|(?:结论|結論|判定|裁决)\s*[:：]?\s*(?P<zh>[^.;。；\n]+)"
)
_MARKUP = r"[*`]+|__+"
_LEADING = r"^[\s#|\-•]+(?=\S)|^\s*\d{1,2}[.)]\s+|\|\s*$"


class Reply(NamedTuple):
    """One reply, taken apart by :func:`take_apart`.

    Args:
        text: Without the thinking.
        objects: Each object in it with its members: plain keys, and those under ``result`` and the like among them.
        damage: Where the last damaged object begins, or -1.
        lines: The prose: bare verdicts under ``verdict``, ``key: value`` lines under their key, others under ``rest``.
    """

    text: str
    objects: tuple[tuple[Found, Members], ...]
    damage: int
    lines: Members


def take_apart(text: str) -> Reply:
    """Find the objects and the prose of a judge's reply."""
    text, scan = _after_thinking(_unquoted(text))
    objects = tuple((found, _flat(found.members)) for found in scan.objects)
    return Reply(text, objects, scan.damage, _prose(_without(text, scan.objects)))


def check_length(text: str) -> None:
    """Make sure that a reply is short enough to be read.

    Raises:
        ModelBehaviorError: It has more than :data:`MAX_CHARS` characters.
    """
    if len(text) > MAX_CHARS:
        raise ModelBehaviorError(f"The reply has {len(text)} characters, more than {MAX_CHARS}.")


def repeats_data(text: str) -> bool:
    """Whether a reply holds a line that fences data in a prompt: then it repeats what it was to judge."""
    return re.search(_FENCE_LINE, text) is not None


def strip_thinking(text: str) -> str:
    """Drop the thinking that a model put before its answer: in closed tags, or up to a closing tag on its own line."""
    rest = text.lstrip()
    while (opened := _THINKING.match(rest)) and not opened[1]:
        closed = next((tag for tag in _THINKING.finditer(rest, opened.end()) if tag[1]), None)
        if closed is None:
            return text
        text = rest = rest[closed.end() :].lstrip()
    tags = list(_THINKING.finditer(text))
    if len(tags) == 1 and tags[0][1] and text[tags[0].end() :].startswith("\n"):
        return text[tags[0].end() :].lstrip()
    return text


def stands_alone(text: str, found: Found) -> bool:
    """Whether an object is the judge's own word: at the start of its line, after a colon, or last and after a sentence.

    Nor may the sentence that leads up to it, or the one right behind it, say that it is somebody else's.
    """
    start = text.rfind("\n", 0, found.start) + 1
    near = max(start, found.start - _LOOK_BEHIND)
    line = "…" * (near > start) + text[near : found.start]  # what is cut off must not look like the start of the line
    closing = re.search(_AFTER_SENTENCE, line) if not text[found.end :].strip() else None
    if (re.search(_BEFORE, line) is None and closing is None) or _QUOTED_LINE.match(text, start, found.start):
        return False
    before, after = text[max(0, near - _LOOK_BEHIND) : found.start], text[found.end : found.end + _LOOK_BEHIND]
    before = before[: closing.start() - len(line)] if closing else before  # the sentence that ended leads up to it
    return not is_quoted_before(before) and not is_quoted_behind(after)


def is_announced(text: str, found: Found) -> bool:
    """Whether an object that stands alone leaves no doubt that it is the judge's, as an approval must."""
    return may_approve(text[max(0, found.start - 2 * _LOOK_BEHIND) : found.start])


def is_known(members: Members) -> bool:
    """Whether any of the keys is one that a judge uses."""
    return any(key in _KNOWN for key, _ in members)


def _unquoted(text: str) -> str:
    """Undo what some servers do: the whole reply as one JSON string, once or twice, or with its quotes escaped."""
    text = text.strip("\ufeff\u200b \t\r\n")
    for _ in range(2):
        try:
            value = json.loads(text) if text.startswith('"') else None
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, str):
            break
        text = value.strip()
    return text.replace('\\"', '"') if text.startswith('{\\"') and text.endswith("}") else text


def _after_thinking(text: str) -> tuple[str, Scan]:
    """The reply without what was thought before it.  A tag inside a JSON string is a word like any other.

    Where the tag is never closed, the reply is what the text ends with, if that is an object.
    """
    scan = find_objects(text)
    exact = [found for found in scan.objects if found.exact]
    tags = [tag for tag in _THINKING.finditer(text) if not _inside(exact, tag.start())]
    closing = [tag for tag in tags if tag[1]]
    if closing:
        text = text[closing[-1].end() :].strip()
        return text, find_objects(text)
    if not tags or tags[0].start():
        return text, scan
    last = scan.objects[-1] if scan.objects else None
    if last is None or not last.sure or text[last.end :].strip("` \t\r\n") or not stands_alone(text, last):
        return "", Scan(())
    text = text[last.start :]
    return text, find_objects(text)


def _inside(objects: Sequence[Found], at: int) -> bool:
    """Whether a place is inside one of *objects*, which are in the order of the text."""
    before = bisect_left(objects, at, key=lambda found: found.start)
    return before > 0 and at < objects[before - 1].end


def _flat(members: Members, depth: int = 3) -> Members:
    named = [(snake(key), value) for key, value in members]
    wrappers = _WRAPPERS if is_known(Members(named)) else _WRAPPERS | _ENVELOPES
    flat = Members()
    for name, value in named:
        inner = _inner(value) if name in wrappers and depth else None
        if inner is None:
            flat.append((name, value))
        else:
            flat.extend(_flat(inner, depth - 1))
    return flat


def _inner(value: Any) -> Members | None:
    """The object that *value* is, or that it holds as JSON in a string."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        scan = find_objects(value.strip())
        whole = len(scan.objects) == 1 and scan.objects[0].end == len(value.strip())
        return scan.objects[0].members if whole else None
    return value if isinstance(value, Members) else None


def _without(text: str, objects: Iterable[Found]) -> str:
    """The prose: *text* with a line break in the place of each object."""
    pieces: list[str] = []
    at = 0
    for found in objects:
        if found.start >= at:  # the elements of one array share its place
            pieces.append(text[at : found.start])
            at = found.end
    return "\n".join((*pieces, text[at:]))


def _prose(prose: str) -> Members:
    members = Members()
    before = ""
    quoted = began = False  # a line has said that what follows is a quotation, which ends with its paragraph
    for raw in prose.splitlines():
        line = re.sub(_LEADING, "", re.sub(_MARKUP, "", raw)).strip()
        quoted = quoted and not (began and not line)
        if line and not raw.lstrip().startswith((">", "```", "~~~")):
            said = _line(line)
            approval = next((words for key, words in said if _may_approve(key, words)), None)
            if approval is not None:
                foreign = quoted or is_quoted_before(line[: line.find(approval)]) or is_quoted_before(before)
                doubted = said[0][0] not in _SHARES and (is_undone(line) or not may_approve(before))
                said = [(REST, line)] if foreign or doubted else said
            members.extend(said)
            began = quoted
            if line.endswith((":", "：")) and is_quoted_before(line):
                quoted, began = True, False
        before = f"{before[-2 * _LOOK_BEHIND :]}{raw}\n"
    return members


def _may_approve(key: str, words: str) -> bool:
    return key in _SHARES or (key != REST and read_word(words)[0] is True)


def _line(line: str) -> list[tuple[str, str]]:
    if read_word(line, in_prose=True)[0] is not None:
        return [("verdict", line)]
    if (label := re.fullmatch(_LABEL, line)) and _key(label["key"]):
        return []
    if labelled := re.fullmatch(_LABELLED, line):
        key = _key(labelled["key"])
        if key in _KNOWN or (key and read_word(labelled["value"])[0] is not None):
            return [(key, labelled["value"])]
    return [*(("verdict", words) for words in _verdicts_within(line)), (REST, line)]


def _verdicts_within(line: str) -> Iterator[str]:
    """The verdicts that stand in a sentence; of approvals those that it announces as the judge's own."""
    for match in re.finditer(_MID_LINE, line):
        words = match["value"] or match["zh"]
        passes = read_word(words)[0]
        if passes is False or (passes and may_approve(line[: match.end() - len(words)])):
            yield words


def _key(words: str) -> str:
    """The key that *words* name ("My final verdict"), or nothing."""
    key = snake(words)
    while key not in _KNOWN and key not in MAYBE and "_" in key:
        first, _, key = key.partition("_")
        if first not in ("my", "the", "final", "overall", "our"):
            return ""
    return key if key in _KNOWN or key in MAYBE else ""
