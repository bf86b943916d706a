"""An agent with a logging and a memory advisor: each model call is logged, each turn is remembered.

python -m reactflow.demos.conversation
"""

from __future__ import annotations

import asyncio

from reactflow import ChatMemoryAdvisor, LoggingAdvisor, SimpleReactAgent, WindowChatMemory
from reactflow.demos._common import choose_model
from reactflow.tools import weather

QUESTIONS = ("What is the weather in Paris today?", "What is the weather in Berlin today?")


def main() -> None:
    """Ask two questions in one conversation and show what the memory holds afterwards."""
    memory = WindowChatMemory(max_messages=10)
    agent = SimpleReactAgent(
        model=choose_model(), tools=[weather], advisors=[LoggingAdvisor(), ChatMemoryAdvisor(memory)]
    )
    print(agent.explain())
    for question in QUESTIONS:
        print(f"\n> {question}")
        print(agent.call(question, conversation_id="demo"))
    remembered = asyncio.run(memory.get("demo"))
    print(f"\nRemembered: {[type(message).__name__ for message in remembered]}")


if __name__ == "__main__":
    main()
