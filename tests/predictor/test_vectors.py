"""A bundle's text vector comes with the scores, from the same run, and moves none of them."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from hydra_core.base.errors import BundleError
from hydra_core.predictor.bundle import Bundle, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.predictor.signals import COUNTS, surface_counts
from tests.predictor.tiny_bundle import WIDTH, graph, make_bundle, tokenizer

TEXTS = ["fix bug", "write poem", ""]


def with_vectors(folder: Path, vectors: int = WIDTH, *, given: bool = True) -> Bundle:
    folder.mkdir()
    size = tokenizer().get_vocab_size()
    onnx.save(graph(size, vectors=given), folder / "model.int8.onnx")
    return make_bundle(folder, vectors=vectors)


def test_scores_are_the_same_with_and_without_the_vector(tmp_path: Path) -> None:
    asked = Predictor(with_vectors(tmp_path / "a")).predict(TEXTS)
    plain = Predictor(with_vectors(tmp_path / "b", vectors=0)).predict(TEXTS)
    np.testing.assert_array_equal(asked.requirements, plain.requirements)
    assert plain.vectors is None
    assert asked.vectors is not None
    assert asked.vectors.shape == (3, WIDTH)
    assert not asked.vectors.flags.writeable


def test_vectors_of_many_are_those_of_one(tmp_path: Path) -> None:
    predictor = Predictor(with_vectors(tmp_path / "a"))
    many, one = predictor.predict_batches(TEXTS), [predictor.predict([t]) for t in TEXTS]
    np.testing.assert_array_equal(many.vectors, np.concatenate([p.vectors for p in one]))


def test_the_width_belongs_to_the_fingerprint(tmp_path: Path) -> None:
    promised = with_vectors(tmp_path / "a")
    assert load_bundle(promised.path).vectors == WIDTH
    assert promised.fingerprint != with_vectors(tmp_path / "b", vectors=0).fingerprint


def test_a_promise_that_the_graph_does_not_keep_is_refused(tmp_path: Path) -> None:
    missing = with_vectors(tmp_path / "a", given=False)
    with pytest.raises(BundleError, match="has no output 'vectors', bundle.yaml says there is one"):
        Predictor(missing)
    wide = with_vectors(tmp_path / "b", vectors=WIDTH + 1)
    with pytest.raises(BundleError, match=r"finite vectors of shape \(1, 9\) were expected"):
        Predictor(wide)


@pytest.mark.parametrize("width", [-1, 401])
def test_a_width_beyond_the_storage_bound_is_refused(tmp_path: Path, width: int) -> None:
    with pytest.raises(BundleError, match="vectors: must be a whole number 0 to 400"):
        with_vectors(tmp_path / "a", vectors=width)


def test_the_shipped_bundle_gives_vectors() -> None:
    assert load_bundle().vectors == 384


def test_what_is_counted_in_a_message() -> None:
    found = dict(zip(COUNTS, surface_counts(["Add 12 tests,\nplease: NOW!"])[0], strict=True))
    assert found == {
        "chars": 26, "words": 5, "lines": 1, "digits": 2, "marks": 3, "capitals": 4,
    }  # fmt: skip


def test_counting_an_endless_message_is_bounded() -> None:
    counts = surface_counts(["ab 1" * 1_000_000, ""])
    assert counts[0, 0] == 4_000_000
    assert counts[0, 1:].max() < 4_100
    assert counts[1].tolist() == [0] * len(COUNTS)
