"""Eval sets: what is there, whether routing can help on it, and how good its labels are."""

from __future__ import annotations

import streamlit as st

from hydra_core.console import cache, frame, selectors, widgets
from hydra_core.console.eval_sets import audit, collect, import_wizard, labels, routing_help
from hydra_core.console.eval_sets import sets as all_sets
from hydra_core.console.frame import Head, Part

_VIEWS = ("All sets", "Import")
#: Name in the address -> who judged the labels.
_QUALITY = {"runs": "Judged by a model", "samples": "Rated by people"}


def _sets(head: Head) -> None:
    with head.right.container(horizontal=True, horizontal_alignment="right"):
        view = widgets.switch("View", _VIEWS, "eval_sets.view")
    if view == "Import":
        import_wizard.wizard()
        return
    sets = cache.evalsets()
    if not sets:
        all_sets.nothing_yet()
        return
    narrow, wide = st.columns([3, 7], gap="medium")
    with narrow:
        entry = all_sets.choose(sets)
    with wide:
        all_sets.show(entry)


def _label_quality(head: Head) -> None:
    selectors.follow({"view": "label_quality.view"})
    if st.session_state.get("label_quality.view") not in _QUALITY:
        rated = not labels.runs() and bool(cache.store().ratings.samples())
        st.session_state["label_quality.view"] = "samples" if rated else "runs"
    left, right = st.columns([4, 7], vertical_alignment="bottom")
    view = widgets.switch("View", _QUALITY, "label_quality.view", _QUALITY.__getitem__, left)
    del head
    if view == "samples":
        audit.show(right)
    else:
        labels.show(right)
        selectors.write({"view": "label_quality.view"})


PARTS = {
    "sets": Part("Sets", _sets, (7.0, 3.0)),
    "collect": Part("Collect", collect.show, (7.0, 3.0)),
    "routing-help": Part("Can routing help?", routing_help.show, (6.4, 5.6)),
    "label-quality": Part("Label quality", _label_quality, (7.0, 3.0)),
}


def show() -> None:
    """The whole page."""
    frame.show("Eval sets", PARTS)
