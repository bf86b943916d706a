"""ReAct agents with an ordered advisor chain, and reflection workflows that tell the truth about their answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactflow.advisors.chat_memory import ChatMemoryAdvisor
from reactflow.advisors.logging import LoggingAdvisor
from reactflow.advisors.reflection import ReflectionAdvisor
from reactflow.advisors.retry import RetryAdvisor
from reactflow.advisors.safe_guard import SafeGuardAdvisor
from reactflow.agent import SimpleReactAgent
from reactflow.budget import Budget, Price
from reactflow.chain import Advisor, Handler, Order, ToolAdvisor, ToolRequest, advisor
from reactflow.errors import (
    BudgetExceeded,
    ConfigurationError,
    DuplicateToolError,
    ModelBehaviorError,
    ProviderError,
    ReactflowError,
    StoreError,
    ToolError,
    WorkflowError,
)
from reactflow.judge import Draft, Evaluator, LLMJudge
from reactflow.judging.evaluators import CommandEvaluator, SchemaEvaluator
from reactflow.memory import ChatMemory, InMemoryStore, WindowChatMemory
from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage
from reactflow.model import ChatModel, ChatRequest, ChatResponse, ToolSpec
from reactflow.reflection import ReflectionAgent
from reactflow.result import AgentResult, Issue, Judgement, Reflection, StopReason
from reactflow.toolbox import Tool, ToolContext, tool

if TYPE_CHECKING:
    from reactflow.openai_model import OpenAIChatModel

__version__ = "0.1.0"

__all__ = [
    "Advisor",
    "AgentResult",
    "AssistantMessage",
    "Budget",
    "BudgetExceeded",
    "ChatMemory",
    "ChatMemoryAdvisor",
    "ChatModel",
    "ChatRequest",
    "ChatResponse",
    "CommandEvaluator",
    "ConfigurationError",
    "Draft",
    "DuplicateToolError",
    "Evaluator",
    "Handler",
    "InMemoryStore",
    "Issue",
    "Judgement",
    "LLMJudge",
    "LoggingAdvisor",
    "Message",
    "ModelBehaviorError",
    "OpenAIChatModel",
    "Order",
    "Price",
    "ProviderError",
    "ReactflowError",
    "Reflection",
    "ReflectionAdvisor",
    "ReflectionAgent",
    "RetryAdvisor",
    "SafeGuardAdvisor",
    "SchemaEvaluator",
    "SimpleReactAgent",
    "StopReason",
    "StoreError",
    "SystemMessage",
    "Tool",
    "ToolAdvisor",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolMessage",
    "ToolRequest",
    "ToolSpec",
    "Usage",
    "UserMessage",
    "WindowChatMemory",
    "WorkflowError",
    "__version__",
    "advisor",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Load the openai client only where it is used: it takes longer to import than all of reactflow."""
    if name == "OpenAIChatModel":
        from reactflow.openai_model import OpenAIChatModel

        return OpenAIChatModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
