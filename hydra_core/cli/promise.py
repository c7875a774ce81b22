"""The verb promise: the cheapest setting whose quality can be promised."""

from __future__ import annotations

import argparse
import math
from datetime import date
from typing import TYPE_CHECKING

from hydra_core.base.errors import CatalogError, MismatchError
from hydra_core.cli.options import Verbs, verb, whole
from hydra_core.cli.output import say, show
from hydra_core.cli.score import scores_for
from hydra_core.cli.workspace import (
    CATALOG,
    OUTCOME_MODEL,
    catalog_text,
    open_catalog,
    open_evalset,
    require_account,
    require_new_catalog,
    write_catalog,
)

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog, Rule
    from hydra_core.choosing.sources.promise import Promise
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.replay.sweep import Sweep

_PROMISE = """find the cheapest setting whose quality can be promised
Finds the cheapest setting of the knob whose quality is at most so far below the best single model,
with the confidence you ask for (learn then test). Queries that an outcome model was learned on are
predicted by heads that have not seen them; so are those that success profiles were fitted to. With
--out the catalog is written at that setting, with the promise in its policy. The promise holds for
queries like these, not for other traffic.

examples:
  hydra-router promise other --catalog mine
  hydra-router promise mine --catalog mine --outcome-model mine --within 0.02
  hydra-router promise other --catalog mine --confidence 0.9 --json
  hydra-router promise other --catalog mine --out promised
"""
_TAKE = "take it into a catalog on Tune, or leave --out away"


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "promise", promise, _PROMISE)
    parser.shared("evalset", "--catalog")
    parser.option("--outcome-model", "MODEL", "route by value", type=OUTCOME_MODEL.place)
    said = "how far below the best single model, in quality from 0 to 1 (0.02: 2 points)"
    parser.option("--within", "Q", said, type=float, default=0.02)
    parser.option("--confidence", "P", "0.95", type=float, default=0.95)
    parser.option("--seed", "N", "order of the bets", type=whole, default=0)
    said = "write the catalog with the promise (name in the workspace, or a new YAML file)"
    parser.option("--out", "CATALOG", said, type=CATALOG.place)
    parser.flag("--force", "replace a file that is there")
    parser.shared("--bundle")


def promise(options: argparse.Namespace) -> None:
    from hydra_core.choosing.sources.promise import promise_on

    _check(options)
    catalog = open_catalog(options.catalog)
    sweep = _sweep(options, catalog, open_evalset(options.evalset))
    made = promise_on(
        sweep, within=options.within, confidence=options.confidence, seed=options.seed
    )
    if options.out is not None:
        _write(options, made, sweep.rule)
    out = None if options.out is None or not made.kept else str(options.out)
    show(options, {**made.numbers(sweep.rule), "path": out}, _text(made, sweep.rule))


def _check(options: argparse.Namespace) -> None:
    given = (("--within", options.within, "0.02"), ("--confidence", options.confidence, "0.95"))
    for name, value, example in given:
        if not (math.isfinite(value) and 0 < value < 1):
            raise MismatchError(
                f"{name} must lie between 0 and 1, such as {example}; got {value:g}"
            )
    if options.out is None:
        return
    require_account("MAKE_CATALOG")
    if options.outcome_model is not None:
        raise CatalogError.of(
            str(options.out), "needs a catalog that names its outcome model", _TAKE, place="--out"
        )
    require_new_catalog(options.out, force=options.force)


def _sweep(options: argparse.Namespace, catalog: Catalog, evalset: EvalSet) -> Sweep:
    from hydra_core.cli.evaluate import noted, value_sweep
    from hydra_core.replay.sweep import sweep_catalog

    if options.outcome_model is None and catalog.policy.rule.value != "value":
        scores = scores_for(evalset, catalog, options.bundle)
        return noted(sweep_catalog(evalset, catalog, scores, today=date.today()))
    return value_sweep(options, catalog, evalset, cross_fitted=True)


def _write(options: argparse.Namespace, made: Promise, rule: Rule) -> None:
    """The catalog at the promised setting, with the promise; nothing where none can be made."""
    from hydra_core.catalog.chosen_and_promised import with_promise

    knob = made.knob(rule)
    if knob is None:
        say("note: nothing was written: no setting that saves anything can be promised")
        return
    key = "value_usd" if rule.value == "value" else "tau"
    text = catalog_text(options.catalog)
    write_catalog(options.out, with_promise(text, "catalog", made.promised, (key, knob)))
    say(f"written to {options.out}")


def _text(made: Promise, rule: Rule) -> str:
    claim, knob = made.claim, made.knob(rule)
    if made.kept:
        at = "any larger V"
        if knob is not None:
            at = f"V = ${knob:.3g}" if rule.value == "value" else f"tau = {knob:.4g}"
        lines = [f"Promised: {claim}. Set {at}: it saves {100 * made.saving:.0f} % of the cost."]
    else:
        lines = [
            f"Nothing can be promised yet: {claim}. {made.n:,} independent queries are too few, or "
            "the loss is too large."
        ]
    lines += [
        f"  with {one.queries:,} independent queries like these: saves {100 * one.saving:.0f} % on "
        f"average (promised in {100 * one.kept:.0f} % of draws)"
        for one in made.forecast
    ]
    lines.append(f"Calibrated on {made.calibrated_on} ({made.n:,} independent queries).")
    lines.append("It holds for queries like these: Live says when the traffic has changed.")
    return "\n".join(lines)
