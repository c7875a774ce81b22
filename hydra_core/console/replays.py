"""Cached replays by either rule, and the outcome models that the value rule predicts with.

Whatever replays or makes something raises HydraError where set, catalog and model do not fit
together; the message says what to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import streamlit as st

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import HydraError, MismatchError
from hydra_core.base.types import Catalog, FloatArray, Rule, SuccessSource
from hydra_core.base.workspace import OUTCOME_MODELS
from hydra_core.catalog.profiles import routable_models
from hydra_core.choosing.initial_catalog import EnteredPrices, InitialCatalog, initial_catalog
from hydra_core.choosing.policy_search import Space, search_policy
from hydra_core.console import cache
from hydra_core.console.cache import SetEntry, cached
from hydra_core.console.compare.view import Kind, Paired, Side, pair, side_run
from hydra_core.console.demo import session
from hydra_core.console.eval_sets.view import spread_table, upset_view
from hydra_core.console.tasks import Tasks
from hydra_core.evalsets.scores import load_scores
from hydra_core.outcome_model.format import MANIFEST, catalog_outcome_model, load_outcome_model
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.replay.baselines import BaselineRun
from hydra_core.replay.catalog_changes import Effect
from hydra_core.replay.catalog_changes import sensitivity as find_sensitivity
from hydra_core.replay.compare import Replayed, replay_policy
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.imported_policies import (
    ImportedPolicies,
    imported_policies,
    policy_names,
    policy_path,
)
from hydra_core.replay.operating_point import Aim, AimKind, CrossFit, cross_fit_aim
from hydra_core.replay.pricing import Prices
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.routability import PerfectRouter, difficulty, perfect_router
from hydra_core.replay.sweep import Sweep, sweep_by_value, sweep_own_value
from hydra_core.replay.verdict import Verdict

PolicyStamps = tuple[tuple[str, int], ...]

_CHECK_TRIALS = 150
#: Outcomes from which on the band takes over a second.
_SLOW_BAND = 100_000


def paired(
    a: tuple[Side, Sweep], b: tuple[Side, Sweep], own: Sweep, learned: Mapping[str, BaselineRun]
) -> Paired:
    """Both sides replayed and compared.

    Args:
        own: The sweep of the page, which clusters and costs are taken from.
        learned: The learned routers among the sides, by name.

    Raises:
        HydraError: An imported policy does not fit.
        ValueError: They have no query in common.
    """
    return _paired(a, b, own, _policy_stamps(own), learned)


@cached(12, "Comparing")
def _paired(
    a: tuple[Side, Sweep],
    b: tuple[Side, Sweep],
    own: Sweep,
    policies: PolicyStamps,
    _learned: Mapping[str, BaselineRun],
) -> Paired:
    del policies
    if a[0].kind in (Kind.MIX, Kind.LEARNED):
        run_b = side_run(*b, None, _learned)
        return pair(side_run(*a, float(run_b.cost_usd.mean()), _learned), run_b, own)
    run_a = side_run(*a, None, _learned)
    return pair(run_a, side_run(*b, float(run_a.cost_usd.mean()), _learned), own)


def imported(sweep: Sweep, baseline: str) -> ImportedPolicies:
    """The policies kept beside an eval set, replayed on a sweep's pool."""
    return _imported(sweep, baseline, _policy_stamps(sweep))


@cached(24)
def _imported(sweep: Sweep, baseline: str, policies: PolicyStamps) -> ImportedPolicies:
    del policies
    return imported_policies(sweep.evalset, sweep.data, baseline)


def _policy_stamps(sweep: Sweep) -> PolicyStamps:
    """Names of the set's imported policies and when each was written."""
    path = sweep.evalset.path
    return tuple((name, policy_path(path, name).stat().st_mtime_ns) for name in policy_names(path))


def band(sweep: Sweep) -> None:
    """See to it that the band along the curve is there, with progress where that takes long."""
    if len(sweep.data.rows) * len(sweep.data.pool.ids) < _SLOW_BAND:
        sweep.band()
        return
    shown = st.empty()  # with every run, so that what stands below keeps its place
    if sweep.has_band:
        return
    text = "The 95 % band over every τ"

    def step(done: int, total: int) -> None:
        shown.progress(done / total, text)

    step(0, 1)
    sweep.band(step)
    shown.empty()


evaluated = cached(32, "Comparing with the best fixed mix")(evaluate)
upset = cached(16, "Counting who solves what")(upset_view)
spread = cached(16)(spread_table)
difficulties = cached(16)(difficulty)


@cached(16)
def cross_fitted_check(sweep: Sweep, qr: float) -> Verdict:
    """Weights and tau chosen on one half for a QR in [0, 1], measured on the other.

    Raises:
        InfeasibleError: No weighting reaches that QR.
        ValueError: Too few independent queries to halve.
    """
    aim = Aim(AimKind.CHEAPEST_WITH_QR, qr)
    with st.spinner("Choosing on one half, measuring on the other", show_time=True):
        return search_policy(
            sweep.data, Space(sweep.catalog.bands), aim, trials=_CHECK_TRIALS
        ).verdict


@cached(24, "Choosing on one half, measuring on the other")
def held_out(sweep: Sweep, aim: Aim) -> CrossFit:
    """What an aim comes to on queries its setting was not chosen on."""
    return cross_fit_aim(sweep.data, aim, sweep.rule)


def tasks() -> Tasks:
    """The long computations of this workspace, shared by all who look at it."""
    demo = session.demo()
    return _tasks(session.folder()) if demo is None else demo.tasks


@cached(4)
def _tasks(folder: Path) -> Tasks:
    del folder
    return Tasks()


@cached(24)
def perfect(sweep: Sweep) -> PerfectRouter:
    """What a perfect router would win."""
    return perfect_router(sweep.data)


def new_catalog(entry: SetEntry, entered: EnteredPrices, cut_to_hull: bool) -> InitialCatalog:
    """A catalog that fits an eval set scored by the shipped predictor, not yet published."""
    return _new_catalog(entry, cache.bundle().fingerprint, date.today(), entered, cut_to_hull)


@cached(8, "Making the catalog")
def _new_catalog(
    entry: SetEntry, fingerprint: str, today: date, entered: EnteredPrices, cut_to_hull: bool
) -> InitialCatalog:
    loaded = cache.evalset(entry)
    scores = load_scores(loaded, fingerprint)
    if scores is None:
        raise MismatchError(f"eval set '{loaded.name}' is not scored yet; score it first")
    return initial_catalog(
        loaded,
        scores,
        dict(entered.prices),
        name=loaded.name,
        predictor=cache.bundle().name,
        fingerprint=fingerprint,
        dimensions=cache.bundle().dimensions,
        models=entered.models,
        cut_to_hull=cut_to_hull,
        today=today,
    )


@cached(8)
def requirements(entry: SetEntry, catalog: Catalog) -> FloatArray:
    """(n, K) requirements of an eval set by a catalog's predictor."""
    return catalog_scores(cache.evalset(entry), catalog)


@cached(16, "Nudging every number of the evidence")
def sensitivity(entry: SetEntry, catalog: Catalog) -> tuple[Effect, ...]:
    """What nudging each number of the evidence does on an eval set."""
    return find_sensitivity(cache.sweep(entry, catalog, catalog.policy.weights).data, catalog)


def learnable(entry: SetEntry, catalog: Catalog) -> tuple[str, ...]:
    """The models that a catalog routes to and the set has outcomes of, in the catalog's order."""
    routable = [model.id for model in routable_models(catalog, date.today())]
    return tuple(name for name in routable if name in entry.info.models)


def model_folder(
    entry: SetEntry,
    catalog: Catalog,
    models: Sequence[str],
    *,
    groups_are_traffic: bool = False,
    rates: Mapping[str, float] | None = None,
) -> Path:
    """Where the outcome model of a set and these models belongs; another input, another folder.

    What was learned is never overwritten: a published catalog may name it.
    """
    prices = [
        [model, catalog.model(model).input_usd_per_mtok, catalog.model(model).output_usd_per_mtok]
        for model in models
    ]
    made_of = [entry.info.digest, catalog.predictor_fingerprint, prices]
    if groups_are_traffic:
        made_of.append("groups are traffic")
    if rates:
        made_of.append(sorted(rates.items()))
    digest = text_sha256(json.dumps(made_of))[:10]
    name = re.sub(r"[^a-z0-9]+", "-", entry.info.path.name.lower()).strip("-")[:40]
    return session.folder() / OUTCOME_MODELS / f"{name}-{digest}"


def model_in(folder: Path) -> OutcomeModel | None:
    """The outcome model in a folder, None where there is none; OutcomeModelError if damaged."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return None
    return _loaded(folder, manifest.stat().st_mtime_ns)


def model_named_by(entry: SetEntry, catalog: Catalog, models: Sequence[str]) -> OutcomeModel | None:
    """The catalog's own outcome model where it was learned from this set and these models."""
    if catalog.outcome_model is None:
        return None
    model = catalog_outcome_model(catalog)
    same = model.evalset_digest == entry.info.digest and set(model.models) == set(models)
    return model if same else None


def newest_model(entry: SetEntry, catalog: Catalog, models: Sequence[str]) -> OutcomeModel | None:
    """The newest outcome model of the workspace that was learned from this set and these models.

    The command line names its folders as it likes. One that cannot be read is left out.
    """
    folder = session.folder() / OUTCOME_MODELS
    found = ((path.stat().st_mtime_ns, path) for path in folder.glob(f"*/{MANIFEST}"))
    wanted = entry.info.digest, catalog.predictor_fingerprint, set(models)
    for mtime_ns, path in sorted(found, reverse=True):
        with suppress(HydraError, OSError):
            if entry.info.digest.encode() in path.read_bytes():
                model = _loaded(path.parent, mtime_ns)
                if (model.evalset_digest, model.fingerprint, set(model.models)) == wanted:
                    return model
    return None


@cached(16)
def _loaded(folder: Path, mtime_ns: int) -> OutcomeModel:
    del mtime_ns
    return load_outcome_model(folder)


def cut_to(catalog: Catalog, models: Sequence[str]) -> Catalog:
    """The catalog with these models only."""
    return replace(catalog, models=tuple(m for m in catalog.models if m.id in models))


def ruled_sweep(
    entry: SetEntry,
    catalog: Catalog,
    rule: Rule,
    weights: tuple[float, ...],
    prices: Prices = Prices.TODAY,
) -> Sweep:
    """The set under either rule, for every setting of its knob.

    Args:
        weights: (K,) stored weights of the shortfall rule; of no effect under the value rule.
    """
    if rule is Rule.SHORTFALL:
        return cache.sweep(entry, catalog, weights, prices)
    by_profiles = catalog.success_source is SuccessSource.SUCCESS_PROFILES
    return value_sweep(
        entry, catalog, None if by_profiles else catalog_outcome_model(catalog), prices
    )


@cached(24, "Replaying by value")
def value_sweep(
    entry: SetEntry, catalog: Catalog, model: OutcomeModel | None, prices: Prices = Prices.TODAY
) -> Sweep:
    """The set under the value rule, for every V; queries that were learned on are cross-fitted.

    Without a model, the catalog's success profiles predict.
    """
    evalset, today = cache.evalset(entry), date.today()
    if model is None:
        return sweep_own_value(evalset, catalog, cross_fitted=True, today=today, prices=prices)
    return sweep_by_value(evalset, catalog, model, cross_fitted=True, today=today, prices=prices)


def replayed(entry: SetEntry, catalog: Catalog, knob: float | None = None) -> Replayed:
    """The eval set routed by a catalog's own policy, or by its rule at this tau or V."""
    sweep, policy = own_sweep(entry, catalog), catalog.policy
    if knob is not None:
        by_value = sweep.rule is Rule.VALUE
        policy = replace(policy, value_usd=knob) if by_value else replace(policy, tau=knob)
    return _replayed(replace(catalog, policy=policy), sweep)


def own_sweep(entry: SetEntry, catalog: Catalog) -> Sweep:
    """The eval set under a catalog's own rule and weights, for every setting of its knob."""
    policy = catalog.policy
    rule = Rule.SHORTFALL if policy.value_usd is None else policy.rule
    return ruled_sweep(entry, catalog, rule, policy.weights)


@cached(24)
def _replayed(catalog: Catalog, sweep: Sweep) -> Replayed:
    return replay_policy(catalog, sweep)
