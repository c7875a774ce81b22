"""The text of a first catalog: what the data say, and what had to be assumed, marked as such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

import numpy as np

from hydra_core.catalog.editing.render import Value, flow
from hydra_core.catalog.prices.price_file import GivenPrice
from hydra_core.catalog.schema import SCHEMA
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.evalset.sameness import sample_of
from hydra_core.evaluation.replay.replay import ReplayData
from hydra_core.types import Band, FloatArray, Selection

__all__ = ["PRICE_RATIO", "CatalogText"]

#: Input tokens per output token in a first catalog.
PRICE_RATIO: Final = 3.0
#: What a context window is taken for where nobody says; the catalog marks it as assumed.
ASSUMED_WINDOW: Final = 128_000


class CatalogText:
    """Writes a first catalog's text from the training half of an eval set.

    Attributes:
        assumptions: What was assumed, one sentence each.
    """

    def __init__(
        self,
        evalset: EvalSet,
        half: ReplayData,
        prices: Mapping[str, GivenPrice],
        dimensions: tuple[str, ...],
        today: date,
    ) -> None:
        self._set, self._half, self._prices = evalset, half, prices
        self._dimensions, self._today = dimensions, today
        costs = evalset.mean_cost()
        known = {m: costs[m] for m in half.pool.ids if np.isfinite(costs.get(m, np.nan))}
        self._costs = known if len(known) == len(half.pool.ids) else {}
        undated = [m for m in half.pool.ids if prices[m].day is None]
        self.assumptions = [
            f"Context window {ASSUMED_WINDOW:,} tokens, no vision, tools: the data do not say.",
            "Provider: the data do not say.",
        ]
        if undated:
            self.assumptions.append(f"Price date today: none was given for {', '.join(undated)}.")
        if not self._costs:
            self.assumptions.append("Cost order by list price: the set lacks realised costs.")

    def text(
        self, name: str, predictor: str, fingerprint: str, bands: Sequence[Band], *, tau: float
    ) -> str:
        """The YAML."""
        queries = f"{len(self._half.query_ids):,} of {self._set.n:,} queries"
        head: dict[str, Value] = {
            "schema": SCHEMA,
            "name": name,
            "notes": f"Made from eval set {self._set.name}: profiles and tau from {queries}.",
            "dimensions": list(self._dimensions),
            "predictor": {"name": predictor, "fingerprint": fingerprint},
        }
        lines = [f"{key}: {flow(value)}" for key, value in head.items()]
        lines += ["bands:  # 5th to 95th percentile of the set's own requirements"]
        for dimension, band in zip(self._dimensions, bands, strict=True):
            lines.append(f"  {dimension}: {flow([band.lo, band.hi])}")
        basis = "realised" if self._costs else "list_price"
        lines += [
            "policy:",
            f"  tau: {flow(tau)}  # the knee on the same queries; tune it",
            f"  weights: {flow(dict.fromkeys(self._dimensions, 1))}",
            f"  cost_basis: {basis}",
            f"  price_ratio: {PRICE_RATIO:g}",
        ]
        own: Value = {
            "evalset": self._set.name,
            "how": Selection.LOOKED.value,
            "knob_alone": False,
            "sample": " ".join(sample_of(self._set.query_marks)),
        }
        lines += ["  chosen_on:", f"    {self._set.queries_digest}: {flow(own)}"]
        if self._costs:
            lines += ["realised_costs:", f"  evalset: {flow(self._set.name)}"]
            lines += [f"  digest: {flow(self._set.digest)}", "  usd_per_query:"]
            lines += [f"    {m}: {flow(float(f'{c:.6g}'))}" for m, c in self._costs.items()]
        lines += ["evidence:", "  benchmarks:"]
        for dimension in self._dimensions:
            lines += [f"    - id: queries_by_{dimension}", "      importance: 1"]
            lines += [f"      weights: {flow({dimension: 1})}"]
        lines.append("models:")
        rates = self._rates()
        for row, model in enumerate(self._half.pool.ids):
            lines += self._model(model, rates[row])
        return "\n".join(lines) + "\n"

    def _rates(self) -> FloatArray:
        """(m, K) requirement-weighted mean quality."""
        weights = self._half.requirements / self._half.requirements.sum(axis=0).clip(1e-12)
        return np.asarray(self._half.quality.T @ weights, dtype=np.float64)

    def _model(self, model: str, rates: FloatArray) -> list[str]:
        given = self._prices[model]
        pairs = zip(self._dimensions, rates.tolist(), strict=True)
        scores = {f"queries_by_{name}": round(rate, 4) for name, rate in pairs}
        lines = [
            f"  - id: {flow(model)}",
            "    provider: not stated",
            "    status: active",
            f"    input_usd_per_mtok: {flow(given.price.input_usd_per_mtok)}",
            f"    output_usd_per_mtok: {flow(given.price.output_usd_per_mtok)}",
        ]
        if given.price.cached_input_usd_per_mtok is not None:
            cached = flow(given.price.cached_input_usd_per_mtok)
            lines.append(f"    cached_input_usd_per_mtok: {cached}")
        return [
            *lines,
            f"    context_window: {ASSUMED_WINDOW}  # assumed",
            "    vision: false  # assumed",
            "    tools: true  # assumed",
            f"    scores: {flow(scores)}",
            "    capabilities: derived",
            f"    price_source: {flow(given.note or 'given by the operator')}",
            f"    price_date: {flow(given.day or self._today)}",
        ]
