"""A small real catalog and a predictor whose scores a test can set."""

from dataclasses import dataclass, field
from datetime import date

import numpy as np
import pytest

from hydra_core.base.types import (
    DIMENSIONS,
    Band,
    Catalog,
    ModelSpec,
    ModelStatus,
    Policy,
    StickyMode,
    StickyPolicy,
)
from hydra_core.predictor.onnx_predictor import Prediction


def spec(name, price, capability, **changes):
    values = {
        "id": name,
        "provider": "p",
        "status": ModelStatus.ACTIVE,
        "input_usd_per_mtok": price,
        "output_usd_per_mtok": price,
        "context_window": 100_000,
        "vision": False,
        "tools": True,
        "scores": {},
        "overrides": dict.fromkeys(DIMENSIONS, capability),
        "price_source": "made up",
        "price_date": date(2026, 1, 1),
    }
    return ModelSpec(**(values | changes))


def make_catalog(*models, tau=0.1, mode=StickyMode.PER_SESSION, threshold=0.0):
    return Catalog(
        name="test",
        dimensions=DIMENSIONS,
        predictor="test",
        predictor_fingerprint="f",
        bands=(Band(0.0, 1.0),) * 4,
        policy=Policy(tau, (1.0,) * 4, sticky=StickyPolicy(mode, threshold, 60.0)),
        benchmarks=(),
        models=models or (spec("cheap", 1, 0.2), spec("mid", 3, 0.5), spec("strong", 9, 0.9)),
    )


@dataclass
class Scores:
    """A predictor that gives every message the same requirement on all dimensions."""

    level: float = 0.0
    asked: list[str] = field(default_factory=list)

    def predict(self, texts, turns=None, contexts=None):
        self.asked += texts
        n = len(texts)
        return Prediction(np.full((n, 4), self.level), np.full(n, 7), np.zeros(n, dtype=bool))


@pytest.fixture
def catalog():
    return make_catalog()
