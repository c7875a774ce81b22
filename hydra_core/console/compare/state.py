"""What the Compare page remembers, its link, and the policies that can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog, IntArray, Policy, Rule
from hydra_core.console import cache, replays, selectors, state
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.compare.view import Kind, Side
from hydra_core.console.frame import read_address, write_address
from hydra_core.replay.baselines import BASELINES, RANDOM_MIX, Checker
from hydra_core.replay.imported_policies import policy_names
from hydra_core.replay.sweep import Sweep
from hydra_core.store.records import OperatingPoint

POLICIES = "compare.table"
#: The number of the page shown, and the id of the query picked on it.
PAGE, PICKED = "compare.at_page", "compare.picked"
#: The query that a link names, until another is picked.
LINKED = "compare.linked"
_BASE, _FOLLOWED, _LINKED_PAGE = "compare.link", "compare.followed", "compare.linked_page"
#: Parameter -> where the session keeps it. What is not on screen is not in the address.
_VIEWS = {
    "Who moved": {"colour": "compare.measure"},
    "Cost and quality": {},
    "Languages and groups": {"by": "compare.by"},
    "Queries": {
        "list": "compare.which", "language": "compare.language", "from": "compare.before",
        "to": "compare.after", "notes": "compare.noted",
    },
    "Significance": {},
}  # fmt: skip


def follow(options: Mapping[str, tuple[str, ...]]) -> None:
    """Take the view from the address a session was opened with, once, where `options` has it."""
    if st.session_state.get(_FOLLOWED):
        return
    st.session_state[_FOLLOWED] = True
    link = read_address()
    keys = {"view": "compare.view"} | {k: v for view in _VIEWS.values() for k, v in view.items()}
    for name, key in keys.items():
        # the choice itself, not its text: a widget knows its options by what they are
        known = [one for one in options.get(name, (link.get(name),)) if one == link.get(name)]
        if name in link and known:
            st.session_state.setdefault(key, known[0])
    if link.get("page", "").isdecimal():
        st.session_state[_LINKED_PAGE] = max(int(link["page"][:6]), 1)
    if link.get("query"):
        st.session_state[LINKED] = link["query"]
    if link.get("policies"):
        st.session_state.setdefault(POLICIES, link["policies"].split("|"))


def first_page(pages: int) -> int:
    """Where a list begins: at its first page, but for the one that the link opened."""
    return min(int(st.session_state.pop(_LINKED_PAGE, 1)), pages)


def query_shown(picked: int | None, ids: pd.Series[str], rows: IntArray) -> int | None:
    """The row picked in the list, else that of the query a link names; kept for the address."""
    if picked is not None:
        st.session_state.pop(LINKED, None)
    st.session_state[PICKED] = "" if picked is None else str(ids.iloc[picked])
    named = np.flatnonzero(ids.astype(str) == st.session_state.get(LINKED, ""))
    if picked is None and named.size and named[0] in rows:
        return int(named[0])
    return picked


def write() -> None:
    """Put what is on screen into the address."""
    now = st.session_state
    part = str(now.get("compare.view") or "")
    link = {"view": part}
    link |= {name: str(now.get(key) or "") for name, key in _VIEWS.get(part, {}).items()}
    if part == "Queries":
        link["page"] = str(now.get(PAGE, 1)) if now.get(PAGE, 1) > 1 else ""
        link["query"] = str(now.get(PICKED) or now.get(LINKED) or "")
    if part == "Significance":
        link["policies"] = "|".join(now.get(POLICIES) or ())
    write_address(now.get(_BASE, {}) | {name: text for name, text in link.items() if text})


_TUNED, _PINNED, _CASCADE = "tuned", "pin", "cascade"
#: What of the tuning's own link says the policy, and the one that is pinned.
_POLICIES = ("tau", "w", "rule", "v", "pin", "pin_w", "pin_rule")


@dataclass(frozen=True, slots=True)
class Comparing:
    """Ids of both sides, their knobs (tau or V) where not their own, and the cascade's checker."""

    a: str = ""
    b: str = ""
    knob_a: float | None = None
    knob_b: float | None = None
    checker: Checker = Checker()


def _from_link(params: Mapping[str, str]) -> Comparing:
    return Comparing(
        params.get("a", ""),
        params.get("b", ""),
        state.setting(params.get("a_at", "")),
        state.setting(params.get("b_at", "")),
        _checker(params.get("checker", "")),
    )


def _checker(text: str) -> Checker:
    """The checker of a link; what cannot be read is the default."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        return Checker()
    sound = all(0.0 <= one < np.inf for one in numbers)
    if len(numbers) != len(astuple(Checker())) or not sound or max(numbers[:2]) > 1:
        return Checker()
    return Checker(*numbers)


_COMPARING = state.Remembered("compare", _from_link)
get, put = _COMPARING.get, _COMPARING.put


def swap(a: Side, b: Side) -> None:
    """A becomes B and B becomes A."""
    now = get()
    _COMPARING.set(Comparing(b.id, a.id, now.knob_b, now.knob_a, now.checker))


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
    if _CASCADE in (a.id, b.id):
        link["checker"] = ",".join(map(repr, astuple(now.checker)))
    st.session_state[_BASE] = link


def offered(entry: SetEntry, catalog: Catalog, sweep: Sweep) -> dict[str, Side]:
    """Every policy that can stand on a side, by id: routers, constants, imported, bounds."""
    tuning = state.get()
    found: list[Side] = []
    key, here = tuning.catalog, tuning.policy_for(catalog)
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
    found += [
        Side("oracle", "Oracle, best in hindsight", Kind.ORACLE),
        Side(_CASCADE, "Checked cascade, simulated", Kind.CASCADE, checker=get().checker),
        Side("mix", "Random mixture at the other's cost", Kind.MIX),
    ]
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
    points: Sequence[OperatingPoint] = ()
    with suppress(HydraError):
        points = cache.store().points.all(entry.key)
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
        for point in points
        if len(point.weights) == len(catalog.dimensions)
        and (point.rule is Rule.SHORTFALL or catalog.success_source is not None)
    ]  # fmt: skip


def sweep_of(entry: SetEntry, side: Side, own: Sweep) -> Sweep:
    """The sweep a side is replayed on: the page's own, or that of its catalog, rule and weights."""
    if not side.catalog:
        return own
    catalog: Catalog | None = own.catalog
    if side.catalog != state.get().catalog:
        catalog = next(one.catalog for one in cache.catalogs() if one.key == side.catalog)
    assert catalog is not None
    return replays.ruled_sweep(entry, catalog, side.rule, side.weights)


def sides(options: dict[str, Side], sweep: Sweep) -> tuple[Side, Side]:
    """The chosen sides with their knobs; by default the costliest model against the router."""
    now, own = get(), f"catalog:{state.get().catalog}"
    router = next((one for one in (_TUNED, own) if one in options), next(iter(options)))
    a = options.get(now.a) or options[f"always:{sweep.baselines[0]}"]
    b = options.get(now.b) or options[router]
    return _at(a, now.knob_a), _at(b, now.knob_b)


def _at(side: Side, knob: float | None) -> Side:
    if knob is None or side.knob is None or (side.rule is Rule.VALUE and knob <= 0):
        return side
    return replace(side, knob=knob)
