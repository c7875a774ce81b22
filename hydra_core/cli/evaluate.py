"""The verb evaluate: replay an eval set under a catalog and print what routing would do."""

from __future__ import annotations

import argparse
import math
from datetime import date, datetime
from typing import TYPE_CHECKING

from hydra_core.base.errors import CatalogError, EvalSetError, Problem
from hydra_core.base.spelling import usd
from hydra_core.cli.output import existing, print_json, say, table
from hydra_core.cli.scoring import scores_for

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog, Selection
    from hydra_core.replay.evaluation import Evaluation
    from hydra_core.replay.metrics import PolicyMetrics
    from hydra_core.replay.replay import ReplayData
    from hydra_core.replay.sweep import Sweep


_KNOBS = {"shortfall": "tau", "value": "one more resolved query worth USD"}


def evaluate(options: argparse.Namespace) -> int:
    """Replay an eval set under a catalog."""
    from hydra_core.catalog.schema import load_catalog
    from hydra_core.cli.evaluate_rules import value_sweep
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.replay.evaluation import evaluate as evaluate_policy
    from hydra_core.replay.report.document import evaluation_document

    catalog = load_catalog(existing(options.catalog))
    evalset = load_evalset(existing(options.evalset))
    by_value = value_sweep(options, catalog, evalset)
    sweep, knob = by_value or loaded_sweep(options, options.weights)
    baseline = _baseline(options.baseline, sweep.data)
    found = evaluate_policy(sweep, knob, baseline, selection=selection(options))
    if options.table is not None:
        from hydra_core.cli.evaluate_table import print_table

        print_table(options, found)
    elif options.json:
        made = datetime.now().astimezone()
        print_json(evaluation_document(found, made=made), indent=None)
    else:
        print(_text(found))
    return 0


def selection(options: argparse.Namespace) -> Selection | None:
    """Fixed beforehand where the operator says so; None leaves it to what the policy is."""
    from hydra_core.base.types import Selection

    return Selection.FIXED if options.fixed else None


def loaded_sweep(options: argparse.Namespace, weights: str | None = None) -> tuple[Sweep, float]:
    """The eval set replayed under the catalog, and the tau to look at; notes go to stderr."""
    from hydra_core.catalog.schema import load_catalog
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.replay.pricing import Prices
    from hydra_core.replay.sweep import sweep_catalog

    catalog = load_catalog(existing(options.catalog))
    evalset = load_evalset(existing(options.evalset))
    tau = checked_tau(options.tau, catalog)
    stored = _weights(weights, catalog)
    scores = scores_for(evalset, catalog, options.bundle)
    prices = Prices(getattr(options, "costs", Prices.TODAY))
    sweep = sweep_catalog(evalset, catalog, scores, stored, today=date.today(), prices=prices)
    for note in sweep.data.notes:
        say(f"note: {note}")
    return sweep, tau


def checked_tau(given: float | None, catalog: Catalog) -> float:
    """The tau to use.

    Raises:
        CatalogError: It is negative or not a number.
    """
    tau = catalog.policy.tau if given is None else given
    if not (math.isfinite(tau) and tau >= 0):
        raise CatalogError("--tau", [Problem("", f"must be a number >= 0, got {tau:g}")])
    return tau


def _weights(text: str | None, catalog: Catalog) -> tuple[float, ...] | None:
    """Stored weights from `r,c,d,t`; `pool` checks their number and sign."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        remedy = f"one number for each of {', '.join(catalog.dimensions)}, such as 1,1,0.5,1"
        raise CatalogError(
            "--weights", [Problem("", f"{text!r} is not a list of numbers", remedy)]
        ) from error


def _baseline(name: str | None, data: ReplayData) -> str | None:
    if name is None or name in data.pool.ids:
        return name
    message = f"{name!r} is not among the replayed models"
    raise EvalSetError("--baseline", [Problem("", message, f"one of {', '.join(data.pool.ids)}")])


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _text(found: Evaluation) -> str:
    evalset, router = found.sweep.evalset, found.router
    flags = [
        text
        for flag, text in (
            (evalset.synthetic, "SYNTHETIC: outcomes were simulated"),
            (evalset.cost_estimated, "costs were estimated from prices"),
        )
        if flag
    ]
    ids = found.sweep.data.pool.ids
    policies = {**{one: found.constants[one] for one in ids}, "oracle": found.oracle}
    policies["router"] = router
    header = ["", "resolved", "quality", "USD/query", "CS"]
    ranges = "; ".join(
        f"{name} {_percent(one.value)} [{_percent(one.lo)}, {_percent(one.hi)}]"
        for name, one in (
            ("quality", router.quality),
            ("QR", router.qr),
            ("CS", router.cs),
            ("misroute", router.misroute),
        )
    )
    shares = ", ".join(f"{model} {_percent(share)}" for model, share in router.shares.items())
    return "\n".join(
        [
            f"{evalset.name}: {router.n} queries, catalog {found.sweep.catalog.name}, "
            f"{_KNOBS[found.sweep.rule.value]} {found.knob:g}",
            *flags,
            "",
            table(header, [_row(name, one) for name, one in policies.items()]),
            "",
            f"router, 95 % intervals: {ranges}",
            f"traffic: {shares}",
            f"costs: {found.sweep.data.costs}",
            f"savings are against {found.baseline}",
            *_conversations(found),
            f"verdict: {found.verdict.label}. {found.verdict.text}",
            *filter(None, [found.caution]),
        ]
    )


def _conversations(found: Evaluation) -> list[str]:
    """Every sticky mode on whole conversations, or why replay is per query."""
    from hydra_core.replay.conversations import replay_conversations, why_per_query

    played = replay_conversations(found.sweep, found.knob, found.baseline)
    if played is None:
        return [why_per_query(found.sweep)]
    rows = [
        [
            one.mode.value,
            _percent(one.quality.value),
            f"{one.usd_per_turn.value:.4g}",
            f"{_percent(one.cs.value)} [{_percent(one.cs.lo)}, {_percent(one.cs.hi)}]",
            _percent(one.cached_share),
            f"{one.switches:.2f}",
            f"{one.lost_usd:.4g}",
        ]
        for one in played.modes
    ]
    head = ["sticky mode", "quality", "USD/turn", "CS", "cache reads", "switches", "lost, USD"]
    return [
        f"{played.turns:,} turns of {played.conversations:,} whole conversations "
        f"({played.left_out:,} left out); CS against {played.strong} with a warm cache; switches "
        "and what they lost per conversation:",
        table(head, rows),
        *(
            f"no cached price is known of {name}: it reads no cache"
            for name in played.without_price
        ),
    ]


def _row(name: str, one: PolicyMetrics) -> list[str]:
    return [
        name,
        f"{one.resolved}/{one.n}",
        _percent(one.quality.value),
        usd(one.mean_cost_usd.value)[1:],
        _percent(one.cs.value),
    ]
