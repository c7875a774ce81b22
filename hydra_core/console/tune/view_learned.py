"""Tune, Learned: what is shown of an outcome model, as plain values. No streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hydra_core.base.spelling import counted, signed
from hydra_core.base.types import FloatArray
from hydra_core.choosing.lift import Rival
from hydra_core.console.figures.intervals import IntervalsView, Ranged, one_series, ranged
from hydra_core.outcome_model.model import OutcomeModel

_LIFT = "Quality above fixed mixes at equal cost, percentage points"
_MOST_SLICES = 20
#: What a learner may read, in words.
_BLOCKS = {
    "requirements": "the four requirements",
    "length": "length",
    "words": "counts of words, lines, digits and marks",
    "vectors": "the encoder's vector",
}


class Lifted(NamedTuple):
    """A lift in percentage points with its interval; the bounds are NaN where unknown."""

    name: str
    pp: float
    low: float
    high: float

    @property
    def ends(self) -> str:
        """Its interval in words, or that there is none."""
        if not np.isfinite([self.low, self.high]).all():
            return "too few moved"
        return f"{signed(self.low)} to {signed(self.high)} pp"


def headline(model: OutcomeModel) -> tuple[bool, str, str]:
    """Whether to use it, a title, a sentence."""
    title, _, sentence = str(model.figures["reason"]).partition(": ")
    sentence = sentence.replace(" points [", " pp [")  # as outcome models of before have it
    return bool(model.figures["recommend"]), title, sentence[:1].upper() + sentence[1:]


def lifts(model: OutcomeModel) -> tuple[Lifted, ...]:
    """At 25, 50 and 75 % of the cost range with simultaneous intervals, then their mean."""
    found: Any = model.figures["lift"]
    if found is None:
        return ()
    points = [
        _lifted(f"At {point} % of the cost range", found["points"][point], ends)
        for point, ends in found["simultaneous"].items()
    ]
    return (*points, _lifted("Mean of the three", found["mean"], found["interval"]))


def _lifted(name: str, value: float, ends: Sequence[float | None]) -> Lifted:
    low, high = (np.nan if end is None else 100.0 * end for end in ends)
    return Lifted(name, 100.0 * value, low, high)


def lifts_view(rows: Sequence[Ranged]) -> IntervalsView:
    """Lifts over fixed mixes with their intervals."""
    return one_series("Lift", rows, _LIFT, " pp", "+.1f", ((0.0, "as a fixed mix"),))


def reliability_lines(model: OutcomeModel) -> dict[str, FloatArray]:
    """Predicted against achieved success of every model, on queries its heads had not seen.

    Returns:
        Model -> (3, b): queries, predicted and achieved percent of bins of alike predictions.
    """
    found: Any = model.figures["reliability"]
    scale = np.array([1.0, 100.0, 100.0])  # a model without outcomes has no rows
    known = {name: np.array(rows, dtype=np.float64) for name, rows in found.items() if rows}
    return {name: (scale * rows).T for name, rows in known.items()}


def calibration_error(lines: Mapping[str, FloatArray]) -> float:
    """Mean distance between predicted and achieved success over all bins, percentage points."""
    queries, predicted, achieved = np.concatenate(list(lines.values()), axis=1)
    return float(np.average(np.abs(predicted - achieved), weights=queries))


def read_blocks(model: OutcomeModel) -> str:
    """What is read of a message, in words."""
    names: Sequence[str] = model.figures["features"]  # type: ignore[assignment]
    return ", ".join(_BLOCKS.get(name, name) for name in names)


def curve_view(model: OutcomeModel) -> IntervalsView:
    """Mean lift against the number of queries that were learned on."""
    steps: Any = model.figures["learning_curve"]
    return lifts_view(
        [
            _lifted(f"{counted(one['queries'], 'query')}", one["lift"], one["interval"])
            for one in steps
        ]
    )


def more_outcomes(model: OutcomeModel) -> str:
    """What more outcomes would be expected to give, in one sentence."""
    gains: Any = model.figures["expected_gain"]
    known = [(int(more), 100 * gain) for more, gain in gains.items() if gain is not None]
    if not known:
        return "Too few steps to say what more outcomes would give."
    text = ", ".join(f"{signed(pp)} pp from {more:,} more" for more, pp in known)
    return f"Along this curve expect {text}."


def slices_view(model: OutcomeModel, kind: str) -> IntervalsView | None:
    """Lift within each group or language, the largest first; None where the set has none."""
    found: Any = model.figures["slices"]
    rows = found.get(kind) or []
    if not rows:
        return None
    return lifts_view(
        [
            _lifted(f"{one['name']} ({one['queries']:,})", one["lift"], one["interval"])
            for one in rows[:_MOST_SLICES]
        ]
    )


def cautions(model: OutcomeModel) -> list[str]:
    """What queries with outcomes of some models only added, and what rates are worth here."""
    found: list[Any] = [model.figures.get(name) for name in ("logged", "rehearsal")]
    return [str(one["sentence"]) for one in found if one]


def check_view(model: OutcomeModel) -> tuple[list[Lifted], list[str]]:
    """Where a gain comes from, and what looks wrong; nothing without groups or in old models."""
    check: Any = model.figures.get("check")
    if not check:
        return [], []
    names = {
        "between": "Gain from telling groups apart",
        "within": "Gain within groups",
        "total": "Together",
    }
    parts = [
        _lifted(name, check[key]["value"], check[key]["interval"])
        for key, name in names.items()
        if check[key] is not None
    ]
    return parts, [one["text"] for one in check["findings"][:6]]


def rivals_view(rivals: Sequence[Rival]) -> IntervalsView:
    """What each way to route gains over fixed mixes, the best first."""
    best_first = sorted(rivals, key=lambda one: -one.lift.value)
    return lifts_view([ranged(one.name, one.lift) for one in best_first])
