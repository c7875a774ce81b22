"""The import wizard's grids: what headers suggest, as an operator corrects it."""

import pandas as pd

from hydra_core.console.eval_sets.import_table import (
    model_grid,
    notations_of,
    number_columns,
    read_grid,
    with_likely_text,
)
from hydra_core.evalsets.importers.mapping import TableMapping, suggest_mapping
from hydra_core.evalsets.importers.table import raw_rows, read_table

COLUMNS = ["id", "text", "A (May) correct", "A (May) $", "B correct", "B cost", "B latency", "x"]


def test_a_grid_left_as_it_is_means_what_was_suggested():
    suggested = suggest_mapping(COLUMNS)
    grid = read_grid(model_grid(suggested), suggested)
    assert grid.mapping == suggested
    assert grid.ids == {"A (May)": "a-may", "B": "B"}


def test_cells_are_corrected_rows_added_and_a_model_without_quality_left_out():
    suggested = suggest_mapping(COLUMNS)
    edited = model_grid(suggested)
    edited.loc[0, ["id", "cost_usd"]] = ["gpt", None]
    edited.loc[1, "quality"] = None
    edited.loc[2, ["id", "quality", "input_tokens"]] = ["new", "x", "B cost"]
    grid = read_grid(edited, suggested)
    assert grid.mapping.quality == {"A (May)": "A (May) correct", "new": "x"}
    assert (grid.mapping.cost, grid.mapping.sides["input_tokens"]) == ({}, {"new": "B cost"})
    assert (grid.ids, grid.lacking) == ({"A (May)": "gpt", "new": "new"}, ("B",))


def test_what_the_grid_leaves_out_stays_out_of_the_import(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,text,A correct,A cost,B correct,B cost\n1,Hi,1,0.5,1,0.7\n")
    mapping = TableMapping({"query_id": "id", "text": "text"}, {"quality": {"A": "A correct"}})
    draft = read_table([path], mapping, need_cost=False, complete=False)
    assert draft.models == ("A",)
    assert pd.isna(draft.cost_usd).all()


def test_words_are_proposed_and_what_is_chosen_is_a_notation(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,text,A result,A cost\n1,Hi,,5\n2,Ho,pass,7\n")
    listed = number_columns(suggest_mapping(["id", "text", "A result", "A cost"]),
                            [raw_rows(path, 10)])  # fmt: skip
    assert listed["first"].tolist() == ["pass", "5"]
    listed.loc[1, "written"] = "cents"
    notations = notations_of(listed)
    assert notations["A result"].words
    assert notations["A cost"].divisor == 100


def test_the_message_is_the_column_of_long_texts(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,What,By,A correct,B correct\n1,Fix the old build,Kim Lee,1,1\n")
    suggested = with_likely_text(
        suggest_mapping(["id", "What", "By", "A correct", "B correct"]), [raw_rows(path, 10)]
    )
    assert suggested.fields == {"query_id": "id", "text": "What"}
