"""Sample weather: a fixed formula over rounded climate normals of some cities.

Nothing here was measured on the day it is given for.  The same city and date always give the same values, so that
the weather tool and the warnings that the search tool finds agree with each other.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import log
from typing import Literal, NamedTuple

from rapidfuzz import fuzz, process

from reactflow.errors import ToolError

Language = Literal["en", "zh"]

NEAR: dict[Language, int] = {"en": 60, "zh": 50}
"""How like a known name an unknown one must be, of 100, to be taken for a slip; names in Chinese are short."""

CONDITIONS = {
    "clear": "晴",
    "partly cloudy": "多云",
    "overcast": "阴",
    "light rain": "小雨",
    "rain": "中雨",
    "heavy rain": "大雨",
    "snow": "雪",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A city and its climate.

    Args:
        names: Its name by language.
        countries: The country's name by language.
        aliases: Other names people use.
        high_c: Mean daily high in degrees Celsius, January first, 12 values.
        low_c: Mean daily low in degrees Celsius.
        wet_days: Mean days with rain or snow in the month.
        rain_mm: Mean precipitation of the month in millimetres.
        wind_kmh: Mean wind in kilometres per hour.
    """

    names: dict[Language, str]
    countries: dict[Language, str]
    aliases: tuple[str, ...]
    high_c: tuple[int, ...]
    low_c: tuple[int, ...]
    wet_days: tuple[int, ...]
    rain_mm: tuple[int, ...]
    wind_kmh: int


class Day(NamedTuple):
    """One day's sample weather: *condition* is a key of :data:`CONDITIONS`, the wind is the day's maximum."""

    day: date
    condition: str
    high_c: float
    low_c: float
    precipitation_mm: float
    wind_kmh: float


@cache
def places() -> tuple[Place, ...]:
    """All cities that the sample covers."""
    rows = json.loads(files("reactflow.tools").joinpath("places.json").read_text("utf-8"))
    monthly = ("high_c", "low_c", "wet_days", "rain_mm")
    return tuple(
        Place(
            names={"en": row["en"], "zh": row["zh"]},
            countries=row["country"],
            aliases=tuple(row["aliases"]),
            wind_kmh=row["wind_kmh"],
            **{key: tuple(row[key]) for key in monthly},
        )
        for row in rows
    )


def script(text: str) -> Language:
    """``"zh"`` where *text* has a Chinese character, else ``"en"``."""
    return "zh" if any("\u4e00" <= character <= "\u9fff" for character in text) else "en"


def find_place(name: str) -> Place:
    """The city called *name* in English or Chinese; case, accents and a trailing "city" or 市 do not matter.

    Raises:
        ToolError: No city has that name; lists up to five near ones, else ten others, in the script of *name*.
    """
    index = _by_name()
    place = index.get(fold(name))
    if place is not None:
        return place
    language = script(name)
    near = process.extract(fold(name)[:100], list(index), scorer=fuzz.ratio, score_cutoff=NEAR[language], limit=5)
    found = list(dict.fromkeys(index[key].names[language] for key, _, _ in near))
    some = found or [place.names[language] for place in places()[:10]]
    if language == "zh":
        hint = "相近的城市" if found else "有的城市例如"
        raise ToolError(f"示例数据中没有城市“{name[:100]}”。{hint}：{'、'.join(some)}。")
    raise ToolError(
        f"The sample data have no city called {name[:100]!r}. "
        f"{'Near names' if found else 'It has, for example'}: {', '.join(some)}."
    )


@cache
def _by_name() -> dict[str, Place]:
    return {fold(name): place for place in places() for name in (*place.names.values(), *place.aliases)}


def fold(name: str) -> str:
    """Reduce *name* to what two spellings of one city share."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    words = " ".join(plain.replace("'", "").replace("’", "").split())
    return words if words == "new york city" else words.removesuffix(" city").removesuffix("市") or words


def weather_of(place: Place, day: date) -> Day:
    """The sample weather of *place* on *day*, the same every time."""
    key = place.names["en"]
    drift = sum(_chance(key, day + timedelta(days=step), "warmth") - 0.5 for step in range(-2, 3)) * 2.8
    high = _normal(place.high_c, day) + drift
    low = min(_normal(place.low_c, day) + drift * 0.7, high - 1.5)
    rain = _rain(place, day)
    wind = place.wind_kmh * (0.8 + 3.2 * _chance(key, day, "wind") ** 3)
    condition = _condition(_chance(key, day, "cloud"), place.wet_days[day.month - 1] / 30, rain, (high + low) / 2)
    return Day(day, condition, round(high, 1), round(low, 1), rain, round(wind, 1))


def _rain(place: Place, day: date) -> float:
    key, wet_days = place.names["en"], place.wet_days[day.month - 1]
    if _chance(key, day, "wet") >= wet_days / 30:
        return 0.0
    mean = max(place.rain_mm[day.month - 1], wet_days) / wet_days
    return round(max(0.2, -mean * log(1 - _chance(key, day, "amount"))), 1)


def _condition(cloud: float, wetness: float, rain: float, mean_c: float) -> str:
    if rain:
        kind = "light rain" if rain < 5 else "rain" if rain < 25 else "heavy rain"
        return "snow" if mean_c < 0.5 else kind
    return "clear" if cloud > 0.35 + wetness / 2 else "partly cloudy" if cloud > 0.2 + wetness / 4 else "overcast"


def _normal(monthly: tuple[int, ...], day: date) -> float:
    """The climate value on *day*, interpolated between the middles of two months."""
    position = day.month - 1 + (day.day - 15.5) / 31
    month = int(position // 1)
    part = position - month
    return monthly[month % 12] * (1 - part) + monthly[(month + 1) % 12] * part


def _chance(place: str, day: date, what: str) -> float:
    """A number in [0, 1) that depends on nothing but the arguments."""
    return int.from_bytes(sha256(f"{place}|{day.isoformat()}|{what}".encode()).digest()[:8]) / 2**64
