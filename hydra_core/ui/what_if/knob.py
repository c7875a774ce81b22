"""What-if with a knob: both catalogs at every threshold, or at every V, under the hand."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.errors import HydraError
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.evaluation.study.what_if import WhatIf
from hydra_core.figures.theme import model_colors
from hydra_core.types import Catalog, Rule
from hydra_core.ui import cache_learn, widgets
from hydra_core.ui.cache import ReplayKey, SetEntry
from hydra_core.ui.cache_evaluate import sweep_key
from hydra_core.ui.live_knob.component import Bar, LiveKnob, live_knob
from hydra_core.ui.what_if import panels as what_if_panels
from hydra_core.views.knob.what_if import paired_steps
from hydra_core.views.numbers import SYMBOLS, knob_text

__all__ = ["ask", "deltas"]

_KEYS = {Rule.SHORTFALL: "what_if.tau", Rule.VALUE: "what_if.value_usd"}


def ask(place: DeltaGenerator, before: Catalog, after: Catalog) -> float | None:
    """The setting to compare both at, as a number; None for each at its own."""
    rule, own = after.policy.rule, after.policy.knob
    same = before.policy.rule is rule
    value = rule is Rule.VALUE
    given = place.number_input(
        f"At {SYMBOLS[rule]}", min_value=1e-9 if value else 0.0, value=None,
        step=float(f"{own / 10:.1g}") if value else 0.01, format="%.6g", key=_KEYS[rule],
        placeholder="each its own", disabled=not same,
        help="Compare both at this setting of the knob. Empty: each at its own."
        if same else "The rules differ: each is compared at its own setting.",
    )  # fmt: skip
    return float(given) if given is not None and same else None


def deltas(
    found: WhatIf,
    chosen: SetEntry,
    *,
    before: str = "published",
    after: str = "draft",
    fades: tuple[str, ...] = (),
) -> None:
    """The tiles of a what-if over a knob that both catalogs follow; without it across two rules.

    Args:
        chosen: The eval set that both were replayed on.
        before, after: What the two are called.
        fades: Keys of what else holds for the last setting only.
    """
    sweeps = _sweeps(found, chosen)
    if sweeps is None:
        what_if_panels.deltas(found, before=before, after=after)
        return
    rule, models = found.after.catalog.policy.rule, tuple(found.shares)
    own, now = (part.catalog.policy.knob for part in (found.before, found.after))
    apart = f"{knob_text(rule, own)} → {knob_text(rule, now).split()[-1]}" if own != now else ""
    live_knob(
        LiveKnob(
            rule,
            now,
            _steps(tuple(sweep_key(chosen, sweep) for sweep in sweeps), found, sweeps),
            model_colors(models, widgets.colors()),
            what_if_panels.tiles(found, before, after),
            bars=tuple(
                Bar(label, column, tuple(found.shares[model][i] for model in models))
                for i, (label, column) in enumerate(((before, "before"), (after, "after")))
            ),
            fades=fades,
            text=apart,
        ),
        key="what_if.knob",
        on_release=lambda at: st.session_state.update({_KEYS[rule]: at}),
    )
    widgets.recorded_costs(found.after.data)


@st.cache_resource(max_entries=8, show_spinner=False)
def _steps(
    keys: tuple[ReplayKey, ...], _found: WhatIf, _sweeps: tuple[Sweep, Sweep]
) -> pd.DataFrame:
    """No setting of the knob changes them: a release does not wait for them again."""
    del keys
    return paired_steps(_found, *_sweeps)


def _sweeps(found: WhatIf, chosen: SetEntry) -> tuple[Sweep, Sweep] | None:
    """Both catalogs for every setting; None where they do not share a knob."""
    both = (found.before.catalog, found.after.catalog)
    if both[0].policy.rule is not both[1].policy.rule:
        return None
    try:
        a, b = (cache_learn.ruled_sweep(chosen, c, c.policy.rule, c.policy.weights) for c in both)
    except HydraError:  # the tiles are there without the knob, and say the same at rest
        return None
    return a, b
