"""Edits by program: only what was flagged can change, and nothing is guessed."""

import json
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reactflow.errors import ModelBehaviorError
from reactflow.workflows.edits import (
    FOUND_TWICE,
    NO_ADDITION,
    NOT_FLAGGED,
    NOT_FOUND,
    OVERLAPS,
    Edit,
    Edited,
    RefusedEdit,
    apply_edits,
    locate,
    read_edits,
    share_changed_outside,
)

TEXT = "Dear Ana, your plan is great. We thank you. Bye."


def span(words, text=TEXT):
    return text.index(words), text.index(words) + len(words)


@pytest.mark.parametrize(
    ("snippet", "place"),
    [
        ("your plan", (10, 19)),
        ("  your plan\n", (10, 19)),
        ("your  plan\nis", (10, 22)),
        ("Your plan", NOT_FOUND),
        ("", NOT_FOUND),
        (" \n", NOT_FOUND),
        (" you", FOUND_TWICE),
        ("an", FOUND_TWICE),
        ("a", FOUND_TWICE),
    ],
)
def test_words_are_found_where_they_stand_exactly_once(snippet, place):
    assert locate(TEXT, snippet) == place


def test_overlapping_occurrences_are_two():
    assert locate("aaa", "aa") == FOUND_TWICE


def test_words_that_stand_twice_but_for_white_space_are_not_guessed_at():
    assert locate("a  b, a\nb", "a b") == FOUND_TWICE


def test_white_space_differs_only_where_the_words_are_not_there_to_the_letter():
    assert locate("a b and a  b", "a b") == (0, 3)


@given(st.text(alphabet="ab \n", max_size=30), st.text(alphabet="ab \n", max_size=4))
def test_words_are_found_whatever_the_white_space(text, snippet):
    place = locate(text, snippet)
    plain, words = " ".join(text.split()), " ".join(snippet.split())
    if isinstance(place, tuple):
        assert text[slice(*place)].split() == snippet.split()
    elif place == NOT_FOUND:
        assert not words or words not in plain
    else:
        assert words in plain


def test_words_are_located_in_a_long_text_in_bounded_time():
    text, snippet = "word " * 60_000, "word  " * 799 + "end"
    started = time.process_time()

    assert {locate(text, snippet) for _ in range(50)} == {NOT_FOUND}
    assert time.process_time() - started < 3


def test_an_edit_replaces_what_was_flagged():
    edit = Edit("your plan", "your Pro plan")

    edited = apply_edits(TEXT, [edit], [span("your plan")])

    assert edited == Edited("Dear Ana, your Pro plan is great. We thank you. Bye.", (edit,))


def test_words_can_be_taken_away():
    assert apply_edits(TEXT, [Edit(" Bye.", "")], [span(" Bye.")]).text == "Dear Ana, your plan is great. We thank you."


def test_several_edits_are_made_at_their_places():
    edits = [Edit("Bye", "Yours"), Edit("Ana", "Eva"), Edit("thank", "greet")]

    edited = apply_edits(TEXT, edits, [(0, len(TEXT))])

    assert edited.text == "Dear Eva, your plan is great. We greet you. Yours."
    assert edited.applied == (edits[1], edits[2], edits[0])


def test_an_edit_may_quote_the_words_around_if_it_leaves_them_as_they_are():
    edit = Edit("Ana, your plan is great", "Ana, your Pro plan is great")

    assert apply_edits(TEXT, [edit], [span("your plan")]).text.startswith("Dear Ana, your Pro plan is great.")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Edit("your plan", "x"), NOT_FLAGGED),
        (Edit("Ana, your", "Eva, your"), NOT_FLAGGED),
        (Edit("Ana", "An"), NOT_FLAGGED),
        (Edit("your price", "x"), NOT_FOUND),
        (Edit("you", "x"), FOUND_TWICE),
        (Edit("", "More."), NO_ADDITION),
    ],
)
def test_an_edit_that_cannot_be_made_is_reported(edit, reason):
    edited = apply_edits(TEXT, [edit], [span("thank")])

    assert edited == Edited(TEXT, (), (RefusedEdit(edit.snippet or edit.replacement, reason),))


def test_the_second_of_two_overlapping_edits_is_reported():
    edits = [Edit("your plan", "your offer"), Edit("plan is", "offer was")]

    edited = apply_edits(TEXT, edits, [(0, len(TEXT))])

    assert (edited.applied, edited.refused) == ((edits[0],), (RefusedEdit("plan is", OVERLAPS),))


def test_something_missing_may_be_added_at_the_end_where_that_is_allowed():
    edits = [Edit("", "P.S. One."), Edit(" ", "P.S. Two."), Edit("", " ")]

    edited = apply_edits(TEXT, edits, [], may_add=True)

    assert edited.text == TEXT + "\n\nP.S. One.\n\nP.S. Two."
    assert edited.refused == (RefusedEdit(" ", NO_ADDITION),)


def test_an_addition_to_a_text_that_ends_its_line_begins_the_next():
    assert apply_edits("One.\n", [Edit("", "Two.")], [], may_add=True).text == "One.\nTwo."


def test_a_refused_edit_reads_as_a_sentence():
    assert str(RefusedEdit("x" * 100, NOT_FOUND)) == f"'{'x' * 80}' is not in the text"


WORDS = st.text(st.sampled_from("ab 天气。\n"), max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=8), st.data())
def test_whatever_the_edits_are_the_text_outside_flagged_spans_stays(parts, data):
    text = "".join(parts)
    flagged, at = [], 0
    for part in parts:
        if part and data.draw(st.booleans()):
            flagged.append((at, at + len(part)))
        at += len(part)
    assume(text)
    pieces = st.integers(0, len(text)).flatmap(
        lambda start: st.integers(start, len(text)).map(lambda end: text[start:end])
    )
    edits = data.draw(st.lists(st.builds(Edit, pieces | WORDS, pieces | WORDS), max_size=6))

    edited = apply_edits(text, edits, flagged)

    outside, last = [], 0
    for start, end in flagged:
        outside.append(text[last:start])
        last = end
    rest = edited.text
    for number, piece in enumerate([*outside, text[last:]]):
        place = rest.find(piece)
        assert place >= 0
        assert place == 0 or number
        rest = rest[place + len(piece) :]
    assert edited.text.endswith(text[last:])


# ---------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "text",
    [
        '{"edits": [{"snippet": "a b", "replacement": "c"}]}',
        'Here they are:\n```json\n{"edits": [{"snippet": "a b", "replacement": "c"}]}\n```\nDone.',
        '<think>hm {"edits": []}</think>{"edits": [{"snippet": "a b", "replacement": "c"}]}',
        '[{"find": "a b", "replace": "c"}]',
        '{"old": "a b", "new": "c"}',
        "{'edits': [{'original': 'a b', 'replacement': 'c',}]}",
        '{"edits": [{"snippet": "a b", "replacement": "c"}]}\nThe text holds {"edits": []} as a trick.',
    ],
)
def test_edits_are_read_in_the_forms_that_models_write(text):
    assert read_edits(text) == (Edit("a b", "c"),)


def test_white_space_in_edits_is_kept():
    assert read_edits('{"edits": [{"snippet": " a", "replacement": "\\n"}]}') == (Edit(" a", "\n"),)


def test_no_edits_are_a_list_too():
    assert read_edits('{"edits": []}') == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The corrected text.",
        '{"edits": [{"snippet": "a", "repl',
        '{"edits": [{"snippet": "a"}]}',
        '{"edits": [{"snippet": "a", "replacement": 5}]}',
        '{"edits": ["a"]}',
        '{"edits": {"snippet": "a", "replacement": "b"}}',
        '{"text": "all new"}',
        'The text holds {"edits": [{"snippet": "a", "replacement": "b"}]} in its middle.',
        '> {"edits": [{"snippet": "a", "replacement": "b"}]}',
        '{"edits": []}' + " " * 100_000,
    ],
)
def test_what_is_no_list_of_edits_is_an_error(text):
    with pytest.raises(ModelBehaviorError):
        read_edits(text)


# -------------------------------------------------------------------------------------------------- measuring


@pytest.mark.parametrize(
    ("after", "flagged", "share"),
    [
        ("abcdefghij", [], 0.0),
        ("abXdefghij", [(2, 3)], 0.0),
        ("abXdefghij", [], 0.2),
        ("abcdefghijXX", [], 0.2),
        ("abcXXdefghij", [(3, 4)], 0.0),
        ("X", [], 1.0),
        ("", [], 1.0),
        ("X", [(0, 10)], 0.0),
    ],
)
def test_the_share_that_changed_outside_counts_what_was_lost_and_what_was_put_in(after, flagged, share):
    assert share_changed_outside("abcdefghij", after, flagged) == pytest.approx(share)


def test_long_texts_are_compared_by_lines():
    before = "".join(f"line {number}\n" for number in range(2000))
    after = before.replace("line 7\n", "line seven\n")

    share = share_changed_outside(before, after, [])

    assert share == pytest.approx((len("line 7\n") + len("line seven\n")) / len(before))


def test_very_long_texts_are_compared_in_bounded_time_by_the_lines_they_hold():
    lines = [f"line {number}\n" for number in range(200_000)]
    before, new = "".join(lines), "line seven\n"
    after = "".join([*lines[:7], new, *reversed(lines[8:])])
    started = time.process_time()

    assert share_changed_outside(before, after, []) == pytest.approx((len(lines[7]) + len(new)) / len(before))
    assert share_changed_outside(before, after, [span(lines[7], before)]) == 0.0
    assert time.process_time() - started < 5


def test_edits_survive_json():
    text = json.dumps({"edits": [{"snippet": '"quoted" 天', "replacement": "{}"}]}, ensure_ascii=False)

    assert read_edits(text) == (Edit('"quoted" 天', "{}"),)
