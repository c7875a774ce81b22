"""Cached replays of the console, keyed by digests and frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import streamlit as st

from hydra_core.base.errors import MismatchError
from hydra_core.base.types import Catalog, FloatArray
from hydra_core.choosing.aims import Aim, AimKind, cross_fit_aim
from hydra_core.choosing.initial_catalog import InitialCatalog, initial_catalog
from hydra_core.choosing.new_catalog import EnteredPrices
from hydra_core.choosing.policy_search import search_policy
from hydra_core.choosing.space import Space
from hydra_core.console.cache import ReplayKey, SetEntry, bundle, evalset, replay_key, sweep
from hydra_core.console.compare.view import Kind, Paired, Side, pair, side_run
from hydra_core.console.demo import session
from hydra_core.console.eval_sets.figures import SpreadView, UpsetView
from hydra_core.console.eval_sets.view_routing_help import spread_view, upset_view
from hydra_core.console.tasks import Tasks
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.score_files import load_scores
from hydra_core.replay.baselines import BaselineRun
from hydra_core.replay.contents import Difficulty, difficulty
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.imported_policies import (
    ImportedPolicies,
    imported_policies,
    policy_names,
    policy_path,
)
from hydra_core.replay.operating_point import CrossFit
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.routability import PerfectRouter, perfect_router
from hydra_core.replay.sensitivity import Effect
from hydra_core.replay.sensitivity import sensitivity as find_sensitivity
from hydra_core.replay.sweep import Sweep
from hydra_core.replay.verdict import Verdict

PolicyStamps = tuple[tuple[str, int], ...]

_CHECK_TRIALS = 150
#: Outcomes from which on the band takes over a second.
_SLOW_BAND = 100_000


def sweep_key(entry: SetEntry, sweep: Sweep) -> ReplayKey:
    """What a sweep was made of."""
    own = replay_key(entry, sweep.catalog, sweep.weights)
    return replace(own, prices=sweep.data.prices, predicted_by=sweep.predicted_by)


def paired(
    entry: SetEntry,
    a: tuple[Side, Sweep],
    b: tuple[Side, Sweep],
    own: Sweep,
    learned: Mapping[str, BaselineRun],
) -> Paired:
    """Both sides replayed and compared.

    Args:
        own: The sweep of the page, which clusters and costs are taken from.
        learned: The learned routers among the sides, by name.

    Raises:
        HydraError: An imported policy does not fit.
        ValueError: They have no query in common.
    """
    sweeps = (a[1], b[1], own)
    keys = tuple(sweep_key(entry, sweep) for sweep in sweeps)
    return _paired((a[0], b[0]), keys, _policy_stamps(entry), sweeps, learned)


@st.cache_resource(max_entries=12, show_spinner="Comparing")
def _paired(
    sides: tuple[Side, Side],
    keys: tuple[ReplayKey, ...],
    policies: PolicyStamps,
    _sweeps: tuple[Sweep, Sweep, Sweep],
    _learned: Mapping[str, BaselineRun],
) -> Paired:
    del keys, policies
    (a, b), (of_a, of_b, own) = sides, _sweeps
    if a.kind in (Kind.MIX, Kind.LEARNED):
        run_b = side_run(b, of_b, None, _learned)
        return pair(side_run(a, of_a, float(run_b.cost_usd.mean()), _learned), run_b, own)
    run_a = side_run(a, of_a, None, _learned)
    return pair(run_a, side_run(b, of_b, float(run_a.cost_usd.mean()), _learned), own)


def imported(entry: SetEntry, sweep: Sweep, baseline: str) -> ImportedPolicies:
    """The policies kept beside an eval set, replayed on a sweep's pool."""
    return _imported(sweep_key(entry, sweep), _policy_stamps(entry), baseline, sweep)


@st.cache_resource(max_entries=24, show_spinner=False)
def _imported(
    key: ReplayKey, policies: PolicyStamps, baseline: str, _sweep: Sweep
) -> ImportedPolicies:
    del key, policies
    return imported_policies(_sweep.evalset, _sweep.data, baseline)


def _policy_stamps(entry: SetEntry) -> PolicyStamps:
    """Names of the set's imported policies and when each was written."""
    path = entry.info.path
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


def cross_fitted_check(entry: SetEntry, evaluation: Evaluation) -> Verdict:
    """Weights and tau chosen on one half for the QR of an evaluation, measured on the other.

    Raises:
        InfeasibleError: No weighting reaches that QR.
        ValueError: Too few independent queries to halve.
    """
    sweep = evaluation.sweep
    own = replace(sweep_key(entry, sweep), weights=sweep.catalog.policy.weights)
    return _cross_fitted_check(own, round(evaluation.router.qr.value, 4), sweep)


@st.cache_resource(max_entries=16, show_spinner=False)
def _cross_fitted_check(key: ReplayKey, qr: float, _sweep: Sweep) -> Verdict:
    del key
    aim = Aim(AimKind.CHEAPEST_WITH_QR, qr)
    with st.spinner("Choosing on one half, measuring on the other", show_time=True):
        return search_policy(
            _sweep.data, Space(_sweep.catalog.bands), aim, trials=_CHECK_TRIALS
        ).verdict


def held_out(entry: SetEntry, sweep: Sweep, aim: Aim) -> CrossFit:
    """What an aim comes to on queries its setting was not chosen on."""
    return _held_out(sweep_key(entry, sweep), aim, sweep)


@st.cache_resource(max_entries=24, show_spinner="Choosing on one half, measuring on the other")
def _held_out(key: ReplayKey, aim: Aim, _sweep: Sweep) -> CrossFit:
    del key
    return cross_fit_aim(_sweep.data, aim, _sweep.rule)


def tasks() -> Tasks:
    """The long computations of this workspace, shared by all who look at it."""
    demo = session.demo()
    return _tasks(session.folder()) if demo is None else demo.tasks


@st.cache_resource(max_entries=4, show_spinner=False)
def _tasks(folder: Path) -> Tasks:
    del folder
    return Tasks()


def perfect(entry: SetEntry, sweep: Sweep) -> PerfectRouter:
    """What a perfect router would win."""
    return _perfect(sweep_key(entry, sweep), sweep)


@st.cache_resource(max_entries=24, show_spinner=False)
def _perfect(key: ReplayKey, _sweep: Sweep) -> PerfectRouter:
    del key
    return perfect_router(_sweep.data)


@st.cache_resource(max_entries=16, show_spinner="Counting who solves what")
def upset(digest: str, _evalset: EvalSet) -> tuple[UpsetView, int, int] | None:
    """The upset plot of an eval set; see `exploring.upset_view`."""
    del digest
    return upset_view(_evalset)


@st.cache_resource(max_entries=16, show_spinner=False)
def spread(digest: str, _evalset: EvalSet) -> SpreadView | None:
    """The cost quantiles of an eval set."""
    del digest
    return spread_view(_evalset)


@st.cache_resource(max_entries=16, show_spinner=False)
def difficulties(digest: str, column: str, _evalset: EvalSet) -> tuple[Difficulty, ...]:
    """How hard each language or group is."""
    del digest
    return difficulty(_evalset, column)


def new_catalog(entry: SetEntry, entered: EnteredPrices, cut_to_hull: bool) -> InitialCatalog:
    """A catalog that fits an eval set scored by the shipped predictor, not yet published.

    Raises:
        HydraError: It cannot be made; the message says what to do.
    """
    key = (entry.info.digest, bundle().fingerprint, date.today())
    return _new_catalog(key, entered, cut_to_hull, entry)


@st.cache_resource(max_entries=8, show_spinner="Making the catalog")
def _new_catalog(
    key: tuple[str, str, date], entered: EnteredPrices, cut_to_hull: bool, _entry: SetEntry
) -> InitialCatalog:
    digest, fingerprint, today = key
    loaded = evalset(_entry.info.path, digest)
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


def requirements(entry: SetEntry, catalog: Catalog) -> FloatArray:
    """(n, K) requirements of an eval set by a catalog's predictor.

    Raises:
        HydraError: They do not fit together; the message says what to do.
    """
    return _requirements(replay_key(entry, catalog, ()), entry.info.path, catalog)


@st.cache_resource(max_entries=8, show_spinner=False)
def _requirements(key: ReplayKey, _path: Path, _catalog: Catalog) -> FloatArray:
    return catalog_scores(evalset(_path, key.evalset), _catalog)


def sensitivity(entry: SetEntry, catalog: Catalog) -> tuple[Effect, ...]:
    """What nudging each number of the evidence does on an eval set.

    Raises:
        HydraError: They do not fit together.
    """
    return _sensitivity((entry.info.digest, catalog.digest, date.today()), entry, catalog)


@st.cache_resource(max_entries=16, show_spinner="Nudging every number of the evidence")
def _sensitivity(
    key: tuple[str, str, date], _entry: SetEntry, _catalog: Catalog
) -> tuple[Effect, ...]:
    del key
    return find_sensitivity(sweep(_entry, _catalog, _catalog.policy.weights).data, _catalog)
