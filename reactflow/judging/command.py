"""Judge a draft by running something on it: a test suite, a compiler, a linter.

This is no sandbox.  What the command runs may do whatever the user may do who runs it, and code under test can forge
what a test runner prints; for code that nobody has read let the command be one that isolates it (a container, a jail).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import signal
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, ClassVar, Literal

from reactflow.errors import ConfigurationError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.judge import Draft
from reactflow.judging.fences import code_of
from reactflow.judging.runners import RUNNERS, is_missing, runner_of
from reactflow.phrases import phrases, shorten
from reactflow.result import Judgement

FILE = "{file}"
"""Stands for the path of the draft's file in a command."""

INHERITED = frozenset(
    (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "TEMP",
        "TMP",
        "SYSTEMROOT",
        "VIRTUAL_ENV",
        "PYTHONPATH",
    )
)
"""Variables that a command gets from this process; the others may be secrets."""

_DRAIN_S = 0.5
_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
_CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f]"


@dataclass(frozen=True, slots=True)
class CommandEvaluator:
    """Passes a draft if a command ends with exit code 0 on it; else the end of its output is the feedback.

    A program under test can end the test run with exit code 0 before any test ran (``os._exit(0)``).  So of pytest and
    unittest the output must say as well that tests passed, and of other commands what *pass_pattern* asks.

    The command runs in a new temporary directory and in a process group of its own, which is killed when it ends, when
    its time is up and when the run is cancelled, so that nothing it started is left behind.

    Args:
        command: Program and arguments, not a shell line.  ``{file}`` in it becomes the path of the draft's file.
        timeout_s: Seconds the command may take, > 0.
        cwd: Where it runs instead; the draft's file stays in the temporary directory.
        env: Variables to add to :data:`INHERITED`.
        input: Whether the draft is put into *filename* or sent to standard input.
        filename: The draft's file, in the temporary directory.
        code_language: Give the command only the code in this language's fences, where there are any.
        files: Further files by name, such as the tests, put beside the draft's file.
        no_check_codes: Exit codes that mean that nothing was checked (pytest's 5).  They are a rejection with a flag.
        pass_pattern: A regular expression that the last part of the output must match somewhere for exit code 0 to
            count.  None: that of :data:`~reactflow.judging.runners.RUNNERS` where the command runs one of them, else
            nothing is asked.  ``""`` asks nothing at all, which leaves the exit code; say so where a runner is told to
            print neither a summary nor percentages (pytest's ``-qq -s``).
        max_output_chars: Of longer output only the end is fed back, > 0.

    Raises:
        ConfigurationError: A setting makes no sense, or (in ``evaluate``) the program cannot be started, or the test
            runner is not installed.
    """

    command: Sequence[str]
    timeout_s: float = field(default=60.0, kw_only=True)
    cwd: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    env: Mapping[str, str] = field(default=EMPTY, kw_only=True, hash=False)
    input: Literal["file", "stdin"] = field(default="file", kw_only=True)
    filename: str = field(default="answer.txt", kw_only=True)
    code_language: str | None = field(default=None, kw_only=True)
    files: Mapping[str, str] = field(default=EMPTY, kw_only=True, hash=False)
    no_check_codes: Collection[int] = field(default=(5,), kw_only=True)
    pass_pattern: str | None = field(default=None, kw_only=True)
    max_output_chars: int = field(default=4000, kw_only=True)
    uses_model: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self)
        object.__setattr__(self, "command", tuple(self.command))
        object.__setattr__(self, "env", FrozenDict(self.env or {}))
        object.__setattr__(self, "files", FrozenDict(self.files or {}))
        object.__setattr__(self, "no_check_codes", frozenset(self.no_check_codes))
        if self.pass_pattern is None:
            object.__setattr__(self, "pass_pattern", RUNNERS.get(runner_of(self.command) or "", ""))

    async def evaluate(self, draft: Draft) -> Judgement:
        """Run the command on *draft*."""
        text = draft.text if self.code_language is None else code_of(draft.text, self.code_language)
        with self._folder(text) as folder:
            code, output = await self._run(folder, text.encode("utf-8", "replace") if self.input == "stdin" else None)
        runner = runner_of(self.command)
        if runner is not None and is_missing(runner, code, output):
            raise ConfigurationError(
                f"CommandEvaluator checks nothing by {self._shown()!r}: {output:.200}. Install {runner} where it runs."
            )
        return self._judgement(draft.question, code, output)

    @contextlib.contextmanager
    def _folder(self, text: str) -> Iterator[Path]:
        """A new directory with the files in it, removed at the end."""
        with tempfile.TemporaryDirectory(prefix="reactflow-", ignore_cleanup_errors=True) as name:
            folder = Path(name).resolve()
            own = {self.filename: text} if self.input == "file" else {}
            for path, content in {**self.files, **own}.items():
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(content, encoding="utf-8", errors="replace", newline="")
            yield folder

    async def _run(self, folder: Path, stdin: bytes | None) -> tuple[int | None, str]:
        """Exit code, or None where the time was up, and the end of the output."""
        watch = _Watch(keep=4 * self.max_output_chars)
        transport = await self._start(folder, watch, piped=stdin is not None)
        try:
            if stdin is not None:
                _send(transport, stdin)
            async with asyncio.timeout(self.timeout_s):
                await watch.exited.wait()
            code = transport.get_returncode()
        except TimeoutError:
            code = None
        finally:
            _kill(transport)
            with contextlib.suppress(TimeoutError):  # something that left the group may hold the pipe open for ever
                async with asyncio.timeout(_DRAIN_S):
                    await watch.exited.wait()
                    await watch.drained.wait()
            transport.close()
        return code, self._readable(bytes(watch.tail), folder)

    async def _start(self, folder: Path, watch: _Watch, *, piped: bool) -> asyncio.SubprocessTransport:
        program, *arguments = (part.replace(FILE, str(folder / self.filename)) for part in self.command)
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: watch,
                program,
                *arguments,
                stdin=asyncio.subprocess.PIPE if piped else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder if self.cwd is None else self.cwd,
                env={name: os.environ[name] for name in INHERITED if name in os.environ} | dict(self.env),
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigurationError(
                f"CommandEvaluator cannot start {self._shown()!r}: {error}. Check the program's name, its path and cwd."
            ) from error
        return transport

    def _readable(self, raw: bytes, folder: Path) -> str:
        """The end of the output without colours and without the temporary path, which would differ every time."""
        text = re.sub(_ESCAPES, "", raw.decode("utf-8", "replace").replace("\r\n", "\n"))
        return re.sub(_CONTROLS, "", text.replace(f"{folder}{os.sep}", "").replace(str(folder), ".")).strip()

    def _judgement(self, question: str, code: int | None, output: str) -> Judgement:
        shown = not self.pass_pattern or re.search(self.pass_pattern, output) is not None
        if code == 0 and 0 not in self.no_check_codes and shown:
            return Judgement(True)
        said = phrases(question)
        flags: tuple[str, ...] = ()
        if code is None:
            reason = said.check_timed_out.format(command=self._shown(), seconds=f"{self.timeout_s:g}")
            flags = (f"The check did not end within {self.timeout_s:g} seconds.",)
        elif code in self.no_check_codes:
            reason = said.no_check_ran.format(command=self._shown(), code=code)
            flags = ("No check ran, so the draft is not known to be right.",)
        elif code == 0:
            reason = said.no_pass_shown.format(command=self._shown())
            flags = (
                f"The output has nothing that matches pass_pattern={self.pass_pattern!r}, so no check may have run.",
            )
        elif code < 0:
            reason = said.check_killed.format(command=self._shown(), code=-code)
        else:
            reason = said.check_failed.format(command=self._shown(), code=code)
        limit = self.max_output_chars
        end = output if len(output) <= limit else "…" + output[len(output) - limit + 1 :]
        return Judgement(False, f"{reason}\n\n{end or said.no_output}", flags=flags)

    def _shown(self) -> str:
        return shorten(shlex.join(part.replace(FILE, self.filename) for part in self.command), 200)


class _Watch(asyncio.SubprocessProtocol):
    """Keeps the last bytes of the output, and notes the end of the process and of its output."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.tail = bytearray()
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.tail += data
        if len(self.tail) > 2 * self.keep:
            del self.tail[: -self.keep]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.drained.set()

    def process_exited(self) -> None:
        self.exited.set()


def _send(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    pipe: Any = transport.get_pipe_transport(0)
    pipe.write(data)
    pipe.close()  # once all is written


def _kill(transport: asyncio.SubprocessTransport) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(transport.get_pid(), signal.SIGKILL)
        else:  # pragma: no cover
            transport.kill()


def _check(settings: CommandEvaluator) -> None:
    command = settings.command
    if isinstance(command, (str, bytes)) or not command or not all(isinstance(part, str) for part in command):
        raise ConfigurationError(
            f"CommandEvaluator({command!r:.80}): give program and arguments as a list, such as ['pytest', '-q']; "
            "shlex.split makes one of a shell line."
        )
    for name, value, whole in (
        ("timeout_s", settings.timeout_s, False),
        ("max_output_chars", settings.max_output_chars, True),
    ):
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not value > 0:
            raise ConfigurationError(f"CommandEvaluator({name}={value!r}): give a number above 0.")
    try:
        re.compile(settings.pass_pattern or "")
    except (re.error, TypeError) as error:
        raise ConfigurationError(
            f"CommandEvaluator(pass_pattern={settings.pass_pattern!r:.80}): give a regular expression ({error})."
        ) from None
    if settings.input not in ("file", "stdin"):
        raise ConfigurationError(f"CommandEvaluator(input={settings.input!r}): give 'file' or 'stdin'.")
    if settings.input == "stdin" and any(FILE in part for part in command):
        raise ConfigurationError("CommandEvaluator(input='stdin') writes no file that {file} could stand for.")
    for file in (settings.filename, *(settings.files or {})):
        path = PurePath(file)
        if not file or path.is_absolute() or ".." in path.parts:
            raise ConfigurationError(f"CommandEvaluator: {file!r} is not a file name inside the temporary directory.")
