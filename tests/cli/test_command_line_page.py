"""The page in docs/how-to/use-the-command-line.md says what the program does."""

import re
from pathlib import Path

from typer.main import get_command

from reactflow.cli.app import app
from reactflow.cli.commands import COMMANDS, LEAVE
from reactflow.cli.reasons import ExitCode

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "use-the-command-line.md").read_text("utf-8")
FIRST_CELLS = "\n".join(re.findall(r"^\| (.*?) \|", PAGE, re.MULTILINE))


def options():
    commands = get_command(app).commands.values()
    return {name for command in commands for each in command.params for name in each.opts if name.startswith("--")}


def test_every_option_is_listed_and_none_that_is_not_there():
    assert set(re.findall(r"`(--[a-z-]+)`", FIRST_CELLS)) == options() - {"--help"}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= options() | {"--install-completion"}


def test_every_command_and_exit_code_is_listed():
    assert set(re.findall(r"`reactflow (\w+)", FIRST_CELLS)) == set(get_command(app).commands)
    assert set(re.findall(r"`(/\w+)`", FIRST_CELLS)) == {*COMMANDS, LEAVE[0]}
    assert {int(code) for code in re.findall(r"^\d+$", FIRST_CELLS, re.MULTILINE)} == set(ExitCode)
