"""What the Compare page remembers, its link, and the policies that can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.replay.imported_policies import policy_names
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.evaluation.study.baselines.run import BASELINES, RANDOM_MIX
from hydra_core.store.records import OperatingPoint
from hydra_core.types import Catalog
from hydra_core.ui import cache, selectors, state
from hydra_core.ui.cache import CatalogEntry, SetEntry
from hydra_core.views.comparison import Kind, Side

__all__ = ["Comparing", "get", "offered", "put", "sides", "swap", "write_link"]

_TUNED, _PINNED = "tuned", "pin"


@dataclass(frozen=True, slots=True)
class Comparing:
    """Both sides; empty means the default.

    Attributes:
        a, b: Ids of `Side`s.
        tau_a, tau_b: Other taus than the sides' own.
    """

    a: str = ""
    b: str = ""
    tau_a: float | None = None
    tau_b: float | None = None


def _from_link(params: Mapping[str, str]) -> Comparing:
    return Comparing(
        params.get("a", ""),
        params.get("b", ""),
        state.number(params.get("a_tau", "")),
        state.number(params.get("b_tau", "")),
    )


_COMPARING = state.Remembered("compare", _from_link)
get, put = _COMPARING.get, _COMPARING.put


def swap(a: Side, b: Side) -> None:
    """A becomes B and B becomes A."""
    now = get()
    _COMPARING.set(Comparing(b.id, a.id, now.tau_b, now.tau_a))


def write_link(entry: SetEntry, catalog: str, a: Side, b: Side) -> None:
    """Put the comparison into the address."""
    now = get()
    link = {"set": entry.key, "catalog": catalog, "a": a.id, "b": b.id}
    for name, tau in (("a_tau", now.tau_a), ("b_tau", now.tau_b)):
        if tau is not None:
            link[name] = repr(tau)
    if st.query_params.to_dict() != link:
        st.query_params.from_dict(link)


def offered(entry: SetEntry, catalog: Catalog, sweep: Sweep) -> dict[str, Side]:
    """Every policy that can stand on a side, by id: routers, constants, imported, bounds.

    Args:
        sweep: The page's own, whose pool the constants come from.
    """
    tuning = state.get()
    found: list[Side] = []
    key = tuning.catalog
    here = tuning.tau_for(catalog), tuning.weights_for(catalog)
    if here != (catalog.policy.tau, catalog.policy.weights):
        found.append(_router(_TUNED, f"As tuned on {key}", key, *here))
    if tuning.pin is not None and len(tuning.pin.weights) == len(catalog.dimensions):
        pin = tuning.pin
        found.append(_router(_PINNED, f"Pinned on {key}", key, pin.tau, pin.weights))
    for one in cache.catalogs():
        if one.catalog is not None and selectors.fits(entry, one):
            found += _of_catalog(one, one.catalog)
    found += [
        Side(f"always:{one.model}", f"Always {one.model}", Kind.ALWAYS, model=one.model)
        for one in sorted(sweep.singles, key=lambda single: single.mean_cost_usd)
    ]
    found += [
        Side(f"imported:{name}", f"Imported: {name}", Kind.IMPORTED, model=name)
        for name in policy_names(entry.info.path)
    ]
    found.append(Side("oracle", "Oracle, best in hindsight", Kind.ORACLE))
    found.append(Side("mix", "Random mixture at the other's cost", Kind.MIX))
    found += [
        Side(f"learned:{name}", f"Learned: {name}, at the other's cost", Kind.LEARNED, model=name)
        for name in BASELINES
        if name != RANDOM_MIX and sweep.evalset.texts is not None
    ]
    return {side.id: side for side in found}


def _router(name: str, label: str, catalog: str, tau: float, weights: tuple[float, ...]) -> Side:
    return Side(name, label, Kind.ROUTER, catalog, tau, weights)


def _of_catalog(entry: CatalogEntry, catalog: Catalog) -> list[Side]:
    """The catalog's own policy, then the points pinned in the store."""
    policy = catalog.policy
    label = f"{entry.key}, revision {entry.revision}" if entry.revision else entry.key
    own = _router(f"catalog:{entry.key}", label, entry.key, policy.tau, policy.weights)
    return [own] + [
        _router(
            f"point:{entry.key}/{point.name}",
            f"{entry.key}, pinned “{point.name}”",
            entry.key,
            point.tau,
            point.weights,
        )
        for point in _points(entry.key)
        if len(point.weights) == len(catalog.dimensions)
    ]


def _points(catalog: str) -> Sequence[OperatingPoint]:
    try:
        return cache.store().points.all(catalog)
    except HydraError:
        return ()


def sides(options: dict[str, Side], sweep: Sweep) -> tuple[Side, Side]:
    """The chosen sides with their taus; by default the costliest model against the router."""
    now, own = get(), f"catalog:{state.get().catalog}"
    router = next((one for one in (_TUNED, own) if one in options), next(iter(options)))
    a = options.get(now.a) or options[f"always:{sweep.baselines[0]}"]
    b = options.get(now.b) or options[router]
    return _at(a, now.tau_a), _at(b, now.tau_b)


def _at(side: Side, tau: float | None) -> Side:
    return side if tau is None or side.tau is None else replace(side, tau=tau)
