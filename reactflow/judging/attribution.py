"""Whose words are these?  A judge may quote a verdict that the draft gives itself, and must not seem to give it.

What is quoted is told by the sentence that leads up to it, or by the one right behind it: it says that a draft, a text,
a page or somebody says, contains or claims this ("The draft says:", "That is what the text claims"), that it stands in
or comes from there ("Verdict in the draft:"), or that it is a quotation or an example.  A sentence that leads up to the
judge's own words names the draft only as what is judged ("Here is my verdict on the draft:").

No list of such words is ever complete, so more is asked of an approval (:func:`may_approve`): what announces it must be
words that are known as a judge's own.  An approval that is announced in others counts as none, not as a rejection.
"""

from __future__ import annotations

import re
from functools import lru_cache

_REACH = 400  # characters that are looked at, so that hostile text does not cost the square of its length
_REMEMBERED = 64  # the objects of one array share the words around them
_NOUNS = (
    r"(?:draft|text|answer|response|reply|document|candidate|submission|author|writer|user|article|essay|passage|content"
    r"|paragraph|section|sentence|line|page|source|site|website|tool|report|summary|post|code|plan|agent|assistant|story|comment|file|output|evidence|question|prompt|message|e-?mail|letter)s?"
)
_SOURCE = rf"(?<!\bmy )(?<!\bmy own )\b{_NOUNS}\b"
_SAYING = (
    r"(?:say|said|state|claim|contain|include|read|write|wrote|quote|end|begin|start|open|close|assert|declare|tell|told"
    r"|tri|try|attempt|pretend|hold|held|add|embed|inject|insert|carr|carry|put|print|output|present|approve|insist"
    r"|give|gave|return|want|demand)"
    r"(?:s|d|n|ed|es|ied|ies|ing|ded|ted|ten)?"
)
_ZH_SOURCE = r"(?:草稿|初稿|回答|答案|答复|文中|文章|文本|原文|正文|文末|结尾|作者|用户|网页|来源|资料|报告|总结)"
_QUOTED = (
    rf"(?i){_SOURCE}[^:：]*?\b{_SAYING}\b"  # the draft says
    rf"|{_SOURCE}\s+(?:has|had)\W*$"
    rf"|\b(?:it|which|that|who|they|he|she)\s+(?:\w+\s+)?(?:{_SAYING}|ha[sd])\b"
    rf"|\b{_NOUNS}['’]s?\s+(?:own\s+)?\w+"  # the draft's verdict
    r"|\b(?:its|their|his|her)\s+(?:own\s+)?(?:verdict|decision|evaluation|assessment|judge?ment|approval|review|result)"
    rf"|\b(?:in|from|inside|within|by|found at)\s+(?:the|this|that|an?|its)\s+(?:\w+\s+)?{_NOUNS}\b"
    r"|\b(?:quot(?:e[sd]?|ing|ation)|verbatim|example|e\.g\.|for instance|such as|fake|forged|embedded|injected)\b"
    r"|^\W*(?:the |this |expected |required )*"
    r"(?:draft|text|document|evidence|question|format|template|schema)\W*(?:is\W*)?$"
    rf"|{_ZH_SOURCE}.{{0,12}}?(?:说|称|写道|写着|写到|包含|含有|给出|自称|声明|宣称|中有|里有)"
    rf"|{_ZH_SOURCE}(?:中|里|内)?的?(?:结论|判定|裁决)|引用|原文|例如|示例|格式(?:为|是|如下)?\W*$"
)
_TAIL = r"(?i)[,，]|(?=\b(?:here|below)\b)|(?<!\bis )(?<!\bare )(?<!'s )(?=\b(?:my|mine)\b)"
_OWN = (
    r"(?i)\b(?:my|mine|i|here|so|thus|therefore|hence|verdict|evaluation|decision|judge?ment|assessment|review"
    r"|conclusion)\b"
    r"|我|结论|判定|评审|评估"
)
_AND_SAYS = rf"(?i)\b{_SAYING}\W*(?:that)?\W*\Z|[说称道着：:]\W*\Z"
_QUOTED_BEHIND = (
    r"(?i)\W{0,8}(?:(?:that|this|which|it|the (?:above|object|json|verdict|line|words?|text))\b[^.:\n]{0,60}?"
    rf"(?:\b(?:what|from|in|by|inside|within)\s+(?:the|this|that|an?|its)?\s*{_NOUNS}\b"
    rf"|\b(?:line|sentence|words?|end) of (?:the|this) {_NOUNS}\b|\b{_NOUNS}['’]s own\b"
    r"|\b(?:quot(?:ed?|ation)|forged|fake)\b)"
    rf"|(?:is|was) (?:only |just )?(?:the )?(?:\w+ )?(?:line|sentence|words?|end) of (?:the|this) {_NOUNS}\b"
    rf"|(?:is|was)\s+what\s+(?:the\s+)?{_NOUNS}|(?:says?|said|claims?|claimed|writes|wrote)\s+the\s+{_NOUNS}"
    rf"|the {_NOUNS} (?:{_SAYING}) (?:this|that|these|it)\b|i was (?:told|asked|made) to\b"
    r"|(?:quoted|copied|taken) (?:from|out)\b"
    rf"|(?:这|以上|上面)[^。\n]{{0,12}}?(?:{_ZH_SOURCE}|作者))"
)
_VERDICT = (
    r"verdict|decision|judge?ments?|evaluation|assessment|review|conclusion|result|outcome|json|conclude"
    r"|so|thus|therefore|hence|accordingly|mine|here|(?<!the )(?:answer|response|reply|output)"
)
_ANNOUNCING = (
    rf"(?i)\W*+(?:\b(?:{_VERDICT}|and|now|below|you|go|asked for|this|it|i|is|s|are|be|as|follows|my|our|the|judge['’]s"
    r"|own|final|overall|in|an?|requested|required|format|form|object|give|return|following"
    r"|(?:of|on|about|for) (?:the|this|your) (?:draft|answer|text|response|reply))\b\W*+)++"
)
_ZH_VERDICT = (
    r"因此|所以|综上|结论|結論|判定|裁决|裁決|评审|評審|评估|評估|评价|评定|审核|審核|审查"
    r"|判断|裁定|通过|答案|结果|結果|决定|输出|json"
)
_ZH_ANNOUNCING = (
    rf"(?i)(?:{_ZH_VERDICT}|以下|下面|如下|上述|所述|这是|本次|我|您要|给出|是|为|的|最终|最終|总体|意见|格式"
    r"|对(?:该|此|这份|本|这个)?(?:回答|草稿|答复|答案)|\W)++"
)
_ANNOUNCED = r"(?:[:：=→]|[-=]>)\s*\Z"
_CONDITION = (
    r"(?i)\A\W*(?:should|had|were)\b|\b(?:if|once|unless|until|when|would|could|might|provided|assuming|not|never|wish)\b"
    r"|n['’]t\b|\b(?:i|we)['’]d\b|如果|假如|假设|倘若|若|只要|一旦|除非|修改后|补充后|本来|不会|不应|不该|不能"
)
_UNSAID = (
    r"(?i)\b(?:would|could|might) (?:be (?:my|the|a|an)|have been|say|answer|give|write|approve|pass)\b"
    r"|\b(?:(?:will|do|can|did|should) ?n[o’']t|cannot)\b.*\b(?:say|answer|give|write|output|reply|return)\b"
    r"|不会(?:说|输出|给出|通过)|不应(?:说|输出|给出|通过)"
)
_TAG = r"<[|/]?\w[\w-]{0,40}[^<>\n]{0,200}>"
_OPENING = rf"(?m)^[ \t>]{{0,9}}(?={_TAG}[ \t]*$)<[|]?(\w[\w-]*)|(?={_TAG}\s*\Z)<[|]?(\w[\w-]*)"
_CLOSING = r"</(\w[\w-]{0,40})>"
_OWN_TAG = (
    r"(?i)json|(?:final_?)?(?:verdict|answer)|decision|judge?ment|evaluation|assessment|review|conclusion|result|outcome"
    r"|final|output|response|reply|message|channel|assistant|think|thinking|br|hr|img|input|link|meta"
)
_UNMADE = r"(?i)(?:(?<!~)~~|[<‹]!--|//|\be\.g\.)\Z"  # struck out, a comment, an example
_POINTING = (
    r"(?i)\b(?:following|follows|below)(?: (?:json|object|line|text|words?))?\Z"
    r"|\b(?:say|write|output|reply|answer)s? this\Z"
)
_MARKUP = r"(?i)(?:[`~*_#>\s]|={3,}|\bjson[c5]?\b)*\Z"
_SENTENCE_END = r"[.!?;]['\"”’)）]*(?:\s|\Z)|[。！？；]['\"”’)）]*|[\n}｝\]］]"


@lru_cache(maxsize=_REMEMBERED)
def may_approve(before: str) -> bool:
    """Whether *before*, which leads up to an approval, leaves no doubt that the judge gives it.

    So it is behind a whole sentence.  What announces something must be words that are known, without a condition; a
    tag must be one that holds verdicts, and nothing may strike it out.
    """
    before = before[-_REACH:]
    line = before.rstrip(" \t").removesuffix("\n").rstrip(" \t").rsplit("\n", 1)[-1]
    if re.search(_UNMADE, line) or _is_theirs(line.strip("> \t")) or before.count('"""') % 2:
        return False
    if before.rsplit("\n", 1)[-1].count('"') % 2 or not all(re.fullmatch(_OWN_TAG, tag) for tag in _open_tags(before)):
        return False
    sentence = _last_sentence(re.sub(rf"(?:{_TAG}\s*)+\Z", "", before))
    if not sentence:
        ended = _last_sentence(re.sub(r"[.!?。！？\s]+\Z", "", before))
        if not re.search(_POINTING, ended):
            return not re.search(_UNSAID, ended)
        sentence = f"{ended}:"
    if re.search(_CONDITION, sentence):
        return False
    if not re.search(_ANNOUNCED, sentence):
        return True
    clauses = sentence, re.split(r"[,，;；]", sentence)[-1]
    known = (_ANNOUNCING, _VERDICT), (_ZH_ANNOUNCING, _ZH_VERDICT)
    return any(
        re.fullmatch(words, clause) and re.search(rf"(?i){core}", clause) for words, core in known for clause in clauses
    )


def _is_theirs(line: str) -> bool:
    """Whether *line* fences somebody's text (``--- DRAFT ---``), or is a command whose output follows."""
    fence = line.startswith("--") and line.endswith("--") and any(map(str.isalnum, line))
    return fence or line.startswith("$ ")


@lru_cache(maxsize=_REMEMBERED)
def is_quoted_before(before: str) -> bool:
    """Whether the last sentence of *before*, which leads up to something, says that it is somebody else's."""
    sentence = _last_sentence(before[-_REACH:])
    if sentence.count('"') % 2 or sentence.count("“") > sentence.count("”"):
        return True
    *_, tail = re.split(_TAIL, sentence)
    lead = sentence[: len(sentence) - len(tail)]
    if lead and re.search(_OWN, tail) and not re.search(_QUOTED, tail) and not re.search(_AND_SAYS, lead):
        return False  # "The draft says all it should, so my verdict is:"
    return re.search(_QUOTED, sentence) is not None


def _open_tags(text: str) -> list[str]:
    """The names of the tags that are open at the end of *text*: each on a line of its own, or right at the end."""
    names = [(match.start(), match[1] or match[2]) for match in re.finditer(_OPENING, text)]
    closed = {match[1]: match.start() for match in re.finditer(_CLOSING, text)}
    return [name for at, name in names if closed.get(name, -1) < at]


def _last_sentence(before: str) -> str:
    markup = re.search(_MARKUP, before)
    words = before[: markup.start()] if markup else before
    return words[max((end.end() for end in re.finditer(_SENTENCE_END, words)), default=0) :]


@lru_cache(maxsize=_REMEMBERED)
def is_quoted_behind(after: str) -> bool:
    """Whether *after* begins with a sentence that says of what is before it that it is somebody else's."""
    return re.match(_QUOTED_BEHIND, after[:_REACH]) is not None
