"""Lessons: when two are one, what they weigh, which are shown, and which are forgotten."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.errors import ConfigurationError
from reactflow.workflows.episodic_memory import EpisodicMemory, Lesson
from reactflow.workflows.lessons import alike, credited, merged, picked, trimmed

SRC = "The import failed because the project uses a src/ layout; import from src."
PYTEST = "FAILED test_slug.py::test_accents - AssertionError: assert 'caf-' == 'cafe'"


def advice_of(lessons):
    return [lesson.advice for lesson in lessons]


def test_a_lesson_reads_as_its_advice():
    assert str(Lesson(SRC, trigger="imports", evidence="ModuleNotFoundError")) == SRC


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"advice": " "}, "advice"),
        ({"advice": None}, "advice"),
        ({"advice": "a", "trigger": None}, "trigger"),
        ({"advice": "a", "evidence": b"x"}, "evidence"),
        ({"advice": "a", "family": 1}, "family"),
        ({"advice": "a", "uses": 1, "wins": 2}, "wins"),
        ({"advice": "a", "uses": True}, "uses"),
        ({"advice": "a", "uses": -1, "wins": -1}, "wins"),
    ],
)
def test_a_lesson_that_makes_no_sense_is_refused_by_name(settings, named):
    with pytest.raises(ConfigurationError, match=named):
        Lesson(**settings)


@pytest.mark.parametrize(
    ("uses", "wins", "weight"), [(0, 0, 1.0), (1, 0, 1.0), (2, 0, 1 / 3), (3, 0, 1 / 4), (3, 2, 1.0), (7, 5, 6 / 8)]
)
def test_a_lesson_that_lost_twice_loses_weight(uses, wins, weight):
    assert Lesson("a", uses=uses, wins=wins).weight == pytest.approx(weight)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (SRC, SRC.upper(), True),
        (SRC, f"  {SRC.replace(' ', '  ')}", True),
        (SRC, SRC.replace("project", "projects"), True),
        ("处理空列表，返回零。", "处理空列表，返回零", True),
        ("Return 0 for an empty list of prices.", "Return 1 for an empty list of prices.", False),
        ("Mind the accents.", "Lower-case the text first.", False),
        ("lesson 1", "lesson 2", False),
    ],
)
def test_two_texts_are_one_advice_where_the_words_are_nearly_and_the_numbers_exactly_the_same(a, b, same):
    assert alike(a, b) is same


def test_a_lesson_that_says_the_same_takes_the_place_of_the_earlier_one_with_its_uses_and_wins():
    known = (Lesson(SRC, trigger="imports", uses=3, wins=1), Lesson("Mind the accents."))

    assert merged(known, Lesson(SRC.upper(), evidence="new")) == (
        Lesson("Mind the accents."),
        Lesson(SRC.upper(), trigger="imports", evidence="new", uses=3, wins=1),
    )


def test_of_two_lessons_from_the_same_failure_the_newer_stays_and_has_yet_to_be_tried():
    known = (Lesson("Strip all that is not ASCII.", evidence=f"{PYTEST}\n1 failed in 0.02s", uses=2),)
    new = Lesson("Decompose accents first.", evidence=f"{PYTEST}\n1 failed in 0.31s")

    assert merged(known, new) == (new,)


@pytest.mark.parametrize("evidence", ["", "wrong", "Still wrong."])
def test_evidence_that_says_next_to_nothing_does_not_make_two_failures_one(evidence):
    lessons = merged((Lesson("Mind the accents.", evidence=evidence),), Lesson("Lower-case it.", evidence=evidence))

    assert advice_of(lessons) == ["Mind the accents.", "Lower-case it."]


def test_only_the_lessons_that_were_shown_are_credited():
    lessons = (Lesson("a", uses=1), Lesson("b"))

    assert credited(lessons, {"a"}, won=True) == (Lesson("a", uses=2, wins=1), Lesson("b"))
    assert credited(lessons, {"a", "b"}, won=False) == (Lesson("a", uses=2), Lesson("b", uses=1))


def test_where_there_are_too_many_those_that_lost_go_first_and_then_the_oldest():
    lessons = [Lesson("a"), Lesson("b"), Lesson("c", uses=4), Lesson("d")]

    assert advice_of(trimmed(lessons, 4)) == ["a", "b", "c", "d"]
    assert advice_of(trimmed(lessons, 3)) == ["a", "b", "d"]
    assert advice_of(trimmed(lessons, 2)) == ["b", "d"]


def test_the_lessons_closest_to_the_task_are_picked_and_keep_their_order():
    lessons = [
        Lesson("Give dates as YYYY-MM-DD.", trigger="dates in invoices"),
        Lesson("Escape the quotes.", trigger="SQL queries"),
        Lesson("Round to cents.", trigger="amounts in invoices"),
    ]

    shown = picked(lessons, "Take the dates and amounts from these invoices.", 2, own=())

    assert advice_of(shown) == ["Give dates as YYYY-MM-DD.", "Round to cents."]


def test_chinese_lessons_are_picked_by_their_words_too():
    lessons = [Lesson("日期写成 YYYY-MM-DD。", trigger="发票中的日期"), Lesson("转义引号。", trigger="数据库查询")]

    assert advice_of(picked(lessons, "提取这张发票的日期和金额", 1, own=())) == ["日期写成 YYYY-MM-DD。"]


def test_what_was_learnt_from_this_very_task_comes_before_what_only_sounds_like_it():
    lessons = [Lesson("Own."), Lesson("Invoices have dates.", trigger="dates in invoices", uses=2, wins=2)]

    assert advice_of(picked(lessons, "dates in invoices", 1, own={"Own."})) == ["Invoices have dates."]
    lessons[1] = Lesson("Invoices have dates.", trigger="dates in invoices", uses=2)
    assert advice_of(picked(lessons, "dates in invoices", 1, own={"Own."})) == ["Own."]


def test_of_lessons_without_a_word_in_common_with_the_task_the_newest_are_picked():
    lessons = [Lesson(f"совет {letter}") for letter in "абвг"]

    assert picked(lessons, "задача", 3, own=()) == tuple(lessons[1:])


@given(st.lists(st.sampled_from([SRC, SRC.upper(), "Mind the accents.", "处理空列表。", PYTEST]), max_size=30))
def test_however_many_are_learnt_no_two_are_alike_and_the_newest_is_the_last(advice):
    lessons = ()
    for each in advice:
        lessons = merged(lessons, Lesson(each))

    kept = advice_of(lessons)
    assert not [(a, b) for at, a in enumerate(kept) for b in kept[at + 1 :] if alike(a, b)]
    assert kept[-1:] == advice[-1:]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"max_lessons": 0}, "max_lessons"),
        ({"max_lessons": True}, "max_lessons"),
        ({"max_kept": 2}, "max_kept"),
        ({"max_advice_chars": 0}, "max_advice_chars"),
        ({"max_evidence_chars": 1.5}, "max_evidence_chars"),
        ({"store": "lessons.jsonl"}, "store"),
    ],
)
def test_a_memory_with_a_wrong_setting_is_refused_by_name(settings, named):
    with pytest.raises(ConfigurationError, match=named):
        EpisodicMemory(**settings)


async def test_ten_equal_failures_leave_one_lesson():
    episode = EpisodicMemory().open("task")

    for number in range(10):
        await episode.learn(Lesson(f"Idea {number}: {'x' * number}", evidence=PYTEST))

    assert advice_of(await episode.recall()) == advice_of(episode.learnt) == [f"Idea 9: {'x' * 9}"]


@pytest.mark.parametrize(
    "evidence",
    [
        "3 != 4",
        "got ≠ want",
        "a == b",
        "FAILED /{0}/run{1}/x.py after {1}:00:03.12",
        "at /var/folders/q/{1}/T/x.py: 3 != 4",
    ],
)
async def test_ten_equal_failures_of_one_task_leave_one_lesson_however_little_they_say(evidence):
    episode = EpisodicMemory().open("task")

    for number, letter in enumerate("abcdefghij"):
        await episode.learn(Lesson(letter * 9, evidence=evidence.format("tmp", number)))

    assert advice_of(await episode.recall()) == advice_of(episode.learnt) == ["jjjjjjjjj"]


@pytest.mark.parametrize("evidence", ["", "wrong", "failed", "Still wrong!", "错了", "(3 ms)"])
async def test_failures_of_one_task_of_which_next_to_nothing_is_said_are_not_taken_for_one(evidence):
    episode = EpisodicMemory().open("task")

    await episode.learn(Lesson("aaaaa", evidence=evidence))
    await episode.learn(Lesson("bbbbb", evidence=evidence))

    assert advice_of(await episode.recall()) == advice_of(episode.learnt) == ["aaaaa", "bbbbb"]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("=== 1 failed, 2 passed in 0.01s ===", "=== 1 failed, 2 passed in 75.31s (0:01:15) ===", True),
        ("✕ adds two numbers (12 ms)", "✕ adds two numbers (9 ms)", True),
        ("Took 0:00:03.12\n2 tests failed", "Took 0:00:04.01\n2 tests failed", True),
        ("No answer came after 3 s.", "No answer came after 12 s.", True),
        ("2 个测试失败，用时 3 秒", "2 个测试失败，用时 0.5 秒", True),
        ("[2026-12-01 05:11:18] parse failed", "[2026-12-02 06:00:00] parse failed", True),
        ("KeyError at 0x7f01a of Parser", "KeyError at 0x7f02b of Parser", True),
        ("took 31 s, limit 5 s", "took 5 s, limit 31 s", False),
        ("should end in 5 s but took 31 s", "should end in 31 s but took 5 s", False),
        ("expected 09:00:00, got 10:00:00", "expected 10:00:00, got 09:00:00", False),
        ("timeout is 3 s, not 5 s", "timeout is 5 s, not 3 s", False),
        ("in 3 s > 2 s of budget", "in 4 s > 2 s of budget", False),
    ],
)
def test_a_time_that_was_measured_by_the_way_is_no_part_of_a_failure_and_one_that_is_compared_is(a, b, same):
    known = Lesson("Mind the accents.", evidence=a)

    lessons = merged((known,), Lesson("Lower-case it.", evidence=b), own={known.advice})

    assert advice_of(lessons) == ([] if same else ["Mind the accents."]) + ["Lower-case it."]


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "in 1",
        "in 1s ",
        "(1",
        "1:11:11",
        "1:11:11 ",
        "1-",
        "0xf",
        "/var/folders/a",
        "/var/folders/a:",
        "用时1",
        "took 1s!",
        "\n[",
    ],
)
def test_the_time_to_compare_evidence_grows_with_its_length_and_not_with_its_square(piece):
    def seconds(count):
        known, times = (Lesson("Mind it.", evidence=piece * (count // len(piece))),), []
        for _ in range(3):
            started = time.process_time()
            merged(known, Lesson("Lower-case the text.", evidence=known[0].evidence + "x"))
            times.append(time.process_time() - started)
        return min(times)

    assert seconds(20_000) / seconds(5_000) < 8  # 4 where it is linear, 16 where it is not


async def test_only_the_last_three_of_many_lessons_of_one_run_are_shown_and_all_are_known():
    episode = EpisodicMemory().open("task")

    for letter in "abcde":
        await episode.learn(Lesson(letter * 5))

    assert advice_of(await episode.recall()) == ["ccccc", "ddddd", "eeeee"]
    assert advice_of(episode.learnt) == ["aaaaa", "bbbbb", "ccccc", "ddddd", "eeeee"]


async def test_a_lesson_is_cut_to_size_and_kept_under_the_family_of_the_run():
    episode = EpisodicMemory(max_advice_chars=10, max_evidence_chars=60).open("task", "invoices")

    kept = await episode.learn(Lesson("a" * 30, trigger="t" * 30, evidence="e" * 200, family="other"))

    assert (kept.advice, kept.trigger, kept.family) == ("a" * 9 + "…", "t" * 9 + "…", "invoices")
    assert len(kept.evidence) <= 60


async def test_how_an_attempt_ended_counts_for_the_lessons_it_was_shown():
    episode = EpisodicMemory().open("task")
    await episode.judged(False)  # no lesson yet
    await episode.learn(Lesson("first"))
    await episode.recall()
    await episode.judged(False)
    await episode.learn(Lesson("second"))
    await episode.recall()
    await episode.judged(True)

    assert episode.learnt == (Lesson("first", uses=2, wins=1), Lesson("second", uses=1, wins=1))


async def test_lessons_put_together_take_the_place_of_the_old_ones():
    episode = EpisodicMemory().open("task")
    for letter in "abc":
        await episode.learn(Lesson(letter * 5))

    await episode.condense(episode.learnt[:2], [Lesson("a and b", uses=1)])

    assert advice_of(episode.learnt) == advice_of(await episode.known()) == ["ccccc", "a and b"]


def test_a_short_failure_that_names_what_failed_leaves_one_lesson_however_it_is_put():
    lessons = ()
    for advice in ("Add one.", "Mind the border.", "Count from zero.", "Round half up.", "Sort before you compare."):
        lessons = merged(lessons, Lesson(advice, evidence="AssertionError: 2 != 3"))
    assert advice_of(lessons) == ["Sort before you compare."]
