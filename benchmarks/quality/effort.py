"""LiveCodeBench by model and effort: the exact frontier, and what routing over efforts gains.

    python -m benchmarks.quality.effort [--shared ../shared/data/replay] [--workspace DIR]
        [--out docs/real_sets.md]

The set has outcomes of o1 at low, medium and high effort, but no tokens: how many tokens an answer
takes at each effort is assumed, and everything is measured under three assumptions. With `--out`,
the section of that file is written anew.
"""

import re
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.quality.real_policies import real_data, shortfall_run, value_run
from benchmarks.quality.real_pools import (
    LIVECODEBENCH,
    RealSet,
    evalset_of,
    livecodebench,
    options_of_sets,
)
from benchmarks.quality.real_sets import STEPS, in_cost_order, reuse_scores
from hydra_core.base.types import Selection
from hydra_core.choosing.material import gather
from hydra_core.evalsets.scores import messages_of, score_evalset
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.replay.fixed_mix import matched_cost_mix
from hydra_core.replay.metrics import (
    evaluate_choice,
    oracle_quality,
    picked,
    single_models,
    upper_hull,
)
from hydra_core.replay.significance import mean_interval
from hydra_core.replay.verdict import verdict

TITLE = "LiveCodeBench by model and effort"
#: Mean tokens of an answer of o1 at low, medium and high effort, as assumed.
TOKENS = {"even": (6000, 7500, 9000), "middle": (3000, 5500, 9000), "steep": (1500, 4000, 9000)}
_REPORTED = "middle"
_LEVELS = {
    "o1-low": "O1-2024-12-17 (N=1) (Low)",
    "o1-medium": "O1-2024-12-17 (N=1) (Med)",
    "o1-high": "O1-2024-12-17 (N=1) (High)",
}
_OTHERS = {name: given for name, given in LIVECODEBENCH.items() if name not in _LEVELS}
_ONE = {"o1-high": _LEVELS["o1-high"]}
_POOLS = {
    "o1 at three efforts": (_LEVELS, {}),
    "six models and o1-high": (_ONE, _OTHERS),
    "six models and o1 at three efforts": (_LEVELS, _OTHERS),
}


def pool_set(name, tokens):
    """A pool of efforts and other models as a set whose costs follow the assumed lengths."""
    levels, others = _POOLS[name]
    lengths = dict(zip(_LEVELS, TOKENS[tokens], strict=True))
    models = {
        **{level: (source, f"15,60,{lengths[level]}") for level, source in levels.items()},
        **others,
    }
    key = f"effort-{list(_POOLS).index(name)}-{tokens}"
    return RealSet(key, name, lambda shared: livecodebench(shared, models), "")


def measured(real, shared, workspace, predictor, *, seed=0):
    """The singles, the hull, and each policy at three costs, cross-fitted."""
    evalset = evalset_of(real, shared, workspace)
    bundle = predictor.bundle
    reuse_scores(evalset, workspace, bundle)
    frame = score_evalset(evalset, predictor)
    requirements = frame.drop(columns="query_id").to_numpy(np.float64)
    data = in_cost_order(real_data(evalset, requirements, real, bundle))
    messages = messages_of(evalset, bundle.fingerprint, bundle.vectors)
    singles = single_models(data)
    hull = upper_hull(singles)
    low, high = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
    costs = [low + step * (high - low) for step in STEPS]
    runs = [
        shortfall_run(data, bundle.bands, seed),
        value_run(data, gather(evalset, messages, data.pool.ids), seed),
    ]
    rng = np.random.default_rng(seed)
    chosen = {run.name: [run.at_cost(cost, rng) for cost in costs] for run in runs}
    return {
        "title": real.title, "data": data, "singles": singles, "hull": hull, "costs": costs,
        "runs": runs, "chosen": chosen,
    }  # fmt: skip


def gain(wide, narrow, name, costs, seed=0):
    """What more efforts add to a policy's quality at the same costs, with 95 % intervals."""
    rng, cells = np.random.default_rng(seed), []
    for cost in costs:
        picks = []
        for found in (wide, narrow):
            run = next(one for one in found["runs"] if one.name == name)
            picks.append(picked(found["data"].quality, run.at_cost(cost, rng)))
        cells.append(mean_interval(picks[0] - picks[1]))
    return cells


def points(share):
    return f"{100 * share:+.1f} pp"


def frontier_text(found):
    """Every single model and effort, cheapest first, and whether a fixed mix would use it."""
    hull = {one.model for one in found["hull"]}
    lines = [
        "| model and effort | pass@1 | cost per query | on the frontier |",
        "|---|---|---|---|",
    ]
    for one in sorted(found["singles"], key=lambda one: one.mean_cost_usd):
        on = "yes" if one.model in hull else ""
        lines.append(
            f"| {one.model} | {100 * one.quality:.1f} % | ${one.mean_cost_usd:.4g} | {on} |"
        )
    return lines


def policies_text(found):
    """Quality of the best fixed mix, and what each policy adds at the same cost."""
    data, hull, costs = found["data"], found["hull"], found["costs"]
    lines = [
        f"| {found['title']} | " + " | ".join(f"${cost:.3g}" for cost in costs) + " |",
        "|---|---|---|---|",
        "| best fixed mix | "
        + " | ".join(f"{100 * matched_cost_mix(hull, cost).quality:.1f} %" for cost in costs)
        + " |",
    ]
    for name, choices in found["chosen"].items():
        cells = []
        for choice in choices:
            result = verdict(data, choice, Selection.FIXED)
            quality = evaluate_choice(data, choice).quality.value
            cells.append(
                f"{100 * quality:.1f} %, {100 * result.delta:+.1f} pp "
                f"[{100 * result.interval.lo:+.1f}, {100 * result.interval.hi:+.1f}]"
            )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    best, usd = oracle_quality(data), float(picked(data.cost_usd, data.oracle).mean())
    lines.append(f"| oracle | {100 * best:.1f} % at ${usd:.3g} | | |")
    return lines


def section(found):
    """The Markdown of the measurement.

    Args:
        found: Assumption -> pool's title -> what was measured.
    """
    middle = found[_REPORTED]
    alone, narrow, wide = (middle[title] for title in _POOLS)
    passed = alone["data"].quality >= 0.5
    at = {model: i for i, model in enumerate(alone["data"].pool.ids)}
    low, medium, high = (passed[:, at[level]] for level in _LEVELS)
    lengths = ", ".join(f"{name} {'/'.join(map(str, one))}" for name, one in TOKENS.items())
    lines = [
        f"## {TITLE}", "",
        "Written by `python -m benchmarks.quality.effort`.", "",
        f"{len(passed):,} questions (January 2025) with outcomes of o1 at low, medium and high "
        "effort. The set has no tokens: the cost of an effort rests on assumed mean answer lengths "
        f"in tokens, low/medium/high ({lengths}; the tables show `{_REPORTED}`), at January 2025 "
        "list prices. Each effort was sampled once, so part of the difference between efforts is "
        f"chance: low solves {100 * float((low & ~high).mean()):.1f} % of the questions that high "
        f"fails, high solves {100 * float((high & ~low).mean()):.1f} % that low fails. The oracle "
        "profits from that chance as well.", "",
        f"Pass@1: low {100 * low.mean():.1f} %, medium {100 * medium.mean():.1f} %, high "
        f"{100 * high.mean():.1f} %.", "",
        *frontier_text(wide), "",
        "Policies are cross-fitted in two halves and set by cost alone. Differences are from the "
        "best fixed mix at the policy's own cost, with 95 % intervals.", "",
    ]  # fmt: skip
    for one in (alone, narrow, wide):
        lines += [*policies_text(one), ""]
    lines += [
        "What the two cheaper efforts add to the pool with o1-high alone, at the same costs. What "
        "the best fixed mix gains needs no router; only what a policy gains beyond it does:", "",
        "| assumed lengths | " + " | ".join(f"{100 * s:.0f} % of the way" for s in STEPS) + " |",
        "|---|---|---|---|",
    ]  # fmt: skip
    for name, pools in found.items():
        _, narrow, wide = (pools[title] for title in _POOLS)
        mixes = [
            matched_cost_mix(wide["hull"], cost).quality
            - matched_cost_mix(narrow["hull"], cost).quality
            for cost in narrow["costs"]
        ]
        lines.append(f"| {name}: best fixed mix | {' | '.join(map(points, mixes))} |")
        for run in wide["runs"]:
            cells = gain(wide, narrow, run.name, narrow["costs"])
            shown = [f"{points(c.value)} [{100 * c.lo:+.1f}, {100 * c.hi:+.1f}]" for c in cells]
            lines.append(f"| {name}: {run.name} | {' | '.join(shown)} |")
    return "\n".join([*lines, ""])


def replaced(text, written):
    """The document with this section in place of its former one, or at the end."""
    known = re.compile(rf"^## {re.escape(TITLE)}\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    if known.search(text):
        return known.sub(lambda _: written, text)
    return f"{text.rstrip()}\n\n{written}"


def main():
    parser = options_of_sets(__doc__)
    options = parser.parse_args()
    start, predictor = time.perf_counter(), default_predictor()
    with tempfile.TemporaryDirectory() as scratch:
        workspace = options.workspace or Path(scratch)
        found = {
            tokens: {
                title: measured(pool_set(title, tokens), options.shared, workspace, predictor)
                for title in _POOLS
            }
            for tokens in TOKENS
        }
    written = section(found)
    print(written)
    print(f"{time.perf_counter() - start:.0f} s")
    if options.out is not None:
        text = options.out.read_text(encoding="utf-8")
        options.out.write_text(replaced(text, written), encoding="utf-8")


if __name__ == "__main__":
    main()
