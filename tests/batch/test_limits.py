"""Requests and tokens a minute."""

import asyncio

import pytest

from reactflow.batch.calls import RowCalls, Spending
from reactflow.batch.journal import RowId
from reactflow.batch.limits import Limits, Rate
from reactflow.errors import ConfigurationError
from reactflow.messages import Usage, UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.testing import ScriptedChatModel, says


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_units_are_spread_evenly_after_a_burst_of_one_second():
    clock = Clock()
    rate = Rate(120, clock=clock)

    assert [rate.reserve(1) for _ in range(4)] == [0.0, 0.0, 0.5, 1.0]

    clock.now = 1.0
    assert rate.reserve(1) == 0.5


def test_in_no_minute_more_than_the_limit_and_one_second_of_it_goes_through():
    clock = Clock()
    rate = Rate(60, clock=clock)
    times = []
    for _ in range(300):
        clock.now += rate.reserve(1)
        times.append(clock.now)

    assert max(sum(start <= at < start + 60 for at in times) for start in times) <= 61


def test_an_idle_time_does_not_save_up_more_than_a_burst():
    clock = Clock()
    rate = Rate(60, clock=clock)
    clock.now = 3600

    assert [rate.reserve(1) for _ in range(3)] == [0.0, 1.0, 2.0]


def test_units_can_be_given_back():
    clock = Clock()
    rate = Rate(60, clock=clock)
    rate.reserve(11)

    assert rate.reserve(-10) == 0.0


@pytest.mark.parametrize("per_minute", [0, -1, float("nan")])
def test_a_rate_that_lets_nothing_through_is_refused(per_minute):
    with pytest.raises(ConfigurationError, match="give one above 0"):
        Rate(per_minute)


async def test_calls_wait_for_their_turn(quickest):
    async def run():
        limits = Limits(requests=600)  # ten a second, ten at once
        await asyncio.gather(*(limits.before(5, admitted=False) for _ in range(13)))

    assert 0.28 <= await quickest(run, below=0.6) < 0.6


async def test_tokens_are_counted_by_what_was_really_used(quickest):
    question = UserMessage("a" * 40)

    async def run():
        limits = Limits(tokens=6000)  # a hundred a second
        model = ScriptedChatModel(says("1", usage=Usage(100, 20)), says("2", usage=Usage(10, 0)))
        for key in ("1", "2"):
            row = RowCalls(RowId.of("s", key, ""), journal=None, limits=limits, spending=Spending())
            await row(model, ChatRequest(messages=(question,), run=Run(question=question)), "agent")

    assert 0.28 <= await quickest(run, below=0.6) < 0.6  # 120 used and 10 guessed, 100 at once


async def test_without_limits_nothing_waits():
    limits = Limits()
    went_through = []

    for step in (limits.admit(), limits.before(10**9, admitted=False)):
        with pytest.raises(StopIteration):  # it ends at its first step, so it waited for nothing
            step.send(None)
        went_through.append(step)
    limits.after(1, 10**9)

    assert len(went_through) == 2
