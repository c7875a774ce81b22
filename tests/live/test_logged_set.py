"""A policy on a set of logged queries: mix, agreement, costs, and quality or why there is none."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.list_price import LongPromptPrice
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.live.off_policy import evaluate_logged, is_log
from tests.routing.conftest import make_catalog, spec

IDS = ("cheap", "mid", "strong")
SUCCESS = np.array([0.4, 0.6, 0.8])


def logged_set(folder, n=3000, *, explore=0.3, propensity=True, seed=0):
    """A log whose rule sends easy queries to `cheap` and hard ones to `mid`."""
    rng = np.random.default_rng(seed)
    need = rng.random((n, 4))
    rule = np.eye(3)[(need[:, 0] > 0.5).astype(int)]
    chances = (1 - explore) * rule + explore / 3
    served = (rng.random(n)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    kept = np.eye(3, dtype=bool)[served]
    quality = np.where(kept, (rng.random((n, 3)) < SUCCESS).astype(float), np.nan)
    cost = np.where(kept, [0.002, 0.006, 0.018], np.nan)
    tokens = np.where(kept, 1000.0, np.nan)
    extras = {"input_tokens": tokens, "output_tokens": tokens}
    if propensity:
        extras["propensity"] = chances
    queries = pd.DataFrame({"query_id": [f"q{i}" for i in range(n)], "language": "en"})
    saved = save_evalset(
        folder, name="log", queries=queries, models=IDS, quality=quality, cost_usd=cost,
        extras=extras,
    )  # fmt: skip
    return saved, need


def test_another_policy_has_its_mix_its_cost_and_its_quality(tmp_path):
    evalset, need = logged_set(tmp_path / "set")
    assert is_log(evalset, IDS)
    choice = np.full(3000, 2)
    found = evaluate_logged(load_evalset(tmp_path / "set"), make_catalog(), IDS, choice, need)
    assert found.n == 3000
    assert found.chosen == {"strong": 1.0}
    assert found.agreement.value == pytest.approx(found.served["strong"])
    assert found.value.dr.lo < SUCCESS[2] < found.value.dr.hi
    catalog = make_catalog()
    per = [m.input_usd_per_mtok + m.output_usd_per_mtok for m in catalog.models]
    served = sum(found.served[name] * per[i] for i, name in enumerate(IDS))
    assert found.cost_change.value == pytest.approx(per[2] / served - 1)


def test_dependent_queries_count_as_one_in_every_interval(tmp_path):
    evalset, need = logged_set(tmp_path / "set", 200)
    twice = {name: np.concatenate([values] * 2) for name, values in evalset.extras.items()}
    queries = pd.concat([evalset.queries.assign(cluster=np.arange(200))] * 2, ignore_index=True)
    queries["query_id"] = [f"q{i}" for i in range(400)]
    doubled = replace(
        evalset,
        queries=queries,
        quality=np.concatenate([evalset.quality] * 2),
        cost_usd=np.concatenate([evalset.cost_usd] * 2),
        extras=twice,
    )
    args = make_catalog(), IDS
    one = evaluate_logged(evalset, *args, np.full(200, 2), need)
    both = evaluate_logged(doubled, *args, np.full(400, 2), np.concatenate([need] * 2))
    for name in ("billed_usd", "cost_change", "live"):
        narrow, wide = getattr(one, name), getattr(both, name)
        assert wide.value == pytest.approx(narrow.value)
        assert wide.hi - wide.lo == pytest.approx(narrow.hi - narrow.lo, rel=0.02), name


def test_the_cost_of_a_policy_is_at_the_whole_price_list(tmp_path):
    """Cached input and long prompts have prices of their own."""
    evalset, need = logged_set(tmp_path / "set", 200)
    evalset = replace(
        evalset,
        extras={**evalset.extras, "cached_input_tokens": 0.8 * evalset.extras["input_tokens"]},
    )
    long = (LongPromptPrice(999, 8.0, 8.0),)
    catalog = make_catalog(
        spec("cheap", 1, 0.2),
        spec("mid", 3, 0.5, cached_input_usd_per_mtok=0.3),
        spec("strong", 9, 0.9, long_prompts=long),
    )
    found = evaluate_logged(evalset, catalog, IDS, np.full(200, 2), need)
    per = {"cheap": 2.0, "mid": 0.2 * 3 + 0.8 * 0.3 + 3, "strong": 16.0}
    served = sum(share * per[name] for name, share in found.served.items())
    assert found.cost_change.value == pytest.approx(per["strong"] / served - 1)


def test_without_exploration_or_propensities_no_quality_is_printed(tmp_path):
    for number, change in enumerate(({"propensity": False}, {"explore": 0.0})):
        evalset, need = logged_set(tmp_path / f"set{number}", 200, **change)
        found = evaluate_logged(evalset, make_catalog(), IDS, np.full(200, 2), need)
        assert found.value is None
        assert "--explore-all" in found.why


def test_where_part_has_no_support_quality_is_bounded(tmp_path):
    evalset, need = logged_set(tmp_path / "set")
    chances = evalset.extras["propensity"].copy()
    never = (need[:, 1] < 0.2) & ~np.isfinite(evalset.quality[:, 2])
    chances[never, 0] += chances[never, 2]
    chances[never, 2] = 0.0
    evalset = replace(evalset, extras={**evalset.extras, "propensity": chances})
    found = evaluate_logged(evalset, make_catalog(), IDS, np.full(3000, 2), need)
    assert found.value.unsupported == pytest.approx(never.mean())
    assert found.value.bounds.lo < SUCCESS[2] < found.value.bounds.hi


def test_a_set_that_every_model_answered_is_replayed(tmp_path):
    evalset, _ = logged_set(tmp_path / "set", 50)
    whole = replace(evalset, quality=np.ones((50, 3)))
    assert not is_log(whole, IDS)
