"""What may be in the repository: the fixed top level, and nothing that only one machine or its owner should know."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

TOP_LEVEL = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"}
FOLDERS = {"reactflow", "advisors", "tools", "tests", "demos", "docs"}

PLACES = re.compile(
    r"(?<![\w.~}$])/(?:root|home|Users|work|farm|opt|tmp)/\w"  # a folder of one machine
    r"|(?i:index[-_]url|find[-_]links|trusted[-_]host|file:///)"  # a registry of one machine
)


def tracked() -> list[str]:
    git = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if git.returncode:
        pytest.skip(f"not a git checkout: {git.stderr.strip()}")
    return [name for name in git.stdout.split("\0") if name and (ROOT / name).is_file()]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    """``file:line`` of each match; never the words, which may be the secret."""
    return [
        f"{name}:{number}"
        for name in tracked()
        for number, line in enumerate((ROOT / name).read_text("utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def test_the_top_level_holds_only_what_the_layout_names():
    tops = {name.split("/")[0] for name in tracked()}

    assert {top for top in tops if not top.startswith(".")} - TOP_LEVEL - FOLDERS == set()
    assert {name for name in tracked() if "/" not in name and not name.startswith(".")} <= TOP_LEVEL


def test_no_file_names_a_place_on_one_machine():
    own = Path(__file__).relative_to(ROOT).as_posix()

    assert [found for found in lines_with(PLACES) if not found.startswith(own)] == []


def test_no_file_holds_a_key():
    patterns = (ROOT / ".ci" / "secrets").read_text().splitlines()

    assert lines_with(re.compile("|".join(patterns))) == []


@pytest.mark.parametrize(
    "line",
    [
        "key = 'sk-" + "proj-a1B2c3D4e5F6g7H8i9J0'",
        "Authorization: Bearer " + "0123456789abcdef0123456789",
        '"api_key": "' + '0123456789abcdef01234567"',
        "-----BEGIN " + "PRIVATE KEY-----",
    ],
)
def test_the_scan_sees_the_usual_kinds_of_key(line):
    patterns = (ROOT / ".ci" / "secrets").read_text().splitlines()

    assert re.search("|".join(patterns), line)
