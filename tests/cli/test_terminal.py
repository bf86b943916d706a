"""The command line at a real (pseudo) terminal, read from its screen."""

import os
import re
import sys
import time

import pytest

pexpect = pytest.importorskip("pexpect")
pyte = pytest.importorskip("pyte")

AGENT = '''
import asyncio
from reactflow import Judgement, ReflectionAgent, SimpleReactAgent, WindowChatMemory
from reactflow.events import TextDelta
from reactflow.testing import ScriptedChatModel, calls, says


class Endless:
    """Writes until it is told to stop."""
    name = "endless"

    async def complete(self, request):
        if request.messages[-1].text != "go on":
            return await ScriptedChatModel(says("Hello 北京 👋")).complete(request)
        try:
            while True:
                request.emit(TextDelta("word "))
                await asyncio.sleep(0.02)
        finally:
            with open("closed", "w") as file:
                file.write("closed")


async def weather(city: str) -> str:
    """The weather."""
    await asyncio.sleep(0.3)
    return "晴 🌞 " * 30


endless = SimpleReactAgent(model=Endless(), memory=WindowChatMemory())
today = "北京今天晴朗，适合出门。"
tomorrow = today + "明天多云，请带伞，注意保暖，因为气温会下降很多。 Take an umbrella along."
reviewed = ReflectionAgent(
    model=ScriptedChatModel(calls("weather", city="北京"), says(today), says(tomorrow)),
    tools=[weather],
    evaluator=lambda draft: Judgement("明天" in draft.text, "Say what comes tomorrow."),
)
'''


class Terminal:
    """A program at a terminal, and what its screen shows."""

    def __init__(self, folder, *arguments, width=80, height=24, **environment):
        (folder / "mine.py").write_text(AGENT, "utf-8")
        env = os.environ | {"TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
        env.pop("COLUMNS", None)
        env.pop("LINES", None)
        command = [sys.executable, "-m", "reactflow", *arguments]
        self.program = pexpect.spawn(
            command[0], command[1:], dimensions=(height, width), env=env, cwd=str(folder), encoding=None, timeout=60
        )
        self.screen = pyte.HistoryScreen(width, height, history=1_000)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""

    def type(self, text):
        self.program.send(text.encode())

    @property
    def shown(self):
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def read(self, seconds=0.05):
        try:
            got = self.program.read_nonblocking(65_536, timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += got
        self.stream.feed(got)
        if b"\x1b[6n" in got:  # the line editor asks where the cursor is, and a terminal tells
            self.program.send(f"\x1b[{self.screen.cursor.y + 1};{self.screen.cursor.x + 1}R".encode())
        return True

    def wait_for(self, pattern, seconds=60):
        """Read until the screen shows *pattern*."""
        until = time.monotonic() + seconds
        while not re.search(pattern, self.shown, re.MULTILINE):
            assert time.monotonic() < until, f"no {pattern!r} on:\n{self.shown}"
            assert self.read() or re.search(pattern, self.shown, re.MULTILINE), f"ended at:\n{self.shown}"

    def end(self, seconds=60):
        """Read to the end, and give the exit code."""
        until = time.monotonic() + seconds
        while self.read():
            assert time.monotonic() < until, f"still running:\n{self.shown}"
        self.program.wait()
        return self.program.exitstatus


@pytest.fixture
def at_terminal(tmp_path):
    """Start programs, and end those that are left over."""
    started = []

    def start(*arguments, **settings):
        started.append(Terminal(tmp_path, *arguments, **settings))
        return started[-1]

    yield start
    for terminal in started:
        terminal.program.close(force=True)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_run_is_shown_at_any_width_and_the_answer_stands_below_it(at_terminal, width):
    terminal = at_terminal("ask", "天气?", "--agent", "mine:reviewed", width=width, height=40)

    assert terminal.end() == 0
    written = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.raw.decode())
    assert re.search(r'[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] weather\(city="北京"\) 0\.', written)  # while it ran
    lines = terminal.shown.splitlines()
    assert re.match(r'✓ weather\(city="北京"\) · 0\.', lines[1])
    assert lines[2].startswith("  晴 🌞")
    assert lines[2].endswith("…")
    assert [line for line in lines if line.startswith(("◆", "✗", "↻", "✓ a"))] == [
        "◆ draft 1 · 12 characters",
        "✗ rejected",
        "↻ revision 1",
        "◆ draft 2 · 60 characters",
        "✓ approved",
    ]
    assert lines[-1 if width > 60 else -2].startswith("approved · 3 rounds · 1 revision")
    answer = "".join(terminal.shown.split("✓ approved")[1].split("approved ·")[0].split())
    assert answer == "北京今天晴朗，适合出门。明天多云，请带伞，注意保暖，因为气温会下降很多。Takeanumbrellaalong."
    assert "⠙" not in terminal.shown


def test_no_color_writes_no_colour_and_marks_the_changes(at_terminal):
    terminal = at_terminal("ask", "天气?", "--agent", "mine:reviewed", NO_COLOR="1")

    assert terminal.end() == 0
    assert not re.search(rb"\x1b\[[0-9;]*3[0-9]m", terminal.raw)
    assert "{+明天多云" in terminal.shown


def test_a_dumb_terminal_gets_plain_lines(at_terminal):
    terminal = at_terminal("ask", "天气?", "--agent", "mine:reviewed", TERM="dumb")

    assert terminal.end() == 0
    assert b"\x1b" not in terminal.raw
    assert "✓ approved" in terminal.shown


def test_ctrl_c_ends_a_question_with_130_and_closes_the_models_stream(at_terminal, tmp_path):
    terminal = at_terminal("ask", "go on", "--agent", "mine:endless")
    terminal.wait_for("word word")

    terminal.type("\x03")

    assert terminal.end() == 130
    assert (tmp_path / "closed").exists()
    assert terminal.shown.splitlines()[-1] == "Interrupted."
    assert "word" not in terminal.shown


def test_ctrl_c_cancels_the_turn_and_not_the_chat_and_nothing_of_the_turn_is_kept(at_terminal, tmp_path):
    terminal = at_terminal("chat", "--agent", "mine:endless", height=40)
    terminal.wait_for(r"^>\Z")
    terminal.type("go on\r")
    terminal.wait_for("word word")

    terminal.type("\x03")
    terminal.wait_for("Cancelled; nothing of this turn is kept")
    assert (tmp_path / "closed").exists()

    terminal.type("/why\r")
    terminal.wait_for("The last turn was cancelled")
    terminal.type("/memory\r")
    terminal.wait_for("the model sees 0 messages")
    terminal.type("hello\r")
    terminal.wait_for("Hello 北京 👋")
    terminal.wait_for("answered · 1 round")
    terminal.type("/memory\r")
    terminal.wait_for("the model sees 2 messages")
    terminal.wait_for(r"^>\Z")
    terminal.type("\x03")
    terminal.wait_for("Ctrl-D or /quit ends the chat")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_a_message_may_have_several_lines_and_what_was_typed_is_there_after_a_restart(at_terminal):
    terminal = at_terminal("chat", "--agent", "mine:endless")
    terminal.wait_for(r"^>\Z")
    terminal.type("one\x1b\rtwo\\\rthree")
    terminal.wait_for("three")
    assert terminal.shown.splitlines()[-3:] == ["> one", "  two\\", "  three"]
    terminal.type("\r")
    terminal.wait_for("answered")
    terminal.type("/ex")
    terminal.type("it\r")
    assert terminal.end() == 0

    again = at_terminal("chat", "--agent", "mine:endless")
    again.wait_for(r"^>\Z")
    again.type("\x1b[A\x1b[A")
    again.wait_for("^> one")
    again.type("\x03")
    again.type("\x04")
    assert again.end() == 0


def test_tab_completes_a_command(at_terminal):
    terminal = at_terminal("chat", "--agent", "mine:endless")
    terminal.wait_for(r"^>\Z")

    terminal.type("/adv\t")

    terminal.wait_for("^> /advisors")
    terminal.type("\r")
    terminal.wait_for("model endless")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_a_question_is_wanted_where_a_person_sits_at_the_keyboard(at_terminal):
    terminal = at_terminal("ask")

    assert terminal.end() == 2
    assert "There is no question: reactflow ask" in terminal.shown
