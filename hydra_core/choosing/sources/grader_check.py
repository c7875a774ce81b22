"""Grader or difficulty? How much of a lift comes from telling the groups of a set apart.

Groups (benchmarks, kinds of task) often differ by how they are graded. A router that only learns
which group a query is from then shows a lift that is a finding about graders. So every lift is
split in two: what the groups' own mixes of models would gain (each query takes the route of another
query of its group), and what is gained within groups beyond that. The second part alone speaks of
difficulty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.types import ChoiceArray, FloatArray, IntArray
from hydra_core.choosing.lift import differences_to_hull, hull_of, with_ends
from hydra_core.choosing.sources.cell_findings import Finding, FindingKind
from hydra_core.replay.matched_cost import MatchedCost, matched_cost_mix
from hydra_core.replay.significance import mean_interval

_LEAST_QUERIES: Final = 50
#: Below this share of the lift "most of" it comes from telling groups apart, not all of it.
_ALL_OF_IT: Final = 0.9


#: Findings that put the outcomes in doubt; the same token counts only put costs in doubt.
_OF_GRADERS: Final = (
    *(FindingKind.NOBODY, FindingKind.GROUP, FindingKind.LENGTH, FindingKind.NO_TOKENS),
    *(FindingKind.NO_LATENCY, FindingKind.SIMILARITY),
)


class GainFrom(StrEnum):
    """Where a lift comes from."""

    WITHIN = "within groups"
    GROUPS = "telling groups apart"
    NOTHING = "nothing to explain"
    UNKNOWN = "no groups"


@dataclass(frozen=True, slots=True)
class GroupLift:
    """What is gained within one group, in units of quality."""

    name: str
    queries: int
    within: Interval


@dataclass(frozen=True, slots=True)
class GraderCheck:
    """Where a lift comes from, and what looks wrong with the outcomes.

    Attributes:
        gain_from: The answer.
        sentence: What an operator must read beside the lift; '' where there is nothing to say.
        may_recommend: False where the gain is from groups and a grader is in doubt.
        total: The lift that was split.
        between: What telling the groups apart gains.
        within: What is gained beyond that.
        groups: The same for each group, the largest first.
        findings: Cells and outcomes that look wrong.
    """

    gain_from: GainFrom
    sentence: str
    may_recommend: bool
    total: Interval | None
    between: Interval | None
    within: Interval | None
    groups: tuple[GroupLift, ...]
    findings: tuple[Finding, ...]

    def applied(self, recommend: bool, reason: str) -> tuple[bool, str]:
        """Return a recommendation and its reason with what the check adds."""
        if not (recommend and self.sentence):
            return recommend, reason
        return (True, f"{reason} {self.sentence}") if self.may_recommend else (False, self.sentence)

    def numbers(self) -> dict[str, Any]:
        """Return it JSON-ready."""
        return {
            "gain_from": self.gain_from.value,
            "sentence": self.sentence,
            "may_recommend": self.may_recommend,
            "total": with_ends(self.total),
            "between": with_ends(self.between),
            "within": with_ends(self.within),
            "groups": [
                {"name": one.name, "queries": one.queries, "within": with_ends(one.within)}
                for one in self.groups
            ],
            "findings": [one.numbers() for one in self.findings],
        }


def split_by_group(
    quality: FloatArray, cost_usd: FloatArray, choice: ChoiceArray, groups: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Split a lift into what groups explain and the rest, query by query.

    The first part routes each query as the other queries of its group are routed, on average: the
    same mix of models in every group, and nothing known of the query itself.

    Args:
        quality, cost_usd: (n, m) outcomes and realised cost in USD.
        choice: (n, p) routes at p settings, by predictions that have not seen the query.
        groups: (n,) group numbers from 0.

    Returns:
        (n,) what each query adds to the lift over the best fixed mix by groups alone, and (n,) what
        it adds beyond; their means are the two parts, averaged over the settings.
    """
    n, m = quality.shape
    hull = hull_of(quality, cost_usd)
    total = differences_to_hull(quality, cost_usd, choice.astype(np.intp), hull).mean(axis=1)
    sizes = np.bincount(groups)
    between = np.zeros(n)
    for column in choice.T.astype(np.intp):
        own = np.zeros((n, m))
        own[np.arange(n), column] = 1.0
        counts = np.zeros((sizes.size, m))
        np.add.at(counts, groups, own)
        others = sizes[groups][:, None] - 1
        # a query alone in its group keeps its route
        share = np.where(others > 0, (counts[groups] - own) / np.maximum(others, 1), own)
        mean_quality, mean_cost = (share * quality).sum(axis=1), (share * cost_usd).sum(axis=1)
        mix = MatchedCost.of([matched_cost_mix(hull, float(mean_cost.mean()))], m)
        weights, slope = mix.weights[:, 0], mix.quality_per_usd[0]
        between += mean_quality - quality @ weights - (mean_cost - cost_usd @ weights) * slope
    between /= choice.shape[1]
    return between, total - between


def grader_check(
    groups: Sequence[str],
    quality: FloatArray,
    cost_usd: FloatArray,
    choice: ChoiceArray | None,
    clusters: IntArray | None = None,
    *,
    findings: Sequence[Finding] = (),
    groups_are_traffic: bool = False,
) -> GraderCheck:
    """Say whether a lift is about difficulty or about which group a query is from.

    Args:
        groups: (n,) group of each query; '' where it has none.
        quality, cost_usd: (n, m) outcomes and realised cost in USD, none missing.
        choice: (n, p) routes at the points where the lift is judged; None where there is no lift.
        clusters: (n,) cluster numbers, or None when all queries are independent.
        groups_are_traffic: The operator says that the groups are real kinds of traffic, so that
            telling them apart counts.
    """
    names, number = np.unique(np.asarray(groups, dtype=np.str_), return_inverse=True)
    if choice is None or names.size < 2:
        reason = GainFrom.NOTHING if choice is None else GainFrom.UNKNOWN
        return GraderCheck(reason, "", choice is not None, None, None, None, (), tuple(findings))
    between, within = split_by_group(quality, cost_usd, choice, number)
    total, outer, inner = (
        mean_interval(values, clusters) for values in (between + within, between, within)
    )
    doubt = _doubt(findings)
    gain_from = _gain_from(total, outer, inner, doubted=bool(doubt))
    rows = [
        GroupLift(str(name), int((number == i).sum()), _group_mean(within, number == i, clusters))
        for i, name in enumerate(names)
        if (number == i).sum() >= _LEAST_QUERIES
    ]
    blocked = gain_from is GainFrom.GROUPS and bool(doubt) and not groups_are_traffic
    sentence = _sentence(gain_from, total, outer, inner, groups_are_traffic)
    return GraderCheck(
        gain_from,
        f"{sentence} {doubt}" if blocked else sentence,
        not blocked,
        total,
        outer,
        inner,
        tuple(sorted(rows, key=lambda row: -row.queries)),
        tuple(findings),
    )


def _gain_from(total: Interval, between: Interval, within: Interval, *, doubted: bool) -> GainFrom:
    """With a grader in doubt, a lift that is mostly between groups is about them."""
    if total.lo <= 0:
        return GainFrom.NOTHING
    mostly = doubted and between.value > total.value / 2
    return GainFrom.GROUPS if within.lo <= 0 or mostly else GainFrom.WITHIN


def _sentence(
    gain_from: GainFrom, total: Interval, between: Interval, within: Interval, real: bool
) -> str:
    if gain_from in (GainFrom.NOTHING, GainFrom.UNKNOWN):
        return ""
    whole, apart, inside = (one.scaled(100.0) for one in (total, between, within))
    figures = f"{apart.value:+.1f} of {whole.value:+.1f} points"
    if gain_from is GainFrom.WITHIN:
        return (
            f"Telling the groups apart gives {figures}, and {inside.text('points')} come from "
            "within them."
        )
    gain = "The gain" if between.value >= _ALL_OF_IT * total.value else "Most of the gain"
    said = (
        f"{gain} comes from telling the groups apart: {figures}, and {inside.text('points')} "
        "within them."
    )
    if real:
        return f"{said} It counts, because you said that the groups are real kinds of traffic."
    return f"{said} It counts only if the groups are kinds of your traffic and graded alike."


def _doubt(findings: Sequence[Finding]) -> str:
    """What puts the outcomes in doubt, '' where nothing does."""
    doubts = [one for one in findings if one.kind in _OF_GRADERS]
    if not doubts:
        return ""
    more = f" ({len(doubts) - 1} more findings)" if len(doubts) > 1 else ""
    return f"Check the grader first: {doubts[0].text}{more}"


def _group_mean(values: FloatArray, rows: FloatArray, clusters: IntArray | None) -> Interval:
    of = np.flatnonzero(rows)
    own = None if clusters is None else np.unique(clusters[of], return_inverse=True)[1]
    return mean_interval(values[of], own)
