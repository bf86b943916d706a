"""The two roles of the research question without a model.  They say only what follows from the prompt they get."""

from __future__ import annotations

import json
import re

from reactflow import ChatRequest
from reactflow.messages import Usage, estimate_tokens
from reactflow.testing import Reply, says

FROM_MEMORY = "https://www.nobelprize.org/prizes/physics/2025/summary/"


def respond(request: ChatRequest) -> Reply:
    """Play the responder: says what it cannot know, and asks for it."""
    prize, year = _asked(request)
    return _said(
        request,
        answer=f"I do not know who won the {prize} {year}.",
        reflection="The prize may have been awarded after my training; winners and reason are both missing.",
        search_queries=[f"{prize} {year} winners", f"{prize} {year} reason"],
    )


def revise(request: ChatRequest) -> Reply:
    """Play the revisor: says what the numbered sources say, and asks for the experiments where none tells of them."""
    prize, year = _asked(request)
    prompt = request.messages[-1].text
    sources = re.findall(r"^\[(\d+)\] (.*)\n(\S+)\n(.+)", prompt, re.MULTILINE)
    prizes = [source for source in sources if re.match(rf"The {prize} {year} (?:was|went)", source[3])]
    if not prizes:
        return _said(request, answer=f"No source says who won the {prize} {year}.", references=[])
    number, _, url, text = prizes[0]
    answer = f"{_sentences(text, 1)} [{number}]"
    reasons = [source for source in sources if "experiments behind" in source[1]]
    if not reasons:
        names = " ".join(re.findall(r"[A-Z]\w+(?=,| and John| for the)", text))
        query = f"experiment {names} circuit"
        missing = "No source tells which experiments it was for."
        return _said(request, answer=answer, reflection=missing, search_queries=[query], references=[url, FROM_MEMORY])
    number, _, more, text = reasons[0]
    return _said(request, answer=f"{answer} {_sentences(text, 2)} [{number}]", references=[url, more])


def _asked(request: ChatRequest) -> tuple[str, str]:
    found = re.search(r"(Nobel Prize in \w+) in (\d{4})", request.messages[-1].text)
    if found is None:
        raise ValueError("the prompt asks for no Nobel Prize of a year")
    return found[1], found[2]


def _sentences(text: str, count: int) -> str:
    return " ".join(re.split(r"(?<=[a-z]\.) ", text)[:count])


def _said(request: ChatRequest, **fields: object) -> Reply:
    text = json.dumps({"reflection": "", "search_queries": [], **fields})
    read = sum(estimate_tokens(message.text) for message in request.messages)
    return says(text, usage=Usage(read, estimate_tokens(text)))
