"""The verb shadow: a second catalog on logged traffic, with no effect."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.cli.options import (
    Verbs,
    bundle_option,
    catalog_option,
    verb,
    window_options,
)
from hydra_core.cli.output import percent, percent_range, print_json, say, table
from hydra_core.cli.workspace import existing, log_folder, open_catalog

if TYPE_CHECKING:
    from hydra_core.base.intervals import Interval
    from hydra_core.base.types import Catalog
    from hydra_core.live.logged_value import LoggedValue
    from hydra_core.live.shadow import Predict, Shadow
    from hydra_core.predictor.onnx_predictor import Prediction


_SHADOW = """\
Replays a second catalog on the traffic of a decision log (serve --log), from the logged
requirements: how often it chooses the model that was served, its mix, and the change of cost: both
by the catalog's prices, and against what was billed then.
Its quality is estimated (doubly robust, SNIPS, IPS, with the effective sample size) only where the
log has feedback and true probabilities (serve --explore); otherwise it says what is missing. Where
part of the traffic has no support in the log, quality is bounded instead.
A catalog that routes by value is replayed from the logged predictions where only V differs,
otherwise from the messages where the log holds them (serve --log-text).

examples:
  hydra-router shadow log --catalog candidate
  hydra-router shadow log --catalog candidate.yaml --json
  hydra-router shadow log --catalog candidate --since 24h --arm main
"""


def add_verbs(verbs: Verbs) -> None:
    """Add shadow."""
    short = "a second catalog on logged traffic: agreement, mix, cost, value"
    parser = verb(verbs, "shadow", _shadow, short, _SHADOW)
    help_text = "folder of a decision log; `log` is the workspace's"
    parser.add_argument("log", type=log_folder, metavar="LOG", help=help_text)
    catalog_option(parser)
    window_options(parser)
    bundle_option(parser)


def _shadow(options: argparse.Namespace) -> int:
    from hydra_core.decision_log.reading import read_log
    from hydra_core.live.logged_value import logged_value
    from hydra_core.live.off_policy import NoOverlapError
    from hydra_core.live.shadow import predicted, shadow
    from hydra_core.live.traffic import traffic_of

    catalog, today = open_catalog(options.catalog), date.today()
    window = {"since": options.since, "until": options.until, "arm": options.arm}
    traffic = traffic_of(read_log(existing(options.log), **window))
    traffic = predicted(traffic, catalog, today, _scorer(catalog, options.bundle))
    replay = shadow(traffic, catalog, today)
    try:
        value, why = logged_value(traffic, catalog, today), ""
    except NoOverlapError as error:
        value, why = None, str(error)
    if options.json:
        print_json(_document(replay, value, why))
    else:
        print(_text(replay, value, why))
    return 0


def _scorer(catalog: Catalog, bundle: Path | None) -> Predict:
    """Scores logged messages again, with the catalog's bundle."""
    from hydra_core.catalog import require_bundle
    from hydra_core.predictor.bundle import load_bundle
    from hydra_core.predictor.onnx_predictor import Predictor, default_predictor

    def scored(texts: list[str], turns: list[int], contexts: list[str]) -> Prediction:
        scores = default_predictor() if bundle is None else Predictor(load_bundle(bundle))
        require_bundle(catalog, scores.bundle.fingerprint)
        say(f"scoring {len(texts):,} logged messages")
        return scores.predict_batches(texts, turns=turns, contexts=contexts)

    return scored


def _document(replay: Shadow, value: LoggedValue | None, why: str) -> dict[str, Any]:
    live, here = replay.mixes
    return {
        "replayed": len(replay.traffic),
        "left_out": replay.left_out,
        "agreement": _ends(replay.agreement),
        "live_mix": live,
        "mix": here,
        "cost_change": None if replay.cost is None else _ends(replay.cost.change),
        "cost_change_from_billed": None if replay.billed is None else _ends(replay.billed.change),
        "no_value_because": why or None,
        "value": None if value is None else _value(value),
    }


def _value(logged: LoggedValue) -> dict[str, Any]:
    value = logged.value
    return {
        "n": value.n,
        "effective": value.effective,
        "explored": logged.explored,
        "live": _ends(logged.live),
        **{
            name: None if one is None else _ends(one)
            for name, one in (
                ("doubly_robust", value.dr),
                ("snips", value.snips),
                ("ips", value.ips),
                ("bounds", value.bounds),
            )
        },
        "unsupported": value.unsupported,
        "caution": logged.caution or None,
    }


def _text(replay: Shadow, value: LoggedValue | None, why: str) -> str:
    live, here = replay.mixes
    names = list(dict.fromkeys([*live, *here]))
    mix = [[name, percent(live.get(name, 0.0)), percent(here.get(name, 0.0))] for name in names]
    lines = [f"{len(replay.traffic):,} decisions replayed"]
    lines += [f"  left out, {reason}: {count:,}" for reason, count in replay.left_out.items()]
    lines += [f"agreement: {percent_range(replay.agreement)}"]
    if replay.cost is not None:
        change = replay.cost.change
        lines += [
            f"cost against live, both at its prices: {percent_range(change, '+')}, "
            f"{replay.cost.counted:,} with tokens"
        ]
    if replay.billed is not None:
        change = replay.billed.change
        lines += [
            f"cost against what was billed then: {percent_range(change, '+')}, "
            f"{replay.billed.counted:,} with a bill"
        ]
    lines += ["", table(["model", "live", "this catalog"], mix), ""]
    if value is None:
        return "\n".join([*lines, f"quality: not estimated, {why}"])
    lines += [f"quality, live: {percent_range(value.live)}"]
    for name, one in value.value.estimates.items():
        bounded = one is value.value.bounds
        text = one.bounds(percent) if bounded else percent_range(one)
        lines += [f"quality, {name}: {text}"]
    size = f"{value.value.n:,} rated decisions are worth {value.value.effective:,.0f}"
    caution = [f"  {value.caution}"] if value.caution else []
    return "\n".join([*lines, f"  {size} (effective sample size)", *caution])


def _ends(interval: Interval) -> list[float]:
    return [interval.value, interval.lo, interval.hi]
