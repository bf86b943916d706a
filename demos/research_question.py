"""A question about something recent: draft, look up what is uncertain, and revise with references that were checked.

python -m reactflow.demos.research_question

After Vahe Sahakyan, "Reflexion", on Towards AI.  The program runs the searches, in a bundled collection of documents.
Without a key the model is scripted: it reads its prompt, and says only what follows from the evidence in it.
"""

from __future__ import annotations

import os

from reactflow import ChatModel, ResearchReflexion
from reactflow.demos._common import choose_model, watch
from reactflow.demos._scripted_research import respond, revise
from reactflow.testing import ScriptedChatModel
from reactflow.tools.search import search

QUESTION = "Who won the Nobel Prize in Physics in 2025 and why?"


def researcher(model: ChatModel, revisor: ChatModel) -> ResearchReflexion:
    """The workflow: at most four rounds of research."""
    return ResearchReflexion(model, search, max_iterations=4, revisor=revisor, name="research-question")


def main() -> None:
    """Answer the question, and show drafts, searches and checks on the way."""
    if os.environ.get("OPENAI_API_KEY", "").strip():
        model = revisor = choose_model()
    else:
        print("Scripted roles, because OPENAI_API_KEY is not set. For a real model: export OPENAI_API_KEY=...")
        model, revisor = ScriptedChatModel(respond), ScriptedChatModel(*[revise] * 4)
    print(f"Question: {QUESTION}")
    watch(researcher(model, revisor).stream(QUESTION))


if __name__ == "__main__":
    main()
