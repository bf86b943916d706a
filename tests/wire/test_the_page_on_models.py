"""The page on connecting a model: its examples run, and its table of settings is true."""

import inspect
import re
from pathlib import Path

import pytest

from reactflow.loopback import reply_text
from reactflow.openai_model import OpenAIChatModel

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "connect-a-model.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[str(number) for number in range(len(BLOCKS))])
def test_an_example_runs_as_it_stands(block, serve, monkeypatch):
    server = serve(respond=lambda request: reply_text("Paris."))
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "key")

    exec(compile(block, "connect-a-model.md", "exec"), {"__name__": "page"})


def test_the_settings_and_their_defaults_are_those_of_the_class():
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", PAGE, re.MULTILINE))
    parameters = inspect.signature(OpenAIChatModel).parameters
    told = {name: listed[name].strip('`"').removesuffix(" s") for name in listed}

    assert told == {name: in_words(parameters[name].default) for name in parameters if name not in NOT_LISTED}


NOT_LISTED = ("self", "model", "base_url", "api_key", "options")


def in_words(default):
    return f"{default:g}" if isinstance(default, float) else str(default)
