"""Small eval sets, made for the tests."""

from pathlib import Path

import numpy as np
import pandas as pd

from hydra_core.evalsets.evalset import EvalSet, save_evalset

MODELS = ("cheap", "strong")
QUALITY = np.array([[1.0, 1.0], [0.0, 1.0], [0.5, np.nan]])
COST_USD = np.array([[0.01, 0.2], [0.02, 0.3], [np.nan, np.nan]])


def queries() -> pd.DataFrame:
    """Three queries, one with a line break, one not in English."""
    return pd.DataFrame(
        {
            "query_id": ["a", "b", "c"],
            "text": ["Fix the bug", "Write\na poem", "Пример"],
            "language": ["en", "en", "ru"],
            "turn": [1, 2, 1],
        }
    )


def saved(folder: Path, **changes: object) -> EvalSet:
    """A saved eval set of three queries and two models."""
    content = {
        "name": "small",
        "queries": queries(),
        "models": MODELS,
        "quality": QUALITY,
        "cost_usd": COST_USD,
    }
    return save_evalset(folder, **{**content, **changes})
