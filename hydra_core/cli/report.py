"""The verbs report evaluation, report portability and report ablation."""

from __future__ import annotations

import argparse
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.cli.evaluate import loaded_sweep, selection
from hydra_core.cli.grammar import add_fixed, verb
from hydra_core.cli.output import print_json, table

if TYPE_CHECKING:
    from hydra_core.replay.significance import Interval


_EVALUATION = """\
Writes the current evaluation as one HTML file that needs no network and prints to PDF: verdict,
frontier, policies with 95 % intervals, languages, fingerprints, what was tuned on what. A JSON
file with the same figures is written beside it.

example:
  python -m hydra_core report evaluation sample_data/paper_swebench \\
      --catalog catalog/paper_five_published.yaml --out report.html
"""
_PORTABILITY = """\
Replays catalog events one by one, nothing retrained: each is compared with the catalog as it is
(for add: with the catalog without that model), on the same queries and at the same tau.

examples:
  python -m hydra_core report portability evalsets/mine --catalog pool.yaml
  python -m hydra_core report portability evalsets/mine --catalog pool.yaml \\
      --event remove:gpt-5 --event reprice:gpt-5-mini=0.5,4
"""
_ABLATION = """\
Replays the router on every subset of its dimensions. Tau is chosen on one half for the full
policy's cost and measured on the other.

example:
  python -m hydra_core report ablation evalsets/mine --catalog pool.yaml
"""


def add_report(verbs: Any) -> None:  # noqa: ANN401 (argparse has no public type)
    """Add the verb and its three kinds."""
    kinds = verbs.add_parser("report", help="evaluation, portability or ablation as a document")
    kinds = kinds.add_subparsers(metavar="KIND", required=True)
    for name, run, short, long in (
        ("evaluation", _evaluation, "one HTML file and its JSON twin", _EVALUATION),
        ("portability", _portability, "what catalog events do", _PORTABILITY),
        ("ablation", _ablation, "the router on fewer dimensions", _ABLATION),
    ):
        asks = "WRITE" if name == "evaluation" else ""
        parser = verb(kinds, name, run, short, long, asks)
        parser.add_argument("evalset", type=Path, metavar="DIR")
        parser.add_argument("--catalog", type=Path, required=True, metavar="C.yaml")
        parser.add_argument("--tau", type=float, metavar="T", help="default: the catalog's")
        parser.add_argument("--bundle", type=Path, metavar="B", help="predictor bundle folder")
        if name == "evaluation":
            parser.add_argument("--out", type=Path, metavar="REPORT.html", required=True)
            parser.add_argument("--tuned-on", default="", help="what tau was chosen on")
            add_fixed(parser)
        if name == "portability":
            help_text = "remove:ID, add:ID or reprice:ID=IN,OUT; default: each removed and added"
            parser.add_argument("--event", action="append", default=[], help=help_text)


def _evaluation(options: argparse.Namespace) -> int:
    from hydra_core.base.json_values import json_text
    from hydra_core.replay.evaluation import evaluate
    from hydra_core.replay.report.html import evaluation_html, report_document

    found = evaluate(*loaded_sweep(options), selection=selection(options))
    made = datetime.now().astimezone()
    content = report_document(found, made=made, tuned_on=options.tuned_on)
    options.out.write_text(evaluation_html(content), encoding="utf-8")
    twin = options.out.with_suffix(".json")
    twin.write_text(json_text(content) + "\n", encoding="utf-8")
    if options.json:
        print_json(content)
    else:
        print(f"written to {options.out} and {twin}")
        print(f"verdict: {found.verdict.label}. {found.verdict.text}")
    return 0


def _shown(value: Interval, scale: float = 100.0) -> str:
    return f"{scale * value.value:+.1f} [{scale * value.lo:+.1f}, {scale * value.hi:+.1f}]"


def _triple(value: Interval) -> list[float]:
    return [value.value, value.lo, value.hi]


def _portability(options: argparse.Namespace) -> int:
    from hydra_core.replay.portability import default_events, parse_event, portability
    from hydra_core.replay.replay import catalog_scores

    sweep, tau = loaded_sweep(options)
    catalog, evalset = sweep.catalog, sweep.evalset
    scores = catalog_scores(evalset, catalog)
    events = tuple(parse_event(text) for text in options.event) or default_events(sweep.data)
    found = portability(catalog, evalset, scores, events, today=date.today(), tau=tau)
    if options.json:
        print_json(
            [
                {
                    "event": str(one.event),
                    "qr_before": _triple(one.qr_before),
                    "qr_after": _triple(one.qr_after),
                    "quality": _triple(one.comparison.quality),
                    "savings": _triple(one.comparison.savings),
                    "moved": one.moved,
                    "verdict": one.verdict.label.value,
                    "notes": list(one.notes),
                }
                for one in found
            ]
        )
        return 0
    rows = [
        [
            str(one.event),
            f"{100 * one.qr_before.value:.1f}",
            f"{100 * one.qr_after.value:.1f}",
            _shown(one.comparison.quality),
            _shown(one.comparison.savings),
            f"{100 * one.moved:.0f}",
            one.verdict.label.value,
        ]
        for one in found
    ]
    head = ["event", "QR before", "after", "quality, pp", "cost saved, %", "moved, %", "verdict"]
    print(f"{evalset.name}: catalog {catalog.name}, tau {tau:g}, nothing retrained")
    print(table(head, rows))
    print("QR, before and after, is against one oracle: the best of either pool")
    for note in dict.fromkeys(note for one in found for note in one.notes):
        print(f"note: {note}")
    return 0


def _ablation(options: argparse.Namespace) -> int:
    from hydra_core.lab.ablation import ablation

    sweep, tau = loaded_sweep(options)
    catalog, evalset = sweep.catalog, sweep.evalset
    found = ablation(sweep.data, catalog.dimensions, sweep.weights, catalog.bands, tau)
    if options.json:
        print_json(
            [
                {
                    "kept": list(one.kept),
                    "qr": _triple(one.metrics.qr),
                    "mean_cost_usd": one.metrics.mean_cost_usd.value,
                    "against_full": _triple(one.against_full.quality),
                    "verdict": one.verdict.label.value,
                }
                for one in found
            ]
        )
        return 0
    rows = [
        [
            " + ".join(one.kept),
            str(len(one.kept)),
            f"{100 * one.metrics.qr.value:.1f}",
            f"{one.metrics.mean_cost_usd.value:.4g}",
            _shown(one.against_full.quality),
            one.verdict.label.value,
        ]
        for one in found
    ]
    print(f"{evalset.name}: catalog {catalog.name}, cost limit of tau {tau:g}, cross-fitted")
    print(table(["kept", "K", "QR", "USD/query", "against all, pp", "verdict"], rows))
    return 0
