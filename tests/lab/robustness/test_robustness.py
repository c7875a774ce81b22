"""Attacks are scored once and counted as they succeed, at any knob and under both rules."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from hydra_core.base.errors import EvalSetError, MismatchError
from hydra_core.base.shipped import CATALOGS
from hydra_core.base.types import Pool
from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.console.inspect.robustness import unusual_text
from hydra_core.lab.robustness.attack import (
    ANOTHER_WORDING,
    attacked,
    other_wordings,
    own_suffixes,
    remembering,
    runs,
    suffix_lines,
)
from hydra_core.lab.robustness.findings import EVERYONE, PoolRoutes, RoutedAttacks
from hydra_core.lab.robustness.findings import routed as routed_by
from hydra_core.outcome_model.heads import Predicted
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router

POOL = Pool(
    ("small", "large", "middle", "largest"),
    np.array([[0.3], [0.9], [0.6], [1.0]]),
    np.array([1.0, 4.0, 2.0, 8.0]),
    np.array([1.0]),
)
FAMILIES = {"loud": {"en": "HARD", "fr": "DUR"}, "quiet": {"en": "thanks"}}
TEXTS = ["hi", "salut", "hallo", "HARD already", "你好"]
CODES = ["en", "fr", "de", "en", "zh"]


def by_loudness(texts: Sequence[str]) -> Prediction:
    """One dimension: .95 for whom "HARD" fools, .5 for DUR, else .1; the vector says the same."""
    need = np.array([[0.95 if "HARD" in t else 0.5 if "DUR" in t else 0.1] for t in texts])
    ignored = np.array([len("thanks") if t.endswith("thanks") else 0 for t in texts])
    whole = np.zeros(len(texts), dtype=np.intp)
    return Prediction(need, whole, whole.astype(bool), ignored, need.astype(np.float32))


def routed(texts: Sequence[str] = TEXTS, codes: Sequence[str] = CODES) -> RoutedAttacks:
    read = remembering(by_loudness)
    found = attacked(read, texts, codes, FAMILIES, rng=np.random.default_rng(0))
    return RoutedAttacks(found, POOL)


def rows(knob: float = 0.0, *, localised: bool = True) -> dict[tuple[str, str], object]:
    found = routed().at(knob).attacks
    return {(row.family, row.group): row for row in found if row.localised is localised}


def test_only_cheaply_routed_messages_are_attacked():
    assert rows()["loud", "english"].n == 1
    assert rows()["loud", "all"].n == 4


def test_success_is_a_route_to_one_of_the_two_dearest():
    found = rows()
    assert found["loud", "english"].success.value == 1.0
    # German has no suffix of its own: English
    assert found["loud", "european"].success.value == 0.5
    assert found["quiet", "all"].success.value == 0.0
    assert found["all", "all"].n == 8
    assert found["all", "all"].success.value == 3 / 8


def test_english_suffixes_are_counted_apart():
    assert rows(localised=False)["loud", "all"].success.value == 1.0


def test_languages_hold_every_family():
    found = {(row.group, row.localised): row for row in routed().at(0.0).languages}
    assert (found["fr", True].n, found["fr", True].success.value) == (2, 0.0)
    assert (found["fr", False].n, found["fr", False].success.value) == (2, 0.5)
    assert {group for group, _ in found} == {"en", "fr", "de", "zh"}


def test_cost_ratio_follows_the_routes():
    found = rows()
    assert found["loud", "european"].cost_ratio == (2.0 + 8.0) / 2
    assert found["quiet", "all"].cost_ratio == 1.0


def test_a_larger_tau_lets_fewer_through():
    shares = [row.success.value for row in routed().along([0.0, 0.1, 0.4], localised=True)]
    assert shares == [3 / 8, 3 / 8, 0.0]


def test_every_knob_agrees_with_scoring_and_routing_anew():
    found = routed()
    for knob in (0.0, 0.05, 0.3):
        won = sum(one.won for one in found.exchanges(knob) if one.localised)
        whole = found.at(knob).overall(localised=True)
        assert won == pytest.approx(whole.success.value * whole.n)


def test_the_interval_is_wilsons():
    row = rows()["loud", "all"]
    won = round(row.success.value * row.n)
    expected = stats.binomtest(won, row.n).proportion_ci(method="wilson")
    assert (row.success.lo, row.success.hi) == pytest.approx((expected.low, expected.high))


def test_families_on_one_message_count_as_one():
    """Two families with the same result on each message give the interval of n messages, not 2n."""
    read, rng = remembering(by_loudness), np.random.default_rng(0)
    texts, codes = [f"m{i}" for i in range(12)], ["fr"] * 5 + ["zh"] * 7
    one = {"loud": {"en": "HARD", "fr": "DUR"}}
    twice = {**one, "loud again": {"en": "HARD!", "fr": "DUR!"}}
    alone, both = (
        RoutedAttacks(attacked(read, texts, codes, families, rng=rng), POOL).at(0.0)
        for families in (one, twice)
    )
    once, again = alone.overall(localised=True), both.overall(localised=True)
    assert (once.n, again.n) == (12, 24)
    wilsons = stats.binomtest(7, 12).proportion_ci(method="wilson")
    for row in (once, again):
        assert row.success.value == pytest.approx(7 / 12)
        assert (row.success.lo, row.success.hi) == pytest.approx((wilsons.low, wilsons.high))


def test_messages_of_one_cluster_count_as_one():
    """Three wordings of each of eight tasks, alike in what an attack and a slip do to them."""
    texts = [f"{word}{i}" for i in range(8) for word in ("x", "y", "z")]
    texts[:9] = [f"HARD {text}" for text in texts[:9]]
    codes, clusters = ["fr"] * 15 + ["zh"] * 9, np.repeat(np.arange(8), 3)
    found = attacked(
        remembering(by_loudness), texts, codes, FAMILIES, clusters=clusters,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    at = RoutedAttacks(found, POOL).at(0.0)
    # the first three tasks go to the dearest anyway; of the other five three are not French
    row = next(one for one in at.attacks if (one.family, one.group) == ("loud", EVERYONE))
    lower = next(one for one in at.flips if one.change == "all lower case")
    for n, rate, won, of in ((row.n, row.success, 3, 5), (lower.n, lower.rate, 3, 8)):
        wilsons = stats.binomtest(won, of).proportion_ci(method="wilson")
        assert n == 3 * of
        assert (rate.lo, rate.hi) == pytest.approx((wilsons.low, wilsons.high))
    none = next(one for one in at.attacks if (one.family, one.group) == ("quiet", EVERYONE))
    wilsons = stats.binomtest(0, 5).proportion_ci(method="wilson")
    assert (none.success.lo, none.success.hi) == pytest.approx((0.0, wilsons.high))


def test_nothing_to_attack_has_no_rate():
    found = routed(["HARD"], ["en"]).at(0.0)
    assert found.cheap == 0
    success = found.overall(localised=True).success
    assert np.isnan(success.value)
    assert not success.known
    assert success.reason == "nothing was tried"


def test_harmless_changes_that_move_a_model_are_flips():
    flips = {row.change: row.rate.value for row in routed().at(0.0).flips}
    # in lower case, and with two letters swapped, HARD no longer fools
    assert flips == {"all lower case": 1 / 5, "all upper case": 0.0, "typing slips": 1 / 5}


def test_an_exchange_shows_what_was_ignored():
    found = routed().exchanges(0.0)
    assert found[0].won
    quiet = next(one for one in found if one.family == "quiet" and one.row == 0)
    assert (quiet.text, quiet.ignored, quiet.before, quiet.after) == (
        "hi thanks", 6, "small", "small",
    )  # fmt: skip


def test_distances_come_along_and_are_not_known_without_a_reference():
    far = remembering(lambda texts: replace(by_loudness(texts), distances=np.array(
        [1.5 if "HARD" in text else 0.5 for text in texts])))  # fmt: skip
    found = attacked(far, TEXTS, CODES, FAMILIES, rng=np.random.default_rng(0))
    assert found.clean.distances.tolist() == [0.5, 0.5, 0.5, 1.5, 0.5]
    loud = next(one for one in RoutedAttacks(found, POOL).exchanges(0.0) if "HARD" in one.text)
    assert loud.distance == 1.5
    assert unusual_text(found).startswith(
        "20.0 % of these messages are unlike the predictor's training messages, and 55.0 % of them"
    )
    assert unusual_text(routed().attacked) == ""


def test_the_value_rule_routes_by_predicted_success():
    def predict(messages, tokens):
        success = np.tile([0.5, 0.6, 0.55, 0.6], (len(messages.vectors), 1))
        success[messages.vectors[:, 0] > 0.9, 3] = 1.0
        return Predicted(success, np.tile(POOL.cost, (len(success), 1)))

    valuer = SimpleNamespace(predict=predict, of_requirements=lambda needs, tokens: None)
    found = RoutedAttacks(routed().attacked, POOL, valuer)
    assert found.at(20.0).overall(localised=False).success.value == 0.5
    assert found.at(5.0).overall(localised=False).success.value == 0.0
    assert found.at(20.0).cheap == 4


def test_messages_go_where_the_router_sends_them_where_time_has_a_price():
    def by_length(texts, turns=None, contexts=None):
        needs = np.array([[min(len(text) / 40, 1.0)] * 4 for text in texts])
        return Prediction(needs, np.full(len(texts), 9), np.zeros(len(texts), dtype=bool))

    catalog = load_catalog(CATALOGS / "mixed_2024.yaml")
    slow = [replace(one, latency_s=2.0 + 9.0 * i) for i, one in enumerate(catalog.models)]
    policy = replace(catalog.policy, second_usd=0.002)
    catalog = replace(catalog, models=tuple(slow), policy=policy)
    found = attacked(remembering(by_length), TEXTS, CODES, FAMILIES, rng=np.random.default_rng(0))
    router = Router(catalog, SimpleNamespace(predict=by_length))
    exchanges = routed_by(found, catalog).exchanges(policy.value_usd)
    assert exchanges
    for one in exchanges:
        assert one.before == router.route(Query(TEXTS[one.row])).model
        assert one.after == router.route(Query(one.text)).model
    free = replace(catalog, policy=replace(policy, second_usd=0.0))
    before = {one.before for one in routed_by(found, free).exchanges(policy.value_usd)}
    assert before != {one.before for one in exchanges}


def test_the_value_rule_needs_vectors():
    def bare(texts):
        full = by_loudness(texts)
        return Prediction(full.requirements, full.tokens, full.truncated)

    found = attacked(remembering(bare), ["hi"], ["en"], FAMILIES, rng=np.random.default_rng(0))
    with pytest.raises(MismatchError, match="text vectors"):
        RoutedAttacks(found, POOL, SimpleNamespace(of_requirements=lambda needs, tokens: None))


def test_no_message_is_scored_twice_and_progress_comes_to_its_end():
    seen, told = [], []
    read = remembering(
        lambda part: seen.extend(part) or by_loudness(part),
        told.append,
    )
    attacked(read, TEXTS, CODES, FAMILIES, rng=np.random.default_rng(0))
    assert len(seen) == len(set(seen)) == told[-1]
    assert told[-1] <= runs(CODES, CODES, len(FAMILIES))


def test_attacking_only_what_a_knob_sends_cheap_finds_the_same_there():
    seen = []
    read = remembering(lambda part: seen.extend(part) or by_loudness(part))
    cheap = partial(PoolRoutes(POOL).cheap, knob=0.1)
    assert 0 < cheap(read(TEXTS)).sum() < len(TEXTS)
    seen.clear()
    found = attacked(read, TEXTS, CODES, FAMILIES, rng=np.random.default_rng(0), targets=cheap)
    few = len(seen)
    assert RoutedAttacks(found, POOL).at(0.1) == routed().at(0.1)
    everything = remembering(lambda part: seen.extend(part) or by_loudness(part))
    seen.clear()
    attacked(everything, TEXTS, CODES, FAMILIES, rng=np.random.default_rng(0))
    assert few + len(set(TEXTS)) < len(seen)


def test_own_suffixes_come_as_lines_or_families(tmp_path):
    (tmp_path / "own.txt").write_text("First claim.\n\nSecond claim.\n")
    assert own_suffixes(tmp_path / "own.txt")["own 2"] == {"en": "Second claim."}
    (tmp_path / "own.yaml").write_text("urgent: {de: Dringend!}\n")
    with pytest.raises(EvalSetError, match="at least en"):
        own_suffixes(tmp_path / "own.yaml")
    with pytest.raises(EvalSetError, match="at most 2,000"):
        suffix_lines("x" * 2_001, "box")
    with pytest.raises(EvalSetError, match="at most 32"):
        suffix_lines("\n".join(map(str, range(33))), "box")


def test_the_verb_prints_its_figures(tmp_path, capsys):
    from tests.evalsets.sets import saved
    from tests.predictor.tiny_bundle import make_bundle

    make_bundle(tmp_path / "bundle")
    quality, cost = np.ones((3, 2)), np.full((3, 2), 0.1)
    saved(tmp_path / "set", models=("gpt-5", "gpt-5-mini"), quality=quality, cost_usd=cost)
    arguments = ["lab", "probe", str(tmp_path / "set"), "--catalog", "catalog/matched_three.yaml"]
    arguments += ["--bundle", str(tmp_path / "bundle")]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["messages"] == 3
    assert {row["family"] for row in found["attacks"]} >= {"keywords", "effort", "all"}
    assert main([*arguments, "--tau", "0"]) == 0  # all go to the dearest: nothing is attacked
    assert "nan" not in capsys.readouterr().out
    assert main([*arguments, "--value-usd", "0.02"]) == 2
    assert "give --tau" in capsys.readouterr().err


def test_another_wording_of_the_set_is_a_harmless_change():
    """The next of its cluster, its own language first; a message alone is not counted."""
    frame = pd.DataFrame(
        [("a", "en", "t1"), ("b", "de", "t1"), ("HARD", "en", "t1"), ("d", "en", "t2"),
         ("e", "en", None)],
        columns=["text", "language", "cluster"],
    )  # fmt: skip
    wordings = other_wordings(SimpleNamespace(queries=frame))
    assert wordings == {"a": "HARD", "b": "HARD", "HARD": "a"}
    assert other_wordings(SimpleNamespace(queries=frame[["text"]])) == {}
    found = attacked(
        remembering(by_loudness), list(frame["text"]), ["en"] * 5, FAMILIES,
        rng=np.random.default_rng(0), wordings=wordings,
    )  # fmt: skip
    (row,) = [one for one in RoutedAttacks(found, POOL).at(0.1).flips
              if one.change == ANOTHER_WORDING]  # fmt: skip
    assert (row.n, round(row.rate.value * row.n)) == (3, 3)
