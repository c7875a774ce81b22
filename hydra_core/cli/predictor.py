"""The verbs of lab that check a bundle: against labels, ratings, attacks, and with less to read."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import EvalSetError
from hydra_core.cli.options import Verbs, verb, whole
from hydra_core.cli.output import CannotRunError, print_json, progress_bar, say, show, table
from hydra_core.cli.score import open_predictor
from hydra_core.cli.workspace import CATALOG, EVALSET, existing, open_catalog, open_evalset, shown

if TYPE_CHECKING:
    from hydra_core.base.intervals import Interval
    from hydra_core.base.types import Catalog
    from hydra_core.lab.ablation import AblatedReading
    from hydra_core.lab.audit.recalibrate import Recalibration, ScriptPart
    from hydra_core.lab.robustness.findings import Findings


_PARTS = ("before", "after", "bias_before", "bias_after")
_EVALUATE_PREDICTOR = """measure a bundle on labelled messages
Measures a predictor bundle on labelled messages: one JSON object a line with "id", "text", "lang"
and the label of each dimension in [0, 1]. In the intervals of --json, messages of one "cluster",
such as translations of one task, are drawn together; those without one count as independent.

examples:
  hydra-router lab evaluate-predictor labelled.jsonl --json
  hydra-router lab evaluate-predictor labelled.jsonl --bundle bundles/compact-2
"""
_RECALIBRATE = """bring a bundle's scores onto the scale of human ratings
Fits one monotone curve per dimension from a bundle's scores to human ratings. Shows the error
before and after on messages that the curve was not fitted on (cross-fitted, translations kept
together). Writes a copy of the bundle that scores through the curves, with score bands and a
fingerprint of its own. Move catalogs to it with `rebind`, and tune tau anew.

Messages of a writing system (latin, cjk, cyrillic, arabic, other) get a curve of their own in a
dimension where at least 40 of them are rated (translations count once) and their cross-fitted error
is more than 2 % lower with it than with the common curve, the whole 95 % interval of the difference
included. The second table says which did.

RATINGS.csv is what Eval sets > Label quality exports: query_id, rater, and a column per dimension
with ratings from 1 to 5.

examples:
  hydra-router lab recalibrate ratings.csv --evalset mine --dry-run
  hydra-router lab recalibrate ratings.csv --evalset mine --out bundles/recalibrated
"""


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "evaluate-predictor", _evaluate, _EVALUATE_PREDICTOR)
    parser.option("labelled", "LABELLED.jsonl", type=Path)
    parser.option("--resamples", "N", "bootstrap, 0: no intervals", type=whole, default=1000)
    parser.shared("--bundle")
    parser = verb(verbs, "recalibrate", _recalibrate, _RECALIBRATE, "WRITE")
    parser.option("ratings", "RATINGS.csv", type=Path)
    said = "scored already; name in the workspace, or a folder"
    parser.option("--evalset", "SET", said, type=EVALSET.find, required=True)
    parser.shared("--bundle")
    parser.option("--out", "DIR", "folder of the new bundle", type=Path)
    parser.flag("--dry-run", "show before and after only")
    _add_probe(verbs)


def _evaluate(options: argparse.Namespace) -> None:
    import numpy as np

    from hydra_core.lab.evaluate import report
    from hydra_core.predictor.languages import group_of

    path = existing(options.labelled)
    predictor = open_predictor(options.bundle)
    messages = _labelled(path, predictor.bundle.dimensions)
    with progress_bar(path.name) as step:
        scored = predictor.predict_batches(
            messages["text"], progress=step, turns=[int(turn) for turn in messages["turn"]]
        )
    labels = np.column_stack([messages[name] for name in predictor.bundle.dimensions])
    languages = messages["lang"]
    units = {name: row for row, name in enumerate(messages["cluster"]) if name}
    clusters = np.array([units.get(name, row) for row, name in enumerate(messages["cluster"])])
    by = {"groups": [group_of(code) for code in languages], "languages": languages}
    result = report(
        predictor.bundle, scored.requirements, labels, by,
        resamples=options.resamples, clusters=clusters,
    )  # fmt: skip
    show(options, result, _metrics_text(result, predictor.bundle.dimensions))


def _labelled(path: Path, dimensions: Sequence[str]) -> dict[str, list[Any]]:
    """Columns text, lang, turn, cluster and one per dimension of a JSONL file."""
    from hydra_core.evalsets.importers.reading.bounded import Budget
    from hydra_core.evalsets.importers.reading.cells import Issues
    from hydra_core.evalsets.importers.reading.tables import json_objects

    issues = Issues()
    columns: dict[str, list[Any]] = {
        name: [] for name in ("text", "lang", "turn", "cluster", *dimensions)
    }
    for number, entry in json_objects(path, Budget(), issues):
        row = {"turn": 1, "cluster": "", **entry}
        for name in ("text", "lang", "cluster"):
            if not isinstance(row.get(name), str):
                issues.add(f"{name} must be text", number)
        if isinstance(row["turn"], bool) or not isinstance(row["turn"], int) or row["turn"] < 1:
            issues.add("turn must be a whole number from 1", number)
        for name in dimensions:
            value: Any = row.get(name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 <= float(value) <= 1:
                issues.add(f"{name} must be a number in [0, 1]", number)
        for name, column in columns.items():
            column.append(row.get(name))
    issues.raise_any(path.name)
    if not columns["text"]:
        raise EvalSetError.of(path.name, "there are no messages")
    return columns


def _metrics_text(result: Mapping[str, Any], dimensions: Sequence[str]) -> str:
    """Metrics by dimension, then Pearson and MAE by language group."""
    names = ("pearson", "spearman", "mae", "rmse", "accuracy", "alpha")
    rows = [
        [name, *(_number(result[name][d]) for d in dimensions), _number(result["mean"][name])]
        for name in names
    ]
    parts = [
        [part, str(one["n"]), _number(one["mean"]["pearson"]), _number(one["mean"]["mae"])]
        for part, one in result["groups"].items()
    ]
    bundle = result["bundle"]
    return "\n".join(
        [
            f"{result['n']} messages, bundle {bundle['name']} {bundle['version']}",
            "",
            table(["metric", *dimensions, "mean"], rows),
            "",
            table(["group", "n", "pearson", "mae"], parts),
        ]
    )


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _recalibrate(options: argparse.Namespace) -> None:
    import numpy as np

    from hydra_core.evalsets.scores import load_scores
    from hydra_core.lab.audit.recalibrate import recalibrate, scripts_of, write_recalibrated
    from hydra_core.lab.audit.tables import from_csv, mean_ratings

    if options.out is None and not options.dry_run:
        raise CannotRunError("recalibrate needs --out DIR, or --dry-run")
    bundle = open_predictor(options.bundle).bundle
    evalset = open_evalset(options.evalset)
    scores = load_scores(evalset, bundle.fingerprint)
    if scores is None:
        name = shown(options.evalset)
        raise CannotRunError(
            f"{name} is not scored with this bundle; first: hydra-router score {name}"
        )
    rows = from_csv(existing(options.ratings), bundle.dimensions, evalset.query_ids)
    places, human = mean_ratings(rows, evalset.query_ids)
    groups = evalset.clusters_at(places)
    scripts = scripts_of(evalset)
    rated = None if scripts is None else [scripts[place] for place in places]
    rng = np.random.default_rng(11)
    found = recalibrate(scores[places], human, groups=groups, scripts=rated, rng=rng)
    if options.json:
        print_json(_errors_json(found, bundle.dimensions))
    else:
        _print_errors(found, bundle.dimensions)
    if not options.dry_run:
        note = f"{len(places)} rated messages of {evalset.name}"
        new = write_recalibrated(
            bundle, found.curves, scores, options.out, note=note, scripts=scripts
        )
        say(f"{options.out}: {new.name} {new.version} ({new.fingerprint[:12]}); now rebind")


def _figures(row: Recalibration | ScriptPart, k: int) -> dict[str, float]:
    return {part: float(getattr(row, part)[k]) for part in _PARTS}


def _errors_json(found: Recalibration, dimensions: Sequence[str]) -> dict[str, object]:
    return {
        name: {
            **_figures(found, k),
            "by_script": {
                part.script: {"n": part.n, "curve": part.curve(k), **_figures(part, k)}
                for part in found.parts
            },
        }
        for k, name in enumerate(dimensions)
    }


def _print_errors(found: Recalibration, dimensions: Sequence[str]) -> None:
    heads = ["error", "recalibrated", "bias", "recalibrated"]
    rows = [[name, *_shown(found, k)] for k, name in enumerate(dimensions)]
    print(table(["dimension", *heads], rows))
    if not found.parts:
        say("the set has no texts, so no writing systems: one curve a dimension for all messages")
        return
    rows = [
        [name, part.script, f"{part.n:,}", *_shown(part, k), part.curve(k)]
        for k, name in enumerate(dimensions)
        for part in found.parts
    ]
    print()
    print(table(["dimension", "writing", "rated", *heads, "curve"], rows))


def _shown(row: Recalibration | ScriptPart, k: int) -> list[str]:
    shown = {part: f"{value:z.3f}" for part, value in _figures(row, k).items()}
    return [
        f"+{text}" if part.startswith("bias") and text.strip("-0.") and text[0] != "-" else text
        for part, text in shown.items()
    ]


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


def _add_probe(verbs: Verbs) -> None:
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
    from hydra_core.lab.robustness.attack import (
        load_probes,
        other_wordings,
        own_suffixes,
        set_messages,
    )
    from hydra_core.lab.robustness.findings import bound_catalog, cheap_at, probed
    from hydra_core.lab.robustness.findings import routed as routes

    predictor = open_predictor(options.bundle)
    catalog = bound_catalog(existing(CATALOG.find(options.catalog)), predictor.bundle)
    knob = _knob(options, catalog)
    evalset = open_evalset(options.evalset)
    messages = set_messages(evalset)
    own = own_suffixes(existing(options.suffixes)) if options.suffixes else {}
    with progress_bar(evalset.name, unit=" messages") as step:
        found = probed(predictor, *messages, {**load_probes(), **own}, step,
                       other_wordings(evalset), cheap_at(catalog, knob))  # fmt: skip
    routed = routes(found, catalog)
    at, by_value = routed.at(knob), routed.valuer is not None
    show(options, as_json(at, by_value=by_value), _text(at, by_value=by_value))


def _knob(options: argparse.Namespace, catalog: Catalog) -> float:
    from hydra_core.base.errors import CatalogError
    from hydra_core.base.types import Rule
    from hydra_core.cli.evaluate import checked_tau

    by_value = catalog.policy.rule is Rule.VALUE
    given, other = options.tau, options.value_usd
    if (other if not by_value else given) is not None:
        name = "--tau" if by_value else "--value-usd"
        remedy = f"give {'--value-usd' if by_value else '--tau'}"
        raise CatalogError.of(name, f"is not what rule '{catalog.policy.rule}' goes by", remedy)
    if not by_value:
        return checked_tau(given, catalog)
    value = catalog.policy.value_usd if other is None else other
    if value is None or not value > 0:
        raise CatalogError.of("--value-usd", f"must be > 0 USD, got {value}")
    return float(value)


def as_json(found: Findings, *, by_value: bool) -> dict[str, Any]:
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
    from hydra_core.lab.ablation import reading_ablation, readings
    from hydra_core.predictor.bundle import load_bundle

    bundle = open_predictor(options.bundle).bundle
    others = [load_bundle(existing(path)) for path in options.against]
    evalset = open_evalset(options.evalset)
    catalog = open_catalog(options.catalog)
    if catalog.policy.rule.value == "value":
        say("note: the catalog routes by value; routes are compared by its tau")
    with progress_bar(evalset.name, unit=" messages") as step:
        found = reading_ablation(
            evalset, catalog, readings(bundle, others), today=date.today(), progress=step
        )
    readings_json = [_reading_json(one) for one in found]
    document = {"evalset": evalset.name, "n": evalset.n, "readings": readings_json}
    show(options, document, _readings_text(found))


def _reading_json(one: AblatedReading) -> dict[str, Any]:
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
        [one.name, _number(one.pearson, 3), _number(one.mae, 3),
         f"{100 * one.metrics.qr.value:.1f} %", f"${one.metrics.mean_cost_usd.value:.4g}",
         f"{100 * one.against_first.qr.value:+.1f} ({100 * one.against_first.qr.lo:+.1f} to "
         f"{100 * one.against_first.qr.hi:+.1f})"]
        for one in found
    ]  # fmt: skip
    return table(["reading", "Pearson", "MAE", "QR", "cost", "QR against the first, pp"], rows)
