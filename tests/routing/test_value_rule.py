"""The router under the value rule: the same rule as the replay, gates, health and reload held."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from hydra_core.base.errors import MismatchError, OutcomeModelError
from hydra_core.base.list_price import LongPromptPrice
from hydra_core.base.types import Band, OutcomeModelRef, Rule, StickyMode
from hydra_core.choosing.learn import learn
from hydra_core.choosing.write import write_outcome_model
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.outcome_model.format import load_outcome_model
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.replay.sweep import sweep_by_value
from hydra_core.routing.decision import Cause, Fate, redecide
from hydra_core.routing.flips import flips, strip
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions
from tests.choosing.learning_sets import DIMENSIONS, FINGERPRINT, learnable, material_of
from tests.made_once import made_once
from tests.routing.conftest import make_catalog, spec
from tests.routing.plain_rule import largest_value


class Known:
    """A predictor that knows the messages of the learned set by their number."""

    def __init__(self, messages):
        self.messages = messages

    def predict(self, texts, turns=None, contexts=None):
        rows = np.array([int(text.rsplit(" ", 1)[1]) for text in texts])
        some = self.messages.take(rows)
        n = len(rows)
        return Prediction(
            some.requirements,
            np.full(n, 9),
            np.zeros(n, dtype=bool),
            vectors=some.vectors.astype(np.float32),
        )


@pytest.fixture(scope="module")
def learned():
    def fill(folder):
        material = material_of(learnable(folder / "set", 300))
        found = learn(material, None, folds=2, curve=False)
        write_outcome_model(folder / "om", found, fingerprint=FINGERPRINT)

    folder = made_once("routed_by_value", fill)
    return material_of(load_evalset(folder / "set")), load_outcome_model(folder / "om")


def by_value(model, value_usd=0.005, models=None):
    pool = models or (spec("cheap", 0.4, 0.2), spec("middle", 4, 0.5), spec("strong", 20, 0.9))
    pool = tuple(
        replace(m, overrides=dict.fromkeys(DIMENSIONS, next(iter(m.overrides.values()))))
        for m in pool
    )
    base = make_catalog(*pool)
    policy = replace(base.policy, weights=(1.0, 1.0), rule=Rule.VALUE, value_usd=value_usd)
    return replace(
        base,
        dimensions=DIMENSIONS,
        bands=(Band(0.0, 1.0),) * 2,
        predictor_fingerprint=FINGERPRINT,
        policy=policy,
        outcome_model=OutcomeModelRef(str(model.path), model.digest),
    )


@pytest.fixture
def router(learned):
    material, model = learned
    return Router(by_value(model), Known(material.messages), sessions=MemorySessions())


def text(row):
    return f"message 0 {row}"


def test_the_route_is_the_rule_on_the_predictions(router, learned):
    routes = set()
    for row in range(60):
        decision = router.route(Query(text(row)))
        valued = decision.valuation
        expected = largest_value(valued.success[None], valued.cost_usd[None], 0.005)[0]
        assert decision.model == decision.pool.ids[expected]
        assert decision.cause is Cause.HIGHEST_VALUE
        routes.add(decision.model)
    assert len(routes) > 1


def test_a_receipt_decides_again_and_says_why(router):
    decision = router.route(Query(text(3)))
    receipt = decision.receipt()
    assert redecide(receipt) == decision.model
    assert receipt["rule"] == "value"
    assert receipt["value_usd"] == 0.005
    assert all(0 <= row["success"] <= 1 for row in receipt["candidates"])
    fates = {row.model: row.fate for row in decision.candidates()}
    assert fates.pop(decision.model) is Fate.CHOSEN
    assert set(fates.values()) == {Fate.WORTH_LESS}
    low, high = decision.valuation.range_of(decision.index)
    assert 0 <= low < high <= 1


def test_every_range_of_a_prediction_holds_it(router):
    for number in range(40):
        valued = router.route(Query(text(number))).valuation
        for i, success in enumerate(valued.success.tolist()):
            low, high = valued.range_of(i)
            assert 0 <= low <= success <= high <= 1


def test_a_range_holds_a_prediction_far_from_what_similar_ones_came_to(router):
    valued = router.route(Query(text(3))).valuation
    model = valued.valuer.outcome_model
    far = model.reliability.copy()
    far[..., 0], far[..., 2] = 10_000, 0.05  # many similar ones, and few of them resolved
    valuer = replace(valued.valuer, outcome_model=replace(model, reliability=far))
    moved = replace(valued, valuer=valuer)
    for i, success in enumerate(moved.success.tolist()):
        low, high = moved.range_of(i)
        assert low <= success <= high


def test_neighbours_are_queries_that_were_learned_on(router):
    near = router.route(Query(text(7))).valuation.neighbours()
    assert near[0].query_id == "q7"
    assert near[0].likeness == pytest.approx(1.0, abs=1e-3)
    assert set(near[0].outcomes) == {"cheap", "middle", "strong"}


def test_a_text_that_was_learned_twice_has_the_prediction_of_its_own_row(learned):
    known = learned[1].learned
    alike = replace(known, texts=np.full(known.texts.size, 7, dtype=np.uint64))
    named = (*known.query_ids[[5, 3]], "new", known.query_ids[0])
    rows = alike.rows_of(named, np.array([7, 7, 7, 8], dtype=np.uint64))
    assert rows[:2].tolist() == [5, 3]
    assert rows[2] >= 0
    assert rows[3] == -1


def test_every_flip_flips(router, learned):
    material, model = learned
    tried = 0
    for row in range(20):
        decision = router.route(Query(text(row)))
        found = flips(decision, by_value(model))
        assert all(flip.model != decision.model for flip in found)
        parts = strip(decision)
        here = [part.model for part in parts if part.start < 0.005 <= part.end]
        assert here == [decision.model]
        if found[0].subject.startswith("Worth"):
            tried += 1
            after = float(found[0].after.removeprefix("$"))
            beyond = after * (1.001 if after > 0.005 else 0.999)
            other = Router(by_value(model, beyond), Known(material.messages))
            assert other.route(Query(text(row))).model == found[0].model
    assert tried


def test_every_flip_as_it_is_shown_flips(learned):
    rng, tried, ids = np.random.default_rng(3), set(), ("cheap", "middle", "strong")
    need = np.full(2, 0.5)
    for _ in range(100):
        success, cost = rng.random(3), np.exp(rng.uniform(-8, -3, 3))
        value = float(np.exp(rng.uniform(-6, 0)))
        catalog = by_value(learned[1], value)
        told = flips(Router(catalog).decide(need, predicted=(success, cost)), catalog)
        for flip in told:
            kind, _, name = flip.subject.rpartition(" of ")
            shown = float(flip.after.strip("$%+ ").replace("−", "-"))
            changed_success, changed_cost, changed_value = success.copy(), cost.copy(), value
            if kind == "Price":
                changed_cost[ids.index(name)] *= 1 + shown / 100
            elif kind == "Predicted success":
                changed_success[ids.index(name)] = shown / 100
            else:
                changed_value = shown
            other = Router(by_value(learned[1], changed_value))
            again = other.decide(need, predicted=(changed_success, changed_cost))
            assert again.model == flip.model
            tried.add((kind, flip.cheaper))
    assert len(tried) == 6


def test_gates_and_health_hold(router):
    decision = router.route(Query(text(3)))
    without = router.route(Query(text(3), deny=frozenset({decision.model})))
    assert without.model != decision.model
    ill = router.route(Query(text(3)), health={decision.model: 0.0})
    assert ill.model == without.model
    nobody = router.route(Query(text(3)), health=dict.fromkeys(decision.pool.ids, 0.0))
    assert nobody.cause is Cause.GATEWAY_FALLBACK


def test_a_conversation_keeps_its_model(router):
    first = router.route(Query(text(3), conversation_id="c"))
    later = router.route(Query(text(11), turn=2, conversation_id="c"))
    assert later.model == first.model
    assert later.cause is Cause.KEPT_BY_SESSION


@pytest.mark.parametrize(
    ("history", "expected"), [(0, {False}), (3_000, {True, False}), (90_000, {True})]
)
def test_adaptive_leaves_a_model_only_for_more_than_the_lost_prompt_cache(
    learned, history, expected
):
    """Models like `by_value`'s, of which the strong one reads a cached history for little."""
    material, model = learned
    pool = (spec("cheap", 0.4, 0.2), spec("middle", 4, 0.5),
            spec("strong", 20, 0.9, cached_input_usd_per_mtok=0.1))  # fmt: skip
    base = by_value(model, models=pool)
    sticky = replace(base.policy.sticky, mode=StickyMode.ADAPTIVE)
    catalog = replace(base, policy=replace(base.policy, sticky=sticky))
    afresh = Router(base, Known(material.messages))
    adaptive = Router(catalog, Known(material.messages))
    kept = set()
    for row in range(60):
        plain = afresh.route(Query(text(row)))
        query = Query(text(row), 2, current="strong", context_tokens=history + 9)
        decision = adaptive.route(query)
        net = dict(zip(plain.pool.ids, plain.valuation.net.tolist(), strict=True))
        read = {m.id: m.input_usd_per_mtok for m in pool} | {"strong": 0.1}
        lost = history * 1e-6 * (read[plain.model] - read["strong"]) / 0.005
        stays = net[plain.model] - net["strong"] <= lost
        assert decision.model == ("strong" if stays else plain.model)
        if plain.model != "strong":
            kept.add(stays)
            assert (decision.cause is Cause.KEPT_WITHIN_MARGIN) == stays
            assert redecide(decision.receipt()) == decision.model
    assert kept == expected
    fresh = replace(query, compacted=True)
    assert adaptive.route(fresh).model == afresh.route(Query(text(row))).model


def test_a_long_new_message_is_no_prompt_cache_to_lose(learned):
    """The predictor has seen 9 tokens of it; all of it is read anew by every model."""
    material, model = learned

    class Cut(Known):
        def predict(self, texts, turns=None, contexts=None):
            found = super().predict(texts, turns, contexts)
            return replace(found, truncated=np.ones(len(texts), dtype=bool))

    pool = (spec("cheap", 0.4, 0.2), spec("middle", 4, 0.5),
            spec("strong", 0.5, 0.9, cached_input_usd_per_mtok=0.1))  # fmt: skip
    base = by_value(model, models=pool)
    sticky = replace(base.policy.sticky, mode=StickyMode.ADAPTIVE)
    catalog = replace(base, policy=replace(base.policy, sticky=sticky))
    afresh = Router(base, Cut(material.messages)).route
    adaptive = Router(catalog, Cut(material.messages)).route
    for row in range(5):
        message = "word " * 50_000 + text(row)
        query = Query(message, 2, current="strong", context_tokens=round(len(message) / 4))
        assert adaptive(query).model == afresh(replace(query, current=None)).model == "cheap"


def test_heads_price_a_long_request_as_the_replay_does(learned):
    """A text of this set has more than two tokens: the strong model costs its second price."""
    material, model = learned
    tier = LongPromptPrice(2, 40.0, 40.0)
    pool = (spec("cheap", 0.4, 0.2), spec("middle", 4, 0.5),
            spec("strong", 20, 0.9, long_prompts=(tier,)))  # fmt: skip
    catalog = by_value(model, models=pool)
    router, usual = (Router(one, Known(material.messages)) for one in (catalog, by_value(model)))
    sweep = sweep_by_value(
        material.evalset, catalog, model, cross_fitted=True, today=date(2026, 6, 1)
    )
    served = sweep.served(0.005)
    for row in range(30):
        decision, plain = router.route(Query(text(row))), usual.route(Query(text(row)))
        assert decision.model == decision.pool.ids[served[row]]
        dearer = decision.valuation.cost_usd / plain.valuation.cost_usd
        assert dearer == pytest.approx([1.0, 1.0, 2.0])
    assert decision.valuation.valuer.digest != plain.valuation.valuer.digest


def test_a_model_without_outcomes_is_named(learned):
    material, model = learned
    pool = (spec("cheap", 0.4, 0.2), spec("new", 4, 0.5), spec("strong", 20, 0.9))
    router = Router(by_value(model, models=pool), Known(material.messages))
    assert router.route(Query(text(0))).receipt()["placed_by_profile"] == ["new"]


def test_a_missing_outcome_model_is_refused_at_the_start(learned, tmp_path):
    _, model = learned
    gone = replace(
        by_value(model), outcome_model=OutcomeModelRef(str(tmp_path / "gone"), model.digest)
    )
    with pytest.raises(OutcomeModelError, match="is not there"):
        Router(gone)
    other = replace(by_value(model), outcome_model=OutcomeModelRef(str(model.path), "0" * 64))
    with pytest.raises(OutcomeModelError, match="is another outcome model"):
        Router(other)
    with pytest.raises(MismatchError, match="learn it again with this bundle"):
        Router(replace(by_value(model), predictor_fingerprint="e" * 64))


def test_a_reload_to_a_missing_outcome_model_keeps_the_last_good_catalog(learned, tmp_path):
    material, model = learned
    good = by_value(model)
    now = [good]
    router = Router(lambda: now[0], Known(material.messages))
    before = router.route(Query(text(3))).model
    now[0] = replace(good, outcome_model=OutcomeModelRef(str(tmp_path / "no"), model.digest))
    assert router.route(Query(text(3))).model == before
    assert "is not there" in router.problem
    now[0] = replace(good, policy=replace(good.policy, value_usd=1e-9))
    assert router.route(Query(text(3))).model == "cheap"
    assert not router.problem
