"""A weather report that is judged and, where it falls short, revised.

python -m reactflow.demos.weather_report [question]
python -m reactflow.demos.weather_report --zh
"""

from __future__ import annotations

import argparse

from reactflow import ReflectionAgent
from reactflow.demos._common import choose_model, watch
from reactflow.tools.search import search
from reactflow.tools.weather import weather

ENGLISH = (
    "Using the weather in Beijing today, its trend for the next seven days and the weather in Shanghai today, and "
    "searching for weather warnings for Beijing, write a combined analysis report of at least 200 words."
)
CHINESE = (
    "请你根据北京今天的天气、未来七天的天气趋势、以及上海今天的天气，"
    "并搜索北京天气的预警情况，生成一份不少于 200 字的综合分析报告。"
)


def main(arguments: list[str] | None = None) -> None:
    """Ask the question and show each step as it happens, then the report and one line on the run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="*", help="what to ask; the report on Beijing and Shanghai where left out")
    parser.add_argument("--zh", action="store_true", help="ask that question in Chinese")
    given = parser.parse_args(arguments)
    question = " ".join(given.question) or (CHINESE if given.zh else ENGLISH)

    agent = ReflectionAgent(
        model=choose_model(),
        tools=[weather, search],
        system_prompt="你是专业的研究分析助手！" if given.zh else "You are a professional research analyst.",
        max_reflection_rounds=2,
        name="weather-report",
    )
    print(f"Question: {question}")
    watch(agent.stream(question))


if __name__ == "__main__":
    main()
