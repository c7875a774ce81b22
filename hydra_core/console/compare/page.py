"""Compare: what policy B changes against policy A, query by query, with paired intervals."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog
from hydra_core.console import cache, frame, replays, selectors, state, widgets
from hydra_core.console import reports as reporting
from hydra_core.console.cache import SetEntry
from hydra_core.console.compare import policies as compare_policies
from hydra_core.console.compare import queries as compare_queries
from hydra_core.console.compare import significance as compare_significance
from hydra_core.console.compare import state as compare_state
from hydra_core.console.compare.view import Kind, Measure, Paired, Side, cascade_text, totals
from hydra_core.console.compare.view_tables import Sides, Which
from hydra_core.console.eval_sets import make_catalog
from hydra_core.replay.sweep import Sweep

_VIEWS = ("Who moved", "Cost and quality", "Languages and groups", "Queries", "Significance")
#: The choices that a link may make.
_FIXED = {
    "view": _VIEWS, "colour": tuple(Measure), "list": tuple(Which),
    "notes": tuple(compare_queries.NOTED),
}  # fmt: skip


def compare(entry: SetEntry, catalog: Catalog) -> None:
    """Both sides, the answer, then the view that is asked for."""
    try:
        own = cache.sweep(entry, catalog, catalog.policy.weights)
        options = compare_state.offered(entry, catalog, own)
        a, b = compare_state.sides(options, own)
        cards = choose(options, a, b)
        learned = compare_significance.fitted(entry, own, (a, b))
        if learned is None:
            return
        both_sides = (
            (a, compare_state.sweep_of(entry, a, own)),
            (b, compare_state.sweep_of(entry, b, own)),
        )
        both = replays.paired(*both_sides, own, learned)
    except (HydraError, ValueError) as error:
        st.warning(widgets.literal(str(error)), icon=":material/link_off:")
        make_catalog.offer(entry)
        return
    for card, found in zip(cards, totals(both), strict=True):
        compare_policies.side_figures(card, found)
    for card, (side, sweep) in zip(cards, both_sides, strict=True):
        if side.kind is Kind.CASCADE:
            card.caption(widgets.literal(cascade_text(side, sweep)))
    compare_state.keep_link(entry, state.get().catalog, a, b)
    if views(own, both, both_sides) == "Significance":
        compare_significance.significance(entry, own, options, (a, b))
    compare_state.write()


def choose(options: dict[str, Side], a: Side, b: Side) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Both cards with their selectors, and the button between them."""
    left, middle, right = st.columns([10, 1, 10], gap="small", vertical_alignment="center")
    cards = left.container(border=True), right.container(border=True)
    compare_policies.choose(cards[0], "a", "the reference", options, a)
    compare_policies.choose(cards[1], "b", "the alternative", options, b)
    middle.button(
        "", icon=":material/swap_horiz:", on_click=compare_state.swap, args=(a, b),
        key="compare.swap", help="Swap A and B", width="stretch",
    )  # fmt: skip
    return cards


def views(own: Sweep, both: Paired, both_sides: Sides) -> str:
    """The answer, then the view that is asked for, which is returned."""
    b = both_sides[1][0]
    compare_policies.answer(both)
    widgets.recorded_costs(own.data)
    widgets.notes(own)
    if both.found.left_out:
        st.caption(f"{both.found.left_out:,} queries that only one of the two can route: left out.")
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        view = widgets.switch("View", _VIEWS, "compare.view")
        if b.knob is not None:
            reporting.button(both_sides[1][1], b.knob, "compare", "Report of B")
    if view == "Who moved":
        compare_policies.flips(both)
    elif view == "Queries":
        compare_queries.queries(both, both_sides)
    elif view == "Cost and quality":
        compare_policies.on_axes(both, own, both_sides)
    elif view == "Languages and groups":
        compare_policies.by_slice(both, own)
    return view


def show() -> None:
    """The whole page."""
    compare_state.follow(_FIXED)
    selectors.on_data(frame.head("Compare"), compare, baseline=False)
