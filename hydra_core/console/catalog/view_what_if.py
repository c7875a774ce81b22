"""The knob of two catalogs: what each comes to, and the difference, at every step of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.console.view_operating_point import Measure
from hydra_core.replay.sweep import Sweep, turning_points
from hydra_core.replay.what_if import WhatIf

#: Of either curve; two pixels each on the page.
_STEPS = 128


def paired_steps(found: WhatIf, before: Sweep, after: Sweep) -> pd.DataFrame:
    """The exact figures of both catalogs at common settings of one knob, before a hand moves it.

    Args:
        found: The comparison that is shown at rest: its models and its common queries.
        before, after: Both catalogs for every setting, under the same rule.

    Returns:
        A row a step: `knob`; for each measure of a what-if its value afterwards, in percent but
        for the cost in USD, and in `<measure>_change` what it is more than before, on the common
        queries; `before_0`, ... and `after_0`, ... with the traffic of each of `found.shares`.
    """
    settings = (turning_points(sweep.curve, _STEPS) for sweep in (before, after))
    knobs = np.asarray(sorted(set().union(*settings)))
    a, b = (_on(sweep, found.comparison.rows) for sweep in (before, after))
    best = _best(a, b)
    at_a, at_b, at_whole = (_rows(sweep, knobs) for sweep in (a, b, after))
    whole = after.curve
    columns = {
        Measure.QUALITY.value: 100 * whole.quality[at_whole],
        Measure.QR.value: 100 * b.curve.quality[at_b] / best,
        Measure.COST.value: whole.mean_cost_usd[at_whole],
        Measure.MISROUTE.value: 100 * whole.misroute[at_whole],
    }
    quality = b.curve.quality[at_b] - a.curve.quality[at_a]
    changes = {
        Measure.QUALITY: 100 * quality,
        Measure.QR: 100 * quality / best,
        Measure.COST: b.curve.mean_cost_usd[at_b] - a.curve.mean_cost_usd[at_a],
        Measure.MISROUTE: 100 * (b.curve.misroute[at_b] - a.curve.misroute[at_a]),
    }
    columns |= {f"{measure.value}_change": values for measure, values in changes.items()}
    for name, sweep in (("before", before), ("after", after)):
        traffic = dict(zip(sweep.models, sweep.traffic(knobs).T, strict=True))
        for i, model in enumerate(found.shares):
            columns[f"{name}_{i}"] = traffic.get(model, np.zeros(knobs.size))
    narrow = {name: values.astype(np.float32) for name, values in columns.items()}
    return pd.DataFrame({"knob": knobs} | narrow)


def _on(sweep: Sweep, rows: IntArray) -> Sweep:
    """The sweep of these rows of the eval set alone."""
    if sweep.data.rows.size == rows.size:
        return sweep
    return replace(sweep, data=sweep.data.take(np.searchsorted(sweep.data.rows, rows)))


def _best(a: Sweep, b: Sweep) -> float:
    """Mean quality of the best model of either pool, query by query, as QR is measured here."""
    each: list[FloatArray] = [sweep.data.quality.max(axis=1) for sweep in (a, b)]
    return float(np.maximum(*each).mean()) or 1.0


def _rows(sweep: Sweep, knobs: FloatArray) -> IntArray:
    return np.asarray([sweep.curve.row(float(knob)) for knob in knobs], dtype=np.intp)
