"""Faults of the transport, made by llmock, which also judges how the client took them."""

import asyncio
import time

import pytest

from reactflow.budget import Budget, Meter
from reactflow.errors import ProviderError
from reactflow.events import TextDelta, TextWithdrawn
from reactflow.messages import UserMessage
from reactflow.model import ChatRequest, Run
from reactflow.openai_model import OpenAIChatModel

ANSWER = "one two three four five six"
STREAMED = [False, True]


@pytest.fixture
def model(llmock):
    return OpenAIChatModel("gpt-test", base_url=llmock.base_url())


@pytest.fixture
def impatient(llmock):
    return OpenAIChatModel("gpt-test", base_url=llmock.base_url(), stream_read_timeout=1.0)


async def ask(model, *, stream=False, budget=None):
    """The answer, and what a user saw of it."""
    seen: list[str] = []

    def emit(event):
        if isinstance(event, TextDelta):
            seen.append(event.text)
        elif isinstance(event, TextWithdrawn):
            seen.clear()

    run = Run(question=UserMessage("Count."), meter=Meter(budget or Budget()))
    response = await model.complete(ChatRequest(messages=(run.question,), run=run, stream=stream, emit=emit))
    return response.text, "".join(seen)


@pytest.mark.parametrize("stream", STREAMED)
async def test_a_rate_limit_is_waited_out_as_long_as_the_server_asks(llmock, model, stream):
    llmock.rate_limit(times=1, retry_after=0.8).reply(ANSWER)

    assert (await ask(model, stream=stream))[0] == ANSWER

    assert [record.status for record in llmock.requests] == [429, 200]
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("status", [503, 529, 408])
async def test_a_failing_server_is_asked_again_after_a_growing_pause(llmock, model, status):
    llmock.fail(status, times=2).reply(ANSWER)

    assert (await ask(model))[0] == ANSWER

    llmock.assert_resilient(strict=True)


async def test_a_server_that_stays_down_is_given_up_with_its_status(llmock, model):
    llmock.outage()

    with pytest.raises(ProviderError, match="failed with status 503") as caught:
        await ask(model)

    assert (caught.value.status, caught.value.retryable, len(llmock.requests)) == (503, True, 3)
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("fault", ["disconnect", "truncate", "corrupt"])
async def test_a_broken_stream_is_asked_for_again_and_its_text_is_not_shown_twice(llmock, model, fault):
    llmock.pace(100)  # so that the server has not sent all when we hang up, which it would take for content
    getattr(llmock.reply(ANSWER, times=2), fault)(after_chunks=4)

    assert await ask(model, stream=True) == (ANSWER, ANSWER)

    assert len(llmock.requests) == 2
    llmock.assert_resilient(strict=True)


async def test_a_stream_that_stalls_is_cut_and_asked_for_again(llmock, impatient):
    llmock.reply(ANSWER, times=2).stall(after_chunks=4, seconds=120)
    started = time.monotonic()

    assert await ask(impatient, stream=True) == (ANSWER, ANSWER)

    assert time.monotonic() - started < 60
    llmock.assert_resilient(strict=True)


async def test_a_slow_first_token_is_waited_for(llmock, impatient):
    llmock.reply(ANSWER).slow_first_token(1.5)

    assert await ask(impatient, stream=True) == (ANSWER, ANSWER)

    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("stream", STREAMED)
async def test_a_context_overflow_says_so_and_is_not_repeated(llmock, model, stream):
    llmock.context_overflow()

    with pytest.raises(ProviderError, match=r"The conversation is too long for model 'gpt-test'") as caught:
        await ask(model, stream=stream)

    assert (caught.value.status, caught.value.retryable, len(llmock.requests)) == (400, False, 1)
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize(
    ("status", "says"),
    [(401, "credentials .* were refused"), (403, "credentials"), (404, "There is no model 'gpt-test'"), (422, "422")],
)
async def test_an_error_of_the_caller_is_not_repeated(llmock, model, status, says):
    llmock.fail(status)

    with pytest.raises(ProviderError, match=says) as caught:
        await ask(model)

    assert (caught.value.status, caught.value.retryable, len(llmock.requests)) == (status, False, 1)
    llmock.assert_resilient(strict=True)


async def test_a_used_up_quota_is_not_a_rate_limit(llmock, model):
    llmock.fail(429, code="insufficient_quota", message="You exceeded your current quota")

    with pytest.raises(ProviderError, match=r"The quota for model 'gpt-test' .* is used up"):
        await ask(model)

    assert len(llmock.requests) == 1


async def test_real_quotas_are_kept_by_waiting(llmock, model):
    llmock.limits(rpm=120).reply(ANSWER, times=None)

    answers = await asyncio.gather(*(ask(model) for _ in range(3)))

    assert [text for text, _ in answers] == [ANSWER] * 3
    llmock.assert_resilient(strict=True)


async def test_no_pause_goes_past_the_deadline_of_the_run(llmock, model):
    llmock.rate_limit(times=None, retry_after=50)
    started = time.monotonic()

    with pytest.raises(ProviderError, match="429"):
        await ask(model, budget=Budget(max_seconds=45))

    assert (time.monotonic() - started < 40, len(llmock.requests)) == (True, 1)
