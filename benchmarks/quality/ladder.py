"""The ladder of sources on real sets: cross-fitted lift of each, and where it comes from.

    python -m benchmarks.quality.ladder [--workspace DIR] [--sets mixed-2024 livecodebench ...]
        [--splits 5] [--head-splits 1] [--no-heads] [--shuffled N] [--out docs/real_sets.md]

Lift is quality above the best fixed mix at the same cost, mean of 25, 50, 75 % of the cost range,
in points. Every query is routed by a source that was fitted without it and its cluster; the means
are over so many splits, the interval is that of the first. Nothing is chosen on these figures.
--shuffled deals the outcomes out anew, N times over the pools, and prints what is gained and how
often a source is recommended then.
With --workspace, sets that are imported and scored there already are used again.
"""

import argparse
import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.quality.ladder_sets import POOLS_OF, materials
from benchmarks.quality.sources import cross_fit_heads, ladder, outcomes_of
from hydra_core.choosing.lift import POINTS, hull_of
from hydra_core.choosing.sources.ladder import NAMES, Kind, fit_rung
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.replay.fixed_mix import matched_cost_mix


def lifts(material, kind, seeds):
    """Mean lift in points on each split."""
    outcomes = outcomes_of(material)
    found = []
    for seed in seeds:
        if kind is Kind.HEADS:
            lift = cross_fit_heads(material, seed=seed).lift(np.random.default_rng(seed))
        else:
            lift = fit_rung(kind, outcomes, seed=seed).lift
        found.append(float("nan") if lift is None else 100 * lift.mean.value)
    return found


def report(name, pools, options):
    """Print the ladder of every pool of a set, and the means over its pools; rows for a table."""
    means, rows = {}, []
    for pool, material in pools:
        began = time.perf_counter()
        found = ladder(material, heads=options.heads)
        took = time.perf_counter() - began
        print(f"\n{name}, {pool}: {material.complete.size} queries, {len(material.models)} models")
        cells = dict.fromkeys(Kind, "not measured")
        rows.append((pool, material, cells, found))
        for rung in found.rungs:
            if rung.lift is None:
                cells[rung.kind] = "–"
                print(f"  {rung.kind:<10} no cost range to route in")
                continue
            own = 100 * rung.lift.mean.value
            more = options.head_splits if rung.kind is Kind.HEADS else options.splits
            values = [own, *lifts(material, rung.kind, range(1, more))]
            means.setdefault(rung.kind, []).append(np.mean(values))
            ends = f"[{100 * rung.lift.mean.lo:+.2f}, {100 * rung.lift.mean.hi:+.2f}]"
            interval = rung.lift.mean.scaled(100.0).bounds(one_digit)
            cells[rung.kind] = f"{np.mean(values):+.1f} [{interval}]"
            print(f"  {rung.kind:<10} {np.mean(values):+.2f} {ends} {rung.reason}", flush=True)
        add = "" if found.heads_add is None else found.heads_add.scaled(100.0).text("points")
        print(f"  -> {found.recommended or 'fixed mix'}: {found.reason} (heads add {add})")
        print(f"  {len(found.findings)} findings; {took:.1f} s")
        for one in found.findings[:4]:
            print(f"     {one.text}")
    for kind, values in means.items():
        print(f"{name}: {kind:<10} mean {np.mean(values):+.2f}, lowest {min(values):+.2f}")
    return rows


def one_digit(value):
    """A lift in points."""
    return f"{value:+.1f}"


HEADING = "## Four sources of a route"


def written(path, rows, options):
    """Put the section into a page, in the place of the one that stands there."""
    text = path.read_text() if path.is_file() else ""
    kept = re.sub(rf"^{HEADING}\n.*?(?=^## |\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    path.write_text(f"{kept.rstrip()}\n\n{section(rows, options)}".lstrip())


def section(rows, options):
    """The section of docs/real_sets.md."""
    command = "python -m benchmarks.quality.ladder --out docs/real_sets.md"
    head = [
        HEADING,
        "",
        f"Written by `{command}{'' if options.heads else ' --no-heads'}`.",
        "",
        "Each cell holds the quality above the best fixed mix at the same cost in points: the mean",
        "of 25, 50 and 75 % of the cost range, cross-fitted, with the 95 % interval of the first",
        f"split. Splits that a mean is over: {options.splits}, for heads {options.head_splits}.",
        "In agents-2026 the text of an issue does not foretell which model resolves it. In",
        "code-2026 a gain shows only where the grader is at fault (faults P). Terminal-Bench is",
        "not here: its 80 tasks come without costs.",
        "",
        "| set, pool | queries | models | benchmark profiles | fitted profiles | success profiles "
        "| success heads | what to use |",
        "|---|---:|---:|---|---|---|---|---|",
    ]
    lines = [
        f"| {pool} | {material.complete.size:,} | {len(material.models)} | "
        + " | ".join(cells[kind] for kind in Kind)
        + f" | {'a fixed mix' if found.recommended is None else NAMES[found.recommended].lower()} |"
        for pool, material, cells, found in rows
    ]
    notes = [f"- {pool}: {found.reason}" for pool, _, _, found in rows if found.recommended is None]
    return "\n".join([*head, *lines, "", "Where a fixed mix does better:", "", *notes, ""])


def report_shuffled(name, pools, options):
    """Print what is gained, and how often recommended, where outcomes are another query's."""
    kinds = [Kind.PROFILES, Kind.SUCCESS] + [Kind.HEADS] * options.heads
    gained, recommended, runs = {k: [] for k in kinds}, dict.fromkeys(kinds, 0), 0
    truly = {k: [] for k in kinds}
    pools = list(pools)
    for seed in range(options.shuffled // len(pools)):
        for number, (_, material) in enumerate(pools):
            runs += 1
            dealt = deal(material, [seed, number], options.rows)  # pools share their queries
            for rung in ladder(dealt, heads=options.heads, seed=seed).rungs:
                if rung.kind in kinds and rung.lift is not None:
                    gained[rung.kind].append(100 * rung.lift.mean.value)
                    truly[rung.kind].append(100 * true_lift(rung, material))
                    recommended[rung.kind] += rung.recommend
    for kind in kinds:
        error = np.std(gained[kind], ddof=1) / np.sqrt(runs)
        print(
            f"{name}, outcomes of another query: {kind:<10} gains {np.mean(gained[kind]):+.3f} "
            f"(standard error {error:.3f}), recommended in {recommended[kind]} of {runs} runs; "
            f"against the mixes of all rows {np.mean(truly[kind]):+.3f} "
            f"({np.std(truly[kind], ddof=1) / np.sqrt(runs):.3f})"
        )


def true_lift(rung, material):
    """What its routes are worth where outcomes have nothing to do with queries: never above 0.

    Then only the share of each model counts. Means and mixes are those of all rows; the best mix of
    the few rows of a run is picked on them, and flatters itself.
    """
    rows = material.complete
    quality, cost_usd = material.quality[rows], material.cost_usd[rows]
    hull = hull_of(quality, cost_usd)
    choice = rung.cross_fitted.at(np.asarray(POINTS) / 100)
    shares = np.stack([np.bincount(c, minlength=quality.shape[1]) for c in choice.T]) / len(choice)
    spent = shares @ cost_usd.mean(axis=0)
    mixed = [matched_cost_mix(hull, cost).quality for cost in spent.tolist()]
    return float((shares @ quality.mean(axis=0) - mixed).mean())


def deal(material, seed, rows):
    """The material with the outcomes and costs of other queries, of so many rows (0: all)."""
    rng = np.random.default_rng(seed)
    if rows:
        material = material.take(np.sort(rng.choice(material.n, rows, replace=False)))
    order = rng.permutation(material.n)
    tokens = (material.input_tokens, material.output_tokens)
    read, written = (None if values is None else values[order] for values in tokens)
    return replace(
        material,
        quality=material.quality[order],
        cost_usd=material.cost_usd[order],
        others=material.others[order],
        input_tokens=read,
        output_tokens=written,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--sets", nargs="+", choices=list(POOLS_OF), default=list(POOLS_OF))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--head-splits", type=int, default=1, help="heads take minutes a split")
    parser.add_argument("--no-heads", dest="heads", action="store_false")
    parser.add_argument("--shuffled", type=int, default=0, metavar="N")
    parser.add_argument("--rows", type=int, default=0, help="so many rows, when shuffled")
    parser.add_argument("--out", type=Path, help="write the table as a page of the docs")
    options = parser.parse_args()
    rows = []
    predictor = default_predictor()
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.sets:
            pools = materials(name, options.workspace or Path(scratch), predictor)
            if options.shuffled:
                report_shuffled(name, pools, options)
            else:
                rows += report(name, pools, options)
            if options.out is not None:  # after every set: a run takes long
                written(options.out, rows, options)


if __name__ == "__main__":
    main()
