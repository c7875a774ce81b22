"""HyDRA on a real set, cross-fitted, in the form the baselines have: choices at every knob."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from benchmarks.quality.pool_choice import choose_pool, with_models
from hydra_core.base.types import Band, Pool, Rule
from hydra_core.catalog import parse_catalog, pool, rebind
from hydra_core.catalog.profiles import compensated_weights, to_band
from hydra_core.choosing.heads import choose, fit
from hydra_core.choosing.policy_search import Space, search_policy, with_cells
from hydra_core.outcome_model.heads import Predicted
from hydra_core.replay.baselines import BaselineRun
from hydra_core.replay.metrics import picked
from hydra_core.replay.operating_point import Aim, AimKind
from hydra_core.replay.replay import ReplayData, align, data_frontier, folds, replay

VALUE_RULE = "HyDRA value rule"
KNOBS = np.linspace(0.0, 1.0, 81)


def catalog_pool(path: Path, bundle) -> Pool:
    """The pool of a catalog on this bundle's bands."""
    text = rebind(path.read_text(), bundle.name, bundle.fingerprint, bundle.bands)
    return pool(parse_catalog(text, path.name), today=date(2026, 1, 1))


def flat_pool(models, dimensions) -> Pool:
    """Models without profiles; `learned` gives them some."""
    m, k = len(models), len(dimensions)
    return Pool(tuple(models), np.zeros((m, k)), np.arange(m, dtype=np.float64), np.ones(k))


def learned(data: ReplayData, train, bands) -> Pool:
    """Profiles and cost order from some rows alone.

    Algorithm 1 with each of those queries as a benchmark that exercises dimension k as far as its
    requirement on k says: a model's raw capability is its success weighted by requirement.
    """
    exercised = data.requirements[train]
    raw = data.quality[train].T @ exercised / np.maximum(exercised.sum(axis=0), 1e-12)
    cost = data.cost_usd[train].mean(axis=0)
    weights = compensated_weights(np.ones(len(bands)), bands)
    return Pool(data.pool.ids, to_band(raw, bands), cost, weights)


def at_every_cost(data: ReplayData, weights=None):
    """(knobs, n): tau chosen so that the mean cost climbs evenly; outcomes are not looked at."""
    curve = data_frontier(data, weights)
    low, high = curve.mean_cost_usd.min(), curve.mean_cost_usd.max()
    rows = [np.abs(curve.mean_cost_usd - c).argmin() for c in low + KNOBS * (high - low)]
    return np.stack([replay(data, float(curve.knob[row]), weights) for row in rows])


def hydra_runs(data: ReplayData, bands, *, derive: bool, seed: int, trials: int):
    """HyDRA with equal weights; with weights, and with pool and weights, tuned on the other half.

    Which models are kept (`choose_pool`), and in the last variant also the bands (percentiles of
    the requirements) and the profile cells, are decided on the other half as well.
    """
    names = (
        "HyDRA",
        "HyDRA, weights tuned",
        "HyDRA, pool and weights tuned",
        "HyDRA, bands, pool, profiles and weights tuned",
    )
    choices = np.zeros((len(names), KNOBS.size, len(data.query_ids)), dtype=np.intp)
    for number, fold in enumerate(folds(data, 2, np.random.default_rng(seed))):
        known = learned(data, fold.train, bands) if derive else data.pool
        train, test = (replace(data.take(rows), pool=known) for rows in (fold.train, fold.test))
        rebuild = rebuilder(data, fold.train, bands, derive=derive)
        kept = choose_pool(train, rebuild).kept
        choices[0][:, fold.test] = at_every_cost(test)
        choices[1][:, fold.test] = tuned(train, test, bands, trials, seed + number)
        columns = np.array([data.pool.ids.index(model) for model in kept])
        parts = (with_models(part, kept, rebuild) for part in (train, test))
        choices[2][:, fold.test] = columns[tuned(*parts, bands, trials, seed + number)]
        own = own_bands(data, fold.train) if derive else bands
        rebuild = rebuilder(data, fold.train, own, derive=derive)
        kept = choose_pool(train, rebuild).kept
        columns = np.array([data.pool.ids.index(model) for model in kept])
        parts = [with_models(part, kept, rebuild) for part in (train, test)]
        cells = near(parts[0].pool, own)
        choices[3][:, fold.test] = columns[tuned(*parts, own, 3 * trials, seed + number, cells)]
    return [_run(data, name, found) for name, found in zip(names, choices, strict=True)]


def shortfall_run(data: ReplayData, bands, seed: int) -> BaselineRun:
    """HyDRA with equal weights and all models, its profiles from the other half."""
    choices = np.zeros((KNOBS.size, len(data.query_ids)), dtype=np.intp)
    for fold in folds(data, 2, np.random.default_rng(seed)):
        known = learned(data, fold.train, bands)
        choices[:, fold.test] = at_every_cost(replace(data.take(fold.test), pool=known))
    return _run(data, "HyDRA", choices)


def value_run(data: ReplayData, material, seed: int) -> BaselineRun:
    """The value rule at costs that climb evenly; each half predicted by heads from the other.

    Args:
        material: What heads learn from, of every query of `data` at least.
    """
    shape = data.quality.shape
    predicted = Predicted(np.zeros(shape), np.zeros(shape))
    at = np.searchsorted(material.rows, data.rows)
    for number, fold in enumerate(folds(data, 2, np.random.default_rng(seed))):
        train = material.take(at[fold.train])
        heads = fit(train, choose(train, np.random.default_rng([seed, number])), seed=seed + number)
        pool = heads.for_pool(data.pool.ids, np.zeros(shape[1]), None)
        found = pool.predict(material.messages.take(at[fold.test]))
        predicted.success[fold.test] = found.success
        predicted.cost_usd[fold.test] = found.cost_usd
    valued = replace(data, predicted=predicted)
    curve = data_frontier(valued, rule=Rule.VALUE)
    low, high = curve.mean_cost_usd.min(), curve.mean_cost_usd.max()
    rows = [np.abs(curve.mean_cost_usd - c).argmin() for c in low + KNOBS * (high - low)]
    choices = [replay(valued, curve.point(int(row)).knob, rule=Rule.VALUE) for row in rows]
    return _run(data, VALUE_RULE, np.stack(choices))


def own_bands(data: ReplayData, train):
    """Bands from the 5th to the 95th percentile of these queries' own requirements."""
    low, high = np.percentile(data.requirements[train], [5, 95], axis=0)
    return tuple(Band(float(a), float(max(b, a + 1e-3))) for a, b in zip(low, high, strict=True))


def near(pool: Pool, bands):
    """Every profile cell may move by half its dimension's band."""
    return {
        (model, k): (
            max(0.0, pool.capabilities[i, k] - band.width / 2),
            min(1.0, pool.capabilities[i, k] + band.width / 2),
        )
        for i, model in enumerate(pool.ids)
        for k, band in enumerate(bands)
    }


def rebuilder(data: ReplayData, train, bands, *, derive: bool):
    """Pools for some of the models: profiles learned anew, or the catalog's as they are."""

    def rebuild(models):
        columns = [data.pool.ids.index(model) for model in models]
        pool = Pool(
            tuple(models),
            data.pool.capabilities[columns],
            data.pool.cost[columns],
            data.pool.weights,
        )
        part = replace(
            data, quality=data.quality[:, columns], cost_usd=data.cost_usd[:, columns], pool=pool
        )
        return learned(part, train, bands) if derive else pool

    return rebuild


def tuned(train: ReplayData, test: ReplayData, bands, trials, seed, cells=None):
    """(knobs, n): weights (and cells) searched on one half for the area, used on the other."""
    space = Space(bands, cells=cells or {})
    found = search_policy(train, space, Aim(AimKind.HYPERVOLUME), trials=trials, seed=seed).setting
    moved = with_cells(test, found.cells)
    return at_every_cost(moved, compensated_weights(found.weights, bands))


def _run(data, name, choices) -> BaselineRun:
    return BaselineRun(
        name=name,
        choices=choices,
        quality=np.array([picked(data.quality, row).mean() for row in choices]),
        mean_cost_usd=np.array([picked(data.cost_usd, row).mean() for row in choices]),
    )


def real_data(evalset, requirements, real, bundle) -> ReplayData:
    """The set lined up with its catalog's pool, or with all its models."""
    if real.catalog is not None:
        return align(evalset, requirements, catalog_pool(Path(real.catalog), bundle))
    return align(evalset, requirements, flat_pool(evalset.models, bundle.dimensions))
