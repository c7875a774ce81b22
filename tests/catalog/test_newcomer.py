"""Where a new model stands before it has outcomes."""

from dataclasses import replace

import pytest

from hydra_core.catalog import parse_catalog
from hydra_core.catalog.profiles import benchmark_rates, evidence_at_rate, evidence_like
from tests.catalog.small import SMALL

CATALOG = parse_catalog(SMALL)
RATES = {"cheap": 0.4, "strong": 0.8}


def test_between_two_models_it_has_rates_between_theirs():
    found = evidence_at_rate(CATALOG, 0.6, RATES)
    assert found == {
        "scores": {"puzzles": pytest.approx(0.7), "bugs": pytest.approx(0.6)},
        "capabilities": "derived",
    }


def test_as_good_as_one_of_them_it_has_its_rates():
    assert evidence_at_rate(CATALOG, 0.4, RATES)["scores"] == {"puzzles": 0.5, "bugs": 0.4}


@pytest.mark.parametrize(("rate", "puzzles"), [(0.0, 0.0), (0.2, 0.25), (0.9, 0.95), (1.0, 1.0)])
def test_beyond_both_ends_it_goes_on_to_nothing_and_to_everything(rate, puzzles):
    found = evidence_at_rate(CATALOG, rate, RATES)["scores"]["puzzles"]
    assert found == pytest.approx(puzzles)


def test_without_rates_its_capabilities_lie_between_theirs():
    by_hand = tuple(
        replace(model, scores={}, overrides={"reasoning": level, "debugging": level / 2})
        for model, level in zip(CATALOG.models, (0.3, 0.7), strict=True)
    )
    catalog = replace(CATALOG, models=by_hand, benchmarks=())
    found = evidence_at_rate(catalog, 0.6, RATES)["capabilities"]
    assert found == {"reasoning": pytest.approx(0.5), "debugging": pytest.approx(0.25)}


def test_like_another_it_has_the_same_evidence():
    found = evidence_like(CATALOG, "cheap")
    assert found == {"scores": {"puzzles": 0.5, "bugs": 0.4}, "capabilities": "derived"}


def test_rates_of_the_benchmarks_count_by_importance():
    assert benchmark_rates(CATALOG)["cheap"] == pytest.approx(0.6 * 0.5 + 0.4 * 0.4)
