"""How long each model is expected to take: of the catalog, then of what this process saw."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from hydra_core.base.types import Catalog

#: Weight of the newest answer in a mean.
_NEWEST: Final = 0.05
#: So many answers are better than what the catalog says.
_ENOUGH: Final = 5
#: Answers are told apart by so many output tokens.
_LENGTHS: Final = (100, 300, 1_000, 3_000)


class _Mean:
    """A decaying mean that begins as a plain one."""

    __slots__ = ("n", "value")

    def __init__(self) -> None:
        self.n, self.value = 0, 0.0

    def add(self, value: float) -> None:
        self.n += 1
        self.value += max(1.0 / self.n, _NEWEST) * (value - self.value)


class Expected:
    """Times by model and length of the answer. A lost update between threads does no harm."""

    def __init__(self) -> None:
        self._first: dict[str, _Mean] = {}
        self._tokens: dict[str, _Mean] = {}
        self._whole: dict[tuple[str, int], _Mean] = {}

    def began(self, model: str, seconds: float) -> None:
        """Count the time to the first piece of a stream."""
        self._first.setdefault(model, _Mean()).add(seconds)

    def answered(self, model: str, seconds: float, tokens: int) -> None:
        """Count the time of a whole answer of so many tokens."""
        self._tokens.setdefault(model, _Mean()).add(tokens)
        key = (model, bisect_right(_LENGTHS, tokens))
        self._whole.setdefault(key, _Mean()).add(seconds)

    def times(self, catalog: Catalog, most_tokens: int) -> dict[str, tuple[float, float]]:
        """Model -> seconds to the first piece, and to the end; NaN where nobody knows.

        Args:
            most_tokens: The longest answer that the request allows, 0 for no limit.
        """
        nan = float("nan")
        found = {}
        for spec in catalog.models:
            first, tokens = self._first.get(spec.id), self._tokens.get(spec.id)
            whole = None
            if tokens is not None:
                length = min(tokens.value, most_tokens) if most_tokens else tokens.value
                whole = self._whole.get((spec.id, bisect_right(_LENGTHS, length)))
            said = (spec.ttft_s, spec.latency_s)
            found[spec.id] = (
                first.value if first is not None and first.n >= _ENOUGH else said[0] or nan,
                whole.value if whole is not None and whole.n >= _ENOUGH else said[1] or nan,
            )
        return found
