"""The site: whole, linked, and about every public name; and the README as short as it says."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import reactflow
from reactflow import errors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "site" not in path.relative_to(DOCS).parts)
NAMES = [path.relative_to(DOCS).as_posix() for path in PAGES]

PUBLIC = set(reactflow.__all__) - {"__version__"}

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def in_the_menu() -> Iterator[str]:
    def pages(entry: Any) -> Iterator[str]:
        match entry:
            case str():
                yield entry
            case dict():
                for value in entry.values():
                    yield from pages(value)
            case list():
                for value in entry:
                    yield from pages(value)

    yield from pages(tomllib.loads((DOCS / "zensical.toml").read_text("utf-8"))["project"]["nav"])


def test_every_page_is_in_the_menu_once_and_the_menu_names_no_other():
    assert sorted(in_the_menu()) == sorted(NAMES), "add new pages to nav in docs/zensical.toml"


def test_every_public_name_is_in_the_reference_once():
    text = "\n".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    shown = re.findall(r"^::: reactflow\.(\w+)$", text, re.MULTILINE)
    shown = [name for name in shown if name != "errors"]
    shown += [name for name in vars(errors) if name.endswith(("Error", "Exceeded")) and name in PUBLIC]

    assert PUBLIC - set(shown) == set(), "add ::: reactflow.<name> to a page in docs/reference"
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize("page", [README, *PAGES], ids=["README.md", *NAMES])
def test_every_link_to_a_file_leads_somewhere(page):
    text = BLOCK.sub("", page.read_text("utf-8"))
    links = [link for link in LINK.findall(text) if not urlsplit(link).scheme and not link.startswith("#")]

    assert [link for link in links if not (page.parent / link.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_lines_of_code_fit_into_the_page(page):
    text = page.read_text("utf-8")
    side = {
        inner for group in re.findall(r'<div class="sides".*?</div>', text, re.DOTALL) for inner in group.splitlines()
    }
    code = [line for language, block in BLOCK.findall(text) if language == "python" for line in block.splitlines()]

    assert [line for line in code if len(line) > (66 if line in side else 100)] == []


def blocks_below(heading: str) -> list[str]:
    section = re.search(rf"^## {heading}\n(.*?)^## ", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert section is not None
    return [code for language, code in BLOCK.findall(section[1]) if language == "python"]


@pytest.mark.parametrize("thing", ["An agent", "An advisor", "A reflection"])
def test_ten_lines_are_ten_lines(thing):
    (code,) = blocks_below(f"{thing} in ten lines")

    assert len([line for line in code.splitlines() if line.strip()]) <= 10


def test_the_readme_says_what_it_is_in_three_sentences():
    opening = README.read_text("utf-8").split("\n## ")[0].split("\n", 1)[1].strip()

    assert len(re.findall(r"\.(?=\s|$)", opening)) == 3


def test_best_of_n_is_a_workflow_of_less_than_sixty_lines():
    page = (DOCS / "how-to" / "write-a-workflow.md").read_text("utf-8")

    assert len(BLOCK.findall(page)[0][1].splitlines()) < 60
    assert len((ROOT / "reactflow" / "workflows" / "best_of_n.py").read_text("utf-8").splitlines()) < 60
