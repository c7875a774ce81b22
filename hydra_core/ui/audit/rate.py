"""Blind rating: one message at a time, keyboard first; nobody sees scores, labels or others."""

from __future__ import annotations

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.store.records import RatingState, Sample
from hydra_core.store.roles import Action
from hydra_core.ui import cache, widgets
from hydra_core.ui.access import identity
from hydra_core.ui.widgets import literal
from hydra_core.views.audit import next_query

__all__ = ["rating_form"]

_SCALE = {1: "1", 2: "2", 3: "3", 4: "4", 5: "5"}
_MEANING = (
    "**1** does not need it at all · **2** a little · **3** clearly · **4** a lot · "
    "**5** only a frontier model would do it well"
)
_ASKED = {
    "reasoning": "Several steps of logic, trade-offs, maths, a complex system",
    "code_generation": "New or changed code of real size or difficulty",
    "debugging": "Finding and fixing a defect",
    "tool_use": "Several steps with files, commands, tests or services",
}


@st.fragment
def rating_form(sample: Sample, evalset: EvalSet) -> None:
    """The next message of this rater, its scores, and what the keys do."""
    if not identity.may(Action.RATE):
        st.info("Viewers cannot rate. Ask a publisher for the role of an editor.")
        return
    store, me = cache.store(), identity.actor()
    ratings = store.ratings.of(sample.name)
    mine = [one for one in ratings if one.rater == me.name]
    done = sum(one.state is RatingState.RATED for one in mine)
    total = len(sample.query_ids)
    st.progress(done / total, f"{literal(me.name)}: {done:,} of {total:,} rated, "
                f"{sum(one.state is RatingState.SKIPPED for one in mine):,} skipped")  # fmt: skip
    query = next_query(sample, ratings, me.name)
    if query is None:
        st.success("Every message of this sample is rated or skipped. See Agreement.", title="Done",
                   icon=":material/task_alt:")  # fmt: skip
        _undo(sample)
        return
    texts = dict(zip(evalset.query_ids, evalset.require_texts("an audit"), strict=True))
    left, right = st.columns([5.4, 4.6], gap="medium")
    with left.container(border=True, height=430):
        st.caption("How much does this message need, to be answered well?")
        if query in texts:
            widgets.message(texts[query])
        else:
            st.caption("This message is no longer in the eval set; skip it.")
    with right:
        _scores(sample, query)


def _scores(sample: Sample, query: str) -> None:
    """One row of five a dimension, then save, skip and undo."""
    found = []
    for name in sample.dimensions:
        found.append(
            st.segmented_control(
                name.replace("_", " ").capitalize(), list(_SCALE), key=f"audit.{name}.{query}",
                help=_ASKED.get(name), width="stretch",
            )
        )  # fmt: skip
    note = st.text_input("Why (if you like)", key=f"audit.note.{query}", max_chars=2000)
    whole = [score for score in found if score is not None]
    with st.container(horizontal=True):
        if st.button("Save", type="primary", key="audit.save", shortcut="Alt+S",
                     disabled=len(whole) < len(found)):  # fmt: skip
            _write(lambda: cache.store().ratings.rate(
                sample, query, whole, actor=identity.actor(), note=note))  # fmt: skip
        if st.button("Skip", key="audit.skip", shortcut="Alt+K"):
            _write(lambda: cache.store().ratings.skip(sample, query, actor=identity.actor()))
        _undo(sample)
    st.caption(_MEANING)


def _undo(sample: Sample) -> None:
    if st.button("Undo", key="audit.undo", shortcut="Alt+U", icon=":material/undo:"):
        _write(lambda: cache.store().ratings.undo(sample, actor=identity.actor()))


def _write(step: object) -> None:
    """Do one write and show the next message, or say why it could not be done."""
    try:
        step()  # type: ignore[operator]
    except HydraError as error:
        widgets.problem(error)
        return
    st.rerun(scope="fragment")
