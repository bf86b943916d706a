"""Locks between processes, and what a cancel may not break in them."""

import asyncio

import pytest

from reactflow.stores.database import lock_number
from reactflow.stores.turn_locks import FileLocks, finished, held


async def steps(count: int) -> None:
    """Wait for so many turns of the event loop, which a slow machine takes one after the other as a fast one does."""
    for _ in range(count):
        await asyncio.sleep(0)


class Lock:
    """One lock behind a slow wire."""

    def __init__(self) -> None:
        self.taken = False
        self.asked = 0

    async def try_lock(self) -> bool:
        self.asked += 1
        await steps(5)
        free, self.taken = not self.taken, True
        await steps(5)
        return free

    async def unlock(self) -> None:
        await steps(5)
        self.taken = False


@pytest.mark.parametrize("pause", range(32))
async def test_a_cancel_at_any_moment_leaves_the_lock_free(pause):
    lock = Lock()

    async def hold() -> None:
        async with held(lock.try_lock, lock.unlock):
            await steps(10)

    task = asyncio.create_task(hold())
    await steps(pause)
    task.cancel()
    await asyncio.wait([task])
    assert lock.taken is False
    assert task.cancelled() or pause > 25


async def test_a_waiting_turn_asks_again_until_it_is_free():
    lock = Lock()
    lock.taken = True

    async def try_lock() -> bool:
        if lock.asked == 2:
            lock.taken = False
        return await lock.try_lock()

    async with asyncio.timeout(60), held(try_lock, lock.unlock):
        assert lock.asked == 3
    assert lock.taken is False


async def test_work_that_must_be_finished_is_finished_before_a_cancel_goes_on():
    done = []

    async def work() -> str:
        await steps(20)
        done.append("work")
        return "result"

    async def failing() -> None:
        await steps(20)
        raise ValueError("nobody asks for this any more")

    assert await finished(work()) == "result"
    for each in (work, failing):
        task = asyncio.create_task(finished(each()))
        for _ in range(3):
            await steps(4)
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    assert done == ["work", "work"]


async def test_work_that_is_cancelled_itself_is_a_cancel():
    async def work() -> None:
        raise asyncio.CancelledError

    task = asyncio.create_task(finished(work()))
    await asyncio.wait([task])
    assert task.cancelled()


async def test_one_file_is_opened_once_in_a_process(tmp_path):
    locks = FileLocks.of(tmp_path / "x-turns")
    (tmp_path / "link").symlink_to(tmp_path)
    assert FileLocks.of(tmp_path / "link" / "x-turns") is locks
    assert FileLocks.of(tmp_path / "y-turns") is not locks
    assert await locks.try_lock(2**62 - 1)
    await locks.unlock(2**62 - 1)
    assert (tmp_path / "x-turns").stat().st_size == 0


async def test_whoever_may_write_the_database_may_take_its_turns(tmp_path):
    database, turns = tmp_path / "chat.db", tmp_path / "chat.db-turns"
    database.touch()
    database.chmod(0o660)
    locks = FileLocks.of(turns, like=database)
    assert turns.stat().st_mode & 0o777 == 0o660
    turns.chmod(0o600)
    del locks
    FileLocks.of(turns, like=database)  # what is there is left as it is
    assert turns.stat().st_mode & 0o777 == 0o600


def test_lock_numbers_fit_and_keep_parts_apart():
    numbers = {lock_number(b"ab", b"c"), lock_number(b"a", b"bc"), lock_number(b"abc"), lock_number(b"abc", b"")}
    assert len(numbers) == 4
    assert all(0 <= number < 2**62 for number in numbers)
