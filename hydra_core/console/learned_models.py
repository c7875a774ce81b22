"""Outcome models of this workspace, and eval sets replayed by the value rule."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import streamlit as st

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog, Rule, SuccessSource
from hydra_core.base.workspace import OUTCOME_MODELS
from hydra_core.console import cache, replays
from hydra_core.console.cache import ReplayKey, SetEntry
from hydra_core.console.demo import session
from hydra_core.outcome_model.find import catalog_outcome_model
from hydra_core.outcome_model.format import MANIFEST, load_outcome_model
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.replay.pricing import Prices
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import Sweep, sweep_by_value, sweep_catalog, sweep_own_value
from hydra_core.replay.what_if import Replayed, replay_policy


def learnable(entry: SetEntry, catalog: Catalog) -> tuple[str, ...]:
    """The catalog's models that the set has outcomes of, in the catalog's order."""
    return tuple(model.id for model in catalog.models if model.id in entry.info.models)


def folder_of(
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


def learned(folder: Path) -> OutcomeModel | None:
    """The outcome model in a folder, None where none was learned.

    Raises:
        OutcomeModelError: It is damaged.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return None
    return _loaded(folder, manifest.stat().st_mtime_ns)


def named(entry: SetEntry, catalog: Catalog, models: Sequence[str]) -> OutcomeModel | None:
    """The catalog's own outcome model where it was learned from this set and these models.

    Raises:
        HydraError: It is missing, damaged, or of another predictor bundle.
    """
    if catalog.outcome_model is None:
        return None
    model = catalog_outcome_model(catalog)
    same = model.evalset_digest == entry.info.digest and set(model.models) == set(models)
    return model if same else None


def of_set(entry: SetEntry, catalog: Catalog, models: Sequence[str]) -> OutcomeModel | None:
    """The newest outcome model of the workspace that was learned from this set and these models.

    The command line names its folders as it likes. One that cannot be read is left out.
    """
    folder = session.folder() / OUTCOME_MODELS
    found = sorted(
        ((path.stat().st_mtime_ns, path.parent) for path in folder.glob(f"*/{MANIFEST}")),
        reverse=True,
    )
    for mtime_ns, one in found:
        try:
            if entry.info.digest.encode() not in (one / MANIFEST).read_bytes():
                continue
            model = _loaded(one, mtime_ns)
        except (HydraError, OSError):
            continue
        if (
            model.evalset_digest == entry.info.digest
            and model.fingerprint == catalog.predictor_fingerprint
            and set(model.models) == set(models)
        ):
            return model
    return None


@st.cache_resource(max_entries=16, show_spinner=False)
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

    Raises:
        HydraError: They do not fit together; the message says what to do.
    """
    if rule is Rule.SHORTFALL:
        return cache.sweep(entry, catalog, weights, prices)
    if catalog.success_source is not SuccessSource.SUCCESS_PROFILES:
        return value_sweep(entry, catalog, catalog_outcome_model(catalog), prices)
    made_of = replace(cache.replay_key(entry, catalog, catalog.policy.weights), prices=prices)
    key = (made_of, _ids(catalog), catalog.policy, catalog.success_profiles)
    return _by_profiles(key, entry.info.path, catalog)


@st.cache_resource(max_entries=12, show_spinner="Replaying by success profiles")
def _by_profiles(
    key: tuple[ReplayKey, object, object, object], _path: Path, _catalog: Catalog
) -> Sweep:
    made_of = key[0]
    evalset = cache.evalset(_path, made_of.evalset)
    return sweep_own_value(
        evalset, _catalog, cross_fitted=True, today=made_of.day, prices=made_of.prices
    )


def replayed(entry: SetEntry, catalog: Catalog) -> Replayed:
    """The eval set routed by a catalog's own policy.

    Raises:
        HydraError: They do not fit together; the message says what to do.
    """
    policy = catalog.policy
    rule = Rule.SHORTFALL if policy.value_usd is None else policy.rule
    sweep = ruled_sweep(entry, catalog, rule, policy.weights)
    return _replayed(replays.sweep_key(entry, sweep), policy.knob, catalog, sweep)


@st.cache_resource(max_entries=24, show_spinner=False)
def _replayed(key: ReplayKey, knob: float, _catalog: Catalog, _sweep: Sweep) -> Replayed:
    del key, knob
    return replay_policy(_catalog, _sweep)


def value_sweep(
    entry: SetEntry, catalog: Catalog, model: OutcomeModel, prices: Prices = Prices.TODAY
) -> Sweep:
    """The set under the value rule, for every V; queries that were learned on are cross-fitted.

    Raises:
        HydraError: They do not fit together.
    """
    made_of = replace(cache.replay_key(entry, catalog, catalog.policy.weights), prices=prices)
    key = (made_of, _ids(catalog), catalog.policy, model.digest)
    return _value_sweep(key, entry.info.path, catalog, model)


@st.cache_resource(max_entries=12, show_spinner="Replaying by value")
def _value_sweep(
    key: tuple[ReplayKey, object, object, str], _path: Path, _catalog: Catalog, _model: OutcomeModel
) -> Sweep:
    made_of = key[0]
    return sweep_by_value(
        cache.evalset(_path, made_of.evalset), _catalog, _model, cross_fitted=True,
        today=made_of.day, prices=made_of.prices,
    )  # fmt: skip


def shortfall_sweep(entry: SetEntry, catalog: Catalog) -> Sweep:
    """The set under the shortfall rule, also of a catalog that `cut_to` has made.

    Raises:
        HydraError: They do not fit together.
    """
    key = (cache.replay_key(entry, catalog, catalog.policy.weights), _ids(catalog))
    return _shortfall_sweep(key, entry.info.path, entry.info.digest, catalog)


@st.cache_resource(max_entries=12, show_spinner="Replaying")
def _shortfall_sweep(
    key: tuple[object, ...], _path: Path, _digest: str, _catalog: Catalog
) -> Sweep:
    del key
    evalset = cache.evalset(_path, _digest)
    return sweep_catalog(evalset, _catalog, catalog_scores(evalset, _catalog), today=date.today())


def _ids(catalog: Catalog) -> tuple[str, ...]:
    return tuple(model.id for model in catalog.models)
