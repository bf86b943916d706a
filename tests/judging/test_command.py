import asyncio
import os
import re
import sys
import time
from pathlib import Path

import pytest

from reactflow.errors import ConfigurationError
from reactflow.judge import Draft, Evaluator
from reactflow.judging.evaluators import CommandEvaluator
from reactflow.judging.runners import RUNNERS
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.result import Judgement
from reactflow.threads import run_in_thread

PYTHON = sys.executable


def draft_of(text="hello", question="Say hello."):
    return Draft(question, text, "", ChatRequest(messages=(), run=Run(UserMessage(question))))


def script(code, *arguments, **settings):
    return CommandEvaluator([PYTHON, "-c", code, *arguments], **settings)


async def test_exit_code_0_passes():
    evaluator = script("import sys; sys.exit(open(sys.argv[1]).read() != 'hello')", "{file}")

    assert await evaluator.evaluate(draft_of("hello")) == Judgement(True)
    assert (await evaluator.evaluate(draft_of("bye"))).passed is False


async def test_the_real_output_is_the_feedback():
    evaluator = script("import sys; print('expected 2'); print('got 3', file=sys.stderr); sys.exit(3)")

    judgement = await evaluator.evaluate(draft_of())

    assert judgement.passed is False
    assert judgement.feedback.startswith(f"The check `{PYTHON} -c 'import sys;")
    assert "` failed with exit code 3. The end of its output:\n\n" in judgement.feedback
    assert sorted(judgement.feedback.split("\n\n")[1].split("\n")) == ["expected 2", "got 3"]


async def test_the_feedback_follows_the_language_of_the_question():
    judgement = await script("exit(1)").evaluate(draft_of(question="写一个函数"))

    assert judgement.feedback.endswith("失败，退出码 1。输出的结尾：\n\n（没有输出）")


async def test_a_test_suite_beside_the_answer_is_run_on_its_code():
    evaluator = CommandEvaluator(
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function"],
        filename="answer.py",
        code_language="python",
        files={"test_answer.py": "from answer import add\n\ndef test_add():\n    assert add(2, 3) == 5\n"},
    )

    wrong = await evaluator.evaluate(draft_of("Sure:\n```python\ndef add(a, b):\n    return a - b\n```\nDone."))
    right = await evaluator.evaluate(draft_of("Sure:\n```python\ndef add(a, b):\n    return a + b\n```\nDone."))

    assert "assert -1 == 5" in wrong.feedback
    assert right == Judgement(True)


async def test_nothing_to_check_is_no_pass():
    judgement = await script("exit(5)").evaluate(draft_of())

    assert judgement.passed is False
    assert "found nothing to run (exit code 5)" in judgement.feedback
    assert judgement.flags == ("No check ran, so the draft is not known to be right.",)


async def test_which_codes_mean_that_nothing_was_checked_can_be_told():
    assert (await script("exit(5)", no_check_codes=()).evaluate(draft_of())).flags == ()
    assert (await script("exit(0)", no_check_codes=[0]).evaluate(draft_of())).passed is False


PYTEST = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function"]
UNITTEST = [PYTHON, "-m", "unittest", "test_answer"]
TESTS = "import unittest\nimport answer\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        answer.f()\n"


@pytest.mark.parametrize("command", [PYTEST, UNITTEST], ids=["pytest", "unittest"])
async def test_a_program_that_ends_the_test_run_before_its_tests_does_not_pass(command):
    evaluator = CommandEvaluator(command, filename="answer.py", files={"test_answer.py": TESTS})

    quits = await evaluator.evaluate(draft_of("import os\nos._exit(0)"))
    quits_in_the_test = await evaluator.evaluate(draft_of("def f():\n    import os\n    os._exit(0)"))
    passes = await evaluator.evaluate(draft_of("def f():\n    pass"))

    assert (quits.passed, quits_in_the_test.passed, passes) == (False, False, Judgement(True))
    assert "ended with exit code 0, but its output does not show that any check passed" in quits.feedback
    assert quits.flags[0].startswith("The output has nothing that matches pass_pattern=")


async def test_tests_that_were_all_skipped_are_no_pass():
    tests = "import pytest\n\n@pytest.mark.skip\ndef test_it():\n    pass\n"

    assert (await CommandEvaluator(PYTEST, files={"test_answer.py": tests}).evaluate(draft_of())).passed is False


@pytest.mark.parametrize("skip", ["@unittest.skip('later')", "@unittest.expectedFailure"])
async def test_unit_tests_of_which_none_passed_are_no_pass(skip):
    body = "def test_it(self):\n        raise ValueError"
    tests = f"import unittest\n\nclass T(unittest.TestCase):\n    {skip}\n    {body}\n"

    assert (await CommandEvaluator(UNITTEST, files={"test_answer.py": tests}).evaluate(draft_of())).passed is False


@pytest.mark.parametrize("quiet", ["-qq", "-q", "-v"])
async def test_what_a_quiet_test_run_shows_of_its_tests_counts_too(quiet):
    evaluator = CommandEvaluator([*PYTEST, quiet], filename="answer.py", files={"test_answer.py": TESTS})
    skipped = "import pytest\n\n@pytest.mark.skip\ndef test_it():\n    pass\n"

    quits = await evaluator.evaluate(draft_of("def f():\n    import os\n    os._exit(0)"))
    fails = await evaluator.evaluate(draft_of("def f():\n    raise ValueError"))
    passes = await evaluator.evaluate(draft_of("def f():\n    pass"))
    none_ran = await CommandEvaluator([*PYTEST, quiet], files={"test_answer.py": skipped}).evaluate(draft_of())

    assert (quits.passed, fails.passed, passes, none_ran.passed) == (False, False, Judgement(True), False)


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("Ran 2 tests in 0.000s\n\nOK", True),
        ("Ran 2 tests in 0.000s\n\nFAILED (failures=1)\nOK", False),
        ("Ran 2 tests in 0.1s\n\nFAILED (errors=2)\nRan 2 tests in 0.1s\n\nOK (skipped=1)", False),
    ],
)
def test_what_unittest_prints_says_whether_a_test_passed_and_none_failed(output, shown):
    assert bool(re.search(RUNNERS["unittest"], output)) is shown


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("..s.  [100%]", True),
        (".....  [ 50%]\nsssss  [100%]", True),
        ("1.s  [3/3]", False),
        ("..s  [3/3]", True),
        ("..s  [2/3]", False),
        ("sxX  [100%]", False),
        (".....  [ 50%]\n....", False),
        ("...", False),
        ("12 passed in 0.1s", True),
        ("0 passed", False),
        ("." * 100_000, False),
        (".  [ 1%]\n" * 20_000, False),
        ("1 failed, 1 passed in 0.09s", False),
        ("=== 1 passed, 1 error in 0.10s ===", False),
        ("=== 2 failed, 1 passed, 3 subtests passed in 75.31s (0:01:15) ===", False),
        ("1 subtests failed, 1 passed in 0.1s", False),
        ("1 failed in 0.1s\n2 passed in 0.2s", False),
        ("1 passed, 1 xfailed in 0.1s", True),
        ("3 failed, as it should\n2 passed in 0.2s", True),
        (".F..  [ 50%]\n....  [100%]", False),
        ("E...  [ 50%]\n....  [100%]", False),
        (".F  [100%]\nE  assert '2 passed' == ''", False),
        ("F" * 100_000, False),
        ("1 failed, " * 10_000 + "in 1s", False),
    ],
)
def test_what_pytest_prints_says_whether_a_test_passed(output, shown):
    assert bool(re.search(RUNNERS["pytest"], output)) is shown


FAILS = "def f():\n    print('OK', end='')\n    raise ValueError"
TWO = TESTS + "    def test_that(self):\n        print()\n"


@pytest.mark.parametrize("runner", ["pytest -q", "pytest -qq", "pytest -v", "unittest"])
async def test_tests_that_fail_are_no_pass_where_the_exit_code_is_that_of_the_next_program_in_a_pipe(runner):
    options = " -p no:cacheprovider -o asyncio_default_fixture_loop_scope=function" if "pytest" in runner else ""
    line = f"{PYTHON} -m {runner}{options} test_answer{'.py' if options else ''} 2>&1 | tee log"
    evaluator = CommandEvaluator(["sh", "-c", line], filename="answer.py", files={"test_answer.py": TWO})

    fails, passes = [await evaluator.evaluate(draft_of(text)) for text in (FAILS, "def f():\n    pass")]

    assert (fails.passed, passes) == (False, Judgement(True))


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        (["pytest"], "pytest"),
        (["venv/bin/py.test"], "pytest"),
        (["/usr/bin/pytest-3", "-qq"], "pytest"),
        (["pytest.exe"], "pytest"),
        (["pytest", "-m", "unittest"], "pytest"),
        (["python3.11", "-X", "dev", "-I", "-m", "pytest", "-q"], "pytest"),
        (["python", "-mpytest"], "pytest"),
        (["python", "-Bm", "unittest", "-q"], "unittest"),
        (["coverage", "run", "--source", "x", "-m", "pytest"], "pytest"),
        (["uv", "run", "pytest", "-q", "tests"], "pytest"),
        (["env", "A=1", "timeout", "9", "python", "-m", "pytest"], "pytest"),
        (["sh", "-c", "pytest -qq"], "pytest"),
        (["bash", "-lc", "cd x&&A=1 exec python -m unittest; echo 'a b'"], "unittest"),
        (["sh", "-c", "if true\nthen pytest # all\nfi"], "pytest"),
        (["sh", "-c", "echo pytest"], None),
        (["sh", "-c", "echo 'pytest"], None),
        (["sh", "-c", "x; ; (y)"], None),
        (["sh", "-c"], None),
        (["sh", "pytest"], None),
        (["ruff", "check", "-c", "pytest.toml"], None),
        (["ruff", "check", "pytest"], None),
        (["python", "check.py", "-m", "pytest"], None),
        (["python", "-m", "mypy", "pytest"], None),
        (["python", "-m"], None),
        (["python", "-i"], None),
        (["uv", "run", "ruff", "check"], None),
    ],
)
def test_a_test_runner_is_known_by_the_program_that_is_run(command, runner):
    assert CommandEvaluator(command).pass_pattern == RUNNERS.get(runner, "")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([PYTHON, "-S", "-m", "pytest", "-q"], "No module named pytest. Install pytest where it runs."),
        (["/bin/sh", "-c", "pytest -q"], "not found. Install pytest where it runs."),
    ],
)
async def test_a_test_runner_that_is_not_installed_is_no_fault_of_the_draft(command, said):
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        await CommandEvaluator(command, env={"PATH": "/nowhere"}).evaluate(draft_of())


async def test_a_draft_that_needs_what_is_not_installed_is_rejected():
    evaluator = CommandEvaluator(UNITTEST, filename="answer.py", files={"test_answer.py": TESTS})

    judgement = await evaluator.evaluate(draft_of("import unittest.nothing"))

    assert judgement.passed is False
    assert "No module named 'unittest.nothing'" in judgement.feedback


async def test_what_the_output_must_show_can_be_told():
    assert (await script("print('3 checks ran')", pass_pattern=r"[1-9]\d* checks").evaluate(draft_of())).passed is True
    assert (await script("print('0 checks ran')", pass_pattern=r"[1-9]\d* checks").evaluate(draft_of())).passed is False
    assert CommandEvaluator(["pytest"], pass_pattern="").pass_pattern == ""


async def test_a_check_that_shows_no_pass_is_told_in_the_language_of_the_question():
    judgement = await script("print('ok')", pass_pattern="passed").evaluate(draft_of(question="写一个函数"))

    assert judgement.feedback.endswith("可能是答案中途结束了它。输出的结尾：\n\nok")


async def test_the_draft_can_go_to_standard_input():
    evaluator = script("import sys; sys.exit(sys.stdin.buffer.read().decode() != '晴 ' * 100_000)", input="stdin")

    assert await evaluator.evaluate(draft_of("晴 " * 100_000)) == Judgement(True)


async def test_a_command_that_never_reads_its_input_does_not_hang():
    assert await script("pass", input="stdin").evaluate(draft_of("x" * 1_000_000)) == Judgement(True)


async def test_without_standard_input_the_command_reads_nothing():
    assert await script("import sys; sys.exit(sys.stdin.read() != '')").evaluate(draft_of()) == Judgement(True)


async def test_files_are_written_as_they_are():
    code = "import sys; sys.exit([open(name, 'rb').read() for name in ('a/b.txt', 'answer.txt')] != [b'x\\r\\n', b'?'])"
    evaluator = script(code, files={"a/b.txt": "x\r\n"})

    assert await evaluator.evaluate(draft_of("\ud800")) == Judgement(True)


async def test_endless_output_is_bounded_and_its_end_is_kept():
    evaluator = script("print('x' * 5_000_000); print('the end'); exit(1)", max_output_chars=100)

    output = (await evaluator.evaluate(draft_of())).feedback.split("\n\n")[1]

    assert output == "…" + "x" * 91 + "\nthe end"


async def test_colours_control_characters_and_temporary_paths_are_left_out():
    code = """
import os
print("\\x1b[31mred\\x1b[0m\\x00", os.path.realpath("answer.txt"), os.getcwd(), "\\x1b]0;title\\x07end")
exit(1)
"""

    output = (await script(code).evaluate(draft_of())).feedback.split("\n\n")[1]

    assert output == "red answer.txt . end"


async def test_a_program_that_is_killed_is_named_with_its_signal():
    judgement = await script("import os; os.kill(os.getpid(), 11)").evaluate(draft_of())

    assert "was ended by signal 11" in judgement.feedback


async def test_the_time_is_limited():
    for limit in (0.5, 5, 20):  # a slow machine may need longer to start it
        started = time.monotonic()
        judgement = await script("print('begun', flush=True); import time; time.sleep(600)", timeout_s=limit).evaluate(
            draft_of()
        )
        assert time.monotonic() - started < limit + 30
        if "begun" in judgement.feedback:
            break

    assert judgement.passed is False
    assert f"did not end within {limit} seconds. The end of its output:\n\nbegun" in judgement.feedback
    assert judgement.flags == (f"The check did not end within {limit} seconds.",)


GRANDCHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(float(sys.argv[2]))
sys.exit(1)
"""


def wait_for(condition):
    for _ in range(1500):
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_gone(pid):
    def dead():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    return wait_for(dead)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks for processes in /proc")
async def test_nothing_is_left_behind_when_the_time_is_up(tmp_path):
    pid = tmp_path / "pid"
    for limit in (1, 10, 40):  # a slow machine may need longer to start both
        await script(GRANDCHILD, str(pid), "600", timeout_s=limit).evaluate(draft_of())
        if pid.exists() and pid.read_text():
            break

    assert is_gone((tmp_path / "pid").read_text())


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks for processes in /proc")
async def test_nothing_is_left_behind_when_the_command_ends_before_its_children(tmp_path):
    started = time.monotonic()

    judgement = await script(GRANDCHILD, str(tmp_path / "pid"), "0").evaluate(draft_of())

    assert "exit code 1" in judgement.feedback
    assert time.monotonic() - started < 50
    assert is_gone((tmp_path / "pid").read_text())


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks for processes in /proc")
async def test_nothing_is_left_behind_after_a_cancel(tmp_path):
    task = asyncio.create_task(script(GRANDCHILD, str(tmp_path / "pid"), "600").evaluate(draft_of()))
    await run_in_thread(lambda: wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert is_gone((tmp_path / "pid").read_text())


async def test_a_process_that_left_the_group_cannot_hold_the_evaluator(tmp_path):
    code = GRANDCHILD.replace('time.sleep(600)"])', 'time.sleep(600)"], start_new_session=True)')
    started = time.monotonic()

    await script(code, str(tmp_path / "pid"), "0").evaluate(draft_of())

    assert time.monotonic() - started < 50
    os.kill(int((tmp_path / "pid").read_text()), 9)


async def test_the_temporary_directory_is_removed(tmp_path):
    await script("import os, sys; open(sys.argv[1], 'w').write(os.getcwd())", str(tmp_path / "cwd")).evaluate(
        draft_of()
    )

    folder = (tmp_path / "cwd").read_text()
    assert "reactflow-" in folder
    assert Path(folder).name not in os.listdir(Path(folder).parent)


async def test_it_can_run_elsewhere(tmp_path):
    (tmp_path / "rules.txt").write_text("hello")
    evaluator = script(
        "import sys; sys.exit(open('rules.txt').read() != open(sys.argv[1]).read())", "{file}", cwd=tmp_path
    )

    assert await evaluator.evaluate(draft_of("hello")) == Judgement(True)


async def test_secrets_of_this_process_are_not_handed_on(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    code = "import os; exit('SOME_API_KEY' in os.environ or os.environ['MODE'] != 'test' or not os.environ['PATH'])"

    assert await script(code, env={"MODE": "test"}).evaluate(draft_of()) == Judgement(True)


async def test_many_commands_run_side_by_side():
    judgements = await asyncio.gather(*(script("exit(0)").evaluate(draft_of()) for _ in range(5)))

    assert judgements == [Judgement(True)] * 5


async def test_a_program_that_is_not_there_is_the_users_mistake():
    with pytest.raises(ConfigurationError, match="cannot start 'no-such-program-here -q'"):
        await CommandEvaluator(["no-such-program-here", "-q"]).evaluate(draft_of())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"command": "pytest -q"}, "give program and arguments as a list"),
        ({"command": []}, "give program and arguments as a list"),
        ({"command": ["pytest", 1]}, "give program and arguments as a list"),
        ({"timeout_s": 0}, "timeout_s=0"),
        ({"timeout_s": True}, "timeout_s=True"),
        ({"timeout_s": float("nan")}, "timeout_s=nan"),
        ({"max_output_chars": 1.5}, "max_output_chars=1.5"),
        ({"pass_pattern": "("}, "pass_pattern='('"),
        ({"pass_pattern": 1}, "pass_pattern=1"),
        ({"input": "pipe"}, "input='pipe'"),
        ({"command": ["cat", "{file}"], "input": "stdin"}, "writes no file"),
        ({"filename": "../x"}, "'../x' is not a file name"),
        ({"filename": ""}, "'' is not a file name"),
        ({"files": {"/etc/x": ""}}, "'/etc/x' is not a file name"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(settings, words):
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        CommandEvaluator(**{"command": ["true"], **settings})


def test_a_command_evaluator_asks_no_model():
    evaluator = CommandEvaluator(["true"])

    assert isinstance(evaluator, Evaluator)
    assert evaluator.uses_model is False
