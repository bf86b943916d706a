"""The roles of the e-mail demo without a model.  They say only what follows from the prompt they get."""

from __future__ import annotations

import json
import re

from reactflow import ChatRequest

_BODIES = {
    "new": "Your new dashboard shows all your figures at a glance, faster than Nimbusly ever will. You find it on the "
    "start page, and a short tour explains it. Tell us what you miss.",
    "continuing": "Your new dashboard is ready, for you and for your colleagues. You find it on the start page.",
    "churn-risk": "We noticed that you have not signed in for some time, which is really a great pity for all of us "
    "here. Your new dashboard is quicker and simpler, and it keeps your settings. If anything was in your way, reply "
    "to this e-mail and get an answer within a day.",
}
_GREETINGS = {"new": "welcome!", "continuing": "thank you for staying with us.", "churn-risk": "we are here to help."}


def write(request: ChatRequest) -> str:
    """Play the writer: knows the segment, forgets half of the rules."""
    asked = request.messages[-1].text
    segment, name = _found(r"Segment: ([\w-]+)", asked)[1], _found(r"tells (\w+)", asked)[1]
    return f"Dear {name},\n{_BODIES[segment]}\nYour product team"


def critique(request: ChatRequest) -> str:
    """Play the critic: check the text in the prompt against the rules in the prompt."""
    asked = request.messages[-1].text
    text = _found(r"--- text (\w+) ---\n(.*?)\n--- end \1 ---", asked)[2]
    name, plan = _found(r"names the recipient, (.+)", asked)[1], _found(r"names the current plan, (.+)", asked)[1]
    segment, tone = _found(r"tone for a ([\w-]+) customer: says '(\w+)'", asked).groups()
    issues = [
        (5, "facts", found[0], "")
        for rival in _found(r"names no competitor: (.+)", asked)[1].split(", ")
        if (found := re.search(rf", faster than {rival}[^.]*", text))
    ]
    if name not in text or tone not in text.casefold():
        issues.append((4, "language and tone", text.split("\n")[0], f"Dear {name}, {_GREETINGS[segment]}"))
    if plan not in text:
        issues.append((4, "completeness", "Your new dashboard", f"Your new dashboard, part of your {plan} plan,"))
    elif len(text) < 200:
        issues.append((4, "format", "the start page.", "the start page; all your settings stay as they are."))
    if len(text) > 300 and (found := re.search(", which is really[^.]*", text)):
        issues.append((4, "format", found[0], ""))
    keys = ("severity", "category", "snippet", "suggestion")
    listed = [dict(zip(keys, issue, strict=True)) for issue in issues]
    return json.dumps({"issues": listed, "overall_score": 100 - 20 * len(issues)})


def mend(request: ChatRequest) -> str:
    """Play the refiner: make an edit of every fix in the prompt, and of nothing else."""
    fixes = re.findall(r"^- \[severity \d[^\]]*\] (.+?) -> (.*)$", request.messages[-1].text, re.MULTILINE)
    edits = [{"snippet": words, "replacement": "" if "(take" in instead else instead} for words, instead in fixes]
    return json.dumps({"edits": edits})


def _found(pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text, re.DOTALL if r"\n" in pattern else 0)
    if match is None:
        raise ValueError(f"the prompt has nothing like {pattern}")
    return match
