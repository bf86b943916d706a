"""A larger limit never returns a worse-ranked answer: of every workflow, and of the rounds of an agent.

A rank is that of the text that was returned and of nothing else: one that nobody judged has no score, whatever it was
made of.  The roles answer by what they are shown, so that they say the same under every limit.
"""

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactflow.budget import Budget
from reactflow.judge import Draft
from reactflow.messages import AssistantMessage, Usage
from reactflow.model import ChatResponse
from reactflow.reflection import ReflectionAgent
from reactflow.result import Judgement, rank
from reactflow.workflows.best_of_n import BestOfN
from reactflow.workflows.critic_refiner import CriticRefiner
from reactflow.workflows.drafter_critic import DrafterCritic
from reactflow.workflows.loop_config import LoopConfig
from reactflow.workflows.reflexion import Reflexion
from reactflow.workflows.research import ResearchReflexion

NAMES = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf"]
URL = "https://example.org/page"
TOKENS = 10  # of every call

verdicts = st.lists(
    st.tuples(st.sampled_from([False, False, False, True]), st.none() | st.integers(0, 100)), min_size=4, max_size=4
)


class Speaker:
    """A model that answers by a function of what it reads, and whose every call costs the same."""

    def __init__(self, function):
        self.function = function
        self.name = "speaker"

    async def complete(self, request):
        text = self.function("\n".join(message.text for message in request.messages))
        return ChatResponse(AssistantMessage(text), Usage(TOKENS - 1, 1), "stop")


def in_turn(*texts):
    """The next text each time; a new one for every run."""
    replies = iter(texts)
    return Speaker(lambda prompt: next(replies))


def judged(verdicts, text):
    passed, score = verdicts[next(at for at, name in enumerate(NAMES) if name in text)]
    return Judgement(passed, None if passed else "No.", None if score is None else score / 100)


def critic_refiner(verdicts, limit, budget, **settings):
    def review(prompt):
        draft = re.findall(rf"letter ({'|'.join(NAMES)})\b", prompt)[-1]
        passed, score = verdicts[NAMES.index(draft)]
        issues = [] if passed else [{"snippet": draft, "suggestion": "another", "severity": 4, "category": draft}]
        return json.dumps({"issues": issues} | ({} if score is None else {"overall_score": score}))

    def edited(pair):
        return json.dumps({"edits": [{"snippet": pair[0], "replacement": pair[1]}]})

    writer = in_turn("letter alpha", *map(edited, itertools.pairwise(NAMES)))
    config = LoopConfig(max_iterations=limit, max_total_tokens=None)
    return CriticRefiner(writer, Speaker(review), config=config, budget=budget, **settings)


def drafter_critic(verdicts, limit, budget):
    def critique(prompt):
        passed, score = judged_by(verdicts, prompt)
        share = {} if score is None else {"confidence": score / 100}
        return json.dumps({"verdict": "APPROVED" if passed else "REQUIRED_CHANGES", "suggestions": "No.", **share})

    return DrafterCritic(
        in_turn(*NAMES),
        Speaker(critique),
        max_iterations=limit,
        budget=budget,
        return_best=True,
        stop_when_stalled=False,
    )


def judged_by(verdicts, prompt):
    return verdicts[NAMES.index(re.findall("|".join(NAMES), prompt)[-1])]


def judging(verdicts):
    """A judge that is a model."""

    def verdict(prompt):
        passed, score = judged_by(verdicts, prompt)
        return json.dumps({"passed": passed, "feedback": "No.", "score": None if score is None else score / 100})

    return Speaker(verdict)


def best_of_n(verdicts, limit, budget):
    return BestOfN(in_turn(*NAMES), judging(verdicts), limit, budget=budget)


def reflexion(verdicts, limit, budget):
    return Reflexion(
        in_turn(*NAMES),
        judging(verdicts),
        in_turn(*(f"Lesson {number}." for number in range(9))),
        limit,
        budget=budget,
        stop_when_stalled=False,
    )


def research(verdicts, limit, budget):
    def replies():
        yield json.dumps({"answer": "alpha", "reflection": "?", "search_queries": ["q0"]})
        for number, (cited, score) in enumerate(verdicts, 1):
            invented = [f"https://fake.example/{n}" for n in range((score or 0) // 25)]
            references = [URL, *([] if cited else invented)] if score is not None else []
            revision = {"answer": NAMES[number], "reflection": "?", "references": references}
            said = json.dumps(revision | {"search_queries": [f"q{number}"]})
            yield from [said] * (1 if references else 2)

    return ResearchReflexion(
        in_turn(*replies()),
        lambda query: [{"url": URL, "title": "T", "text": "X"}],
        limit,
        budget=budget,
        stop_when_stalled=False,
    )


def rounds_of_an_agent(verdicts, limit, budget, **settings):
    def judge(draft: Draft):
        return judged(verdicts, draft.text)

    return ReflectionAgent(
        model=in_turn(*NAMES), evaluator=judge, max_reflection_rounds=limit, budget=budget, **settings
    )


WORKFLOWS = [critic_refiner, drafter_critic, best_of_n, reflexion, research, rounds_of_an_agent]


def rank_of(result):
    """The rank of the text that was returned; no two drafts of a run are alike."""
    given = [each.judgement for each in result.reflections if result.text.startswith(each.draft)]
    return rank(given[-1] if given else None)


@pytest.mark.parametrize("make", WORKFLOWS)
@settings(max_examples=25)
@given(verdicts=verdicts)
def test_more_rounds_never_return_a_worse_ranked_answer(make, verdicts):
    ranks = [rank_of(make([*verdicts, (False, 0)], limit, None).run("Write.")) for limit in range(1, 5)]

    assert ranks == sorted(ranks)


@pytest.mark.parametrize("make", WORKFLOWS)
@settings(max_examples=15)
@given(verdicts=verdicts)
def test_more_calls_or_tokens_never_return_a_worse_ranked_answer(make, verdicts):
    for limits in (
        [Budget(max_model_calls=calls) for calls in range(1, 12)],
        [Budget(max_tokens=calls * TOKENS) for calls in range(1, 12)],
    ):
        ranks = [rank_of(make([*verdicts, (False, 0)], 3, budget).run("Write.")) for budget in limits]

        assert ranks == sorted(ranks)


@pytest.mark.parametrize("make", [critic_refiner, rounds_of_an_agent])
@settings(max_examples=25)
@given(verdicts=verdicts)
def test_nor_do_more_rounds_where_the_last_revision_is_not_judged(make, verdicts):
    runs = [make([*verdicts, (False, 0)], limit, None, judge_final=False) for limit in range(1, 5)]
    ranks = [rank_of(workflow.run("Write.")) for workflow in runs]

    assert ranks == sorted(ranks)


@pytest.mark.parametrize("make", WORKFLOWS)
def test_a_text_that_nobody_judged_never_outranks_one_with_a_score(make):
    result = make([(False, 10), (False, 20), (False, 0), (False, 0), (False, 0)], 1, Budget(max_model_calls=3)).run("?")

    assert rank_of(result) > (False, -1.0)
