"""Mix over time, cost against constants, feedback and clusters of a log."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from hydra_core.console.home.page import day
from hydra_core.console.live.view_traffic import cost_text, head, model_frame, notes
from hydra_core.live.drift import regions
from hydra_core.live.traffic import (
    Uncounted,
    against,
    cost_of_trying_all,
    ends,
    feedback,
    share,
    timeline,
    tokens_usd,
    uncounted,
)
from tests.live.logs import AT, DAY, decision, levels, traffic
from tests.routing.conftest import make_catalog, spec


def test_bars_add_up_and_keep_their_place(tmp_path):
    some = traffic(tmp_path, [decision(i, at=AT + timedelta(minutes=i)) for i in range(120)])
    found = timeline(some, ["a", "a", "b"] * 40)
    assert (found.width_s, len(found.starts)) == (300, 24)
    assert found.starts[0] == AT
    assert found.names == ("a", "b")
    assert found.counts.sum(axis=0).tolist() == [80, 40]
    assert (found.counts.sum(axis=1) == 5).all()


def test_what_no_upstream_counted_is_told_apart(tmp_path):
    unknown = {"cost_usd": None, "usage": "unknown", "about_usd": 0.02}
    broken = {"cost_usd": 0.01, "usage": "estimated", "about_usd": 0.01, "status": "cancelled"}
    rows = [decision(0), decision(1, **unknown), decision(2, **unknown), decision(3, **broken)]
    some = traffic(tmp_path, [*rows, decision(4, status="refused")])
    assert uncounted(some) == Uncounted(2, pytest.approx(0.04), 1, 0.01)
    assert (len(some), some.refused) == (4, 1)
    told = " ".join(notes(some))
    assert "2 requests of unknown cost, about $0.0400 in all and not in the sum" in told
    assert "1 request ended early (broken off, rejected or cancelled): $0.0100 of the sum" in told
    assert "1 request refused" in told
    assert "about $0.0400 more not counted" in day(some)[0]


def test_what_was_only_decided_cannot_have_failed(tmp_path):
    decided = {"status": "decided", "served": "", "cost_usd": None}
    rows = [decision(0, status="failed", served=""), decision(1), decision(2, **decided)]
    some = traffic(tmp_path / "some", [*rows, decision(3, level=0.9, **decided)])
    assert day(some)[0].endswith(" · 50.0 % failed")
    assert [one[1] for one in head(some, AT) if one[0] in ("Failed", "Fell back")] == [
        "50.0 %",
        "0.0 %",
    ]
    failed = model_frame(some).set_index("model")["failed"]
    assert (failed["cheap"], np.isnan(failed["strong"])) == (50.0, True)
    alone = traffic(tmp_path / "alone", [decision(0, **decided)])
    assert day(alone)[0] == "1 request"
    assert head(alone, AT)[1][1] == "–"


def test_every_rejection_has_its_status(tmp_path):
    rows = [decision(i, status="rejected", upstream_status=400 + 22 * (i > 1)) for i in range(3)]
    (told,) = notes(traffic(tmp_path, rows))
    assert told == "3 requests rejected by an upstream as wrong (400: 2, 422: 1)."
    older = traffic(tmp_path / "older", [decision(0, status="rejected")])
    assert notes(older)[-1] == "1 request rejected by an upstream as wrong."


def test_a_cost_that_nobody_knows_is_no_zero_and_the_same_bill_is_not_more(tmp_path):
    one = decision(0, level=0.9, usage="unknown", cost_usd=None)
    (told,) = notes(traffic(tmp_path / "unknown", [one]))
    assert told.startswith("1 request of unknown cost, not in the sum:")
    assert "$" not in day(traffic(tmp_path / "again", [one]))[1]
    some = traffic(tmp_path / "same", [decision(0), decision(1)])
    found = against(some, make_catalog(), list(some.models), ["cheap"] * 2, "cheap")
    assert cost_text(found, "always-cheap")[1].endswith(": the same, on 2 answers with tokens.")
    dear = replace(found, change=replace(found.change, value=9581.357, lo=9000.0, hi=9900.0))
    value, told = cost_text(dear, "always-cheap")
    assert value == "About 9,580 times as much"
    assert ": about 9,580 times as much, on 2 answers" in told


def test_one_decision_is_one_bar(tmp_path):
    assert len(timeline(traffic(tmp_path, [decision(0)]), ["a"]).starts) == 1


def test_turns_of_one_conversation_count_as_dependent(tmp_path):
    rows = [decision(i, conversation_id=f"c{i % 3}" if i < 60 else None) for i in range(80)]
    some = traffic(tmp_path, rows)
    assert len(set(some.clusters.tolist())) == 3 + 20
    apart = share(some, np.arange(80) < 40)
    assert apart.lo < 0.5 < apart.hi


def test_kept_and_named_decisions_are_not_routed_afresh(tmp_path):
    rows = [decision(0), decision(1, cause="kept_by_session", requirements=None, shortfalls=None),
            decision(2, rule="named")]  # fmt: skip
    some = traffic(tmp_path, rows)
    assert some.routed.tolist() == [True, False, False]
    assert some.scored.tolist() == [True, False, True]


def test_cost_against_one_model_is_the_same_tokens_at_its_prices(tmp_path):
    catalog = make_catalog(spec("cheap", 1, 0.2), spec("mid", 3, 0.5),
                           spec("strong", 10, 0.9, cached_input_usd_per_mtok=1.0))  # fmt: skip
    rows = [decision(0, 0.1), decision(1, 0.4), decision(2, 0.1, cached_tokens=500),
            decision(3, input_tokens=None)]  # fmt: skip
    some = traffic(tmp_path, rows)
    assert ends(catalog, DAY) == ("cheap", "strong")
    models = list(some.models)
    found = against(some, catalog, models, ["strong"] * 4, "strong")
    assert found.counted == 3
    assert found.cost_usd == pytest.approx(1e-3 * (2 + 6 + 2))
    assert found.baseline_usd == pytest.approx(1e-3 * (20 + 20 + 5 + 0.5 + 10))
    assert found.change.value == pytest.approx(found.cost_usd / found.baseline_usd - 1)
    dearer = against(some, catalog, models, ["cheap"] * 4, "cheap")
    assert dearer.change.value > 0
    assert against(some, catalog, models, [""] * 4, "none") is None
    idle = traffic(tmp_path / "idle", [decision(0, input_tokens=0, output_tokens=0)])
    assert against(idle, catalog, ["cheap"], ["strong"], "strong") is None  # of nothing no share


def test_trying_every_model_costs_the_mean_of_all_prices_less_what_was_served(tmp_path):
    catalog = make_catalog()
    some = traffic(tmp_path, [decision(0, 0.1), decision(1, 0.4), decision(2, input_tokens=None)])
    tokens = (
        some.rows[name].iloc[:1].to_numpy(float)
        for name in ("input_tokens", "output_tokens", "cached_tokens")
    )
    read, written, cached = map(np.nan_to_num, tokens)
    prices = [tokens_usd(read, written, cached, [one.price])[0] for one in catalog.models]
    expected = 2 * np.mean(prices) - prices[0] - prices[1]
    assert cost_of_trying_all(some, catalog, DAY) == pytest.approx(expected)
    assert cost_of_trying_all(traffic(tmp_path / "none", [decision(0, input_tokens=None)]),
                              catalog, DAY) is None  # fmt: skip


def test_feedback_says_how_many_were_rated(tmp_path):
    rows = [decision(i, 0.1 if i % 2 else 0.4) for i in range(10)]
    some = traffic(tmp_path, rows, {"d1": 1.0, "d3": 0.0, "d4": 1.0, "nobody": 1.0})
    cheap, mid = feedback(some)
    assert (cheap.model, cheap.served, cheap.rated, cheap.quality.value) == ("cheap", 5, 2, 0.5)
    assert (mid.model, mid.rated) == ("mid", 1)
    assert some.orphans == 1


def test_a_cluster_without_ratings_or_eval_queries_is_unknown_and_comes_first(tmp_path):
    rng = np.random.default_rng(1)
    near = rng.normal(0.1, 0.01, 200).clip(0).tolist()
    far = rng.normal(0.8, 0.01, 40).tolist()
    some = traffic(tmp_path, [decision(i, level) for i, level in enumerate([*near, *far])])
    reference = np.tile(rng.normal(0.1, 0.01, 100)[:, None], 4)
    found = regions(some, reference, clusters=2)
    assert [one.known for one in found] == [False, True]
    assert found[0].decisions == 40
    assert found[0].model == "strong"
    assert found[0].centre == pytest.approx([0.8] * 4, abs=0.02)
    assert sum(one.share for one in found) == pytest.approx(1.0)
    assert all(not one.known for one in regions(some, None, clusters=2))


def test_as_many_clusters_as_there_are_different_requests(tmp_path):
    some = traffic(tmp_path, [decision(i, float(level > 0.4)) for i, level in enumerate(levels(9))])
    assert len(regions(some, None)) == 2
