"""Compare: what policy B changes against policy A, query by query, with paired intervals."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.errors import HydraError
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.types import Catalog
from hydra_core.ui import cache, cache_evaluate, cache_learn, selectors, state, widgets
from hydra_core.ui import reports as reporting
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.compare import learned as compare_learned
from hydra_core.ui.compare import link
from hydra_core.ui.compare import panels as compare_panels
from hydra_core.ui.compare import queries as compare_queries
from hydra_core.ui.compare import significance as compare_significance
from hydra_core.ui.compare import state as compare_state
from hydra_core.ui.compare.queries import Sides
from hydra_core.ui.evalsets import make_catalog
from hydra_core.views.comparison import Paired, Side, totals
from hydra_core.views.comparison_figures import Measure
from hydra_core.views.comparison_tables import Which

_PARTS = ("Who moved", "Languages and groups", "Queries", "Significance")
#: The choices that a link may make.
_FIXED = {
    "view": _PARTS, "colour": tuple(Measure), "list": tuple(Which),
    "notes": tuple(compare_queries.NOTED),
}  # fmt: skip


def sweep_of(entry: SetEntry, side: Side, own: Sweep) -> Sweep:
    """The sweep a side is replayed on: the page's own, or that of its catalog, rule and weights."""
    if not side.catalog:
        return own
    catalog: Catalog | None = own.catalog
    if side.catalog != state.get().catalog:
        catalog = next(one.catalog for one in cache.catalogs() if one.key == side.catalog)
    assert catalog is not None
    return cache_learn.ruled_sweep(entry, catalog, side.rule, side.weights)


def compare(entry: SetEntry, catalog: Catalog) -> None:
    """Both sides, the answer, then the part that is asked for."""
    try:
        own = cache.sweep(entry, catalog, catalog.policy.weights)
        options = compare_state.offered(entry, catalog, own)
        a, b = compare_state.sides(options, own)
        cards = choose(options, a, b)
        learned = compare_learned.fitted(entry, own, (a, b))
        if learned is None:
            return
        both_sides = (a, sweep_of(entry, a, own)), (b, sweep_of(entry, b, own))
        both = cache_evaluate.paired(entry, *both_sides, own, learned)
    except (HydraError, ValueError) as error:
        st.warning(widgets.literal(str(error)), icon=":material/link_off:")
        make_catalog.offer(entry)
        return
    for card, found in zip(cards, totals(both), strict=True):
        compare_panels.side_figures(card, found)
    compare_state.keep_link(entry, state.get().catalog, a, b)
    if show(own, both, both_sides) == "Significance":
        compare_significance.significance(entry, own, options, (a, b), sweep_of)
    link.write()


def choose(options: dict[str, Side], a: Side, b: Side) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Both cards with their selectors, and the button between them."""
    left, middle, right = st.columns([10, 1, 10], gap="small", vertical_alignment="center")
    cards = left.container(border=True), right.container(border=True)
    compare_panels.choose(cards[0], "a", "the reference", options, a)
    compare_panels.choose(cards[1], "b", "the alternative", options, b)
    middle.button(
        "", icon=":material/swap_horiz:", on_click=compare_state.swap, args=(a, b),
        key="compare.swap", help="Swap A and B", width="stretch",
    )  # fmt: skip
    return cards


def show(own: Sweep, both: Paired, both_sides: Sides) -> str | None:
    """The answer, then the part that is asked for, which is returned."""
    b = both_sides[1][0]
    compare_panels.answer(both)
    widgets.recorded_costs(own.data)
    widgets.notes(own)
    if both.found.left_out:
        st.caption(f"{both.found.left_out:,} queries that only one of the two can route: left out.")
    st.session_state.setdefault("compare.part", _PARTS[0])
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        part = st.segmented_control(
            "Part", _PARTS, key="compare.part", required=True, persist_state="session",
            label_visibility="collapsed",
        )  # fmt: skip
        if b.knob is not None:
            reporting.button(both_sides[1][1], b.knob, "compare", "Report of B")
    if part == "Who moved":
        compare_panels.flips(both)
    elif part == "Queries":
        compare_queries.queries(both, both_sides)
    elif part == "Languages and groups":
        compare_panels.by_slice(both, own)
    return part


link.follow(_FIXED)
selectors.page("Compare", compare, baseline=False)
