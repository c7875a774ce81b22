"""One person rates the items of a sample, blind; ratings go out and come in as files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import counted, titled
from hydra_core.console import cache, widgets
from hydra_core.console.access import identity
from hydra_core.console.widgets import literal
from hydra_core.lab.audit.tables import from_csv, to_csv
from hydra_core.store.records import Rating, RatingState, Sample
from hydra_core.store.roles import Action


@dataclass(frozen=True, slots=True)
class Question:
    """What a rater is asked of an `item`, such as message, that `draw` draws by its id.

    Attributes:
        scale: What the scores from 1 to 5 mean.
        help: Dimension -> what it means.
    """

    item: str
    draw: Callable[[str], None]
    scale: str
    help: Mapping[str, str] = field(default_factory=dict)


def next_query(sample: Sample, ratings: Sequence[Rating], rater: str) -> str | None:
    """The first query that a rater has neither rated nor skipped, then the skipped ones.

    Each rater has an order of their own, the same at every visit.
    """
    mine = {one.query_id: one.state for one in ratings if one.rater == rater}

    def turn(query: str) -> tuple[bool, bytes]:
        digest = hashlib.sha256(f"{rater}|{sample.name}|{query}".encode()).digest()
        return query in mine, digest

    open_to = (None, RatingState.SKIPPED)
    left = (query for query in sample.query_ids if mine.get(query) in open_to)
    return min(left, key=turn, default=None)


@st.fragment
def rating_form(sample: Sample, question: Question) -> None:
    """The next item of this rater, its scores, and what the keys do."""
    if not identity.may(Action.RATE):
        st.info("Viewers cannot rate. Ask a publisher for the role editor.")
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
        st.success(f"You have rated every {question.item} of this sample.", title="Done",
                   icon=":material/task_alt:")  # fmt: skip
        _undo(sample)
        return
    left, right = st.columns([5.4, 4.6], gap="medium")
    with left.container(border=True, height=430):
        question.draw(query)
    with right:
        _scores(sample, query, question)


def _scores(sample: Sample, query: str, question: Question) -> None:
    """One row of five a dimension, then save, skip and undo."""
    ratings, me = cache.store().ratings, identity.actor()
    found = [
        st.segmented_control(
            titled(name), range(1, 6), key=f"audit.{name}.{query}", help=question.help.get(name),
            width="stretch",
        )
        for name in sample.dimensions
    ]  # fmt: skip
    note = st.text_input("Reason (optional)", key=f"audit.note.{query}", max_chars=2000)
    whole = [score for score in found if score is not None]
    with st.container(horizontal=True):
        if st.button("Save", type="primary", key="audit.save", shortcut="Alt+S",
                     disabled=len(whole) < len(found)):  # fmt: skip
            _write(lambda: ratings.rate(sample, query, whole, actor=me, note=note))
        if st.button("Skip", key="audit.skip", shortcut="Alt+K"):
            _write(lambda: ratings.skip(sample, query, actor=me))
        _undo(sample)
    st.caption(question.scale)


def _undo(sample: Sample) -> None:
    if st.button("Undo", key="audit.undo", shortcut="Alt+U", icon=":material/undo:"):
        _write(lambda: cache.store().ratings.undo(sample, actor=identity.actor()))


def _write(step: Callable[[], object]) -> None:
    """Do one write and show the next item, or say why it could not be done."""
    if widgets.done(step):
        st.rerun(scope="fragment")


def export(sample: Sample) -> bytes:
    """All ratings of a sample as CSV, and a row without scores for each query that has none."""
    given = _given(sample)
    rows = [(one.query_id, one.rater, one.scores, one.note) for one in given]
    rated = {one.query_id for one in given}
    empty = (math.nan,) * len(sample.dimensions)
    bare = [(query, "", empty, "") for query in sample.query_ids if query not in rated]
    return to_csv([*rows, *bare], sample.dimensions)


def _given(sample: Sample) -> list[Rating]:
    found = cache.store().ratings.of(sample.name)
    return [one for one in found if one.state is RatingState.RATED]


def exchange(sample: Sample) -> None:
    """Ratings out as CSV, and in."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("#### Export")
        st.caption(
            "Columns: query_id, rater, one per dimension (1 to 5), note. Queries that nobody has "
            "rated have empty cells; rows without scores are not imported."
        )
        st.download_button(
            f"{counted(len(_given(sample)), 'rating')} of "
            f"{counted(len(sample.query_ids), 'query')} as CSV",
            export(sample),
            f"{sample.name}.csv", icon=":material/download:", key="audit.out",
        )  # fmt: skip
    with right:
        st.markdown("#### Import")
        if not identity.may(Action.MODERATE):
            st.caption("Importing ratings of other people needs the role publisher.")
            return
        file = st.file_uploader("Ratings as CSV", ["csv"], key="audit.file")
        if file is None or not st.button("Import", type="primary", key="audit.in"):
            return
        try:
            taken = from_csv(file, sample.dimensions, sample.query_ids)
            count = cache.store().ratings.take_in(sample, taken, actor=identity.actor())
        except HydraError as error:
            widgets.problem(error)
            return
        st.success(f"{counted(count, 'rating')} imported.")
