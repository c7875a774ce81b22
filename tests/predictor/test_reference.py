"""How far a message lies from training: read with every check, outside the fingerprint."""

import io
import zipfile
from dataclasses import replace

import numpy as np
import onnx
import pytest

from hydra_core.base.errors import BundleError
from hydra_core.cli.main import main
from hydra_core.lab.bundle_writing import write_manifest
from hydra_core.predictor.bundle import Bundle, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor, default_predictor
from hydra_core.predictor.reference import REFERENCE, Reference, write_reference
from tests.predictor.tiny_bundle import WIDTH, graph, make_bundle, tokenizer

TEXTS = ["fix bug", "write poem", "fix bug fix bug", ""]


@pytest.fixture
def bare(tmp_path) -> Bundle:
    """A bundle with text vectors and no reference."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    onnx.save(graph(tokenizer().get_vocab_size(), vectors=True), folder / "model.int8.onnx")
    return make_bundle(folder, vectors=WIDTH)


def with_reference(bundle: Bundle, reference: Reference) -> Bundle:
    write_reference(bundle.path / REFERENCE, reference)
    return write_manifest(bundle.path, replace(bundle, reference=REFERENCE))


@pytest.fixture
def bundle(bare) -> Bundle:
    """Its one centre is the vector of "fix bug", its limit .5."""
    vectors = Predictor(bare).predict(["fix bug"]).vectors
    return with_reference(bare, Reference(vectors, 0.5, 0.995))


def test_the_distance_is_to_the_nearest_centre_in_limits(bundle):
    found = Predictor(bundle).predict(TEXTS)
    centre = np.asarray(found.vectors[0], dtype=np.float16).astype(np.float64)
    wanted = np.linalg.norm(found.vectors - centre, axis=1) / 0.5
    assert found.distances == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    assert found.distances[0] < 0.01


def test_many_at_once_are_as_far_as_each_alone(bundle):
    predictor = Predictor(bundle)
    alone = [predictor.predict([text]).distances[0] for text in TEXTS]
    assert predictor.predict_batches(TEXTS).distances.tolist() == alone


def test_it_changes_neither_scores_nor_fingerprint(bare, tmp_path):
    before, bare_fingerprint = Predictor(bare).predict(TEXTS), bare.fingerprint
    made = with_reference(bare, Reference(np.ones((2, WIDTH), np.float32), 1.0, 0.9))
    after = Predictor(made).predict(TEXTS)
    assert made.fingerprint == bare_fingerprint
    assert before.distances is None
    assert after.requirements.tolist() == before.requirements.tolist()
    assert after.vectors.tolist() == before.vectors.tolist()


def saved(**arrays) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("centres.npy", bytes(50_000_000))
    return out.getvalue()


GOOD = {"centres": np.ones((2, WIDTH), np.float16), "limit": 1.0, "kept": 0.9}
FAULTS = {
    "not an archive": b"hello",
    "cut short": saved(**GOOD)[:-40],
    "other names": saved(**{**GOOD, "more": 1.0}),
    "another width": saved(**{**GOOD, "centres": np.ones((2, 3), np.float16)}),
    "none at all": saved(**{**GOOD, "centres": np.ones((0, WIDTH), np.float16)}),
    "not finite": saved(**{**GOOD, "centres": np.full((2, WIDTH), np.nan, np.float16)}),
    "no limit": saved(**{**GOOD, "limit": 0.0}),
    "whole numbers": saved(**{**GOOD, "centres": np.ones((2, WIDTH), np.int64)}),
    "objects": saved(**{**GOOD, "kept": np.array([None], dtype=object)}),
    "a bomb": bomb(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_not_what_it_must_be_is_refused(bare, fault):
    (bare.path / REFERENCE).write_bytes(FAULTS[fault])
    made = write_manifest(bare.path, replace(bare, reference=REFERENCE))
    with pytest.raises(BundleError, match=r"reference\.npz: cannot be used.*leave `reference` out"):
        Predictor(made)
    assert main(["validate", str(made.path)]) == 2


def test_a_missing_or_replaced_file_is_named(bundle, capsys):
    raw = (bundle.path / REFERENCE).read_bytes()
    (bundle.path / REFERENCE).write_bytes(raw[:-1] + b"x")
    with pytest.raises(BundleError, match=r"reference\.npz: is damaged or was replaced"):
        load_bundle(bundle.path)
    (bundle.path / REFERENCE).unlink()
    assert main(["validate", str(bundle.path)]) == 2
    assert "reference.npz: is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("reference: reference.npz", "reference: other.npz", "not listed under files"),
        ("reference: reference.npz", "reference: 5", "must be text"),
        ("vectors: 8\n", "", "needs text vectors"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(bundle, old, new, said):
    path = bundle.path / "bundle.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(BundleError, match=said):
        load_bundle(bundle.path)


def test_the_shipped_bundle_flags_rubbish_and_no_plain_request():
    predictor = default_predictor()
    rng = np.random.default_rng(3)
    letters = ["".join(rng.choice(list("abcdefghijklmnop"), 7)) for _ in range(60)]
    rubbish = [" ".join(letters), "QmFzZTY0IHRleHQ" * 12, "ბაგის გასწორება მინდა აქ ახლავე"]
    plain = [
        "Please fix the failing test in this file.",
        "¿Cómo ordeno una lista en Python?",
        "写一个快速排序",
        "Why is my query slow although there is an index on the column?",
    ]
    assert (predictor.predict(rubbish).distances > 1.0).all()
    assert (predictor.predict(plain).distances < 1.0).all()
