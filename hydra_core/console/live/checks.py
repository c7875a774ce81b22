"""Live traffic compared with a second catalog and the eval set."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import counted, signed, titled
from hydra_core.base.types import Catalog
from hydra_core.console import cache, tables, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.figures.shares import traffic_figure
from hydra_core.console.figures.theme import apart
from hydra_core.console.live import cache as cache_live
from hydra_core.console.live import view_traffic as views
from hydra_core.console.live.traffic import LogView, in_cost_order
from hydra_core.console.widgets import literal
from hydra_core.decision_log.canaries_and_alerts import read_alerts
from hydra_core.live.drift import Drift, band_shares, promise_status


def shadowing(look: LogView) -> None:
    """Replay the same traffic under a second catalog."""
    others = _others(look.catalog)
    key = st.selectbox("Second catalog", list(others), key="live.shadow", width=320)
    if key is None:
        st.info("Publish a second catalog to see how it would route this traffic.")
        return
    other = others[key]
    found = cache_live.shadowed(look.key, other)
    change = "–" if found.cost is None else found.cost.change.scaled(100.0).text("%")
    then = found.billed
    billed = "" if then is None else f"{signed(100 * then.change.value)} % against the bill"
    agreement = found.agreement.scaled(100.0)
    left, right = st.columns([4.6, 5.4], gap="small")
    widgets.metric(
        left, "Same model chosen", f"{agreement.value:.1f} %",
        f"{agreement.lo:.1f} – {agreement.hi:.1f} %",
        f"On {counted(len(found.models), 'decision')}. Below: 95 % interval.",
    )  # fmt: skip
    widgets.metric(
        left, "Cost change", change, billed,
        "The same tokens at the second catalog's prices; – where it has no price for the "
        "served models. Above 0 it costs more. Below: against what was billed then.",
    )  # fmt: skip
    with right.container(border=True):
        widgets.figure(
            traffic_figure(
                *views.shadow_shares(found, in_cost_order(other)), ("live", key), widgets.colors()
            ),
            "live.mix",
            alt="Share of every model, live and under the second catalog",
        )
    _worth(look, other, key)
    parting = views.differences(found)
    if parting:
        column = st.column_config
        tables.kept(
            parting, "live.parting", height="content" if len(parting) <= 8 else 320,
            columns={
                "live": column.TextColumn("Live", width=220),
                "shadow": column.TextColumn("Second catalog", width=220),
                "decisions": column.NumberColumn("Decisions", format="localized"),
                "share": column.NumberColumn("Share", format="%.1f %%"),
            },
        )  # fmt: skip
    left_out = "; ".join(f"{reason}: {count:,}" for reason, count in found.left_out.items())
    missing = f"Not replayed, {left_out}. " if left_out else ""
    st.caption(
        f":material/info: {literal(missing)}This has no effect on traffic. Health, budgets and "
        "kept conversations are not replayed."
    )


def _others(catalog: Catalog) -> dict[str, Catalog]:
    """Return the console's other catalogs, the most similar first."""
    found = {
        entry.key: entry.catalog
        for entry in cache.catalogs()
        if entry.catalog is not None and entry.catalog.digest != catalog.digest
    }
    mine = {model.id for model in catalog.models}

    def apart(key: str) -> tuple[bool, int]:
        other = found[key]
        same = other.predictor_fingerprint == catalog.predictor_fingerprint
        return not same, len({model.id for model in other.models} ^ mine)

    return {key: found[key] for key in sorted(found, key=apart)}


def _worth(look: LogView, other: Catalog, key: str) -> None:
    """The second catalog's quality, only where the log can say."""
    found = cache_live.worth(look.key, other)
    if isinstance(found, str):
        st.info(literal(f"Its quality cannot be estimated: {found}."), icon=":material/block:")
        return
    widgets.intervals(
        views.value_view(found, key),
        "live.worth",
        "Estimated quality of the second catalog with 95 % intervals",
    )
    st.caption(
        f":material/info: {found.value.n:,} rated decisions with known probabilities; effective "
        f"sample size for this catalog: {found.value.effective:,.0f}."
    )
    if found.caution:
        st.info(literal(found.caution), icon=":material/unfold_more:")


def promised(look: LogView) -> None:
    """Say whether the catalog's promise still covers this traffic; nothing where it has none."""
    catalog = look.catalog
    if catalog.policy.promise is None:
        return
    status = promise_status(catalog, look.traffic, _changed(look))
    assert status is not None
    if status.ended:
        title = "The promise no longer covers this traffic"
        widgets.toned("warning", status.sentence, title, "gpp_maybe")
    else:
        st.caption(f":material/verified: {literal('Promised: ' + status.sentence)}")


def _changed(look: LogView) -> tuple[str, ...]:
    """The dimensions whose requirements have changed since the promise was calibrated."""
    made = look.catalog.policy.promise
    for entry in _scored(look.catalog):
        if made is not None and entry.info.name == made.evalset:
            with suppress(HydraError):  # nothing was scored: the view Drift says so
                found = cache_live.drifted(look.key, look.catalog, entry)
                return tuple(one.dimension for one in found if one.verdict == "changed")
    return ()


def alerted(look: LogView) -> None:
    """Show what the webhook was told by the services of this log, newest first."""
    found = read_alerts(Path(look.key.folder))
    if not found:
        st.info(
            "No alerts of this log. `serve` sends them when HYDRA_ALERT_WEBHOOK holds the address "
            "of a webhook: a canary that is stopped, a promise that is no longer covered, drift, "
            "budgets, answers without counted tokens, models that do not answer.",
            icon=":material/notifications:",
        )
        return
    column = st.column_config
    tables.kept(
        [(one.at, one.text) for one in found],
        "live.alerts.table",
        columns={
            "at": column.DatetimeColumn("When (UTC)", width=150, format="YYYY-MM-DD HH:mm"),
            "text": column.TextColumn("What"),
        },
    )
    st.caption(f":material/notifications: {counted(len(found), 'alert')} of the last 90 days.")


def drifting(look: LogView) -> None:
    """Compare requirements with the eval set and the score bands."""
    catalog, entry = look.catalog, _evalset(look.catalog)
    scored = cache_live.scored_by(look.traffic, catalog)
    _bursts(look, catalog)
    found: tuple[Drift, ...] = ()
    if entry is not None:
        found = cache_live.drifted(look.key, catalog, entry)
        widgets.toned(*views.drift_text(found))
        widgets.intervals(
            views.drift_view(found),
            "live.drift",
            "Population stability index of every dimension with its 95 % interval",
        )
    column = st.column_config
    tables.kept(
        views.drift_rows(found, band_shares(scored, catalog.bands, catalog.dimensions)),
        "live.drift.table",
        columns={
            "dimension": column.TextColumn("Dimension", width=150),
            "verdict": column.TextColumn("Against the set", width=110),
            "mean": column.NumberColumn("Mean, live", format="%.3f"),
            "reference": column.NumberColumn("Mean, set", format="%.3f"),
            "band": column.TextColumn("Score band", width=110),
            "below": column.TextColumn("Below it"),
            "above": column.TextColumn("Above it"),
        },
    )
    st.caption(
        f":material/info: {len(scored):,} scored decisions. Population stability index (PSI) with "
        "its 95 % interval: below 0.1 steady, above 0.25 changed. Where a score band was measured, "
        "5 % lie below it and 5 % above."
    )


def _bursts(look: LogView, catalog: Catalog) -> None:
    """Windows whose requests are of another kind than the rest, and what to do."""
    found = cache_live.bursts(look.key, catalog)
    if not found:
        return
    widgets.toned(*views.burst_text(found))
    widgets.commands(views.burst_command(found, look.key.folder.resolve()))
    column = st.column_config
    rows = [
        (one.start, one.window, one.decisions, views.word(one.dimension), one.psi, one.mean,
         one.others)
        for one in found
    ]  # fmt: skip
    tables.kept(
        rows, "live.bursts", height="content" if len(found) <= 6 else 240,
        columns={
            "from": column.DatetimeColumn("From, UTC", format="YYYY-MM-DD HH:mm", width=140),
            "window": column.TextColumn("Window", width=90),
            "decisions": column.NumberColumn("Decisions", format="localized"),
            "dimension": column.TextColumn("Differs most in", width=140),
            "psi": column.NumberColumn("PSI", format="%.2f"),
            "mean": column.NumberColumn("Mean there", format="%.2f"),
            "others": column.NumberColumn("Mean otherwise", format="%.2f"),
        },
    )  # fmt: skip


def unknown(look: LogView) -> None:
    """Show groups of requests that no evidence covers."""
    catalog, entry = look.catalog, _evalset(look.catalog)
    found = cache_live.clusters(look.key, catalog, entry)
    widgets.toned(*views.region_text(found))
    column, short = st.column_config, apart([one.model for one in found], 20)
    rows = [
        ("yes" if one.known else "no", 100.0 * one.share, *one.centre, one.rated, one.in_evalset,
         f"{100 * one.model_share:.0f} % {short[one.model]}")
        for one in found
    ]  # fmt: skip
    tables.kept(
        rows,
        "live.unknown",
        columns={
            "known": column.TextColumn("Known", width=52),
            "share": column.NumberColumn("Traffic", format="%.1f %%", width=64),
            **{
                views.word(name): column.NumberColumn(titled(name), format="%.2f", width=118)
                for name in catalog.dimensions
            },
            "rated": column.NumberColumn("Rated", format="localized", width=52),
            "in_evalset": column.NumberColumn("In the set", format="localized", width=72),
            "model": column.TextColumn("Mostly to"),
        },
    )
    st.caption(
        ":material/info: Decisions are grouped by what they require (k-means). In the set: queries "
        "as near to the group's centre as 95 % of its decisions."
    )


def _scored(catalog: Catalog) -> list[SetEntry]:
    return [
        entry
        for entry in cache.evalsets()
        if not entry.info.problem and catalog.predictor_fingerprint in entry.info.scored
    ]


def _evalset(catalog: Catalog) -> SetEntry | None:
    """Draw the selector of the eval set; what the catalog records as tuned on goes first."""
    tuned_on = [one.evalset for one in reversed(catalog.policy.chosen_on)]
    place = {name: i for i, name in enumerate(dict.fromkeys(tuned_on))}
    scored = sorted(_scored(catalog), key=lambda entry: place.get(entry.info.name, len(place)))
    sets = {entry.key: entry for entry in scored}
    if not sets:
        st.caption(":material/info: No eval set is scored by this catalog's predictor.")
        return None
    key = st.selectbox(
        "Eval set it was tuned on", list(sets), key="live.set", width=320,
        format_func=lambda one: sets[one].info.name,
    )  # fmt: skip
    return sets.get(key)
