"""The public names: listed, sorted, importable, explained, and tested."""

import ast
import re
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import pytest

import reactflow

ROOT = Path(__file__).parents[1]
PACKAGES = ("reactflow", "advisors", "tools")
PUBLIC = [name for name in reactflow.__all__ if name != "__version__"]


@cache
def explained() -> set[str]:
    """Names with a docstring: classes and functions by their own, anything else by the string after its assignment."""
    return {name for folder in PACKAGES for path in (ROOT / folder).rglob("*.py") for name in explained_in(path)}


def explained_in(path: Path) -> set[str]:
    body = ast.parse(path.read_text("utf-8")).body
    defined = {
        node.name
        for node in body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node)
    }
    return defined | {name for node, after in pairwise(body) if is_text(after) for name in targets(node)}


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def targets(node: ast.stmt) -> list[str]:
    found = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in found if isinstance(target, ast.Name)]


@cache
def words_of_the_tests() -> set[str]:
    others = (path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
    return {word for path in others for word in re.findall(r"\w+", path.read_text("utf-8"))}


def test_the_list_of_public_names_is_sorted_and_names_nothing_twice():
    def constants_then_classes_then_functions(name: str) -> tuple[bool, bool, str]:
        return not name.isupper(), not name[0].isupper(), name

    assert list(reactflow.__all__) == sorted(set(reactflow.__all__), key=constants_then_classes_then_functions)


@pytest.mark.parametrize("shelf", [reactflow.advisors, reactflow.workflows])
def test_what_stands_on_a_shelf_can_be_imported_from_it(shelf):
    homes = {name: str(getattr(getattr(reactflow, name), "__module__", "")) for name in PUBLIC}

    assert shelf.__all__ == sorted(name for name, home in homes.items() if home.startswith(shelf.__name__))
    assert all(getattr(shelf, name) is getattr(reactflow, name) for name in shelf.__all__)


def test_what_the_package_imports_for_its_users_is_in_the_list():
    own = (node for node in ast.walk(ast.parse(Path(reactflow.__file__).read_text("utf-8"))) if is_own_import(node))

    assert {alias.asname or alias.name for node in own for alias in node.names} == set(PUBLIC)


def is_own_import(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reactflow.")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_can_be_imported_is_explained_and_is_tested(name):
    assert getattr(reactflow, name) is not None
    assert name in explained(), f"{name} has no docstring"
    assert name in words_of_the_tests(), f"no test mentions {name}"


def test_the_version_is_that_of_the_distribution():
    assert reactflow.__version__ == version("reactflow")


def test_no_module_is_called_like_a_public_name():
    modules = {path.stem for folder in PACKAGES for path in (ROOT / folder).glob("*.py")}

    assert modules & set(reactflow.__all__) == set()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        reactflow.no_such_name  # noqa: B018
