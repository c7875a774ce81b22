"""Measured costs in a catalog: read with every check, they order the models, and follow edits."""

from datetime import date

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.catalog import parse_catalog, pool, semantic_diff
from hydra_core.catalog.editing.model_grid import edit_cells, remove_models
from hydra_core.catalog.profiles import blended_price
from hydra_core.routing.router import Router
from tests.catalog.small import edited

COSTS = """\
realised_costs:
  evalset: mine
  digest: "0f0f"
  usd_per_query: {cheap: 0.02, strong: 0.01}
"""
REALISED = ("cost_basis: list_price", "cost_basis: realised")
TEXT = edited(("evidence:\n", f"{COSTS}evidence:\n"), REALISED)


def test_measured_costs_order_the_models_without_an_eval_set():
    catalog = parse_catalog(TEXT)
    found = pool(catalog, today=date(2026, 6, 1))
    assert dict(zip(found.ids, found.cost, strict=True)) == {"cheap": 0.02, "strong": 0.01}
    assert Router(catalog).decide([0.0, 0.0]).model == "strong"  # dearer by list, cheaper in fact


def test_under_list_price_they_change_nothing():
    listed = parse_catalog(edited(("evidence:\n", f"{COSTS}evidence:\n")))
    assert Router(listed).decide([0.0, 0.0]).model == "cheap"


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("strong: 0.01", "strong: -1", "usd_per_query.strong", ">= 0"),
        ("strong: 0.01", "strong: .nan", "usd_per_query.strong", "finite"),
        ("{cheap: 0.02, strong: 0.01}", "{}", "usd_per_query", "no realised cost"),
        ("strong: 0.01", "strong: 1, other: 1", "usd_per_query.other", "not a model"),
        ("digest:", "digset:", "realised_costs.digest", "missing"),
    ],
)
def test_what_is_wrong_with_them_is_told(old, new, place, message):
    with pytest.raises(CatalogError) as caught:
        parse_catalog(TEXT.replace(old, new))
    assert any(place in p.place and message in p.message for p in caught.value.problems), str(
        caught.value
    )


def test_a_model_that_was_never_called_gets_an_estimate_from_its_prices():
    catalog = parse_catalog(TEXT.replace(", strong: 0.01", ""))
    routable = pool(catalog, today=date(2026, 6, 1))
    found = dict(zip(routable.ids, routable.cost, strict=True))
    cheap, strong = (blended_price(model, 3.0) for model in catalog.models)
    assert found == {"cheap": 0.02, "strong": pytest.approx(0.02 * strong / cheap)}
    assert Router(catalog).decide([0.0, 0.0]).model == "cheap"


def test_a_change_of_a_measured_cost_is_a_difference():
    new = parse_catalog(TEXT.replace("strong: 0.01", "strong: 0.03"))
    texts = [str(change) for change in semantic_diff(parse_catalog(TEXT), new)]
    assert texts == ["realised cost of strong 0.01 -> 0.03"]


def test_a_model_takes_its_cost_along():
    renamed = parse_catalog(edit_cells(TEXT, {1: {"id": "best"}}))
    assert renamed.realised_costs.usd_per_query == {"cheap": 0.02, "best": 0.01}
    teams = REALISED[1] + "\n  teams: {eu.search: {models: [strong, gone]}, all: {tau: 1}}"
    renamed = parse_catalog(edit_cells(TEXT.replace(REALISED[1], teams), {1: {"id": "best"}}))
    assert renamed.policy.teams["eu.search"].models == {"best", "gone"}
    alone = parse_catalog(remove_models(TEXT, [0]))
    assert alone.realised_costs.usd_per_query == {"strong": 0.01}


def test_a_fault_of_a_model_is_no_fault_of_its_cost_or_of_required_tags():
    wanted = ("cost_basis: realised", "cost_basis: realised\n  require: [eu]")
    text = TEXT.replace(*wanted).replace("status: active", "status: active\n    tags: [eu]")
    parse_catalog(text)
    with pytest.raises(CatalogError) as caught:
        parse_catalog(edit_cells(text, {n: {"input_usd_per_mtok": -5} for n in (0, 1)}))
    assert ["input_usd_per_mtok" in one.place for one in caught.value.problems] == [True] * 2
