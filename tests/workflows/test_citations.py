"""Markers and references: what points at a retrieved source stays under the right number, the rest goes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.workflows.citations import check_citations, unknown_addresses
from reactflow.workflows.sources import Catalogue, Source

URLS = [f"https://{letter}.org/page" for letter in "abcdef"]
FAKE = "https://fake.example/x"


def catalogue(count=4):
    made = Catalogue()
    made.add([Source(url, url[8].upper()) for url in URLS[:count]])
    return made


def names(cited):
    return "".join(source.title for source in cited.sources)


def checked(answer, *references, count=4):
    return check_citations(answer, references, catalogue(count))


def test_markers_are_numbered_anew_in_the_order_of_first_mention():
    cited = checked("Three [3], one [1], three again [3].", URLS[0], URLS[2])

    assert (cited.answer, names(cited), cited.removed) == ("Three [1], one [2], three again [1].", "CA", ())
    assert cited.as_shown == "Three [3], one [1], three again [3]."


def test_a_source_that_was_never_retrieved_goes_with_its_marker_and_the_others_keep_theirs():
    cited = checked("One [1], fake [2], three [3].", URLS[0], FAKE, URLS[2])

    assert (cited.answer, names(cited)) == ("One [1], fake, three [2].", "AC")
    assert cited.removed == (FAKE, "[2]")


def test_a_marker_without_any_source_is_removed():
    cited = checked("One [1], none [9].", URLS[0])

    assert (cited.answer, names(cited), cited.removed) == ("One [1], none.", "A", ("[9]",))


def test_a_marker_that_names_several_keeps_those_that_exist():
    cited = checked("All [2, 9, 4] and [1-3] and [4；2].", URLS[1])

    assert cited.answer == "All [1, 2] and [3, 1, 4] and [2, 1]."
    assert (names(cited), cited.removed) == ("BDAC", ("[9]",))


def test_a_source_that_is_cited_but_not_listed_counts_as_a_reference():
    assert names(checked("One [1], two [2].", URLS[0])) == "AB"


def test_a_reference_without_a_marker_comes_after_those_with_one():
    cited = checked("Two [2].", URLS[3], URLS[1], URLS[0])

    assert (cited.answer, names(cited)) == ("Two [1].", "BDA")


@pytest.mark.parametrize(
    ("answer", "references", "answer_then", "sources"),
    [
        # by the place in the model's own list: source 3 is no marker's, so the numbers are not those it was shown
        ("Four [1], three [2].", (URLS[3], URLS[2]), "Four [1], three [2].", "DC"),
        # by the numbers it was shown, as asked, where both readings are possible
        ("One [1], two [2].", (URLS[1], URLS[0]), "One [1], two [2].", "AB"),
        # by the numbers written in its list
        ("Four [7], one [8].", (f"[7] {URLS[3]}", f"8. A page, {URLS[0]}."), "Four [1], one [2].", "DA"),
        ("Two [2].", ("[1] Fake " + FAKE, f"[2] {URLS[3]}"), "Two [1].", "D"),
    ],
)
def test_the_models_own_way_of_numbering_is_understood(answer, references, answer_then, sources):
    cited = checked(answer, *references)

    assert (cited.answer, names(cited)) == (answer_then, sources)


@pytest.mark.parametrize(
    "reference",
    [
        URLS[1],
        "http://www.B.org/page/#top",
        f"<{URLS[1]}>",
        f"[B]({URLS[1]})",
        f"B, {URLS[1]}.",
        f"2. {URLS[1]}",
        f"- {URLS[1]} (accessed today)",
        "[2]",
        "2",
        f"{URLS[1]}的说明",
    ],
)
def test_a_reference_may_be_written_in_many_ways(reference):
    assert names(checked("Words.", reference)) == "B"


@pytest.mark.parametrize("reference", [FAKE, "[9]", "0", "B", "https://b.org", "https://b.org/page2", "javascript:x"])
def test_what_names_no_retrieved_source_is_removed(reference):
    assert checked("Words.", reference, " ").removed == (reference,)


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        ("句子【3】，另一句［1］。", "句子[1]，另一句[2]。"),
        ("Glued[3] and[1].", "Glued[1] and[2]."),
        ("Notes [^3] and [^1].", "Notes [1] and [2]."),
        ("Linked [3](https://c.org/page) and [1](https://a.org/page).", "Linked [1] and [2]."),
        ("See [the page](https://c.org/page) and [1].", "See the page [1] and [2]."),
    ],
)
def test_markers_of_every_shape_are_understood(answer, then):
    cited = checked(answer)

    assert (cited.answer, names(cited)) == (then, "CA")


def test_a_link_to_somewhere_else_leaves_only_its_words():
    cited = checked("See [the report](https://fake.example/a_(b)) and [1](https://fake.example/c).")

    assert (cited.answer, cited.removed) == (
        "See the report and.",
        ("https://fake.example/a_(b)", "https://fake.example/c"),
    )


@pytest.mark.parametrize(
    "text", ["In [2025] it was.", "Error [404] and xs[0].", "`xs[1]` is code.", "```\nxs[3] = [1, 2]\n```"]
)
def test_years_codes_and_code_are_no_markers(text):
    cited = checked(text)

    assert (cited.answer, cited.sources, cited.removed) == (text, (), ())


@pytest.mark.parametrize(
    "heading", ["References:\n", "## Sources\n\n", "**References**\n", "**Sources:**\n", "参考文献：\n", "来源\n", ""]
)
def test_the_models_own_list_at_the_end_is_taken_for_references(heading):
    cited = checked(f"Four [1], fake [2].\n\n{heading}[1] {URLS[3]}\n[2] {FAKE}\n")

    assert (cited.answer, names(cited)) == ("Four [1], fake.", "D")


@pytest.mark.parametrize(
    "text",
    [
        f"The sources of it are here:\n{URLS[0]}",
        f"[1] {URLS[0]}",
        "References:\nA book of 1984.",
        f"{'sources' + ' ' * 90_000}x\n{URLS[0]}",
    ],
)
def test_what_only_looks_like_a_list_of_sources_stays(text):
    assert checked(text).answer == text


def test_hostile_text_is_read_in_time():
    text = (" " * 5000 + "[1](https://a.org/(" + "[") * 20 + "https://" * 5000

    assert checked(text).answer


@given(
    st.lists(st.integers(1, 9), max_size=6),
    st.lists(st.sampled_from([*URLS[:4], FAKE, "[3]", "9"]), max_size=5),
    st.integers(0, 4),
)
def test_every_marker_that_is_left_names_a_retrieved_source_and_there_are_no_gaps(markers, references, count):
    answer = " ".join(f"claim {chr(97 + at)} [{number}]" for at, number in enumerate(markers))

    cited = checked(answer, *references, count=count)

    left = [int(number) for number in re.findall(r"\[(\d+)\]", cited.answer)]
    shown = [int(number) for number in re.findall(r"\[(\d+)\]", cited.as_shown)]
    assert list(dict.fromkeys(left)) == list(range(1, len(set(left)) + 1))
    assert [cited.sources[number - 1].url for number in left] == [URLS[number - 1] for number in shown]
    assert len(set(cited.sources)) == len(cited.sources)
    assert set(cited.sources) <= set(catalogue(count).sources)
    assert re.findall("claim .", cited.answer) == re.findall("claim .", answer)


def test_an_address_that_stands_in_the_task_or_in_a_source_is_no_strange_one():
    text = f"See {URLS[0]}, https://api.x.com/v1. And ({FAKE})."

    assert unknown_addresses(text, "the API is at https://api.x.com/v1", catalogue()) == (FAKE,)


@pytest.mark.parametrize(
    ("written", "strange"),
    [
        ("https://docs.org/api/v1/users", ()),
        ("https://docs.org/api/v1/users.", ()),
        ("http://www.docs.org/api/v1/users/", ()),
        ("https://docs.org/api/v1", ("https://docs.org/api/v1",)),
        ("https://docs.org/", ("https://docs.org/",)),
        ("https://docs.org/api/v1/users/7", ("https://docs.org/api/v1/users/7",)),
        ("https://b.or", ("https://b.or",)),
        ("https://zh.org/wiki/北京", ()),
        ("https://zh.org/wiki/", ("https://zh.org/wiki/",)),
        ("https://a.com/x", ()),
        ("https://a.com/x很好", ()),
    ],
)
def test_the_beginning_of_a_known_address_is_another_address(written, strange):
    known = "See (https://docs.org/api/v1/users), https://zh.org/wiki/北京 and https://a.com/x是好的。"

    assert unknown_addresses(f"It is at {written}", known, catalogue()) == strange


@pytest.mark.parametrize(
    "reference", ["https://a.org/pag", "https://a.org", "https://a.org/page/more", "https://a.org/page/北京"]
)
def test_the_beginning_of_the_address_of_a_source_is_no_reference_to_it(reference):
    cited = checked("Something.", reference)

    assert (names(cited), cited.removed) == ("", (reference,))
