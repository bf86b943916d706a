"""Markers and references: what points at a retrieved source stays under the right number, the rest goes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactflow.workflows.citations import check_citations, unknown_addresses
from reactflow.workflows.sources import Catalogue, Source

URLS = [f"https://{letter}.org/page" for letter in "abcdef"]
FAKE = "https://fake.example/x"
PLAIN = "[{}]"
FORMS = {
    **dict.fromkeys(("[{}]", "［{}］", "【{}】", "〔{}〕", "[ {} ]", "[^{}]", "[^{}^]", "[#{}]", "\\[{}\\]"), PLAIN),
    **dict.fromkeys(("【{}†source】", "【{}†L1-L5】", "[[{}]](#r)", "[{}](#r)", "[[{}]](https://{url})"), PLAIN),
    **dict.fromkeys(
        (
            "[Source {}]",
            "[source: {}]",
            "[ref {}]",
            "[Ref. #{}]",
            "[see source {}]",
            "[doc{}]",
            "[Doc-{}]",
            "[source_{}]",
        ),
        PLAIN,
    ),
    **dict.fromkeys(("(Source {})", "(ref. {})", "(see source {})", "[Source {}](https://{url})"), PLAIN),
    **dict.fromkeys(("[来源 {}]", "（来源{}）", "（来源：{}）", "【参考文献{}】", "（参见来源{}）", "[资料{}]"), PLAIN),
    **dict.fromkeys(("<sup>{}</sup>", "<sup>[{}]</sup>", "<ref>{}</ref>"), PLAIN),
    **dict.fromkeys(('[{}](https://{url} "Title")', "[{}](<https://{url}>)", "[\\[{}\\]](https://{url})"), PLAIN),
    **{form: form for form in ("[[{}]]", "([{}])", "（[{}]）", "**[{}]**", "[{}, p. 14]", "[{}: §3]", "[{}，第3页]")},
}


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


def written(form, number):
    return form.format(number, url=f"{'xabcdef'[number]}.org/page")


@pytest.mark.parametrize(("form", "then"), FORMS.items())
def test_a_marker_is_numbered_anew_in_every_form(form, then):
    cited = checked(f"Two {written(form, 2)}. Three {written(form, 3)}，四{written(form, 4)}。", *URLS[1:4])

    assert cited.answer == f"Two {then.format(1)}. Three {then.format(2)}，四{then.format(3)}。"
    assert (names(cited), cited.removed, cited.unclear) == ("BCD", (), ())


@pytest.mark.parametrize("form", [form for form in FORMS if "{url}" not in form and "*" not in form])
def test_a_marker_of_no_source_goes_in_every_form(form):
    cited = checked(f"{form.format(1)} Fake {form.format(1)}, two {form.format(2)}.", FAKE, URLS[3])

    assert cited.answer == f"Fake, two {FORMS[form].format(1)}."
    assert (names(cited), cited.removed) == ("D", (FAKE, "[1]"))


@pytest.mark.parametrize(
    ("answer", "then", "sources"),
    [
        ("All [2,3].", "All [1, 2].", "BC"),
        ("All [2–4].", "All [1, 2, 3].", "BCD"),
        ("All [2 and 4].", "All [1, 2].", "BD"),
        ("All [2]–[4].", "All [1, 2, 3].", "BCD"),
        ("Two [2], all [1]-[3].", "Two [1], all [2, 1, 3].", "BAC"),
        ("All [Source 2] to [Source 4].", "All [1, 2, 3].", "BCD"),
        ("全部【2】至【4】。", "全部[1, 2, 3]。", "BCD"),
        ("Both [4]–[2].", "Both [1]–[2].", "DB"),
        ("Both [4-2].", "Both [1, 2].", "DB"),
        ("All [2][3] [4].", "All [1][2] [3].", "BCD"),
        ("Both (sources 2 and 4).", "Both [1, 2].", "BD"),
        ("都有（来源2、来源4）。", "都有[1, 2]。", "BD"),
        ("[2, p. 3; 3, pp. 4-5] and [2; 4]", "[1, p. 3; 2, pp. 4-5] and [1, 3]", "BCD"),
        ("Great![2](https://b.org/page)", "Great![1]", "B"),
        ("See [[B]](https://b.org/page).", "See [B] [1].", "B"),
    ],
)
def test_a_marker_of_several_and_a_range_mean_the_same_sources_then(answer, then, sources):
    cited = checked(answer)

    assert (cited.answer, names(cited), cited.unclear) == (then, sources, ())


def test_a_comma_and_brackets_go_with_the_marker_they_were_for():
    cited = checked("([9]) One [2], [9]. Two ([9]), three （[9]）。\n [9] Four [[9]].\n[9]")

    assert cited.answer == "One [1]. Two, three。\nFour.\n"
    assert checked("([9])[9]([9]) One [1]([9]) more ([8], [9])").answer == "One [1] more"


UNCLEAR = """(2) | （2） | (2, 3) | (1-3) | (source 2 says so) | Source 2 | Sources 1 and 2 | 来源2 | ² | ¹² | [S2]
| [2 others] | [2, p. 4, 5] | [1–999] | 【4:2†source】 | v[2] | my_list[2] | m[1][2] | data[2] | = [1, 2]
| [0, 2] | [2,345] | `[2]` | <sup>2 of 3</sup>"""


@pytest.mark.parametrize("unclear", re.split(r"\s\|\s", UNCLEAR))
def test_what_may_be_a_marker_stays_and_is_named_where_its_number_means_another_source_then(unclear):
    text = f"It is said {unclear} = so."

    same, other = checked(text, *URLS[:4]), checked(text, *URLS[2:4])

    assert (same.answer, same.unclear, names(same)) == (text, (), "ABCD")
    assert (other.answer, other.unclear, names(other)) == (text, (unclear,), "CD")


@pytest.mark.parametrize("power", ["x<sup>2</sup>", "10<sup>2</sup>", "(a + b)<sup>2</sup>", "sin<sup>2</sup>"])
def test_a_tag_that_may_make_an_exponent_is_unclear(power):
    cited = checked(f"{power} is said.", *URLS[2:4])

    assert (cited.answer, cited.unclear) == (f"{power} is said.", ("<sup>2</sup>",))


@pytest.mark.parametrize(
    "text",
    [
        *("5 km² and 10³", "f(2)", "(2) A list", "- (1) A list", "(2 years)", "(about 2)", "x = sin² y", "[2025]"),
        *("```\nxs[2]\n```", "~~~ py\nxs[2]\n~~~", "````\n```\n[2]\n```\n````", "```\n[2]", "``a ` [2]``", "`a\n[2]`"),
        *("<code>[2]</code>", "<pre class='x'>[2]</pre>", "![2 plots](https://a.org/x.png)", "open source 2.0"),
    ],
)
def test_what_is_no_marker_stays_and_is_not_named(text):
    cited = checked(f"{text}\n", URLS[2])

    assert (cited.answer, cited.as_shown, names(cited), cited.unclear) == (f"{text}\n", f"{text}\n", "C", ())


def test_a_backtick_or_a_tag_without_an_end_hides_no_marker():
    cited = checked("It`s <code> [2].\n\nIt`s ``` [3] ~~~ [4].")

    assert cited.answer == "It`s <code> [1].\n\nIt`s ``` [2] ~~~ [3]."


@given(st.lists(st.tuples(st.text(), st.sampled_from(["\n`xs[2]`\n", "\n\n```py\nxs[2] = [1, 2]\n```\n", ""]))))
def test_a_text_without_markers_is_returned_as_it_is(pieces):
    text = "".join(re.sub(r"[\d⁰¹²³⁴-⁹`~<!\\]|http", "", words) + code for words, code in pieces)

    cited = checked(text, URLS[2])

    assert (cited.answer, cited.as_shown, cited.unclear) == (text, text, ())


PIECES = [
    "(",
    ")",
    "[",
    "]",
    "[[",
    "]](",
    "[9]",
    "[1]",
    "（",
    "）",
    " ",
    "\n",
    ",",
    "-",
    "`",
    "²",
    "source 2",
    "<sup>",
    "x",
]


@given(
    st.lists(st.sampled_from([*PIECES, "</sup>", "2", "\\", ";", "[^", "](https://b.org/page)", "](#n)"]), max_size=14)
)
def test_no_word_is_lost_between_pieces_of_markers(pieces):
    text = "".join(pieces)

    cited = checked(text, URLS[1])

    assert (cited.answer.count("x"), cited.as_shown.count("x")) == (text.count("x"),) * 2


@given(st.lists(st.tuples(st.sampled_from([*FORMS]), st.integers(1, 6)), max_size=8), st.integers(1, 6))
def test_the_new_numbers_lead_back_to_the_same_addresses_in_the_same_order(markers, count):
    answer = "Words" + ".".join(f" words {written(form, number)}" for form, number in markers)

    cited = checked(answer, count=count)

    left = [int(number) for number in re.findall(r"\[(\d)", cited.answer)]
    meant = [URLS[number - 1] for _, number in markers if number <= count]
    assert [cited.sources[number - 1].url for number in left] == meant
    assert [source.url for source in cited.sources] == list(dict.fromkeys(meant))
    assert len(re.findall("words", cited.answer)) == len(markers)
    assert checked(cited.as_shown, count=count).answer == cited.answer


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
    "line",
    ["[{}] {}", "{}. {}", "({}) {}", "Source {}: {}", "来源{}：{}", "- **[{}]** {}", "<sup>{}</sup> {}", "[^{}]: {}"],
)
def test_the_models_own_list_is_read_in_every_form_and_the_text_before_it_stays(line):
    body = "One [1],\r\ntwo\u2028[Source 2]."

    cited = checked("\n".join((body, "", "Sources:", line.format(1, URLS[3]), line.format(2, URLS[1]))))

    assert (cited.answer, names(cited)) == ("One [1],\r\ntwo\u2028[2].", "DB")


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


@pytest.mark.parametrize(
    "text",
    [
        (" " * 5000 + "[1](https://a.org/(" + "[") * 20 + "https://" * 5000,
        *(
            piece * (100_000 // len(piece))
            for piece in ("[", "(2", "`", "<code>", "<sup>1", "a_", "v[1", "[1](https://a(")
        ),
        "".join("`" * length + "a" for length in range(400)),
        "[1-100]" * 2000,
    ],
    ids=lambda text: text.strip()[:16],
)
def test_hostile_text_is_read_in_time(text):
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
