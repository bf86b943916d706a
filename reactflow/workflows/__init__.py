"""Workflows that draft, judge and draft again, on one bounded loop.

Every one is an agent too: ``call``, ``run``, ``arun``, ``stream`` and ``astream``, a role in another workflow, or a
tool.
"""

from reactflow.workflows.attempt import Attempt, WorkflowResult
from reactflow.workflows.best_of_n import BestOfN
from reactflow.workflows.critic_refiner import CriticRefiner, reflect_with_budget
from reactflow.workflows.drafter_critic import DrafterCritic
from reactflow.workflows.episodic_memory import EpisodicMemory, FileLessons, Lesson, StoredLessons
from reactflow.workflows.loop_config import LoopConfig, LoopResult
from reactflow.workflows.plain_reflexion import ReflexionState, reflexion_loop
from reactflow.workflows.reflexion import Reflexion, ReflexionResult
from reactflow.workflows.research import DraftOutput, FinalOutput, ResearchReflexion, ResearchResult, Source
from reactflow.workflows.workflow import Workflow

__all__ = [
    "Attempt",
    "BestOfN",
    "CriticRefiner",
    "DraftOutput",
    "DrafterCritic",
    "EpisodicMemory",
    "FileLessons",
    "FinalOutput",
    "Lesson",
    "LoopConfig",
    "LoopResult",
    "Reflexion",
    "ReflexionResult",
    "ReflexionState",
    "ResearchReflexion",
    "ResearchResult",
    "Source",
    "StoredLessons",
    "Workflow",
    "WorkflowResult",
    "reflect_with_budget",
    "reflexion_loop",
]
