"""What searches return, and the numbers under which it is kept."""

import json

import pytest

from reactflow.workflows.sources import Catalogue, Source, address, read_sources, source_list

A = Source("https://a.org/x", "A", "alpha")


@pytest.mark.parametrize(
    "value",
    [
        [{"url": "https://a.org/x", "title": "A", "text": "alpha"}],
        {"results": [{"url": "https://a.org/x", "title": " A ", "content": "alpha", "score": 0.9}], "query": "a"},
        {"sources": [{"link": "https://a.org/x", "name": "A", "snippet": "alpha"}]},
        {"url": "https://a.org/x", "title": "A", "text": "alpha"},
        {
            "organic": [
                None,
                3,
                "https://b.org",
                {"title": "no address"},
                {"link": "https://a.org/x", "title": "A", "text": "alpha"},
            ]
        },
        [{"url": " https://a.org/x\n", "title": "A", "text": "", "body": "alpha"}],
    ],
)
def test_the_answers_of_different_services_are_read_alike(value):
    assert read_sources(json.dumps(value), 5) == (A,)


@pytest.mark.parametrize(
    "value", [None, [], {"results": []}, [{"url": "has space"}], [{"url": "https://" + "x" * 2000}]]
)
def test_no_usable_entry_is_no_source(value):
    assert read_sources(json.dumps(value), 5) == ()


@pytest.mark.parametrize("text", ["plain words", '"text"', "7", "{}", '{"error": "quota"}', "[" * 100_000])
def test_what_is_no_list_of_sources_is_an_error(text):
    with pytest.raises(ValueError, match=r"."):
        read_sources(text, 5)


def test_only_the_first_sources_of_a_query_are_taken():
    assert len(read_sources(json.dumps([{"url": f"https://a.org/{n}"} for n in range(9)]), 3)) == 3


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("https://a.org/x", "HTTP://www.A.org/x/#part", True),
        ("https://a.org/%E6%B8%A9", "https://a.org/温", True),
        ("doc:12", "DOC:12 ", True),
        ("https://a.org/x?id=1", "https://a.org/x?id=2", False),
        ("https://a.org/x", "https://a.org/X", False),
        ("https://[broken", "https://[BROKEN", True),
    ],
)
def test_spellings_of_one_address_are_told_from_other_addresses(a, b, same):
    assert (address(a) == address(b)) is same


def test_a_source_keeps_the_number_it_was_first_found_under():
    catalogue = Catalogue()

    assert catalogue.add([A, Source("https://b.org")]) == [1, 2]
    assert catalogue.add([Source("https://c.org"), Source("http://a.org/x/", "other title"), A]) == [3, 1]
    assert (len(catalogue), catalogue.sources[0], catalogue.number("https://www.b.org/")) == (3, A, 2)
    assert catalogue.number("https://d.org") is None


def test_the_evidence_is_numbered_and_bounded_each_source_and_all_together():
    catalogue = Catalogue()
    catalogue.add([Source(f"https://a.org/{n}", f"T{n}", f"begin{n} " + "x" * 5000 + f" end{n}") for n in range(1, 11)])

    evidence = catalogue.evidence("task", max_source_chars=1000, max_chars=3000)

    first = evidence.split("\n\n[2] ")[0]
    assert first.startswith("[1] T1\nhttps://a.org/1\nbegin1 ")
    assert first.endswith(" end1")
    assert len(evidence) < 3000 + 10 * 40
    assert Catalogue().evidence("task", max_source_chars=10, max_chars=10) == ""


def test_the_list_behind_an_answer_has_number_title_and_address():
    assert source_list([A, Source("doc:1")]) == "[1] A https://a.org/x\n[2] doc:1"
