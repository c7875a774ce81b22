"""A set replayed under one of the two rules, as the verb evaluate prints it."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hydra_core.cli.output import existing
from hydra_core.errors import CatalogError, Problem
from hydra_core.types import Rule

if TYPE_CHECKING:
    from hydra_core.evaluation.evalset.evalset import EvalSet
    from hydra_core.evaluation.replay.replay import ReplayData
    from hydra_core.outcome_model.raw import Predicted
    from hydra_core.types import Catalog, IntArray, Pool

__all__ = ["Replayed", "by_shortfall", "by_value", "predictions_of"]

_MOST_ROWS = 4_990


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """Where each query went, and the rule's whole curve.

    Attributes:
        knob_name: tau or value_usd.
        frontier: Rows of knob, quality, mean cost in USD; ascending in the knob.
    """

    rule: Rule
    knob_name: str
    knob: float
    choice: IntArray
    frontier: list[list[float]]


def predictions_of(
    options: argparse.Namespace, catalog: Catalog, evalset: EvalSet, pool: Pool
) -> Predicted | None:
    """Predictions where the value rule is asked for, by option or by the catalog; else None."""
    by_catalog = catalog.policy.rule is Rule.VALUE and options.tau is None
    if options.outcome_model is None and not by_catalog:
        return None
    from hydra_core.evaluation.replay.predictions import pool_heads, predict_evalset
    from hydra_core.outcome_model.find import catalog_outcome_model
    from hydra_core.outcome_model.format import load_outcome_model

    if options.outcome_model is None:
        model = catalog_outcome_model(catalog)
    else:
        model = load_outcome_model(existing(options.outcome_model))
    heads = pool_heads(model, catalog, pool)
    return predict_evalset(evalset, model, heads, cross_fitted=options.cross_fitted)


def by_shortfall(data: ReplayData, tau: float) -> Replayed:
    """The paper's rule at one tau."""
    from hydra_core.evaluation.choose.operating_point import data_frontier
    from hydra_core.evaluation.replay.replay import replay

    curve = data_frontier(data)
    columns = (curve.tau.tolist(), curve.quality.tolist(), curve.mean_cost_usd.tolist())
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Replayed(Rule.SHORTFALL, "tau", tau, replay(data, tau), rows)


def by_value(data: ReplayData, given: float | None, catalog: Catalog) -> Replayed:
    """The value rule at the V given, the catalog's, or the one in the middle of the cost range.

    Raises:
        CatalogError: V is not a number > 0.
    """
    from hydra_core.evaluation.replay.replay import replay_by_value
    from hydra_core.evaluation.replay.value_curve import data_value_curve

    curve = data_value_curve(data)
    value = catalog.policy.value_usd if given is None else given
    if value is None:
        cost = curve.mean_cost_usd
        middle = (cost[0] + cost[-1]) / 2
        value = curve.point(int(abs(cost - middle).argmin())).value_usd
    if not (math.isfinite(value) and value > 0):
        problem = Problem("", f"must be a number > 0, got {value:g}", "in USD, such as 0.02")
        raise CatalogError("--value", [problem])
    points = [curve.point(int(row)) for row in curve.simplified(_MOST_ROWS)]
    rows = [[point.value_usd, point.quality, point.mean_cost_usd] for point in points]
    return Replayed(Rule.VALUE, "value_usd", value, replay_by_value(data, value), rows)
