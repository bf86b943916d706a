"""The words that pass and fail a draft, in English and Chinese."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable


def vocabulary(text: str) -> tuple[str, ...]:
    """The words of *text*, split at white space: how the vocabularies here are written down."""
    return tuple(text.split())


_PASSING = frozenset(
    vocabulary(
        "approved approve approval pass passed passes accept accepted acceptable true yes lgtm "
        "通过 通過 已通过 已通過 可通过 审核通过 评审通过 审查通过 合格 批准 同意 是"
    )
)
_FAILING = frozenset(
    vocabulary(
        "reject rejected rejection fail failed fails failing false no disapproved disapprove unapproved declined "
        "denied unacceptable unsatisfactory insufficient incomplete revise "
        "不通过 不通過 未通过 未通過 没有通过 没通过 不予通过 不合格 不批准 未批准 不同意 驳回 駁回 拒绝 拒絕 打回 否 "
        "需要修改 需修改 需要改进 有条件通过 修改后通过"
    )
) | frozenset(
    f"{before} {after}"
    for before, afters in {
        "not": "approved approve pass passed passing accepted acceptable ready yet",
        "not yet": "approved passed accepted acceptable ready",
        "cannot be": "approved accepted passed",
        "does not": "pass meet",
        "did not": "pass",
        "doesn't": "pass",
        "required": "changes change revision",
        "requires": "changes revision",
        "request": "changes",
        "requested": "changes",
        "changes": "required requested needed",
        "revision": "required needed",
        "revisions": "required needed",
        "needs": "changes revision revisions work improvement",
        "need": "changes revision improvement",
        "must": "revise",
        "conditionally": "approved",
        "conditional": "approval pass",
        "send": "back",
    }.items()
    for after in vocabulary(afters)
)
_SHORT = frozenset(vocabulary("no false 否 revise fail incomplete insufficient"))
"""Words that begin many harmless sentences; they need a punctuation mark behind them."""

_ANSWERS = frozenset(vocabulary("true yes 是 同意 false no 否"))
"""Words that are a verdict only where a key asks for one."""

_RESERVATION = r"if|but|once|provided|unless|except|however|assuming|although|though|as long as|apart from|until"
_RESERVATIONS = rf"(?i)\b(?:{_RESERVATION})\b|但|不过|如果|若|前提|只要|除非|除了|假如|然而"
_CONDITION = (
    rf"(?i)\b(?:{_RESERVATION}|after|when|pending|subject|only|with|conditional)\b"
    "|但|不过|如果|若|前提|只要|除非|除了|假如|然而|待|需|修改"
)
_MUST_NOT = r"(?i)\b(?:must|should|has to) (?:be rejected|not (?:pass|be approved))\b|必须驳回|不应通过|不能通过"
_SUBJECT = r"(?:(?:the|this|your) )?(?:draft |answer |text |reply |it )?|(?:该|此|这个|这份)?(?:草稿|回答|答案|答复)?"
_REFUSAL = (
    r"\b(?:not (?:yet )?(?:be )?(?:approved?|accepted|acceptable|pass(?:ed)?)|disapproved?|unacceptable"
    r"|(?:must|should|has to|is|was) (?:be )?(?:reject(?:ed)?|rewritten|redone)"
    r"|required[ _]changes|does(?: not|n't) pass|needs? revision)\b"
    r"|不通过|不通過|未通过|未通過|不予通过|不合格|驳回|駁回|拒绝通过|必须重写"
)
_HOWEVER = (
    r"(?i)\W{0,8}(?:but|however|because|which|except|although|though|unless|provided|as long as|但|不过|然而|除非|前提)"
)
_SECOND_THOUGHT = (
    r"(?i)\A\W{0,8}no[.,;:!]|\A\s{0,8}(?:[?？]|吗)|\b(?:wait|hold on|take back|schema|actually(?=,)|sorry|apolog\w+"
    r"|scratch|ignore|disregard|on reflection|overlooked|update|disagree|withdraw|rework|redone|reject\w*(?! nothing)"
    r"|(?<!not )(?<!n't )fail(?:s|ed)?|i meant|that said|(?:must|should) not|previous judge|first impression|stand by"
    r"|what i['’]d)\b|\b(?:draft|answer|(?<!in )it|this|that) (?:is|was) (?:wrong|false)\b"
    r"|抱歉|忽略|是错|有误|仅为|并非|不应|不能通过|第一印象|重新考虑"
)
_UNDONE = r"\s*(?:[!！]|~~(?!~)|//|[<‹]!--)"
"""Before a word: it is negated, struck out, or a comment."""
_RETRACTION = (
    r"\b(?:(?:take|took) (?:that|this|it) back|not my (?:verdict|decision|judge?ment)|no,? wait|correction"
    r"|that (?:is|was) wrong|would be wrong|disregard (?:that|this|it))\b|更正|收回|作废|撤回"
)
_POSITIVE_MARKS, _NEGATIVE_MARKS = "✅✔☑✓👍🎉", "❌✗✘❎🚫👎⛔"
_EDGES = f" \t.!。！*_`~#>|\"'“”‘’「」『』【】[]()（）<>\ufe0f{_POSITIVE_MARKS}{_NEGATIVE_MARKS}"
_WORD_BREAK = r"[\s_\-‐-―/|]+"
_NO_CHANGE = (
    r"(?:无需|不需要?|不必|没有|未)[^，。]{0,8}(?:修改|改动|意见|问题|错误)"
    r"|\bno (?:further )?(?:changes?|revisions?|edits?|issues?|errors?|problems?)"
    r"(?: (?:are |is |were )?(?:needed|required|necessary|found))?(?!\w)"
)
_NEW_SENTENCE = r"[.!。！]\s?[^\W_]"
_NEGATION = (
    r"(?i)\b(?:not?|never|none|neither|cannot|false|fail\w*|reject\w*|revise\w*|den(?:y|ied))\b|n['’]t\b"
    r"|不|未|没|非|否|无"
)
_PAUSE = r"\s?[.,:;，。：；(（]"


def read_word(text: str, *, in_prose: bool = False) -> tuple[bool | None, str | None]:
    """What a verdict in words says.

    An approval passes only by itself.  With a condition behind it ("approved if ...") it is a rejection, because
    something is still to be changed; with any other words behind it nothing is certain.

    Args:
        text: The words, with or without case, markup and marks such as a tick.
        in_prose: The words are a line of prose, which may be about something else: more is asked of them.

    Returns:
        True, False, or None where it says neither; and a sentence for the flags where the reading was a decision.
    """
    if is_undone(text):
        return None, None
    word = " ".join(re.split(_WORD_BREAK, unicodedata.normalize("NFKC", text).casefold().strip(_EDGES))).strip(_EDGES)
    word = re.sub(_NO_CHANGE, "", word).strip(f"{_EDGES},，;；。")
    if in_prose and _behind(word, _ANSWERS, r"\W|$") is not None:
        return None, None
    if word in _PASSING:
        return (None if any(mark in text for mark in _NEGATIVE_MARKS) else True), None
    if word in _FAILING:
        return False, None
    pause = _PAUSE if in_prose else rf"\s|{_PAUSE}"
    if _behind(word, _FAILING, _PAUSE) is not None or _behind(word, _FAILING - _SHORT, pause) is not None:
        return False, None
    tail = _behind(word, _PASSING, r"(?!\w)|(?=[\u3400-\u9fff])")
    if tail is not None and re.match(_NEW_SENTENCE, tail) and not has_doubts(tail):
        return True, None
    if tail is not None and not _offers_choice(tail):
        conditional = re.match(_CONDITION, tail.lstrip(" ,.:;，。：；(（")) if in_prose else re.search(_CONDITION, tail)
        if conditional:
            return False, f"The verdict {text.strip()[:80]!r} is conditional, so it was read as a rejection."
    return None, None


def is_undone(text: str) -> bool:
    """Whether *text* is struck out, negated or a comment."""
    return re.match(_UNDONE, text) is not None


def _behind(word: str, known: Iterable[str], after: str) -> str | None:
    """What stands behind the longest of *known* that *word* begins with, if *after* matches there."""
    start = max((each for each in known if word.startswith(each)), key=len, default=None)
    if start is None or not re.match(after, word[len(start) :]):
        return None
    return word[len(start) :]


def _offers_choice(tail: str) -> bool:
    """Whether a rejection is named as well ("approved or rejected"), so that nothing was chosen."""
    return any(re.search(rf"(?:^|\W){re.escape(each)}(?:\W|$)", tail) for each in _FAILING)


def has_reservations(text: str) -> bool:
    """Whether *text*, said beside an approval, takes it back or ties it to something."""
    return re.search(_RESERVATIONS, text) is not None or refuses(text)


def has_doubts(text: str) -> bool:
    """Whether *text*, the reason that follows an approval, says anything but yes."""
    return re.search(f"{_CONDITION}|{_NEGATION[4:]}", text) is not None or has_second_thoughts(text) or refuses(text)


def has_second_thoughts(text: str) -> bool:
    """Whether *text*, behind an approval, begins with a reservation or may take the approval back."""
    return re.match(_HOWEVER, text) is not None or re.search(_SECOND_THOUGHT, text) is not None


def contradicts(reason: str) -> bool:
    """Whether *reason*, which stands beside an approval, refuses it: "Rejected: ...", "The draft is wrong"."""
    refusal = (
        rf"(?i)reject (?:this|the|it)\b|(?:{_SUBJECT})(?:is|was) (?:wrong|incorrect|unusable)\b"
        rf"|(?:{_SUBJECT})(?:{_REFUSAL})\s*(?:[.,:;!，。：；！]|\Z)"
    )
    return read_word(reason, in_prose=True)[0] is False or re.match(refusal, reason) is not None or forbids(reason)


def forbids(text: str) -> bool:
    """Whether *text* says that the draft must not pass; an issue may otherwise be a trifle, whatever its first word."""
    return re.search(_MUST_NOT, text) is not None


def refuses(text: str) -> bool:
    """Whether *text* says in so many words that the draft may not pass, or takes back that it may."""
    return re.search(rf"(?i){_REFUSAL}|{_RETRACTION}", text) is not None
