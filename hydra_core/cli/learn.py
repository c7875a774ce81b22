"""The verbs fit and learn: fitted profiles, or an outcome model, and what they are worth."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import CatalogError, OutcomeModelError, Problem, ProblemsError
from hydra_core.base.spelling import counted
from hydra_core.base.workspace import workspace_folder
from hydra_core.cli.options import Verbs, verb, whole
from hydra_core.cli.output import lift_table, points, points_range, progress_bar, say, show, table
from hydra_core.cli.score import open_predictor, scores_for
from hydra_core.cli.workspace import (
    CATALOG,
    OUTCOME_MODEL,
    acting,
    catalog_text,
    changes,
    open_catalog,
    open_evalset,
    require_new_catalog,
    shown,
    store_of,
    write_catalog,
)

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.choosing.sources.ladder import Ladder, Rung
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.outcome_model.model import OutcomeModel


_FIT = """fit a catalog's profiles to outcomes
Fits a catalog's profiles to the outcomes of an eval set and says whether they beat the best fixed
mix of models at the same cost. Every figure is cross-fitted, on queries with outcomes of all
models, by the gates of the set and at the price of tokens alone. The result is YAML alone: a model
is added, removed or repriced by an edit.

  profiles  Eq. 6 with a dimension 'level' that every query requires in full
  success   success as a sum of curves of the requirements; the value rule routes by it

Without --as all sources are compared, success heads included, and nothing is written. With --json,
lifts are in quality from 0 to 1: 0.013 is 1.3 points.

examples:
  hydra-router fit mine --catalog mine
  hydra-router fit mine --catalog mine --as profiles --out fitted
  hydra-router fit mine --catalog mine --as success --out new --json
"""


def _add_fit(verbs: Verbs) -> None:
    parser = verb(verbs, "fit", _fit, _FIT, "MAKE_CATALOG")
    parser.shared("evalset", "--catalog")
    parser.add_argument("--as", dest="kind", choices=("profiles", "success"), help="what to fit")
    parser.option(
        "--out", "CATALOG", "name in the workspace, or a new YAML file", type=CATALOG.place
    )
    parser.flag("--force", "replace a file that is there")
    parser.option("--folds", "N", "parts (5)", type=int, default=5)
    parser.option("--seed", "N", "draws the parts", type=whole, default=0)
    parser.shared("--groups-are-traffic", "--bundle")


def _fit(options: argparse.Namespace) -> None:
    _check_fit(options)
    catalog, text = _unfitted(options)
    evalset = open_evalset(options.evalset)
    if options.kind is None:
        found = _compare(options, catalog, evalset)
        show(options, found.numbers(), _ladder_text(found))
        return
    rung = _fit_one(options, catalog, text, evalset)
    numbers = rung.numbers()
    show(options, {**numbers, "path": options.out and str(options.out)}, _rung_text(numbers))
    if options.out is not None:
        say(f"written to {options.out}")
        say(f"next: hydra-router evaluate {shown(options.evalset)} --catalog {shown(options.out)}")


def _unfitted(options: argparse.Namespace) -> tuple[Catalog, str]:
    """The catalog and its text, without profiles that were fitted before."""
    from hydra_core.catalog.schema import parse_catalog
    from hydra_core.choosing.write import unfitted

    catalog, text = open_catalog(options.catalog), catalog_text(options.catalog)
    bare = unfitted(text, catalog)
    return (catalog if bare == text else parse_catalog(bare, catalog.source)), bare


def _check_fit(options: argparse.Namespace) -> None:
    _check_folds(options, CatalogError)
    if options.kind is None and options.out is not None:
        raise CatalogError.of("--out", "needs --as profiles or --as success", "say what to fit")
    if options.out is not None:
        require_new_catalog(options.out, force=options.force)


def _fit_one(options: argparse.Namespace, catalog: Catalog, text: str, evalset: EvalSet) -> Rung:
    from hydra_core.choosing.material import groups_at, outcomes_of_replay, with_all_outcomes
    from hydra_core.choosing.sources.grader_check import findings_of
    from hydra_core.choosing.sources.ladder import Kind, fit_rung
    from hydra_core.choosing.write import start_of, with_source
    from hydra_core.replay.replay import align_catalog

    scores = scores_for(evalset, catalog, options.bundle)
    data = with_all_outcomes(align_catalog(evalset, catalog, scores, today=date.today()), evalset)
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
        write_catalog(options.out, with_source(text, catalog, rung, outcomes, evalset))
    return rung


def _compare(options: argparse.Namespace, catalog: Catalog, evalset: EvalSet) -> Ladder:
    import numpy as np

    from hydra_core.choosing.learn import learn
    from hydra_core.choosing.material import gather, with_all_outcomes
    from hydra_core.choosing.sources.ladder import ladder_of_replay
    from hydra_core.choosing.write import long_prices_of, prices_of, start_of
    from hydra_core.cli.score import vectors_for
    from hydra_core.evalsets.scores import messages_of
    from hydra_core.outcome_model.heads import Predicted
    from hydra_core.replay.pricing import priced_costs
    from hydra_core.replay.replay import align_catalog

    scores = scores_for(evalset, catalog, options.bundle)
    vectors_for(evalset, catalog, options.bundle)
    data = with_all_outcomes(align_catalog(evalset, catalog, scores, today=date.today()), evalset)
    width = open_predictor(options.bundle).bundle.vectors
    messages = messages_of(evalset, catalog.predictor_fingerprint, width)
    costs = priced_costs(evalset, catalog).usd
    material = gather(evalset, messages, data.pool.ids, costs=costs)
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
            long=long_prices_of(catalog, material.models),
            folds=options.folds,
            seed=options.seed,
            curve=False,
            progress=step,
        )
    replayed = data.with_outcomes
    columns = np.array([material.models.index(name) for name in replayed.pool.ids])
    cells = np.ix_(np.searchsorted(material.rows, replayed.rows), columns)
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
    lines = [found["reason"]]
    if found["lift"] is not None:
        lines += ["", lift_table("above the best fixed mix", found["lift"])]
    return "\n".join([*lines, "", f"{counted(found['n'], 'query')}, cross-fitted"])


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


_LEARN = """learn an outcome model from an eval set
Learns from an eval set what your models achieve and cost, and says whether routing by these
predictions does better than the best fixed mix of models at the same cost. Every figure is
cross-fitted: no query is predicted by heads that were fitted on it. Lifts are on queries with
outcomes of all models and at the price of tokens alone. With --catalog they obey the gates of the
set. Missing text vectors are made first.

Below 1,000 queries a fixed recipe is fitted; from then on inner folds choose the learner. A model
with 25 outcomes or more takes part; one with few borrows from the others' outcomes. Queries with
outcomes of some models only, such as a log's, are learned along where they help; what they added is
said. From a log alone a model is learned, and its use is not recommended: no gain can be measured
without some hundred queries that every model answered.
A model with 25 outcomes in logs only joins by these: its level is how it did against what the
others were predicted to achieve on the queries that it was sent. What it adds is not measured.
A model without outcomes, or with fewer than half of the others', joins by --rate: how often it
solves such queries, from a benchmark or a guess. It then stands where models of that rate stand,
and its few outcomes move it. A wrong rate is the risk; the answer says what it costs here.
Where the set has groups, the answer says whether the gain comes from telling them apart; with a
grader in doubt such a gain does not count, unless --groups-are-traffic says that they are real.
With --json, lifts are in quality from 0 to 1: 0.024 is 2.4 points.

examples:
  hydra-router learn mine --catalog mine --out mine
  hydra-router learn mine --catalog mine --out mine --rate new-model=0.62
  hydra-router learn mine --models gpt-5,gpt-5-mini --out small --json
"""


def add_verbs(verbs: Verbs) -> None:
    _add_fit(verbs)
    parser = verb(verbs, "learn", _learn, _LEARN, "LEARN")
    parser.shared("evalset")
    which = parser.add_mutually_exclusive_group(required=True)
    said = "its models, at its prices (name in the workspace, or a YAML file)"
    which.add_argument("--catalog", metavar="CATALOG", help=said)
    which.add_argument("--models", metavar="a,b,c", help="these models, at the set's own costs")
    said = "name in the workspace, or a new folder"
    parser.option("--out", "MODEL", said, type=OUTCOME_MODEL.place, required=True)
    parser.option("--folds", "N", "outer folds (5)", type=int, default=5)
    parser.option("--seed", "N", "draws folds and trees", type=whole, default=0)
    parser.flag("--force", "replace an outcome model there")
    said = "a model with few outcomes or none joins by its mean success, such as 0.62"
    parser.each("--rate", "MODEL=P", said)
    parser.shared("--groups-are-traffic", "--bundle")


def _learn(options: argparse.Namespace) -> None:
    from hydra_core.choosing.by_rate import with_newcomers
    from hydra_core.choosing.learn import learn
    from hydra_core.choosing.material import gather, with_gates
    from hydra_core.choosing.write import (
        audit_recorder,
        long_prices_of,
        prices_of,
        require_free_folder,
        write_outcome_model,
    )
    from hydra_core.evalsets.scores import messages_of
    from hydra_core.replay.pricing import priced_costs

    _check_folds(options, OutcomeModelError)
    require_free_folder(options.out, force=options.force)
    record = audit_recorder(acting(), store_of(options.out, options.evalset), options.out)
    evalset = open_evalset(options.evalset)
    predictor = open_predictor(options.bundle)
    bundle = predictor.bundle
    catalog = None if options.catalog is None else open_catalog(options.catalog)
    rates = _rates(options, catalog, evalset)
    models = _models(options, catalog, evalset, bundle.fingerprint, rates)
    with progress_bar(f"{evalset.name}: vectors") as step:
        changes(evalset.path).score(evalset, predictor, step)
    messages = messages_of(evalset, bundle.fingerprint, bundle.vectors)
    costs = None if catalog is None else priced_costs(evalset, catalog).usd
    material = gather(evalset, messages, models, rates, costs)
    if catalog is not None:
        material = with_gates(material, catalog)
    prices = None if catalog is None else prices_of(catalog, material.models)
    with progress_bar(f"{evalset.name}: folds", unit=" steps") as step:
        learned = learn(
            material,
            prices,
            long=None if catalog is None else long_prices_of(catalog, material.models),
            folds=options.folds,
            seed=options.seed,
            groups_are_traffic=options.groups_are_traffic,
            progress=step,
        )
    named = (*material.models, *material.logged_only, *rates)
    by_name = None
    if catalog is not None:
        by_name = dict(zip(named, prices_of(catalog, named).tolist(), strict=True))
    learned = with_newcomers(learned, rates, by_name)
    made = write_outcome_model(
        options.out, learned, fingerprint=bundle.fingerprint, force=options.force, record=record
    )
    document = {**made.figures, "path": str(options.out), "sha256": made.digest}
    show(options, document, _text(made))


def _check_folds(options: argparse.Namespace, kind: type[ProblemsError]) -> None:
    if not 2 <= options.folds <= 20:
        raise kind.of("--folds", f"must be 2 to 20, got {options.folds}", "5 is the usual number")


def _rates(
    options: argparse.Namespace, catalog: Catalog | None, evalset: EvalSet
) -> dict[str, float]:
    """The rates given that are needed; outcomes speak for the other models."""
    from hydra_core.choosing.by_rate import need_rates

    if not options.rate:
        return {}
    if catalog is None:
        raise OutcomeModelError.of(
            "--rate", "needs --catalog", "its prices say what the model costs"
        )
    known, given = [model.id for model in catalog.models], {}
    for one in options.rate:
        name, equals, value = one.rpartition("=")
        try:
            given[name] = float(value)
        except ValueError:
            equals = ""
        if not equals or name not in known:
            message = f"must be MODEL=P with a model of the catalog, got {one!r}"
            raise OutcomeModelError.of("--rate", message, f"it has {', '.join(known)}")
    needed = need_rates(evalset, given)
    for name in set(given) - set(needed):
        say(f"note: the rate of {name} is not used: its outcomes here say more")
    return needed


def _models(
    options: argparse.Namespace,
    catalog: Catalog | None,
    evalset: EvalSet,
    fingerprint: str,
    rates: dict[str, float],
) -> list[str]:
    """The models to learn: those named, or those that a catalog routes to and have outcomes."""
    if catalog is None:
        return [name.strip() for name in options.models.split(",") if name.strip()]
    from hydra_core.catalog.binding import require_bundle
    from hydra_core.catalog.profiles import routable_models

    require_bundle(catalog, fingerprint)
    known = [name for name in evalset.models if name not in rates]
    routable = [model.id for model in routable_models(catalog, date.today())]
    absent = [name for name in routable if name not in known and name not in rates]
    closed = [
        model.id for model in catalog.models if model.id in known and model.id not in routable
    ]
    for why, names in (("no outcomes for", absent), ("the catalog does not route to", closed)):
        if names:
            say(f"note: {why} {', '.join(names)}: left out of what is learned")
    return [name for name in routable if name in known]


def _text(made: OutcomeModel) -> str:
    figures: Any = made.figures
    lines = [figures["reason"], ""]
    if figures["lift"] is not None:
        lines += [lift_table("above the best fixed mix at equal cost", figures["lift"]), ""]
    counts = ", ".join(
        f"{name} {about['outcomes']}{' (newcomer)' if about['newcomer'] else ''}"
        for name, about in figures["models"].items()
    )
    logged = figures.get("logged")
    steps = [f"{one['queries']}: {points(one['lift'])}" for one in figures["learning_curve"]]
    lines += [
        f"learner: {figures['learner']}",
        f"outcomes: {counts}; {counted(figures['n'], 'query')} learned on",
        *([] if not logged else [_logged(logged)]),
        *([figures["rehearsal"]["sentence"]] if figures.get("rehearsal") else []),
        *(f"check: {one['text']}" for one in (figures.get("check") or {}).get("findings", [])[:5]),
        f"lift by queries learned on: {'; '.join(steps) or 'unknown'}",
        "",
        "for the catalog:",
        "policy: {rule: value, value_usd: ...}",
        f"outcome_model: {{path: {_path(made.path)}, sha256: {made.digest}}}",
    ]
    return "\n".join(lines)


def _logged(logged: dict[str, Any]) -> str:
    without = logged["lift_without"]
    if without is None:
        return str(logged["sentence"])
    return f"{logged['sentence']} Without them: {points(without['lift'])}"


def _path(path: Path) -> Path:
    """As a catalog names it: below the workspace where it lies there."""
    folder = workspace_folder()
    return path.relative_to(folder) if path.is_relative_to(folder) else path
