"""The verbs lab probe and lab ablate: what a change of the text, or of the reading, does."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import progress_bar, show, table
from hydra_core.cli.score import open_predictor
from hydra_core.cli.workspace import CATALOG, existing, open_catalog, open_evalset

if TYPE_CHECKING:
    from hydra_core.base.intervals import Interval
    from hydra_core.base.types import Catalog
    from hydra_core.lab.ablation import AblatedReading
    from hydra_core.lab.robustness.findings import Findings


_PROBE = """attack a router with claims of difficulty
Appends claims of difficulty to every message of an eval set that routes to a cheap model, in its
own language and in English. Counts how often the claim gets one of the two most expensive models
(attack success) and what that costs. Upper case, typing errors and, where the set has several (a
cluster), another wording of the same task must not change the model either. The catalog's rule
decides, shortfall or value.

Eight families come with HyDRA (five as in the paper); --suffixes adds your own: a text file with
one a line, or YAML family: {en: ..., de: ...}.

examples:
  hydra-router lab probe console_demo --catalog paper_five
  hydra-router lab probe mine --catalog mine --tau 0.05 --suffixes own.txt --json
"""
_ABLATE = """what each part of reading a message is worth
Scores an eval set again with fewer tokens read, without the signal prefix, and with other predictor
bundles. Prints how well the scores agree with labels (where the set has them) and which share of
the oracle's quality the router keeps at its present cost. For fewer dimensions see
`report ablation`.

examples:
  hydra-router lab ablate console_demo --catalog paper_five
  hydra-router lab ablate mine --catalog mine --against bundles/small --json
"""


def add_verbs(verbs: Verbs) -> None:
    """Add lab probe and lab ablate."""
    parser = verb(verbs, "probe", _probe, _PROBE)
    parser.shared("evalset", "--catalog", "--tau")
    said = "value of one more resolved query, for the value rule (default: the catalog's)"
    parser.option("--value-usd", "V", said, type=float)
    parser.option("--suffixes", "FILE", "further suffixes", type=Path)
    parser.shared("--bundle")
    parser = verb(verbs, "ablate", _ablate, _ABLATE)
    parser.shared("evalset", "--catalog", "--bundle")
    said = "another bundle to compare with; may be given several times"
    parser.option("--against", "B", said, type=Path, action="append", default=[])


def _probe(options: argparse.Namespace) -> None:
    from hydra_core.lab.robustness.attack import load_probes, other_wordings, set_messages
    from hydra_core.lab.robustness.probe import bound_catalog, cheap_at, own_suffixes, probed
    from hydra_core.lab.robustness.probe import routed as routes

    predictor = open_predictor(options.bundle)
    catalog = bound_catalog(existing(CATALOG.find(options.catalog)), predictor.bundle)
    knob = _knob(options, catalog)
    evalset = open_evalset(options.evalset)
    texts, languages = set_messages(evalset)
    own = own_suffixes(existing(options.suffixes)) if options.suffixes else {}
    with progress_bar(evalset.name, unit=" messages") as step:
        found = probed(predictor, texts, languages, {**load_probes(), **own}, step,
                       other_wordings(evalset), cheap_at(catalog, knob))  # fmt: skip
    routed = routes(found, catalog)
    at, by_value = routed.at(knob), routed.valuer is not None
    show(options, as_json(at, by_value=by_value), _text(at, by_value=by_value))


def _knob(options: argparse.Namespace, catalog: Catalog) -> float:
    from hydra_core.base.errors import CatalogError, Problem
    from hydra_core.base.types import Rule
    from hydra_core.cli.evaluate import checked_tau

    by_value = catalog.policy.rule is Rule.VALUE
    given, other = options.tau, options.value_usd
    if (other if not by_value else given) is not None:
        name = "--tau" if by_value else "--value-usd"
        remedy = f"give {'--value-usd' if by_value else '--tau'}"
        problem = Problem("", f"is not what rule '{catalog.policy.rule}' goes by", remedy)
        raise CatalogError(name, [problem])
    if not by_value:
        return checked_tau(given, catalog)
    value = catalog.policy.value_usd if other is None else other
    if value is None or not value > 0:
        raise CatalogError("--value-usd", [Problem("", f"must be > 0 USD, got {value}")])
    return float(value)


def as_json(found: Findings, *, by_value: bool) -> dict[str, Any]:
    """The figures as plain values."""
    return {
        "value_usd" if by_value else "tau": found.knob,
        "messages": found.n,
        "cheap": found.cheap,
        "attacks": [
            {"family": row.family, "group": row.group, "n": row.n, "success": row.success.value,
             "suffix": "localised" if row.localised else "english",
             "interval": [row.success.lo, row.success.hi], "cost_ratio": row.cost_ratio}
            for row in found.attacks
        ],
        "flips": [
            {"change": row.change, "n": row.n, "rate": row.rate.value,
             "interval": [row.rate.lo, row.rate.hi]}
            for row in found.flips
        ],
    }  # fmt: skip


def _share(rate: Interval) -> tuple[str, str]:
    """A share and its interval; dashes where nothing was tried."""
    if math.isnan(rate.value):
        return "–", "–"
    return f"{rate.value:.1%}", f"{rate.lo:.1%} to {rate.hi:.1%}"


def _text(found: Findings, *, by_value: bool) -> str:
    rows = [
        [row.family, "own" if row.localised else "English", str(row.n), *_share(row.success),
         f"{row.cost_ratio:.3f}" if row.n else "–"]
        for row in found.attacks
        if row.group == "all"
    ]  # fmt: skip
    flips = [[row.change, str(row.n), *_share(row.rate)] for row in found.flips]
    knob = f"V ${found.knob:g}" if by_value else f"tau {found.knob:g}"
    return "\n".join(
        [
            f"{found.n} messages at {knob}",
            "",
            table(["suffixes", "language", "attacked", "success", "95 %", "cost ratio"], rows),
            "",
            table(["change", "messages", "other model", "95 %"], flips),
        ]
    )


def _ablate(options: argparse.Namespace) -> None:
    from datetime import date

    from hydra_core.lab.ablation import reading_ablation, readings
    from hydra_core.predictor.bundle import load_bundle

    bundle = open_predictor(options.bundle).bundle
    others = [load_bundle(existing(path)) for path in options.against]
    evalset = open_evalset(options.evalset)
    catalog = open_catalog(options.catalog)
    with progress_bar(evalset.name, unit=" messages") as step:
        found = reading_ablation(
            evalset, catalog, readings(bundle, others), today=date.today(), progress=step
        )
    readings_json = [_reading_json(one) for one in found]
    document = {"evalset": evalset.name, "n": evalset.n, "readings": readings_json}
    show(options, document, _readings_text(found))


def _reading_json(one: AblatedReading) -> dict[str, Any]:
    """The figures as plain values."""
    difference = one.against_first.qr
    return {
        "name": one.name,
        "pearson": one.pearson,
        "mae": one.mae,
        "qr": one.metrics.qr.value,
        "mean_cost_usd": one.metrics.mean_cost_usd.value,
        "qr_difference": difference.value,
        "interval": [difference.lo, difference.hi],
    }


def _readings_text(found: tuple[AblatedReading, ...]) -> str:
    rows = [
        [one.name, _number(one.pearson), _number(one.mae), f"{100 * one.metrics.qr.value:.1f} %",
         f"${one.metrics.mean_cost_usd.value:.4g}",
         f"{100 * one.against_first.qr.value:+.1f} ({100 * one.against_first.qr.lo:+.1f} to "
         f"{100 * one.against_first.qr.hi:+.1f})"]
        for one in found
    ]  # fmt: skip
    return table(["reading", "Pearson", "MAE", "QR", "cost", "QR against the first, pp"], rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
