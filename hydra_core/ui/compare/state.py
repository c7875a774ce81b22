"""What the Compare page remembers, its link, and the policies that can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hydra_core.errors import HydraError
from hydra_core.evaluation.replay.imported_policies import policy_names
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.evaluation.study.baselines.run import BASELINES, RANDOM_MIX
from hydra_core.store.records import OperatingPoint
from hydra_core.types import Catalog, Policy, Rule
from hydra_core.ui import cache, selectors, state
from hydra_core.ui.cache import CatalogEntry, SetEntry
from hydra_core.ui.compare.link import base
from hydra_core.views.comparison import Kind, Side

__all__ = ["Comparing", "get", "keep_link", "offered", "put", "sides", "swap"]

_TUNED, _PINNED = "tuned", "pin"
#: What of the tuning's own link says the policy, and the one that is pinned.
_POLICIES = ("tau", "w", "rule", "v", "pin", "pin_w", "pin_rule")


@dataclass(frozen=True, slots=True)
class Comparing:
    """Both sides; empty means the default.

    Attributes:
        a, b: Ids of `Side`s.
        knob_a, knob_b: Other settings (tau or V) than the sides' own.
    """

    a: str = ""
    b: str = ""
    knob_a: float | None = None
    knob_b: float | None = None


def _from_link(params: Mapping[str, str]) -> Comparing:
    return Comparing(
        params.get("a", ""),
        params.get("b", ""),
        state.setting(params.get("a_at", "")),
        state.setting(params.get("b_at", "")),
    )


_COMPARING = state.Remembered("compare", _from_link)
get, put = _COMPARING.get, _COMPARING.put


def swap(a: Side, b: Side) -> None:
    """A becomes B and B becomes A."""
    now = get()
    _COMPARING.set(Comparing(b.id, a.id, now.knob_b, now.knob_a))


def keep_link(entry: SetEntry, catalog: str, a: Side, b: Side) -> None:
    """Both sides as the address has them; a policy tuned or pinned here goes along in full."""
    now = get()
    link = {"set": entry.key, "catalog": catalog, "a": a.id, "b": b.id}
    if {_TUNED, _PINNED} & {a.id, b.id}:
        tuned = state.to_link(state.get())
        link |= {name: tuned[name] for name in _POLICIES if name in tuned}
    for name, knob in (("a_at", now.knob_a), ("b_at", now.knob_b)):
        if knob is not None:
            link[name] = repr(knob)
    base(link)


def offered(entry: SetEntry, catalog: Catalog, sweep: Sweep) -> dict[str, Side]:
    """Every policy that can stand on a side, by id: routers, constants, imported, bounds.

    Args:
        sweep: The page's own, whose pool the constants come from.
    """
    tuning = state.get()
    found: list[Side] = []
    key = tuning.catalog
    here = tuning.policy_for(catalog)
    if here != catalog.policy:
        found.append(_router(_TUNED, f"As tuned on {key}", key, here))
    pin = tuning.pin
    if pin is not None and len(pin.weights) == len(catalog.dimensions):
        label = f"Pinned on {key}"
        found.append(Side(_PINNED, label, Kind.ROUTER, key, pin.knob, pin.weights, rule=pin.rule))
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


def _router(name: str, label: str, catalog: str, policy: Policy) -> Side:
    by_value = policy.rule is Rule.VALUE
    knob = policy.value_usd if by_value else policy.tau
    return Side(name, label, Kind.ROUTER, catalog, knob, policy.weights, rule=policy.rule)


def _of_catalog(entry: CatalogEntry, catalog: Catalog) -> list[Side]:
    """The catalog's own policy, then the points pinned in the store."""
    policy = catalog.policy
    label = f"{entry.key}, revision {entry.revision}" if entry.revision else entry.key
    own = _router(f"catalog:{entry.key}", label, entry.key, policy)
    return [own] + [
        _router(
            f"point:{entry.key}/{point.name}",
            f"{entry.key}, pinned “{point.name}”",
            entry.key,
            replace(
                policy, rule=point.rule, tau=point.tau, weights=point.weights,
                value_usd=point.value_usd or policy.value_usd,
            ),
        )
        for point in _points(entry.key)
        if len(point.weights) == len(catalog.dimensions)
        and (point.rule is Rule.SHORTFALL or catalog.outcome_model is not None)
    ]  # fmt: skip


def _points(catalog: str) -> Sequence[OperatingPoint]:
    try:
        return cache.store().points.all(catalog)
    except HydraError:
        return ()


def sides(options: dict[str, Side], sweep: Sweep) -> tuple[Side, Side]:
    """The chosen sides with their knobs; by default the costliest model against the router."""
    now, own = get(), f"catalog:{state.get().catalog}"
    router = next((one for one in (_TUNED, own) if one in options), next(iter(options)))
    a = options.get(now.a) or options[f"always:{sweep.baselines[0]}"]
    b = options.get(now.b) or options[router]
    return _at(a, now.knob_a), _at(b, now.knob_b)


def _at(side: Side, knob: float | None) -> Side:
    usable = (
        knob is not None and side.knob is not None and (knob > 0 or side.rule is not Rule.VALUE)
    )
    return replace(side, knob=knob) if usable else side
