"""Every table of the console can be taken along in three forms, every figure in three others.

Read from the source: a page would have to be driven into each of its states to be seen whole.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "hydra_core/console").rglob("*.py"))
TABLES = {"dataframe", "table", "data_editor"}
CHARTS = {
    "altair_chart", "area_chart", "bar_chart", "graphviz_chart", "line_chart", "map",
    "plotly_chart", "pydeck_chart", "pyplot", "scatter_chart", "vega_lite_chart",
}  # fmt: skip
#: Tables without files of their own, and why that is right.
WITHOUT = {
    "catalog/add_model.py": {"_benchmark_rates": "a form to fill in"},
    "catalog/dialogs.py": {
        "_preview": "changes before they are made",
        "_confirm": "a form",
        "add_benchmark": "a form to fill in",
    },
    "compare/queries.py": {"_table": "one page of the list that `queries` offers whole"},
    "eval_sets/make_catalog.py": {"_edited": "a form to fill in"},
    "eval_sets/import_wizard.py": {
        "_labels": "a form to fill in",
        "_models": "a form to fill in",
        "_prices": "a form to fill in",
        "_leaderboard_models": "a form to fill in",
    },
    "eval_sets/import_table.py": {
        "_meaning": "a form to fill in",
        "_notations": "a form to fill in",
    },
    "releases/publish.py": {"_choices": "a form: whose value stands"},
}


def functions(source: Path) -> list[ast.FunctionDef]:
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def called(function: ast.FunctionDef) -> set[tuple[str, str]]:
    """Every call of an attribute of a name: (st, dataframe), and of a plain name: ("", name)."""
    found = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            found.add((node.func.value.id, node.func.attr))
        elif isinstance(node.func, ast.Name):
            found.add(("", node.func.id))
    return found


def drawers() -> set[tuple[str, str]]:
    """The functions of console/tables.py that draw a table and leave its files to their callers."""
    known = functions(ROOT / "hydra_core/console/tables.py")
    found = {one.name for one in known if any(("st", kind) in called(one) for kind in TABLES)}
    found -= {"kept"}
    found |= {one.name for one in known if called(one) & {("", name) for name in found}}
    return {("tables", name) for name in found}


DRAWERS = drawers()


def draws(calls: set[tuple[str, str]]) -> bool:
    made = any(kind in TABLES and (kind != "table" or on == "st") for on, kind in calls)
    return made or bool(calls & (DRAWERS | {("drafts", "table")}))


@pytest.mark.parametrize("source", SOURCES, ids=lambda one: one.stem)
def test_what_draws_a_table_offers_its_files(source):
    if source.name in ("tables.py", "drafts.py"):  # where the drawing is: see their callers
        return
    told = WITHOUT.get("/".join(source.parts[-2:]), {})
    lacking = [
        one.name
        for one in functions(source)
        if draws(called(one)) and ("tables", "offer_downloads") not in called(one)
    ]
    assert lacking == list(told)


def test_the_known_tables_are_found():
    assert {name for _, name in DRAWERS} == {"models", "queries"}


def test_figures_are_drawn_in_one_place_where_the_button_finds_them():
    drawing = {
        (source.name, one.name)
        for source in SOURCES
        for one in functions(source)
        for on, kind in called(one)
        if kind in CHARTS and (kind != "map" or on == "st")
    }
    assert drawing == {("widgets.py", "figure")}
