"""A first catalog from an eval set: profiles, bands and cost order from the operator's own data.

Capabilities come from Algorithm 1 with every query of a training half as a benchmark that
exercises each dimension as far as its requirement says. Added up over the queries, that is one
benchmark a dimension whose rate is the requirement-weighted mean quality, and so it is written.
Prices are given, never guessed. What the data do not say is written as a stated assumption.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.errors import CatalogError, EvalSetError, Problem
from hydra_core.base.list_price import FREE, ListPrice
from hydra_core.base.spelling import counted, usd
from hydra_core.base.types import Band, Catalog, FloatArray, Pool, Selection
from hydra_core.catalog.editing.document import CatalogDocument, Value, flow
from hydra_core.catalog.prices.lists import LIST_ENDINGS, read_prices
from hydra_core.catalog.prices.price_file import (
    GivenPrice,
    near_entries,
    parse_listed,
    parse_price_file,
)
from hydra_core.catalog.prices.price_table import typed_price
from hydra_core.catalog.prices.quotes import ABOVE_ZERO, FREE_WORD, PriceQuote
from hydra_core.catalog.prices.recorded import cost_gaps, tier_notes
from hydra_core.catalog.prices.suggestions import tiers_value
from hydra_core.catalog.schema import SCHEMA, parse_catalog
from hydra_core.evalsets.evalset import EvalSet, sample_of
from hydra_core.evalsets.folders import folder_name
from hydra_core.predictor.score_bands import score_bands
from hydra_core.replay.fixed_mix import UnderHull, under_hull
from hydra_core.replay.gated import ungated
from hydra_core.replay.operating_point import knee
from hydra_core.replay.pricing import costs_at
from hydra_core.replay.replay import ReplayData, align, align_catalog, data_frontier, folds

#: The columns of the table that hold USD per million tokens, and what a problem calls them.
PRICE_COLUMNS = {"input": "input price", "output": "output price", "cached": "cached input price"}


@dataclass(frozen=True, slots=True)
class EnteredPrices:
    """What the table of prices says.

    Attributes:
        models: The models that are to be in the catalog.
        prices: Model and price of those that have one.
        missing: Models that are to be in it and have no price.
        problems: Prices that cannot be.
    """

    models: tuple[str, ...]
    prices: tuple[tuple[str, GivenPrice], ...]
    missing: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def complete(self) -> bool:
        return bool(self.models) and not self.missing and not self.problems


def recorded_prices(prices: Mapping[str, ListPrice]) -> dict[str, GivenPrice]:
    """What an eval set recorded, as prices of a new catalog."""
    note = "price at recording, from the eval set"
    return {model: GivenPrice(price, None, note) for model, price in prices.items()}


def prices_of_text(
    text: str,
    name: str,
    models: Sequence[str],
    today: date,
    entries: Mapping[str, str] | None = None,
) -> dict[str, GivenPrice]:
    """Prices of these models from a price file (YAML), or a price list (JSON, TOML, CSV, TSV).

    Args:
        entries: Model -> id of the list's entry that is its price.

    Raises:
        CatalogError: It cannot be read; all problems are listed.
    """
    if name.lower().endswith(LIST_ENDINGS):
        return parse_listed(text, name, models, as_of=today, entries=entries)
    given = parse_price_file(text, name)
    return {model: given[model] for model in models if model in given}


def proposed_entries(
    text: str, name: str, models: Sequence[str], today: date
) -> dict[str, PriceQuote]:
    """Entries of a public list that may be the price of these models, which it does not name.

    Raises:
        CatalogError: It cannot be read.
    """
    if not models or not name.lower().endswith(LIST_ENDINGS):
        return {}
    return near_entries(models, read_prices(text, name, as_of=today).quotes)


def price_table(models: Sequence[str], given: Mapping[str, GivenPrice]) -> pd.DataFrame:
    """One row a model: whether it is used, its prices where known, and where they come from."""
    known = [given.get(model) for model in models]
    prices = [one.price if one else ListPrice(math.nan, math.nan) for one in known]
    return pd.DataFrame(
        {
            "use": [True] * len(models),
            "model": list(models),
            "input": [price.input_usd_per_mtok for price in prices],
            "output": [price.output_usd_per_mtok for price in prices],
            "cached": pd.Series([p.cached_input_usd_per_mtok for p in prices], dtype="float64"),
            "source": [(one.note or "price file") if one else "" for one in known],
        }
    )


def entered_prices(
    table: pd.DataFrame, given: Mapping[str, GivenPrice], free: dict[str, PriceQuote] | None = None
) -> EnteredPrices:
    """The prices of an edited `price_table`; nothing is guessed.

    Args:
        given: What it was filled with; a price that was not changed keeps its date and note.
        free: What a list says of models that it has at a price of 0.
    """
    used = table[table["use"].astype(bool)].astype(object)
    prices, missing, problems = [], [], []
    for row in used.fillna("").to_dict("records"):
        model = str(row["model"])
        cells = {name: str(row[name]).strip() for name in PRICE_COLUMNS}
        read = {name: typed_price(cell) for name, cell in cells.items()}
        free_cells = cells["input"].lower() == cells["output"].lower() == FREE_WORD
        wrong = [
            name
            for name, price in read.items()
            if cells[name] and (price is None or price <= 0) and not (free_cells and price == 0)
        ]
        problems += [
            Problem(model, f"{PRICE_COLUMNS[name]} is {cells[name]}", ABOVE_ZERO) for name in wrong
        ]
        per_input, per_output, per_cached = (
            None if price is None else float(price) for price in read.values()
        )
        if not (cells["input"] and cells["output"]):
            missing.append(model)
        elif per_input is not None and per_output is not None and not wrong:
            price = ListPrice(per_input, per_output, per_cached)
            before = given.get(model)
            same = before is not None and replace(before.price, long_prompts=()) == price
            kept = before if same else None
            listed = before.listed if before is not None else (free or {}).get(model)
            own = GivenPrice(price, None, "given by the operator", listed)
            prices.append((model, kept or own))
    models = tuple(map(str, used["model"]))
    return EnteredPrices(models, tuple(prices), tuple(missing), tuple(problems))


def covered(models: Collection[str], catalogs: Sequence[Catalog | None]) -> bool:
    """Whether some catalog knows every one of these models."""
    return any(
        set(models) <= {model.id for model in catalog.models} for catalog in catalogs if catalog
    )


def free_key(name: str, taken: Collection[str]) -> str:
    """What a catalog of this name is called in the store: plain, and not taken yet."""
    base, number = folder_name(name), 1
    key = base
    while key in taken:
        number += 1
        key = f"{base}_{number}"
    return key


def named(text: str, name: str) -> str:
    """A catalog's text under another name; CatalogError where it cannot be one."""
    document = CatalogDocument.parse(text)
    document.set("name", name)
    return document.text()


#: Input tokens per output token in a first catalog.
PRICE_RATIO: Final = 3.0
#: What a context window is taken for where nobody says; the catalog marks it as assumed.
ASSUMED_WINDOW: Final = 128_000


class CatalogText:
    """Writes a first catalog's text from the training half of an eval set, and what it assumes."""

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
        ids = half.pool.ids
        known = {m: costs[m] for m in ids if np.isfinite(costs.get(m, np.nan))}
        self._costs = known if len(known) == len(ids) else {}
        facts = {
            "context_window": f"Assumed: context window {ASSUMED_WINDOW:,} tokens",
            "vision": "Assumed: no vision",
            "tools": "Assumed: supports tools",
            "provider": "Provider: not in the data",
        }
        self.assumptions = []
        for name, what in facts.items():
            lacking = [m for m in ids if self._stated(m, name) is None]
            whose = "" if len(lacking) == len(ids) else f" for {', '.join(lacking)}"
            self.assumptions += [f"{what}{whose}."] if lacking else []
        undated = [m for m in ids if prices[m].day is None]
        if undated:
            self.assumptions.append(f"Price date today: none was given for {', '.join(undated)}.")
        if not self._costs:
            self.assumptions.append("Cost order by list price: the set lacks realised costs.")

    def text(
        self, name: str, predictor: str, fingerprint: str, bands: Sequence[Band], *, tau: float
    ) -> str:
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
        weights = self._half.requirements / self._half.requirements.sum(axis=0).clip(1e-12)
        rates = self._half.quality.T @ weights  # (m, K) requirement-weighted mean quality
        for model, row in zip(self._half.pool.ids, rates, strict=True):
            lines += self._model(model, row)
        return "\n".join(lines) + "\n"

    def _model(self, model: str, rates: FloatArray) -> list[str]:
        given = self._prices[model]
        leaves = given.listed.retired_on if given.listed is not None else None
        retiring = leaves is not None and leaves > self._today
        pairs = zip(self._dimensions, rates.tolist(), strict=True)
        scores = {f"queries_by_{name}": round(rate, 4) for name, rate in pairs}
        lines = [
            f"  - id: {flow(model)}",
            f"    provider: {flow(self._stated(model, 'provider') or 'not stated')}",
            f"    status: {'retiring' if retiring else 'active'}",
            *([f"    retire_on: {flow(leaves)}"] if retiring else []),
            f"    input_usd_per_mtok: {flow(given.price.input_usd_per_mtok)}",
            f"    output_usd_per_mtok: {flow(given.price.output_usd_per_mtok)}",
        ]
        if given.price.cached_input_usd_per_mtok is not None:
            cached = flow(given.price.cached_input_usd_per_mtok)
            lines.append(f"    cached_input_usd_per_mtok: {cached}")
        if given.price.long_prompts:
            lines.append(f"    long_prompts: {flow(tiers_value(given.price.long_prompts))}")
        seconds = self._seconds(model)
        if seconds is not None:
            lines.append(f"    latency_s: {flow(seconds)}")
        source = given.note or "given by the operator"
        if given.price == FREE and FREE_WORD not in source:
            source = f"{FREE_WORD}: {source}"
        return [
            *lines,
            self._fact(model, "context_window", ASSUMED_WINDOW),
            self._fact(model, "vision", False),
            self._fact(model, "tools", True),
            f"    scores: {flow(scores)}",
            "    capabilities: derived",
            f"    price_source: {flow(source)}",
            f"    price_date: {flow(given.day or self._today)}",
        ]

    def _seconds(self, model: str) -> float | None:
        """Mean seconds of a model's answers in the set, None where it has no times."""
        times = self._set.extras.get("latency_s")
        if times is None or model not in self._set.models:
            return None
        mine = times[:, self._set.models.index(model)]
        known = mine[np.isfinite(mine) & (mine > 0)]
        return float(f"{known.mean():.3g}") if known.size else None

    def _stated(self, model: str, name: str) -> Value | None:
        """What the price list says of a model, None where it says nothing."""
        stated: Value | None = getattr(self._prices[model].listed, name, None)
        return None if stated == "" else stated

    def _fact(self, model: str, name: str, assumed: Value) -> str:
        stated = self._stated(model, name)
        if stated is None:
            return f"    {name}: {flow(assumed)}  # assumed"
        return f"    {name}: {flow(stated)}"


@dataclass(frozen=True, slots=True)
class InitialCatalog:
    """A catalog made from an eval set, not yet on disk.

    Attributes:
        text: Its YAML; valid.
        assumptions: What was assumed, one sentence each.
        warnings: What to look at, one sentence each.
        under_hull: Models that a mixture of others beats beyond doubt at the same cost.
        left_out: Those of them that were left out.
        trained_on: Queries that profiles and tau come from.
    """

    text: str
    catalog: Catalog
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    under_hull: tuple[UnderHull, ...]
    left_out: tuple[str, ...]
    trained_on: int


def initial_catalog(
    evalset: EvalSet,
    requirements: FloatArray,
    prices: Mapping[str, GivenPrice],
    *,
    name: str,
    predictor: str,
    fingerprint: str,
    dimensions: Sequence[str],
    models: Sequence[str] = (),
    cut_to_hull: bool = False,
    today: date,
    seed: int = 0,
) -> InitialCatalog:
    """Make a catalog that fits an eval set.

    Args:
        requirements: (n, K) by the bundle that the catalog is bound to, NaN where not scored.
        prices: Model id -> list price; every model of the catalog needs one.
        predictor, fingerprint, dimensions: Of that bundle.
        models: Which of the set's models, default all with an outcome.
        cut_to_hull: Leave out models under the hull of the others.
        today: Date of prices that come without one.

    Raises:
        EvalSetError: An unknown model, too few queries, or no query complete.
        CatalogError: A model without a price; all of them are listed.
    """
    wanted = _chosen(evalset, models)
    _require_prices(wanted, prices, evalset)
    odd = price_warnings(evalset, {model: prices[model] for model in wanted}, today)
    own = {model: prices[model].price for model in wanted}
    evalset = replace(evalset, cost_usd=costs_at(evalset, own, PRICE_RATIO).usd)
    data = _aligned(evalset, requirements, wanted)
    train = folds(data, 2, np.random.default_rng(seed))[0].train
    below = under_hull(data.take(train)) if len(wanted) > 1 else ()
    left_out = tuple(one.model for one in below) if cut_to_hull else ()
    kept = [model for model in wanted if model not in left_out]
    if left_out:
        data = _aligned(evalset, requirements, kept)
    writer = CatalogText(evalset, data.take(train), prices, tuple(dimensions), today)
    bound = (name, predictor, fingerprint, score_bands(requirements))
    tau = _knee(writer.text(*bound, tau=0.0), evalset, requirements, data.rows[train], today)
    text = writer.text(*bound, tau=tau)
    catalog = parse_catalog(text, name)
    return InitialCatalog(
        text=text,
        catalog=catalog,
        assumptions=tuple(writer.assumptions),
        warnings=(*odd, *price_order_warnings(catalog)),
        under_hull=below,
        left_out=left_out,
        trained_on=train.size,
    )


def price_warnings(
    evalset: EvalSet, prices: Mapping[str, GivenPrice], today: date
) -> tuple[str, ...]:
    """What is odd about these prices: beside recorded costs, by length of query, by retirement."""
    listed = {m: one.listed for m, one in prices.items() if one.listed is not None}
    leaving = [f"{model}: {said}" for model, quote in listed.items() for said in quote.remarks]
    leaving += [
        f"{model} has the price of {quote.id} in {quote.source.value}; check that it is the same"
        for model, quote in listed.items()
        if quote.id != model
    ]
    for model, quote in listed.items():
        if quote.retired_on is not None:
            verb = "was retired" if quote.retired_on <= today else "will be retired"
            leaving.append(f"{model} {verb} on {quote.retired_on}, by {quote.source.value}")
        elif quote.deprecated:
            leaving.append(f"{model} is deprecated, by {quote.source.value}")
    gaps = cost_gaps(evalset, {model: one.price for model, one in prices.items()})
    return (*leaving, *map(str, gaps), *tier_notes(evalset, listed))


def price_order_warnings(catalog: Catalog) -> tuple[str, ...]:
    """Models whose list price and realised cost order them differently; one sentence a pair."""
    realised = catalog.realised_costs.usd_per_query if catalog.realised_costs else {}
    blended = {m.id: m.price.blended(catalog.policy.price_ratio) for m in catalog.models}
    by_cost = sorted((m for m in blended if m in realised), key=lambda m: realised[m])
    return tuple(
        f"{dearer} costs more by list price ({usd(blended[dearer])} against "
        f"{usd(blended[cheaper])} per Mtok, blended) but costs less per query here "
        f"({usd(realised[dearer])} against {usd(realised[cheaper])}): the order is by realised cost"
        for dearer, cheaper in zip(by_cost, by_cost[1:], strict=False)
        if blended[dearer] > blended[cheaper] and realised[dearer] < realised[cheaper]
    )


def _chosen(evalset: EvalSet, models: Sequence[str]) -> tuple[str, ...]:
    known = tuple(m for m in evalset.models if evalset.missing_quality[m] < evalset.n)
    problems = [
        Problem(model, "has no outcomes in this eval set", f"its models: {', '.join(known)}")
        for model in models
        if model not in known
    ]
    if len(set(models)) < len(models):
        problems.append(Problem("models", "one is named twice", "name each once"))
    EvalSetError.raise_any(evalset.name, problems)
    return tuple(models) or known


def _require_prices(
    models: Sequence[str], prices: Mapping[str, GivenPrice], evalset: EvalSet
) -> None:
    remedy = (
        "give it in USD per Mtok: --price {0}=INPUT,OUTPUT, or "
        "'{0}: {{input: ..., output: ...}}' in the file of --prices"
    )
    missing = [Problem(m, "has no price", remedy.format(m)) for m in models if m not in prices]
    CatalogError.raise_any(f"prices for {evalset.name}", missing)


def _aligned(evalset: EvalSet, requirements: FloatArray, models: Sequence[str]) -> ReplayData:
    """Queries with an outcome and a score; costs may be missing, the prices order the pool then."""
    k, m = requirements.shape[1], len(models)
    pool = Pool(tuple(models), np.zeros((m, k)), np.arange(m, dtype=np.float64), np.ones(k))
    data = align(_costed(evalset), requirements, pool)
    n, problem = len(data.query_ids), ("all queries depend on each other", "import other queries")
    if n < 4:
        remedy = "import more, or leave out the models that lack outcomes"
        problem = f"only {counted(n, 'query')} with outcomes of every model", remedy
    if n < 4 or data.independent < 2:
        raise EvalSetError(evalset.name, [Problem("", *problem)])
    return data


def _costed(evalset: EvalSet) -> EvalSet:
    """The set itself; one without any cost with zeros, so that it can be replayed by quality."""
    if np.isfinite(evalset.cost_usd).any():
        return evalset
    return replace(evalset, cost_usd=np.zeros_like(evalset.cost_usd))


def _knee(
    text: str, evalset: EvalSet, requirements: FloatArray, rows: np.ndarray, today: date
) -> float:
    """The knee's tau on some rows of the set, whatever hard gates facts that are assumed make."""
    data = align_catalog(ungated(_costed(evalset)), parse_catalog(text), requirements, today=today)
    curve = data_frontier(data.take(np.flatnonzero(np.isin(data.rows, rows))))
    return curve.tidy(knee(curve).knob)
