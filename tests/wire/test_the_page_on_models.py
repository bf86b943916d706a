"""The page on connecting a model: its table of settings is true.  (That its examples run is in tests/docs.)"""

import inspect
import re
from pathlib import Path

from reactflow.openai_model import OpenAIChatModel

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "connect-a-model.md").read_text("utf-8")


def test_the_settings_and_their_defaults_are_those_of_the_class():
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", PAGE, re.MULTILINE))
    parameters = inspect.signature(OpenAIChatModel).parameters
    told = {name: listed[name].strip('`"').removesuffix(" s") for name in listed}

    assert told == {name: in_words(parameters[name].default) for name in parameters if name not in NOT_LISTED}


NOT_LISTED = ("self", "model", "base_url", "api_key", "options")


def in_words(default):
    return f"{default:g}" if isinstance(default, float) else str(default)
