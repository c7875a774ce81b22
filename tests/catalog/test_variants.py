"""Effort levels in a catalog: what they take from their base, their own values, faults."""

from dataclasses import replace

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.catalog import parse_catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.model_grid import add_variant, edit_cells, model_rows
from hydra_core.console.view_frontier import together
from hydra_core.export.litellm import litellm_config
from tests.catalog.small import SMALL

LEVEL = "  - id: strong-high\n    variant_of: strong\n"


def test_a_level_is_its_base_but_for_its_name():
    base, level = parse_catalog(SMALL + LEVEL).models[1:]
    assert level == replace(base, id="strong-high", variant_of="strong")


def test_own_values_win_and_rates_are_given_one_by_one():
    own = "    scores: {bugs: 0.95}\n    output_usd_per_mtok: 20\n    status: disabled\n"
    base, level = parse_catalog(SMALL + LEVEL + own).models[1:]
    assert (level.scores, level.output_usd_per_mtok) == ({"puzzles": 0.9, "bugs": 0.95}, 20.0)
    assert (base.scores["bugs"], level.status.value) == (0.8, "disabled")


def test_a_level_before_its_base_is_read_as_well():
    head, tail = SMALL.split("models:\n")
    assert parse_catalog(f"{head}models:\n{LEVEL}{tail}").model("strong-high").vision


def test_a_retiring_bases_day_goes_along_unless_the_level_has_a_status():
    text = SMALL.replace(
        "status: active\n    input_usd_per_mtok: 1.19",
        "status: retiring\n    retire_on: 2027-01-01\n    input_usd_per_mtok: 1.19",
    )
    base, level = parse_catalog(text + LEVEL).models[1:]
    assert level.retire_on == base.retire_on is not None
    assert parse_catalog(f"{text}{LEVEL}    status: active\n").models[2].retire_on is None


@pytest.mark.parametrize(
    ("added", "told"),
    [
        (LEVEL.replace("of: strong", "of: strnog"), "there is no other model 'strnog'"),
        (LEVEL.replace("of: strong", "of: strong-high"), "there is no other model"),
        (f"{LEVEL}  - id: top\n    variant_of: strong-high\n", "is a variant itself"),
        ("    shares_prompt_cache: true\n", "the model is no variant"),
        (f"{LEVEL}    shares_prompt_cache: often\n", "must be true or false"),
        (f"{LEVEL}    output_usd_per_mtok: -1\n", "models[2] 'strong-high': output_usd_per_mtok"),
    ],
)
def test_what_is_wrong_with_a_level_is_said(added, told):
    with pytest.raises(CatalogError) as caught:
        parse_catalog(SMALL + added)
    assert told in str(caught.value)


def test_the_table_shows_what_a_level_takes_and_writes_what_it_has():
    text = add_variant(SMALL, 1)
    rows = model_rows(CatalogDocument.parse(text))
    assert rows[2] == {**rows[1], "id": "strong-high", "variant_of": "strong"}
    dearer = edit_cells(text, {2: {"output_usd_per_mtok": 30}, 1: {"id": "best"}})
    level = parse_catalog(dearer).models[2]
    assert (level.variant_of, level.output_usd_per_mtok) == ("best", 30.0)
    assert edit_cells(edit_cells(text, {2: {"vision": False}}), {2: {"vision": None}}) == text
    with pytest.raises(CatalogError, match="an effort level itself"):
        add_variant(text, 2)


def test_levels_stand_beside_their_base():
    assert together(["a", "b", "a", "c", "b"]) == [0, 2, 1, 4, 3]


def test_an_export_leaves_levels_out_and_says_so():
    found = litellm_config(parse_catalog(SMALL + LEVEL))
    assert "strong-high" not in found.text.split("model_list")[1]
    assert any("strong-high" in note for note in found.not_expressed)
