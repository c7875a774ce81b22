"""Language groups stand beside English, which has no difference to itself."""

import numpy as np
import pytest

from hydra_core.console import cache
from hydra_core.console.compare.view import group_table
from hydra_core.replay.evaluation import evaluate


def test_every_group_but_english_has_its_difference_to_english(tmp_path, monkeypatch):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path))
    entry = next(one for one in cache.evalsets() if one.key == "console_demo")
    catalog = next(one.catalog for one in cache.catalogs() if one.key == "paper_five")
    evaluation = evaluate(cache.sweep(entry, catalog, catalog.policy.weights), 0.24, "")
    frame = group_table(evaluation).set_index("group")
    others = frame.drop(index="english")
    assert len(others) < len(frame)
    assert np.isfinite(others[["qr_english", "qr_english_lo", "qr_english_hi"]]).all(axis=None)
    first = evaluation.spreads[0]
    assert frame.loc[first.group, "qr_english"] == pytest.approx(100 * first.qr.value)
