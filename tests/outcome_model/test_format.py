"""An outcome model is read whole or refused with the file and the remedy."""

import json
import shutil

import numpy as np
import pytest

from hydra_core.base.errors import OutcomeModelError, StoreError
from hydra_core.choosing.write import telling, write_outcome_model
from hydra_core.outcome_model.format import FIGURES, HEADS, LEARNED, MANIFEST, load_outcome_model
from hydra_core.outcome_model.model import text_digests
from hydra_core.store import Actor, Role, open_store
from tests.choosing.learning_sets import FINGERPRINT, MODELS


@pytest.fixture
def written(tmp_path, learning):
    return write_outcome_model(tmp_path / "om", learning, fingerprint=FINGERPRINT)


def refusal(path):
    with pytest.raises(OutcomeModelError) as caught:
        load_outcome_model(path)
    return str(caught.value)


def test_what_was_written_predicts_the_same(written, learning):
    again = load_outcome_model(written.path, sha256=written.digest)
    assert again.models == MODELS
    assert again.outcomes == (200, 200, 60)
    assert again.fingerprint == FINGERPRINT
    messages = learning.material.messages
    pools = [heads.for_pool(MODELS, np.zeros(3), None) for heads in (again.heads, learning.heads)]
    found, fresh = (pool.predict(messages) for pool in pools)
    np.testing.assert_allclose(found.success, fresh.success, rtol=1e-6)
    np.testing.assert_allclose(found.cost_usd, fresh.cost_usd, rtol=1e-6)
    assert again.figures["n"] == 200


def test_one_message_is_predicted_as_among_many(written, learning):
    messages = learning.material.messages
    pool = written.heads.for_pool(MODELS, np.zeros(3), None)
    many = pool.predict(messages)
    for row in (0, 7):
        one = pool.predict(messages.take(np.array([row])))
        np.testing.assert_allclose(one.success[0], many.success[row], rtol=1e-5)


def test_what_was_learned_on_is_known_by_text_and_by_id(written, learning):
    texts = learning.material.evalset.texts
    known = written.learned
    assert known.rows_of(["other"], text_digests([texts.iloc[3]])).tolist() == [3]
    assert known.rows_of(["q3"], text_digests(["something else"])).tolist() == [-1]
    assert known.rows_of(["q5", "q999"], text_digests([])).tolist() == [5, -1]
    rows, likeness = known.nearest(known.columns[4].astype(np.float32), 3)
    assert rows[0] == 4
    assert likeness[0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("name", [HEADS, FIGURES])
def test_a_damaged_file_is_refused(written, name):
    file = written.path / name
    file.write_bytes(file.read_bytes()[:-3])
    assert f"{name}: is damaged or was replaced" in refusal(written.path)


def test_a_damaged_record_of_what_was_learned_is_refused_when_it_is_needed(written):
    (written.path / LEARNED).write_bytes(b"nothing")
    found = load_outcome_model(written.path)
    with pytest.raises(OutcomeModelError, match="learned.npz: is damaged"):
        _ = found.learned


@pytest.mark.parametrize("name", [MANIFEST, HEADS, FIGURES])
def test_a_half_written_folder_is_refused(written, name):
    (written.path / name).unlink()
    assert f"{name}: is missing" in refusal(written.path)


def test_arrays_that_need_pickle_are_refused(written):
    """Also where the manifest names their digest."""
    import hashlib

    file = written.path / HEADS
    old = hashlib.sha256(file.read_bytes()).hexdigest()
    np.savez(file, centre=np.array([{"a": 1}], dtype=object))
    new = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest = written.path / MANIFEST
    manifest.write_text(manifest.read_text().replace(old, new))
    assert "heads.npz: is not a file of arrays" in refusal(written.path)


def test_another_model_than_the_one_named_is_refused(written):
    with pytest.raises(OutcomeModelError, match="is another outcome model"):
        load_outcome_model(written.path, sha256="0" * 64)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("hydra.outcome_model/v1", "hydra.outcome_model/v9", "schema: must be"),
        ("outcomes: 60", "outcomes: many", "models[2].outcomes: must be int"),
        ("learner:", "teacher:", "keys missing or unknown: learner, teacher"),
    ],
)
def test_a_foreign_manifest_is_refused(written, old, new, said):
    manifest = written.path / MANIFEST
    text = manifest.read_text()
    assert old in text
    manifest.write_text(text.replace(old, new))
    assert said in refusal(written.path)


def test_a_folder_that_is_something_else_is_left_alone(tmp_path, learning):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutcomeModelError, match="is not an outcome model"):
        write_outcome_model(tmp_path, learning, fingerprint=FINGERPRINT)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_what_is_learned_is_told_with_what_was_and_is(tmp_path, learning):
    ana, store, path = Actor("ana", Role.EDITOR), open_store(tmp_path), tmp_path / "models" / "om"

    def write():
        tell = telling(ana, store, path)
        return write_outcome_model(
            path, learning, fingerprint=FINGERPRINT, force=True, tell=tell
        ).digest

    made = write(), write()
    told = [(line.actor, line.subject, dict(line.metrics)) for line in store.audit()]
    store.close()
    assert told[1] == ("ana", "outcome model om", {"before": "", "after": made[0]})
    assert told[0] == ("ana", "outcome model om", {"before": made[0], "after": made[1]})


def test_what_cannot_be_told_changes_nothing(written, learning):
    def refuse(digest):
        raise StoreError("the database is gone")

    manifest = (written.path / MANIFEST).read_bytes()
    with pytest.raises(StoreError):
        write_outcome_model(written.path, learning, fingerprint="0" * 64, force=True, tell=refuse)
    assert (written.path / MANIFEST).read_bytes() == manifest
    assert [path.name for path in written.path.parent.iterdir()] == ["om"]


def test_an_outcome_model_is_replaced_only_when_asked(written, learning):
    with pytest.raises(OutcomeModelError, match="exists already"):
        write_outcome_model(written.path, learning, fingerprint=FINGERPRINT)
    again = write_outcome_model(written.path, learning, fingerprint=FINGERPRINT, force=True)
    assert json.loads((again.path / FIGURES).read_text())["n"] == 200
    shutil.rmtree(again.path)
