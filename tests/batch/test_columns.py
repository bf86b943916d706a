"""Names of columns: whatever an input calls them, each has one name, and finding it takes little."""

import time

from reactflow.batch.columns import output_names, readable_names


def test_names_that_would_become_one_are_numbered():
    names = ["a\ud800", "a\ud801", "a\ufffd_2", "a\ufffd", "b", "a\ud802"]

    found = readable_names((name, at) for at, name in enumerate(names))

    assert found == {"a\ufffd_3": 0, "a\ufffd_4": 1, "a\ufffd_2": 2, "a\ufffd": 3, "b": 4, "a\ufffd_5": 5}
    assert list(found.values()) == [0, 1, 2, 3, 4, 5]


def test_names_that_are_known_stay_whatever_comes_later():
    known = output_names(["status", "id"])

    assert known == {"status": "input_status", "id": "id"}
    assert output_names(["id", "input_status"], known) == {**known, "input_status": "input_input_status"}
    assert output_names(["input_status"]) == {"input_status": "input_status"}


def test_the_time_for_names_that_would_become_one_grows_with_their_number_and_not_with_its_square():
    def seconds(count):
        odd = [chr(0xD800 + at // 1024) + chr(0xD800 + at % 1024) for at in range(count)]  # no pair: both are high
        times = []
        for _ in range(3):
            started = time.process_time()
            assert len(readable_names((name, 0) for name in odd)) == count
            times.append(time.process_time() - started)
        return min(times)

    assert seconds(4000) / seconds(1000) < 8  # 4 where it is linear, 16 where it is not
