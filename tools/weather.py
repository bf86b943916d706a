"""The weather tool: current weather and a seven-day trend from bundled sample data."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from reactflow.errors import ToolError
from reactflow.toolbox import tool
from reactflow.tools.climate import CONDITIONS, Language, Place, find_place, script, weather_of

NOTE = {
    "en": "Bundled sample data computed from climate normals; not a real observation or forecast.",
    "zh": "随附的示例数据，由气候常值推算，并非真实观测或预报。",
}


@tool
def weather(city: str, day: date | None = None) -> dict[str, Any]:
    """Current weather of a city and the trend of the coming seven days. Bundled sample data, not real.

    Temperatures are in degrees Celsius, precipitation in millimetres, wind in kilometres per hour (in
    the trend the day's maximum), humidity in percent. The same city and day always give the same values.

    Args:
        city: The city's name, in English or Chinese; conditions and notes come back in the same language.
        day: The day to report on; today where left out. The trend covers the seven days after it.

    Raises:
        ToolError: The city is not in the sample (near names are listed), or the day is not within 1900 to 2100.
    """
    place, language = find_place(city), script(city)
    day = day or date.today()
    if not 1900 <= day.year <= 2100:
        raise ToolError(f"The day {day.isoformat()} is out of range; give one from 1900-01-01 to 2100-12-31.")
    return {
        "city": place.names[language],
        "country": place.countries[language],
        "date": day.isoformat(),
        "now": _now(place, day, language),
        "trend": [_row(place, day + timedelta(days=ahead), language) for ahead in range(1, 8)],
        "note": NOTE[language],
    }


def _now(place: Place, day: date, language: Language) -> dict[str, Any]:
    """One moment of *day*: the temperature stands at seven tenths of the way from the low to the high."""
    today = weather_of(place, day)
    wet = place.wet_days[day.month - 1] / 30
    return {
        "condition": _name(today.condition, language),
        "temperature_c": round(today.low_c + 0.7 * (today.high_c - today.low_c), 1),
        "humidity_percent": min(98, round(38 + 40 * wet + (15 if today.precipitation_mm else 0))),
        "precipitation_mm": today.precipitation_mm,
        "wind_kmh": round(0.6 * today.wind_kmh, 1),
    }


def _row(place: Place, day: date, language: Language) -> dict[str, Any]:
    row = weather_of(place, day)
    return {
        "date": day.isoformat(),
        "condition": _name(row.condition, language),
        "high_c": row.high_c,
        "low_c": row.low_c,
        "precipitation_mm": row.precipitation_mm,
        "wind_kmh": row.wind_kmh,
    }


def _name(condition: str, language: Language) -> str:
    return CONDITIONS[condition] if language == "zh" else condition
