"""The rules on whole columns say what one look at every cell says."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.evalsets.rules import check_outcomes, check_queries, outcome_matrices

CELLS = st.sampled_from(["a", "b", "c", "", None, "é"])
KINDS = st.sampled_from(["str", "object", "category"])


def typed(cells, kind):
    column = pd.Series(cells, dtype=object)
    return column if kind == "object" else column.astype(kind)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8), KINDS)
def test_unknown_outcomes_are_counted_cell_by_cell(rows, kind):
    ids, models = (typed(cells, kind) for cells in zip(*rows, strict=True))
    frame = pd.DataFrame({"query_id": ids, "model": models, "quality": 1.0, "cost_usd": 1.0})
    found = {one.place: one.message for one in check_outcomes(frame, pd.Index(["a", "b"]), ["c"])}
    if any("must be text" in message for message in found.values()):
        return  # a column of nothing but None
    for place, cells, known in (("query_id", ids, "ab"), ("model", models, "c")):
        bad = sum(not (isinstance(cell, str) and cell and cell in known) for cell in cells)
        assert (f"in {bad} row(s)" in found.get(f"outcomes: {place}", "")) == (bad > 0)


@settings(max_examples=100, deadline=None)
@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1), KINDS)
def test_outcomes_land_in_their_cell(places, kind):
    rows = sorted(places, key=hash)
    ids, models = (
        typed([f"{c}{i}" for i in x], kind)
        for c, x in zip("qm", zip(*rows, strict=True), strict=True)
    )
    frame = pd.DataFrame({"query_id": ids, "model": models, "quality": np.arange(len(rows)) / 20,
                          "cost_usd": 1.0})  # fmt: skip
    wanted = np.full((5, 3), np.nan)
    for (i, j), value in zip(rows, frame["quality"], strict=True):
        wanted[i, j] = value
    query_ids = pd.Index([f"q{i}" for i in range(5)])
    found = outcome_matrices(frame, query_ids, ["m0", "m1", "m2"])
    np.testing.assert_array_equal(found["quality"], wanted)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["x", "", None]), min_size=1, max_size=6), KINDS)
def test_empty_texts_are_counted_cell_by_cell(texts, kind):
    frame = pd.DataFrame({"query_id": [f"q{i}" for i in range(len(texts))],
                          "text": typed(texts, kind), "language": "en"})  # fmt: skip
    bad = sum(not text for text in texts)
    found = [one for one in check_queries(frame) if one.place == "queries: text"]
    assert [f"in {bad} row(s)" in one.message for one in found] == [True] * (bad > 0)


@pytest.mark.parametrize("kind", ["str", "object"])
def test_languages_are_checked_as_codes(kind):
    codes = typed(["en", "zh-CN", "de", "EN", "en"], kind)
    frame = pd.DataFrame({"query_id": list("abcde"), "text": "x", "language": codes})
    (found,) = check_queries(frame)
    assert "in 2 row(s) (row 2: 'zh-CN', row 4: 'EN')" in found.message


def test_columns_stored_as_categories_are_read_as_their_text():
    frame = pd.DataFrame({"query_id": ["a", "b"], "text": "x", "language": "en", "group": "g"})
    assert check_queries(frame.astype("category")) == []
