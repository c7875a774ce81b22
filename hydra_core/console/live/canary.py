"""The part Canary: begin one, see how it does, change, stop, resume and end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import streamlit as st

from hydra_core.base.errors import AccessError, HydraError
from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import signed, usd
from hydra_core.base.types import Catalog
from hydra_core.catalog import load_catalog
from hydra_core.console import cache, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.demo import session
from hydra_core.console.frame import Head
from hydra_core.console.live import cache as cache_live
from hydra_core.console.live.traffic import choose_log, decided_last, teach
from hydra_core.console.widgets import literal
from hydra_core.decision_log.canaries_and_alerts import (
    CanaryOrder,
    CanaryRecord,
    canaries,
    ordered_canary,
    refused_order,
)
from hydra_core.live.canary import LEAST_UNITS, CanaryChanges, CanaryReport, Compared
from hydra_core.store.roles import Action

_DAY_S = 86_400
_SOON_S, _EVERY_S = 1.0, 5.0
RULES = (
    f"From {LEAST_UNITS} conversations in each arm on, it is stopped when more first attempts "
    "fail, more requests are rejected or feedback is lower, or when a request costs or takes more "
    "than the limit. The intervals are valid at any time and share the 5 %."
)


def show(head: Head) -> None:
    """Draw the part."""
    with head.right:
        chosen = choose_log(timed=False)
    if chosen is None:
        teach()
        return
    folder = chosen[0]
    try:
        waits = _state(folder)[0] is not None
    except (HydraError, OSError) as error:
        widgets.problem(error)
        return
    st.fragment(_body, run_every=_SOON_S if waits else _EVERY_S)(folder, waits)


def _body(folder: Path, waited: bool) -> None:
    try:
        order, record = _state(folder)
        if (order is not None) is not waited:
            st.rerun()
        if order is not None:
            _waiting(folder, order)
        elif record is not None:
            _running(folder, record)
        else:
            _form(folder)
    except (HydraError, OSError) as error:
        widgets.problem(error)


def _state(folder: Path) -> tuple[CanaryOrder | None, CanaryRecord | None]:
    """The order that no service has followed yet, else the canary that the services run.

    A service may have begun one at its start, which nothing ordered here.
    """
    order, records = ordered_canary(folder), canaries(folder)
    if order is None:
        return None, next(iter(records), None)
    if not order.catalog:
        return None, None
    ordered = _ordered(order)
    digest = ordered.digest if ordered is not None else ""
    record = next((one for one in records if one.digest == digest), None)
    return (order, None) if record is None else (None, record)


def _ordered(order: CanaryOrder) -> Catalog | None:
    """The catalog that an order names, as it is now; None where this console cannot read it."""
    for entry in cache.catalogs():
        if source_of(entry) == order.catalog:
            return entry.catalog
    try:
        return load_catalog(Path(order.catalog))
    except HydraError:
        return None


def _form(folder: Path) -> None:
    """Which catalog gets a share, and the button that begins it."""
    key = cache_live.key_of(folder, _DAY_S, datetime.now(UTC))
    found = cache_live.traffic(key)
    entry = decided_last(found)[1] if len(found) else None
    main = entry.catalog if entry is not None else None
    open_to = candidates(cache.catalogs(), main)
    if not open_to:
        st.info("There is no other catalog with the predictor of the one that serves. Publish a "
                "changed copy under another name, then begin a canary with it.")  # fmt: skip
        return
    with st.container(border=True):
        st.markdown("**Send a share of the conversations to a second catalog.** "
                    "It stops by itself when it is worse.")  # fmt: skip
        left, middle, right = st.columns([4, 3, 3])
        name = left.selectbox("Second catalog", list(open_to), key="canary.catalog")
        catalog = open_to[name].catalog
        assert catalog is not None
        order = _settings(middle, right, source_of(open_to[name]), CanaryOrder(""), "canary")
        _button(
            folder, "Begin the canary", "play_arrow",
            lambda changes: changes.begin(order, catalog.digest), primary=True, key="begin",
        )  # fmt: skip
        st.caption(literal(follow_text(catalog, main)))
    st.caption(f":material/info: {RULES}")


def _settings(
    left: st.delta_generator.DeltaGenerator,
    right: st.delta_generator.DeltaGenerator,
    source: str,
    before: CanaryOrder,
    key: str,
) -> CanaryOrder:
    now = 100.0 * before.share
    share = left.number_input(
        "Share of the conversations, %", min(0.1, now), max(99.0, now), now, 1.0,
        key=f"{key}.share",
        format="%g", help="A conversation is on the canary always or never.",
    )  # fmt: skip
    limit = right.number_input(
        "Stop at so many times the cost or time", 0.0, max(1000.0, before.limit), before.limit, 0.5,
        key=f"{key}.limit", format="%g", help="From 1 on; 0 never stops it for cost or time.",
    )  # fmt: skip
    return CanaryOrder(source, float(share) / 100.0, float(limit))


def _waiting(folder: Path, order: CanaryOrder) -> None:
    why = refused_order(folder, order)
    name = literal(Path(order.catalog.removeprefix("store:")).stem)
    if why:
        st.error(
            f"The service does not follow the canary {name}: {literal(why)}. Traffic goes on as "
            "before. Correct it, or take the order back.",
            icon=":material/error:",
        )
    else:
        st.info(f"The canary {name} is ordered, and no service has begun it yet. One that writes "
                "this log begins it within a second.", icon=":material/hourglass_top:")  # fmt: skip
    _button(folder, "Take it back", "undo", lambda changes: changes.end())


def _running(folder: Path, record: CanaryRecord) -> None:
    since = int(datetime.fromisoformat(record.began).timestamp())
    key = cache_live.key_of(folder, 0, datetime.now(UTC))
    found = cache_live.canary(cache_live.LogKey(folder, key.stamp, since), record.digest,
                              record.limit)  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{literal(record.catalog)}** on {100 * record.share:g} % of the conversations "
            f"since {literal(record.began[:16].replace('T', ' '))} UTC", width="stretch",
        )  # fmt: skip
        if record.stopped:
            _button(folder, "Resume the canary", "play_arrow", lambda changes: changes.resume())
            _button(folder, "End the canary", "close", lambda changes: changes.end())
        else:
            _change(folder, record)
            _button(folder, "Stop the canary", "stop",
                    lambda changes: changes.stop("stopped by hand"), primary=True)  # fmt: skip
    if record.stopped:
        at = record.at[:16].replace("T", " ")
        widgets.toned(
            "error", f"Stopped at {at} UTC: {record.stopped}. All traffic is on the main revision."
        )
    else:
        widgets.toned(*canary_text(found))
    column = st.column_config
    tables.kept(
        canary_rows(found),
        "live.canary",
        columns={
            "metric": column.TextColumn("By conversation", width=190),
            "main_units": column.NumberColumn("Main, n", format="localized", width=80),
            "canary_units": column.NumberColumn("Canary, n", format="localized", width=80),
            "main": column.TextColumn("Main", width=90),
            "canary": column.TextColumn("Canary", width=90),
            "difference": column.TextColumn("Canary − main, at any time", width=230),
        },
    )
    st.caption(f":material/info: {RULES}")


def _change(folder: Path, record: CanaryRecord) -> None:
    """Another share or limit for the canary that runs."""
    order = ordered_canary(folder)
    if order is None:  # begun by the command line of the service, whose catalog is not known here
        return
    now = f"canary.change.{record.share:g}.{record.limit:g}"  # another one closes it
    with st.popover("Change", icon=":material/tune:", key=now):
        before = CanaryOrder(order.catalog, record.share, record.limit)
        fresh = _settings(st.container(), st.container(), order.catalog, before, "canary.new")
        _button(folder, "Apply", "check", lambda changes: changes.begin(fresh, record.digest))


def _button(
    folder: Path, label: str, icon: str, act: Callable[[CanaryChanges], None], *,
    primary: bool = False, key: str = "",
) -> None:  # fmt: skip
    why_not = identity.why_not(Action.CANARY)
    if session.demo() and not folder.resolve().is_relative_to(session.folder().resolve()):
        why_not = _FOREIGN
    if not st.button(
        label, icon=f":material/{icon}:", key=f"canary.{key or icon}", disabled=bool(why_not),
        type="primary" if primary else "secondary", help=why_not,
    ):  # fmt: skip
        return
    if why_not == _FOREIGN:
        raise AccessError(_FOREIGN)
    act(CanaryChanges(folder, identity.actor(), cache.store()))
    st.rerun()


_FOREIGN = "A demo changes nothing outside its copy: end it, then begin the canary."


def source_of(entry: CatalogEntry) -> str:
    """What a service follows: the newest published revision, else the file."""
    return f"store:{entry.key}" if entry.revision else str(entry.path.resolve())


def candidates(entries: Sequence[CatalogEntry], main: Catalog | None) -> dict[str, CatalogEntry]:
    """Catalogs that a service could run beside the one in use, the operator's and the most similar
    first."""
    ids = set() if main is None else {model.id for model in main.models}

    def apart(entry: CatalogEntry) -> tuple[bool, int]:
        models = set() if entry.catalog is None else {model.id for model in entry.catalog.models}
        return not entry.own, len(models ^ ids)

    fits = [
        entry
        for entry in entries
        if entry.catalog is not None
        and (main is None or entry.catalog.digest != main.digest)
        and (main is None or entry.catalog.predictor_fingerprint == main.predictor_fingerprint)
    ]
    return {entry.key: entry for entry in sorted(fits, key=apart)}


def follow_text(catalog: Catalog, main: Catalog | None) -> str:
    """What begins, and what the services need for it."""
    begun = "The services that write this log begin it within a second, without a restart."
    if main is None:
        return begun
    added = sorted({model.id for model in catalog.models} - {model.id for model in main.models})
    if not added:
        return begun
    return f"{begun} Their upstreams file must name {', '.join(added)}, which only it has."


def canary_text(found: CanaryReport) -> tuple[str, str]:
    """(tone, sentence) on a canary that still runs."""
    if found.worse:
        return "error", f"The canary is worse: {found.worse}. It stops at the next check."
    units = found.failed.units
    if found.failed.effect is None and found.quality.effect is None:
        return "info", (
            f"Too early: {units[1]:,} conversations on the canary and {units[0]:,} on the main "
            f"revision. Each needs {LEAST_UNITS}."
        )
    return "success", "No measurable loss against the main revision."


def canary_rows(found: CanaryReport) -> list[tuple[object, ...]]:
    """One row a metric: conversations and means of both arms, and the difference."""
    spelled: dict[str, Callable[[float], str]] = {
        "%": lambda value: f"{100 * value:.1f} %",
        "ms": lambda value: f"{value:,.0f} ms",
        "$": usd,
    }
    return [
        (name, *one.units, *("–" if np.isnan(mean) else spelled[unit](mean) for mean in one.means),
         _difference(one, unit))
        for name, one, unit in (
            ("First attempts that failed", found.failed, "%"),
            ("Rejected requests", found.rejected, "%"),
            ("Mean feedback", found.quality, "%"),
            ("Time of a request", found.latency_ms, "ms"),
            ("Cost of a request", found.cost_usd, "$"),
        )
    ]  # fmt: skip


def _difference(one: Compared, unit: str) -> str:
    """Of the means as they are, with the interval of the test."""
    if one.effect is None:
        return f"needs {LEAST_UNITS} in each arm"
    (main, canary), effect = one.means, one.effect
    if unit == "%":
        ends = Interval(canary - main, float(effect.lo), float(effect.hi))
        return ends.scaled(100.0).text("pp")
    if not main:
        return "no % of 0"
    change = canary / main - 1.0
    if not np.isfinite([effect.relative_lo, effect.relative_hi]).all():
        return f"{signed(100.0 * change)} % (no interval: a mean is 0)"
    ends = Interval(change, float(effect.relative_lo), float(effect.relative_hi))
    return ends.scaled(100.0).text("%")
