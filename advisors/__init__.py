"""Ready advisors, one in each file."""

from reactflow.advisors.chat_memory import ChatMemoryAdvisor
from reactflow.advisors.logging import LoggingAdvisor
from reactflow.advisors.reflection import ReflectionAdvisor
from reactflow.advisors.retry import RetryAdvisor
from reactflow.advisors.safe_guard import SafeGuardAdvisor

__all__ = ["ChatMemoryAdvisor", "LoggingAdvisor", "ReflectionAdvisor", "RetryAdvisor", "SafeGuardAdvisor"]
