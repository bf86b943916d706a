"""The server of the engines' proofs: what it says of a row hangs on that row's words alone."""

import json

import pytest
from engine_server import respond

from reactflow.loopback import ReceivedRequest
from reactflow.workflows.wording import fenced

MARK = "0bad0123456789ab"


def said(text):
    body = {"messages": [{"role": "user", "content": text}]}
    reply = respond(ReceivedRequest("POST", "/v1/chat/completions", {}, body, b""))
    return reply.body["choices"][0]["message"]["content"]


@pytest.mark.parametrize("row", ["row 7", "row 12", "row 1 灾情", "description=hail; image=a"])
def test_a_mark_that_spells_a_word_of_the_server_changes_no_verdict(row):
    prompt = fenced(MARK, "draft", f"draft of {row}", row)
    assert json.loads(said(f"{prompt} APPROVED or not?"))["verdict"] == "APPROVED"


@pytest.mark.parametrize("row", ["row 7 bad", "row 12 bad"])
def test_a_row_that_says_so_is_never_approved(row):
    prompt = fenced("0" * 16, "draft", f"draft of {row}", row)
    assert json.loads(said(f"{prompt} APPROVED or not?"))["verdict"] == "REQUIRED_CHANGES"


@pytest.mark.parametrize("row", ["row 7", "row 12", "row 2 bad"])
def test_a_revision_is_a_draft_of_its_row(row):
    assert said(fenced(MARK, "task", row, row)) == f"draft of {row}"
