"""The knob of Tune follows the hand: what is shown at a step is the evaluation at that setting."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from hydra_core.catalog.schema import load_catalog
from hydra_core.evaluation.evalset.evalset import load_evalset
from hydra_core.evaluation.evalset.scoring import load_scores
from hydra_core.evaluation.replay.evaluation import evaluate
from hydra_core.evaluation.replay.sweep import sweep_catalog
from hydra_core.shipped import CATALOGS, SAMPLES
from hydra_core.views.operating_point import tiles

pytestmark = pytest.mark.browser

LINK = "/tune?set=paper_swebench&catalog=paper_five_published&tau=0.24"
PLOT = ".st-key-tune-plot .js-plotly-plot"
KNOB = ".st-key-tune-knob"


@pytest.fixture(scope="module")
def sweep():
    catalog = load_catalog(CATALOGS / "paper_five_published.yaml")
    evalset = load_evalset(SAMPLES / "paper_swebench")
    scores = load_scores(evalset, catalog.predictor_fingerprint)
    return sweep_catalog(evalset, catalog, scores, today=datetime.now(UTC).date())
