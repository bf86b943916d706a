"""Which test runner a command runs, and what the runner's output says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePath

from reactflow.frozen import FrozenDict

RUNNERS: Mapping[str, str] = FrozenDict(
    # no summary of failures, and no mark of one; the exit code may be that of another program in the line of a shell
    pytest=r"\A(?![^\0]*(?m:^)(?:=+ )?(?=\d.* in [\d.]+ ?s)[\w ,]*\b[1-9]\d* (?:subtests )?(?:failed|errors?)\b)"
    r"(?![^\0]*(?m:^)[.sxXR]*[FE][.sxXRFE]* +\[)"
    # the summary, or where -qq leaves that out: a point among the marks of the tests, and a last mark at 100%
    r"(?:[^\0]*\b[1-9]\d* passed\b"
    r"|(?=[^\0]*(?m:^)[sxX]*\.[.sxX]* +\[)[^\0]*(?m:^)[.sxX]+ +\[(?:100%|([1-9]\d*)/\1)\])",
    unittest=r"(?m)\A(?![^\0]*^FAILED \()[^\0]*"
    r"^Ran ([1-9]\d*) tests?\b[^\0]*^OK\b(?! \((?:skipped|expected failures)=\1\))",  # not all skipped
)
"""What a test runner prints where tests ran and passed and none failed, as regular expressions."""

_INTERPRETERS = "pythonw?|pypy|py|coverage"
_SHELLS = "(?:ba|da|k|z|a)?sh"
_LAUNCHERS = (
    "env|nice|nohup|time|timeout|xvfb-run|uvx?|pipx|poetry|pdm|pipenv|hatch|rye|pixi|tox|nox|docker|podman"
    "|conda|(?:micro)?mamba"
)
_VERSION = r"(?:-?\d[\d.]*)?(?:\.exe)?$"
_MODULE = r"-[bBdEhiIOPqRsSuvVx?]*m(.*)"
_BEFORE = r"\w+=.*|exec|command|time|if|then|else|elif|do|while|until|!|\{"  # a program in the line of a shell


def runner_of(command: Sequence[str]) -> str | None:
    """The test runner that *command* runs, by its name in :data:`RUNNERS`, or None.

    It is the program itself, python's ``-m``, or what a shell's ``-c`` line runs.  Of a program that runs another one,
    such as ``uv run`` or ``env``, any part may be it.
    """
    for part, rest in ((part, command[at + 1 :]) for at, part in enumerate(command)):
        program = re.sub(_VERSION, "", PurePath(part).name)
        if program in (*RUNNERS, "py.test"):
            return "pytest" if program == "py.test" else program
        if re.fullmatch(_INTERPRETERS, program):
            return _module_of(rest, skip=program == "coverage")
        if re.fullmatch(_SHELLS, program):
            return next(filter(None, map(runner_of, _programs_in(rest))), None)
        if part is command[0] and not re.fullmatch(_LAUNCHERS, program):
            return None
    return None


def _module_of(arguments: Sequence[str], *, skip: bool) -> str | None:
    """The runner that an interpreter is told to run by ``-m``; behind a script's name ``-m`` is the script's own."""
    before = ""
    for at, part in enumerate(arguments):
        if found := re.fullmatch(_MODULE, part):
            module = found[1] or "".join(arguments[at + 1 : at + 2])
            return module if module in RUNNERS else None
        if not skip and not part.startswith("-") and before not in ("-X", "-W"):
            return None
        before = part
    return None


def _programs_in(arguments: Sequence[str]) -> Iterator[list[str]]:
    """The commands in the line that a shell is given by ``-c``; none where it is given a file."""
    at = next((at for at, part in enumerate(arguments, 1) if re.fullmatch(r"-[a-zA-Z]*c", part)), len(arguments))
    lexer = shlex.shlex("".join(arguments[at : at + 1]).replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # a quotation without an end; the shell will say so
        return
    for separates, group in groupby(words, key=lambda word: not set(word) - set(";&|()")):
        command = list(group)
        while command and re.fullmatch(_BEFORE, command[0]):
            del command[0]
        if command and not separates:
            yield command


def is_missing(runner: str, code: int | None, output: str) -> bool:
    """Whether nothing ran because *runner* is not installed: that is all that there is to read."""
    said = rf".*(?:No module named {runner}|\b{runner}: .*not found)"
    return code in (1, 127) and re.fullmatch(said, output) is not None
