"""Outcome models from strangers, their digests put right: refused by name, nothing runs away."""

import hashlib
import json
import os
import shutil
import zipfile
from io import BytesIO

import numpy as np
import pytest
from ruamel.yaml import YAML

from hydra_core.base.errors import OutcomeModelError
from hydra_core.choosing.write import write_outcome_model
from hydra_core.outcome_model.format import FIGURES, HEADS, LEARNED, MANIFEST, load_outcome_model
from tests.choosing.learning_sets import FINGERPRINT


@pytest.fixture(scope="module")
def sound(tmp_path_factory, learning):
    place = tmp_path_factory.mktemp("om") / "om"
    return write_outcome_model(place, learning, fingerprint=FINGERPRINT).path


@pytest.fixture
def folder(tmp_path, sound):
    return shutil.copytree(sound, tmp_path / "om")


def retold(folder, change=lambda said: None):
    """The manifest with `change` made and digests that are right again."""
    yaml = YAML(typ="safe", pure=True)
    said = yaml.load(folder / MANIFEST)
    files = (HEADS, LEARNED, FIGURES)
    said["files"] = {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in files}
    change(said)
    yaml.dump(said, folder / MANIFEST)


def arrays(folder, name=HEADS, **changed):
    """Arrays of a file changed; None takes one away."""
    with np.load(folder / name) as loaded:
        found = dict(loaded) | {key.replace("__", "."): value for key, value in changed.items()}
    np.savez(folder / name, **{k: v for k, v in found.items() if v is not None})
    retold(folder)


def refused(folder):
    with pytest.raises(OutcomeModelError) as caught:
        _ = load_outcome_model(folder).learned
    return str(caught.value)


def header(shape, dtype="<f8"):
    """An .npy file that says more than it holds."""
    out = BytesIO()
    np.lib.format.write_array_header_1_0(
        out, {"shape": shape, "fortran_order": False, "descr": dtype}
    )
    return out.getvalue()


def forest(**changed):
    """A tree of one split in place of the first part, with something wrong."""
    nodes = {
        "column": np.array([0, 0, 0]),
        "threshold": np.array([0.0, np.inf, np.inf], dtype=np.float32),
        "left": np.array([1, 1, 2]),
        "value": np.zeros((3, 3), dtype=np.float32),
        "roots": np.array([0]),
        "depth": np.array(1),
    } | changed
    return {f"part0__{name}": value for name, value in nodes.items()}


MANIFESTS = {
    "a megabyte of nothing": lambda t: t + "#" + "x" * (1 << 20),
    "ten thousand models": lambda t: t.replace("models:\n", "models:\n" + "- {id: a}\n" * 10_000),
    "aliases": lambda t: t.replace("learner: ", "learner: &a "),
    "a tag": lambda t: t.replace("learner: ", "learner: !!python/name:os.system "),
    "nested without end": lambda t: t + "x: " + "[" * 50_000,
    "a schema that is a list": lambda t: t.replace("hydra.outcome_model/v1", "[1, 2]"),
    "no text": lambda t: "\x00" + t,
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS)
def test_a_hostile_manifest_is_refused(folder, change):
    manifest = folder / MANIFEST
    manifest.write_text(change(manifest.read_text()))
    assert MANIFEST in refused(folder)


SAYINGS = {
    "a model twice": lambda s: s["models"].append(s["models"][0]),
    "outcomes below 0": lambda s: s["models"][0].update(outcomes=-1),
    "outcomes that are true": lambda s: s["models"][0].update(outcomes=True),
    "a share of infinity": lambda s: s["parts"][0].update(share=float("inf")),
    "a share of NaN": lambda s: s["parts"][0].update(share=float("nan")),
    "heads of an unknown kind": lambda s: s["parts"][0].update(kind="pickle"),
    "blocks in another order": lambda s: s["blocks"].reverse(),
    "blocks that are text": lambda s: s.update(blocks="vectors"),
    "vectors without end": lambda s: s["predictor"].update(vectors=10**9),
    "a file outside": lambda s: s["files"].update({"../../etc/passwd": "0" * 64, HEADS: "x"}),
    "another model more": lambda s: s["models"].append({"id": "more", "outcomes": 5}),
}


@pytest.mark.parametrize("change", SAYINGS.values(), ids=SAYINGS)
def test_what_cannot_be_is_refused(folder, change):
    retold(folder, change)
    assert refused(folder)


ARRAYS = {
    "infinite weights": {"mean_difference": np.array([np.inf, 0, 0])},
    "a scale of 0": {"features__scale": np.zeros(3)},
    "no directions": {"features__directions": None},
    "directions of another width": {"features__directions": np.zeros((3, 2), np.float32)},
    "complex numbers": {"mean_difference": np.zeros(3, complex)},
    "text for numbers": {"mean_difference": np.array(["a", "b", "c"])},
    "newcomers that do not fit": {"newcomers__weights": np.zeros((9, 9), np.float32)},
}


@pytest.mark.parametrize("changed", ARRAYS.values(), ids=ARRAYS)
def test_arrays_that_do_not_fit_are_refused(folder, changed):
    arrays(folder, **changed)
    assert HEADS in refused(folder)


TREES = {
    "a tree that leads back": {"left": np.array([0, 1, 2])},
    "a child that is not there": {"left": np.array([2, 1, 2])},
    "a depth without end": {"depth": np.array(1 << 62)},
    "a root that is not there": {"roots": np.array([7])},
    "no roots": {"roots": np.array([], dtype=int)},
    "a column that is not there": {"column": np.array([1 << 40, 0, 0])},
}


@pytest.mark.parametrize("changed", TREES.values(), ids=TREES)
def test_trees_that_do_not_end_are_refused(folder, changed):
    arrays(folder, **forest(**changed))
    retold(folder, lambda said: said["parts"][0].update(kind="trees"))
    assert HEADS in refused(folder)


LEARNED_ARRAYS = {
    "another number of queries": {"quality": np.zeros((1, 3))},
    "no query": {"query_ids": np.array([], dtype=str)},
    "ids that are numbers": {"query_ids": np.arange(200)},
}


@pytest.mark.parametrize("changed", LEARNED_ARRAYS.values(), ids=LEARNED_ARRAYS)
def test_a_record_that_does_not_fit_is_refused(folder, changed):
    arrays(folder, LEARNED, **changed)
    assert LEARNED in refused(folder)


FILES = {
    "a bomb": {"a.npy": header((1 << 28,)) + bytes(1 << 20)},
    "a length that overflows": {"a.npy": header((1 << 40, 1 << 40))},
    "a shape below 0": {"a.npy": header((-1, 5))},
    "no array at all": {"a.npy": b"import os"},
    "objects": {"a.npy": header((1,), "|O")},
}


@pytest.mark.parametrize("members", FILES.values(), ids=FILES)
def test_a_file_that_lies_about_its_size_is_refused(folder, members):
    with zipfile.ZipFile(folder / HEADS, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    retold(folder)
    assert HEADS in refused(folder)


FIGURE_TEXTS = {"no JSON": "{", "a list": "[]", "nested": "[" * 100_000, "empty": "{}"}


@pytest.mark.parametrize("text", FIGURE_TEXTS.values(), ids=FIGURE_TEXTS)
def test_figures_of_another_form_are_refused(folder, text):
    (folder / FIGURES).write_text(text)
    retold(folder)
    assert FIGURES in refused(folder)


def test_a_pipe_in_place_of_a_file_is_refused(folder):
    (folder / HEADS).unlink()
    os.mkfifo(folder / HEADS)
    assert "no plain file" in refused(folder)


def test_a_model_that_was_only_told_anew_is_still_read(folder):
    retold(folder)
    assert load_outcome_model(folder).learned.query_ids.size == 200
    assert json.loads((folder / FIGURES).read_text())["n"] == 200
