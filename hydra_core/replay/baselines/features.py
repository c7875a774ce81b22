"""What a learned router may read: character n-grams of the text, and the requirement scores.

The shipped bundle gives requirements, no embeddings; TF-IDF of hashed character n-grams reduced by
a truncated SVD stands in for them in every language. Everything that is fitted is fitted on the
training part alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hydra_core.base.types import FloatArray, IntArray

_CHARS = 1_500
_BUCKETS = 1 << 15
_COMPONENTS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What is known of queries before they are answered.

    Attributes:
        text: (n, d) unit-length text features.
        requirements: (n, K) scores of the predictor bundle.
    """

    text: FloatArray
    requirements: FloatArray


def hashed_texts(texts: Sequence[str]) -> Any:  # noqa: ANN401 (a scipy sparse matrix)
    """(n, buckets) counts of character 2- to 4-grams; nothing is fitted.

    The head and the tail of a long text are read, 750 characters each.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    half = _CHARS // 2
    cut = [text if len(text) <= _CHARS else f"{text[:half]} {text[-half:]}" for text in texts]
    vectorizer = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=(2, 4),
        n_features=_BUCKETS,
        alternate_sign=False,
        norm=None,
    )
    return vectorizer.transform(cut)


class TextFeatures:
    """TF-IDF and SVD fitted on the training part's hashed texts."""

    def __init__(self, train: Any, *, seed: int, components: int = _COMPONENTS) -> None:  # noqa: ANN401
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        self._tfidf = TfidfTransformer(sublinear_tf=True)
        weighted = self._tfidf.fit_transform(train)
        rank = max(1, min(components, min(weighted.shape) - 1))
        with np.errstate(divide="ignore", invalid="ignore"):  # texts that are all alike
            self._svd = TruncatedSVD(rank, n_iter=3, random_state=seed).fit(weighted)

    def __call__(self, hashed: Any, rows: IntArray, requirements: FloatArray) -> Inputs:  # noqa: ANN401
        """The inputs of some rows."""
        values = self._svd.transform(self._tfidf.transform(hashed[rows]))
        length = np.linalg.norm(values, axis=1, keepdims=True)
        return Inputs(np.asarray(values / np.maximum(length, 1e-12)), requirements[rows])
