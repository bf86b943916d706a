"""The program itself: help, version, demos, completion, and what happens where a part is missing."""

import os
import subprocess
import sys
import textwrap

import pytest

from reactflow.event_json import result_from_json


def run(*arguments, code=None, **environment):
    """Run the command line in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(code)] if code else [sys.executable, "-m", "reactflow", *arguments]
    names = {"LANG": "C.UTF-8", **environment}
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | names, encoding="utf-8", timeout=240
    )


def test_help_lists_the_commands_and_the_exit_codes(reactflow):
    ended = reactflow("--help")

    words = " ".join(ended.out.split())
    assert ended.code == 0
    for name in ("ask", "chat", "demo", "doctor"):
        assert f"│ {name} " in words
    assert (
        "Exit codes: 0 answered, 1 failed, 2 wrong use, 3 provider or model error, 4 limit, 130 interrupted." in words
    )


def test_the_version_is_that_of_the_distribution(reactflow):
    assert reactflow("--version").out == "reactflow 0.1.0\n"


def test_without_a_command_the_help_is_shown(reactflow):
    assert "Usage: reactflow" in reactflow().out


def test_every_demo_is_listed_with_its_first_line(reactflow):
    ended = reactflow("demo")

    assert ended.code == 0
    for line in ended.out.splitlines():
        name, _, words = line.partition(" ")
        assert name.isidentifier()
        assert words.strip()


def test_a_demo_gets_the_words_after_its_name(reactflow, monkeypatch, tmp_path):
    (tmp_path / "shows").mkdir()
    (tmp_path / "shows" / "__init__.py").write_text("")
    (tmp_path / "shows" / "_common.py").write_text("")
    (tmp_path / "shows" / "loud.py").write_text("'''Shout.'''\nimport sys\nprint(__name__, sys.argv[1:])\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("reactflow.cli.demos.PACKAGE", "shows")

    assert reactflow("demo").out == "loud                Shout.\n"
    assert reactflow("demo", "loud", "--very", "hi").out == "__main__ ['--very', 'hi']\n"


def test_an_unknown_demo_is_wrong_use_and_the_known_ones_are_named(reactflow):
    ended = reactflow("demo", "nothing")

    assert ended.code == 2
    assert ended.err.startswith("Error: There is no demo 'nothing'; there are ")


@pytest.mark.parametrize("part", ["typer", "rich", "prompt_toolkit", "platformdirs"])
def test_a_missing_part_is_one_line_that_names_the_extra(part):
    ended = run(
        code=f"""
        import sys
        sys.modules[{part!r}] = None
        from reactflow.cli import main
        main()
        """
    )

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"reactflow: the command line needs {part}; run: pip install 'reactflow[cli]'\n"


def test_a_missing_part_of_reactflow_itself_is_not_taken_for_an_extra():
    ended = run(code="import sys; sys.modules['reactflow.memory'] = None; import reactflow.cli")

    assert ended.returncode == 1
    assert "ModuleNotFoundError" in ended.stderr


@pytest.mark.parametrize(
    ("words", "index", "expected"),
    [("reactflow do", "1", "doctor"), ("reactflow ask --budget-s", "2", "--budget-seconds")],
)
def test_the_shell_can_complete_commands_and_options(words, index, expected):
    ended = run(_REACTFLOW_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=index)

    assert ended.stdout.split() == [expected]


def test_a_reader_that_stops_early_ends_the_run_without_a_complaint():
    program = f"{sys.executable} -m reactflow ask 'What is the weather in Beijing?' --events"
    ended = subprocess.run(
        ["bash", "-c", f"{program} | head -n 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert ended.stdout.startswith('{"type":"run_started"')
    assert "Error" not in ended.stderr
    assert "BrokenPipe" not in ended.stderr
    assert ended.returncode in (0, 141)  # it may have finished before the pipe broke


def test_json_is_utf_8_whatever_the_encoding_of_the_terminal():
    ended = run("ask", "北京今天天气怎么样？", "--json", PYTHONIOENCODING="latin-1")

    assert "北京" in result_from_json(ended.stdout).text


def test_forced_colours_do_not_cut_the_lines_of_a_pipe():
    ended = run("ask", "What is the weather in Beijing?", FORCE_COLOR="1", COLUMNS="40")

    assert "\x1b[" in ended.stderr
    assert max(map(len, ended.stderr.splitlines())) > 80
    assert "\x1b[" not in ended.stdout


def test_the_program_itself_answers():
    ended = run("ask", "What is the weather in Beijing today?", "--quiet")

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Beijing" in ended.stdout
