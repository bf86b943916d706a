"""The README's figures: how many model calls each workflow makes, at least and at most."""

import re
from pathlib import Path

import pytest

from reactflow import (
    BestOfN,
    CriticRefiner,
    Draft,
    DrafterCritic,
    LoopConfig,
    ReflectionAgent,
    Reflexion,
    ResearchReflexion,
)
from reactflow.testing import ScriptedChatModel

ROOT = Path(__file__).parents[2]
TEXTS = ("One two three.", "Red green blue, all of them.", "A quite different fourth text!", "Last of all, a fifth.")


def verdict(passes):
    """A judge that always says the same, for every kind of critic that there is."""
    word = "APPROVED" if passes else "REQUIRED_CHANGES"
    issues = "[]" if passes else '[{"severity": 5, "description": "It is %s wrong."}]'

    def say(request):
        number = len(request.run.drafts) + len(request.run.reflections)
        listed = issues % ("really ", "rather ", "very ", "so ")[number % 4] if not passes else issues
        return (
            f'{{"passed": {str(passes).lower()}, "verdict": "{word}", "confidence": 0.9, "issues": {listed}, '
            f'"feedback": "Change {number}.", "suggestions": "Change {number}.", "overall_score": 50, "score": 0.5}}'
        )

    return ScriptedChatModel(*[say] * 10)


def writer():
    return ScriptedChatModel(*TEXTS)


def no_check(draft: Draft):
    return False, f"{draft.text} is not it."


def research(queries):
    """A model that wants to look something up so many times, and never cites a source."""

    def say(request):
        asked = sum(role == "responder" or role == "revisor" for role in request.run.calls.elements())
        wanted = f'["query {asked}"]' if asked <= queries else "[]"
        return f'{{"answer": "{TEXTS[asked % 4]}", "reflection": "", "search_queries": {wanted}, "references": []}}'

    return ScriptedChatModel(*[say] * 20)


def search(query):
    return [{"url": f"https://example.org/{query[-1]}", "title": query, "text": query}]


def rewriting(passes, n):
    config = LoopConfig(max_iterations=n)
    return CriticRefiner(writer(), verdict(passes), ScriptedChatModel(*TEXTS[::-1]), config=config, mode="rewrite")


RUNS = {
    "ReflectionAgent": lambda passes, n: ReflectionAgent(
        model=writer(), judge_model=verdict(passes), max_reflection_rounds=n
    ),
    "DrafterCritic": lambda passes, n: DrafterCritic(writer(), verdict(passes), max_iterations=n),
    "CriticRefiner": rewriting,
    "Reflexion": lambda passes, n: Reflexion(
        writer(), (lambda draft: True) if passes else no_check, ScriptedChatModel(*TEXTS), max_attempts=n
    ),
    "ResearchReflexion": lambda passes, n: ResearchReflexion(research(0 if passes else 9), search, max_iterations=n),
    "BestOfN": lambda passes, n: BestOfN(writer(), verdict(passes), n),
}


def told() -> dict[str, str]:
    """What the README says: the last cell of each row of its table, by workflow."""
    rows = re.findall(r"^\| `(\w+)` \| .*\| ([^|]+) \|$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    return {name: cell.replace("*", "") for name, cell in rows}


def least_and_most(said: str, n: int) -> tuple[int, int]:
    """Read ``2 to 2n + 2`` or ``2n``."""
    ends = [eval(re.sub(r"(\d)n", r"\1*n", end), {"n": n}) for end in said.split(" to ")]
    return ends[0], ends[-1]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", RUNS)
def test_a_workflow_makes_as_many_model_calls_as_the_table_says(name, n):
    least, most = least_and_most(told()[name], n)

    assert RUNS[name](True, n).run("Write.").usage.model_calls == least
    assert RUNS[name](False, n).run("Write.").usage.model_calls == most


def test_both_tables_say_the_same():
    page = (ROOT / "docs" / "workflows.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| \[`(\w+)`\]\S+ \| .*\| ([^|]+) \|$", page, re.MULTILINE))

    assert {name: cell.replace("*", "") for name, cell in rows.items()} == told()
