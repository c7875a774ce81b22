"""What looks dependent is found and offered; what is declared already is not."""

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.folders import DependenceAnswer, dependence_note
from hydra_core.evalsets.suspects import Sign, answer, look, suspects, with_clusters
from tests.evalsets import sets


def table(ids, languages="en", texts=None, **columns):
    count = len(ids)
    codes = [languages] * count if isinstance(languages, str) else languages
    content = {"query_id": ids, "language": codes, **columns}
    return pd.DataFrame({**content, "text": texts or [f"text {i}" for i in range(count)]})


def found(queries, vectors=None):
    return [
        [queries["query_id"][row] for row in rows] for rows in suspects(queries, vectors).groups
    ]


def test_the_same_text_up_to_case_and_punctuation_belongs_together():
    queries = table(["a", "b", "c", "d"], texts=["Fix it!", "other", "fix  it", "third"])
    assert found(queries) == [["a", "c"]]
    assert suspects(queries).signs == {Sign.TEXT: 1}


@pytest.mark.parametrize(
    ("ids", "languages", "wanted"),
    [
        (["t1-de", "t1-en", "t2-de"], ["de", "en", "de"], [["t1-de", "t1-en"]]),
        (["de/7", "en/7", "en/8"], ["de", "en", "en"], [["de/7", "en/7"]]),
        (["t1-pt-BR", "t1_zh_Hans", "t2-en"], ["pt", "zh", "en"], [["t1-pt-BR", "t1_zh_Hans"]]),
        (["t1_try1", "t1_try2", "t2_try1"], "en", [["t1_try1", "t1_try2"]]),
        (["t1.seed-1", "t1.seed-22", "t2"], "en", []),
        (["a.seed-1", "a.seed-22", "b.seed-1"], "en", [["a.seed-1", "a.seed-22"]]),
    ],
)
def test_ids_that_differ_by_a_language_or_an_attempt_belong_together(ids, languages, wanted):
    assert found(table(ids, languages)) == wanted


@pytest.mark.parametrize(
    "ids",
    [
        ["django__django-11099", "django__django-11100"],  # numbers alone are names
        ["mmlu-1", "mmlu-2", "gsm-1"],
        ["case-io", "case-ls"],  # two letters that are not the query's language
        ["q1", "q2", "q3"],
        ["humaneval_sample_1", "humaneval_sample_2", "mbpp_sample_1", "humaneval_sample_3"],
    ],
)
def test_ordinary_ids_are_left_alone(ids):
    assert found(table(ids)) == []


def tasks(rng, count, spread=0.3, languages=("en", "de", "ja"), width=64):
    """Vectors of tasks told in several languages, each language with an offset of its own."""
    meaning = rng.normal(size=(count, 1, width))
    own = 2.0 * rng.normal(size=(1, len(languages), width))
    vectors = meaning + own + spread * rng.normal(size=(count, len(languages), width))
    ids = [f"{rng.integers(1 << 40):x}" for _ in range(count * len(languages))]
    return table(ids, list(languages) * count), vectors.reshape(-1, width).astype(np.float32)


def test_translations_are_found_by_their_vectors():
    queries, vectors = tasks(np.random.default_rng(0), 40)
    rows = suspects(queries, vectors).groups
    assert sorted(map(tuple, rows)) == [(3 * i, 3 * i + 1, 3 * i + 2) for i in range(40)]


def test_two_tasks_that_meet_in_one_pair_of_languages_stay_two():
    first, second, odd, *others = np.eye(200, dtype=np.float32)
    # the German of one and the Japanese of the other are nearer to each other than to their own
    vectors = np.stack([first, first + 1.5 * odd, first, first] + [second] * 4)
    vectors[6] += 1.5 * odd
    vectors = np.concatenate([vectors, others[:192]])  # so that each language has its own mean
    queries = table([f"{i}x" for i in range(200)], ["en", "de", "ja", "fr"] * 50)
    rows = suspects(queries, vectors).groups
    assert sorted(map(tuple, rows)) == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_of_two_languages_no_third_text_is_asked_for():
    queries, vectors = tasks(np.random.default_rng(4), 30, languages=("en", "de"))
    rows = suspects(queries, vectors).groups
    assert sorted(map(tuple, rows)) == [(2 * i, 2 * i + 1) for i in range(30)]


def test_unrelated_texts_of_several_languages_are_not_grouped():
    rng = np.random.default_rng(1)
    queries, _ = tasks(rng, 40)
    assert found(queries, rng.normal(size=(120, 64)).astype(np.float32)) == []


def test_different_texts_of_languages_with_few_texts_are_not_one_group():
    """Text vectors of any two texts are alike until what all share is taken out."""
    rng = np.random.default_rng(3)
    vectors = 5.0 + rng.normal(size=(89, 64)).astype(np.float32)
    queries = table([f"{i}x" for i in range(89)], list(rng.choice(list("abcdefghijkl"), 89)))
    assert found(queries, vectors) == []


def test_near_duplicates_in_one_language_are_found_and_progress_is_told():
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(50, 64)).astype(np.float32)
    vectors[7] = vectors[30] + 0.05 * rng.normal(size=64)
    queries, seen = table([f"{i}x" for i in range(50)]), []
    result = suspects(queries, vectors, lambda done, of: seen.append((done, of)))
    assert [rows.tolist() for rows in result.groups] == [[7, 30]]
    assert result.signs == {Sign.VECTORS: 1}
    assert seen[-1] == (50, 50)


def test_what_is_declared_is_not_suspected_again_and_stays_whole():
    texts = ["same", "same", "two", "two", "three"]
    declared = table(list("abcde"), texts=texts, cluster=["k", "k", "l", None, "l"])
    assert found(declared) == [["c", "d", "e"]]
    accepted = with_clusters(declared, suspects(declared))
    assert accepted["cluster"].tolist() == ["k", "k", "c", "c", "c"]
    assert found(accepted) == []


def test_queries_without_a_group_stay_independent():
    queries = table(list("abc"), texts=["same", "same", "other"])
    accepted = with_clusters(queries, suspects(queries))
    assert accepted["cluster"].tolist()[:2] == ["a", "a"]
    assert pd.isna(accepted["cluster"].iloc[2])
    assert str(suspects(queries)) == "2 queries form 1 group of identical text"
    assert str(suspects(accepted)) == "no two queries look dependent"


def repeated(folder):
    """A saved set whose first two texts are one and the same."""
    again = sets.queries().assign(text=["Fix the bug", "fix the bug!", "other"])
    return sets.saved(folder / "set", queries=again)


@pytest.mark.parametrize(("accepted", "said"), [(True, "accepted"), (False, "declined")])
def test_an_answer_is_kept_in_the_set_and_in_what_verdicts_say(tmp_path, accepted, said):
    evalset = repeated(tmp_path)
    assert "has not been checked" in dependence_note(evalset.dependence)
    kept = answer(evalset, look(evalset), accepted=accepted)
    assert kept.dependence == DependenceAnswer(said, groups=1, queries=2)
    assert ("cluster" in kept.queries.columns) is accepted
    assert ("too narrow" in dependence_note(kept.dependence)) is not accepted
    np.testing.assert_array_equal(kept.quality, evalset.quality)
    assert load_evalset(kept.path).dependence == kept.dependence


def test_nothing_found_is_an_answer_too(tmp_path):
    evalset = sets.saved(tmp_path / "set")
    kept = answer(evalset, look(evalset), accepted=False)
    assert kept.dependence.answer == "none found"
    assert dependence_note(kept.dependence) == ""


@pytest.mark.parametrize(
    "wrong", ["maybe", "{answer: maybe}", "{answer: declined, groups: -1}", "{answer: x, y: 1}"]
)
def test_a_damaged_answer_is_named(tmp_path, wrong):
    folder = sets.saved(tmp_path / "set").path
    with (folder / "evalset.yaml").open("a") as file:
        file.write(f"dependence: {wrong}\n")
    with pytest.raises(EvalSetError, match="dependence"):
        load_evalset(folder)
