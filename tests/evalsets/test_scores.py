"""Scoring: resumes where it stopped, is never used for other texts, is done once."""

import hashlib
import json
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.evalsets.scores import (
    TextFacts,
    load_scores,
    load_text_facts,
    save_scores,
    score_evalset,
    score_path,
    texts_digest,
)
from tests.evalsets.sets import queries, saved


@dataclass(frozen=True)
class Facts:
    fingerprint: str = "f" * 64
    dimensions: tuple[str, ...] = ("reasoning", "debugging")
    vectors: int = 0


@dataclass(frozen=True)
class Found:
    requirements: np.ndarray
    vectors: np.ndarray | None = None


class LengthPredictor:
    """Scores a message by its length and turn, and remembers what it was asked."""

    def __init__(self, facts=None):
        self.bundle = facts or Facts()
        self.asked = []

    def predict_batches(self, texts, batch_size=64, progress=None, turns=None, contexts=None):
        self.asked += list(texts)
        if progress is not None:
            progress(len(texts), len(texts))
        return Found(np.array([[len(t) / 100, n / 10] for t, n in zip(texts, turns, strict=True)]))


def expected(evalset):
    texts = evalset.queries["text"]
    return np.array(
        [[len(t) / 100, n / 10] for t, n in zip(texts, evalset.queries["turn"], strict=True)]
    )


def test_scores_are_kept_for_their_bundle(tmp_path):
    evalset, predictor = saved(tmp_path / "set"), LengthPredictor()
    assert load_scores(evalset, "f" * 64) is None
    frame = score_evalset(evalset, predictor)
    assert list(frame.columns) == ["query_id", "reasoning", "debugging"]
    np.testing.assert_array_equal(load_scores(evalset, "f" * 64), expected(evalset))
    again = score_evalset(evalset, predictor)
    assert again.equals(frame)
    assert len(predictor.asked) == 3
    assert load_scores(evalset, "0" * 64) is None


def test_another_bundle_is_scored_beside_it(tmp_path):
    evalset = saved(tmp_path / "set")
    score_evalset(evalset, LengthPredictor())
    score_evalset(evalset, LengthPredictor(Facts("other")))
    assert load_scores(evalset, "f" * 64) is not None
    assert load_scores(evalset, "other") is not None


def test_a_stopped_job_goes_on_where_it_was(tmp_path):
    evalset, first, second = saved(tmp_path / "set"), LengthPredictor(), LengthPredictor()

    def stop(done, total):
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_evalset(evalset, first, stop, chunk=1)
    assert load_scores(evalset, "f" * 64) is None
    score_evalset(evalset, second, chunk=1)
    np.testing.assert_array_equal(load_scores(evalset, "f" * 64), expected(evalset))
    assert len(first.asked) == 2
    assert len(second.asked) == 2  # the second query was asked, but not yet kept
    assert [path.name for path in (evalset.path / "scores").iterdir()] == ["f" * 64 + ".parquet"]


def test_a_torn_partial_file_is_cut_to_whole_rows(tmp_path):
    evalset, predictor = saved(tmp_path / "set"), LengthPredictor()
    with pytest.raises(ZeroDivisionError):
        score_evalset(evalset, predictor, lambda done, _: 1 / (2 - done), chunk=1)
    partial = evalset.path / "scores" / ("." + "f" * 64 + ".partial")
    partial.write_bytes(partial.read_bytes()[:-5])
    score_evalset(evalset, predictor)
    np.testing.assert_array_equal(load_scores(evalset, "f" * 64), expected(evalset))


def test_a_partial_file_of_other_texts_is_not_used(tmp_path):
    evalset = saved(tmp_path / "set")
    with pytest.raises(ZeroDivisionError):
        score_evalset(evalset, LengthPredictor(), lambda done, _: 1 / (2 - done), chunk=1)
    partial = evalset.path / "scores" / ("." + "f" * 64 + ".partial")
    kept = partial.read_bytes()
    other = saved(tmp_path / "set", queries=queries().assign(text=["x", "y", "z"]), force=True)
    (other.path / "scores").mkdir()
    (other.path / "scores" / partial.name).write_bytes(kept)
    score_evalset(other, LengthPredictor())
    np.testing.assert_array_equal(load_scores(other, "f" * 64), expected(other))


def test_scores_of_other_texts_are_an_error_and_made_again(tmp_path):
    evalset = saved(tmp_path / "one")
    score_evalset(evalset, LengthPredictor())
    other = saved(tmp_path / "two", queries=queries().assign(turn=[3, 3, 3]))
    (other.path / "scores").mkdir()
    score_path(other.path, "f" * 64).write_bytes(score_path(evalset.path, "f" * 64).read_bytes())
    with pytest.raises(EvalSetError, match="other texts"):
        load_scores(other, "f" * 64)
    score_evalset(other, LengthPredictor())
    np.testing.assert_array_equal(load_scores(other, "f" * 64), expected(other))


def test_a_damaged_score_file_says_what_to_do(tmp_path):
    evalset = saved(tmp_path / "set")
    score_evalset(evalset, LengthPredictor())
    file = score_path(evalset.path, "f" * 64)
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(EvalSetError, match="score the set again"):
        load_scores(evalset, "f" * 64)


def test_progress_reaches_the_end_and_never_goes_back(tmp_path):
    seen = []
    evalset = saved(tmp_path / "set")
    score_evalset(evalset, LengthPredictor(), lambda done, total: seen.append((done, total)), 2)
    assert seen[-1] == (3, 3)
    assert seen == sorted(seen)


def test_two_jobs_at_once_are_refused(tmp_path):
    evalset = saved(tmp_path / "set")

    def start_another(done, total):
        score_evalset(evalset, LengthPredictor())

    with pytest.raises(EvalSetError, match="another process"):
        score_evalset(evalset, LengthPredictor(), start_another)


@pytest.mark.parametrize("values", [np.full((3, 2), 1.5), np.full((3, 2), np.nan), np.ones((2, 2))])
def test_scores_that_are_none_are_not_saved(tmp_path, values):
    with pytest.raises(EvalSetError, match="scores"):
        save_scores(saved(tmp_path / "set"), "abc", ("reasoning", "debugging"), values)


@pytest.mark.parametrize("fingerprint", ["../evil", "", "a/b", ".hidden"])
def test_a_fingerprint_cannot_leave_the_folder(tmp_path, fingerprint):
    with pytest.raises(EvalSetError, match="fingerprint"):
        load_scores(saved(tmp_path / "set"), fingerprint)


def test_queries_without_turns_count_as_first_turns(tmp_path):
    evalset = save_evalset(
        tmp_path / "set",
        name="x",
        queries=queries().drop(columns="turn"),
        models=["m"],
        quality=np.ones((3, 1)),
        cost_usd=np.ones((3, 1)),
    )
    frame = score_evalset(evalset, LengthPredictor())
    assert set(frame["debugging"]) == {0.1}


@pytest.fixture(scope="module")
def any_set(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("digests") / "set")


@settings(max_examples=150, deadline=None)
@given(data=st.data(), with_turns=st.booleans())
def test_the_digest_is_that_of_one_json_list_a_row(data, with_turns, any_set):
    """Score files that were written before must stay valid, whatever their texts hold."""
    rows = data.draw(st.lists(st.tuples(st.text(), st.text(), st.integers(1, 99)), min_size=1))
    frame = pd.DataFrame(rows, columns=["query_id", "text", "turn"])
    if not with_turns:
        frame, rows = frame.drop(columns="turn"), [(query, text, 1) for query, text, _ in rows]
    wanted = hashlib.sha256("".join(json.dumps(row) for row in rows).encode()).hexdigest()
    assert texts_digest(replace(any_set, queries=frame)) == wanted


def test_the_digest_goes_on_from_one_batch_of_rows_to_the_next(any_set):
    rows = [(f"q{i}", f"text {i}", 1) for i in range(4_100)]
    wanted = hashlib.sha256("".join(json.dumps(row) for row in rows).encode()).hexdigest()
    frame = pd.DataFrame(rows, columns=["query_id", "text", "turn"])
    assert texts_digest(replace(any_set, queries=frame)) == wanted


class VectorPredictor(LengthPredictor):
    """Also gives a text vector: the length, in thirds."""

    def __init__(self):
        super().__init__(Facts(vectors=3))

    def predict_batches(self, texts, batch_size=64, progress=None, turns=None, contexts=None):
        found = super().predict_batches(texts, batch_size, progress, turns)
        lengths = np.array([[len(t) / 3] * 3 for t in texts], dtype=np.float32)
        return replace(found, vectors=lengths)


def test_vectors_and_counts_are_kept_beside_the_scores_and_the_job_resumes(tmp_path):
    evalset, first = saved(tmp_path / "set"), VectorPredictor()
    lengths = evalset.queries["text"].str.len().to_numpy()
    with pytest.raises(ZeroDivisionError):
        score_evalset(evalset, first, lambda done, _: 1 / (2 - done), chunk=1)
    score_evalset(evalset, VectorPredictor(), chunk=1)
    facts = load_text_facts(evalset, "f" * 64)
    np.testing.assert_array_equal(load_scores(evalset, "f" * 64), expected(evalset))
    np.testing.assert_allclose(facts.vectors[:, 0], lengths / 3, rtol=1e-3)
    assert facts.vectors.dtype == np.float16
    np.testing.assert_array_equal(facts.counts[:, 0], lengths)


def test_scores_without_vectors_are_made_again_where_the_bundle_gives_some(tmp_path):
    evalset = saved(tmp_path / "set")
    score_evalset(evalset, LengthPredictor())
    assert load_text_facts(evalset, "f" * 64) is None
    predictor = VectorPredictor()
    score_evalset(evalset, predictor)
    assert predictor.asked
    assert load_text_facts(evalset, "f" * 64).vectors.shape == (evalset.n, 3)


def without_texts(folder):
    """A set whose scores and vectors came with it."""
    plain = saved(folder / "whole")
    frame = queries().drop(columns="text")
    made = save_evalset(
        folder / "bare", name="bare", queries=frame, models=plain.models,
        quality=plain.quality, cost_usd=plain.cost_usd,
    )  # fmt: skip
    facts = TextFacts(np.ones((made.n, 3), np.float16), np.ones((made.n, 6), np.int32))
    save_scores(made, "f" * 64, ("reasoning", "debugging"), np.full((made.n, 2), 0.5), facts)
    return made


def test_a_set_without_texts_is_used_by_the_scores_it_came_with(tmp_path):
    evalset, predictor = without_texts(tmp_path), VectorPredictor()
    assert evalset.texts is None
    frame = score_evalset(evalset, predictor)
    assert frame["reasoning"].eq(0.5).all()
    assert not predictor.asked


def test_a_set_without_texts_cannot_be_scored_by_another_bundle(tmp_path):
    predictor = LengthPredictor(Facts(fingerprint="0" * 64))
    with pytest.raises(EvalSetError, match="has no texts to score"):
        score_evalset(without_texts(tmp_path), predictor)
