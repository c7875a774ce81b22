"""Audit: do people agree with one another, with the labels, and with the predictor?"""

from __future__ import annotations

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import FloatArray
from hydra_core.console import cache, selectors, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets import audit
from hydra_core.console.eval_sets.audit import rating_form
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.score_files import load_scores
from hydra_core.store.records import Sample

_PARTS = ("Rate", "Agreement", "Recalibrate", "Exchange")
_NEW = "New sample"
_LINK = {"sample": "audit.sample", "part": "audit.part"}


def choose(entry: SetEntry) -> Sample | None:
    """The sample to work on; None for a new one."""
    samples = {s.name: s for s in cache.store().ratings.samples() if s.evalset == entry.key}
    options = [*samples, _NEW]
    wanted = st.session_state.pop("audit.wanted", None)
    if wanted in samples:
        st.session_state["audit.sample"] = wanted
    if st.session_state.get("audit.sample") not in options:
        st.session_state["audit.sample"] = options[0]
    name = st.selectbox("Sample", options, key="audit.sample")
    return samples.get(name)


def show(entry: SetEntry, evalset: EvalSet, scores: FloatArray, sample: Sample | None) -> None:
    """The new-sample form, or the part of a sample that is asked for."""
    if sample is None:
        audit.draw_form(entry, evalset, scores)
        return
    if sample.evalset_digest != evalset.digest:
        st.warning("The eval set was changed after this sample was drawn.")
    if st.session_state.get("audit.part") not in _PARTS:
        st.session_state["audit.part"] = _PARTS[0]
    part = st.segmented_control(
        "Part", _PARTS, key="audit.part", required=True,
        label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    if part == "Agreement":
        audit.agreement(sample, evalset, scores)
    elif part == "Recalibrate":
        audit.recalibration(sample, evalset, scores)
    elif part == "Exchange":
        audit.exchange(sample)
    else:
        rating_form(sample, evalset)


selectors.follow(_LINK)
left, right = st.columns([2.8, 7.2], vertical_alignment="bottom")
left.title("Audit", anchor=False)
pair = selectors.current()
if pair is None:
    widgets.empty("No eval set", "Import one on Eval sets: an audit rates its messages.")
    st.stop()
with right:
    places = st.columns([6, 4])
    chosen = selectors.choose_evalset(places[0], pair[1].catalog) if pair[1].catalog else None
if chosen is None:
    widgets.empty("No scored eval set", "Score one on Eval sets: an audit compares its scores.")
    st.stop()
with left:
    widgets.provenance(chosen.info)
with places[1]:
    drawn = choose(chosen)
selectors.write(_LINK)
try:
    opened = cache.evalset(chosen.info.path, chosen.info.digest)
    found = load_scores(opened, cache.bundle().fingerprint)
    if opened.texts is None:
        widgets.empty(
            "This set has no texts",
            "In an audit people rate messages blind, by keyboard. You then see how far they agree "
            "with one another, with the labels and with the predictor (Krippendorff's alpha), and "
            "may recalibrate the predictor on it. Open a set with texts:",
        )
        selectors.offer_texts()
    elif found is None:
        widgets.empty("Not scored", "Score this eval set with the predictor in use on Eval sets.")
    else:
        show(chosen, opened, found, drawn)
except HydraError as error:
    widgets.problem(error)
