"""The verb learn: an outcome model from an eval set, and what it is worth there."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import OutcomeModelError, Problem
from hydra_core.cli.account import acting, changes, store_of
from hydra_core.cli.grammar import verb
from hydra_core.cli.output import existing, open_predictor, print_json, progress_bar, table

if TYPE_CHECKING:
    from hydra_core.base.types import FloatArray
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.outcome_model.model import OutcomeModel


_LEARN = """\
Learns what your models achieve and cost from the outcomes of an eval set, and says whether routing
by it beats the best constant policy at the same cost. Every figure is cross-fitted: no query is
predicted by heads that have seen it. Text vectors that are missing are made first.

A model with 25 outcomes or more takes part; one with few leans on what is known of the others.
Lifts are in quality from 0 to 1: 0.024 is 2.4 points.

examples:
  python -m hydra_core learn evalsets/mine --catalog pool.yaml --out workspace/outcome_models/mine
  python -m hydra_core learn evalsets/mine --models gpt-5,gpt-5-mini --out om --json
"""


def add_learn(verbs: Any) -> None:  # noqa: ANN401 (argparse has no public type)
    """Add the verb."""
    parser = verb(verbs, "learn", learn, "learn an outcome model from an eval set", _LEARN, "LEARN")
    parser.add_argument("evalset", type=Path, metavar="SET")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--catalog", type=Path, metavar="C.yaml", help="its models, at its prices")
    which.add_argument("--models", metavar="a,b,c", help="these models, at the set's own costs")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--folds", type=int, default=5, metavar="N", help="outer parts (5)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="draws parts and trees")
    parser.add_argument("--force", action="store_true", help="replace an outcome model there")
    parser.add_argument("--bundle", type=Path, metavar="B", help="predictor bundle folder")


def learn(options: argparse.Namespace) -> int:
    """Learn, write, and say what it is worth."""
    from hydra_core.choosing.learn import learn as learn_model
    from hydra_core.choosing.material import gather
    from hydra_core.choosing.write import require_free_folder, telling, write_outcome_model
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.evalsets.score_files import messages_of

    _check(options)
    require_free_folder(options.out, force=options.force)
    tell = telling(acting(), store_of(options.out, options.evalset), options.out)
    evalset = load_evalset(existing(options.evalset))
    predictor = open_predictor(options.bundle)
    bundle = predictor.bundle
    models, priced = _models(options, evalset, bundle.fingerprint)
    with progress_bar(f"{evalset.name}: vectors") as step:
        changes(evalset.path).score(evalset, predictor, step)
    messages = messages_of(evalset, bundle.fingerprint, bundle.vectors)
    material = gather(evalset, messages, models)
    prices = None if priced is None else priced[[models.index(name) for name in material.models]]
    with progress_bar(f"{evalset.name}: folds", unit=" steps") as step:
        found = learn_model(material, prices, folds=options.folds, seed=options.seed, progress=step)
    made = write_outcome_model(
        options.out, found, fingerprint=bundle.fingerprint, force=options.force, tell=tell
    )
    if options.json:
        print_json({**made.figures, "path": str(options.out), "sha256": made.digest})
    else:
        print(_text(made))
    return 0


def _check(options: argparse.Namespace) -> None:
    if not 2 <= options.folds <= 20:
        problem = Problem("", f"must be 2 to 20, got {options.folds}", "5 is a good number")
        raise OutcomeModelError("--folds", [problem])


def _models(
    options: argparse.Namespace, evalset: EvalSet, fingerprint: str
) -> tuple[list[str], FloatArray | None]:
    """The models to learn, and (m, 2) their prices where a catalog gives them."""
    import numpy as np

    if options.models is not None:
        return [name.strip() for name in options.models.split(",") if name.strip()], None
    from hydra_core.catalog.binding import require_bundle
    from hydra_core.catalog.schema import load_catalog
    from hydra_core.cli.output import say

    catalog = load_catalog(existing(options.catalog))
    require_bundle(catalog, fingerprint)
    models = [model for model in catalog.models if model.id in evalset.models]
    absent = [model.id for model in catalog.models if model.id not in evalset.models]
    if absent:
        say(f"note: no outcomes for {', '.join(absent)}: left out of what is learned")
    prices = [[model.input_usd_per_mtok, model.output_usd_per_mtok] for model in models]
    return [model.id for model in models], np.array(prices).reshape(-1, 2)


def _text(made: OutcomeModel) -> str:
    """The answer first, then what it rests on."""
    found: Any = made.figures
    lines = [found["reason"], ""]
    if found["lift"] is not None:
        lift = found["lift"]
        rows = [
            [f"{point} % of the cost range", _pp(lift["points"][point]), _range(ends)]
            for point, ends in lift["simultaneous"].items()
        ]
        rows.append(["mean of the three", _pp(lift["mean"]), _range(lift["interval"])])
        lines += [table(["above the constants at equal cost", "points", "95 % interval"], rows), ""]
    counts = ", ".join(
        f"{name} {about['outcomes']}{' (newcomer)' if about['newcomer'] else ''}"
        for name, about in found["models"].items()
    )
    steps = [f"{one['queries']}: {_pp(one['lift'])}" for one in found["learning_curve"]]
    lines += [
        f"chosen inside: {found['learner']}",
        f"outcomes: {counts}; {found['n']} queries learned on",
        f"lift by queries learned on: {'; '.join(steps) or 'not known'}",
        "",
        "for the catalog:",
        "policy: {rule: value, value_usd: ...}",
        f"outcome_model: {{path: {made.path}, sha256: {made.digest}}}",
    ]
    return "\n".join(lines)


def _pp(value: float) -> str:
    return f"{100 * value:+.1f}"


def _range(ends: list[float | None]) -> str:
    low, high = ("?" if end is None else _pp(end) for end in ends)
    return f"[{low}, {high}]"
