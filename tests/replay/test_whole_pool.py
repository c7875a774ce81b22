"""A model without outcomes takes its traffic in every replay, as the router will give it."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import MismatchError
from hydra_core.base.types import CostBasis, Policy, Rule, SuccessSource
from hydra_core.catalog import load_catalog
from hydra_core.catalog.profiles import pool
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.evalsets.scores import messages_of
from hydra_core.outcome_model.format import catalog_outcome_model
from hydra_core.replay.compare import compare, policy_run, replay_policy, what_if
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.replay import align, catalog_scores
from hydra_core.replay.sweep import Sweep, sweep_by_value, sweep_catalog
from hydra_core.replay.verdict import VerdictLabel
from hydra_core.routing.router import Router

ROOT = Path(__file__).resolve().parents[2]
CATALOG = load_catalog(ROOT / "catalog" / "paper_five_published.yaml")
TODAY = date(2026, 1, 1)


@pytest.fixture(scope="module")
def evalset():
    return load_evalset(ROOT / "sample_data" / "paper_swebench")


def with_newcomer(catalog, price=2.0, place=0.6, **policy):
    """The catalog and a model nobody has outcomes of, at one place of every band."""
    levels = {
        name: band.lo + place * band.width
        for name, band in zip(catalog.dimensions, catalog.bands, strict=True)
    }
    model = replace(
        catalog.models[0], id="newcomer", scores={}, overrides=levels,
        input_usd_per_mtok=price, output_usd_per_mtok=price,
    )  # fmt: skip
    changed: Policy = replace(catalog.policy, **policy)
    return replace(catalog, models=(*catalog.models, model), policy=changed, digest="new")


def swept(evalset, catalog) -> Sweep:
    return sweep_catalog(evalset, catalog, catalog_scores(evalset, catalog), today=TODAY)


def served(catalog, requirements, **costs):
    router = Router(catalog, today=lambda: TODAY, **costs)
    return [router.decide(needs).model for needs in requirements]


def test_every_query_goes_where_the_router_sends_it(evalset):
    catalog = with_newcomer(CATALOG)
    sweep = swept(evalset, catalog)
    ids = np.array(sweep.data.pool.ids)
    chosen = ids[sweep.served(catalog.policy.tau)].tolist()
    assert chosen == served(catalog, sweep.data.requirements)
    assert chosen == ids[sweep.route(catalog.policy.tau)].tolist()
    assert 0.05 < chosen.count("newcomer") / len(chosen) < 0.95


def test_the_value_rule_sends_it_its_queries_too():
    mixed = load_evalset(ROOT / "sample_data" / "mixed_2024")
    catalog = load_catalog(ROOT / "catalog" / "mixed_2024.yaml")
    catalog = with_newcomer(
        catalog,
        price=0.2,
        place=0.8,
        rule=Rule.VALUE,
        value_usd=0.05,
        success_from=SuccessSource.OUTCOME_MODEL,
    )
    model = catalog_outcome_model(catalog)
    sweep = sweep_by_value(mixed, catalog, model, cross_fitted=True, today=TODAY)
    router = Router(catalog, today=lambda: TODAY)
    ids = np.array(sweep.data.pool.ids)
    assert tuple(ids) == tuple(m.id for m in catalog.models)
    messages = messages_of(mixed, model.fingerprint, model.vectors)
    heads = router._state.valuer.predictions  # the router's own: predictions come from no replay
    said = heads.predict(messages).take(sweep.data.rows)
    decided = [
        router.decide(needs, predicted=(success.tolist(), cost.tolist())).model
        for needs, success, cost in zip(
            sweep.data.requirements, said.success, said.cost_usd, strict=True
        )
    ]
    assert ids[sweep.served(0.05)].tolist() == decided
    shares = {name: decided.count(name) / len(decided) for name in sweep.data.pool.ids}
    assert evaluate(sweep, 0.05).served_shares == pytest.approx(shares)
    assert "newcomer" in decided


def test_a_realised_order_estimates_what_was_never_called(evalset):
    catalog = with_newcomer(CATALOG, cost_basis=CostBasis.REALISED)
    sweep = swept(evalset, catalog)
    order = dict(zip(sweep.data.pool.ids, sweep.data.pool.cost.tolist(), strict=True))
    cheap, dear = (
        swept(evalset, with_newcomer(CATALOG, price=price, cost_basis=CostBasis.REALISED))
        for price in (1.0, 4.0)
    )
    estimates = [dict(zip(s.data.pool.ids, s.data.pool.cost, strict=True))["newcomer"]
                 for s in (cheap, dear)]  # fmt: skip
    assert estimates[1] == pytest.approx(4 * estimates[0])
    assert min(order.values()) <= order["newcomer"] <= max(order.values())
    chosen = np.array(sweep.data.pool.ids)[sweep.route(0.2)].tolist()
    known = with_newcomer(CATALOG, cost_basis=CostBasis.REALISED, tau=0.2)
    assert chosen == served(known, sweep.data.requirements, realised_cost=order)


def test_quality_of_its_share_is_unknown_and_the_intervals_say_so(evalset):
    catalog = with_newcomer(CATALOG)
    found = replay_policy(catalog, swept(evalset, catalog))
    metrics = found.metrics
    at = found.data.pool.ids.index("newcomer")
    share = float((found.choice == at).mean())
    assert metrics.unknown == share == metrics.shares["newcomer"] > 0
    assert metrics.quality.lo < metrics.quality.value
    assert metrics.quality.hi > metrics.quality.value + share
    assert metrics.qr.hi <= 1.0
    known = found.choice != at
    resolved = found.data.quality[np.arange(len(known)), found.choice][known].sum()
    assert metrics.quality.value == pytest.approx(resolved / len(known))


def test_no_mix_oracle_or_baseline_is_made_of_it(evalset):
    plain, sweep = swept(evalset, CATALOG), swept(evalset, with_newcomer(CATALOG, price=0.01))
    assert sweep.data.pool.ids[int(sweep.data.pool.cost.argmin())] == "newcomer"
    assert [one.model for one in sweep.hull] == [one.model for one in plain.hull]
    assert "newcomer" not in sweep.baselines
    assert sweep.oracle.quality == plain.oracle.quality
    assert set(sweep.data.with_outcomes.pool.ids) == set(plain.data.pool.ids)


def test_a_result_that_hangs_on_it_is_neither_better_nor_worse(evalset):
    catalog = with_newcomer(CATALOG, place=0.9)
    found = evaluate(swept(evalset, catalog), catalog.policy.tau).verdict
    assert found.unknown > 0.2
    assert found.label is VerdictLabel.SAME
    assert found.title.startswith("Not known")
    assert found.interval.lo < found.delta < found.delta + found.unknown < found.interval.hi


def test_a_what_if_counts_what_moves_to_it(evalset):
    before = replay_policy(CATALOG, swept(evalset, CATALOG))
    catalog = with_newcomer(CATALOG)
    found = what_if(before, replay_policy(catalog, swept(evalset, catalog)))
    share = found.shares["newcomer"][1]
    moved = [cell.queries for cell in found.comparison.flips if cell.after == "newcomer"]
    assert sum(moved) == round(share * found.comparison.n) > 0
    assert found.comparison.unknown == pytest.approx(share)
    assert found.comparison.quality.hi > found.comparison.quality.value + share - 1e-9


def test_queries_that_stay_with_it_change_nothing(evalset):
    catalog = with_newcomer(CATALOG)
    sweep = swept(evalset, catalog)
    run = policy_run("same", sweep.data, sweep.route(catalog.policy.tau))
    found = compare(run, run)
    assert found.unknown == 0
    assert (found.quality.lo, found.quality.hi) == (0.0, 0.0)


def test_a_set_of_one_outcome_a_query_says_what_to_collect(tmp_path):
    catalog = load_catalog(ROOT / "catalog" / "matched_three.yaml")
    models = tuple(model.id for model in catalog.models)
    served = np.arange(30)[:, None] % len(models) == np.arange(len(models))
    evalset = save_evalset(
        tmp_path / "live", name="live", models=models,
        queries=pd.DataFrame({"query_id": [f"d{i}" for i in range(30)], "language": "en"}),
        quality=np.where(served, 1.0, np.nan), cost_usd=np.where(served, 0.01, np.nan),
    )  # fmt: skip
    assert evalset.is_log
    with pytest.raises(MismatchError, match=r"about 250 of its messages \(hydra-router collect\)"):
        align(evalset, np.zeros((30, 4)), pool(catalog, today=date(2026, 7, 1)))
