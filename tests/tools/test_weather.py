"""The weather tool and the sample climate behind it."""

from datetime import date, timedelta

import pytest

from reactflow import SimpleReactAgent, ToolError
from reactflow.testing import ScriptedChatModel, calls, says
from reactflow.tools.climate import CONDITIONS, find_place, places, weather_of
from reactflow.tools.weather import weather

DAY = date(2026, 1, 15)


def test_a_city_and_a_day_always_give_the_same_weather():
    report = weather("Beijing", DAY)

    assert report == weather("Beijing", DAY)
    assert (report["city"], report["country"], report["date"]) == ("Beijing", "China", "2026-01-15")
    assert report["now"] == {
        "condition": "overcast",
        "temperature_c": -1.0,
        "humidity_percent": 41,
        "precipitation_mm": 0.0,
        "wind_kmh": 24.4,
    }
    assert report["trend"][0] == {
        "date": "2026-01-16",
        "condition": "clear",
        "high_c": 0.8,
        "low_c": -8.2,
        "precipitation_mm": 0.0,
        "wind_kmh": 9.4,
    }


def test_the_trend_covers_the_seven_days_after_the_day():
    days = [row["date"] for row in weather("Beijing", date(2026, 12, 28))["trend"]]

    assert days == ["2026-12-29", "2026-12-30", "2026-12-31", "2027-01-01", "2027-01-02", "2027-01-03", "2027-01-04"]


def test_the_first_day_of_a_trend_is_the_next_days_own_weather():
    tomorrow = weather_of(find_place("Paris"), DAY + timedelta(days=1))

    assert weather("Paris", DAY)["trend"][0]["high_c"] == tomorrow.high_c
    assert weather("Paris", DAY)["trend"][3] == weather("Paris", DAY + timedelta(days=2))["trend"][1]


def test_without_a_day_it_reports_on_today():
    before = date.today()
    report = weather("London")

    assert report["date"] in {before.isoformat(), date.today().isoformat()}


def test_a_chinese_name_gets_the_same_weather_in_chinese():
    english, chinese = weather("Beijing", DAY), weather("北京", DAY)

    assert (chinese["city"], chinese["country"]) == ("北京", "中国")
    assert chinese["now"] == {**english["now"], "condition": CONDITIONS[english["now"]["condition"]]}
    assert [row["high_c"] for row in chinese["trend"]] == [row["high_c"] for row in english["trend"]]


def test_both_languages_say_that_the_data_are_a_sample():
    assert weather("Beijing", DAY)["note"] == (
        "Bundled sample data computed from climate normals; not a real observation or forecast."
    )
    assert weather("北京", DAY)["note"] == "随附的示例数据，由气候常值推算，并非真实观测或预报。"
    assert "Bundled sample data, not real." in weather.description


@pytest.mark.parametrize(
    ("name", "city"),
    [
        ("beijing", "Beijing"),
        ("  PEKING ", "Beijing"),
        ("北京市", "北京"),
        ("sao paulo", "São Paulo"),
        ("Xi’an", "Xi'an"),
        ("New York City", "New York"),
        ("Mexico City", "Mexico City"),
        ("三藩市", "旧金山"),
        ("東京", "东京"),
    ],
)
def test_other_spellings_and_aliases_find_the_city(name: str, city: str):
    assert weather(name, DAY)["city"] == city


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Bejing", "The sample data have no city called 'Bejing'. Near names: Beijing, Berlin."),
        ("北经", "示例数据中没有城市“北经”。相近的城市：北京。"),
        ("qqqq", "The sample data have no city called 'qqqq'. It has, for example: Beijing, Shanghai, Guangzhou, "),
        ("火星", "示例数据中没有城市“火星”。有的城市例如：北京、上海、广州、"),
        ("", "The sample data have no city called ''. It has, for example: Beijing, "),
    ],
)
def test_an_unknown_city_is_an_error_that_lists_near_names_in_its_script(name: str, message: str):
    with pytest.raises(ToolError) as caught:
        weather(name, DAY)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("day", [date.min, date(1899, 12, 31), date(2101, 1, 1), date.max])
def test_a_day_far_away_is_an_error_that_says_the_range(day: date):
    with pytest.raises(ToolError, match="give one from 1900-01-01 to 2100-12-31"):
        weather("Beijing", day)


def test_a_very_long_name_is_cut_in_the_error():
    with pytest.raises(ToolError) as caught:
        weather("x" * 100_000, DAY)

    assert len(str(caught.value)) < 300


def test_every_city_has_two_names_and_weather_within_reason_all_year():
    assert len(places()) == 41
    for place in places():
        year = [weather_of(place, date(2026, 1, 1) + timedelta(days=n)) for n in range(365)]
        assert set(place.names) == {"en", "zh"}
        assert all(day.condition in CONDITIONS for day in year)
        assert all(-40 < day.low_c < day.high_c < 50 for day in year)
        assert all(day.precipitation_mm >= 0 and 0 < day.wind_kmh < 90 for day in year)
        assert all(day.precipitation_mm > 0 for day in year if day.condition in ("rain", "heavy rain", "snow"))


def test_no_two_cities_share_a_name():
    names = [name for place in places() for name in (*place.names.values(), *place.aliases)]

    assert len(names) == len(set(names))
    assert all(name in (*find_place(name).names.values(), *find_place(name).aliases) for name in names)


async def test_an_agent_passes_the_day_as_a_date_and_reads_the_error():
    model = ScriptedChatModel(
        calls("weather", city="Paris", day="2026-01-15") + calls("weather", city="Pariss"), says("ok")
    )

    result = await SimpleReactAgent(model=model, tools=[weather]).arun("Weather in Paris?")

    fine, wrong = model.seen[1].messages[-2:]
    assert '"date":"2026-01-15"' in fine.text.replace(" ", "")
    assert (wrong.text, wrong.is_error) == ("The sample data have no city called 'Pariss'. Near names: Paris.", True)
    assert result.text == "ok"
