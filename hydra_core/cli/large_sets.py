"""The verbs sweep and score-parts: sets too large for one process."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.errors import Problem, ProblemsError
from hydra_core.base.spelling import counted, usd
from hydra_core.cli.options import Grammar, Verbs, verb
from hydra_core.cli.output import print_json, progress_bar, say, show, table
from hydra_core.cli.workspace import acting, existing, open_catalog, store_of

if TYPE_CHECKING:
    from hydra_core.replay.sweep_parts import Swept


_SWEEP = """every tau over a set of any size
Replays the router for thousands of taus over a folder of Parquet parts with the columns
requirement:<dimension> (score-parts makes them), quality:<model>, cost_usd:<model> and, where
queries depend on each other, cluster or conversation_id (with intervals, each must lie in one
part). Hard gates read the same columns as in an eval set (has_image, needs_tools, needs, require,
allow, deny, context_tokens, text). Quality, cost and misroute are exact at the grid's points;
intervals come from a Poisson bootstrap. A sweep that was stopped goes on where it was. Writes
OUT/curve.parquet.

examples:
  hydra-router sweep parts/ --catalog mine --out sweeps/pool
  hydra-router sweep parts/ --catalog mine --out sweeps/pool --engine ray --workers 8
"""
_SCORE = """score a set of any size
Scores the messages of a folder of Parquet parts (columns text and, if wanted, turn) and writes the
same parts with a column requirement:<dimension> for each dimension. A job that was stopped goes on
where it was: a part that is there is done.

examples:
  hydra-router score-parts messages/ --out parts/
  hydra-router score-parts messages/ --out parts/ --engine ray --workers 8
"""


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "sweep", _sweep, _SWEEP, "WRITE")
    parser.option("parts", "DIR", type=Path)
    parser.shared("--catalog")
    parser.option("--points", "N", "taus of the grid", type=int, default=4096)
    parser.option("--resamples", "N", "bootstrap, 0: no intervals", type=int, default=100)
    _job(parser)
    parser = verb(verbs, "score-parts", _score, _SCORE, "SCORE")
    parser.option("parts", "DIR", type=Path)
    parser.shared("--bundle")
    _job(parser)


def _job(parser: Grammar) -> None:
    parser.option("--out", "DIR", type=Path, required=True)
    parser.add_argument("--engine", choices=["local", "ray"], default="local")
    parser.option("--workers", "N", "processes or actors", type=int, default=2)


def _sweep(options: argparse.Namespace) -> None:
    _check(options, {"points": (2, 100_000), "resamples": (0, 10_000)})
    from hydra_core.base.types import Rule
    from hydra_core.catalog import pool
    from hydra_core.replay.partitions import Engine, parts_of, run, tasks
    from hydra_core.replay.sweep_parts import (
        SweepParts,
        grid_of,
        key_of,
        merged,
        pool_of,
        require_whole_clusters,
    )

    catalog = open_catalog(options.catalog)
    if catalog.policy.rule is Rule.VALUE:
        say("note: the catalog routes by value; this sweep is of its tau")
    parts = parts_of(existing(options.parts))
    if options.resamples:
        require_whole_clusters(parts)
    models = pool_of(pool(catalog, today=date.today()), parts[0])
    specs = tuple(catalog.model(name) for name in models.ids)
    taus = grid_of(parts, models, catalog.dimensions, options.points, specs)
    job = SweepParts(models, catalog.dimensions, taus, options.resamples, specs)
    todo = tasks(parts, options.out, f".{key_of(job, parts)}.npz")
    with progress_bar("swept", unit=" parts") as step:
        run(job, todo, Engine(options.engine), options.workers, step)
    swept = merged(todo, taus)
    swept.table.to_parquet(options.out / "curve.parquet")
    _print_curve(swept, catalog.policy.tau, options)


def _print_curve(swept: Swept, tau: float, options: argparse.Namespace) -> None:
    """Print the curve in a few lines: its ends, its best point, the catalog's own tau."""
    frame = swept.table
    own = max(int(frame["tau"].searchsorted(tau, side="right")) - 1, 0)
    best = int(frame["quality"].to_numpy().argmax())
    rows = sorted({0, own, best, len(frame) - 1})
    found = frame.iloc[rows].to_dict("records")
    figures = {
        "tau": [f"{row['tau']:.4f}" for row in found],
        "quality": [f"{row['quality']:.4f}" for row in found],
        "USD/query": [usd(row["mean_cost_usd"])[1:] for row in found],
        "misroute": [f"{row['misroute']:.4f}" for row in found],
    }
    text = table(list(figures), list(zip(*figures.values(), strict=True)))
    where = f"{counted(swept.n, 'query')}, {len(frame):,} taus: {options.out / 'curve.parquet'}"
    if swept.gated:
        where += f"\na hard gate keeps a model out of {counted(swept.gated, 'query')}"
    if swept.gone:
        where += f"\nleft out: {counted(swept.gone, 'query')} that no model may serve"
    said = {"n": swept.n, "gated": swept.gated, "left_out": swept.gone}
    show(options, {**said, "points": len(frame), "rows": found}, f"{where}\n{text}")


def _score(options: argparse.Namespace) -> None:
    _check(options, {})
    from hydra_core.replay.partitions import Engine, ScoreParts, parts_of, run, tasks

    parts = parts_of(existing(options.parts))
    if options.out.resolve() == options.parts.resolve():
        raise ProblemsError.of(
            "score-parts", "is the folder that is read", "choose another one", place="--out"
        )
    bundle = str(existing(options.bundle)) if options.bundle else ""
    todo = tasks(parts, options.out, ".parquet")
    with progress_bar("scored", unit=" parts") as step:
        count = run(ScoreParts(bundle), todo, Engine(options.engine), options.workers, step)
    if count:
        _record(options, bundle, count)
    say(f"{count} of {len(todo)} parts were scored, the others were there")
    if options.json:
        print_json({"parts": len(todo), "scored": count, "out": str(options.out)})


def _record(options: argparse.Namespace, bundle: str, count: int) -> None:
    """Record in the audit trail, if the parts lie in the workspace, which bundle scored them."""
    from hydra_core.predictor.bundle import load_bundle
    from hydra_core.store import Action

    store = store_of(options.out, options.parts)
    if store is not None:
        after = load_bundle(Path(bundle) if bundle else None).fingerprint
        what = f"{count:,} parts {options.out.name} of {options.parts.name}"
        store.record_event(acting(), Action.SCORE, what, after=after)


def _check(options: argparse.Namespace, bounds: dict[str, tuple[int, int]]) -> None:
    wrong = [
        Problem(f"--{name}", f"must be from {low} to {high}, got {getattr(options, name)}")
        for name, (low, high) in {**bounds, "workers": (1, 256)}.items()
        if not low <= getattr(options, name) <= high
    ]
    ProblemsError.raise_any("sweep", wrong)
