"""What the tuner found: promised against kept, the setting, and where to take it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.evaluation.choose.policy_search import FoundPolicy
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.spelling import signed
from hydra_core.ui import tables, widgets
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.tuner import cells as tuner_cells
from hydra_core.ui.tuner import panels as tuner_panels
from hydra_core.ui.tuner import take as tuner_take
from hydra_core.ui.tuner.panels import Wanted
from hydra_core.ui.widgets import metric_row
from hydra_core.views.frontier import usd

__all__ = ["found"]

#: Weights of the two halves within this factor count as much the same.
_ALIKE = 2.0


def found(result: FoundPolicy, entry: SetEntry, sweep: Sweep, want: Wanted) -> None:
    """What was found: the verdict, promised against kept, the setting, where to take it."""
    widgets.verdict_box(result.verdict)
    _figures(result)
    tuner_take.take(result, entry, sweep)
    plain = tuner_panels.without_cells(entry, sweep, want) if want.cells else None
    left, right = st.columns([12, 8], gap="medium")
    with left:
        st.markdown("**Chosen on, reported on**")
        _halves(result, plain)
        st.caption(
            "A setting promises more where it was chosen than it keeps on the other half. Expect "
            "the kept figures, not the promised ones."
        )
        if want.cells and plain is None:
            st.caption("Search once without cells to see here what the cells add.")
    with right:
        st.markdown(f"**The setting to use** :gray[·] τ {result.setting.tau:.4g}")
        _weights(result, sweep)
        st.caption(_agreement(result))
    if want.cells:
        tuner_cells.moved(result, sweep, want.cells)


def _agreement(result: FoundPolicy) -> str:
    """Whether both halves asked for much the same weights."""
    first, second = (np.asarray(half.setting.weights) for half in result.halves)
    apart = float(np.maximum(first / second, second / first).max())
    if apart <= _ALIKE:
        return "Searched on all queries. Both halves asked for much the same weights."
    return (
        f"Searched on all queries. The halves ask for weights up to {apart:.0f} times apart: the "
        "queries hardly say which weights are right, so rely on τ more than on them."
    )


def _figures(result: FoundPolicy) -> None:
    kept, gain = result.metrics, result.over_tau_only
    qr, cost = kept.qr.scaled(100.0), kept.mean_cost_usd
    further = result.optimism_cost_usd / (cost.value - result.optimism_cost_usd)
    more, saved = gain.quality.scaled(100.0), gain.saving and gain.saving.scaled(100.0)
    entries = (
        ("QR kept", f"{qr.value:.1f} %", f"{qr.lo:.1f} to {min(qr.hi, 100.0):.1f} %",
         "Quality retention on queries the setting was not chosen on."),
        ("Cost per query", usd(cost.value), f"{usd(cost.lo)} to {usd(cost.hi)}",
         "Mean realised cost on the same queries."),
        ("Promised − kept", f"{signed(100 * result.optimism_qr)} pp",
         f"cost {signed(100 * further)} %",
         "QR promised minus QR kept; below, cost measured against cost promised."),
        ("Gain over τ alone", f"{signed(more.value)} pp",
         f"{signed(more.lo)} to {signed(more.hi)} pp",
         "Quality at the same cost against choosing τ alone with the weights left as they are, "
         "paired by query."),
        ("Saved over τ alone", f"{signed(saved.value)} %" if saved else "–",
         f"{signed(saved.lo)} to {signed(saved.hi)} %" if saved else "quality buys nothing here",
         "The same gain as cost saved at the same quality, at the price that constants pay for "
         "quality here."),
    )  # fmt: skip
    metric_row(entries)


def _halves(result: FoundPolicy, without_cells: FoundPolicy | None) -> None:
    rows = [
        {
            "part": f"Chosen on {'AB'[i]}, kept on {'BA'[i]}",
            "n": half.queries,
            "promised": 100 * half.promised.qr,
            "kept": 100 * half.qr,
            "promised_cost": half.promised.mean_cost_usd,
            "kept_cost": half.mean_cost_usd,
        }
        for i, half in enumerate(result.halves)
    ]
    qr, cost = result.metrics.qr.value, result.metrics.mean_cost_usd.value
    rows.append(
        {
            "part": "Together",
            "n": result.metrics.n,
            "promised": 100 * (qr + result.optimism_qr),
            "kept": 100 * qr,
            "promised_cost": cost - result.optimism_cost_usd,
            "kept_cost": cost,
        }
    )
    others = [("τ alone, together", result.tau_only)]
    if without_cells is not None:
        others.insert(0, ("Without cells, together", without_cells.metrics))
    rows += [
        {
            "part": part,
            "n": plain.n,
            "kept": 100 * plain.qr.value,
            "kept_cost": plain.mean_cost_usd.value,
        }
        for part, plain in others
    ]
    column = st.column_config
    tables.kept(
        pd.DataFrame(rows),
        "tuner.parts",
        height="content",
        placeholder="",
        column_config={
            "part": column.TextColumn("", width=145),
            "n": column.NumberColumn("Queries", format="localized", width=62),
            "promised": column.NumberColumn("QR promised", format="%.1f %%", width=82),
            "kept": column.NumberColumn("QR kept", format="%.1f %%", width=62),
            "promised_cost": column.NumberColumn("Cost promised", format="$%.4f", width=90),
            "kept_cost": column.NumberColumn("Cost kept", format="$%.4f", width=80),
        },
    )


def _weights(result: FoundPolicy, sweep: Sweep) -> None:
    columns: dict[str, object] = {
        "Dimension": [name.replace("_", " ").capitalize() for name in sweep.catalog.dimensions],
        "Catalog": list(sweep.catalog.policy.weights),
        "Tuned": list(result.setting.weights),
    }
    for name, half in zip(("On A", "On B"), result.halves, strict=False):
        columns[name] = list(half.setting.weights)
    number = st.column_config.NumberColumn(format="%.2f", width=55)
    tables.kept(
        pd.DataFrame(columns),
        "tuner.weights",
        height="content",
        column_config={
            "Dimension": st.column_config.TextColumn(width=105),
            **{name: number for name in columns if name != "Dimension"},
        },
    )
