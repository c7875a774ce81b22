"""A catalog that routes by the success profiles in its YAML, from the requirements alone."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.shipped import CATALOGS
from hydra_core.base.types import Rule, SuccessSource
from hydra_core.catalog.diff import semantic_diff
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.model_grid import remove_models
from hydra_core.catalog.profiles import pool
from hydra_core.catalog.schema import parse_catalog
from hydra_core.export.litellm import litellm_config
from hydra_core.outcome_model.success_profiles import catalog_success_profiles
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.decision import redecide
from hydra_core.routing.flips import flips, strip
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from tests.routing.plain_rule import largest_value

FIVE = (CATALOGS / "paper_five.yaml").read_text()
TODAY = date(2026, 6, 1)
V = 0.05


def block(text, **changes):
    """Success profiles of a catalog's models: the dearer, the better on what requires much."""
    catalog = parse_catalog(text)
    names = catalog.dimensions
    levels = np.linspace(1.0, 0.0, len(catalog.models)) ** 2
    return {
        "evalset": {"name": "mine", "digest": "ab"},
        "queries": 700,
        "knots": {name: [0.3, 1.0] for name in names},
        "cost_factor": {"intercept": -0.2, "adds": {name: [0.1, 0.2] for name in names}},
        "models": {
            model.id: {
                "intercept": 0.95,
                "adds": {name: [-0.05 * level, -0.22 * level] for name in names},
                "input_tokens": 300,
                "output_tokens": 500,
            }
            for model, level in zip(catalog.models, levels.tolist(), strict=True)
        },
        **changes,
    }


def valued(text=FIVE, **policy):
    """The text routed by success profiles."""
    document = CatalogDocument.parse(text)
    document.set("success_profiles", block(text))
    for name, value in ({"rule": "value", "value_usd": V} | policy).items():
        document.set("policy", name, value)
    return document.text()


def needs(n=400, seed=3):
    """(n, 4) requirements."""
    return np.random.default_rng(seed).beta(1.0, 2.0, (n, 4))


class Scores:
    """A predictor without text vectors."""

    def __init__(self, requirements):
        self.requirements = requirements

    def predict(self, texts, turns=None, contexts=None):
        rows = np.array([int(text) for text in texts])
        ones = np.ones(len(texts), dtype=np.intp)
        return Prediction(self.requirements[rows], ones, ones.astype(bool))


def test_the_router_takes_the_largest_value():
    catalog, requirements = parse_catalog(valued()), needs()
    router = Router(catalog, Scores(requirements), today=lambda: TODAY)
    models = pool(catalog, today=TODAY)
    ids = models.ids
    said = catalog_success_profiles(catalog, models).predict(requirements)
    expected = [ids[i] for i in largest_value(said.success, said.cost_usd, V)]
    routed = [router.route(Query(str(i))) for i in range(len(requirements))]
    assert [one.model for one in routed] == expected
    assert len(set(expected)) > 1
    for row, one in enumerate(routed[:50]):
        receipt = one.receipt()
        assert redecide(receipt) == one.model
        assert receipt["success_profiles"] == {"evalset": "mine"}
        assert router.decide(requirements[row]).model == one.model
        assert one.model in {part.model for part in strip(one)}
        assert all(flip.model != one.model for flip in flips(one, catalog))


def test_a_price_is_an_edit_of_yaml():
    catalog = parse_catalog(valued())
    models = (replace(catalog.models[0], output_usd_per_mtok=4_000.0), *catalog.models[1:])
    before, after = (
        catalog_success_profiles(one, pool(one, today=TODAY)).predict(needs()).cost_usd
        for one in (catalog, replace(catalog, models=models))
    )
    assert (after[:, 0] > 5 * before[:, 0]).all()
    assert np.array_equal(after[:, 1:], before[:, 1:])


def test_a_model_without_a_profile_stands_between_the_others():
    document = CatalogDocument.parse(valued())
    newcomer = parse_catalog(FIVE).models[2].id
    document.remove("success_profiles", "models", newcomer)
    catalog = parse_catalog(document.text())
    models = pool(catalog, today=TODAY)
    found = catalog_success_profiles(catalog, models)
    assert found.placed == (newcomer,)
    success = found.predict(needs()).success
    at = models.ids.index(newcomer)
    levels = models.capabilities.mean(axis=1)
    below = [i for i in range(len(levels)) if levels[i] < levels[at]]
    above = [i for i in range(len(levels)) if levels[i] > levels[at]]
    others = np.delete(success, at, axis=1)
    assert below
    assert above
    assert (success[:, at] >= others.min(axis=1) - 1e-9).all()
    assert (success[:, at] <= others.max(axis=1) + 1e-9).all()


def test_a_removed_model_takes_its_profile_along():
    catalog = parse_catalog(remove_models(valued(), [1]))
    assert len(catalog.success_profiles.models) == len(catalog.models) == 4


def test_score_caps_hold_for_success_profiles():
    caps = {"score_caps": {name: 0.1 for name in parse_catalog(FIVE).dimensions}}
    capped = Router(parse_catalog(valued(defences=caps)), today=lambda: TODAY)
    free = Router(parse_catalog(valued()), today=lambda: TODAY)
    low = free.decide(np.full(4, 0.1))
    assert capped.decide(np.ones(4)).model == low.model
    assert free.decide(np.ones(4)).model != low.model


def test_the_policy_says_which_of_two_sources_counts():
    text = valued()
    document = CatalogDocument.parse(text)
    document.set("outcome_model", {"path": "heads", "sha256": "a" * 64})
    with pytest.raises(CatalogError, match="success_from .* is missing"):
        parse_catalog(document.text())
    for source in SuccessSource:
        document.set("policy", "success_from", source.value)
        assert parse_catalog(document.text()).success_source is source


def test_the_value_rule_needs_a_source():
    document = CatalogDocument.parse(FIVE)
    document.set("policy", "rule", "value")
    document.set("policy", "value_usd", V)
    with pytest.raises(CatalogError, match="success_profiles"):
        parse_catalog(document.text())
    document.set("policy", "success_from", "success_profiles")
    with pytest.raises(CatalogError, match="the catalog has none"):
        parse_catalog(document.text())


def test_an_edited_number_is_a_difference():
    old, name = parse_catalog(valued()), parse_catalog(FIVE).models[0].id
    document = CatalogDocument.parse(valued())
    document.set("success_profiles", "models", name, "intercept", 0.8)
    (change,) = semantic_diff(old, parse_catalog(document.text()))
    assert str(change) == f"{name} success: intercept 0.95 -> 0.80"
    added = [str(one) for one in semantic_diff(parse_catalog(FIVE), old)]
    assert "policy rule shortfall -> value" in added
    assert f"success profile of {name} added" in added


def test_an_export_names_what_it_cannot_say():
    catalog = parse_catalog(valued())
    assert catalog.policy.rule is Rule.VALUE
    notes = litellm_config(catalog).not_expressed
    assert any("success profiles fitted to mine" in note for note in notes)
