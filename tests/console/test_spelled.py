"""Tables spell differences as sentences do, and their cells stay numbers."""

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.base.spelling import counted
from hydra_core.catalog.prices.quotes import share_number
from hydra_core.console import tables


def test_differences_have_a_minus_and_nothing_has_no_sign():
    points = tables.change("+.0f", " pp")
    assert [points(one) for one in (-7.3, 0.4, -0.4, 2.0)] == ["−7 pp", "0 pp", "0 pp", "+2 pp"]


def test_one_thing_is_named_in_the_singular():
    assert [counted(n, "query") for n in (0, 1, 4074)] == ["0 queries", "1 query", "4,074 queries"]
    assert counted(2, "model") == "2 models"


def test_a_spelled_table_keeps_its_numbers_and_shows_a_dash_for_none():
    frame = pd.DataFrame({"quality": [-7.3, np.nan]})
    spelled = tables.spelled(frame, {"quality": tables.change()})
    assert spelled.data["quality"].dtype == float
    told = spelled.to_string(delimiter="|")
    assert "−7.3" in told
    assert "–" in told


def test_numbers_to_edit_sort_by_size_and_what_is_no_number_stays():
    cells = [3.0, 0.25, 10, 0.8, "3k", None, np.nan, 2.5]
    texts = tables.number_texts(cells)
    assert texts.isna().tolist() == [cell is None or cell != cell for cell in cells]
    numbers = [text for text in texts.dropna() if text.strip() != "3k"]
    assert sorted(numbers) == [" 0.25", " 0.8", " 2.5", " 3", "10"]
    assert texts[4] == "3k"
    assert tables.number_texts([1_048_576, 128_000], ",.10g").tolist() == ["1,048,576", "  128,000"]


def test_typed_numbers_are_read_and_others_named_with_their_row():
    table = pd.DataFrame({"label": ["good", "bad"], "quality": [" 1", None]})
    assert tables.read_numbers(table, "label", "quality", share_number, 1.0) == {"good": 1.0}
    table["quality"] = ["1/2", "50"]
    with pytest.raises(EvalSetError) as caught:
        tables.read_numbers(table, "label", "quality", share_number, 1.0)
    assert [str(one) for one in caught.value.problems] == [
        "good, quality: is '1/2' (write a number, 0 to 1)",
        "bad, quality: is '50' (write a number, 0 to 1)",
    ]


def test_models_that_begin_alike_are_told_apart_in_a_narrow_column():
    ids = ["anthropic-claude-opus-4.5-vertex", "anthropic-claude-sonnet-4.5-bedrock", "gpt-5"]
    shown = [tables.named(106, ids)(one) for one in ids]
    assert shown == ["…opus-…vertex", "…sonne…edrock", "gpt-5"]
    frame = pd.DataFrame({"model": ids})
    assert tables.spelled(frame, {"model": tables.named(106, ids)}).data["model"].tolist() == ids


def test_long_names_are_shortened_in_sentences_too():
    low, high = (f"acme-internal-gateway/anthropic/claude-sonnet-4.5-{x}" for x in ("low", "high"))
    table = pd.DataFrame({"model": [low, high], "why": ["", f"{low} is cheaper."], "n": [1, 2]})
    found = tables.renamed(table, table["model"], 24)
    assert found["model"].tolist() == ["…claude-sonnet-4.5-low", "…claude-sonnet-4.5-high"]
    assert found["why"].tolist() == ["", "…claude-sonnet-4.5-low is cheaper."]
    assert found["n"].tolist() == [1, 2]
    assert tables.renamed(table, ()).equals(table)


def test_models_that_begin_differently_are_written_in_full():
    ids = ["llama-3-8b-instruct", "llama-3-70b-instruct", "claude-3-5-sonnet-20240620"]
    assert [tables.named(106, ids)(one) for one in ids] == ids


def test_dollars_have_the_decimals_of_the_smallest():
    assert tables.dollars([0.5, 0.0123, 0.0]) == "$%.4f"
    assert tables.dollars([3.0, 0.0000123]) == "$%.7f"
    assert tables.dollars([np.nan, 0.0]) == tables.dollars([]) == "$%.2f"
