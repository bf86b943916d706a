"""Imports point down: a file may import its own layer and those below it, and there is no circle."""

import ast
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

LAYERS = """
    frozen messages result errors events budget threads
    model
    chain phrases words progress answer_stream background delegate
    judge judging.* output_schema
    tooling.*
    toolbox
    fair_lock store storable memory memory_*
    value_json event_json stores.*
    loop
    advisors.* tools.* wire.* openai_model local_model offline_model loopback testing mcp_*
    revise
    doors builder
    agent
    reflection
    workflows.*
    specs.*
    batch.* sql.*
    engines.*
    reactflow
    demos.* cli.* __main__
"""
"""Bottom to top, without the leading ``reactflow.``; ``x.*`` is the package x and all in it, ``reactflow`` is the
package's own ``__init__``, which only the demos and the command line may import from and which may import anything
itself."""

DOORS = "stores.* local_model mcp_* specs.* batch.* sql.* engines.* cli.*"
"""May import an optional extra inside a function, so that it is loaded only where it is used."""

REQUIRED = {"aiohttp", "jsonschema", "openai", "pydantic", "pydantic_core", "rapidfuzz", "reactflow", "structlog"}

ROOT = Path(__file__).parents[1]
FOLDERS = {"reactflow": "reactflow"} | {name: f"reactflow.{name}" for name in ("advisors", "tools", "demos")}


def read_modules() -> dict[str, ast.Module]:
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = (package, *path.relative_to(ROOT / folder).with_suffix("").parts)
            found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text("utf-8"))
    return found


MODULES = read_modules()
INNER = [name for name in MODULES if name != "reactflow"]


def imports(tree: ast.AST) -> Iterator[str]:
    """What *tree* imports, by full name; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def hidden_imports(tree: ast.AST) -> set[str]:
    functions = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {found for function in functions for found in imports(function)}


def used(name: str) -> set[str]:
    """The modules of this package that module *name* imports."""
    own = {found for found in imports(MODULES[name]) if found.split(".")[0] == "reactflow"}
    return {found if found in MODULES else found.rpartition(".")[0] for found in own}


def listed(name: str, patterns: str) -> bool:
    short = name.removeprefix("reactflow.")
    return any(fnmatch(short, pattern) or short == pattern.removesuffix(".*") for pattern in patterns.split())


def layer(name: str) -> int:
    for number, patterns in enumerate(LAYERS.splitlines()):
        if listed(name, patterns):
            return number
    pytest.fail(f"{name} has no layer: add it to LAYERS in tests/{Path(__file__).name}, as low as its imports allow")


@pytest.mark.parametrize("name", INNER)
def test_a_module_imports_only_its_own_layer_and_those_below(name):
    height = layer(name)

    too_high = {other for other in used(name) if layer(other) > height}

    assert too_high == set(), f"{name} imports from above; move what it needs down, or hand it in as an argument"


def test_no_module_imports_itself_by_a_detour():
    order = TopologicalSorter({name: used(name) - {name} for name in MODULES})

    assert set(order.static_order()) == set(MODULES)  # a CycleError names the circle


@pytest.mark.parametrize("name", INNER)
def test_no_import_is_hidden_in_a_function_but_an_optional_extra_of_a_door(name):
    tops = {found.split(".")[0] for found in hidden_imports(MODULES[name])}
    extras = tops - REQUIRED - sys.stdlib_module_names if listed(name, DOORS) else set()

    assert tops - extras == set(), f"{name}: move the import to the top of the file"


def test_the_package_itself_hides_only_the_imports_of_models_that_load_openai():
    models = {"reactflow.local_model.LocalChatModel", "reactflow.openai_model.OpenAIChatModel"}

    assert hidden_imports(MODULES["reactflow"]) <= models


def test_openai_is_imported_in_one_file_only():
    users = {name for name, tree in MODULES.items() if "openai" in {found.split(".")[0] for found in imports(tree)}}

    assert users <= {"reactflow.openai_model"}


@pytest.mark.parametrize("name", MODULES)
def test_imports_are_written_in_full(name):
    relative = {found for found in imports(MODULES[name]) if found.startswith(".")}
    bare = {found for found in imports(MODULES[name]) if found.split(".")[0] in set(FOLDERS) - {"reactflow"}}

    assert (relative, bare) == (set(), set()), f"{name}: a bare `tools` would load a second copy of reactflow.tools"
