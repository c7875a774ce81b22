"""Which policies of a replayed set stand in a significance table when nobody picked any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hydra_core.errors import MismatchError
from hydra_core.evaluation.replay.imported_policies import imported_choice, policy_names
from hydra_core.evaluation.replay.metrics import costliest
from hydra_core.evaluation.replay.replay import clusters_of_rows
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.evaluation.study.baselines.run import BaselineRun
from hydra_core.evaluation.study.compare import PolicyRun, constant_run, policy_run
from hydra_core.evaluation.study.significance_table import (
    Entry,
    SignificanceTable,
    significance_table,
)
from hydra_core.types import Rule, Selection

__all__ = ["chosen_text", "common_table"]


def common_table(
    sweep: Sweep,
    knobs: Sequence[float],
    *,
    strong: str | None = None,
    fixed: bool = False,
    learned: Sequence[BaselineRun] = (),
) -> SignificanceTable:
    """The router at some settings, every constant, the imported policies and learned routers.

    Args:
        knobs: Values of tau or V; the first one's cost is what learned routers spend.
        strong: What savings and tests are against; default the costliest.
        fixed: The operator states that the settings were fixed beforehand.
        learned: Cross-fitted baselines.
    """
    data, entries = sweep.data, []
    for knob in dict.fromkeys(knobs):
        chosen = Selection.FIXED if fixed else sweep.selection(knob)
        run = policy_run(f"router, {_knob(sweep)} {knob:.4g}", data, sweep.route(knob))
        entries.append(Entry(run, chosen_text(chosen)))
    spend = float(entries[0].run.cost_usd.mean())
    for found in learned:
        choice = found.at_cost(spend, np.random.default_rng(0))
        entries.append(Entry(policy_run(f"learned: {found.name}", data, choice), "cross-fitted"))
    entries += _imported(sweep)
    entries += [Entry(constant_run(data, model), "constant") for model in sweep.models]
    base: PolicyRun = constant_run(data, strong or costliest(data))
    return significance_table(
        entries, base, clusters_of_rows(data, sweep.evalset.n), rng=np.random.default_rng(0)
    )


def chosen_text(selection: Selection) -> str:
    """How a point came about, in a word or two."""
    return {
        Selection.FIXED: "fixed",
        Selection.CROSS_FITTED: "cross-fitted",
        Selection.LOOKED: "by looking",
    }[selection]


def _knob(sweep: Sweep) -> str:
    return "V" if sweep.rule is Rule.VALUE else "τ"


def _imported(sweep: Sweep) -> list[Entry]:
    """Those that send every query to a model of the pool."""
    entries = []
    for name in policy_names(sweep.evalset.path):
        try:
            choice = imported_choice(sweep.evalset, sweep.data, name)
        except MismatchError:
            continue
        entries.append(Entry(policy_run(f"imported: {name}", sweep.data, choice), "imported"))
    return entries
