"""What a text says, by a small word list."""

import time
from datetime import date

import pytest

from reactflow.plain_words import (
    after_name,
    decoded,
    find,
    fitted,
    label,
    meaning,
    mentions,
    misfits,
    search_phrase,
    sentence,
    terms,
    unsaid,
)

TODAY = date(2026, 2, 27)


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("number", "2 + 3.5 and -4, 1,000 or 007", [2, 3.5, -4, 1000, 7]),
        ("number", "on 2026-01-02, order A-17, 3rd, v2.0, USD5", []),
        ("number", "2025年的5个", [2025, 5]),
        ("number", "1.5.2", []),
        ("id", "order A-1042, #77, SKU9-b and a 7", ["A-1042", "77", "SKU9-b"]),
        ("id", "订单A-1042的状态", ["A-1042"]),
        (
            "date",
            "today, Tomorrow, 2026-03-09, 后天 and 昨天",
            ["2026-02-27", "2026-02-28", "2026-03-09", "2026-03-01", "2026-02-26"],
        ),
        ("place", "paris, New York and 上海市", ["paris", "New York", "上海"]),
        ("quoted", "say 'good day' or “早上好” or \"it's\", don't", ["good day", "早上好", "it's"]),
        ("quoted", "《红楼梦》和「茶」", ["红楼梦", "茶"]),
        (
            "name",
            "Please ask Anna Schmidt about the Nobel Prize in Physics",
            ["Anna Schmidt", "Nobel Prize", "Physics"],
        ),
        ("name", "Springfield weather", ["Springfield"]),
        ("name", "Show The Weather Report", []),
        ("name", "查询USD和O'Brien", ["USD", "O'Brien"]),
        ("han", "火星今天的天气", ["火星"]),
        ("seek", "First look up the price, then search for tea in Japan; write", ["the price", "tea in Japan"]),
    ],
)
def test_values_of_a_kind_are_found_in_order(kind: str, text: str, values: list[object]):
    assert [value for _, value in find(kind, text, TODAY)] == values


def test_a_value_comes_with_its_place_in_the_text():
    assert find("number", "add 2 and 30") == [(4, 2), (10, 30)]


def test_without_a_day_to_count_from_day_words_stay():
    assert find("date", "today and 2026-03-09") == [(0, "today"), (10, "2026-03-09")]


def test_a_capital_at_the_beginning_of_a_sentence_is_no_name_where_there_is_another():
    assert [name for _, name in find("name", "Book a table at Luigi. Thanks")] == ["Luigi"]
    assert [name for _, name in find("name", "Go home. Bob")] == ["Go", "Bob"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Which orders are late?", ["order", "late"]),
        ("get_weatherForecast", ["search", "weather", "trend"]),
        ("查询北京的天气预警", ["search", "北京", "weather", "warning"]),
        ("2 + 3, 4 times 5", ["add", "multiply"]),
        ("the of 的", []),
        ("statuses and status", ["statuse", "status"]),
    ],
)
def test_words_of_one_meaning_get_one_name_and_filler_goes(text: str, expected: list[str]):
    assert [term for term in terms(text) if term in expected] == expected
    assert not {"the", "of", "的", "which", "are"} & set(terms(text))


def test_a_word_that_the_list_does_not_know_means_itself():
    assert (meaning("forecast"), meaning("预报"), meaning("zebra")) == ("trend", "trend", "zebra")


@pytest.mark.parametrize(
    ("key", "english", "chinese"),
    [
        ("wind_speed", "wind speed", "风速speed"),
        ("customer_id", "customer id", "客户编号"),
        ("date", "", ""),
        ("note", "", ""),
        ("zebra", "zebra", "zebra"),
    ],
)
def test_a_key_is_put_in_words(key: str, english: str, chinese: str):
    assert (label(key, "en"), label(key, "zh")) == (english, chinese)


def test_choices_are_found_as_whole_words_in_any_case_by_their_first_place():
    assert mentions(["eur", "USD", "US", 7, None], "Convert 7 usd to EUR") == [(8, 7), (10, "USD"), (17, "eur")]
    assert mentions(["USD", "EUR"], "把100USD换成EUR") == [(9, "EUR")]


def test_the_place_behind_a_parameters_name_is_known():
    assert after_name("order_id", "the order id is 7") == {10, 16}
    assert 14 in after_name("to_currency", "1 USD, now to EUR")


def test_what_stands_behind_a_figure_is_what_one_converts_from():
    text = "How many EUR for 250 USD?"

    assert text.index("USD") in after_name("from_currency", text)
    assert text.index("USD") not in after_name("to_currency", text)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Look at Paris, search for rain in Rome, and write it up.", "rain in Rome"),
        ("Who wrote Faust?", "Who wrote Faust"),
        ("Describe tea in at least 50 words.", "Describe tea in"),
        ("请搜索北京天气的预警情况，生成报告。", "北京天气的预警情况"),
    ],
)
def test_the_clause_behind_search_is_the_search_phrase_else_the_question(text: str, phrase: str):
    assert search_phrase(text, text) == phrase


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("at least 3 words", "one two", {"too_short": (2, "words", 3)}),
        ("At Least 3 words", "one two three", {}),
        ("200 words or more", "one", {"too_short": (1, "words", 200)}),
        ("no more than 2 words", "one two three", {"too_long": (3, "words", 2)}),
        ("no less than 2 words, at most 4 words", "1.5 2026-01-02 c d e", {"too_long": (5, "words", 4)}),
        ("within 5 characters", "123456", {"too_long": (6, "characters", 5)}),
        ("不少于 5 字", "北京 3.5 °C", {"too_short": (2, "个汉字", 5)}),
        ("至少5个字", "北京天气晴", {}),
        ("3字以内", "北京天气", {"too_long": (4, "个汉字", 3)}),
        ("不超过 3 个字符", "ab cd", {"too_long": (5, "个字符", 3)}),
        ("a 200-word report", "one", {}),
        ("write a report", "one", {}),
    ],
)
def test_the_length_asked_for_is_held_against_the_text(question: str, text: str, expected: dict[str, object]):
    assert misfits(question, text) == expected


def test_a_text_is_cut_at_the_end_of_a_sentence_until_it_fits():
    assert fitted("at most 4 words", "One two. Three four. Five.") == "One two. Three four."
    assert fitted("不超过 4 字", "北京晴。上海雨。") == "北京晴。"
    assert fitted("at most 1 word", "One two three") == "One two three"
    assert fitted("", "One. Two.") == "One. Two."


def test_what_a_question_names_and_a_text_does_not_is_listed():
    question = "Compare the weather trend in Paris and 'Old Town' with warnings for Anna today"

    assert unsaid(question, "") == ["Paris", "Anna", "Old Town", "today", "trend", "warning"]
    assert unsaid(question, "PARIS, old town, anna: forecast now; no alerts") == []
    assert unsaid("北京今天的预警", "北京") == ["今天", "预警"]


def test_a_sentence_gets_one_full_stop():
    assert [sentence(text, "en") for text in ("a", "a.", "a)")] == ["a.", "a.", "a)"]
    assert sentence("晴", "zh") == "晴。"


@pytest.mark.parametrize(
    ("text", "value"), [('{"a": 1}', {"a": 1}), ("5", 5), ("plain {", "plain {"), ("[" * 99_999, "[" * 99_999)]
)
def test_json_is_decoded_and_other_text_stays(text: str, value: object):
    assert decoded(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "A" * 50_000,
        "A " * 30_000,
        "AAAA The " * 9_000,
        "'a" * 30_000,
        "「" * 50_000,
        "北" * 50_000,
        "-" * 50_000,
        "1" * 50_000,
        "9," * 30_000,
    ],
)
def test_no_text_takes_long_to_read(text: str):
    began = time.process_time()
    for kind in ("number", "id", "date", "place", "quoted", "name", "han", "seek"):
        find(kind, text, TODAY)
    terms(text)
    misfits(text, text)
    unsaid(text, text)

    assert time.process_time() - began < 2.0
