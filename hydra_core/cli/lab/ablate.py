"""The verb ablate: what each part of reading a message, and each dimension, is worth."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.cli.options import (
    Verbs,
    bundle_option,
    catalog_option,
    evalset_argument,
    verb,
)
from hydra_core.cli.output import print_json, progress_bar, table
from hydra_core.cli.score import open_predictor
from hydra_core.cli.workspace import existing, open_catalog

if TYPE_CHECKING:
    from hydra_core.lab.ablation import AblatedReading


_ABLATE = """\
Scores an eval set again with fewer tokens read, without the signal prefix, and with other predictor
bundles. Prints how well the scores agree with labels (where the set has them) and which share of
the oracle's quality the router keeps at its present cost. For fewer dimensions see
`report ablation`.

examples:
  hydra-router lab ablate console_demo --catalog paper_five
  hydra-router lab ablate mine --catalog mine --against bundles/small --json
"""


def add_verbs(verbs: Verbs) -> None:
    """Add lab ablate."""
    parser = verb(verbs, "ablate", _ablate, "what each part of reading a message is worth", _ABLATE)
    evalset_argument(parser)
    catalog_option(parser)
    bundle_option(parser)
    other = "another bundle to compare with; may be given several times"
    parser.add_argument(
        "--against", type=Path, action="append", default=[], metavar="B", help=other
    )


def _ablate(options: argparse.Namespace) -> int:
    from datetime import date

    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.lab.ablation import reading_ablation, readings
    from hydra_core.predictor.bundle import load_bundle

    bundle = open_predictor(options.bundle).bundle
    others = [load_bundle(existing(path)) for path in options.against]
    evalset = load_evalset(existing(options.evalset))
    catalog = open_catalog(options.catalog)
    with progress_bar(evalset.name, unit=" messages") as step:
        found = reading_ablation(
            evalset, catalog, readings(bundle, others), today=date.today(), progress=step
        )
    if options.json:
        print_json({"evalset": evalset.name, "n": evalset.n, "readings": [*map(as_json, found)]})
    else:
        print(_text(found))
    return 0


def as_json(one: AblatedReading) -> dict[str, Any]:
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


def _text(found: tuple[AblatedReading, ...]) -> str:
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
