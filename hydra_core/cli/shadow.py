"""The verb shadow: a second catalog on logged traffic, with no effect."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.cli.grammar import verb
from hydra_core.cli.output import existing, print_json, say, table

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.live.logged_value import LoggedValue
    from hydra_core.live.shadow import Predict, Shadow
    from hydra_core.predictor.onnx_predictor import Prediction
    from hydra_core.replay.significance import Interval


_SHADOW = """\
Replays a second catalog on the traffic of a decision log (serve --log), from the logged
requirements: how often it agrees with what was chosen, its mix, and its cost with the sign shown.
Its quality is estimated (IPS, SNIPS, doubly robust, with the effective sample size) only where the
log has feedback and true probabilities (serve --explore); else it says what is missing.
A catalog that routes by value is replayed from the logged predictions where only V is another one,
else from the messages where the log holds them (serve --log-text).

examples:
  python -m hydra_core shadow log/ --catalog candidate.yaml
  python -m hydra_core shadow log/ --catalog candidate.yaml --json
"""


def add_shadow(verbs: Any) -> None:  # noqa: ANN401 (argparse has no public type)
    """Add `shadow` to the verbs."""
    short = "a second catalog on logged traffic: agreement, mix, cost, value"
    parser = verb(verbs, "shadow", _shadow, short, _SHADOW)
    parser.add_argument("log", type=Path, metavar="LOG", help="folder of a decision log")
    parser.add_argument("--catalog", type=Path, required=True, metavar="C.yaml")
    parser.add_argument("--bundle", type=Path, metavar="B", help="default: the shipped one")


def _shadow(options: argparse.Namespace) -> int:
    from hydra_core.catalog import load_catalog
    from hydra_core.decision_log.reading import read_log
    from hydra_core.live.logged_value import logged_value
    from hydra_core.live.off_policy import NoOverlapError
    from hydra_core.live.shadow import predicted, shadow
    from hydra_core.live.traffic import traffic_of

    catalog, today = load_catalog(existing(options.catalog)), date.today()
    traffic = traffic_of(read_log(existing(options.log)))
    traffic = predicted(traffic, catalog, today, _scorer(catalog, options.bundle))
    found = shadow(traffic, catalog, today)
    try:
        value, why = logged_value(traffic, catalog, today), ""
    except NoOverlapError as error:
        value, why = None, str(error)
    if options.json:
        print_json(_document(found, value, why))
    else:
        print(_text(found, value, why))
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


def _document(found: Shadow, value: LoggedValue | None, why: str) -> dict[str, Any]:
    live, here = found.mixes
    return {
        "replayed": len(found.traffic),
        "left_out": found.left_out,
        "agreement": _ends(found.agreement),
        "live_mix": live,
        "mix": here,
        "cost_change": None if found.cost is None else _ends(found.cost.change),
        "no_value_because": why or None,
        "value": None if value is None else _value(value),
    }


def _value(found: LoggedValue) -> dict[str, Any]:
    value = found.value
    return {
        "n": value.n,
        "effective": value.effective,
        "explored": found.explored,
        "live": _ends(found.live),
        "ips": _ends(value.ips),
        "snips": _ends(value.snips),
        "doubly_robust": None if value.dr is None else _ends(value.dr),
    }


def _text(found: Shadow, value: LoggedValue | None, why: str) -> str:
    live, here = found.mixes
    names = list(dict.fromkeys([*live, *here]))
    mix = [[name, _percent(live.get(name, 0.0)), _percent(here.get(name, 0.0))] for name in names]
    lines = [f"{len(found.traffic):,} decisions replayed"]
    lines += [f"  left out, {reason}: {count:,}" for reason, count in found.left_out.items()]
    lines += [f"agreement: {_told(found.agreement)}"]
    if found.cost is not None:
        change = found.cost.change
        lines += [f"cost against live: {_told(change, '+')}, {found.cost.counted:,} with tokens"]
    lines += ["", table(["model", "live", "this catalog"], mix), ""]
    if value is None:
        return "\n".join([*lines, f"quality: not estimated, {why}"])
    estimates = {"live": value.live, "IPS": value.value.ips, "SNIPS": value.value.snips}
    if value.value.dr is not None:
        estimates["doubly robust"] = value.value.dr
    lines += [f"quality, {name}: {_told(one)}" for name, one in estimates.items()]
    size = f"{value.value.n:,} rated decisions are worth {value.value.effective:,.0f}"
    return "\n".join([*lines, f"  {size} (effective sample size)"])


def _ends(interval: Interval) -> list[float]:
    return [interval.value, interval.lo, interval.hi]


def _percent(share: float, sign: str = "") -> str:
    return f"{100 * share:{sign}.1f} %"


def _told(interval: Interval, sign: str = "") -> str:
    ends = f"{_percent(interval.lo, sign)} to {_percent(interval.hi, sign)}"
    return f"{_percent(interval.value, sign)} [{ends}]"
