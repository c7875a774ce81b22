"""The knob of a what-if: every step is both catalogs replayed and compared at that setting."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.catalog.schema import load_catalog
from hydra_core.console.catalog.what_if import paired_steps, tiles
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.scores import load_scores
from hydra_core.replay.compare import replay_policy, what_if
from hydra_core.replay.sweep import sweep_catalog

_PUBLISHED = load_catalog(CATALOGS / "paper_five_published.yaml")
#: The last model lacks what some queries of `gated` need; it is the best one for many.
BEFORE = replace(
    _PUBLISHED,
    models=(*_PUBLISHED.models[:-1], replace(_PUBLISHED.models[-1], lacks=frozenset({"pdf"}))),
)
AFTER = replace(BEFORE, models=tuple(m for m in BEFORE.models if m.id != "gpt-5.3-codex"))
TODAY = datetime.now(UTC).date()


@pytest.fixture(scope="module")
def evalset():
    return load_evalset(SAMPLE_DATA / "paper_swebench")


@pytest.fixture(scope="module")
def gapped(evalset):
    """One model is known on every third query only: then the two pools share a third of them."""
    quality = evalset.quality.copy()
    quality[::3, evalset.models.index("gpt-5.3-codex")] = float("nan")
    return replace(evalset, quality=quality)


@pytest.fixture(scope="module")
def gated(evalset):
    """Every second query needs what one model lacks."""
    needs = ["pdf" if i % 2 else None for i in range(evalset.n)]
    return replace(evalset, queries=evalset.queries.assign(needs=needs))


@pytest.mark.parametrize("name", ["evalset", "gapped", "gated"])
def test_every_step_is_the_comparison_at_that_setting(name, request):
    data = request.getfixturevalue(name)
    scores = load_scores(data, BEFORE.predictor_fingerprint)

    def at(tau):
        both = (replace(c, policy=replace(c.policy, tau=tau)) for c in (BEFORE, AFTER))
        return what_if(
            *(replay_policy(c, sweep_catalog(data, c, scores, today=TODAY)) for c in both)
        )

    sweeps = [sweep_catalog(data, c, scores, today=TODAY) for c in (BEFORE, AFTER)]
    frame = paired_steps(at(0.24), *sweeps)
    assert frame["knob"].is_monotonic_increasing
    for _, step in frame.iloc[:: len(frame) // 6].iterrows():
        there = at(step["knob"])
        paired, metrics = there.comparison, there.after.metrics
        close = {"rel": 1e-5, "abs": 1e-5}
        assert step["quality"] == pytest.approx(100 * metrics.quality.value, **close)
        assert step["cost_usd"] == pytest.approx(metrics.mean_cost_usd.value, **close)
        assert step["misroute"] == pytest.approx(100 * metrics.misroute.value, **close)
        assert step["qr"] == pytest.approx(100 * paired.retained[1].value, **close)
        assert step["quality_change"] == pytest.approx(100 * paired.quality.value, **close)
        assert step["qr_change"] == pytest.approx(100 * paired.qr.value, **close)
        assert step["cost_usd_change"] == pytest.approx(paired.cost_usd.value, **close)
        assert step["misroute_change"] == pytest.approx(100 * paired.misroute.value, **close)
        for i, shares in enumerate(there.shares.values()):
            assert (step[f"before_{i}"], step[f"after_{i}"]) == pytest.approx(shares, **close)


def test_a_set_of_one_cluster_has_differences_without_an_interval(evalset):
    one = replace(evalset, queries=evalset.queries.assign(cluster="same"))
    scores = load_scores(evalset, BEFORE.predictor_fingerprint)
    found, same = (
        what_if(
            *(replay_policy(c, sweep_catalog(one, c, scores, today=TODAY)) for c in (BEFORE, then))
        )
        for then in (AFTER, BEFORE)
    )
    shown = [tile.interval for tile in tiles(found, "published", "draft")]
    assert all("one independent query gives no interval" in text for text in shown)
    assert not any("nan" in text for text in shown)
    assert {tile.interval for tile in tiles(same, "published", "draft")} == {"unchanged"}
