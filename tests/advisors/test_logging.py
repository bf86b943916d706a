"""What the logging advisor writes down, and what it keeps to itself."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from reactflow import LoggingAdvisor, ModelBehaviorError, SimpleReactAgent, Usage
from reactflow.testing import ScriptedChatModel, calls, says


def secret(key: str) -> str:
    """Look up a secret."""
    return f"the value of {key}"


async def log_of(advisor, *replies):
    agent = SimpleReactAgent(model=ScriptedChatModel(*replies), tools=[secret], advisors=[advisor], react_prompt=None)
    with capture_logs() as entries:
        result = await agent.arun("my password is hunter2")
    for entry in entries:
        assert entry.pop("run_id") == result.run_id
        entry.pop("elapsed_s", None)
    return entries


async def test_every_model_call_is_logged_without_a_word_of_what_was_said():
    entries = await log_of(
        LoggingAdvisor(), says("", usage=Usage(10, 2)) + calls("secret", key="hunter2"), says("hunter2 it is")
    )
    assert entries == [
        {"event": "model.asked", "log_level": "info", "messages": 1, "tools": 1},
        {
            "event": "model.answered",
            "log_level": "info",
            "input_tokens": 10,
            "output_tokens": 2,
            "tool_calls": ["secret"],
            "finish_reason": "tool_calls",
        },
        {"event": "model.asked", "log_level": "info", "messages": 3, "tools": 1},
        {
            "event": "model.answered",
            "log_level": "info",
            "input_tokens": None,
            "output_tokens": None,
            "tool_calls": [],
            "finish_reason": "stop",
        },
    ]


async def test_content_is_logged_at_debug_level_only_where_asked_for():
    entries = await log_of(LoggingAdvisor(content=True), "fine")
    said = [(entry["log_level"], entry["text"]) for entry in entries if "text" in entry]
    assert said == [("debug", "my password is hunter2"), ("debug", "fine")]


async def test_around_the_turn_it_logs_the_turn():
    entries = await log_of(LoggingAdvisor(order=-1), calls("secret", key="k"), "fine")
    assert [entry["event"] for entry in entries] == ["turn.asked", "turn.answered"]


async def test_a_failure_is_a_warning_with_its_class_only():
    agent = SimpleReactAgent(model=ScriptedChatModel(ModelBehaviorError("hunter2")), advisors=[LoggingAdvisor()])
    with capture_logs() as entries, pytest.raises(ModelBehaviorError):
        await agent.arun("Q")
    assert (entries[-1]["event"], entries[-1]["log_level"], entries[-1]["error"]) == (
        "model.failed",
        "warning",
        "ModelBehaviorError",
    )
