"""The four sources of shortfalls side by side: what each gains, needs and couples.

Benchmarks, fitted profiles and success profiles stand in the catalog's YAML; success heads are an
outcome model beside it. Every lift is cross-fitted on the same parts, so that rungs can be compared
query by query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.types import IntArray, Progress
from hydra_core.choosing.lift import with_ends
from hydra_core.choosing.sources.cell_findings import Finding, findings_of
from hydra_core.choosing.sources.lift import CrossFitted, Ranked
from hydra_core.choosing.sources.outcomes import Outcomes, groups_at, outcomes_of_replay
from hydra_core.choosing.sources.rungs import TITLES, Kind, Rung, Start, fit_rung, judged_rung
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.outcome_model.raw import Predicted
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import mean_interval
from hydra_core.routing.matcher import cost_order, returns_on_upgrading


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """The sources side by side.

    Attributes:
        rungs: From the one that needs least.
        best_yaml: The best recommended source that stands in the catalog alone; None if none.
        recommended: The source to use; None where a fixed mix does better.
        reason: At most two sentences.
        heads_add: What heads gain over `best_yaml` (over the fixed mix where it is None), paired by
            query; None where either has no lift.
        findings: Outcomes of the set that look wrong.
    """

    rungs: tuple[Rung, ...]
    best_yaml: Kind | None
    recommended: Kind | None
    reason: str
    heads_add: Interval | None
    findings: tuple[Finding, ...]

    def rung(self, kind: Kind) -> Rung | None:
        """Return one rung, None where it was not asked for."""
        return next((one for one in self.rungs if one.kind is kind), None)

    def numbers(self) -> dict[str, Any]:
        """Return it JSON-ready."""
        return {
            "sources": [one.numbers() for one in self.rungs],
            "best_yaml": None if self.best_yaml is None else self.best_yaml.value,
            "recommended": None if self.recommended is None else self.recommended.value,
            "reason": self.reason,
            "heads_add": with_ends(self.heads_add),
            "findings": [one.numbers() for one in self.findings],
        }


def rank_outcomes(
    outcomes: Outcomes, predicted: Predicted, part: IntArray | None = None
) -> CrossFitted:
    """Rank queries by cross-fitted predictions, (n, m) in the order of the outcomes' models."""
    returns = returns_on_upgrading(predicted.success, predicted.cost_usd)
    ranked = Ranked(outcomes, returns, cost_order(returns, predicted.cost_usd))
    own = np.zeros(outcomes.n, np.intp) if part is None else part
    return CrossFitted(ranked, own, predicted=predicted)


def ladder_of_replay(
    data: ReplayData,
    evalset: EvalSet,
    start: Start | None = None,
    *,
    predicted: Predicted | None = None,
    groups_are_traffic: bool = False,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Ladder:
    """Judge the sources on a replayed set, at the costs it was replayed with.

    Args:
        data: The set under the catalog, all models measured.
        predicted: (n, m) cross-fitted predictions of success heads; None leaves heads out.
        start, groups_are_traffic, folds, seed, progress: As in `ladder_of`.

    Raises:
        ValueError: Fewer clusters than folds.
    """
    outcomes = outcomes_of_replay(data, evalset)
    return ladder_of(
        outcomes,
        start,
        groups_at(evalset, data.rows),
        findings_of(evalset, outcomes.models),
        None if predicted is None else partial(rank_outcomes, outcomes, predicted),
        groups_are_traffic=groups_are_traffic,
        folds=folds,
        seed=seed,
        progress=progress,
    )


def ladder_of(
    outcomes: Outcomes,
    start: Start | None,
    groups: Sequence[str] | None,
    findings: tuple[Finding, ...],
    heads: Callable[[], CrossFitted] | None,
    *,
    groups_are_traffic: bool,
    folds: int,
    seed: int,
    progress: Progress | None,
) -> Ladder:
    """Judge the sources by the same outcomes.

    Args:
        start: The catalog's side of it.
        heads: Ranks the same queries by success heads; None leaves heads out.
        groups, findings, groups_are_traffic, folds, seed: As in `fit_rung`.
        progress: Called with (done, total) sources.

    Raises:
        ValueError: Fewer clusters than folds.
    """
    kinds = [kind for kind in Kind if heads is not None or kind is not Kind.HEADS]
    rungs = []
    for number, kind in enumerate(kinds):
        if kind is Kind.HEADS and heads is not None:
            rung = judged_rung(kind, heads(), None, groups, findings, groups_are_traffic, seed)
        else:
            rung = fit_rung(
                kind,
                outcomes,
                start,
                groups=groups,
                findings=findings,
                groups_are_traffic=groups_are_traffic,
                folds=folds,
                seed=seed,
            )
        rungs.append(rung)
        if progress is not None:
            progress(number + 1, len(kinds))
    return _ladder(tuple(rungs), findings)


def _ladder(rungs: tuple[Rung, ...], findings: tuple[Finding, ...]) -> Ladder:
    worth = [one for one in rungs if one.recommend and one.is_yaml]
    yaml = max(worth, key=lambda one: one.lift.mean.value if one.lift else -np.inf, default=None)
    heads = next((one for one in rungs if one.kind is Kind.HEADS), None)
    add = None
    if heads is not None and heads.lift is not None:
        under = 0.0 if yaml is None or yaml.lift is None else yaml.lift.contributions
        clusters = heads.cross_fitted.ranked.outcomes.clusters
        add = mean_interval(heads.lift.contributions - under, clusters)
    recommended, reason = _recommended(rungs, yaml, heads, add)
    best = None if yaml is None else yaml.kind
    return Ladder(rungs, best, recommended, reason, add, findings)


def _inside(title: str) -> str:
    """A title as it stands inside a sentence."""
    return title[0].lower() + title[1:]


def _recommended(
    rungs: tuple[Rung, ...], yaml: Rung | None, heads: Rung | None, add: Interval | None
) -> tuple[Kind | None, str]:
    more = _points(add)
    if heads is not None and heads.recommend and add is not None and add.lo > 0:
        over = "the fixed mix" if yaml is None else _inside(TITLES[yaml.kind])
        return Kind.HEADS, (
            f"Use success heads: {more} over {over}. A new model then needs outcomes or a rate."
        )
    if yaml is not None:
        gain = _points(yaml.lift.mean if yaml.lift else None)
        said = f"Use {_inside(TITLES[yaml.kind])}: {gain} over the best fixed mix."
        if heads is None:
            return yaml.kind, f"{said} Success heads are not learned yet."
        return yaml.kind, f"{said} Success heads change that by {more}." if more else said
    blocked = [one for one in rungs if one.check is not None and not one.check.may_recommend]
    if blocked:
        return None, blocked[-1].reason
    if heads is None:
        return None, (
            "Learn success heads: no source in the catalog shows a gain beyond chance on these "
            "queries. Heads read more of a message."
        )
    return None, "Keep the fixed mix: no source shows a gain beyond chance on these queries."


def _points(gain: Interval | None) -> str:
    return "" if gain is None else gain.scaled(100.0).text("points")
