"""Weather warnings of the sample: one document a city and language, worked out from the sample weather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from reactflow.tools.climate import Day, Language, Place, fold, places, weather_of
from reactflow.tools.ranking import Document

WIND_KMH = ((62, "orange"), (50, "yellow"), (39, "blue"))
RAIN_MM = ((100, "orange"), (50, "yellow"), (30, "blue"))
HEAT_C = ((40, "red"), (37, "orange"), (33, "yellow"))
COLD_C = ((-25, "orange"), (-15, "yellow"), (-5, "blue"))
"""Where a warning begins: the daily value, the most severe level first, and the level's colour."""

COLOURS = {"blue": "蓝色", "yellow": "黄色", "orange": "橙色", "red": "红色"}
KINDS = {"wind": "大风", "rainstorm": "暴雨", "heat": "高温", "cold": "低温"}
UNITS: dict[Language, dict[str, str]] = {
    "en": {"wind": "km/h", "rainstorm": "mm", "heat": "°C", "cold": "°C"},
    "zh": {"wind": "公里/小时", "rainstorm": "毫米", "heat": "°C", "cold": "°C"},
}
MEASURES = {"wind": "风速", "rainstorm": "日降水量", "heat": "最高气温", "cold": "最低气温"}


class Alert(NamedTuple):
    """One warning: its kind (a key of :data:`KINDS`), its colour, and the day and value that call for it."""

    kind: str
    colour: str
    day: date
    value: float
    threshold: int


def warning_documents(today: date) -> Iterator[Document]:
    """What is in force on *today*, for every city of the sample in English and Chinese."""
    for place in places():
        days = [weather_of(place, today + timedelta(days=ahead)) for ahead in range(8)]
        found = warnings_of(days)
        yield _english(place, days, found)
        yield _chinese(place, days, found)


def warnings_of(days: Sequence[Day]) -> list[Alert]:
    """The warnings that *days* call for, at most one of each kind, for the day with the most extreme value."""
    windy = max(days, key=lambda day: day.wind_kmh)
    wet = max(days, key=lambda day: day.precipitation_mm)
    hot = max(days, key=lambda day: day.high_c)
    cold = min(days, key=lambda day: day.low_c)
    candidates = [
        ("wind", windy.day, windy.wind_kmh, _level(windy.wind_kmh, WIND_KMH)),
        ("rainstorm", wet.day, wet.precipitation_mm, _level(wet.precipitation_mm, RAIN_MM)),
        ("heat", hot.day, hot.high_c, _level(hot.high_c, HEAT_C)),
        ("cold", cold.day, cold.low_c, _level(cold.low_c, COLD_C)),
    ]
    return [Alert(kind, level[1], day, value, level[0]) for kind, day, value, level in candidates if level]


def _level(value: float, levels: Sequence[tuple[int, str]]) -> tuple[int, str] | None:
    """The first level that *value* reaches; one below 0 is reached from above."""
    return next((level for level in levels if (value >= level[0] if level[0] > 0 else value <= level[0])), None)


def _english(place: Place, days: Sequence[Day], found: Sequence[Alert]) -> Document:
    city, today = place.names["en"], days[0].day
    url = f"https://example.org/warnings/{fold(city).replace(' ', '-')}/{today}"
    note = "This is sample text worked out from the bundled sample weather, not a real warning."
    if not found:
        title = f"No weather warning for {city} on {today}"
        return Document(url, title, f"No weather warning is in force for {city} on {today}. {_calm(days, 'en')} {note}")
    title = f"Weather warning for {city} on {today}: " + ", ".join(f"{one.kind} ({one.colour})" for one in found)
    said = (
        f"{'An' if one.colour == 'orange' else 'A'} {one.colour} {one.kind} warning is in force for {city}: "
        f"{one.value} {UNITS['en'][one.kind]} is expected on "
        f"{one.day}, and the level {one.colour} begins at {one.threshold}."
        for one in found
    )
    return Document(url, title, f"{note} {' '.join(said)}")  # the note first, so that no cut takes it away


def _chinese(place: Place, days: Sequence[Day], found: Sequence[Alert]) -> Document:
    city, today = place.names["zh"], days[0].day
    url = f"https://example.org/zh/warnings/{fold(place.names['en']).replace(' ', '-')}/{today}"
    note = "本文由随附的示例天气推算，并非真实预警。"
    if not found:
        return Document(
            url, f"{city}当前无气象预警（{today}）", f"{today}，{city}没有生效的气象预警。{_calm(days, 'zh')}{note}"
        )
    title = f"{city}气象预警（{today}）：" + "、".join(f"{KINDS[one.kind]}{COLOURS[one.colour]}预警" for one in found)
    said = (
        f"{city}发布{KINDS[one.kind]}{COLOURS[one.colour]}预警：预计 {one.day} {MEASURES[one.kind]}为 "
        f"{one.value} {UNITS['zh'][one.kind]}，{COLOURS[one.colour]}等级自 {one.threshold} 起。"
        for one in found
    )
    return Document(url, title, f"{note}{''.join(said)}")


def _calm(days: Sequence[Day], language: Language) -> str:
    """Why there is no warning, in figures."""
    last = days[-1].day
    wind = max(day.wind_kmh for day in days)
    high, low = max(day.high_c for day in days), min(day.low_c for day in days)
    rain = max(day.precipitation_mm for day in days)
    if language == "zh":
        return (
            f"截至 {last}，示例天气的最大风速 {wind} 公里/小时，最高气温 {high} °C，"
            f"最低气温 {low} °C，最大日降水量 {rain} 毫米，均未达到预警标准。"
        )
    return (
        f"Until {last} the sample weather has winds of at most {wind} km/h, highs up to {high} °C, lows down to "
        f"{low} °C and at most {rain} mm of precipitation in a day; none of these reaches a warning level."
    )
