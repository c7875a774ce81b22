"""A release routes exactly as the console showed before it was written."""

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.catalog import parse_catalog
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.export.release import Provenance, release_text
from hydra_core.replay.compare import replay_policy
from hydra_core.replay.sweep import sweep_catalog

ROOT = Path(__file__).resolve().parents[2]
N = 10_000


@pytest.fixture(scope="module")
def evalset(tmp_path_factory):
    catalog = parse_catalog((ROOT / "catalog" / "paper_five.yaml").read_text(encoding="utf-8"))
    models = tuple(model.id for model in catalog.models)
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("sets") / "many"
    save_evalset(
        folder,
        name="many",
        queries=pd.DataFrame(
            {"query_id": [f"q{i}" for i in range(N)], "text": "simulated", "language": "en"}
        ),
        models=models,
        quality=rng.integers(0, 2, (N, len(models))).astype(float),
        cost_usd=rng.random((N, len(models))),
        synthetic=True,
    )
    return load_evalset(folder)


@pytest.mark.parametrize("name", ["paper_five", "paper_five_published", "paper_eight"])
def test_ten_thousand_queries_go_to_the_same_models(name, evalset):
    text = (ROOT / "catalog" / f"{name}.yaml").read_text(encoding="utf-8")
    shown = parse_catalog(text)
    origin = Provenance(3, "Ana", "why", datetime(2026, 1, 1, tzinfo=UTC))
    released = parse_catalog(release_text(text, origin))
    rng = np.random.default_rng(1)
    lo, hi = np.array([[band.lo, band.hi] for band in shown.bands]).T
    scores = lo + rng.random((N, len(lo))) * (hi - lo)
    before, after = (
        replay_policy(one, sweep_catalog(evalset, one, scores, today=date(2026, 1, 1)))
        for one in (shown, released)
    )
    assert len(before.choice) == N
    assert np.unique(before.choice).size > 1
    assert (before.run.models == after.run.models).all()
