"""Can a lift be trusted? Outcomes that look wrong, and what only tells the groups of a set apart.

Looked for are filled-in cells, dead graders and failures that follow length. Groups (benchmarks,
kinds of task) often differ by how they are graded. A router that only learns which group a query is
from then shows a lift that is a finding about graders. So every lift is split in two: what the
groups' own mixes of models would gain (each query takes the route of another query of its group),
and what is gained within groups beyond that. The second part alone speaks of difficulty.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import counted
from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray
from hydra_core.choosing.lift import differences_to_hull, hull_of, with_ends
from hydra_core.choosing.material import groups_at, known_means
from hydra_core.evalsets.evalset import EvalSet, clusters_among
from hydra_core.replay.fixed_mix import MatchedCost, matched_cost_mix
from hydra_core.replay.significance import mean_interval, normal_p

#: Fewer queries of a group than this show nothing.
_LEAST_QUERIES: Final = 20
#: The same pair of token counts on so large a share of a model's cells of a group is no chance.
_CONSTANT_SHARE: Final = 0.1
_CONSTANT_WRITTEN_SHARE: Final = 0.8
#: Answers of a word or two often have the same length.
_SHORT_ANSWER: Final = 10
_NEVER: Final = 0.02
_OTHERS_OFTEN: Final = 0.3
#: Failures follow length: so much more success is lost on long answers than the others lose there.
_LENGTH_EFFECT: Final = 0.3
#: A model that is still as good as the others there has no fault of length.
_BEHIND: Final = 0.1
_LENGTH_CUTS: Final = (0.5, 0.67, 0.8)
_LEAST_LONG: Final = 15
_P_VALUE: Final = 1e-4
_SIMILARITY_SHARE: Final = 0.2
_DISTINCT: Final = 10


class FindingKind(StrEnum):
    NOBODY = "nobody solves any query of a group"
    EVERYBODY = "everybody solves every query of a group"
    GROUP = "a model never solves a group that others solve"
    LENGTH = "a model's failures follow the length of its answer"
    NO_TOKENS = "a model wrote nothing"
    CONSTANT_TOKENS = "the same token counts on many cells"
    NO_LATENCY = "answers that took no time"
    SIMILARITY = "scores that are similarities"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that looks wrong.

    Attributes:
        model: '' where it concerns all.
        group: '' where it concerns all.
        queries: How many cells.
        text: One sentence.
    """

    kind: FindingKind
    model: str
    group: str
    queries: int
    text: str

    def numbers(self) -> dict[str, Any]:
        return {**asdict(self), "kind": self.kind.value}


def cell_findings(
    models: Sequence[str],
    groups: Sequence[str],
    quality: FloatArray,
    *,
    input_tokens: FloatArray | None = None,
    output_tokens: FloatArray | None = None,
    latency_s: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> tuple[Finding, ...]:
    """Look for outcomes that a grader or a harness may have made; those of most cells first.

    Args:
        models: (m,) ids.
        groups: (n,) group of each query; '' is a group of its own.
        quality: (n, m) in [0, 1], NaN where missing; as for the other matrices.
        input_tokens, output_tokens, latency_s: (n, m); None where the set has none.
        clusters: (n,) cluster numbers, None when all queries are independent.
    """
    names = np.asarray(groups, dtype=np.str_)
    units = np.arange(len(names)) if clusters is None else clusters
    found: list[Finding] = []
    for name in np.unique(names):
        rows = np.flatnonzero(names == name)
        if rows.size < _LEAST_QUERIES:
            continue
        part = [None if v is None else v[rows] for v in (input_tokens, output_tokens, latency_s)]
        found += _group_findings(models, str(name), quality[rows])
        found += _filled(models, str(name), quality[rows], *part)
        if part[1] is not None:
            found += _length(models, str(name), quality[rows], part[1], units[rows])
    return tuple(sorted(found, key=lambda one: -one.queries))


def findings_of(evalset: EvalSet, models: Sequence[str]) -> tuple[Finding, ...]:
    """Look at the outcomes of some models of a set, by its groups."""
    columns = [evalset.models.index(name) for name in models]
    groups = groups_at(evalset, np.arange(evalset.n)) or ["the set"] * evalset.n
    extras = {
        name: evalset.extras[name][:, columns]
        for name in ("input_tokens", "output_tokens", "latency_s")
        if name in evalset.extras
    }
    quality, clusters = evalset.quality[:, columns], evalset.clusters
    return cell_findings(models, groups, quality, clusters=clusters, **extras)


def _group_findings(models: Sequence[str], group: str, quality: FloatArray) -> Iterator[Finding]:
    known = np.isfinite(quality)
    n = int(known.any(axis=1).sum())
    values = quality[known]
    if values.max() <= 0.0:
        text = f"No model solves any of the {n} queries of {group}: its grader may be broken."
        yield Finding(FindingKind.NOBODY, "", group, n, text)
        return
    if values.min() >= 1.0:
        text = f"Every model solves each of the {n} queries of {group}: they tell nothing apart."
        yield Finding(FindingKind.EVERYBODY, "", group, n, text)
        return
    between = (values > 0.0) & (values < 1.0)
    if between.mean() > _SIMILARITY_SHARE and np.unique(values[between]).size >= _DISTINCT:
        text = (
            f"{100 * between.mean():.0f} % of the scores of {group} lie between 0 and 1: they may "
            "measure likeness to a reference, not success."
        )
        yield Finding(FindingKind.SIMILARITY, "", group, int(between.sum()), text)
    rates = known_means(quality)
    for j, model in enumerate(models):
        others = np.delete(rates, j)
        count = int(known[:, j].sum())
        usual = float(np.nanmean(others)) if np.isfinite(others).any() else 0.0
        if count >= _LEAST_QUERIES and rates[j] <= _NEVER and usual >= _OTHERS_OFTEN:
            text = (
                f"{model} solves {100 * rates[j]:.0f} % of {count} queries of {group}, the others "
                f"{100 * usual:.0f} %: check the form of its answers."
            )
            yield Finding(FindingKind.GROUP, model, group, count, text)


def _filled(
    models: Sequence[str],
    group: str,
    quality: FloatArray,
    read: FloatArray | None,
    written: FloatArray | None,
    latency: FloatArray | None,
) -> Iterator[Finding]:
    for j, model in enumerate(models):
        known = np.isfinite(quality[:, j])
        if latency is not None and (none := int((known & (latency[:, j] == 0)).sum())):
            text = f"{none} answers of {model} on {group} took no time: they look filled in."
            yield Finding(FindingKind.NO_LATENCY, model, group, none, text)
        if written is None:
            continue
        if silent := int((known & (written[:, j] == 0)).sum()):
            text = f"{model} wrote nothing on {counted(silent, 'query')} of {group}."
            yield Finding(FindingKind.NO_TOKENS, model, group, silent, text)
        if read is not None:
            yield from _constant(model, group, read[known, j], written[known, j])


def _constant(model: str, group: str, read: FloatArray, written: FloatArray) -> Iterator[Finding]:
    """Token counts that repeat: a pair of them, or the tokens written on most cells."""
    known = np.isfinite(read) & np.isfinite(written) & (written > 0)
    pairs = np.stack([read[known], written[known]], axis=1)
    n = len(pairs)
    if n < _LEAST_QUERIES:
        return
    for values, least, what in (
        (pairs, _CONSTANT_SHARE, "tokens read and written"),
        (pairs[:, 1:], _CONSTANT_WRITTEN_SHARE, "tokens written"),
    ):
        common, counts = np.unique(values, axis=0, return_counts=True)
        at = int(counts.argmax())
        if counts[at] >= max(least * n, _LEAST_QUERIES / 2) and common[at, -1] > _SHORT_ANSWER:
            tokens = " and ".join(f"{value:g}" for value in common[at])
            text = (
                f"{counts[at]} of {n} answers of {model} on {group} have the same number of {what} "
                f"({tokens}): they look filled in or estimated."
            )
            yield Finding(FindingKind.CONSTANT_TOKENS, model, group, int(counts[at]), text)
            return


def _length(
    models: Sequence[str],
    group: str,
    quality: FloatArray,
    written: FloatArray,
    units: IntArray,
) -> Iterator[Finding]:
    """Models that fail where their own answer is long, on queries that others solve as before."""
    known = np.isfinite(quality)
    for j, model in enumerate(models):
        others = np.delete(quality, j, axis=1)
        rows = known[:, j] & np.isfinite(written[:, j]) & np.isfinite(others).any(axis=1)
        if rows.sum() < 2 * _LEAST_LONG or np.ptp(written[rows, j]) <= 0:
            continue
        own, length = quality[rows, j], written[rows, j]
        usual = known_means(others[rows].T)
        ends = [float(np.quantile(length, cut)) for cut in _LENGTH_CUTS]
        cuts = [_cut(own, usual, length, end, units[rows]) for end in ends]
        effect, p_value, at, long = max(cuts, key=lambda found: found[0])
        behind = float(usual[long].mean() - own[long].mean())
        if effect >= _LENGTH_EFFECT and p_value < _P_VALUE and behind >= _BEHIND:
            text = (
                f"{model} solves {100 * own[long].mean():.0f} % of its {long.sum()} answers on "
                f"{group} above {at:,.0f} tokens, the others {100 * usual[long].mean():.0f} % of "
                f"these queries; below it solves {100 * own[~long].mean():.0f} %. Long answers may "
                "have been cut off."
            )
            yield Finding(FindingKind.LENGTH, model, group, int(long.sum()), text)


def _cut(
    own: FloatArray, usual: FloatArray, length: FloatArray, at: float, units: IntArray
) -> tuple[float, float, float, BoolArray]:
    """How much more is lost above a length than the others lose there, p value, the length."""
    long = length > at
    if min(np.unique(units[part]).size for part in (long, ~long)) < _LEAST_LONG:
        return 0.0, 1.0, at, long
    gap = own - usual
    effect = float(gap[~long].mean() - gap[long].mean())
    share = np.zeros(len(gap))  # what each query adds to the effect, less its mean
    for part, sign in ((long, -1.0), (~long, 1.0)):
        n = part.sum()
        share[part] = sign * (gap[part] - gap[part].mean()) / np.sqrt(n * (n - 1))
    whole = np.bincount(np.unique(units, return_inverse=True)[1], weights=share)
    error = float(np.sqrt(np.square(whole).sum()))  # Welch's, where all are independent
    return effect, normal_p(effect / max(error, 1e-12)), at, long


#: Groups of fewer queries are not shown one by one.
_LEAST_SHOWN: Final = 50
#: Below this share of the lift "most of" it comes from telling groups apart, not all of it.
_ALL_OF_IT: Final = 0.9


#: Findings that put the outcomes in doubt; the same token counts only put costs in doubt.
_OF_GRADERS: Final = (
    *(FindingKind.NOBODY, FindingKind.GROUP, FindingKind.LENGTH, FindingKind.NO_TOKENS),
    *(FindingKind.NO_LATENCY, FindingKind.SIMILARITY),
)


class GainFrom(StrEnum):
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
        if (number == i).sum() >= _LEAST_SHOWN
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
    own = clusters_among(clusters, of)
    return mean_interval(values[of], own)
