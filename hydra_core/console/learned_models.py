"""Outcome models of this workspace, and eval sets replayed by the value rule."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog, Rule, SuccessSource
from hydra_core.base.workspace import OUTCOME_MODELS
from hydra_core.console import cache
from hydra_core.console.cache import SetEntry, cached
from hydra_core.console.demo import session
from hydra_core.outcome_model.format import MANIFEST, catalog_outcome_model, load_outcome_model
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.replay.compare import Replayed, replay_policy
from hydra_core.replay.pricing import Prices
from hydra_core.replay.sweep import Sweep, sweep_by_value, sweep_own_value


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

    Raises:
        HydraError: They do not fit together; the message says what to do.
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

    Args:
        model: What predicts; None for the catalog's success profiles.

    Raises:
        HydraError: They do not fit together.
    """
    evalset, today = cache.evalset(entry), date.today()
    if model is None:
        return sweep_own_value(evalset, catalog, cross_fitted=True, today=today, prices=prices)
    return sweep_by_value(evalset, catalog, model, cross_fitted=True, today=today, prices=prices)


def replayed(entry: SetEntry, catalog: Catalog, knob: float | None = None) -> Replayed:
    """The eval set routed by a catalog's own policy.

    Args:
        knob: tau or V of its rule, instead of its own.

    Raises:
        HydraError: They do not fit together; the message says what to do.
    """
    sweep, policy = own_sweep(entry, catalog), catalog.policy
    if knob is not None:
        by_value = sweep.rule is Rule.VALUE
        policy = replace(policy, value_usd=knob) if by_value else replace(policy, tau=knob)
    return _replayed(replace(catalog, policy=policy), sweep)


def own_sweep(entry: SetEntry, catalog: Catalog) -> Sweep:
    """The eval set under a catalog's own rule and weights, for every setting of its knob.

    Raises:
        HydraError: They do not fit together; the message says what to do.
    """
    policy = catalog.policy
    rule = Rule.SHORTFALL if policy.value_usd is None else policy.rule
    return ruled_sweep(entry, catalog, rule, policy.weights)


@cached(24)
def _replayed(catalog: Catalog, sweep: Sweep) -> Replayed:
    return replay_policy(catalog, sweep)
