"""Two policies on one eval set: who they are, their runs, and what the Compare page shows of them.

No streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from hydra_core.evaluation.compare import Comparison, PolicyRun, compare, constant_run, policy_run
from hydra_core.evaluation.evalset import EvalSet
from hydra_core.evaluation.metrics import oracle_choice
from hydra_core.evaluation.significance import (
    Interval,
    holm,
    mcnemar,
    mean_interval,
    ratio_interval,
)
from hydra_core.evaluation.verdict import matched_cost_mix
from hydra_core.predictor.languages import LANGUAGES, group_of
from hydra_core.routing.matcher import choose
from hydra_core.types import IntArray
from hydra_core.ui.bench import Bench
from hydra_core.ui.views import usd

__all__ = [
    "Kind",
    "Paired",
    "Side",
    "Totals",
    "grouping",
    "language_name",
    "mix_run",
    "oracle_run",
    "pair",
    "routed_run",
    "sentence",
    "side_run",
    "slice_names",
    "slices",
    "totals",
]

#: Below this many queries a language is flagged: its interval says little.
_SMALL = 30


class Kind(StrEnum):
    """What sort of policy stands on one side."""

    ROUTER = "router"
    ALWAYS = "always"
    ORACLE = "oracle"
    MIX = "mix"


@dataclass(frozen=True, slots=True)
class Side:
    """A policy that can stand on either side; the id is what a link carries.

    Attributes:
        catalog: Key of the catalog a router takes its pool from; '' for the page's own.
        tau: Of a router; None for all others.
        weights: (K,) stored weights of a router.
        model: Of a constant.
    """

    id: str
    label: str
    kind: Kind
    catalog: str = ""
    tau: float | None = None
    weights: tuple[float, ...] = ()
    model: str = ""

    @property
    def name(self) -> str:
        """The label with its tau."""
        return self.label if self.tau is None else f"{self.label}, τ {self.tau:.4g}"


@dataclass(frozen=True, slots=True)
class Totals:
    """One policy on the common queries: means with 95 % intervals; QR is a fraction."""

    quality: Interval
    mean_cost_usd: Interval
    qr: Interval


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """Both runs, lined up by query, and their comparison.

    Attributes:
        at_a, at_b: (n,) where each common query stands in a and in b.
        clusters: (n,) cluster numbers of the common queries, None when all are independent.
        models: Of either run, from cheapest to dearest by mean cost.
    """

    a: PolicyRun
    b: PolicyRun
    at_a: IntArray
    at_b: IntArray
    clusters: IntArray | None
    found: Comparison
    models: tuple[str, ...]


def routed_run(name: str, bench: Bench, tau: float) -> PolicyRun:
    """A router at one tau."""
    return policy_run(name, bench.data, choose(bench.shortfalls, bench.data.pool.cost, tau))


def oracle_run(bench: Bench) -> PolicyRun:
    """The cheapest model that resolves each query, in hindsight."""
    return policy_run("oracle", bench.data, oracle_choice(bench.data))


def mix_run(bench: Bench, mean_cost_usd: float, seed: int = 0) -> PolicyRun:
    """Constants mixed at random to spend this much: which query goes where is drawn once."""
    mix = matched_cost_mix(bench.hull, mean_cost_usd)
    drawn = np.random.default_rng(seed).random(len(bench.data.rows)) < mix.strong_share
    choice = np.where(drawn, mix.strong.index, mix.cheap.index)
    return policy_run(f"random mixture ({mix})", bench.data, choice)


def side_run(side: Side, bench: Bench, other_cost_usd: float | None) -> PolicyRun:
    """The run of any side but a mixture's without the other's cost, which is drawn half-way."""
    if side.kind is Kind.ROUTER:
        return routed_run(side.name, bench, side.tau or 0.0)
    if side.kind is Kind.ALWAYS:
        return constant_run(bench.data, side.model)
    if side.kind is Kind.ORACLE:
        return oracle_run(bench)
    costs = [one.mean_cost_usd for one in bench.hull]
    return mix_run(bench, (costs[0] + costs[-1]) / 2 if other_cost_usd is None else other_cost_usd)


def pair(a: PolicyRun, b: PolicyRun, bench: Bench) -> Paired:
    """Compare b with a on the queries both have.

    Raises:
        ValueError: They have none in common.
    """
    whole = _clusters(bench)
    found = compare(a, b, None if whole is None else whole.tolist())
    _, at_a, at_b = np.intersect1d(a.rows, b.rows, assume_unique=True, return_indices=True)
    return Paired(
        a=a,
        b=b,
        at_a=at_a,
        at_b=at_b,
        clusters=None if whole is None else whole[found.rows],
        found=found,
        models=_models(a, b, bench),
    )


def _clusters(bench: Bench) -> IntArray | None:
    """Cluster of every eval set row; rows outside the replay are their own."""
    data = bench.data
    if data.clusters is None:
        return None
    whole = np.arange(bench.evalset.n) + int(data.clusters.max()) + 1
    whole[data.rows] = data.clusters
    return whole


def _models(a: PolicyRun, b: PolicyRun, bench: Bench) -> tuple[str, ...]:
    used = {*np.unique(a.models).tolist(), *np.unique(b.models).tolist()}
    evalset = bench.evalset
    cost = dict(zip(evalset.models, np.nanmean(evalset.cost_usd, axis=0), strict=True))
    return tuple(sorted(used, key=lambda model: (cost.get(model, np.inf), model)))


def totals(run: PolicyRun, at: IntArray, clusters: IntArray | None) -> Totals:
    """One side's figures on the common queries."""
    quality, cost = run.quality[at], run.cost_usd[at]
    return Totals(
        quality=mean_interval(quality, clusters),
        mean_cost_usd=mean_interval(cost, clusters),
        qr=ratio_interval(quality, run.oracle[at], clusters),
    )


def sentence(both: Paired) -> str:
    """What B changes against A, in one plain sentence with its intervals."""
    found = both.found
    before, after = both.a.cost_usd[both.at_a].mean(), both.b.cost_usd[both.at_b].mean()
    if not found.flipped.size:
        return f"Both send every one of the {found.n:,} queries to the same model."
    saved = found.savings.scaled(100.0)
    if not np.isfinite(saved.value):
        spent = f"B costs {usd(float(after))} per query, A nothing"
    else:
        side = saved if saved.value >= 0 else saved.scaled(-1.0)
        word = "less" if saved.value >= 0 else "more"
        spent = (
            f"B costs {side.value:.1f} % {word} [{side.lo:.1f}, {side.hi:.1f}] "
            f"({usd(float(after))} instead of {usd(float(before))} per query)"
        )
    change = found.quality.scaled(100.0)
    gained = f"{change.value:+.1f} pp quality [{change.lo:+.1f}, {change.hi:+.1f}]"
    if change.lo > 0:
        return f"{spent} and gains quality: {gained}."
    if change.hi < 0:
        return f"{spent} and loses quality: {gained}."
    return f"{spent}; its quality cannot be told from A's on this set: {gained}."


def language_name(code: str) -> str:
    """A language's name with its code."""
    known = LANGUAGES.get(code)
    return f"{known.name} ({code})" if known else code


def slices(both: Paired, evalset: EvalSet, by: str) -> pd.DataFrame:
    """Deltas of B against A by language or group, the largest first.

    Args:
        by: `language`, `language group`, or a column of the set's queries such as `group`.

    Returns:
        One row per value: name, n, quality and savings with bounds in percent points and percent,
        flipped in percent, p (McNemar, Holm-corrected over the rows), small.
    """
    rows = both.found.rows
    names = slice_names(evalset, by)[rows]
    moved = both.a.models[both.at_a] != both.b.models[both.at_b]
    values, which, counts = np.unique(names, return_inverse=True, return_counts=True)
    made = [
        _slice(both, str(values[i]), np.flatnonzero(which == i), moved)
        for i in np.lexsort((values, -counts))
    ]
    adjusted = holm([float(str(row["p"])) for row in made])
    return pd.DataFrame(made).assign(p=list(adjusted))


def slice_names(evalset: EvalSet, by: str) -> np.typing.NDArray[np.str_]:
    """(rows of the eval set,) the slice each query belongs to."""
    if by == "language group":
        codes = evalset.queries["language"].astype(str)
        return codes.map({code: group_of(code) for code in codes.unique()}).to_numpy(str)
    if by == "language":
        codes = evalset.queries["language"].astype(str)
        return codes.map({code: language_name(code) for code in codes.unique()}).to_numpy(str)
    return evalset.queries[by].fillna("(none)").astype(str).to_numpy(str)


def _slice(
    both: Paired, name: str, inside: IntArray, moved: np.typing.NDArray[np.bool_]
) -> dict[str, object]:
    clusters = None if both.clusters is None else both.clusters[inside]
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
    units = len(inside) if clusters is None else int(np.unique(clusters).size)
    a, b = both.at_a[inside], both.at_b[inside]
    quality = mean_interval(both.found.delta_quality[inside], clusters).scaled(100.0)
    saved = _savings(both.a.cost_usd[a], both.b.cost_usd[b], clusters)
    test = mcnemar(both.b.quality[b] >= 0.5, both.a.quality[a] >= 0.5)
    return {
        "name": name,
        "n": len(inside),
        "quality": quality.value,
        "quality_lo": quality.lo,
        "quality_hi": quality.hi,
        "savings": saved.value,
        "savings_lo": saved.lo,
        "savings_hi": saved.hi,
        "flipped": 100 * float(moved[inside].mean()),
        "p": test.p_value,
        "small": units < _SMALL,
    }


def _savings(
    before: np.typing.NDArray[np.float64],
    after: np.typing.NDArray[np.float64],
    clusters: IntArray | None,
) -> Interval:
    if not before.any():
        return Interval(float("nan"), float("nan"), float("nan"))
    return ratio_interval(after, before, clusters).scaled(-100.0, 100.0)


def grouping(evalset: EvalSet) -> Sequence[str]:
    """What deltas can be shown by."""
    known = [name for name in ("group",) if name in evalset.queries.columns]
    return ("language", "language group", *known)
