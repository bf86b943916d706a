"""The two roles of the claims intake without a model.  They say only what follows from the prompt they get."""

from __future__ import annotations

import json
import re

from reactflow import ChatRequest
from reactflow.messages import Usage, estimate_tokens
from reactflow.testing import Reply, says


def extract(request: ChatRequest) -> Reply:
    """Play the extractor: forgets the cost, and what is not known, until the review in its prompt asks for them."""
    asked = request.messages[-1].text
    claim: dict[str, object] = {
        "incident_type": "windshield_damage",
        "damage_summary": "The windshield is broken.",
        "estimated_severity": "med",
        "location": {name: float(_found(rf"\b{name}=(-?[\d.]+)", asked)[1]) for name in ("lat", "lon")},
        "missing_fields": re.findall(r"missing_fields: .*?\b(\w+_size)\b", asked),
    }
    if cost := re.search(r"estimated_cost: .*?\$(\d+) to \$(\d+)", asked):
        claim["estimated_cost"] = (int(cost[1]) + int(cost[2])) // 2
    return _said(request, json.dumps(claim))


def review(request: ChatRequest) -> Reply:
    """Play the reviewer: look for what the claim in its prompt lacks."""
    draft = _found(r"--- draft (\w+) ---\n(.*?)\n--- end \1 ---", request.messages[-1].text)[2]
    claim = json.loads(draft)
    issues = []
    if "estimated_cost" not in claim:
        issues.append(("estimated_cost", "high", "It is missing; mending a windshield takes $200 to $500."))
    if not claim["missing_fields"]:
        issues.append(("missing_fields", "medium", "The description does not give crack_size, so it must be named."))
    listed = [{"field": field, "severity": severity, "description": text} for field, severity, text in issues]
    verdict = "REQUIRED_CHANGES" if issues else "APPROVED"
    confidence = 0.4 if issues else 0.95
    critique = {"verdict": verdict, "confidence": confidence, "issues": listed, "suggestions": ""}
    return _said(request, json.dumps(critique))


def _found(pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text, re.DOTALL)
    if match is None:
        raise ValueError(f"the prompt has nothing like {pattern}")
    return match


def _said(request: ChatRequest, text: str) -> Reply:
    read = sum(estimate_tokens(message.text) for message in request.messages)
    return says(text, usage=Usage(read, estimate_tokens(text)))
