"""A larger limit never returns a worse-ranked answer: of every workflow, and of the rounds of an agent.

A rank is that of the text that was returned and of nothing else: one that nobody judged has no score, whatever it was
made of.  The roles answer by what they are shown, so that they say the same under every limit: also where they write
the same again, and where the judge fails.
"""

import itertools
import json
import re
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reactflow.budget import Budget
from reactflow.errors import ModelBehaviorError
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

LAST = (False, 0)  # of a draft that only a mistake in a workflow would make
FAILS = None  # in the place of a verdict


@dataclass
class Case:
    """What the roles say: the drafts in turn, and passed and score, or FAILS, for each of NAMES."""

    verdicts: list
    drafts: list = field(default_factory=lambda: NAMES)

    def verdict_on(self, text):
        found = re.findall("|".join(NAMES), text)
        verdict = self.verdicts[NAMES.index(found[-1])]
        if verdict is FAILS:
            raise ModelBehaviorError("It said nothing.")
        return verdict


@st.composite
def cases(draw):
    """Any verdicts; often a judge that fails on one of the drafts, and often the same draft twice in a row, or more."""
    verdict = st.tuples(st.sampled_from([False, False, False, True]), st.none() | st.integers(0, 100))
    verdicts = draw(st.lists(verdict, min_size=4, max_size=4))
    if (place := draw(st.none() | st.integers(0, 3))) is not None:
        verdicts[place] = FAILS
    steps = draw(st.just([1] * 6) | st.lists(st.sampled_from([1, 1, 0]), min_size=6, max_size=6))
    return Case([*verdicts, LAST, LAST, LAST], [NAMES[place] for place in itertools.accumulate(steps, initial=0)])


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


def critic_refiner(case, limit, budget, **settings):
    def review(prompt):
        draft = re.findall(rf"letter ({'|'.join(NAMES)})\b", prompt)[-1]
        passed, score = case.verdict_on(draft)
        issues = [] if passed else [{"snippet": draft, "suggestion": "another", "severity": 4, "category": draft}]
        return json.dumps({"issues": issues} | ({} if score is None else {"overall_score": score}))

    def edited(pair):
        return json.dumps({"edits": [{"snippet": pair[0], "replacement": pair[1]}]})

    letters = [f"letter {name}" for name in case.drafts]
    again = letters[1:] if settings.get("mode") == "rewrite" else map(edited, itertools.pairwise(case.drafts))
    config = LoopConfig(max_iterations=limit, max_total_tokens=None)
    return CriticRefiner(in_turn(letters[0], *again), Speaker(review), config=config, budget=budget, **settings)


def critic_rewriter(case, limit, budget, **settings):
    return critic_refiner(case, limit, budget, mode="rewrite", **settings)


def drafter_critic(case, limit, budget, on_judge_error="accept"):
    def critique(prompt):
        passed, score = case.verdict_on(prompt)
        share = {} if score is None else {"confidence": score / 100}
        return json.dumps({"verdict": "APPROVED" if passed else "REQUIRED_CHANGES", "suggestions": "No.", **share})

    return DrafterCritic(
        in_turn(*case.drafts),
        Speaker(critique),
        max_iterations=limit,
        budget=budget,
        return_best=True,
        on_judge_error=on_judge_error,
    )


def judging(case):
    """A judge that is a model."""

    def verdict(prompt):
        passed, score = case.verdict_on(prompt)
        return json.dumps({"passed": passed, "feedback": "No.", "score": None if score is None else score / 100})

    return Speaker(verdict)


def best_of_n(case, limit, budget):
    return BestOfN(in_turn(*case.drafts), judging(case), limit, budget=budget)


def reflexion(case, limit, budget, on_judge_error="accept"):
    return Reflexion(
        in_turn(*case.drafts),
        judging(case),
        in_turn(*(f"Lesson {number}." for number in range(9))),
        limit,
        budget=budget,
        on_judge_error=on_judge_error,
    )


def research(case, limit, budget):
    def replies():
        yield json.dumps({"answer": case.drafts[0], "reflection": "?", "search_queries": ["q0"]})
        for number, name in enumerate(case.drafts[1:], 1):
            cited, score = case.verdicts[NAMES.index(name)] or (False, None)
            invented = [f"https://fake.example/{n}" for n in range((score or 0) // 25)]
            references = [URL, *([] if cited else invented)] if score is not None else []
            revision = {"answer": name, "reflection": "?", "references": references}
            said = json.dumps(revision | {"search_queries": [f"q{number}"]})
            yield from [said] * (1 if references else 2)

    return ResearchReflexion(
        in_turn(*replies()), lambda query: [{"url": URL, "title": "T", "text": "X"}], limit, budget=budget
    )


def rounds_of_an_agent(case, limit, budget, on_judge_error="accept", **settings):
    def judge(draft: Draft):
        passed, score = case.verdict_on(draft.text)
        return Judgement(passed, None if passed else "No.", None if score is None else score / 100)

    return ReflectionAgent(
        model=in_turn(*case.drafts),
        evaluator=judge,
        on_judge_error=on_judge_error,
        max_reflection_rounds=limit,
        budget=budget,
        **settings,
    )


def rejecting(make):
    """*make*, where a draft on which the judge fails counts as rejected."""

    def made(case, limit, budget):
        return make(case, limit, budget, on_judge_error="reject")

    return pytest.param(made, id=f"{make.__name__}-reject")


FAILS_ON_THE_SECOND = Case([(False, 50), FAILS, *[LAST] * 5])
STALLS_AT_THE_SECOND = Case([(False, 40), (False, 90), *[LAST] * 5], ["alpha", "alpha", *NAMES[1:]])

WORKFLOWS = [
    critic_refiner,
    critic_rewriter,
    drafter_critic,
    rejecting(drafter_critic),
    best_of_n,
    reflexion,
    rejecting(reflexion),
    research,
    rounds_of_an_agent,
    rejecting(rounds_of_an_agent),
]


def rank_of(result):
    """The rank of the text that was returned; drafts that are alike are judged alike."""
    given = [each.judgement for each in result.reflections if result.text == each.draft]
    return rank(given[-1] if given else None)


@pytest.mark.parametrize("make", WORKFLOWS)
@settings(max_examples=25)
@given(case=cases())
@example(case=FAILS_ON_THE_SECOND)
@example(case=STALLS_AT_THE_SECOND)
def test_more_rounds_never_return_a_worse_ranked_answer(make, case):
    ranks = [rank_of(make(case, limit, None).run("Write.")) for limit in range(1, 5)]

    assert ranks == sorted(ranks)


@pytest.mark.parametrize("make", WORKFLOWS)
@settings(max_examples=15)
@given(case=cases())
def test_more_calls_or_tokens_never_return_a_worse_ranked_answer(make, case):
    for limits in (
        [Budget(max_model_calls=calls) for calls in range(1, 12)],
        [Budget(max_tokens=calls * TOKENS) for calls in range(1, 12)],
    ):
        ranks = [rank_of(make(case, 3, budget).run("Write.")) for budget in limits]

        assert ranks == sorted(ranks)


@pytest.mark.parametrize("make", [critic_refiner, critic_rewriter, rounds_of_an_agent])
@settings(max_examples=25)
@given(case=cases())
def test_nor_do_more_rounds_where_the_last_revision_is_not_judged(make, case):
    runs = [make(case, limit, None, judge_final=False) for limit in range(1, 5)]
    ranks = [rank_of(workflow.run("Write.")) for workflow in runs]

    assert ranks == sorted(ranks)


@pytest.mark.parametrize("make", WORKFLOWS)
def test_a_text_that_nobody_judged_never_outranks_one_with_a_score(make):
    case = Case([(False, 10), (False, 20), *[LAST] * 5])

    result = make(case, 1, Budget(max_model_calls=3)).run("?")

    assert rank_of(result) > (False, -1.0)
