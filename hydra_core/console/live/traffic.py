"""Live traffic as it is: mix over time, cost and feedback."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from shlex import quote as quote_word

import numpy as np
import streamlit as st

from hydra_core.base.types import Catalog
from hydra_core.catalog.profiles import pool
from hydra_core.console import cache, tables, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.demo import session
from hydra_core.console.figures.intervals import intervals_figure
from hydra_core.console.figures.shares import timeline_figure
from hydra_core.console.live import cache as cache_live
from hydra_core.console.live import view_traffic as views
from hydra_core.console.live.cache import LogKey
from hydra_core.console.numbers import per_resolved_text
from hydra_core.console.widgets import literal, metric_row
from hydra_core.live.canary import CANARY
from hydra_core.live.traffic import Traffic, against, calibration, cost_per_resolved, ends, feedback

_WINDOWS = {"Last hour": 3600, "Last day": 86_400, "Last 7 days": 7 * 86_400, "All": 0}
_HOW = """\
Live reads the decision log that `serve` writes. Start `serve` in the folder of this console:

```
hydra-router serve --catalog {catalog} --upstreams upstreams.yaml --log {log}
```

Without `--upstreams` it only decides, which already shows the mix. For a log in another folder, set
`HYDRA_LOG` when you start the console."""


@dataclass(frozen=True, slots=True, eq=False)
class LogView:
    """A log as it is on screen.

    Attributes:
        catalog: Prices, bands and order of the models.
    """

    key: LogKey
    traffic: Traffic
    catalog: Catalog


def choose_log(*, timed: bool = True) -> tuple[Path, int] | None:
    """Draw the selectors of log and time; None where there is no log.

    Args:
        timed: Whether a part of the log can be chosen; else it is all of it.
    """
    folders = {str(path): path for path in cache_live.folders()}
    if not folders:
        return None
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom"):
        name = st.selectbox(
            "Decision log", list(folders), key="live.log", width=260, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        if not timed:
            return folders[name], 0
        window = st.selectbox(
            "Time", list(_WINDOWS), key="live.time", width=140, bind="query-params",
            label_visibility="collapsed", index=1,
        )  # fmt: skip
    return folders[name], _WINDOWS[window]


def log_view(folder: Path, window_s: int) -> LogView | None:
    """The log as it is now; None after saying what is missing.

    Raises:
        LogError: It cannot be read.
    """
    key = cache_live.key_of(folder, window_s, datetime.now(UTC))
    found = cache_live.traffic(key)
    if not len(found):
        teach(f"No decisions in {folder.name}/ in this time", f"Choose a longer time, or: {_HOW}")
        return None
    entry = catalog_in_use(found)
    if entry is None or entry.catalog is None:
        st.warning(
            "This console has no valid catalog. Make or import one: prices and score bands come "
            "from it."
        )
        return None
    return LogView(key, found, entry.catalog)


def catalog_in_use(found: Traffic) -> CatalogEntry | None:
    """The console's catalog that decided last: the same text, else the same name, else any.

    A canary is on trial; the main revision is the one in use.
    """
    main = found.rows[found.rows["arm"] != CANARY]
    last = (main if len(main) else found.rows).iloc[-1]
    wanted = last["catalog_digest"], last["catalog"], last["predictor"]

    def alike(entry: CatalogEntry) -> list[bool]:
        one = entry.catalog
        given = (one.digest, one.name, one.predictor_fingerprint) if one else ()
        return [mine == theirs for mine, theirs in zip(given, wanted, strict=False)]

    return max((one for one in cache.catalogs() if one.catalog), key=alike, default=None)


def by_team(look: LogView) -> LogView:
    """The log of one team alone, where the log has several and one is chosen."""
    names = views.team_names(look.traffic)
    if len(names) < 2:
        return look
    chosen = st.selectbox(
        "Team", ["All teams", *names], key="live.team", width=260, bind="query-params",
        label_visibility="collapsed", format_func=lambda name: name or "No team",
    )  # fmt: skip
    if chosen not in names:
        return look
    mine = np.asarray(look.traffic.rows["team"].fillna("") == chosen, dtype=bool)
    return replace(look, traffic=look.traffic.take(mine))


def teams(look: LogView) -> None:
    """What every team asked and paid, with its budget."""
    frame = views.team_frame(look.traffic, look.catalog)
    if not len(frame):
        st.info("No request of a team in this time. A token carries the team:")
        widgets.commands("hydra-router token --name ci --role editor --team build")
        return
    column = st.column_config
    tables.kept(
        frame, "live.teams", placeholder="–",
        column_config={
            "team": column.TextColumn("Team", width=160),
            "callers": column.NumberColumn("Callers"),
            "decisions": column.NumberColumn("Decisions", format="localized"),
            "failed": column.NumberColumn("Failed", format="%.1f %%"),
            "cost_usd": column.NumberColumn("Cost, USD", format="%.4g"),
            "per_resolved_usd": column.NumberColumn("Cost per resolved, USD", format="%.4g"),
            "budget": column.TextColumn("Budget"),
        },
    )  # fmt: skip
    st.caption("Cost is that of the chosen time; the service's own ledger decides on budgets.")


def teach(title: str = "No decision log yet", text: str = _HOW) -> None:
    """The empty state: how traffic comes here."""
    own = cache.own_catalogs()
    name = own[0].key.removeprefix("my/") if own else "mine"
    catalog = f"store:{name}" if not own or own[0].revision else name
    log = quote_word(os.path.relpath(session.folder() / "log"))
    with st.container(border=True):
        st.markdown(f"#### {widgets.literal(title)}")
        st.markdown(text.replace("{catalog}", catalog).replace("{log}", log))


def figures(look: LogView) -> None:
    """The row of figures."""
    metric_row(views.head(look.traffic, datetime.now(UTC)))
    if agents := views.agents_text(look.traffic):
        st.caption(f":material/smart_toy: {agents}")
    if text := views.notes(look.traffic):
        st.caption(f":material/info: {literal(' '.join(text))}")


def traffic(look: LogView) -> None:
    """Decisions over time by model or reason, and the models."""
    found, box = look.traffic, st.container(border=True)
    by = widgets.switch("By", ("Model", "Reason"), "live.by", place=box)
    if by == "Reason":
        view = views.timeline_view(found, views.reasons(found), ())
    else:
        view = views.timeline_view(found, list(found.models), in_cost_order(look.catalog))
    with box:
        widgets.figure(
            timeline_figure(view, widgets.colors()),
            "live.timeline",
            alt=f"Decisions over time by {by.lower()}",
        )
    column = st.column_config
    tables.kept(
        views.model_frame(found),
        "live.models",
        placeholder="–",
        column_config={
            "model": column.TextColumn("Model", width=220),
            "share": column.ProgressColumn(
                "Share", min_value=0, max_value=100, format="%.1f %%", width=160
            ),
            "decisions": column.NumberColumn("Decisions", format="localized"),
            "failed": column.NumberColumn("Failed", format="%.1f %%"),
            "cost_usd": column.NumberColumn("Cost, USD", format="%.4g"),
            "latency_ms": column.NumberColumn("Latency, ms", format="%.0f", help="Median"),
        },
    )


def cost(look: LogView) -> None:
    """Compare the bill with one model for everything."""
    found, catalog = look.traffic, look.catalog
    cheap, strong = ends(catalog, date.today())
    served = list(found.models)
    compared = []
    for model, kind in ((strong, "always-strong"), (cheap, "always-cheap")):
        one = against(found, catalog, served, [model] * len(found), model)
        if one is not None:
            compared.append((kind, model, *views.cost_text(one, kind)))
    if not compared:
        st.info(
            "No answer with tokens yet. Start serve with --upstreams, or publish a catalog with "
            "the models that were served."
        )
        return
    for place, (kind, model, value, text) in zip(st.columns(2), compared, strict=True):
        with place.container(border=True):
            st.markdown(f"Against {kind}, **{literal(model)}**")
            st.markdown(f"### {literal(value)}")
            st.caption(literal(text))
    st.caption(
        f":material/info: Both sides at today's prices of {literal(catalog.name)}, on the tokens "
        "that upstreams counted. Another model would have written longer or shorter answers. "
        "Below 0 the router costs less. Interval: 95 %, by conversation."
    )


def _calibrated(look: LogView) -> None:
    """Predicted against achieved success by model, where the value rule predicted it."""
    found = calibration(look.traffic)
    if not found:
        return
    widgets.toned(*views.calibration_text(found))
    column = st.column_config
    tables.kept(
        views.calibration_frame(found), "live.calibration",
        column_config={
            "model": column.TextColumn("Model", width=220),
            "rated": column.NumberColumn("Rated", format="localized"),
            "predicted": column.NumberColumn("Predicted", format="%.1f %%"),
            "achieved": column.NumberColumn("Achieved", format="%.1f %%"),
            "difference": column.TextColumn("Achieved − predicted", width=200),
        },
    )  # fmt: skip


def rated(look: LogView) -> None:
    """Show feedback by model."""
    found = feedback(look.traffic)
    count = sum(one.rated for one in found)
    if not found:
        st.info(
            "No feedback in this time. Send it with the decision's id, which is in the header "
            "x-hydra-decision-id:"
        )
        widgets.commands(
            "curl http://127.0.0.1:8600/v1/outcomes -d "
            '\'{"decision_id": "...", "quality": 1.0, "source": "thumbs"}\''
        )
        return
    with st.container(border=True):
        widgets.figure(
            intervals_figure(views.feedback_view(found), widgets.colors()),
            "live.feedback",
            alt="Mean feedback by model with its 95 % interval",
        )
    _calibrated(look)
    each = cost_per_resolved(look.traffic)
    if each is not None:
        st.markdown(
            literal(f"{per_resolved_text(each[0])}, on {each[1]:,} rated answers with a cost.")
        )
    orphans = look.traffic.orphans
    lost = f" {orphans:,} ratings belong to decisions outside this time." if orphans else ""
    st.caption(
        f":material/info: {count:,} of {len(look.traffic):,} decisions were rated.{lost} "
        "Do not compare models with this: raters are not random, and models get different requests."
    )


def in_cost_order(catalog: Catalog) -> tuple[str, ...]:
    """The routable models, cheapest first."""
    routable = pool(catalog, today=date.today())
    return tuple(routable.ids[i] for i in np.argsort(routable.cost, kind="stable"))
