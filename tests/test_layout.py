"""How the code is laid out: rooms of a size, files of a length, imports in one direction."""

from __future__ import annotations

import ast
import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from hydra_core import errors
from hydra_core.cli.parser import build_parser

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted([*(ROOT / "hydra_core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")])
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


#: What is still to be cut; nothing may be added here.
FULLER = {"hydra_core/server": 19}
LONGER = {"hydra_core.routing.decision": 313}
NAMES = {name_of(path) for path in MODULES}


def imports_of(path: Path) -> set[str]:
    """The modules of ours that a module imports anywhere, inside functions too."""
    found = set()
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & NAMES) or {node.module}
    return (found & NAMES) - {name_of(path)}


def test_no_page_lies_directly_under_pages():
    """Such a page would run without app.py on a deep link."""
    assert not list((ROOT / "pages").glob("*.py"))


def test_every_page_is_in_the_navigation():
    text = (ROOT / "app.py").read_text(encoding="utf-8")
    for page in (ROOT / "pages").glob("*/*.py"):
        assert page.relative_to(ROOT).as_posix() in text


def test_no_folder_holds_more_than_sixteen_modules():
    sizes = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    rooms = {folder.relative_to(ROOT).as_posix(): count for folder, count in sizes.items()}
    assert {room: n for room, n in rooms.items() if n > FULLER.get(room, 16)} == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_file_is_over_three_hundred_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGER.get(name_of(path), 300)


def test_no_modules_import_each_other_in_a_circle():
    graph = {name_of(path): imports_of(path) for path in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def subclasses_in_code() -> dict[str, str]:
    """Every error class below HydraError, with its parent."""
    classes = {
        node.name: node.bases[0].id
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.bases and isinstance(node.bases[0], ast.Name)
    }

    def below(name: str) -> bool:
        return name == "HydraError" or (name in classes and below(classes[name]))

    return {name: parent for name, parent in classes.items() if below(parent)}


def test_the_error_tree_shows_every_class_under_its_parent():
    shown, branch = {}, ["HydraError"]
    for indent, name in re.findall(r"^([│ ]*)[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE):
        branch[len(indent) // 4 + 1 :] = [name]
        shown[name] = branch[-2]
    assert shown == subclasses_in_code()


def test_the_readme_names_every_verb_and_variable():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    verbs = next(action.choices for action in build_parser()._actions if action.choices)
    variables = {
        node.value
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"HYDRA_[A-Z_]+", node.value)
    } - {"HYDRA_SERVE"}  # set by `serve` for its own workers, not by an operator
    assert [name for name in (*verbs, *sorted(variables)) if f"`{name}`" not in readme] == []
