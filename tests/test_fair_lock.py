"""The lock that queues across tasks, loops and threads."""

import asyncio
import gc
import random
import threading

import pytest

from reactflow.fair_lock import FairLocks


async def test_200_waiters_get_the_lock_in_the_order_in_which_they_asked():
    locks, seen = FairLocks(), []

    async def turn(number: int) -> None:
        async with locks.hold("c"):
            await asyncio.sleep(0)
            seen.append(number)

    await asyncio.gather(*(turn(number) for number in range(200)))

    assert seen == list(range(200))
    assert len(locks) == 0


async def test_keys_do_not_wait_for_each_other():
    locks = FairLocks()
    async with locks.hold("a"), asyncio.timeout(60), locks.hold("b"):
        assert ("a" in locks, "b" in locks, "c" in locks) == (True, True, False)
    assert len(locks) == 0


async def test_the_lock_is_given_back_when_its_holder_fails():
    locks = FairLocks()
    with pytest.raises(KeyError):
        async with locks.hold("c"):
            raise KeyError("c")
    assert len(locks) == 0


async def test_a_newcomer_cannot_overtake_the_one_that_waits():
    locks, seen = FairLocks(), []

    async def wait() -> None:
        async with locks.hold("c"):
            seen.append("waiter")

    async with locks.hold("c"):
        waiter = asyncio.create_task(wait())
        await asyncio.sleep(0)
    async with locks.hold("c"):  # asked for in the same breath in which it was given back
        seen.append("newcomer")
    await waiter
    assert seen == ["waiter", "newcomer"]


async def test_a_waiter_that_is_cancelled_leaves_the_queue():
    locks, seen = FairLocks(), []

    async def wait(name: str) -> None:
        async with locks.hold("c"):
            seen.append(name)

    async with locks.hold("c"):
        first, second = asyncio.create_task(wait("first")), asyncio.create_task(wait("second"))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
    await second
    assert (seen, first.cancelled(), len(locks)) == (["second"], True, 0)


async def test_a_waiter_that_is_cancelled_just_after_it_got_the_lock_passes_it_on():
    locks, seen = FairLocks(), []

    async def wait(name: str) -> None:
        async with locks.hold("c"):
            seen.append(name)

    async with locks.hold("c"):
        first, second = asyncio.create_task(wait("first")), asyncio.create_task(wait("second"))
        await asyncio.sleep(0)
    first.cancel()  # the lock is on its way to it
    await asyncio.wait([first, second])
    assert (seen, first.cancelled(), len(locks)) == (["second"], True, 0)


async def test_a_waiter_that_is_cancelled_after_it_was_woken_passes_it_on():
    locks = FairLocks()

    async def wait() -> None:
        async with locks.hold("c"):
            raise AssertionError("a cancelled task must not run on")

    async with locks.hold("c"):
        waiter = asyncio.create_task(wait())
        await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    loop.call_soon(waiter.cancel)  # runs after the wake-up and before the task's own step
    await asyncio.wait([waiter])
    assert (waiter.cancelled(), len(locks)) == (True, 0)


async def test_a_waiter_whose_loop_was_closed_is_skipped_and_harms_nobody():
    locks, seen = FairLocks(), []

    async def wait(name: str) -> None:
        async with locks.hold("c"):
            seen.append(name)

    def abandon() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(wait("abandoned"))
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is what this test is about
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    async with locks.hold("c"):
        await asyncio.to_thread(abandon)
        alive = asyncio.create_task(wait("alive"))
        await asyncio.sleep(0)
    gc.collect()
    await alive
    assert (seen, len(locks)) == (["alive"], 0)


@pytest.mark.parametrize("seed", range(3))
def test_threads_loops_and_cancels_never_let_two_in_and_never_lose_the_lock(seed: int):
    locks, inside, entered = FairLocks(), {"a": 0, "b": 0}, []

    async def turn(key: str, rng: random.Random) -> None:
        async with locks.hold(key):
            inside[key] += 1
            assert inside[key] == 1
            entered.append(key)
            try:
                await asyncio.sleep(rng.choice([0, 0, 0.0005]))
                assert inside[key] == 1
            finally:
                inside[key] -= 1

    async def one_loop(rng: random.Random) -> None:
        tasks = [asyncio.create_task(turn(rng.choice("ab"), rng)) for _ in range(60)]
        for task in tasks:
            if rng.random() < 0.3:
                await asyncio.sleep(0)
                task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome

    def thread(number: int) -> None:
        try:
            asyncio.run(asyncio.wait_for(one_loop(random.Random(f"{seed}/{number}")), 120))
        except BaseException as error:
            failures.append(error)

    async def both_are_free() -> None:
        async with locks.hold("a"), locks.hold("b"):
            assert len(locks) == 2

    failures: list[BaseException] = []
    threads = [threading.Thread(target=thread, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    asyncio.run(asyncio.wait_for(both_are_free(), 60))
    assert len(locks) == 0
    assert len(entered) > 100
