"""Fixtures: the tiny bundle, and the shipped one where it is there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hydra_core.predictor.bundle import SHIPPED, Bundle, Curve, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from tests.predictor.tiny_bundle import make_bundle


@pytest.fixture
def bundle_maker(tmp_path: Path) -> Callable[..., Bundle]:
    """Makes the tiny bundle in a folder of the test, with changes to its manifest."""
    return lambda **changes: make_bundle(tmp_path / "bundle", **changes)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """One tiny bundle for all tests that only read it."""
    bent = Curve((0.0, 0.5, 1.0), (0.0, 0.3, 0.9))
    calibration = (Curve((0.0, 1.0), (0.0, 1.0)), bent, bent, bent)
    return make_bundle(tmp_path_factory.mktemp("tiny") / "bundle", calibration=calibration)


@pytest.fixture(scope="session")
def tiny_predictor(tiny: Bundle) -> Predictor:
    return Predictor(tiny)


@pytest.fixture(scope="session")
def shipped() -> Bundle:
    """The bundle that comes with the console."""
    if not (SHIPPED / "bundle.yaml").exists():
        pytest.skip("there is no shipped bundle yet")
    return load_bundle()


@pytest.fixture(scope="session")
def shipped_predictor(shipped: Bundle) -> Predictor:
    return Predictor(shipped)
