"""A JSON value in plain words."""

import json
from typing import Any

import pytest

from reactflow.plain_json import compared, in_words

WEEK = [
    {"date": "2026-01-01", "condition": "clear", "high_c": 7.5, "low_c": -1, "wind_kmh": 10},
    {"date": "2026-01-02", "condition": "rain", "high_c": 10.0, "low_c": 2, "wind_kmh": 30},
    {"date": "2026-01-03", "condition": "clear", "high_c": 9.0, "low_c": 2, "wind_kmh": 20},
]
PAPERS = [
    {
        "url": "https://example.org/a",
        "title": "Tea",
        "text": "Tea by H. James is 5000 years old. It grows in China.",
        "score": 2,
    },
    {"url": "https://example.org/b", "title": "Coffee", "text": "Coffee comes from Ethiopia. It is drunk everywhere."},
]


@pytest.mark.parametrize(
    ("value", "key", "english"),
    [
        (5, "", "5"),
        (5, "amount", "amount 5"),
        (3.0, "high_c", "high 3.0 °C"),
        (12, "wind_speed_kmh", "wind speed 12 km/h"),
        (7, "c", "c 7"),
        (True, "in_stock", "in stock true"),
        (None, "", "null"),
        ("shipped", "status", "status shipped"),
        ("2026-01-01", "date", "2026-01-01"),
        (["a", 1, None], "tags", "tags a, 1, null"),
        ({}, "", ""),
        ([], "", ""),
        ({"a": 1, "b": "", "c": None, "d": [], "e": {}}, "", "a 1"),
        ({"status": "ok", "price_eur": 9.5}, "order", "order: status ok, price 9.5 EUR"),
        ({"id": 7, "buyer": {"name": "Ann", "town": {"name": "Rome"}}}, "", "id 7. Buyer: name Ann. Town: name Rome"),
        ({"buyer": {"name": "Ann"}, "id": 7}, "", "id 7. Buyer: name Ann"),
        ([{"a": 1}, {"a": 2}], "rows", "rows:\n- a 1\n- a 2"),
    ],
)
def test_a_value_is_told_with_its_key_and_unit(value: Any, key: str, english: str):
    assert in_words(value, "en", key=key) == english


def test_keys_and_units_follow_the_language_and_texts_stay():
    value = {"condition": "晴", "temperature_c": 3.5, "wind_kmh": 12, "status": "shipped", "zebra": 1}

    assert in_words(value, "zh", key="now") == "今天：晴，气温 3.5 °C，风速 12 公里/小时，状态 shipped，zebra 1"


def test_a_table_is_told_by_the_range_of_its_first_columns():
    assert in_words(WEEK, "en", key="trend") == (
        "trend: 2026-01-01 to 2026-01-03, clear/rain, high 7.5 to 10.0 °C, low -1 to 2 °C"
    )
    assert in_words(WEEK, "zh", key="trend") == (
        "趋势：2026-01-01 至 2026-01-03，clear/rain，最高 7.5 至 10.0 °C，最低 -1 至 2 °C"
    )


def test_in_detail_a_table_is_told_row_by_row():
    assert in_words(WEEK, "en", key="trend", detail=True).splitlines() == [
        "trend:",
        "- 2026-01-01, clear, high 7.5 °C, low -1 °C, wind 10 km/h",
        "- 2026-01-02, rain, high 10.0 °C, low 2 °C, wind 30 km/h",
        "- 2026-01-03, clear, high 9.0 °C, low 2 °C, wind 20 km/h",
    ]


def test_a_column_with_one_value_or_gaps_is_told_once():
    rows = [{"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": {"c": 3}}]

    assert in_words(rows, "en", key="rows") == "rows: a 1, b 2/…"


def test_of_documents_the_first_sentence_of_the_first_is_told_and_in_detail_all():
    assert in_words({"results": PAPERS}, "en") == "\n- Tea — Tea by H. James is 5000 years old. (https://example.org/a)"
    assert in_words(PAPERS, "en", detail=True).splitlines() == [
        "",
        "- Tea — Tea by H. James is 5000 years old. It grows in China. (https://example.org/a)",
        "- Coffee — Coffee comes from Ethiopia. It is drunk everywhere. (https://example.org/b)",
    ]


def test_a_long_table_is_cut_and_says_so():
    rows = [{"n": n} for n in range(60)]

    assert in_words(rows, "en", detail=True).splitlines()[-2:] == ["- n 49", "- …"]


def test_what_is_too_deep_is_left_out():
    deep: Any = 1
    for _ in range(900):
        deep = {"inner": deep}

    assert in_words(deep, "en").count("nner") == 8
    assert in_words(json.loads("[" * 500 + "]" * 500), "en").count("…") <= 1


def test_the_figures_that_results_share_stand_side_by_side():
    cities = {
        "Paris": {"city": "Paris", "now": {"temperature_c": 3.5, "humidity_percent": 40}},
        "Rome": {"city": "Rome", "now": {"temperature_c": 9, "snow_mm": 1, "wet": True}},
    }

    assert compared(cities, "en") == "Side by side: temperature 3.5 °C (Paris), temperature 9 °C (Rome)."
    assert compared({"a": {"x": 1}, "b": {"y": 2}}, "en") == ""
    assert compared({"a": "text", "b": 3}, "en") == ""
