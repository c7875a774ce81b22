"""The verb evaluate: replay an eval set under a catalog and print what routing would do."""

from __future__ import annotations

import argparse
import math
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import CatalogError, EvalSetError
from hydra_core.base.spelling import counted, usd
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import (
    mix_table,
    percent,
    percent_range,
    print_json,
    progress_bar,
    quality_lines,
    say,
    show,
    table,
    value_and_ends,
)
from hydra_core.cli.score import scores_for, vectors_for
from hydra_core.cli.workspace import OUTCOME_MODEL, existing, open_catalog, open_evalset

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog, FloatArray, Pool, Selection
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.live.off_policy import LoggedEvaluation
    from hydra_core.outcome_model.heads import Predicted
    from hydra_core.replay.baselines import BaselineRun
    from hydra_core.replay.evaluation import Evaluation
    from hydra_core.replay.metrics import PolicyMetrics
    from hydra_core.replay.pricing import Prices
    from hydra_core.replay.replay import ReplayData
    from hydra_core.replay.significance_table import SignificanceTable
    from hydra_core.replay.sweep import Sweep

_EVALUATE = """replay the router over an eval set
Replays the router over an eval set: single models, oracle, the router at one tau with 95 %
intervals, the result against the best fixed mix of models at the same cost, the exact frontier.
Queries that are not scored yet are scored first.

The catalog's own policy counts as fixed beforehand, except on the sets that its chosen_on names. On
those, tau was picked on these queries, so the interval covers the whole curve. The same holds for a
--tau or --weights of your own, unless you state with --fixed that nobody had seen results on this
set; then the output says that this is your statement.

A set in which each query has the outcome of one model, such as a log's, is not replayed: mix,
agreement and costs are given, and quality where the log kept its propensities (serve
--explore-all), estimated or bounded.

examples:
  hydra-router evaluate mine --catalog mine
  hydra-router evaluate paper_swebench --catalog paper_five_published
  hydra-router evaluate mine --catalog pool.yaml --tau 0.1 --baseline gpt-5 --json
  hydra-router evaluate mine --catalog mine --weights 1,2,1,0.5
  hydra-router evaluate other --catalog mine --outcome-model mine --json
  hydra-router evaluate mine --catalog mine --tau 0.1 --fixed
  hydra-router evaluate mine --catalog mine --table --points 0.1,0.2
  hydra-router evaluate mine --catalog mine --table table.tex
"""
_KNOBS = {"shortfall": "tau", "value": "value of one more resolved query (V) in USD"}


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "evaluate", _evaluate, _EVALUATE)
    parser.shared("evalset", "--catalog", "--tau")
    parser.option("--weights", "r,c,d,t", "one stored weight per dimension, catalog order")
    parser.option(
        "--baseline", "MODEL", "savings are against this model (default: the most expensive)"
    )
    said = "at the catalog's prices (default), or as recorded"
    parser.add_argument("--costs", choices=("today", "recorded"), default="today", help=said)
    parser.shared("--bundle")
    said = "replay the value rule by this model's predictions (name in the workspace or folder)"
    parser.option("--outcome-model", "MODEL", said, type=OUTCOME_MODEL.find)
    parser.option("--value", "V", "value of one more resolved query in USD", type=float)
    said = "the set was learned on: predict each query by heads that were not fitted on it"
    parser.flag("--cross-fitted", said)
    parser.shared("--fixed")
    said = "significance table of router, single models and imported policies (.csv, .tex)"
    parser.option("--table", "FILE", said, nargs="?", const="-")
    parser.option("--points", "a,b,c", "more values of tau (or V) as rows of the table")
    parser.flag("--baselines", "learned routers, cross-fitted, in the table too")


def _evaluate(options: argparse.Namespace) -> None:
    from hydra_core.live.off_policy import is_log
    from hydra_core.replay.evaluation import evaluate, evaluation_document

    catalog = open_catalog(options.catalog)
    evalset = open_evalset(options.evalset)
    by_value = _by_value(options, catalog)
    if options.table is None and is_log(evalset, [model.id for model in catalog.models]):
        _evaluate_log(options, catalog, evalset, by_value=by_value)
        return
    if by_value:
        sweep = value_sweep(options, catalog, evalset, cross_fitted=options.cross_fitted)
        knob = _checked_value(sweep.own_knob if options.value is None else options.value)
    else:
        sweep, knob = shortfall_sweep(options, catalog, evalset, options.weights)
    baseline = _baseline(options.baseline, sweep.data)
    evaluation = evaluate(sweep, knob, baseline, selection=selection(options))
    if options.table is not None:
        _print_table(options, evaluation)
    elif options.json:
        made = datetime.now().astimezone()
        print_json(evaluation_document(evaluation, made=made), indent=None)
    else:
        print(_text(evaluation))


def selection(options: argparse.Namespace) -> Selection | None:
    """FIXED where the operator states it; None leaves it to the policy."""
    from hydra_core.base.types import Selection

    return Selection.FIXED if options.fixed else None


def shortfall_sweep(
    options: argparse.Namespace, catalog: Catalog, evalset: EvalSet, weights: str | None = None
) -> tuple[Sweep, float]:
    """The eval set replayed under the catalog, and the chosen tau; notes go to stderr."""
    from hydra_core.replay.sweep import sweep_catalog

    tau = checked_tau(options.tau, catalog)
    stored = _weights(weights, catalog)
    scores = scores_for(evalset, catalog, options.bundle)
    today, prices = date.today(), _costs(options)
    sweep = sweep_catalog(evalset, catalog, scores, stored, today=today, prices=prices)
    return noted(sweep), tau


def checked_tau(given: float | None, catalog: Catalog) -> float:
    """The given tau, or the catalog's; CatalogError where it is no number >= 0."""
    tau = catalog.policy.tau if given is None else given
    if not (math.isfinite(tau) and tau >= 0):
        raise CatalogError.of("--tau", f"must be a number >= 0, got {tau:g}")
    return tau


def _weights(text: str | None, catalog: Catalog) -> tuple[float, ...] | None:
    """Stored weights of `r,c,d,t`; `pool` checks their number and sign."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        remedy = f"one number for each of {', '.join(catalog.dimensions)}, such as 1,1,0.5,1"
        raise CatalogError.of("--weights", f"{text!r} is not a list of numbers", remedy) from error


def _baseline(name: str | None, data: ReplayData) -> str | None:
    if name is None or name in data.pool.ids:
        return name
    message = f"{name!r} is not among the replayed models"
    raise EvalSetError.of("--baseline", message, f"one of {', '.join(data.pool.ids)}")


def _by_value(options: argparse.Namespace, catalog: Catalog) -> bool:
    """Whether the value rule applies; a knob of the other rule is refused."""
    by_catalog = catalog.policy.rule.value == "value" and options.tau is None
    by_value = options.outcome_model is not None or by_catalog
    foreign = {"--tau": options.tau, "--weights": options.weights}
    remedy = "leave it out, or evaluate without --outcome-model and by --tau"
    if not by_value:
        foreign = {"--value": options.value, "--cross-fitted": options.cross_fitted or None}
        remedy = "give --outcome-model, or leave it out"
    rule = "value" if by_value else "shortfall"
    for name, given in foreign.items():
        if given is not None:
            raise CatalogError.of(name, f"has no effect under the {rule} rule", remedy)
    return by_value


def _checked_value(value: float | None) -> float:
    """V; refused where it is not a number > 0."""
    if value is not None and math.isfinite(value) and value > 0:
        return value
    fault = "is missing, and the catalog has none"
    if value is not None:
        fault = f"must be a number > 0, got {value:g}"
    raise CatalogError.of("--value", fault, "in USD, such as 0.02")


def value_sweep(
    options: argparse.Namespace, catalog: Catalog, evalset: EvalSet, *, cross_fitted: bool
) -> Sweep:
    """The set under the value rule, by the outcome model given or by what the catalog holds.

    Args:
        options: With `outcome_model`, `bundle` and perhaps `costs`; missing scores or vectors are
            made first.

    Raises:
        HydraError: Outcome model, catalog and set do not fit together.
    """
    from hydra_core.base.types import SuccessSource
    from hydra_core.outcome_model.format import load_outcome_model, require_same_bundle
    from hydra_core.replay.sweep import sweep_by_value, sweep_own_value

    how: dict[str, Any] = {"today": date.today(), "prices": _costs(options)}
    how["cross_fitted"] = cross_fitted
    if options.outcome_model is not None:
        model = load_outcome_model(existing(options.outcome_model))
        require_same_bundle(catalog, model)
        vectors_for(evalset, catalog, options.bundle)
        return noted(sweep_by_value(evalset, catalog, model, **how))
    by_profiles = catalog.success_source is SuccessSource.SUCCESS_PROFILES
    make = scores_for if by_profiles else vectors_for
    make(evalset, catalog, options.bundle)
    return noted(sweep_own_value(evalset, catalog, **how))


def _costs(options: argparse.Namespace) -> Prices:
    from hydra_core.replay.pricing import Prices

    return Prices(getattr(options, "costs", Prices.TODAY))


def noted(sweep: Sweep) -> Sweep:
    """The same, its notes printed on stderr."""
    for note in sweep.data.notes:
        say(f"note: {note}")
    return sweep


def _text(evaluation: Evaluation) -> str:
    evalset, router, data = evaluation.sweep.evalset, evaluation.router, evaluation.sweep.data
    flags = ["SYNTHETIC: outcomes were simulated"] if evalset.synthetic else []
    flags += ["costs were estimated from prices"] if evalset.cost_estimated else []
    known = evaluation.constants
    singles = {one: known[one] for one in data.pool.ids if one in known}
    policies = {**singles, "oracle": evaluation.oracle, "router": router}
    least = " ≥" if router.unknown else ""
    header = ["", "resolved", "quality", "USD/query", "USD/resolved", "CS"]
    measured = {f"quality{least}": router.quality, f"QR{least}": router.qr, "CS": router.cs}
    measured["misroute"] = router.misroute
    ranges = "; ".join(f"{name} {percent_range(one)}" for name, one in measured.items())
    shares = ", ".join(f"{model} {percent(share)}" for model, share in router.shares.items())
    return "\n".join(
        [
            f"{evalset.name}: {counted(router.n, 'query')}, catalog "
            f"{evaluation.sweep.catalog.name}, "
            f"{_KNOBS[evaluation.sweep.rule.value]} {evaluation.knob:g}",
            *flags,
            "",
            table(header, [_row(name, one) for name, one in policies.items()]),
            "",
            f"router, 95 % intervals: {ranges}",
            f"traffic: {shares}",
            *filter(None, [evaluation.served_note]),
            f"costs: {data.costs}",
            f"savings are against {evaluation.baseline}",
            *_conversations(evaluation),
            f"result: {evaluation.verdict.title}. {evaluation.verdict.text}",
            *(f"  {one}" for one in (*evaluation.verdict.details, evaluation.caution) if one),
        ]
    )


def _conversations(evaluation: Evaluation) -> list[str]:
    """Every sticky mode on whole conversations, or why replay is per query."""
    from hydra_core.replay.conversations import replay_conversations, why_per_query

    played = replay_conversations(evaluation.sweep, evaluation.knob, evaluation.baseline)
    if played is None:
        return [why_per_query(evaluation.sweep)]
    rows = [
        [
            one.mode.value,
            percent(one.quality.value),
            f"{one.usd_per_turn.value:.4g}",
            percent_range(one.cs),
            percent(one.cached_share),
            f"{one.switches:.2f}",
            f"{one.lost_usd:.4g}",
        ]
        for one in played.modes
    ]
    head = ["sticky mode", "quality", "USD/turn", "CS", "cache reads", "switches", "lost, USD"]
    return [
        f"{counted(played.turns, 'turn')} of {played.conversations:,} whole conversations "
        f"({played.left_out:,} left out); CS against {played.strong} with a warm cache; switches "
        "and what they lost per conversation:",
        table(head, rows),
        *(
            f"no cached price is known of {name}: it reads no cache"
            for name in played.without_price
        ),
    ]


def _row(name: str, one: PolicyMetrics) -> list[str]:
    least, most = ("≥ ", "≤ ") if one.unknown else ("", "")
    return [
        name,
        f"{least}{one.resolved}/{one.n}",
        f"{least}{percent(one.quality.value)}",
        usd(one.mean_cost_usd.value)[1:],
        f"{most}{usd(one.per_resolved_usd.value)[1:]}" if one.resolved else "-",
        percent(one.cs.value),
    ]


def _print_table(options: argparse.Namespace, evaluation: Evaluation) -> None:
    from hydra_core.replay.significance_table import common_table, significance_document

    if options.table != "-" and Path(options.table).suffix not in (".csv", ".tex"):
        remedy = "name a file that ends in .csv or .tex, or none for the terminal"
        raise CatalogError.of("--table", f"{options.table!r} is neither CSV nor LaTeX", remedy)
    made = common_table(
        evaluation.sweep,
        [evaluation.knob, *_points(options.points)],
        strong=evaluation.baseline,
        fixed=options.fixed,
        learned=_learned(evaluation) if options.baselines else (),
    )
    if options.table != "-":
        _write_table(Path(options.table), made)
    else:
        show(options, significance_document(made), _table_text(made))


def _points(text: str | None) -> list[float]:
    try:
        points = [float(part) for part in text.split(",")] if text else []
    except ValueError:
        points = [math.nan]
    if not all(math.isfinite(point) and point >= 0 for point in points):
        remedy = "write numbers with commas, such as 0.1,0.2"
        raise CatalogError.of("--points", f"{text!r} is not a list of numbers >= 0", remedy)
    return points


def _learned(evaluation: Evaluation) -> tuple[BaselineRun, ...]:
    from hydra_core.replay.baselines import BASELINES, RANDOM_MIX, run_baselines

    sweep = evaluation.sweep
    if sweep.evalset.texts is None:
        say("note: the set has no texts, which learned routers read: left out")
        return ()
    texts = sweep.evalset.texts.astype(str).iloc[sweep.data.rows].tolist()
    names = tuple(name for name in BASELINES if name != RANDOM_MIX)
    with progress_bar("learned routers", unit=" steps") as step:
        return tuple(run_baselines(sweep.data, texts, names=names, progress=step))


def _write_table(path: Path, made: SignificanceTable) -> None:
    from hydra_core.export.downloads import csv_file
    from hydra_core.replay.significance_table import latex, pair_frame, standing_frame

    files = {path: latex(made).encode()}
    if path.suffix == ".csv":
        pairs = path.with_name(f"{path.stem}-pairs.csv")
        files = {path: csv_file(standing_frame(made)), pairs: csv_file(pair_frame(made))}
    for file, content in files.items():
        file.write_bytes(content)
        say(f"written to {file}")


def _table_text(made: SignificanceTable) -> str:
    from hydra_core.replay.significance_table import HEAD, matrix, standing_cells

    cells = matrix(made)
    numbers = [f"({i + 1})" for i in range(len(cells))]
    rows = [
        [f"({i + 1}) {name}", *row]
        for i, (name, row) in enumerate(zip(cells.index, cells.to_numpy().tolist(), strict=True))
    ]
    return "\n".join(
        [
            f"{counted(made.n, 'query')}, {made.independent:,} independent",
            table(list(HEAD), standing_cells(made)),
            "",
            "row minus column, points of quality; * where the corrected p is below 0.05",
            table(["", *numbers], rows),
            "",
            *made.methods,
        ]
    )


def _evaluate_log(
    options: argparse.Namespace, catalog: Catalog, evalset: EvalSet, *, by_value: bool
) -> None:
    """Print mix, agreement, costs and, where the log can say, quality."""
    import numpy as np

    from hydra_core.catalog.profiles import pool
    from hydra_core.live.off_policy import evaluate_logged
    from hydra_core.replay.frontier import CLOSED
    from hydra_core.replay.gated import closed_models
    from hydra_core.replay.predictions import weighed
    from hydra_core.replay.replay import TEAMS
    from hydra_core.routing.matcher import choose, shortfall, value_shortfall

    scores = scores_for(evalset, catalog, options.bundle)
    routable = pool(catalog, today=date.today(), weights=_weights(options.weights, catalog))
    closed = closed_models(evalset.queries, [catalog.model(name) for name in routable.ids])
    if by_value:
        given = catalog.policy.value_usd if options.value is None else options.value
        value = _checked_value(given)  # before anything is read or scored
        said = _predicted(options, catalog, routable, evalset, scores)
        said = weighed(routable.ids, closed, catalog, said)
        behind = value_shortfall(said.success, said.cost_usd, value)
        choice = choose(behind, said.cost_usd, 0.0)
    else:
        tau = checked_tau(options.tau, catalog)
        lacking = shortfall(routable.capped(scores), routable.capabilities, routable.weights)
        lacking = lacking if closed is None else np.where(closed, CLOSED, lacking)
        choice = choose(lacking, routable.cost, tau)
    if closed is not None:
        choice = np.where(closed.all(axis=1), -1, choice)
    if catalog.policy.teams:
        say(f"note: {TEAMS}")
    found = evaluate_logged(evalset, catalog, routable.ids, choice, scores)
    if gone := int((choice < 0).sum()):
        say(f"note: Left out: {counted(gone, 'query')} that no model may serve.")
    show(options, _log_document(found), _log_text(found, catalog, evalset))


def _predicted(
    options: argparse.Namespace,
    catalog: Catalog,
    routable: Pool,
    evalset: EvalSet,
    scores: FloatArray,
) -> Predicted:
    """What the value rule is told of every query, (n, m) in the order of the pool."""
    from hydra_core.base.types import SuccessSource
    from hydra_core.outcome_model.format import catalog_outcome_model, load_outcome_model
    from hydra_core.outcome_model.success_profiles import catalog_success_profiles
    from hydra_core.replay.predictions import input_sizes, pool_heads, predict_evalset

    given = options.outcome_model
    if given is None and catalog.success_source is SuccessSource.SUCCESS_PROFILES:
        profiles = catalog_success_profiles(catalog, routable)
        return profiles.predict(routable.capped(scores), sizes=input_sizes(evalset))
    model = load_outcome_model(existing(given)) if given else catalog_outcome_model(catalog)
    vectors_for(evalset, catalog, options.bundle)
    heads = pool_heads(model, catalog, routable)
    return predict_evalset(evalset, model, heads, cross_fitted=True)


def _log_document(found: LoggedEvaluation) -> dict[str, Any]:
    value = found.value
    estimates = {} if value is None else value.estimates
    return {
        "schema": "hydra.logged_evaluation/v1",
        "n": found.n,
        "served": found.served,
        "chosen": found.chosen,
        "agreement": value_and_ends(found.agreement),
        "billed_usd": value_and_ends(found.billed_usd),
        "cost_change": value_and_ends(found.cost_change),
        "live_quality": value_and_ends(found.live),
        "quality": {name: value_and_ends(one) for name, one in estimates.items()},
        "unsupported": None if value is None else value.unsupported,
        "effective": None if value is None else value.effective,
        "no_quality_because": found.why or None,
    }


def _log_text(found: LoggedEvaluation, catalog: Catalog, evalset: EvalSet) -> str:
    lines = [
        f"{evalset.name}: {counted(found.n, 'query')} with the outcome of one model; not replayed",
        "",
        mix_table(["served", catalog.name], [found.served, found.chosen]),
        "",
        f"agreement: {percent_range(found.agreement)}",
    ]
    if found.billed_usd is not None:
        lines.append(f"billed: {usd(found.billed_usd.value)} per query")
    if found.cost_change is not None:
        change = f"{100 * found.cost_change.value:+.1f} %"
        lines.append(f"cost against what was served, both at the catalog's prices: {change}")
    lines.append(f"quality, as served: {percent_range(found.live)}")
    if found.value is None:
        return "\n".join([*lines, f"quality: not estimated, {found.why}"])
    lines += quality_lines(found.value)
    if found.value.unsupported:
        share = percent(found.value.unsupported)
        lines.append(f"  {share} would go to models that the log could not have served there")
    size = f"{found.value.n:,} queries are worth {found.value.effective:,.0f}"
    return "\n".join([*lines, f"  {size} (effective sample size)"])
