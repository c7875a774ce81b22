"""How the house is laid out: where pages lie, how large rooms are, what the documents name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "pages").glob("*/*.py"))
MODULES = sorted([*(ROOT / "hydra_core").rglob("*.py"), *PAGES, ROOT / "app.py"])
#: What a page may use: everything that `hydra_core/ui` may use, and `hydra_core/ui` itself.
BELOW_PAGES = {"ui", "views", "figures", "export", "labeling", "evaluation", "decision_log",
               "routing", "store", "catalog", "predictor", "outcome_model", "types", "errors",
               "shipped"}  # fmt: skip


def name(path):
    return path.relative_to(ROOT).as_posix()


def imported(path):
    """Dotted names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_page_lies_directly_under_pages():
    """It would run without app.py on a deep link."""
    assert not list((ROOT / "pages").glob("*.py"))


def test_every_page_is_in_the_navigation():
    text = (ROOT / "app.py").read_text(encoding="utf-8")
    for page in PAGES:
        assert name(page) in text


@pytest.mark.parametrize("path", [*PAGES, ROOT / "app.py"], ids=name)
def test_app_and_pages_import_only_what_lies_below_them(path):
    parts = [module.split(".") for module in imported(path)]
    assert not {"app", "pages", "tests", "benchmarks"} & {part[0] for part in parts}
    ours = {part[1] for part in parts if part[0] == "hydra_core" and len(part) > 1}
    assert ours <= BELOW_PAGES


def test_nothing_of_the_package_imports_app_or_pages():
    for path in (ROOT / "hydra_core").rglob("*.py"):
        assert not {"app", "pages"} & {module.split(".")[0] for module in imported(path)}


def test_no_import_goes_in_a_circle():
    """Neither for types only nor inside a function."""
    named = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    below = {name: {one for one in imported(path) if one in named} for name, path in named.items()}
    done = set()

    def visit(name, above):
        assert name not in above, " -> ".join([*above[above.index(name) :], name])
        if name not in done:
            for one in sorted(below[name]):
                visit(one, [*above, name])
            done.add(name)

    for one in named:
        visit(one, [])


def test_no_folder_has_more_than_16_modules():
    folders = [path.parent for path in MODULES if path.name != "__init__.py"]
    assert {name(folder) for folder in folders if folders.count(folder) > 16} == set()


def test_no_module_has_more_than_300_lines():
    long = [p for p in MODULES if len(p.read_text(encoding="utf-8").splitlines()) > 300]
    assert [name(path) for path in long] == []


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_a_document_names_is_there(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    tops = "hydra_core|pages|tests|benchmarks|docs|sample_data|catalog"
    named = re.findall(rf"`((?:{tops})/[\w./-]+|[\w-]+\.(?:py|toml|lock)|[A-Z]{{4,}}\.md)`", text)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_pre_commit_runs_what_make_check_runs():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(BIN)", ".venv/bin")
    (recipe,) = re.findall(r"^check:.*\n((?:\t.*\n)+)", makefile, re.M)
    assert hooks == [line.strip() for line in recipe.splitlines()]
