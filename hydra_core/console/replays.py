"""Cached replays of the console, keyed by digests and frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import streamlit as st

from hydra_core.base.errors import MismatchError
from hydra_core.base.types import Catalog, FloatArray
from hydra_core.choosing.initial_catalog import InitialCatalog, initial_catalog
from hydra_core.choosing.new_catalog import EnteredPrices
from hydra_core.choosing.policy_search import Space, search_policy
from hydra_core.console.cache import SetEntry, bundle, cached, evalset, sweep
from hydra_core.console.compare.view import Kind, Paired, Side, pair, side_run
from hydra_core.console.demo import session
from hydra_core.console.eval_sets.figures import SpreadView, UpsetView
from hydra_core.console.eval_sets.view import spread_view, upset_view
from hydra_core.console.tasks import Tasks
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.scores import load_scores
from hydra_core.replay.baselines import BaselineRun
from hydra_core.replay.evaluation import Evaluation, evaluate
from hydra_core.replay.imported_policies import (
    ImportedPolicies,
    imported_policies,
    policy_names,
    policy_path,
)
from hydra_core.replay.operating_point import Aim, AimKind, CrossFit, cross_fit_aim
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.routability import Difficulty, PerfectRouter, difficulty, perfect_router
from hydra_core.replay.sensitivity import Effect
from hydra_core.replay.sensitivity import sensitivity as find_sensitivity
from hydra_core.replay.sweep import Sweep
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


@cached(32, "Comparing with the best fixed mix")
def evaluated(sweep: Sweep, knob: float, baseline: str | None = None) -> Evaluation:
    """The router at one setting of its knob; see `evaluate`."""
    return evaluate(sweep, knob, baseline)


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


@cached(16, "Counting who solves what")
def upset(evalset: EvalSet) -> tuple[UpsetView, int, int] | None:
    """The upset plot of an eval set; see `upset_view`."""
    return upset_view(evalset)


@cached(16)
def spread(evalset: EvalSet) -> SpreadView | None:
    """The cost quantiles of an eval set."""
    return spread_view(evalset)


@cached(16)
def difficulties(evalset: EvalSet, column: str) -> tuple[Difficulty, ...]:
    """How hard each language or group is."""
    return difficulty(evalset, column)


def new_catalog(entry: SetEntry, entered: EnteredPrices, cut_to_hull: bool) -> InitialCatalog:
    """A catalog that fits an eval set scored by the shipped predictor, not yet published.

    Raises:
        HydraError: It cannot be made; the message says what to do.
    """
    return _new_catalog(entry, bundle().fingerprint, date.today(), entered, cut_to_hull)


@cached(8, "Making the catalog")
def _new_catalog(
    entry: SetEntry, fingerprint: str, today: date, entered: EnteredPrices, cut_to_hull: bool
) -> InitialCatalog:
    loaded = evalset(entry)
    scores = load_scores(loaded, fingerprint)
    if scores is None:
        raise MismatchError(f"eval set '{loaded.name}' is not scored yet; score it first")
    return initial_catalog(
        loaded,
        scores,
        dict(entered.prices),
        name=loaded.name,
        predictor=bundle().name,
        fingerprint=fingerprint,
        dimensions=bundle().dimensions,
        models=entered.models,
        cut_to_hull=cut_to_hull,
        today=today,
    )


@cached(8)
def requirements(entry: SetEntry, catalog: Catalog) -> FloatArray:
    """(n, K) requirements of an eval set by a catalog's predictor.

    Raises:
        HydraError: They do not fit together; the message says what to do.
    """
    return catalog_scores(evalset(entry), catalog)


@cached(16, "Nudging every number of the evidence")
def sensitivity(entry: SetEntry, catalog: Catalog) -> tuple[Effect, ...]:
    """What nudging each number of the evidence does on an eval set.

    Raises:
        HydraError: They do not fit together.
    """
    return find_sensitivity(sweep(entry, catalog, catalog.policy.weights).data, catalog)
