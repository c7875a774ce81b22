"""The verb fit: profiles or success profiles from outcomes, written into a new catalog."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import CatalogError, OutcomeModelError, Problem
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import lift_table, points, points_range, progress_bar, say, show, table
from hydra_core.cli.score import open_predictor, scores_for
from hydra_core.cli.workspace import (
    CATALOG,
    catalog_text,
    open_catalog,
    open_evalset,
    require_new_catalog,
    shown,
)

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.choosing.sources.ladder import Ladder, Rung
    from hydra_core.evalsets.evalset import EvalSet

_FIT = """fit a catalog's profiles to outcomes
Fits a catalog's profiles to the outcomes of an eval set and says whether they beat the best fixed
mix of models at the same cost. Every figure is cross-fitted. The result is YAML alone: a model is
added, removed or repriced by an edit.

  profiles  Eq. 6 with a dimension 'level' that every query requires in full
  success   success as a sum of curves of the requirements; the value rule routes by it

Without --as all sources are compared, success heads included, and nothing is written. Lifts are in
quality from 0 to 1: 0.013 is 1.3 points.

examples:
  hydra-router fit mine --catalog mine
  hydra-router fit mine --catalog mine --as profiles --out fitted
  hydra-router fit mine --catalog mine --as success --out new --json
"""


def add_verbs(verbs: Verbs) -> None:
    """Add the verb."""
    parser = verb(verbs, "fit", fit, _FIT, "MAKE_CATALOG")
    parser.shared("evalset", "--catalog")
    parser.add_argument("--as", dest="kind", choices=("profiles", "success"), help="what to fit")
    parser.option(
        "--out", "CATALOG", "name in the workspace, or a new YAML file", type=CATALOG.place
    )
    parser.flag("--force", "replace a file that is there")
    parser.option("--folds", "N", "parts (5)", type=int, default=5)
    parser.option("--seed", "N", "draws the parts", type=int, default=0)
    parser.shared("--groups-are-traffic", "--bundle")


def fit(options: argparse.Namespace) -> None:
    """Fit, write, and say what it is worth."""
    _check(options)
    catalog, text = _unfitted(options)
    evalset = open_evalset(options.evalset)
    if options.kind is None:
        found = _compare(options, catalog, evalset)
        show(options, found.numbers(), _ladder_text(found))
        return
    rung = _fit(options, catalog, text, evalset)
    numbers = rung.numbers()
    show(options, {**numbers, "path": options.out and str(options.out)}, _rung_text(numbers))
    if options.out is not None:
        say(f"written to {options.out}")
        say(f"next: hydra-router evaluate {shown(options.evalset)} --catalog {shown(options.out)}")


def _unfitted(options: argparse.Namespace) -> tuple[Catalog, str]:
    """The catalog and its text, without profiles that were fitted before."""
    from hydra_core.catalog.schema import parse_catalog
    from hydra_core.choosing.sources.catalog_blocks import unfitted

    catalog, text = open_catalog(options.catalog), catalog_text(options.catalog)
    bare = unfitted(text, catalog)
    return (catalog if bare == text else parse_catalog(bare, catalog.source)), bare


def _check(options: argparse.Namespace) -> None:
    if not 2 <= options.folds <= 20:
        problem = Problem("", f"must be 2 to 20, got {options.folds}", "5 is a good number")
        raise CatalogError("--folds", [problem])
    if options.kind is None and options.out is not None:
        problem = Problem("", "needs --as profiles or --as success", "say what to fit")
        raise CatalogError("--out", [problem])
    if options.out is not None:
        require_new_catalog(options.out, force=options.force)


def _fit(options: argparse.Namespace, catalog: Catalog, text: str, evalset: EvalSet) -> Rung:
    from hydra_core.choosing.material import groups_at, outcomes_of_replay
    from hydra_core.choosing.sources.catalog_blocks import start_of, with_source
    from hydra_core.choosing.sources.grader_check import findings_of
    from hydra_core.choosing.sources.ladder import Kind, fit_rung
    from hydra_core.export.release import write_release
    from hydra_core.replay.replay import align_catalog

    scores = scores_for(evalset, catalog, options.bundle)
    data = align_catalog(evalset, catalog, scores, today=date.today())
    for note in data.notes:
        say(f"note: {note}")
    outcomes = outcomes_of_replay(data, evalset)
    with progress_bar(f"{evalset.name}: folds", unit=" folds") as step:
        rung = fit_rung(
            Kind(options.kind),
            outcomes,
            start_of(catalog, data),
            groups=groups_at(evalset, data.rows),
            findings=findings_of(evalset, outcomes.models),
            groups_are_traffic=options.groups_are_traffic,
            folds=options.folds,
            seed=options.seed,
            progress=step,
        )
    if options.out is not None:
        write_release(options.out, with_source(text, catalog, rung, outcomes, evalset))
    return rung


def _compare(options: argparse.Namespace, catalog: Catalog, evalset: EvalSet) -> Ladder:
    import numpy as np

    from hydra_core.choosing.learn import learn
    from hydra_core.choosing.material import gather
    from hydra_core.choosing.sources.catalog_blocks import prices_of, start_of
    from hydra_core.choosing.sources.ladder import ladder_of_replay
    from hydra_core.cli.score import vectors_for
    from hydra_core.evalsets.score_files import messages_of
    from hydra_core.outcome_model.heads import Predicted
    from hydra_core.replay.replay import align_catalog

    scores = scores_for(evalset, catalog, options.bundle)
    vectors_for(evalset, catalog, options.bundle)
    data = align_catalog(evalset, catalog, scores, today=date.today())
    width = open_predictor(options.bundle).bundle.vectors
    messages = messages_of(evalset, catalog.predictor_fingerprint, width)
    material = gather(evalset, messages, data.pool.ids)
    if material.logged_only:
        message = "has too few outcomes on queries that the other models answered"
        remedy = "have it answer some of these (hydra-router collect), or use hydra-router learn"
        raise OutcomeModelError(
            evalset.name, [Problem(f"model {n!r}", message, remedy) for n in material.logged_only]
        )
    with progress_bar(f"{evalset.name}: success heads", unit=" steps") as step:
        learned = learn(
            material,
            prices_of(catalog, material.models),
            folds=options.folds,
            seed=options.seed,
            curve=False,
            progress=step,
        )
    known = data.with_outcomes
    columns = np.array([material.models.index(name) for name in known.pool.ids])
    cells = np.ix_(np.searchsorted(material.rows, known.rows), columns)
    found = learned.predicted
    with progress_bar(f"{evalset.name}: sources", unit=" sources") as step:
        return ladder_of_replay(
            data,
            evalset,
            start_of(catalog, data),
            predicted=Predicted(found.success[cells], found.cost_usd[cells]),
            groups_are_traffic=options.groups_are_traffic,
            folds=options.folds,
            seed=options.seed,
            progress=step,
        )


def _rung_text(found: Mapping[str, Any]) -> str:
    """The answer first, then what it rests on."""
    lines = [found["reason"]]
    if found["lift"] is not None:
        lines += ["", lift_table("above the best fixed mix", found["lift"])]
    return "\n".join([*lines, "", f"{found['n']:,} queries, cross-fitted"])


def _ladder_text(found: Ladder) -> str:
    rows = []
    for rung in found.rungs:
        numbers: Any = rung.numbers()
        lift = numbers["lift"]
        figures = (
            ["-", ""] if lift is None else [points(lift["mean"]), points_range(lift["interval"])]
        )
        rows.append([numbers["title"], *figures, numbers["coupling"]])
    header = ["source", "points above the fixed mix", "95 % interval", "coupling"]
    findings = [f"check: {one.text}" for one in found.findings[:5]]
    return "\n".join([found.reason, "", table(header, rows), *findings])
