"""What of a row is asked, and what names it."""

import pytest

from reactflow.batch.rows import Asking, Record
from reactflow.errors import ConfigurationError


def row(asking, number=1, /, **data):
    return asking.read(Record(number, data))


def test_a_prompt_is_a_column_or_a_text_with_columns_in_it():
    assert row(Asking("text"), text="hi").prompt == "hi"
    assert row(Asking("Claim: {text} at {lat}"), text="hail", lat=1.5).prompt == "Claim: hail at 1.5"
    assert row(Asking('{{"claim": "{text}"}}'), text="hail {x}").prompt == '{"claim": "hail {x}"}'
    assert row(Asking("{说明}"), 说明="挡风玻璃").prompt == "挡风玻璃"
    assert row(Asking("{data}"), data={"a": [1, "é"]}).prompt == '{"a": [1, "é"]}'


def test_a_text_with_an_unknown_part_is_unknown_as_in_sql():
    assert row(Asking("a {x} {y}"), x=1, y=None).prompt is None
    assert row(Asking("x"), x=None).prompt is None


def test_a_column_that_one_row_lacks_is_that_rows_flaw():
    assert row(Asking("a {x}"), y=1).flaw == "The row has no column 'x'."


def test_a_column_that_the_first_row_lacks_is_a_mistake_in_the_call():
    with pytest.raises(ConfigurationError, match=r"no column 'prompt'; the first row has: id, text"):
        Asking().check(Record(1, {"id": 1, "text": "x"}))
    with pytest.raises(ConfigurationError, match="no column 'key'"):
        Asking("{text}", "key").check(Record(1, {"text": "x"}))

    Asking("{text}").check(Record(1, {"text": "x"}))
    Asking("text").check(Record(1, {}, "Row 1 is no JSON."))


def test_the_key_is_the_id_or_the_named_column_or_the_number():
    assert row(Asking("p"), 3, id=7, p="x").key == "7"
    assert row(Asking("p", "name"), 3, name="é", id=7, p="x").key == "é"
    assert row(Asking("p"), 3, p="x").key == "#3"
    assert row(Asking("p"), 3, id="", p="x").key == "#3"
    assert row(Asking("p", "name"), 3, name=None, p="x").flaw == "Column 'name', the key, is empty."


def test_a_flaw_of_the_file_is_kept():
    assert Asking("p").read(Record(2, {}, "Row 2 is no JSON.")).flaw == "Row 2 is no JSON."
