"""The verbs report evaluation, portability and ablation: documents about one policy."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date, datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.cli.evaluate import selection, shortfall_sweep, value_sweep
from hydra_core.cli.options import Grammar, Verbs, verb
from hydra_core.cli.output import say, show, table, value_and_ends
from hydra_core.cli.workspace import open_catalog, open_evalset

if TYPE_CHECKING:
    from hydra_core.base.intervals import Interval
    from hydra_core.base.types import Catalog
    from hydra_core.replay.metrics import PolicyMetrics
    from hydra_core.replay.sweep import Sweep
    from hydra_core.replay.verdict import Verdict


_EVALUATION = """one HTML file and a JSON file with the same figures
Writes the current evaluation as one HTML file that needs no network and prints to PDF: result,
frontier, policies with 95 % intervals, languages, fingerprints, what was tuned on what. A JSON
file with the same figures is written beside it.

example:
  hydra-router report evaluation mine --catalog mine --out report.html
"""
_PORTABILITY = """what adding, removing or repricing a model does
Replays changes to a catalog one by one; nothing is retrained. Each is compared with the catalog as
it is (for add: with the catalog without that model), on the same queries and at the same tau. The
result is that of the catalog after the change, against the best fixed mix of its pool.

examples:
  hydra-router report portability mine --catalog mine
  hydra-router report portability mine --catalog mine \\
      --event remove:gpt-5 --event reprice:gpt-5-mini=0.5,4
"""
_ABLATION = """the router on fewer dimensions
Replays the router on every subset of its dimensions. For each subset, tau is chosen on one half of
the queries so that the cost is the full policy's, and measured on the other half.

example:
  hydra-router report ablation mine --catalog mine
"""


def add_verbs(verbs: Verbs) -> None:
    parser = _report(verbs, "evaluation", _evaluation, _EVALUATION, "WRITE")
    parser.option("--out", "REPORT.html", type=Path, required=True)
    parser.add_argument("--tuned-on", default="", help="what tau was chosen on")
    parser.set_defaults(outcome_model=None)
    parser.shared("--fixed")
    parser = _report(verbs, "portability", _portability, _PORTABILITY)
    said = "remove:ID, add:ID or reprice:ID=IN,OUT; default: each model removed and added"
    parser.add_argument("--event", action="append", default=[], help=said)
    _report(verbs, "ablation", _ablation, _ABLATION)


def _report(
    verbs: Verbs,
    name: str,
    run: Callable[[argparse.Namespace], None],
    text: str,
    asks: str = "",
) -> Grammar:
    parser = verb(verbs, name, run, text, asks)
    parser.shared("evalset", "--catalog", "--tau", "--bundle")
    return parser


def _sweep(options: argparse.Namespace) -> tuple[Sweep, float]:
    """The set by the shortfall rule, said where the catalog routes by value."""
    evalset, catalog = open_evalset(options.evalset), open_catalog(options.catalog)
    if _by_value(options, catalog):
        say("note: the catalog routes by value; this report is by its tau")
    return shortfall_sweep(options, catalog, evalset)


def _by_value(options: argparse.Namespace, catalog: Catalog) -> bool:
    return catalog.policy.rule.value == "value" and options.tau is None


def _evaluated(options: argparse.Namespace) -> tuple[Sweep, float]:
    """The set by the catalog's own rule, or at the given tau."""
    catalog = open_catalog(options.catalog)
    if not _by_value(options, catalog):
        return _sweep(options)
    sweep = value_sweep(options, catalog, open_evalset(options.evalset), cross_fitted=True)
    return sweep, sweep.own_knob


def _evaluation(options: argparse.Namespace) -> None:
    from hydra_core.base.json_values import json_text
    from hydra_core.replay.evaluation import evaluate
    from hydra_core.replay.report import evaluation_html, report_document

    evaluation = evaluate(*_evaluated(options), selection=selection(options))
    made = datetime.now().astimezone()
    content = report_document(evaluation, made=made, tuned_on=options.tuned_on)
    options.out.write_text(evaluation_html(content), encoding="utf-8")
    data = options.out.with_suffix(".json")
    data.write_text(json_text(content) + "\n", encoding="utf-8")
    result = f"result: {evaluation.verdict.title}. {evaluation.verdict.text}"
    show(options, content, f"written to {options.out} and {data}\n{result}")


def _shown(value: Interval) -> str:
    ends = value.scaled(100.0).bounds("{:+.1f}".format, ", ") if value.known else "–"
    return f"{_known(value.value, '+')} [{ends}]"


def _result(found: Verdict) -> str:
    """The result, which is not known where it hangs on models without outcomes."""
    same = found.label.value == "no measurable difference"
    return "not known" if found.unknown and same else found.label.value


def _known(share: float, sign: str = "") -> str:
    """A share in percent without its sign of percent; a dash where there is none."""
    return f"{100 * share:{sign}.1f}" if isfinite(share) else "–"


def _retained(qr: Interval, policy: PolicyMetrics) -> str:
    """A QR in percent, the least possible where queries go to models without outcomes."""
    return ("≥ " if policy.unknown else "") + _known(qr.value)


def _portability(options: argparse.Namespace) -> None:
    from hydra_core.base.types import Selection
    from hydra_core.replay.catalog_changes import default_events, parse_event, portability
    from hydra_core.replay.replay import catalog_scores

    sweep, tau = _sweep(options)
    catalog, evalset = sweep.catalog, sweep.evalset
    scores = catalog_scores(evalset, catalog)
    events = tuple(parse_event(text) for text in options.event) or default_events(
        sweep.catalog, sweep.data
    )
    chosen = sweep.selection(tau)
    critical = sweep.band().critical if chosen is Selection.LOOKED else None
    replays = portability(
        catalog, evalset, scores, events,
        today=date.today(), tau=tau, selection=chosen, critical=critical,
    )  # fmt: skip
    document = [
        {
            "event": str(one.event),
            "qr_before": value_and_ends(one.comparison.retained[0]),
            "qr_after": value_and_ends(one.comparison.retained[1]),
            "quality": value_and_ends(one.comparison.quality),
            "savings": value_and_ends(one.comparison.savings),
            "moved": one.comparison.moved,
            "verdict": one.verdict.label.value,
            "notes": list(one.notes),
        }
        for one in replays
    ]
    rows = [
        [
            str(one.event),
            *map(_retained, one.comparison.retained, (one.before, one.after)),
            _shown(one.comparison.quality),
            _shown(one.comparison.savings),
            f"{100 * one.comparison.moved:.0f}",
            _result(one.verdict),
        ]
        for one in replays
    ]
    head = [
        "event",
        "QR before",
        "after",
        "quality, pp",
        "cost saved, %",
        "moved, %",
        "after: result",
    ]
    lines = [
        f"{evalset.name}: catalog {catalog.name}, tau {tau:g}, nothing retrained",
        table(head, rows),
        "QR, before and after, is against one oracle: the best of either pool",
        "the result is that after the change, against the best fixed mix of that pool",
        *dict.fromkeys(f"note: {note}" for one in replays for note in one.notes),
    ]
    show(options, document, "\n".join(lines))


def _ablation(options: argparse.Namespace) -> None:
    from hydra_core.lab.ablation import ablation

    sweep, tau = _sweep(options)
    catalog, evalset = sweep.catalog, sweep.evalset
    ablated = ablation(sweep.data, catalog.dimensions, sweep.weights, catalog.bands, tau)
    document = [
        {
            "kept": list(one.kept),
            "qr": value_and_ends(one.metrics.qr),
            "mean_cost_usd": one.metrics.mean_cost_usd.value,
            "against_full": value_and_ends(one.against_full.quality),
            "verdict": one.verdict.label.value,
        }
        for one in ablated
    ]
    rows = [
        [
            " + ".join(one.kept),
            str(len(one.kept)),
            _retained(one.metrics.qr, one.metrics),
            f"{one.metrics.mean_cost_usd.value:.4g}",
            _shown(one.against_full.quality),
            _result(one.verdict),
        ]
        for one in ablated
    ]
    first = f"{evalset.name}: catalog {catalog.name}, cost limit of tau {tau:g}, cross-fitted"
    head = ["kept", "K", "QR", "USD/query", "against all, pp", "result"]
    show(options, document, f"{first}\n{table(head, rows)}")
