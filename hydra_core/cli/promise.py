"""The verb promise: the cheapest setting whose quality can be promised."""

from __future__ import annotations

import argparse
import math
from datetime import date
from typing import TYPE_CHECKING

from hydra_core.base.errors import MismatchError
from hydra_core.cli.options import Verbs, bundle_option, catalog_option, evalset_argument, verb
from hydra_core.cli.output import print_json, say
from hydra_core.cli.score import scores_for
from hydra_core.cli.workspace import OUTCOME_MODEL, existing, open_catalog

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog, FloatArray, IntArray
    from hydra_core.choosing.sources.promise import Promise
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.replay.replay import ReplayData
    from hydra_core.replay.sweep import Sweep

_PROMISE = """\
Finds the cheapest setting of the knob whose quality is at most so far below the best single model,
with the confidence you ask for (learn then test). Queries that an outcome model was learned on are
predicted by heads that have not seen them. The promise holds for queries like these, not under
drift.

examples:
  hydra-router promise mine --catalog mine
  hydra-router promise mine --catalog mine --outcome-model mine --within 0.02
  hydra-router promise mine --catalog mine --confidence 0.9 --json
"""
#: Numbers of queries that are looked at beside the set's own, as multiples of it.
_MORE = (0.5, 2.0, 4.0)


def add_verbs(verbs: Verbs) -> None:
    """Add the verb."""
    short = "find the cheapest setting whose quality can be promised"
    parser = verb(verbs, "promise", promise, short, _PROMISE)
    evalset_argument(parser)
    catalog_option(parser)
    parser.add_argument(
        "--outcome-model", type=OUTCOME_MODEL.place, metavar="MODEL", help="route by value"
    )
    within = "how far below the best single model, in quality from 0 to 1 (0.02: 2 points)"
    parser.add_argument("--within", type=float, default=0.02, metavar="Q", help=within)
    parser.add_argument("--confidence", type=float, default=0.95, metavar="P", help="0.95")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="order of the bets")
    bundle_option(parser)


def promise(options: argparse.Namespace) -> int:
    """Promise a setting, or say that none can be promised."""
    import numpy as np

    from hydra_core.choosing.sources.outcomes import outcomes_of_replay
    from hydra_core.choosing.sources.promise import forecast, walk
    from hydra_core.choosing.sources.promise import promise as calibrated
    from hydra_core.evalsets.evalset import load_evalset

    _check(options)
    catalog = open_catalog(options.catalog)
    evalset = load_evalset(existing(options.evalset))
    sweep, calibrated_on = _sweep(options, catalog, evalset)
    data = sweep.data
    taus, choice = walk(*_ranks(data))
    clusters = outcomes_of_replay(data, evalset).clusters
    rng = np.random.default_rng(options.seed)
    arguments = (data.pool.ids, data.quality, data.cost_usd, taus, choice)
    made = calibrated(
        *arguments,
        within=options.within,
        confidence=options.confidence,
        clusters=clusters,
        calibrated_on=calibrated_on,
        rng=rng,
    )
    n = len(data.query_ids)
    made = forecast(made, *arguments, [round(n * more) for more in _MORE], rng=rng)
    if options.json:
        print_json(made.numbers(sweep.rule.value))
    else:
        print(_text(made, sweep.rule.value))
    return 0


def _check(options: argparse.Namespace) -> None:
    for name, value in (("--within", options.within), ("--confidence", options.confidence)):
        if not (math.isfinite(value) and 0 < value < 1):
            raise MismatchError(f"{name} must lie between 0 and 1, such as 0.02; got {value:g}")


def _sweep(options: argparse.Namespace, catalog: Catalog, evalset: EvalSet) -> tuple[Sweep, str]:
    """The set under the rule asked for, and what it is calibrated on, in words."""
    from hydra_core.cli.evaluate import value_sweep
    from hydra_core.replay.sweep import sweep_catalog

    unseen = "queries that nothing was chosen on"
    if options.outcome_model is None and catalog.policy.rule.value != "value":
        scores = scores_for(evalset, catalog, options.bundle)
        sweep = sweep_catalog(evalset, catalog, scores, today=date.today())
        _require_unseen(sweep)
    else:
        sweep = by_value = value_sweep(options, catalog, evalset, cross_fitted=True)
        if by_value.outcome_model is None:
            _require_unseen(sweep)
        unseen = "cross-fitted predictions" if by_value.learned_here else unseen
    for note in sweep.data.notes:
        say(f"note: {note}")
    return sweep, unseen


def _require_unseen(sweep: Sweep) -> None:
    """Profiles or weights that were chosen on these queries cannot be tested on them.

    Raises:
        MismatchError: More than the knob was chosen on them.
    """
    if any(not one.knob_alone for one in sweep.chosen_here):
        raise MismatchError(
            f"the profiles or weights of catalog '{sweep.catalog.name}' were chosen on these "
            "queries: promise on others, or with an outcome model (its predictions are "
            "cross-fitted)"
        )


def _ranks(data: ReplayData) -> tuple[FloatArray, IntArray]:
    """Shortfalls and order of the models, under either rule."""
    from hydra_core.choosing.sources.one_rule import cost_order, returns_on_upgrading

    if data.predicted is None:
        shortfalls = data.shortfalls()
        return shortfalls, cost_order(shortfalls, data.pool.cost)
    returns = returns_on_upgrading(data.predicted.success, data.predicted.cost_usd)
    return returns, cost_order(returns, data.predicted.cost_usd)


def _text(made: Promise, rule: str) -> str:
    points, sure = 100 * made.within, 100 * made.confidence
    claim = f"at most {points:g} points below {made.baseline}, with {sure:g} % confidence"
    knob = made.numbers(rule)["knob"]["value"]
    lines = []
    if made.kept:
        at = (
            f"V = ${knob:.3g}"
            if rule == "value" and knob is not None
            else ("any larger V" if knob is None else f"tau = {knob:.4g}")
        )
        lines.append(
            f"Promised: {claim}. Set {at}: it saves {100 * made.saving:.0f} % of the cost."
        )
    else:
        lines.append(f"Nothing can be promised yet: {claim} needs more than {made.n:,} queries.")
    for one in made.forecast:
        lines.append(
            f"  with {one.queries:,} queries like these: saves {100 * one.saving:.0f} % on "
            f"average (promised in {100 * one.kept:.0f} % of draws)"
        )
    lines.append(f"Calibrated on {made.calibrated_on} ({made.n:,} independent queries).")
    lines.append("It does not hold under drift: watch the drift alarm.")
    return "\n".join(lines)
