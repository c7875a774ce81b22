"""A bundle is read whole or refused with the file and the reason."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.errors import BundleError
from hydra_core.base.types import DIMENSIONS, Band
from hydra_core.lab.bundle_writing import write_manifest
from hydra_core.predictor.bundle import MANIFEST, Bundle, Curve, Manifest, load_bundle

Maker = Callable[..., Bundle]


def rewrite(bundle: Bundle, old: str, new: str) -> None:
    path = bundle.path / MANIFEST
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def refusal(path: Path) -> str:
    with pytest.raises(BundleError) as caught:
        load_bundle(path)
    return str(caught.value)


def test_what_was_written_is_read_back(tiny: Bundle) -> None:
    again = load_bundle(tiny.path)
    assert again == tiny
    assert again.dimensions == DIMENSIONS
    assert again.bands[3] == Band(0.05, 0.5)
    assert again.calibration is not None
    assert again.calibration[1] == Curve((0.0, 0.5, 1.0), (0.0, 0.3, 0.9))
    assert again.quality == {"pearson": {"mean": 0.0}}
    assert again.size_bytes < 30_000


def test_numpy_values_are_written_as_plain_numbers(bundle_maker: Maker) -> None:
    made = bundle_maker(quality={"mae": np.float32(0.5), "n": np.int64(3), "list": (1, None)})
    assert made.quality == {"mae": 0.5, "n": 3, "list": [1, None]}


def test_the_fingerprint_follows_the_scores_and_nothing_else(bundle_maker: Maker) -> None:
    first = bundle_maker()
    assert bundle_maker(version="2", quality={"mae": 0.1}).fingerprint == first.fingerprint
    straight = [Curve((0.0, 1.0), (0.0, 0.9))] * 4
    changed = [
        bundle_maker(calibration=straight),
        bundle_maker(max_tokens=32),
        bundle_maker(before="query: "),
        bundle_maker(dimensions=DIMENSIONS[::-1]),
    ]
    assert len({first.fingerprint, *(bundle.fingerprint for bundle in changed)}) == 5


def test_the_fingerprint_follows_the_model_file(bundle_maker: Maker) -> None:
    first = bundle_maker()
    model = first.path / first.model
    model.write_bytes(model.read_bytes() + b"\x00")
    assert bundle_maker().fingerprint != first.fingerprint


def test_other_files_are_checked_but_not_fingerprinted(bundle_maker: Maker) -> None:
    first = bundle_maker()
    (first.path / "MODEL_CARD.md").write_text("a card", "utf-8")
    made = bundle_maker(other_files=("MODEL_CARD.md",))
    assert made.fingerprint == first.fingerprint
    (first.path / "MODEL_CARD.md").write_text("another", "utf-8")
    assert "MODEL_CARD.md: is damaged or was replaced" in refusal(made.path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path / 'none' / MANIFEST}: there is no such file" in refusal(tmp_path / "none")


def test_a_file_instead_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    assert "cannot be read" in refusal(tmp_path / "file")


@pytest.mark.parametrize("name", ["model.int8.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(bundle_maker: Maker, name: str) -> None:
    made = bundle_maker()
    (made.path / name).unlink()
    assert f"{name}: is missing" in refusal(made.path)


def test_a_truncated_model_is_named_with_its_size(bundle_maker: Maker) -> None:
    made = bundle_maker()
    model = made.path / made.model
    model.write_bytes(model.read_bytes()[:1000])
    assert "model.int8.onnx: is damaged or was replaced: 1,000 bytes" in refusal(made.path)


def test_all_damaged_files_are_reported_at_once(bundle_maker: Maker) -> None:
    made = bundle_maker()
    (made.path / made.model).unlink()
    (made.path / made.tokenizer).write_text("{}", "utf-8")
    text = refusal(made.path)
    assert "model.int8.onnx" in text
    assert "tokenizer.json" in text


def test_an_edited_fingerprint_is_refused(bundle_maker: Maker) -> None:
    made = bundle_maker()
    rewrite(made, made.fingerprint, "f" * 64)
    assert "fingerprint: is ffffffffffff..., the contents give" in refusal(made.path)


@pytest.mark.parametrize(
    "name", ["../tokenizer.json", "/etc/passwd", "..", "C:\\x", "a/../../b", "a//b", "", ".env"]
)
def test_a_file_name_may_not_leave_the_folder(bundle_maker: Maker, name: str) -> None:
    made = bundle_maker()
    rewrite(made, "files: {", f"files: {{'{name}': '{'0' * 64}', ")
    assert "is not a plain relative name inside the bundle" in refusal(made.path)


def test_a_link_may_not_leave_the_folder(bundle_maker: Maker, tmp_path: Path) -> None:
    made = bundle_maker()
    (tmp_path / "outside.json").write_bytes((made.path / "tokenizer.json").read_bytes())
    (made.path / "tokenizer.json").unlink()
    (made.path / "tokenizer.json").symlink_to(tmp_path / "outside.json")
    assert "tokenizer.json: lies outside the bundle's folder" in refusal(made.path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must be a mapping"),
        ("- 1\n- 2\n", "must be a mapping"),
        ("schema: other/v1\n", "schema: must be hydra.predictor/v1, got 'other/v1'"),
        ("name: x\n", "schema: must be hydra.predictor/v1, got None"),
        ("schema: [\n", "is not valid YAML"),
        ("a: 1\na: 2\n", "is not valid YAML"),
        ("schema: !!python/object/apply:os.system [id]\n", "line 1: the tag"),
        ("schema: !include x\n", "line 1: the tag !include is not allowed"),
        ("a: &a [x]\nb: [*a, *a]\n", "line 1: anchors and aliases are not allowed"),
        ("[" * 500, "line 1: nested deeper than 12 levels"),
        ("a: [" + "1, " * 30_000 + "]", "holds more than 4,000 values"),
        ("a: " + "9" * 5000 + "\n", "is not valid YAML"),
        ("\x00", "is not valid YAML"),
        ("a" * 1_000_001, "is larger than 100,000 bytes"),
    ],
)
def test_a_foreign_manifest_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / MANIFEST).write_text(text, "utf-8")
    assert reason in refusal(tmp_path)


def test_a_manifest_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"\x80\x81")
    assert "is not UTF-8 text (byte 0)" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("max_tokens: 64", "max_tokens: 0", "max_tokens: must be a whole number 8 to 8192, got 0"),
        ("max_tokens: 64", "max_tokens: true", "max_tokens: must be a whole number"),
        ("max_tokens: 64", "colour: red", "max_tokens: is missing"),
        ("max_tokens: 64", "max_tokens: 64\ncolour: red", "'colour': is not a key"),
        ("[0.1, 0.9]", "[0.9, 0.1]", "bands.reasoning: must be [lo, hi]"),
        ("[0.1, 0.9]", "[0.1, .nan]", "bands.reasoning: must be [lo, hi]"),
        ("[0.1, 0.9]", "high", "bands.reasoning: must be [lo, hi]"),
        ("name: tiny", "name: [tiny]", "name: must be text"),
        ("signals: 1", "signals: 2", "input.signals: is form 2, this is form 1"),
        ("model: model", "model: other", "model: 'other.int8.onnx' is not listed under files"),
        ("tool_use]", "debugging]", "dimensions: must be a list of different names"),
    ],
)
def test_every_field_is_checked(bundle_maker: Maker, old: str, new: str, reason: str) -> None:
    made = bundle_maker()
    rewrite(made, old, new)
    assert reason in refusal(made.path)


@pytest.mark.parametrize(
    ("curve", "reason"),
    [
        (Curve((0.0, 0.0), (0.0, 1.0)), "calibration.reasoning.x: must ascend strictly"),
        (Curve((0.0, 1.0), (1.0, 0.0)), "calibration.reasoning.y: must not descend"),
        (Curve((0.0, 1.0), (0.0, 0.5, 1.0)), "of equal length"),
        (Curve((0.0,), (0.0,)), "of equal length"),
        (Curve((0.0, 1.0), (0.0, float("nan"))), "of equal length"),
    ],
)
def test_a_calibration_is_monotone(bundle_maker: Maker, curve: Curve, reason: str) -> None:
    with pytest.raises(BundleError) as caught:
        bundle_maker(calibration=[curve] * 4)
    assert reason in str(caught.value)


def test_a_manifest_that_would_not_load_leaves_the_old_one(bundle_maker: Maker) -> None:
    made = bundle_maker()
    before = (made.path / MANIFEST).read_bytes()
    with pytest.raises(BundleError):
        bundle_maker(bands=[Band(0.5, 0.1)] * 4)
    assert (made.path / MANIFEST).read_bytes() == before


def test_a_manifest_needs_its_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_manifest(
            tmp_path,
            Manifest(
                name="x",
                version="1",
                encoder={},
                dimensions=("a",),
                bands=(Band(0.0, 1.0),),
                training={},
                quality={},
            ),
        )


def test_the_shipped_bundle_is_whole(shipped: Bundle) -> None:
    assert shipped.dimensions == DIMENSIONS
    assert shipped.size_bytes <= 40_000_000
    assert shipped.max_tokens == 512
    assert {"type", "origin", "licence"} <= set(shipped.encoder)
