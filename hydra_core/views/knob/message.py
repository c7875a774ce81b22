"""The knob of one message: which model is chosen for it at every step, under the rule in force."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from hydra_core.figures.strip import Scale, Strip, strip_end
from hydra_core.types import CostBasis, Rule
from hydra_core.views import inspection
from hydra_core.views.inspection import Inspection
from hydra_core.views.numbers import usd

__all__ = ["facts", "knob_of", "message_steps", "settable"]

#: Three pixels each on the page.
_STEPS = 240


def knob_of(one: Inspection) -> tuple[Rule, float]:
    """The rule that decided, and where its knob stands."""
    if one.decision.valuation is None:
        return Rule.SHORTFALL, one.decision.tau
    return Rule.VALUE, one.decision.valuation.value_usd


def settable(knob: float, rule: Rule) -> float:
    """A setting off the axis as short as it should be read: tau to 1e-4, V in three digits."""
    return round(knob, 4) if rule is Rule.SHORTFALL else float(f"{knob:.3g}")


def message_steps(
    strips: tuple[Strip, ...], scale: Scale, models: tuple[str, ...], rule: Rule, knob: float
) -> pd.DataFrame:
    """The model chosen for each message at steps that lie evenly along the strip's axis.

    Args:
        strips: One a message, over the knob.
        models: (m,) ids.
        knob: Where it stands; it is on the axis.

    Returns:
        A row a step: `knob`, `place` on the axis, and `model_0`, ... the number in `models` of
        what each message is given.
    """
    end = strip_end(strips, scale, knob)
    settings = [settable(float(v), rule) for v in scale.back(np.linspace(0.0, end, _STEPS))]
    knobs = np.unique([*settings, knob])  # what is said at rest is exact
    columns: dict[str, object] = {"knob": knobs, "place": [scale.place(v) for v in knobs]}
    for i, strip in enumerate(strips):
        starts = [part.start for part in strip.parts]
        # tau: a model is chosen from its start on; V: above it
        if rule is Rule.SHORTFALL:
            parts = np.searchsorted(starts, knobs, side="right") - 1
        else:
            parts = (np.searchsorted(starts, knobs, side="left") - 1).clip(min=0)
        numbers = np.array([models.index(part.model) for part in strip.parts])
        columns[f"model_{i}"] = numbers[parts].astype(np.int32)
    return pd.DataFrame(columns)


def facts(shown: Mapping[str, Inspection], models: tuple[str, ...]) -> list[list[str]]:
    """What decides about each of `models`, by message, in a few words; no knob changes it."""
    return [[_fact(one, model) for model in models] for one in shown.values()]


def _fact(one: Inspection, model: str) -> str:
    valued, i = one.decision.valuation, one.decision.pool.ids.index(model)
    if valued is not None:
        success = inspection.success_text(valued, i)
        return f"predicted success {success} for {usd(float(valued.cost_usd[i]))}"
    row = next(row for row in one.candidates if row.model == model)
    per = "Mtok, blended" if one.decision.cost_basis is CostBasis.LIST_PRICE else "query"
    return f"shortfall {row.shortfall:.3f}, {usd(row.cost)} per {per}"
