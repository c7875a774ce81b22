"""The row of figures below every editor of the draft: what the edits would change."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.study.what_if import WhatIf, what_if
from hydra_core.types import Catalog, Rule
from hydra_core.ui import cache_learn, selectors, widgets
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.drafts import Working
from hydra_core.ui.what_if import knob as what_if_knob
from hydra_core.ui.what_if import panels as what_if_panels
from hydra_core.ui.widgets import literal
from hydra_core.views.catalogs.pool import moved_by_pool
from hydra_core.views.numbers import policy_text

__all__ = ["compared", "strip"]

_TOLD = "what_if.told"


def strip(working: Working, *, knob: bool = False) -> None:
    """What the draft would do on the eval set in use, in one row of figures.

    Args:
        knob: Also over every setting of the knob, which follows the hand.
    """
    if working.catalog is None or working.published is None:
        return
    left, middle, right = st.columns([5.4, 1.9, 3.7], vertical_alignment="bottom")
    left.subheader("What it would change", anchor=False)
    chosen = selectors.choose_evalset(right, working.published)
    if chosen is None:
        st.caption(
            "No eval set fits this catalog: one that is scored by its predictor and shares models "
            "with it is needed."
        )
        return
    at = what_if_knob.ask(middle, working.published, working.catalog) if knob else None
    found = compared(chosen, working.published, working.catalog, at)
    if found is not None:
        with st.container(key=_TOLD):
            _told(found, chosen, working)
        if knob:
            what_if_knob.deltas(found, chosen, fades=(_TOLD,))
        else:
            what_if_panels.deltas(found)
        _moved(working.published, working.catalog)


def _moved(before: Catalog, after: Catalog) -> None:
    """Say why capabilities move that nobody edited."""
    moved = moved_by_pool(before, after)
    if moved:
        st.caption(
            f":material/info: The capabilities of {literal(', '.join(moved))} move too: on each "
            "dimension the weakest active model of the pool stands at the low end of the score "
            "band and the strongest at its high end, so who is in the pool shifts everybody."
        )


def _told(found: WhatIf, chosen: SetEntry, working: Working) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if chosen.info.synthetic:
            widgets.synthetic_badge()
        told = "Edit a cell to see its effect."
        if working.edited:
            told = what_if_panels.sentence(found)
        where = policy_text(found.after.catalog.policy)
        notes = "".join(f" {literal(note)}" for note in found.after.data.notes)
        st.caption(
            literal(f"{told} Replayed on {found.comparison.n:,} queries at {where}.") + notes
        )


def compared(
    chosen: SetEntry, before: Catalog, after: Catalog, knob: float | None = None
) -> WhatIf | None:
    """Both catalogs replayed and compared; None after saying why it cannot be done.

    Args:
        knob: tau or V of the rule of both, instead of each catalog's own.
    """
    if knob is not None:
        field = "value_usd" if after.policy.rule is Rule.VALUE else "tau"
        before, after = (
            replace(c, policy=replace(c.policy, **{field: knob}))  # type: ignore[arg-type]
            for c in (before, after)
        )
    try:
        return what_if(cache_learn.replayed(chosen, before), cache_learn.replayed(chosen, after))
    except HydraError as error:
        widgets.problem(error)
    except ValueError as error:
        st.warning(literal(str(error)))
    return None
