"""Which rows belong together has one answer, and every figure takes it."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.evalsets.evalset import cluster_numbers
from hydra_core.replay.routability import duplicates
from tests.evalsets import sets

ROOT = Path(__file__).resolve().parents[2] / "hydra_core"
#: Who may name the columns: the one answer, what reads and writes them, and what asks for
#: something else (a question asked anew in `attack`; the order of turns).
NAMED_IN = {
    "cli/predictor.py",
    "evalsets/evalset.py",
    "evalsets/rules.py",
    "evalsets/suspects.py",
    "lab/collect/outcomes.py",
    "lab/robustness/attack.py",
    "replay/sweep_parts.py",
}


def numbers(**columns):
    found = cluster_numbers(pd.DataFrame(columns))
    return None if found is None else found.tolist()


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ({"query_id": ["a", "b"]}, None),
        ({"cluster": [None, None]}, None),
        ({"cluster": ["x", None, "x", None]}, [0, 1, 0, 2]),
        ({"conversation_id": [None, "c", "c"]}, [0, 1, 1]),
        ({"cluster": ["x", "y", "z"]}, [0, 1, 2]),
        (
            {"cluster": ["x", None, None, "x"], "conversation_id": [None, "c", "c", "c"]},
            [0, 0, 0, 0],
        ),
        (
            {"cluster": ["x", None, None, "x"], "conversation_id": [None, "c", "c", "d"]},
            [0, 1, 1, 0],
        ),
    ],
)
def test_rows_of_one_cluster_or_conversation_belong_together(columns, wanted):
    assert numbers(**columns) == wanted


def partly_clustered(folder):
    again = sets.queries().assign(
        text=["Fix the bug", "fix the bug!", "other"], cluster=["k", "k", None]
    )
    return sets.saved(folder / "set", queries=again)


def test_some_rows_are_numbered_without_gaps(tmp_path):
    evalset = partly_clustered(tmp_path)
    assert evalset.clusters.tolist() == [0, 0, 1]
    assert evalset.clusters_at(np.array([2, 1])).tolist() == [0, 1]
    assert evalset.clusters_at(np.array([2])).tolist() == [0]


def test_accepted_duplicates_are_clustered_where_other_rows_have_no_cluster(tmp_path):
    (group,) = duplicates(partly_clustered(tmp_path))
    assert group.clustered


def test_no_second_place_reads_the_columns_that_declare_clusters():
    """Importers write them; everything else asks `EvalSet.clusters`."""
    found = set()
    for path in ROOT.rglob("*.py"):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if '"cluster"' in text else ():
            if isinstance(node, ast.Constant) and node.value == "cluster":
                found.add(name)
    assert {name for name in found if not name.startswith("evalsets/importers/")} <= NAMED_IN
