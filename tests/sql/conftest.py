"""A session whose models are functions of the request."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reactflow.messages import AssistantMessage, Usage
from reactflow.model import ChatResponse
from reactflow.specs.building import Workshop
from reactflow.sql.session import SessionSettings, SqlSession

OBJECTS = """
CREATE CONNECTION house WITH ('type' = 'openai', 'endpoint' = 'https://example.org/v1/chat/completions',
                              'api-key' = 'a-key-written-out');
CREATE MODEL big WITH ('provider' = 'openai', 'openai.connection' = 'house', 'openai.model_version' = 'gpt-4o');
CREATE AGENT extractor USING MODEL big USING PROMPT 'You extract; it''s -- all {JSON}.';
CREATE AGENT critic USING MODEL big USING PROMPT 'You review claims.';
CREATE AGENT intake USING AGENTS extractor, `critic` WITH ('type' = 'reflection', 'max_iterations' = '3');
"""

CLAIMS = """
CREATE TABLE claims (id INT, description STRING, image_url STRING, amount DOUBLE);
INSERT INTO claims VALUES
  (1, 'hail on the roof', 'a.png', 100), (2, 'a flood', 'b.png', 900), (3, 'never good', 'c.png', 5);
"""


class Model:
    """Drafts, drafts better after a review, and approves what is better, but never 'never good'."""

    name = "rules"

    def __init__(self):
        self.seen = []

    async def complete(self, request):
        self.seen.append(request)
        text = request.messages[-1].text
        if "APPROVED" in text:
            good = "better" in text and "never good" not in text
            verdict = {"verdict": "APPROVED" if good else "REQUIRED_CHANGES", "confidence": 0.9}
            said = json.dumps(verdict | {"issues": [], "suggestions": "Make it longer."})
        elif "Make it longer." in text:
            said = f"better: {claim_in(text)}" if "better" not in text else f"better still: {claim_in(text)}"
        else:
            said = f"draft: {text}"
        return ChatResponse(AssistantMessage(said), Usage(10, 5), "stop")


def claim_in(text):
    return re.search(r"hail on the roof|a flood|never good", text)[0]


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def session(model):
    """Make a session; what is given replaces the settings."""
    made = []

    def make(*, functions=None, watch=None, script=OBJECTS + CLAIMS, **settings):
        workshop = Workshop(make_model=lambda *_: model, functions=functions or {})
        made.append(SqlSession(replace(SessionSettings(workshop=workshop), **settings), watch=watch))
        for _ in made[-1].run(script):
            pass
        return made[-1]

    yield make
    for each in made:
        each.engine.close()


@pytest.fixture
def rows():
    """Run a script and return the rows of its last statement."""

    def run(session, script):
        result = None
        for result in session.run(script):
            found = list(result.rows)
        return found if result.columns else result.message

    return run


@pytest.fixture
def folder(tmp_path):
    return Path(tmp_path)
