"""A coding task that is tried until its tests pass, each time with the lessons of the failed runs.

python -m reactflow.demos.coding_task

After "AI Engineering Patterns: Reflexion Loop".  The tests really run, in a process of their own and for ten seconds at
most.  Without a key actor and reflector are scripted: they read their prompts, and say only what follows from them.
"""

from __future__ import annotations

import os
import sys

from reactflow import ChatModel, CommandEvaluator, EpisodicMemory, Reflexion
from reactflow.demos._common import choose_model, watch
from reactflow.demos._scripted_coding import attempt, reflect
from reactflow.testing import ScriptedChatModel

TASK = """Write the Python module slug.py with one function, slug(title: str) -> str, for the addresses of web pages.
A slug is in lower case and holds only a-z, 0-9 and single hyphens between words. Answer with the code only."""

TESTS = """
import unittest
from slug import slug

class Slugs(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slug("Hello World 2"), "hello-world-2")
    def test_accents(self):
        self.assertEqual(slug("Crème Brûlée"), "creme-brulee")
    def test_punctuation(self):
        self.assertEqual(slug("(Really?) Yes!"), "really-yes")
"""


def solver(actor: ChatModel, reflector: ChatModel) -> Reflexion:
    """The workflow: at most four attempts, each judged by the test suite."""
    command = [sys.executable, "-m", "unittest", "test_slug"]
    tests = CommandEvaluator(
        command, files={"test_slug.py": TESTS}, filename="slug.py", code_language="python", timeout_s=10
    )
    return Reflexion(actor, tests, reflector, max_attempts=4, memory=EpisodicMemory(max_lessons=3), name="coding-task")


def main() -> None:
    """Solve the task, and show attempts, test runs and lessons on the way."""
    if os.environ.get("OPENAI_API_KEY", "").strip():
        actor = reflector = choose_model()
    else:
        print("Scripted roles, because OPENAI_API_KEY is not set. For a real model: export OPENAI_API_KEY=...")
        actor, reflector = ScriptedChatModel(*[attempt] * 4), ScriptedChatModel(*[reflect] * 4)
    print(f"Task: {TASK}")
    watch(solver(actor, reflector).stream(TASK))


if __name__ == "__main__":
    main()
