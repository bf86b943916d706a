"""The page in docs/how-to/use-the-command-line.md says what the program does."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from reactflow.cli.app import app
from reactflow.cli.commands import COMMANDS, LEAVE
from reactflow.cli.reasons import ExitCode

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "use-the-command-line.md").read_text("utf-8")
FIRST_CELLS = "\n".join(re.findall(r"^\| (.*?) \|", PAGE, re.MULTILINE))


PAGES_OF_THEIR_OWN = {"batch", "sql"}


def options(*names):
    commands = [get_command(app).commands[name] for name in names]
    return {name for command in commands for each in command.params for name in each.opts if name.startswith("--")}


def of_this_page():
    return options(*set(get_command(app).commands) - PAGES_OF_THEIR_OWN)


def test_every_option_is_listed_and_none_that_is_not_there():
    assert set(re.findall(r"`(--[a-z-]+)`", FIRST_CELLS)) == of_this_page() - {"--help"}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= of_this_page() | {"--install-completion"}


def test_every_command_and_exit_code_is_listed():
    assert set(re.findall(r"`reactflow (\w+)", FIRST_CELLS)) == set(get_command(app).commands)
    assert set(re.findall(r"`(/\w+)`", FIRST_CELLS)) == {*COMMANDS, LEAVE[0]}
    assert {int(code) for code in re.findall(r"^\d+$", FIRST_CELLS, re.MULTILINE)} == set(ExitCode)


@pytest.mark.parametrize("name", sorted(PAGES_OF_THEIR_OWN))
def test_a_command_with_a_page_of_its_own_lists_its_options_there(name):
    page = (DOCS / f"{name}.md").read_text("utf-8")
    first_cells = "\n".join(re.findall(r"^\| (.*?) \|", page, re.MULTILINE))

    assert set(re.findall(r"`(--[a-z-]+)`", first_cells)) == options(name) - {"--help"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page)) <= options(*PAGES_OF_THEIR_OWN)
