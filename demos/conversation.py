"""An agent with a logging and a memory advisor: each model call is logged, each turn is remembered.

python -m reactflow.demos.conversation
"""

from __future__ import annotations

import asyncio
import sys

import structlog

from reactflow import ChatMemoryAdvisor, LoggingAdvisor, SimpleReactAgent, WindowChatMemory
from reactflow.demos._common import choose_model
from reactflow.tools import weather

QUESTIONS = ("What is the weather in Paris today?", "And tomorrow?")


def main() -> None:
    """Ask two questions in one conversation; the second makes sense only with the first."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    memory = WindowChatMemory(max_messages=10)
    agent = SimpleReactAgent(
        model=choose_model(), tools=[weather], advisors=[LoggingAdvisor(), ChatMemoryAdvisor(memory)]
    )
    print(agent.explain())
    for question in QUESTIONS:
        remembered = asyncio.run(memory.get("demo"))
        print(f"\n> {question}   ({len(remembered)} messages remembered)")
        print(agent.call(question, conversation_id="demo"))


if __name__ == "__main__":
    main()
