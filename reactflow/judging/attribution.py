"""Whose words are these?  A judge may quote a verdict that the draft gives itself, and must not seem to give it.

What is quoted is told by the sentence that leads up to it, or by the one right behind it: it says that a draft, a text,
a page or somebody says, contains or claims this ("The draft says:", "That is what the text claims"), that it stands in
or comes from there ("Verdict in the draft:"), or that it is a quotation or an example.  A sentence that leads up to the
judge's own words names the draft only as what is judged ("Here is my verdict on the draft:").
"""

from __future__ import annotations

import re

_REACH = 400  # characters that are looked at, so that hostile text does not cost the square of its length
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
    r"(?i)\W{0,8}(?:(?:that|this|which|it|the above|the (?:object|json|verdict))\b[^.:\n]{0,60}?"
    rf"(?:\b(?:what|from|in|by|inside|within)\s+(?:the|this|that|an?|its)?\s*{_NOUNS}\b"
    r"|\b(?:quot(?:ed?|ation)|forged|fake)\b)"
    rf"|(?:is|was)\s+what\s+(?:the\s+)?{_NOUNS}|(?:says?|said|claims?|claimed|writes|wrote)\s+the\s+{_NOUNS}"
    rf"|(?:这|以上|上面)[^。\n]{{0,12}}?{_ZH_SOURCE})"
)
_MARKUP = r"(?i)(?:[`~*_#>\s]|\bjson[c5]?\b)*\Z"
_SENTENCE_END = r"[.!?。！？；;]['\"”’)）]*(?:\s|\Z)|[\n}｝\]］]"


def is_quoted_before(before: str) -> bool:
    """Whether the last sentence of *before*, which leads up to something, says that it is somebody else's."""
    before = before[-_REACH:]
    markup = re.search(_MARKUP, before)
    words = before[: markup.start()] if markup else before
    start = max((end.end() for end in re.finditer(_SENTENCE_END, words)), default=0)
    sentence = words[start:]
    if sentence.count('"') % 2 or sentence.count("“") > sentence.count("”"):
        return True
    *_, tail = re.split(_TAIL, sentence)
    lead = sentence[: len(sentence) - len(tail)]
    if lead and re.search(_OWN, tail) and not re.search(_QUOTED, tail) and not re.search(_AND_SAYS, lead):
        return False  # "The draft says all it should, so my verdict is:"
    return re.search(_QUOTED, sentence) is not None


def is_quoted_behind(after: str) -> bool:
    """Whether *after* begins with a sentence that says of what is before it that it is somebody else's."""
    return re.match(_QUOTED_BEHIND, after[:_REACH]) is not None
