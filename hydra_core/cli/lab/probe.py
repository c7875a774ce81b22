"""The verb lab probe: what claims of difficulty and typing errors do to a router's choices."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.cli.options import (
    Verbs,
    bundle_option,
    catalog_option,
    evalset_argument,
    tau_option,
    verb,
)
from hydra_core.cli.output import print_json, progress_bar, table
from hydra_core.cli.score import open_predictor
from hydra_core.cli.workspace import CATALOG, existing

if TYPE_CHECKING:
    from hydra_core.base.intervals import Interval
    from hydra_core.base.types import Catalog
    from hydra_core.lab.robustness.findings import Findings


_PROBE = """\
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


def add_verbs(verbs: Verbs) -> None:
    """Add lab probe."""
    short = "attack a router with claims of difficulty"
    parser = verb(verbs, "probe", _probe, short, _PROBE)
    evalset_argument(parser)
    catalog_option(parser)
    tau_option(parser)
    value = "value of one more resolved query, for the value rule (default: the catalog's)"
    parser.add_argument("--value-usd", type=float, metavar="V", help=value)
    parser.add_argument("--suffixes", type=Path, metavar="FILE", help="further suffixes")
    bundle_option(parser)


def _probe(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.lab.robustness.attack import load_probes, other_wordings, set_messages
    from hydra_core.lab.robustness.probe import bound_catalog, cheap_at, own_suffixes, probed
    from hydra_core.lab.robustness.probe import routed as routes

    predictor = open_predictor(options.bundle)
    catalog = bound_catalog(existing(CATALOG.find(options.catalog)), predictor.bundle)
    knob = _knob(options, catalog)
    evalset = load_evalset(existing(options.evalset))
    texts, languages = set_messages(evalset)
    own = own_suffixes(existing(options.suffixes)) if options.suffixes else {}
    with progress_bar(evalset.name, unit=" messages") as step:
        found = probed(predictor, texts, languages, {**load_probes(), **own}, step,
                       other_wordings(evalset), cheap_at(catalog, knob))  # fmt: skip
    routed = routes(found, catalog)
    if options.json:
        print_json(as_json(routed.at(knob), by_value=routed.valuer is not None))
    else:
        print(_text(routed.at(knob), by_value=routed.valuer is not None))
    return 0


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
