"""Which evidence moves routing, and which models are out of reach."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from hydra_core.catalog import load_catalog, pool
from hydra_core.replay.catalog_changes import Cell, Steps, dominated, reach, sensitivity
from hydra_core.replay.replay import ReplayData, replay

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(ROOT / "catalog" / "paper_five.yaml")


@pytest.fixture(scope="module")
def data(catalog):
    models = pool(catalog, today=date(2026, 1, 1))
    rng, n = np.random.default_rng(0), 400
    lo, hi = np.array([[band.lo, band.hi] for band in catalog.bands]).T
    return ReplayData(
        query_ids=tuple(f"q{i}" for i in range(n)),
        languages=("en",) * n,
        requirements=lo + rng.random((n, len(lo))) * (hi - lo),
        quality=(rng.random((n, len(models.ids))) < 0.6).astype(float),
        cost_usd=rng.random((n, len(models.ids))),
        pool=models,
        rows=np.arange(n),
    )


def test_every_number_is_nudged_once(catalog, data):
    found = sensitivity(data, catalog)
    cells = {(effect.cell, effect.benchmark, effect.of) for effect in found}
    benchmarks, k, m = len(catalog.benchmarks), len(catalog.dimensions), len(catalog.models)
    assert len(found) == len(cells) == benchmarks * (1 + k + m)
    assert [e.flips for e in found] == sorted((e.flips for e in found), reverse=True)
    assert found[0].flips > 0


def test_an_effect_is_what_replaying_the_edited_catalog_gives(catalog, data):
    effect = next(e for e in sensitivity(data, catalog) if e.cell is Cell.SCORE)
    models = tuple(
        replace(m, scores={**m.scores, effect.benchmark: effect.after}) if m.id == effect.of else m
        for m in catalog.models
    )
    edited = replace(catalog, models=models)
    other = replace(data, pool=pool(edited, today=date(2026, 1, 1)))
    moved = replay(other, catalog.policy.tau) != replay(data, catalog.policy.tau)
    assert effect.flips == moved.sum()


def test_no_step_has_no_effect(catalog, data):
    found = sensitivity(data, catalog, Steps(0.0, 0.0, 0.0))
    assert {effect.flips for effect in found} == {0}


def test_capabilities_set_by_hand_do_not_depend_on_evidence(catalog, data):
    by_hand = tuple(
        replace(m, overrides=dict(zip(catalog.dimensions, row, strict=True)))
        for m, row in zip(catalog.models, data.pool.capabilities.tolist(), strict=True)
    )
    found = sensitivity(data, replace(catalog, models=by_hand))
    assert {effect.flips for effect in found} == {0}


def test_a_dearer_model_that_can_do_no_more_is_dominated():
    capability = np.array([[0.5, 0.5], [0.5, 0.4], [0.6, 0.2], [0.5, 0.5]])
    assert dominated(capability, np.array([1.0, 2.0, 3.0, 1.0])) == (None, 0, None, 0)


def test_a_dominated_model_is_reached_at_no_tau(data):
    capability = data.pool.capabilities.copy()
    last = int(np.argmax(data.pool.cost))
    capability[last] = capability[int(np.argmin(data.pool.cost))]
    weaker = replace(data, pool=replace(data.pool, capabilities=capability))
    found = {one.model: one for one in reach(weaker.requirements, weaker.pool, 0.1)}[
        data.pool.ids[last]
    ]
    assert found.dominated_by
    assert found.at_some_tau == found.share == 0.0


def test_shares_add_up_and_lie_within_reach(data):
    found = reach(data.requirements, data.pool, 0.1)
    assert sum(one.share for one in found) == pytest.approx(1.0)
    assert all(one.share <= one.at_some_tau + 1e-12 for one in found)
