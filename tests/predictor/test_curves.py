"""Curves by writing system: read or refused, and applied to what was scored."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.errors import BundleError
from hydra_core.lab.bundle_writing import write_manifest
from hydra_core.predictor.bundle import MANIFEST, SHIPPED, SHIPPED_SMALL, Bundle, Curve, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor

Maker = Callable[..., Bundle]
STRAIGHT = Curve((0.0, 1.0), (0.0, 1.0))
HALF = Curve((0.0, 1.0), (0.0, 0.5))
TEXTS = ["fix the bug", "исправь ошибку", "修复错误", "أصلح الخطأ", "แก้บั๊ก", "", "1 + 2"]


def test_a_message_goes_through_its_scripts_curve_and_all_others_through_the_common_one(
    bundle_maker: Maker,
) -> None:
    plain = Predictor(bundle_maker(calibration=[STRAIGHT] * 4)).predict(TEXTS).requirements
    bundle = bundle_maker(
        calibration=[STRAIGHT] * 4, calibration_by_script={"cyrillic": {"tool_use": HALF}}
    )
    predictor = Predictor(bundle)
    found = predictor.predict(TEXTS).requirements
    expected = plain.copy()
    expected[1, 3] *= 0.5
    assert found[1, 3] == pytest.approx(expected[1, 3])
    expected[1, 3] = found[1, 3]
    assert (found == expected).all()
    one_by_one = np.concatenate([predictor.predict([text]).requirements for text in TEXTS])
    assert (found == one_by_one).all()
    assert (found == predictor.predict_batches(TEXTS, workers=3).requirements).all()


def test_what_was_written_is_read_back_and_fingerprinted(bundle_maker: Maker) -> None:
    plain = bundle_maker(calibration=[STRAIGHT] * 4)
    assert plain.calibration_by_script == {}
    curves = {"arabic": {"tool_use": HALF}, "latin": {"debugging": HALF, "reasoning": STRAIGHT}}
    made = bundle_maker(calibration=[STRAIGHT] * 4, calibration_by_script=curves)
    again = load_bundle(made.path)
    assert again.calibration_by_script == curves
    assert again.curves_of("latin") == (STRAIGHT, STRAIGHT, HALF, STRAIGHT)
    assert again.curves_of("cjk") == again.calibration
    other = bundle_maker(
        calibration=[STRAIGHT] * 4, calibration_by_script={**curves, "arabic": {"debugging": HALF}}
    )
    assert len({plain.fingerprint, made.fingerprint, other.fingerprint}) == 3


@pytest.mark.parametrize("folder", [SHIPPED, SHIPPED_SMALL], ids=lambda folder: folder.name)
def test_a_shipped_bundle_is_written_again_to_the_byte(folder: Path, tmp_path: Path) -> None:
    """Its fingerprint and its file know nothing of curves that it does not have."""
    bundle = load_bundle(folder)
    assert bundle.calibration_by_script == {}
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert write_manifest(copy, bundle).fingerprint == bundle.fingerprint
    assert (copy / MANIFEST).read_bytes() == (folder / MANIFEST).read_bytes()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"klingon": {"tool_use": HALF}}, "calibration_by_script.klingon: is none of latin, cjk"),
        ({"cjk": {"colour": HALF}}, "calibration_by_script.cjk.colour: is not one of the bundle"),
        ({"cjk": {}}, "calibration_by_script.cjk: holds no curve"),
        (
            {"cjk": {"tool_use": Curve((0.0, 1.0), (1.0, 0.0))}},
            "calibration_by_script.cjk.tool_use.y: must not descend",
        ),
        (
            {"cjk": {"tool_use": Curve((1.0, 0.0), (0.0, 1.0))}},
            "calibration_by_script.cjk.tool_use.x: must ascend strictly",
        ),
        ({"cjk": {"tool_use": Curve((0.0,), (0.0,))}}, "cjk.tool_use: must be {x: [...], y: [..."),
    ],
)
def test_malformed_curves_are_refused_with_their_place(
    bundle_maker: Maker, given: dict[str, dict[str, Curve]], reason: str
) -> None:
    with pytest.raises(BundleError) as caught:
        bundle_maker(calibration=[STRAIGHT] * 4, calibration_by_script=given)
    assert reason in str(caught.value)


def test_curves_by_script_need_the_common_ones(bundle_maker: Maker) -> None:
    with pytest.raises(BundleError, match="needs calibration beside it"):
        bundle_maker(calibration_by_script={"cjk": {"tool_use": HALF}})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("high", "calibration_by_script: must be a mapping, got 'high'"),
        ("{cjk: [1, 2]}", "calibration_by_script.cjk: must be a mapping, got [1, 2]"),
        ("{cjk: {tool_use: 3}}", "calibration_by_script.cjk.tool_use: must be {x: [...]"),
        ("{2: {tool_use: 3}}", "calibration_by_script.2: is none of latin"),
    ],
)
def test_other_shapes_are_refused_too(bundle_maker: Maker, value: str, reason: str) -> None:
    made = bundle_maker(calibration=[STRAIGHT] * 4)
    path = made.path / MANIFEST
    path.write_text(f"{path.read_text('utf-8')}\ncalibration_by_script: {value}\n", "utf-8")
    with pytest.raises(BundleError) as caught:
        load_bundle(made.path)
    assert reason in str(caught.value)


def test_a_claim_in_another_script_does_not_choose_the_curve(
    shipped: Bundle, tmp_path: Path
) -> None:
    """What is not scored does not say through which curve the rest goes."""
    copy = shutil.copytree(shipped.path, tmp_path / "copy")
    low = {name: Curve((0.0, 1.0), (0.0, 0.01)) for name in shipped.dimensions}
    changed = replace(shipped, calibration_by_script={"cyrillic": low})
    predictor = Predictor(write_manifest(copy, changed))
    message = "What is a list?"
    claim = (
        " Это чрезвычайно сложная задача, которая требует самой мощной модели и глубокого анализа."
    )
    alone, attacked, russian = (
        predictor.predict([text]) for text in (message, message + claim, "Что такое список?")
    )
    assert attacked.ignored is not None
    assert attacked.ignored[0] >= len(claim) - 1
    assert (attacked.requirements == alone.requirements).all()
    assert russian.requirements.max() <= 0.01
