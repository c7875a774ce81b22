"""The verb ablate: what each part of reading a message, and each dimension, is worth."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.cli.grammar import verb
from hydra_core.cli.output import existing, open_predictor, print_json, progress_bar, table

if TYPE_CHECKING:
    from hydra_core.lab.ablation import AblatedReading


_ABLATE = """\
Scores an eval set again with fewer tokens seen, without the signal prefix, and with other predictor
bundles; prints how well the scores agree with labels (where the set has them) and what the router
keeps of the oracle's quality at the cost it has as it is. Leaving dimensions out is
`report ablation`.

examples:
  python -m hydra_core ablate sample_data/console_demo --catalog catalog/paper_five.yaml
  python -m hydra_core ablate evalsets/mine --catalog pool.yaml --against bundles/small --json
"""


def add_ablate(verbs: Any) -> None:  # noqa: ANN401 (argparse has no public type)
    """Add `ablate` to the verbs."""
    parser = verb(verbs, "ablate", _ablate, "what each part of reading a message is worth", _ABLATE)
    parser.add_argument("evalset", type=Path, metavar="DIR")
    parser.add_argument("--catalog", type=Path, required=True, metavar="C.yaml")
    parser.add_argument("--bundle", type=Path, metavar="B", help="default: the shipped one")
    other = "another bundle to compare with; may be given several times"
    parser.add_argument(
        "--against", type=Path, action="append", default=[], metavar="B", help=other
    )


def _ablate(options: argparse.Namespace) -> int:
    from datetime import date

    from hydra_core.catalog.schema import load_catalog
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.lab.ablation import reading_ablation, readings
    from hydra_core.predictor.bundle import load_bundle

    bundle = open_predictor(options.bundle).bundle
    others = [load_bundle(existing(path)) for path in options.against]
    evalset = load_evalset(existing(options.evalset))
    catalog = load_catalog(existing(options.catalog))
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
