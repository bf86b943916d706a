"""``--agent`` and ``--tool``: the user's own objects, by module and attribute."""

import json
import sys

import pytest

from reactflow import ConfigurationError, SimpleReactAgent
from reactflow.cli.loading import load, load_agent
from reactflow.testing import ScriptedChatModel

AGENT = """
from helper_beside_it import word
from reactflow import SimpleReactAgent
from reactflow.testing import ScriptedChatModel, says

class Holder:
    agent = SimpleReactAgent(model=ScriptedChatModel(says(word)))

def make():
    return Holder.agent

async def make_async():
    return Holder.agent

def broken():
    raise ValueError("no such thing")

def misconfigured():
    return SimpleReactAgent(model=None)

number = 5
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a module of the user's own."""
    (tmp_path / "mine.py").write_text(AGENT)
    (tmp_path / "helper_beside_it.py").write_text("word = 'hello'")
    (tmp_path / "failing.py").write_text("raise RuntimeError('half-way')")
    (tmp_path / "leaving.py").write_text("raise SystemExit")
    (tmp_path / "needy.py").write_text("import no_such_library")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("mine", "helper_beside_it", "failing", "leaving", "needy"):
        sys.modules.pop(name, None)


def test_an_agent_in_the_current_folder_is_found(folder, reactflow):
    assert reactflow("ask", "Hi", "--agent", "mine:Holder.agent").out == "hello\n"


def test_a_function_that_makes_an_agent_is_called(folder):
    assert isinstance(load_agent("mine:make"), SimpleReactAgent)


def test_a_file_may_be_named_by_its_path_from_anywhere(folder, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    assert isinstance(load_agent(f"{folder / 'mine.py'}:make"), SimpleReactAgent)


def test_the_current_folder_comes_before_what_is_installed(folder):
    (folder / "yaml.py").write_text("mine = True")
    sys.modules.pop("yaml", None)

    assert load("--tool", "yaml:mine") is True
    sys.modules.pop("yaml", None)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("mine", "--agent mine: write module:attribute, such as my_agent:agent."),
        (":agent", "write module:attribute"),
        ("mine:", "write module:attribute"),
        ("nowhere:agent", "there is no module 'nowhere' in "),
        ("mine.deeper:agent", "there is no module 'mine.deeper'"),
        ("nowhere.py:agent", "there is no file nowhere.py"),
        ("needy:agent", "needy needs 'no_such_library'; install it."),
        ("failing:agent", "loading failing failed: RuntimeError: half-way. Run it again with --debug to see where."),
        ("leaving:agent", "loading leaving failed: SystemExit. "),
        ("mine:maker", "mine has no 'maker'; did you mean make"),
        ("mine:qqqqq", "mine has no 'qqqqq'."),
        ("mine:number", "5 has no astream(); name an agent, a workflow, or a function"),
        ("mine:make_async", "is an async function"),
        ("mine:broken", "calling it failed: ValueError: no such thing"),
        ("mine:misconfigured", "model=None is no ChatModel"),
    ],
)
def test_what_is_no_agent_is_refused_with_what_to_write_instead(folder, spec, complaint):
    with pytest.raises(ConfigurationError) as caught:
        load_agent(spec)

    assert complaint in str(caught.value)


def test_a_class_whose_objects_stream_is_made_one(own):
    class Streamer(SimpleReactAgent):
        def __init__(self):
            super().__init__(model=ScriptedChatModel())

    own(Streamer=Streamer)

    assert isinstance(load_agent("own:Streamer"), Streamer)


NOISY = """
import asyncio
from reactflow import SimpleReactAgent, tool
from reactflow.testing import ScriptedChatModel, says

print("loading")
asyncio.run(asyncio.sleep(0))

@tool
def price(item: str) -> str:
    "Price of an item."
    return "3"

def make():
    print("making")
    return SimpleReactAgent(model=ScriptedChatModel(says("hello")))

def shout(prompt):
    print("shouting")
    return prompt.upper()
"""


@pytest.fixture
def noisy(folder):
    """A module that prints, and that runs an event loop of its own while it is loaded."""
    (folder / "noisy.py").write_text(NOISY)
    (folder / "in.jsonl").write_text('{"prompt": "a"}\n')
    yield "noisy"
    sys.modules.pop("noisy", None)


@pytest.mark.parametrize(("given", "code"), [([], 0), (["--judge-model", "offline"], 4)])
@pytest.mark.parametrize("command", [["ask", "Hi"], ["chat"]])
@pytest.mark.usefixtures("noisy")
def test_a_module_with_tools_may_run_a_loop_of_its_own_while_it_is_loaded(reactflow, command, given, code):
    ended = reactflow(*command, "--model", "offline", "--tool", "noisy:price", *given, input="Hi\n")

    assert ended.code == code, ended.err
    assert ended.out.startswith("I cannot answer this offline")
    assert "loading" not in ended.out


@pytest.mark.usefixtures("noisy")
def test_what_the_users_own_code_prints_does_not_stand_before_the_json(reactflow):
    asked = reactflow("ask", "Hi", "--agent", "noisy:make", "--json")
    listed = reactflow("batch", "in.jsonl", "out.jsonl", "--agent", "noisy:shout", "--json")

    assert json.loads(asked.out)["text"] == "hello"
    assert all(word in asked.err for word in ("loading", "making"))
    assert json.loads(listed.out)["written"] == 1
    assert "shouting" in listed.err
