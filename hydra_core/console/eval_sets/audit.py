"""Ratings by people: draw a sample, rate its messages, agreement, recalibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import titled
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.console import cache, selectors, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets.rating import Question, exchange, rating_form
from hydra_core.console.eval_sets.view import interval_text
from hydra_core.console.figures.intervals import IntervalsView, Series, intervals_figure
from hydra_core.console.widgets import literal
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.scores import load_scores
from hydra_core.lab.audit.recalibrate import (
    LEAST_GAIN,
    LEAST_IN_SCRIPT,
    LEAST_RATED,
    Recalibration,
    recalibrate,
    scripts_of,
)
from hydra_core.lab.audit.tables import Audit, audit, on_unit_scale, slices
from hydra_core.store.records import Rating, RatingState, Sample

#: What the console calls the writing systems of `script_of`.
SCRIPT_NAMES = {
    "latin": "Latin",
    "cjk": "East Asian",
    "cyrillic": "Cyrillic",
    "arabic": "Arabic",
    "other": "Other",
}


@dataclass(frozen=True, slots=True)
class Rated:
    """A sample's ratings as arrays.

    Attributes:
        ratings: (raters, n, K) on [0, 1], NaN where somebody gave none.
        places: (n,) rows of the eval set.
    """

    query_ids: tuple[str, ...]
    raters: tuple[str, ...]
    ratings: FloatArray
    places: np.ndarray


def rated(sample: Sample, ratings: Sequence[Rating], evalset: EvalSet) -> Rated | None:
    """The ratings as arrays; None while there are none."""
    given = [one for one in ratings if one.state is RatingState.RATED]
    place_of = {query: at for at, query in enumerate(evalset.query_ids)}
    queries = [q for q in sample.query_ids if q in place_of and any(o.query_id == q for o in given)]
    if not queries:
        return None
    raters = sorted({one.rater for one in given})
    row, column = ({name: i for i, name in enumerate(names)} for names in (raters, queries))
    values = np.full((len(raters), len(queries), len(sample.dimensions)), np.nan)
    for one in given:
        if one.query_id in column:
            values[row[one.rater], column[one.query_id]] = one.scores
    places = np.array([place_of[query] for query in queries], dtype=np.intp)
    return Rated(tuple(queries), tuple(raters), on_unit_scale(values), places)


def length_of(text: str) -> str:
    """A message's length class."""
    words = len(text.split())
    return (
        "short (to 15 words)" if words <= 15 else "middle" if words <= 80 else "long (81 or more)"
    )


def agreement_frame(found: Audit) -> pd.DataFrame:
    """The paper's table: alpha between raters, with the predictor, with the label."""
    return pd.DataFrame(
        [
            {
                "dimension": titled(row.name),
                "raters": interval_text(row.raters),
                "predictor": interval_text(row.predictor),
                "label": "–" if row.label is None else interval_text(row.label),
            }
            for row in found.rows
        ]
    )


def error_frame(found: Audit) -> pd.DataFrame:
    """Mean absolute error and bias on [0, 1]."""
    return pd.DataFrame(
        [
            {
                "dimension": titled(row.name),
                "predictor_mae": row.predictor_mae,
                "predictor_bias": interval_text(row.predictor_bias, signed=True),
                "label_mae": row.label_mae,
                "label_bias": None if row.label_bias is None else row.label_bias.value,
            }
            for row in found.rows
        ]
    )


def agreement_view(found: Audit) -> IntervalsView:
    """Alpha of every dimension, three series."""
    rows = [row for row in found.rows if np.isfinite(row.predictor.lo)]
    labels = [row.label for row in rows]
    series = []
    if len(found.raters) > 1:
        series.append(Series.of("Raters with one another", [row.raters for row in rows], "muted"))
    series.append(Series.of("Predictor with raters", [row.predictor for row in rows]))
    if rows and None not in labels:
        series.append(Series.of("Label with raters", [one for one in labels if one], "ghost"))
    return IntervalsView(
        tuple(titled(row.name) for row in rows), tuple(series),
        "Krippendorff's alpha (interval), 95 % interval", format=".2f", lines=((0.0, "chance"),),
    )  # fmt: skip


_ERRORS = ("before", "after", "bias_before", "bias_after")


def recalibration_frame(found: Recalibration, dimensions: Sequence[str]) -> pd.DataFrame:
    """Error and bias before and after, on queries the curve was not fitted on."""
    return pd.DataFrame(
        {
            "dimension": [titled(name) for name in dimensions],
            **{name: getattr(found, name) for name in _ERRORS},
        }
    )


def script_frame(found: Recalibration, dimensions: Sequence[str]) -> pd.DataFrame:
    """The same by writing system, with the curve that its messages go through."""
    return pd.DataFrame(
        [
            {
                "dimension": titled(name),
                "script": SCRIPT_NAMES[part.script],
                "n": part.n,
                **{error: getattr(part, error)[k] for error in _ERRORS},
                "curve": part.curve(k),
            }
            for k, name in enumerate(dimensions)
            for part in found.parts
        ]
    )


def draw_sample(
    languages: Sequence[str],
    scores: FloatArray,
    labels: FloatArray | None,
    count: int,
    *,
    rng: np.random.Generator,
) -> IntArray:
    """Places of `count` queries (all where there are fewer), in random order.

    Strata are language, the dimension that is needed most, and the third of the disagreement
    between predictor and label; they take turns, so that rare ones are there too.

    Args:
        languages: (n,) codes.
        scores: (n, K) of the predictor.
        labels: (n, K), or None: the spread of the scores stands in for the disagreement.
    """
    n = len(languages)
    gap = np.abs(scores - labels).max(axis=1) if labels is not None else np.ptp(scores, axis=1)
    ranks = np.argsort(np.argsort(gap, kind="stable"), kind="stable")
    third = np.minimum(3 * ranks // max(n, 1), 2)
    needed = scores.argmax(axis=1)
    strata: dict[tuple[str, int, int], list[int]] = {}
    for place in rng.permutation(n).tolist():
        stratum = (languages[place], int(needed[place]), int(third[place]))
        strata.setdefault(stratum, []).append(place)
    queues = [strata[key] for key in sorted(strata)]
    rng.shuffle(queues)
    turns = sorted(
        ((turn, at, place) for at, queue in enumerate(queues) for turn, place in enumerate(queue))
    )
    chosen = np.array([place for _, _, place in turns[:count]], dtype=np.intp)
    return rng.permutation(chosen)


_QUESTION = "How much of each does a good answer to this message need?"
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


def _rate(sample: Sample, evalset: EvalSet) -> None:
    texts = dict(zip(evalset.query_ids, evalset.require_texts("an audit"), strict=True))

    def draw(query: str) -> None:
        st.caption(_QUESTION)
        if query in texts:
            widgets.message(texts[query])
        else:
            st.caption("This message is no longer in the eval set. Skip it.")

    rating_form(sample, Question("message", draw, _MEANING, _ASKED))


_LEAST = 5
_COUNT = st.column_config.NumberColumn


def draw_form(entry: SetEntry, evalset: EvalSet, scores: FloatArray) -> None:
    """Name, size and seed of a new sample."""
    dimensions = cache.bundle().dimensions
    labels = evalset.labels(dimensions)
    with st.form("audit.draw", border=True):
        st.markdown("#### Draw a sample to rate")
        st.caption(
            "The sample takes turns over languages, the dimension that is needed most, and how "
            "much predictor and label disagree, so that rare kinds are included. Raters see only "
            "the message."
        )
        name, count, seed = st.columns([5, 2.5, 2.5])
        named = name.text_input("Name", f"{entry.key} audit", max_chars=120)
        size = count.number_input("Messages", 5, 5_000, max(5, min(100, evalset.n)), 5)
        drawn = seed.number_input("Seed", 0, 10**6, 1)
        if not st.form_submit_button("Draw", type="primary", icon=":material/casino:"):
            return
    languages = evalset.queries["language"].astype(str).tolist()
    places = draw_sample(languages, scores, labels, int(size), rng=np.random.default_rng(drawn))
    queries = [evalset.query_ids[place] for place in places]
    if widgets.done(
        lambda: cache.store().ratings.draw(
            named, actor=identity.actor(), evalset=entry.key, evalset_digest=evalset.digest,
            dimensions=dimensions, query_ids=queries,
        )
    ):  # fmt: skip
        st.session_state["audit.wanted"] = named.strip()
        st.rerun()


def agreement(sample: Sample, evalset: EvalSet, scores: FloatArray) -> None:
    """The paper's two tables and the figure, then error by language and length."""
    found = _rated(
        sample, evalset, _LEAST, "With two raters or more, their agreement is shown too."
    )
    if found is None:
        return
    labels = evalset.labels(sample.dimensions)
    label = None if labels is None else labels[found.places]
    predictor = scores[found.places]
    result = audit(
        found.ratings, predictor, label, sample.dimensions, found.raters,
        groups=evalset.clusters_at(found.places),
    )  # fmt: skip
    with st.container(border=True):
        widgets.figure(
            intervals_figure(agreement_view(result), widgets.colors()), "audit.alpha",
            alt="Krippendorff's alpha by dimension: raters, predictor, label",
        )  # fmt: skip
    left, right = st.columns([4.95, 5.05], gap="small")
    with left:
        st.markdown("**Agreement** (alpha, interval)")
        width, text = 112, st.column_config.TextColumn
        tables.kept(agreement_frame(result), "audit.agreement",
                    columns={"dimension": text("Dimension", width=100),
                             "raters": text("Between raters", width=width),
                             "predictor": text("With predictor", width=width),
                             "label": text("With label", width=width)})  # fmt: skip
    with right:
        st.markdown("**Error on [0, 1]**")
        errors = error_frame(result).dropna(axis="columns", how="all")  # a set may have no labels
        spelling = {"label_mae": "{:.3f}".format, "label_bias": tables.change("+.3f")}
        known = {name: form for name, form in spelling.items() if name in errors}
        tables.kept(errors, "audit.errors", known,
                    columns={"dimension": text("Dimension", width=100),
                             "predictor_mae": _COUNT("Predictor MAE", format="%.3f", width=92),
                             "predictor_bias": text("Predictor bias", width=112),
                             "label_mae": _COUNT("Label MAE", width=68),
                             "label_bias": _COUNT("Label bias", width=68)})  # fmt: skip
    who = ", ".join(map(literal, found.raters))
    st.caption(
        f"{len(found.query_ids):,} messages, rated by {who}. The reference is the mean rating. "
        "Pooled: one alpha over all cells. Averaged: the mean of the dimensions."
    )
    texts = evalset.require_texts("an audit").iloc[found.places]
    parts = {
        "language": evalset.queries["language"].astype(str).iloc[found.places].tolist(),
        "length": [length_of(text) for text in texts],
    }
    human = np.nanmean(found.ratings, axis=0)
    with st.expander("By language and length"):
        by_part = pd.DataFrame(slices(human, predictor, label, parts))
        tables.kept(by_part.dropna(axis="columns", how="all"), "audit.slices",
                    {"predictor_bias": tables.change("+.3f")},
                    column_config={"kind": "Kind", "part": "Part", "n": "Messages",
                                   "predictor_mae": _COUNT("Predictor MAE", format="%.3f"),
                                   "predictor_bias": _COUNT("Predictor bias"),
                                   "label_mae": _COUNT("Label MAE", format="%.3f")})  # fmt: skip


def _rated(sample: Sample, evalset: EvalSet, least: int, then: str) -> Rated | None:
    """The ratings as arrays; None after saying what is missing, `then` what is to be had for it."""
    found = rated(sample, cache.store().ratings.of(sample.name), evalset)
    count = 0 if found is None else len(found.query_ids)
    if count >= least:
        return found
    drawn = len(sample.query_ids)
    widgets.empty(
        "Not enough ratings yet",
        f"{count:,} of {drawn:,} messages of this sample are rated, at least {least} are needed. "
        + ("Rate more under Rate, or import a CSV file under Import and export. " if
           drawn >= least else "Draw a larger sample: choose New sample above. ")
        + then,
    )  # fmt: skip
    return None


def recalibration(sample: Sample, evalset: EvalSet, scores: FloatArray) -> None:
    """Error before and after a monotone map, in all and by writing system, and the command that
    writes the bundle.
    """
    found = _rated(
        sample, evalset, LEAST_RATED,
        "You then see the predictor's error before and after fitting a curve to the ratings.",
    )  # fmt: skip
    if found is None:
        return
    human = np.nanmean(found.ratings, axis=0)
    try:
        groups = evalset.clusters_at(found.places)
        rng = np.random.default_rng(11)
        scripts = scripts_of(evalset) or []
        rated_scripts = [scripts[place] for place in found.places] if scripts else None
        result = recalibrate(
            scores[found.places], human, groups=groups, scripts=rated_scripts, rng=rng
        )
    except HydraError as error:
        widgets.problem(error)
        return
    biases = dict.fromkeys(("bias_before", "bias_after"), tables.change("+.3f"))
    figures = {
        "before": _COUNT("Error now", format="%.3f"),
        "after": _COUNT("Error recalibrated", format="%.3f"),
        "bias_before": _COUNT("Bias now"),
        "bias_after": _COUNT("Bias recalibrated"),
    }
    tables.kept(
        recalibration_frame(result, sample.dimensions), "audit.recalibration", biases,
        columns={"dimension": "Dimension", **figures},
    )  # fmt: skip
    st.caption("Mean absolute error and bias on [0, 1] against the mean rating. Cross-fitted: the "
               "curve for a message was fitted without it.")  # fmt: skip
    tables.kept(
        script_frame(result, sample.dimensions), "audit.scripts", biases,
        columns={"dimension": "Dimension", "script": st.column_config.TextColumn(
                     "Writing system", help="East Asian: Chinese, Japanese, Korean"),
                 "n": _COUNT("Rated", format="localized"), **figures, "curve": "Curve"},
    )  # fmt: skip
    st.caption(
        f"A writing system gets its own curve from {LEAST_IN_SCRIPT} rated messages on "
        f"(translations count once), if that lowers the error by more than {100 * LEAST_GAIN:.0f} "
        "% beyond its 95 % interval. All others use the common curve."
    )
    st.markdown("Download the ratings, then write the new bundle and rebind your catalogs to it:")
    widgets.commands(
        f"hydra-router lab recalibrate ratings.csv --evalset {quote(str(evalset.path))} \\\n"
        "    --out bundles/recalibrated\n"
        "hydra-router rebind pool.yaml --bundle bundles/recalibrated"
    )


_VIEWS = ("Rate", "Agreement", "Recalibrate", "Import and export")
_NEW = "New sample"
_LINK = {"sample": "audit.sample", "view": "label_quality.view", "step": "audit.part"}


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


def one_sample(
    entry: SetEntry, evalset: EvalSet, scores: FloatArray, sample: Sample | None
) -> None:
    """The new-sample form, or the part of a sample that is asked for."""
    if sample is None:
        draw_form(entry, evalset, scores)
        return
    if sample.evalset_digest != evalset.digest:
        st.warning("The eval set was changed after this sample was drawn.")
    part = widgets.switch("View", _VIEWS, "audit.part")
    if part == "Agreement":
        agreement(sample, evalset, scores)
    elif part == "Recalibrate":
        recalibration(sample, evalset, scores)
    elif part == "Import and export":
        exchange(sample)
    else:
        _rate(sample, evalset)


def show(place: DeltaGenerator) -> None:
    """Rated by people: do they agree with each other, with the labels, with the predictor?"""
    selectors.follow(_LINK)
    pair = selectors.current()
    if pair is None:
        widgets.empty("No eval set", "Import one under Sets: people rate its messages.")
        return
    with place:
        places = st.columns([6, 4])
        chosen = selectors.choose_evalset(places[0], pair[1].catalog) if pair[1].catalog else None
    if chosen is None:
        widgets.empty(
            "No scored eval set", "Score one under Sets: ratings are compared with its scores."
        )
        return
    with places[1]:
        drawn = choose(chosen)
    selectors.write(_LINK)
    try:
        opened = cache.evalset(chosen)
        found = load_scores(opened, cache.bundle().fingerprint)
        if opened.texts is None:
            widgets.empty(
                "This set has no texts",
                "People rate messages by keyboard, without seeing any score. You then see how well "
                "they agree with each other, with the labels and with the predictor "
                "(Krippendorff's alpha), and can recalibrate the predictor. Open a set with texts:",
            )
            selectors.offer_texts()
        elif found is None:
            widgets.empty(
                "Not scored", "Score this eval set with the current predictor under Sets."
            )
        else:
            one_sample(chosen, opened, found, drawn)
    except HydraError as error:
        widgets.problem(error)
