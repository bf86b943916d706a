"""The pages in docs/batch.md and docs/sql.md say what the program does: every block on them runs."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from reactflow.batch.agents import choose
from reactflow.specs.catalog import Catalog
from reactflow.specs.files import read_data
from reactflow.specs.outcome import Status

DOCS = Path(__file__).parents[2] / "docs"
BATCH, SQL = ((DOCS / f"{name}.md").read_text("utf-8") for name in ("batch", "sql"))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", blocks(BATCH, "python") + blocks(SQL, "python"))
def test_python_on_the_pages_runs(code, monkeypatch):
    names = {"__name__": "page"}

    exec(compile(code, "page", "exec"), names)

    assert names.keys() > {"__name__", "__builtins__"}  # it ran, and left what it made


def test_the_definitions_in_toml_make_the_agent_they_are_said_to_make(monkeypatch, tmp_path):
    (tmp_path / "claims.toml").write_text(blocks(BATCH, "toml")[0])
    catalog = Catalog(environment={"OPENAI_API_KEY": "k"})
    read_data(tomllib.loads(blocks(BATCH, "toml")[0]), catalog)
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    chosen = choose(str(tmp_path / "claims.toml"), lambda place: None)

    assert chosen.agent == catalog.main_agent()
    assert (chosen.agent.name, chosen.agent.max_iterations) == ("intake", 3)


def test_the_script_on_the_page_writes_the_approved_rows_at_the_cost_that_is_said(session, model, folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    claims = [("hail on the roof", "a"), ("a flood", "b"), ("never good", "c"), ("a flood", None)]
    (folder / "claims.jsonl").write_text(
        "\n".join(
            json.dumps({"id": number, "description": text, "image_url": image})
            for number, (text, image) in enumerate(claims, 1)
        )
    )
    script, log = blocks(SQL, "sql")
    files = {"tables": {"claims_submitted": folder / "claims.jsonl"}, "outputs": {"claims_approved": folder / "a.csv"}}

    session(script=script + log, **files)

    assert [line.split(",")[0] for line in (folder / "a.csv").read_text().splitlines()] == ["id", "1", "2"]
    assert len(model.seen) == 14


def test_the_pages_name_every_status_and_only_those():
    for page in (BATCH, SQL):
        assert set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE)) == {status.value for status in Status}
