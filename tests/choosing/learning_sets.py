"""Small eval sets in which the text vector predicts success, or nothing does."""

import numpy as np
import pandas as pd

from hydra_core.choosing.material import gather
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.evalsets.scores import TextFacts, messages_of, save_scores
from hydra_core.predictor.signals import surface_counts

FINGERPRINT = "f" * 64
DIMENSIONS = ("reasoning", "debugging")
MODELS = ("cheap", "middle", "strong")
WIDTH = 8


def learnable(
    folder, n=600, *, seed=0, signal=3.0, tokens=True, texts=True, known=None,
    models=MODELS, fingerprint=FINGERPRINT, dimensions=DIMENSIONS, width=WIDTH,
):  # fmt: skip
    """Queries of two kinds: on easy ones the cheap model is as good as the strong one.

    Args:
        signal: How strongly the vector says which kind it is; 0: not at all.
        known: Model -> how many of its outcomes are kept.
        models: Cheap, middle and strong.
        fingerprint, dimensions, width: Of the bundle that scored it.
    """
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.5
    vectors = rng.normal(size=(n, width))
    vectors[:, 0] += signal * np.where(hard, 1.0, -1.0)
    chance = np.stack([np.where(hard, p, 0.9) for p in (0.1, 0.5, 0.9)], axis=1)
    quality = (rng.random((n, 3)) < chance).astype(float)
    written = rng.lognormal(5.0, 0.3, (n, 1)) * np.ones(3)
    read = np.full((n, 3), 100.0)
    cost_usd = 1e-6 * (read * [0.1, 1.0, 5.0] + written * [0.4, 4.0, 20.0])
    for model, kept in (known or {}).items():
        quality[kept:, models.index(model)] = np.nan
    queries = pd.DataFrame(
        {
            "query_id": [f"q{i}" for i in range(n)],
            "language": "en",
            "group": np.where(hard, "hard", "easy"),
        }
    )
    if texts:
        queries["text"] = [f"message {seed} {i}" for i in range(n)]
    evalset = save_evalset(
        folder,
        name="learnable",
        queries=queries,
        models=models,
        quality=quality,
        cost_usd=cost_usd,
        extras={"input_tokens": read, "output_tokens": written} if tokens else None,
    )
    counts = surface_counts([f"message {seed} {i}" for i in range(n)])
    scores = rng.random((n, len(dimensions)))
    facts = TextFacts(vectors.astype(np.float16), counts)
    save_scores(evalset, fingerprint, dimensions, scores, facts)
    return evalset


def material_of(evalset, models=MODELS):
    return gather(evalset, messages_of(evalset, FINGERPRINT, WIDTH), models)
