"""Learning finds what the vectors predict, says so, and never claims what is not there."""

import re
from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError, OutcomeModelError
from hydra_core.base.list_price import ListPrice, LongPromptPrice
from hydra_core.base.types import Pool
from hydra_core.choosing.heads import PENALTIES, fit_costs, grouped_parts, grow, ridge_path
from hydra_core.choosing.learn import learn
from hydra_core.choosing.lift import POINTS
from hydra_core.choosing.material import gather, outcomes_of_replay
from hydra_core.choosing.sources.few_outcomes import FEW, RECIPE
from hydra_core.choosing.write import figures_of
from hydra_core.evalsets.scores import TextFacts, messages_of, save_scores
from hydra_core.replay.pricing import costs_at
from hydra_core.replay.replay import align
from tests.choosing.learning_sets import (
    DIMENSIONS,
    FINGERPRINT,
    MODELS,
    WIDTH,
    learnable,
    material_of,
)

PRICES = np.array([[0.1, 0.4], [1.0, 4.0], [5.0, 20.0]])


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return material_of(learnable(tmp_path_factory.mktemp("learn") / "set"))


@pytest.fixture(scope="module")
def learned(material):
    return learn(material, PRICES, folds=3)


def test_a_set_that_can_be_routed_is_recommended(learned):
    assert learned.recommend, learned.reason
    assert learned.reason.startswith("Use it: +")
    assert learned.lift.mean.lo > 0.03
    assert all(learned.lift.at(percent).value > 0 for percent in POINTS)
    assert "vectors" in learned.heads.features.blocks


def test_predictions_are_reliable(learned):
    n, said, achieved = learned.reliability[0].T
    assert n.sum() == learned.material.n
    assert np.abs(np.average(said - achieved, weights=n)) < 0.03
    assert achieved[-1] - achieved[0] > 0.5


def test_more_queries_give_more_lift(learned):
    sizes = [step.queries for step in learned.curve]
    assert sizes == sorted(sizes)
    assert learned.expected_gain(1000) >= learned.expected_gain(200) >= 0.0


def test_groups_are_told_apart(learned):
    names = {found.name for found in learned.slices["group"]}
    assert names == {"easy", "hard"}


def test_the_lift_that_is_split_by_groups_is_the_lift(learned):
    assert learned.check.total.value == pytest.approx(learned.lift.mean.value, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_shuffled_outcomes_are_not_recommended(material, seed):
    order = np.random.default_rng(seed).permutation(material.n)
    shuffled = replace(material, quality=material.quality[order], cost_usd=material.cost_usd[order])
    found = learn(shuffled, None, folds=2, seed=seed, curve=False)
    assert not found.recommend
    told = (
        r"Keep the fixed mix: (no measurable gain here \(|fewer than \d+ independent queries would)"
    )
    assert re.match(told, found.reason)


@pytest.mark.slow
def test_the_same_seed_learns_the_same_model(material, learned):
    again = learn(material, PRICES, folds=3)
    assert figures_of(again) == figures_of(learned)


def test_cost_is_predicted_tokens_at_the_prices_given(material, learned):
    spent = learned.predicted.cost_usd.mean(axis=0)
    np.testing.assert_allclose(spent, material.cost_usd.mean(axis=0), rtol=0.05)
    pool = learned.heads.for_pool(MODELS, np.zeros(3), 2 * PRICES)
    twice = pool.combine(learned.raw).cost_usd.mean(axis=0)
    np.testing.assert_allclose(twice, 2 * spent)


def test_long_requests_cost_their_price_in_a_lift_as_in_a_route(tmp_path):
    evalset = learnable(tmp_path / "set", 60)
    texts = ["why " * (900 if i % 2 else 9) for i in range(60)]
    queries = evalset.queries.assign(text=texts)
    material = replace(material_of(evalset), evalset=replace(evalset, queries=queries))
    long = {1: ListPrice(1.0, 4.0, long_prompts=(LongPromptPrice(500, 3.0, 12.0),))}
    flat, found = (
        learn(material, PRICES, long=one, folds=3, curve=False).predicted.cost_usd
        for one in (None, long)
    )
    ratio = found / flat
    np.testing.assert_allclose(ratio[::2], 1.0)
    np.testing.assert_allclose(ratio[1::2], [[1.0, 3.0, 1.0]] * 30)


def test_no_fold_is_predicted_low_because_its_outcomes_are_high(tmp_path):
    """Without its own level the mean of the training folds falls where that of a fold rises."""
    material = material_of(learnable(tmp_path / "set", 300, signal=0.0))
    found = learn(material, None, folds=5, curve=False)
    part = grouped_parts(material.clusters, 5, np.random.default_rng(0))
    achieved, said = (
        np.stack([values[part == number].mean(axis=0) for number in range(5)])
        for values in (material.quality, found.predicted.success)
    )
    differ, follows = (one - one.mean(axis=1, keepdims=True) for one in (achieved, said))
    differ, follows = differ - differ.mean(axis=0), follows - follows.mean(axis=0)
    assert abs((differ * follows).sum() / (differ**2).sum()) < 0.1  # it was -1 / 4


def test_a_newcomer_leans_on_what_is_known_of_the_others(tmp_path, material):
    few = material_of(learnable(tmp_path / "set", known={"strong": 40}))
    assert few.models == ("cheap", "middle", "strong")
    assert (few.together, few.counted) == (2, (600, 600, 40))
    found = learn(few, PRICES, folds=3, curve=False)
    success = found.heads.for_pool(MODELS, np.zeros(3), PRICES).predict(few.messages).success
    hard = material.evalset.queries["group"].to_numpy() == "hard"
    gain = success[:, 2] - success[:, 0]
    assert gain[hard].mean() - gain[~hard].mean() > 0.15


def test_a_model_without_outcomes_stands_between_its_neighbours(learned):
    names = ("cheap", "new", "strong")
    strength = np.array([0.2, 0.5, 0.8])
    pool = learned.heads.for_pool(names, strength, PRICES)
    success = pool.predict(learned.material.messages).success.mean(axis=0)
    assert pool.placed == ("new",)
    assert success[0] < success[1] < success[2]


def without_costs(folder, models=MODELS, **options):
    evalset = learnable(folder, 60, **options)
    cost_usd = np.array(evalset.cost_usd)
    cost_usd[:, [MODELS.index(model) for model in models]] = np.nan
    return replace(evalset, cost_usd=cost_usd)


@pytest.mark.parametrize("models", [MODELS, ("middle",)])
def test_tokens_at_the_prices_are_the_cost_of_a_model_without_one(tmp_path, models):
    prices = {m: ListPrice(*one) for m, one in zip(MODELS, PRICES.tolist(), strict=True)}
    evalset = without_costs(tmp_path / "set", models)
    messages = messages_of(evalset, FINGERPRINT, WIDTH)
    found = gather(evalset, messages, MODELS, costs=costs_at(evalset, prices, 1.0).usd)
    read, written = found.input_tokens, found.output_tokens
    np.testing.assert_allclose(
        found.cost_usd, 1e-6 * (read * PRICES[:, 0] + written * PRICES[:, 1])
    )
    assert learn(found, PRICES, folds=3, curve=False).lift is not None


@pytest.mark.parametrize("tokens", [True, False])
def test_outcomes_without_costs_are_refused_where_none_can_be_computed(tmp_path, tokens):
    evalset = without_costs(tmp_path / "set", tokens=tokens)
    with pytest.raises(OutcomeModelError, match="costs: there are none of these models"):
        material_of(evalset)


def test_a_model_of_which_no_cost_is_known_costs_as_the_others(tmp_path):
    found = material_of(without_costs(tmp_path / "set", ("middle",), tokens=False))
    columns = found.messages.vectors.astype(np.float32)
    usd = np.exp(fit_costs(found, columns, 1.0).cost_usd(columns)).mean(axis=0)
    assert usd[0] < usd[1] < usd[2]


@pytest.mark.parametrize(
    ("change", "models", "said"),
    [
        ({}, ("cheap",), "models: are 1"),
        ({}, ("cheap", "cheap"), "names a model twice"),
        ({}, ("cheap", "gpt"), "'gpt' has no outcomes here"),
        ({"known": {"strong": 10}}, MODELS, "model 'strong': has 10 outcomes"),
    ],
)
def test_what_cannot_be_learned_is_refused(tmp_path, change, models, said):
    evalset = learnable(tmp_path / "set", 60, **change)
    with pytest.raises(OutcomeModelError, match=said):
        material_of(evalset, models)


def test_constant_outcomes_are_refused(tmp_path):
    evalset = learnable(tmp_path / "set", 60)
    constant = evalset.quality.copy()
    constant[:, 2] = 1.0
    with pytest.raises(
        OutcomeModelError, match=r"model 'strong': has the same outcome \(1\)"
    ) as said:
        material_of(replace(evalset, quality=constant))
    remedy = "disable it in the catalog, or use hydra-router learn --models cheap,middle"
    assert remedy in str(said.value)


def test_identical_texts_are_refused_in_words(material):
    same = replace(material, clusters=np.zeros_like(material.clusters))
    with pytest.raises(OutcomeModelError, match="texts are identical.*other texts"):
        learn(same, None)


def test_a_set_scored_by_another_bundle_is_refused(tmp_path):
    evalset = learnable(tmp_path / "set", 60, texts=False)
    with pytest.raises(EvalSetError, match="has no text vectors of the bundle 000000000000"):
        messages_of(evalset, "0" * 64, WIDTH)
    assert messages_of(evalset, FINGERPRINT, WIDTH).vectors.shape == (60, WIDTH)


def test_equal_texts_stay_in_one_part(material):
    vectors = material.messages.vectors.copy()
    vectors[1::2] = vectors[::2]
    twins = replace(material.messages, vectors=vectors)
    clusters = gather_again(material, twins).clusters
    part = grouped_parts(clusters, 5, np.random.default_rng(0))
    np.testing.assert_array_equal(part[::2], part[1::2])


def test_what_is_learned_and_what_is_fitted_keep_the_same_queries_together(tmp_path):
    """Two rows of a vector are one for both, also where the set declares other clusters."""
    evalset = learnable(tmp_path / "set", 40, texts=False)
    queries = evalset.queries.assign(cluster=["pair", "pair", *(None for _ in range(38))])
    evalset = replace(evalset, queries=queries)
    messages = messages_of(evalset, FINGERPRINT, WIDTH)
    vectors = messages.vectors.copy()
    vectors[2] = vectors[1]
    messages = replace(messages, vectors=vectors)
    facts = TextFacts(vectors, messages.counts)
    save_scores(evalset, FINGERPRINT, DIMENSIONS, messages.requirements, facts)
    learned = gather(evalset, messages, MODELS).clusters
    models = Pool(MODELS, np.ones((3, 2)), np.arange(3.0), np.ones(2))
    fitted = outcomes_of_replay(align(evalset, messages.requirements, models), evalset).clusters
    assert np.unique(learned).size == 38
    np.testing.assert_array_equal(learned[:, None] == learned, fitted[:, None] == fitted)


def gather_again(material, messages):
    from hydra_core.choosing.material import gather

    return gather(material.evalset, messages, MODELS)


def test_every_penalty_of_the_path_is_the_ridge_solution():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 5)), rng.normal(size=(40, 2))
    path = ridge_path(x, y)
    centred = x - x.mean(axis=0)
    for number in (0, 9, 18):
        gram = centred.T @ centred + 40 * PENALTIES[number] * np.eye(5)
        weights = np.linalg.solve(gram, centred.T @ (y - y.mean(axis=0)))
        expected = centred @ weights + y.mean(axis=0)
        np.testing.assert_allclose(path.predict_all(x)[number], expected)
        np.testing.assert_allclose(path.heads(PENALTIES[number])(x), expected, rtol=1e-4, atol=1e-6)


def test_the_arrays_of_a_forest_say_what_its_trees_say():
    from sklearn.ensemble import ExtraTreesRegressor

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4)).astype(np.float32)
    y = np.stack([x[:, 0] > 0, x[:, 1] * x[:, 2]], axis=1).astype(float)
    along = rng.normal(size=(300, 8))
    for further, fitted in ((along[:, :0], y), (along, np.concatenate([y, along], axis=1))):
        forest = grow(x, y, further, 20, seed=3)
        same = ExtraTreesRegressor(
            20, min_samples_leaf=8, max_features=0.3, max_depth=14, random_state=3
        ).fit(x, fitted)
        np.testing.assert_allclose(forest(x), same.predict(x)[:, :2], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(forest(x[:1]), forest(x)[:1], rtol=1e-6)


def test_threads_that_grow_trees_leave_the_filters_of_warnings_alone(monkeypatch):
    """They belong to the process: two threads that set them aside at once lose them."""
    grow(np.zeros((20, 2), np.float32), np.eye(20), np.empty((20, 0)), 1, seed=0)  # imports

    def touched(*_, **__):
        raise AssertionError("a thread sets the filters aside")

    monkeypatch.setattr("warnings.catch_warnings", touched)
    grow(np.zeros((20, 2), np.float32), np.eye(20), np.empty((20, 0)), 4, seed=0)


def test_further_models_of_the_set_are_learned_along_and_not_predicted(tmp_path):
    evalset = learnable(tmp_path / "set", 120)
    found = material_of(evalset, ("strong", "cheap"))
    np.testing.assert_array_equal(found.others, evalset.quality[:, [1]])
    rows = np.array([5, 7])
    np.testing.assert_array_equal(found.take(rows).others, evalset.quality[rows][:, [1]])
    assert learn(found, None, folds=2, curve=False).heads.models == ("strong", "cheap")
    assert material_of(evalset).others.shape == (120, 0)


@pytest.mark.parametrize("unknown", [np.nan, 1.0])
def test_a_further_model_with_gaps_or_one_outcome_only_says_nothing(tmp_path, unknown):
    evalset = learnable(tmp_path / "set", 120)
    quality = evalset.quality.copy()
    quality[3 if np.isnan(unknown) else slice(None), 1] = unknown
    assert material_of(replace(evalset, quality=quality), ("strong", "cheap")).others.size == 0


def test_few_queries_are_learned_by_the_fixed_recipe(material, learned, tmp_path):
    """Inner folds choose from 1,000 queries on; both say so in the figures."""
    assert material.n < FEW
    assert learned.choice is None
    figures = figures_of(learned)
    assert (figures["learner"], figures["errors"], figures["penalties"]) == (RECIPE, {}, [])
    many = material_of(learnable(tmp_path / "set", FEW))
    found = learn(many, None, folds=2, curve=False)
    assert found.learner in figures_of(found)["errors"]
    assert found.recommend


def test_a_gain_from_a_dead_grader_is_named_and_counts_only_as_traffic(tmp_path):
    """The cheap model never solves a hard query: its answers there may be graded wrong."""
    evalset = learnable(tmp_path / "set", 400)
    quality = evalset.quality.copy()
    quality[evalset.queries["group"] == "hard", 0] = 0.0
    faulty = material_of(replace(evalset, quality=quality))
    found = learn(faulty, PRICES, folds=2, curve=False)
    assert not found.recommend
    assert "comes from telling the groups apart" in found.reason
    assert "Check the grader first: cheap solves 0 %" in found.reason
    assert figures_of(found)["check"]["gain_from"] == "telling groups apart"
    real = learn(faulty, PRICES, folds=2, curve=False, groups_are_traffic=True)
    assert real.recommend
    assert "because you said that the groups are real" in real.reason
