"""Evaluate on a set in which each query has the outcome of one model, such as a log's."""

from __future__ import annotations

import argparse
from datetime import date
from typing import TYPE_CHECKING, Any

from hydra_core.base.spelling import usd
from hydra_core.cli.output import (
    mix_table,
    percent,
    percent_range,
    quality_lines,
    show,
    value_and_ends,
)
from hydra_core.cli.score import scores_for, vectors_for
from hydra_core.cli.workspace import existing

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog, FloatArray, IntArray, Pool
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.live.off_policy import LoggedEvaluation


def evaluate_log(options: argparse.Namespace, catalog: Catalog, evalset: EvalSet) -> None:
    """Print mix, agreement, costs and, where the log can say, quality.

    Raises:
        HydraError: Catalog and set do not fit together.
    """
    from hydra_core.catalog.profiles import pool
    from hydra_core.live.off_policy import evaluate_logged

    scores = scores_for(evalset, catalog, options.bundle)
    routable = pool(catalog, today=date.today())
    choice = _choice(options, catalog, routable, evalset, scores)
    found = evaluate_logged(evalset, catalog, routable.ids, choice, scores)
    show(options, _document(found), _text(found, catalog, evalset))


def _choice(
    options: argparse.Namespace,
    catalog: Catalog,
    routable: Pool,
    evalset: EvalSet,
    scores: FloatArray,
) -> IntArray:
    """(n,) place of the policy's model in the pool, by the rule that would serve."""
    from hydra_core.base.types import SuccessSource
    from hydra_core.outcome_model.format import catalog_outcome_model, load_outcome_model
    from hydra_core.outcome_model.success_profiles import catalog_success_profiles
    from hydra_core.replay.predictions import input_sizes, pool_heads, predict_evalset
    from hydra_core.routing.matcher import choose, shortfall, value_shortfall

    by_catalog = catalog.policy.rule.value == "value" and options.tau is None
    value = options.value or catalog.policy.value_usd
    if (options.outcome_model is None and not by_catalog) or value is None:
        need = routable.capped(scores)
        lacking = shortfall(need, routable.capabilities, routable.weights)
        tau = catalog.policy.tau if options.tau is None else options.tau
        return choose(lacking, routable.cost, tau)
    by_profiles = catalog.success_source is SuccessSource.SUCCESS_PROFILES
    if options.outcome_model is None and by_profiles:
        profiles = catalog_success_profiles(catalog, routable)
        said = profiles.predict(routable.capped(scores), sizes=input_sizes(evalset))
    else:
        given = options.outcome_model
        model = load_outcome_model(existing(given)) if given else catalog_outcome_model(catalog)
        vectors_for(evalset, catalog, options.bundle)
        heads = pool_heads(model, catalog, routable)
        said = predict_evalset(evalset, model, heads, cross_fitted=True)
    return choose(value_shortfall(said.success, said.cost_usd, value), said.cost_usd, 0.0)


def _document(found: LoggedEvaluation) -> dict[str, Any]:
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


def _text(found: LoggedEvaluation, catalog: Catalog, evalset: EvalSet) -> str:
    lines = [
        f"{evalset.name}: {found.n:,} queries with the outcome of one model; not replayed",
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
