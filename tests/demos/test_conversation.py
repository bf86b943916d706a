"""The demo of the logging and the memory advisor."""

from __future__ import annotations

import pytest
import structlog

from reactflow.demos import conversation


@pytest.fixture(autouse=True)
def the_log_as_it_was():
    yield
    structlog.reset_defaults()


def test_the_second_question_is_understood_because_the_first_is_remembered(capsys):
    conversation.main()
    answers, log = capsys.readouterr()
    assert answers.startswith("Offline model")
    assert "> And tomorrow?   (2 messages remembered)" in answers
    assert answers.rindex("Weather (Paris") > answers.index("And tomorrow?")
    assert log.count("model.answered") == 4
    assert "weather in Paris" not in log
