"""Eval sets joined to one: queries and outcomes of all, the first named where two have the same."""

import numpy as np
import pandas as pd
import pytest

from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset, save_evalset


def saved(folder, ids, models, quality, texts=None, **extras):
    queries = pd.DataFrame(
        {"query_id": ids, "language": "en", "text": texts or [f"text of {one}" for one in ids]}
    )
    quality = np.array(quality, dtype=float)
    cost = np.where(np.isfinite(quality), 0.01, np.nan)
    more = {name: np.array(values, dtype=float) for name, values in extras.items()}
    return save_evalset(
        folder, name=folder.name, queries=queries, models=models, quality=quality, cost_usd=cost,
        extras=more,
    )  # fmt: skip


def test_a_log_is_joined_to_what_was_collected(tmp_path, capsys):
    nan = np.nan
    saved(tmp_path / "collected", ["a", "b"], ("x", "y"), [[1, 0], [0, 1]])
    saved(
        tmp_path / "log", ["b", "c"], ("y", "z"), [[0, nan], [nan, 1]],
        propensity=[[0.9, 0.1], [0.2, 0.8]],
    )  # fmt: skip
    words = [str(tmp_path / name) for name in ("collected", "log")]
    assert main(["import", "sets", *words, "--out", str(tmp_path / "both")]) == 0
    assert "1 outcome is in several sets; the first named counts" in capsys.readouterr().out
    both = load_evalset(tmp_path / "both")
    assert (both.query_ids, both.models) == (("a", "b", "c"), ("x", "y", "z"))
    wanted = [[1, 0, nan], [0, 1, nan], [nan, nan, 1]]
    np.testing.assert_array_equal(both.quality, wanted)
    np.testing.assert_array_equal(both.extras["propensity"][2], [nan, 0.2, 0.8])


@pytest.mark.parametrize(
    ("texts", "said"),
    [(["other", "text of c"], "1 id(s) stand for different texts: 'b'"), (None, "name two or")],
)
def test_what_cannot_be_joined_is_refused(tmp_path, capsys, texts, said):
    saved(tmp_path / "one", ["a", "b"], ("x",), [[1], [0]])
    words = [str(tmp_path / "one")]
    if texts:
        saved(tmp_path / "two", ["b", "c"], ("x",), [[1], [0]], texts)
        words.append(str(tmp_path / "two"))
    assert main(["import", "sets", *words, "--out", str(tmp_path / "both")]) == 2
    assert said in capsys.readouterr().err
