"""The options of Flink as a user meets them; whole jobs on Flink are in tests/proof."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from reactflow.cli import flink_options

GIVEN = {
    "budget_usd": None,
    "database": ":memory:",
    "cache": "paid.db",
    "concurrency": 20,
    "requests_per_minute": 60.0,
    "endpoint": "http://127.0.0.1:1/v1",
    "parallelism": 4,
    "checkpoints": "kept",
    "flink": ["pipeline.name=claims", "a=b=c"],
    "debug": False,
}


def test_what_is_typed_becomes_the_settings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    settings = flink_options.read(GIVEN, {"q": Path("q.jsonl")}, {})
    assert (settings.work.concurrency, settings.work.requests_per_minute) == (20, 60.0)
    assert settings.work.cache == str(tmp_path / "paid.db")
    assert settings.overrides == {"*.endpoint": "http://127.0.0.1:1/v1"}
    assert (settings.parallelism, settings.checkpoints) == (4, Path("kept"))
    assert settings.options == {"pipeline.name": "claims", "a": "b=c"}
    assert flink_options.read({**GIVEN, "cache": "none"}, {}, {}).work.cache is None
    priced = flink_options.read({**GIVEN, "budget_usd": 2.0, "price": ["*=1/2"]}, {}, {}, Path("scripts"))
    assert (priced.max_cost_usd, priced.folder) == (2.0, Path("scripts"))


@pytest.mark.parametrize(
    ("options", "words"), [(("--budget-usd", "1"), "needs prices"), (("--database", "x.db"), "not of Flink")]
)
def test_options_that_cannot_be_are_refused_before_flink_is_started(reactflow, options, words):
    ended = reactflow("sql", "-e", "SELECT 1", "--engine", "flink", *options)
    assert ended.code == 2
    assert words in ended.err


@pytest.mark.parametrize("options", [("--checkpoints", "kept"), ("--flink", "a=b"), ("--parallelism", "2")])
def test_options_of_flink_need_flink(reactflow, options):
    ended = reactflow("sql", "-e", "SELECT 1", *options)
    assert ended.code == 2
    assert "need --engine flink" in ended.err


@pytest.mark.skipif(find_spec("pyflink") is not None, reason="PyFlink is installed here")
def test_a_missing_extra_is_named(reactflow):
    ended = reactflow("sql", "-e", "SELECT 1", "--engine", "flink")
    assert ended.code == 2
    assert "pip install 'reactflow[flink]'" in ended.err
