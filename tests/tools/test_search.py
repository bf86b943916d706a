"""The search tool, its ranking, and the warnings it finds."""

import json
from datetime import date, timedelta
from importlib.resources import files
from urllib.parse import urlsplit

import pytest

from reactflow import ToolError
from reactflow.tools.alerts import Alert, warning_documents, warnings_of
from reactflow.tools.climate import Day, find_place, places, weather_of
from reactflow.tools.ranking import Document, Index
from reactflow.tools.search import find, search
from reactflow.tools.weather import weather

DAY = date(2026, 1, 15)


def titles(query: str, most: int = 5) -> list[str]:
    return [result["title"] for result in find(query, most, DAY)["results"]]


def calm(**changes: float) -> Day:
    return Day(DAY, "clear", 20.0, 10.0, 0.0, 10.0)._replace(**changes)


def test_the_research_question_finds_the_laureates_and_why_they_won():
    found = find("Who won the Nobel Prize in Physics in 2025 and why?", 5, DAY)
    first = found["results"][0]

    assert first["title"] == "Nobel Prize in Physics 2025: Clarke, Devoret and Martinis"
    assert first["url"] == "https://example.org/library/nobel-physics-2025"
    assert "macroscopic quantum mechanical tunnelling and energy quantisation in an electric circuit" in first["text"]
    assert list(first) == ["url", "title", "text", "score"]
    assert found["note"] == "Bundled sample documents, not a search of the web."


def test_a_chinese_question_finds_chinese_documents_and_gets_a_chinese_note():
    found = find("谁获得了2025年诺贝尔物理学奖？", 1, DAY)

    assert [result["title"] for result in found["results"]] == ["2025年诺贝尔物理学奖：克拉克、德沃雷与马丁尼斯"]
    assert found["note"] == "结果来自随附的示例文档，并非网络搜索。"


def test_results_come_by_falling_score_and_weak_ones_are_left_out():
    scores = [result["score"] for result in find("speed of light", 20, DAY)["results"]]

    assert titles("speed of light", 1) == ["Speed of light"]
    assert scores == sorted(scores, reverse=True)
    assert all(score >= scores[0] * 0.66 for score in scores)


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("penguin", "Nothing in the bundled sample documents matches."),
        ("what is this", "Nothing in the bundled sample documents matches."),
        ("企鹅", "随附的示例文档中没有匹配的内容。"),
    ],
)
def test_without_a_hit_the_list_is_empty_and_a_note_says_so(query: str, note: str):
    assert find(query, 5, DAY) == {"query": query, "results": [], "note": note}


@pytest.mark.parametrize("query", ["", "   ", "?!…", "😀"])
def test_a_query_without_words_is_an_error(query: str):
    with pytest.raises(ToolError, match="holds no word to look for; give a few keywords"):
        search(query)


@pytest.mark.parametrize("most", [0, 21])
def test_the_number_of_results_has_bounds(most: int):
    with pytest.raises(ToolError, match=f"max_results is {most}; give a whole number from 1 to 20"):
        search("tea", most)

    assert search.parameters["properties"]["max_results"]["maximum"] == 20
    assert len(find("the Nobel Prize 2025", 3, DAY)["results"]) == 3


def test_search_looks_at_the_warnings_of_today():
    before = date.today()
    url = search("weather warning Beijing")["results"][0]["url"]

    assert url in {f"https://example.org/warnings/beijing/{day}" for day in (before, date.today())}


def test_a_warning_is_found_by_city_in_both_languages_and_agrees_with_the_weather_tool():
    (coldest,) = {min(row["low_c"] for row in weather("Beijing", DAY)["trend"])}
    english = find("weather warnings for Beijing", 1, DAY)["results"][0]
    chinese = find("北京天气的预警情况", 1, DAY)["results"][0]

    assert english["title"] == "Weather warning for Beijing on 2026-01-15: wind (blue), cold (blue)"
    assert f"{coldest} °C is expected" in english["text"]
    assert chinese["title"] == "北京气象预警（2026-01-15）：大风蓝色预警、低温蓝色预警"
    assert f"最低气温为 {coldest} °C" in chinese["text"]
    assert "not a real warning" in english["text"]
    assert "并非真实预警" in chinese["text"]


def test_a_city_without_warnings_has_a_document_that_says_so_with_figures():
    quiet = date(2026, 5, 1)
    found = find("weather warning Zurich", 1, quiet)["results"][0]
    windiest = max(weather_of(find_place("Zurich"), quiet + timedelta(days=n)).wind_kmh for n in range(8))

    assert found["title"] == "No weather warning for Zurich on 2026-05-01"
    assert f"winds of at most {windiest} km/h" in found["text"]
    assert find("苏黎世气象预警", 1, quiet)["results"][0]["title"] == "苏黎世当前无气象预警（2026-05-01）"


def test_every_city_has_one_document_a_day_in_each_language():
    documents = list(warning_documents(DAY))

    assert len(documents) == 2 * len(places())
    assert len({document.url for document in documents}) == len(documents)
    assert all(urlsplit(document.url).path.isascii() and " " not in document.url for document in documents)


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        (calm(), []),
        (calm(wind_kmh=38.9), []),
        (calm(wind_kmh=39.0), [Alert("wind", "blue", DAY, 39.0, 39)]),
        (calm(wind_kmh=62.5), [Alert("wind", "orange", DAY, 62.5, 62)]),
        (calm(precipitation_mm=50.0), [Alert("rainstorm", "yellow", DAY, 50.0, 50)]),
        (calm(high_c=37.2), [Alert("heat", "orange", DAY, 37.2, 37)]),
        (calm(low_c=-4.9), []),
        (calm(low_c=-5.0), [Alert("cold", "blue", DAY, -5.0, -5)]),
        (calm(low_c=-25.1), [Alert("cold", "orange", DAY, -25.1, -25)]),
        (
            calm(high_c=33.0, wind_kmh=50.0),
            [Alert("wind", "yellow", DAY, 50.0, 50), Alert("heat", "yellow", DAY, 33.0, 33)],
        ),
    ],
)
def test_a_warning_begins_at_its_level(day: Day, expected: list[Alert]):
    assert warnings_of([calm(), day]) == expected


def test_the_collection_holds_documents_in_both_languages_at_reserved_addresses():
    library = json.loads(files("reactflow.tools").joinpath("documents.json").read_text("utf-8"))

    assert len(library) == len({document["url"] for document in library}) == 79
    assert {urlsplit(document["url"]).hostname for document in library} == {"example.org"}
    assert sum("/zh/" in document["url"] for document in library) == 20


def test_a_rare_word_counts_more_than_a_common_one_and_the_title_more_than_the_text():
    common = [Document(f"u{n}", "weather", "weather weather") for n in range(8)]
    rare = Document("rare", "weather", "weather typhoon")
    titled = Document("titled", "typhoon", "weather")

    ranked = Index.of([*common, rare, titled]).rank({"weather", "typhoon"})

    assert [document.url for _, document in ranked[:2]] == ["titled", "rare"]


def test_equal_scores_keep_the_order_of_the_documents():
    documents = [Document(f"u{n}", "tea", "green tea") for n in range(5)]

    assert [document.url for _, document in Index.of(documents).rank({"tea"})] == ["u0", "u1", "u2", "u3", "u4"]


def test_an_index_of_nothing_finds_nothing():
    assert Index.of([]).rank({"tea"}) == []
