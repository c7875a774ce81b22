"""Which rule a set is replayed by, as the verb evaluate is told."""

from __future__ import annotations

import argparse
import math
from datetime import date
from typing import TYPE_CHECKING

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.cli.output import existing, say
from hydra_core.cli.scoring import vectors_for

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.replay.value_sweep import ValueSweep


def value_sweep(
    options: argparse.Namespace, catalog: Catalog, evalset: EvalSet
) -> tuple[ValueSweep, float] | None:
    """The set under the value rule, and V; None where the shortfall rule is asked for.

    The value rule is taken where an outcome model is given, or the catalog routes by it and no
    tau is given.

    Raises:
        MismatchError: Outcome model, catalog and set do not fit together.
        EvalSetError: Missing text vectors cannot be made.
        CatalogError: V is not a number > 0, or a knob of the other rule was given.
    """
    by_catalog = catalog.policy.rule.value == "value" and options.tau is None
    by_value = options.outcome_model is not None or by_catalog
    _require_knobs_of(options, by_value=by_value)
    if not by_value:
        return None
    from hydra_core.outcome_model.find import catalog_outcome_model, require_same_bundle
    from hydra_core.outcome_model.format import load_outcome_model
    from hydra_core.replay.pricing import Prices
    from hydra_core.replay.value_sweep import sweep_by_value

    if options.outcome_model is None:
        model = catalog_outcome_model(catalog)
    else:
        model = load_outcome_model(existing(options.outcome_model))
        require_same_bundle(catalog, model)
    vectors_for(evalset, catalog, options.bundle)
    sweep = sweep_by_value(
        evalset, catalog, model, cross_fitted=options.cross_fitted, today=date.today(),
        prices=Prices(options.costs),
    )  # fmt: skip
    for note in sweep.data.notes:
        say(f"note: {note}")
    value = sweep.own_knob if options.value is None else options.value
    if not (math.isfinite(value) and value > 0):
        problem = Problem("", f"must be a number > 0, got {value:g}", "in USD, such as 0.02")
        raise CatalogError("--value", [problem])
    return sweep, value


def _require_knobs_of(options: argparse.Namespace, *, by_value: bool) -> None:
    foreign = {"--tau": options.tau, "--weights": options.weights}
    remedy = "leave it out, or evaluate without --outcome-model and by --tau"
    if not by_value:
        foreign = {"--value": options.value, "--cross-fitted": options.cross_fitted or None}
        remedy = "give --outcome-model, or leave it out"
    rule = "value" if by_value else "shortfall"
    for name, given in foreign.items():
        if given is not None:
            problem = Problem("", f"says nothing under the {rule} rule", remedy)
            raise CatalogError(name, [problem])
