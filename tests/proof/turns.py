"""Turns that say who took them and what they saw, so that a reader can tell whether any was lost, torn or mixed."""

from __future__ import annotations

from collections.abc import Sequence

from reactflow import ChatMemoryAdvisor, ChatRequest, ChatResponse, SimpleReactAgent, WindowChatMemory
from reactflow.messages import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage
from reactflow.store import ConversationStore

MESSAGES_PER_TURN = 4


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


class Counting:
    """Calls the tool once, then answers with the question and how many messages stood before it."""

    name = "counting"

    def __init__(self, padding: int = 0) -> None:
        self.padding = "x" * padding

    async def complete(self, request: ChatRequest) -> ChatResponse:
        question = request.run.question
        usage = Usage(1, 1)
        if isinstance(request.messages[-1], ToolMessage):
            before = request.messages.index(question)
            return ChatResponse(AssistantMessage(f"{question.text} {before} {self.padding}".strip()), usage)
        call = ToolCall(f"call {question.text}", "look", f'{{"at": "{question.text}"}}')
        return ChatResponse(AssistantMessage("", (call,)), usage)


def agent_on(store: ConversationStore, padding: int = 0) -> SimpleReactAgent:
    """An agent that keeps whole turns in *store* and sees all of them."""
    memory = ChatMemoryAdvisor(WindowChatMemory(100_000, store), keep="turn")
    return SimpleReactAgent(model=Counting(padding), tools=[look], advisors=[memory], react_prompt=None)


async def all_messages(store: ConversationStore, conversation_id: str) -> list[Message]:
    """The whole conversation, oldest first; its numbers must rise."""
    found: list[Message] = []
    last = 0
    while page := await store.oldest(conversation_id, 1000, after=last):
        numbers = [last, *(stored.sequence for stored in page)]
        assert numbers == sorted(set(numbers))
        found += [stored.message for stored in page]
        last = numbers[-1]
    return found


def check_turns(messages: Sequence[Message]) -> list[str]:
    """Check that *messages* are whole turns, each of which saw all before it; return their questions."""
    assert len(messages) % MESSAGES_PER_TURN == 0, "half a turn"
    questions = []
    for start in range(0, len(messages), MESSAGES_PER_TURN):
        question, call, result, answer = messages[start : start + MESSAGES_PER_TURN]
        assert isinstance(question, UserMessage)
        assert isinstance(call, AssistantMessage)
        assert (call.tool_calls[0].id, len(call.tool_calls)) == (f"call {question.text}", 1)
        assert result == ToolMessage(f"saw {question.text}", f"call {question.text}", "look")
        assert isinstance(answer, AssistantMessage)
        assert answer.text.split(" ")[:2] == [question.text, str(start)], "it did not see the turns before it"
        questions.append(question.text)
    return questions
