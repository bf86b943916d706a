"""Where lessons are kept: in the process, in a file, in a store; whole and complete whoever writes at the same time."""

import asyncio
import json
import os
import subprocess
import sys
import threading

import pytest

from reactflow.errors import ConfigurationError, StoreError
from reactflow.memory import InMemoryStore
from reactflow.stores import open_store
from reactflow.workflows.episodic_memory import (
    EpisodicMemory,
    FileLessons,
    InMemoryLessons,
    Lesson,
    LessonStore,
    StoredLessons,
)

SRC = Lesson("Import from src.", trigger="imports", evidence="No module named 'tax'", family="python", uses=2, wins=1)


def adding(*lessons):
    return lambda known: (*known, *lessons)


@pytest.fixture(params=["process", "file", "memory store", "sqlite"])
def store(request, tmp_path):
    if request.param == "process":
        return InMemoryLessons()
    if request.param == "file":
        return FileLessons(tmp_path / "new" / "lessons.jsonl")
    if request.param == "memory store":
        return StoredLessons(InMemoryStore())
    return StoredLessons(open_store(f"sqlite:///{tmp_path / 'chat.db'}"))


async def closed(store):
    if hasattr(getattr(store, "store", None), "aclose"):
        await store.store.aclose()


async def test_lessons_are_kept_by_family_and_in_order(store):
    assert isinstance(store, LessonStore)
    assert await store.read("python") == ()

    await store.change("python", adding(SRC))
    await store.change("python", adding(Lesson("提取日期。", family="python")))
    await store.change("", adding(Lesson("Anything.\n\u2028Two lines.")))

    assert await store.read("python") == (SRC, Lesson("提取日期。", family="python"))
    assert await store.read("") == (Lesson("Anything.\n\u2028Two lines."),)
    assert await store.read("rust") == ()
    await closed(store)


async def test_no_lesson_is_lost_where_many_tasks_learn_at_once(store):
    await asyncio.gather(*(store.change("f", adding(Lesson(f"lesson {n}", family="f"))) for n in range(30)))

    assert {each.advice for each in await store.read("f")} == {f"lesson {n}" for n in range(30)}
    await closed(store)


async def test_an_edit_that_fails_leaves_the_lessons_as_they_were(store):
    await store.change("python", adding(SRC))

    def fails(known):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await store.change("python", fails)

    assert await store.read("python") == (SRC,)
    await store.change("python", adding(Lesson("next", family="python")))  # nothing stays locked
    assert len(await store.read("python")) == 2
    await closed(store)


async def test_a_later_run_is_shown_what_an_earlier_one_learnt(store):
    memory = EpisodicMemory(store=store)
    await memory.open("Import the tax module.", "python").learn(SRC)
    later = memory.open("Import the bank module.", "python")

    assert [each.advice for each in await later.recall()] == ["Import from src."]
    await later.judged(True)
    assert (await store.read("python"))[0].wins == 2
    assert await memory.open("Import the tax module.", "rust").recall() == ()
    await closed(store)


async def test_no_more_lessons_of_a_family_are_kept_than_asked_for(store):
    memory = EpisodicMemory(max_lessons=1, max_kept=2, store=store)
    for letter in "abc":
        await memory.open("task", "f").learn(Lesson(letter * 5))

    assert [each.advice for each in await store.read("f")] == ["bbbbb", "ccccc"]
    await closed(store)


# ------------------------------------------------------------------------------------------------------- files


def test_a_file_of_lessons_has_one_json_object_a_line(tmp_path):
    file = FileLessons(tmp_path / "lessons.jsonl")

    asyncio.run(file.change("python", adding(SRC, Lesson("引号\ud800", family="python"))))

    first, second = file.path.read_text("utf-8").splitlines()
    assert json.loads(first) == {
        "advice": "Import from src.",
        "trigger": "imports",
        "evidence": "No module named 'tax'",
        "family": "python",
        "uses": 2,
        "wins": 1,
    }
    assert '"引号\ufffd"' in second
    assert sorted(os.listdir(tmp_path)) == ["lessons.jsonl", "lessons.jsonl.lock"]


async def test_several_stores_threads_and_event_loops_may_share_a_file(tmp_path):
    path = tmp_path / "lessons.jsonl"

    def work(name):
        async def learn():
            for n in range(5):
                await FileLessons(path).change("f", adding(Lesson(f"{name}{n}", family="f")))

        asyncio.run(learn())

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        await FileLessons(path).read("f")  # never sees half a file
        await asyncio.sleep(0.005)

    assert len(await FileLessons(path).read("f")) == 20


@pytest.mark.skipif(os.name != "posix", reason="processes wait for each other on POSIX systems only")
def test_two_processes_may_write_to_one_file_at_the_same_time(tmp_path):
    path = tmp_path / "lessons.jsonl"
    code = """
import asyncio, sys
from reactflow.workflows.episodic_memory import FileLessons, Lesson
async def learn():
    for n in range(15):
        await FileLessons(sys.argv[1]).change("f", lambda known: (*known, Lesson(f"{sys.argv[2]} {n}", family="f")))
asyncio.run(learn())
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("one", "two")]

    assert [process.wait() for process in running] == [0, 0]
    assert len(asyncio.run(FileLessons(path).read("f"))) == 30


async def test_a_cancelled_writer_leaves_a_whole_file_and_no_lock(tmp_path):
    file = FileLessons(tmp_path / "lessons.jsonl")
    begun, go = threading.Event(), threading.Event()

    def slow(known):
        begun.set()
        go.wait(5)
        return (*known, SRC)

    task = asyncio.create_task(file.change("python", slow))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.sleep(0.01)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await file.read("python") == (SRC,)
    await file.change("python", adding(Lesson("next", family="python")))


async def test_a_line_that_is_no_lesson_is_named_and_nothing_is_overwritten(tmp_path):
    path = tmp_path / "lessons.jsonl"
    for bad in ('{"advice": ""}', "[]", "{", '{"advice": "a", "uses": "many"}', "[" * 100_000):
        path.write_text('{"advice": "good", "added_later": 1}\n\n' + bad, "utf-8")
        file = FileLessons(path)

        with pytest.raises(StoreError, match="Line 3 of"):
            await file.read("")
        with pytest.raises(StoreError, match="Line 3 of"):
            await file.change("", adding(SRC))
        assert path.read_text("utf-8").endswith(bad)


async def test_a_file_that_cannot_be_reached_is_a_store_error_with_its_name(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="folder"):
        await FileLessons(tmp_path / "folder").read("")
    with pytest.raises(StoreError, match="cannot be reached"):
        await FileLessons(tmp_path / "file" / "lessons.jsonl").change("", adding(SRC))


async def test_where_the_new_file_cannot_take_its_place_the_old_one_stays_and_nothing_is_left_behind(tmp_path):
    (tmp_path / "lessons.jsonl").write_text("")
    file = FileLessons(tmp_path / "lessons.jsonl")

    def in_the_way(known):
        os.unlink(file.path)
        os.makedirs(file.path / "inner")
        return (SRC,)

    with pytest.raises(StoreError):
        await file.change("", in_the_way)

    assert sorted(os.listdir(tmp_path)) == ["lessons.jsonl", "lessons.jsonl.lock"]


async def test_a_link_to_the_file_stays_a_link_and_the_files_mode_stays(tmp_path):
    real = tmp_path / "real.jsonl"
    real.touch(0o640)
    real.chmod(0o640)
    (tmp_path / "link.jsonl").symlink_to(real)

    await FileLessons(tmp_path / "link.jsonl").change("", adding(Lesson("a")))

    assert (tmp_path / "link.jsonl").is_symlink()
    assert await FileLessons(real).read("") == (Lesson("a"),)
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_file_store_shows_its_path():
    assert repr(FileLessons("/data/lessons.jsonl")) == "FileLessons('/data/lessons.jsonl')"


# ------------------------------------------------------------------------------------------------------ stores


async def test_a_note_that_holds_no_lessons_is_a_store_error():
    store = InMemoryStore()
    await store.set_note("reflexion:python", "lessons", '{"advice"')

    with pytest.raises(StoreError, match="'reflexion:python' holds no lessons"):
        await StoredLessons(store).read("python")


async def test_lessons_stand_beside_the_conversations_of_the_same_store():
    store = InMemoryStore()
    await StoredLessons(store, prefix="team a:").change("python", adding(SRC))

    assert await store.conversations() == ()
    assert json.loads(await store.note("team a:python", "lessons"))[0]["advice"] == "Import from src."
    assert repr(StoredLessons(store)).startswith("StoredLessons(InMemoryStore(")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"store": InMemoryStore}, "give a message store"), ({"store": InMemoryStore(), "prefix": " "}, "prefix")],
)
def test_a_wrong_setting_of_a_store_is_refused(arguments, named):
    with pytest.raises(ConfigurationError, match=named):
        StoredLessons(**arguments)
