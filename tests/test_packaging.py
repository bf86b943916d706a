"""The wheel, as a user gets it: what is in it, and that it works far from this repository."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"reactflow": "reactflow"} | {name: f"reactflow/{name}" for name in ("advisors", "tools", "demos")}
JUNK = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")


def run(*command: str | Path, cwd: Path) -> str:
    """Run *command* as on a stranger's machine: no path of ours, no key, UTF-8 or not as it comes."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE", "COV_"))}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, itself built from a copy: leftovers in build/ would get into the wheel."""
    source = tmp_path_factory.mktemp("source")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, source / name, ignore=JUNK)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", source / "dist", source, cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment that has the wheel, and sees the libraries of this one but not its packages."""
    home = tmp_path_factory.mktemp("user")
    run(sys.executable, "-m", "venv", "--without-pip", home / "env", cwd=home)
    python = home / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel, cwd=home)
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip()
    Path(site, "libraries.pth").write_text(sysconfig.get_path("purelib"))  # its own .pth files are not read from here
    return python


def files_in(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_the_wheel_holds_every_source_file_in_its_place_and_nothing_else(wheel):
    expected = {
        f"{place}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, place in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    found = {name for name in files_in(wheel) if ".dist-info/" not in name}

    assert found == expected, "name new folders and data files under [tool.setuptools] in pyproject.toml"


def test_nothing_but_the_package_lands_in_site_packages(wheel):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

    assert {name.split("/")[0] for name in files_in(wheel)} == {"reactflow", f"reactflow-{version}.dist-info"}


def test_the_wheel_is_typed_and_carries_its_licence(wheel):
    version = wheel.name.split("-")[1]

    assert {"reactflow/py.typed", f"reactflow-{version}.dist-info/licenses/LICENSE"} <= files_in(wheel)


def test_a_user_finds_each_part_under_the_one_name_only(python, tmp_path):
    code = """
import importlib.util, reactflow, reactflow.advisors, reactflow.tools, reactflow.demos
for module in (reactflow.advisors, reactflow.tools, reactflow.demos):
    assert module.__file__.startswith(reactflow.__path__[0]), module
print(*(name for name in ("advisors", "tools", "demos", "tests") if importlib.util.find_spec(name)))
"""
    assert run(python, "-c", code, cwd=tmp_path).split() == []


def test_a_demo_runs_from_the_wheel_far_from_the_repository(python, tmp_path):
    where = run(python, "-c", "import reactflow; print(reactflow.__file__)", cwd=tmp_path)
    assert not Path(where).is_relative_to(ROOT)

    assert run(python, "-m", "reactflow.demos.weather_report", cwd=tmp_path).strip() != ""
