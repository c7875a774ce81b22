"""The verb probe: what claims of difficulty and slips do to a router's choices."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.cli.grammar import verb
from hydra_core.cli.output import existing, open_predictor, print_json, progress_bar, table

if TYPE_CHECKING:
    from hydra_core.evaluation.study.probe import ProbeReport

__all__ = ["add_probe"]

_PROBE = """\
Appends claims of difficulty to every message of an eval set that routes to a cheap model, in its
own language and in English, and counts how often that buys one of the two dearest models (attack
success) and what it costs. Case and typing slips must not change the model either.

Five families come with HyDRA (the paper's); --suffixes adds your own: a text file with one a line,
or YAML family: {en: ..., de: ...}.

examples:
  python -m hydra_core probe sample_data/console_demo --catalog catalog/paper_five.yaml
  python -m hydra_core probe evalsets/mine --catalog pool.yaml --tau 0.05 --suffixes own.txt --json
"""


def add_probe(verbs: Any) -> None:  # noqa: ANN401 (argparse has no public type)
    """Add `probe` to the verbs."""
    short = "attack a router with claims of difficulty"
    parser = verb(verbs, "probe", _probe, short, _PROBE)
    parser.add_argument("evalset", type=Path, metavar="DIR")
    parser.add_argument("--catalog", type=Path, required=True, metavar="C.yaml")
    parser.add_argument("--tau", type=float, metavar="T", help="threshold (default: the catalog's)")
    parser.add_argument("--suffixes", type=Path, metavar="FILE", help="further suffixes")
    parser.add_argument("--bundle", type=Path, metavar="B", help="default: the shipped one")


def _probe(options: argparse.Namespace) -> int:
    from datetime import date

    import numpy as np

    from hydra_core.catalog.binding import rebind
    from hydra_core.catalog.profiles import pool
    from hydra_core.catalog.schema import parse_catalog, read_catalog_text
    from hydra_core.cli.policies.evaluate import checked_tau
    from hydra_core.evaluation.evalset.evalset import load_evalset
    from hydra_core.evaluation.study.probe import own_suffixes, probe, remembering

    predictor = open_predictor(options.bundle)
    bundle = predictor.bundle
    text = read_catalog_text(existing(options.catalog))
    text = rebind(text, bundle.name, bundle.fingerprint, bundle.bands)
    catalog = parse_catalog(text, options.catalog.name)
    evalset = load_evalset(existing(options.evalset))
    own = own_suffixes(existing(options.suffixes)) if options.suffixes else None
    texts = evalset.require_texts("a probe").tolist()
    with progress_bar(options.evalset.name) as step:
        score = remembering(lambda part: predictor.predict_batches(part).requirements, step,
                            len(texts) * (4 + 2 * (5 + len(own or ()))))  # fmt: skip
        found = probe(
            score, pool(catalog, today=date.today()), checked_tau(options.tau, catalog), texts,
            evalset.queries["language"].astype(str).tolist(), own=own, rng=np.random.default_rng(5),
        )  # fmt: skip
    if options.json:
        print_json(as_json(found))
    else:
        print(_text(found))
    return 0


def as_json(found: ProbeReport) -> dict[str, Any]:
    """The figures as plain values."""
    return {
        "tau": found.tau,
        "messages": found.n,
        "cheap": found.cheap,
        "attacks": [
            {"family": row.family, "group": row.group, "n": row.n, "success": row.rate,
             "suffix": "localised" if row.localised else "english",
             "interval": list(row.interval), "cost_ratio": row.cost_ratio}
            for row in found.attacks
        ],
        "flips": [
            {"change": row.change, "n": row.n, "rate": row.rate.value,
             "interval": [row.rate.lo, row.rate.hi]}
            for row in found.flips
        ],
    }  # fmt: skip


def _text(found: ProbeReport) -> str:
    rows = [
        [row.family, "own" if row.localised else "English", str(row.n), f"{row.rate:.1%}",
         f"{row.interval[0]:.1%} to {row.interval[1]:.1%}", f"{row.cost_ratio:.3f}"]
        for row in found.attacks
        if row.group == "all"
    ]  # fmt: skip
    flips = [
        [row.change, str(row.n), f"{row.rate.value:.1%}", f"{row.rate.lo:.1%} to {row.rate.hi:.1%}"]
        for row in found.flips
    ]
    return "\n".join(
        [
            f"{found.n} messages at tau {found.tau:g}",
            "",
            table(["suffixes", "language", "attacked", "success", "95 %", "cost ratio"], rows),
            "",
            table(["change", "messages", "other model", "95 %"], flips),
        ]
    )
