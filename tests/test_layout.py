"""How the house is laid out: where pages lie, who uses what, what the documents name."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from hydra_core.console import frame

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "pages").glob("*/*.py"))
#: Every place that a link in the console leads to.
PLACES = [one for one in vars(frame).values() if isinstance(one, frame.Place)]
MODULES = sorted([*(ROOT / "hydra_core").rglob("*.py"), *PAGES, ROOT / "app.py"])
#: Modules that something else than an import of ours begins: a command, Ray, LiteLLM, Alembic.
ENTRIES = {
    "hydra_core/routing/reload.py": "documented for Python",
    "hydra_core/server/litellm_plugins.py": "LiteLLM",
    "hydra_core/server/ray_app.py": "Ray",
}
#: The one user of these stands on another level: a page's script, a verb, a button.
LEVELS = ("app.py", "pages/", "hydra_core/cli/", "hydra_core/console/", "hydra_core/server/")


def name(path):
    return path.relative_to(ROOT).as_posix()


@cache
def imported(path):
    """Dotted names of the modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def test_no_page_lies_directly_under_pages():
    """It would run without app.py on a deep link."""
    assert not list((ROOT / "pages").glob("*.py"))


def test_every_page_is_in_the_navigation():
    text = (ROOT / "app.py").read_text(encoding="utf-8")
    assert len(PAGES) == 8
    for page in PAGES:
        assert name(page) in text.replace("frame.HOME.page", '"pages/operate/home.py"')


def test_every_place_is_a_page_with_that_part():
    for place in PLACES:
        module = import_module(f"hydra_core.console.{Path(place.page).stem}.page")
        assert not place.part or place.part in module.PARTS


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_is_three_lines_and_knows_its_folder_alone(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    assert lines[1:] == [f"from hydra_core.console.{path.stem} import page", "page.show()"]


def test_app_uses_the_console_and_what_is_below_it():
    parts = [module.split(".") for module in imported(ROOT / "app.py")]
    ours = {part[1] for part in parts if part[0] == "hydra_core" and len(part) > 1}
    assert ours <= {"console", "base", "store"}


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


def test_a_module_has_two_users_or_lives_with_its_one_user():
    users = {module: set() for module in MODULES if module.name != "__init__.py"}
    dotted = {".".join(m.relative_to(ROOT).with_suffix("").parts): m for m in users}
    for module in MODULES:
        for one in imported(module):
            if one in dotted and dotted[one] != module:
                users[dotted[one]].add(module)
    astray = []
    for module, by in users.items():
        if name(module) in ENTRIES or not name(module).startswith("hydra_core/"):
            continue
        if module.name == "__main__.py" or "migrations" in module.parts:
            continue
        near = any(user.parent == module.parent or user.parent in module.parents for user in by)
        if len(by) < 2 and not near and not all(name(user).startswith(LEVELS) for user in by):
            astray.append(name(module))
        if not by:
            astray.append(f"{name(module)}: nobody uses it")
    assert astray == []


def test_a_file_has_at_most_500_lines():
    long = [p for p in MODULES if len(p.read_text(encoding="utf-8").splitlines()) > 500]
    assert [name(path) for path in long] == []


def test_streamlit_stays_out_of_views_and_figures():
    named = [path for path in MODULES if path.stem.startswith(("view", "figure"))]
    plain = [*named, *(path for path in MODULES if path.parent.name == "figures")]
    assert plain
    for path in plain:
        assert not {"streamlit"} & {module.split(".")[0] for module in imported(path)}, name(path)


def test_only_what_is_documented_for_python_lists_its_names():
    """Nobody imports a star from a module; `__all__` is kept where a package re-exports."""
    listed = [m for m in MODULES if "\n__all__ = " in m.read_text(encoding="utf-8")]
    assert [name(path) for path in listed if path.name != "__init__.py"] == []


def test_no_file_has_a_name_that_says_nothing():
    nothing = {"utils", "helpers", "common", "manager", "panels", "misc"}
    assert [name(path) for path in MODULES if path.stem in nothing] == []


def test_what_a_newcomer_asks_is_answered_by_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    answers = text.split("## Where do I find", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in answers.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) == 12
    for row in rows:
        place, _, what = re.search(r"`([\w/.]+?)(:(\w+))?`", row).groups()
        source = (ROOT / place).read_text(encoding="utf-8")
        assert what is None or re.search(rf"\b{what}\b", source), row


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


def test_recipes_name_files_that_there_are():
    """Those of environments that the usual tests do not have, too."""
    for recipe in ("Makefile", ".ci/run", ".ci/range"):
        text = (ROOT / recipe).read_text(encoding="utf-8")
        named = re.findall(r"(?<![\w./-])(?:tests|\.ci|docs|sample_data)/[\w./-]*\w", text)
        assert named
        assert [path for path in named if not (ROOT / path).exists()] == []
