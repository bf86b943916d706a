"""ReAct agents with an ordered advisor chain, and reflection workflows that tell the truth about their answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactflow.advisors import ChatMemoryAdvisor, LoggingAdvisor, ReflectionAdvisor, RetryAdvisor, SafeGuardAdvisor
from reactflow.agent import SimpleReactAgent
from reactflow.budget import Budget, Price
from reactflow.chain import Advisor, Handler, Order, ToolAdvisor, ToolRequest, advisor
from reactflow.errors import (
    BudgetExceeded,
    ConfigurationError,
    ConflictError,
    DuplicateToolError,
    ModelBehaviorError,
    ProviderError,
    ReactflowError,
    StoreError,
    ToolError,
    WorkflowError,
)
from reactflow.events import Emit, Event, RunFinished, TextDelta
from reactflow.judge import Draft, Evaluator, LLMJudge
from reactflow.judging.evaluators import CommandEvaluator, SchemaEvaluator
from reactflow.memory import ChatMemory, InMemoryStore, WindowChatMemory
from reactflow.memory_windows import SummarisingChatMemory, TokenWindowChatMemory
from reactflow.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage
from reactflow.model import ChatModel, ChatRequest, ChatResponse, Run, ToolSpec, ask
from reactflow.reflection import ReflectionAgent
from reactflow.result import AgentResult, EvalResult, Issue, Judgement, Reflection, StopReason
from reactflow.stores import open_store
from reactflow.toolbox import Tool, ToolContext, tool
from reactflow.workflows import (
    Attempt,
    BestOfN,
    CriticRefiner,
    DrafterCritic,
    DraftOutput,
    EpisodicMemory,
    FileLessons,
    FinalOutput,
    Lesson,
    LoopConfig,
    LoopResult,
    Reflexion,
    ReflexionResult,
    ReflexionState,
    ResearchReflexion,
    ResearchResult,
    Source,
    StoredLessons,
    Workflow,
    WorkflowResult,
    reflect_with_budget,
    reflexion_loop,
)

if TYPE_CHECKING:
    from reactflow.local_model import LocalChatModel
    from reactflow.openai_model import OpenAIChatModel

__version__ = "0.1.0"

__all__ = [
    "Advisor",
    "AgentResult",
    "AssistantMessage",
    "Attempt",
    "BestOfN",
    "Budget",
    "BudgetExceeded",
    "ChatMemory",
    "ChatMemoryAdvisor",
    "ChatModel",
    "ChatRequest",
    "ChatResponse",
    "CommandEvaluator",
    "ConfigurationError",
    "ConflictError",
    "CriticRefiner",
    "Draft",
    "DraftOutput",
    "DrafterCritic",
    "DuplicateToolError",
    "Emit",
    "EpisodicMemory",
    "EvalResult",
    "Evaluator",
    "Event",
    "FileLessons",
    "FinalOutput",
    "Handler",
    "InMemoryStore",
    "Issue",
    "Judgement",
    "LLMJudge",
    "Lesson",
    "LocalChatModel",
    "LoggingAdvisor",
    "LoopConfig",
    "LoopResult",
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
    "Reflexion",
    "ReflexionResult",
    "ReflexionState",
    "ResearchReflexion",
    "ResearchResult",
    "RetryAdvisor",
    "Run",
    "RunFinished",
    "SafeGuardAdvisor",
    "SchemaEvaluator",
    "SimpleReactAgent",
    "Source",
    "StopReason",
    "StoreError",
    "StoredLessons",
    "SummarisingChatMemory",
    "SystemMessage",
    "TextDelta",
    "TokenWindowChatMemory",
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
    "Workflow",
    "WorkflowError",
    "WorkflowResult",
    "__version__",
    "advisor",
    "ask",
    "open_store",
    "reflect_with_budget",
    "reflexion_loop",
    "tool",
]


def __dir__() -> list[str]:
    """All public names, the one that is loaded late included."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Load the openai library only where it is used: it takes longer to import than all of reactflow."""
    if name == "OpenAIChatModel":
        from reactflow.openai_model import OpenAIChatModel

        return OpenAIChatModel
    if name == "LocalChatModel":
        from reactflow.local_model import LocalChatModel

        return LocalChatModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
