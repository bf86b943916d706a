"""The two roles of the coding task without a model.  They say only what follows from the prompt they get."""

from __future__ import annotations

import re

from reactflow import ChatRequest
from reactflow.messages import Usage, estimate_tokens
from reactflow.testing import Reply, says

LESSONS = {
    "accents": "Letters with accents are dropped like punctuation; take them apart with NFKD and drop only the marks.",
    "hyphens": "Punctuation at an end leaves a hyphen there; strip hyphens once everything else is done.",
}


def attempt(request: ChatRequest) -> Reply:
    """Play the actor: knows the obvious solution, and what the lessons in the prompt add to it."""
    asked = request.messages[-1].text
    steps = ["text = title.lower()"]
    if "NFKD" in asked:
        steps.append('text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))')
    steps.append('text = re.sub(r"[^a-z0-9]+", "-", text)')
    steps.append('return text.strip("-")' if "strip hyphens" in asked else "return text")
    body = "\n".join(f"    {step}" for step in steps)
    return _said(request, f"```python\nimport re\nimport unicodedata\n\n\ndef slug(title):\n{body}\n```")


def reflect(request: ChatRequest) -> Reply:
    """Play the reflector: explain the first difference that the test run in the prompt shows."""
    check = re.search(r"--- what the check said (\w+) ---\n(.*?)\n--- end \1 ---", request.messages[-1].text, re.DOTALL)
    found = check and re.search(r"AssertionError: '(.*)' != '(.*)'", check[2])
    if not found:
        return _said(request, "Run the tests, and look at the first one that fails.")
    got, wanted = found[1], found[2]
    return _said(request, LESSONS["hyphens" if got.strip("-") == wanted else "accents"])


def _said(request: ChatRequest, text: str) -> Reply:
    read = sum(estimate_tokens(message.text) for message in request.messages)
    return says(text, usage=Usage(read, estimate_tokens(text)))
