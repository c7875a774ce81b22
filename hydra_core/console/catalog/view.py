"""A catalog as plain values: its pool, its policy, and its knob beside another's. No streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.types import Catalog, FloatArray, IntArray, Policy
from hydra_core.catalog.editing.document import CatalogDocument, Data
from hydra_core.catalog.editing.render import Value
from hydra_core.catalog.profiles import blended_price, capabilities
from hydra_core.console.view_result import Measure
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.compare import WhatIf
from hydra_core.replay.frontier import StepCurve
from hydra_core.replay.sweep import Sweep, turning_points

#: Of either curve; two pixels each on the page.
_STEPS = 128
#: The score caps of the defences, one a dimension.
CAPS: Final = "defences.score_caps"
#: Whether agents' stalls raise anything.
STALL: Final = "stall.after"
_ROUTES: Final = (
    "require",
    "second_usd",
    "rule",
    "tau",
    "value_usd",
    "success_from",
    "cost_basis",
    "price_ratio",
)


def pool_table(catalog: Catalog) -> pd.DataFrame:
    """One row per model, cheapest first: status, prices in USD per Mtok, capabilities."""
    ratio = catalog.policy.price_ratio
    rows = [
        (model.id, model.status.value, blended_price(model, ratio), *values)
        for model, values in zip(catalog.models, capabilities(catalog), strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["model", "status", "price", *catalog.dimensions])
    return frame.sort_values("price", ignore_index=True, kind="stable")


def moved_by_pool(before: Catalog, after: Catalog) -> tuple[str, ...]:
    """Models whose capabilities moved though nothing of their own was edited.

    Capabilities are relative: the weakest counting model of the pool gets a band's low end, the
    strongest its high end, so a model that joins or leaves moves the others.
    """
    if (before.benchmarks, before.bands) != (after.benchmarks, after.bands):
        return ()
    old = {m.id: (m, row) for m, row in zip(before.models, capabilities(before), strict=True)}
    moved = []
    for model, now in zip(after.models, capabilities(after), strict=True):
        if model.id not in old:
            continue
        was, then = old[model.id]
        same = (was.scores, was.overrides) == (model.scores, model.overrides)
        if same and not np.allclose(then, now, atol=5e-4, equal_nan=True):
            moved.append(model.id)
    return tuple(moved)


def paired_steps(found: WhatIf, before: Sweep, after: Sweep) -> pd.DataFrame:
    """The exact figures of both catalogs at common settings of one knob, before a hand moves it.

    Args:
        found: The comparison that is shown at rest: its models and its common queries.
        before, after: Both catalogs for every setting, under the same rule.

    Returns:
        A row a step: `knob`; for each measure of a what-if its value afterwards, in percent but
        for the cost in USD, and in `<measure>_change` what it is more than before, on the common
        queries; `before_0`, ... and `after_0`, ... with the traffic of each of `found.shares`.
    """
    settings = (turning_points(sweep.curve, _STEPS) for sweep in (before, after))
    knobs = np.asarray(sorted(set().union(*settings)))
    a, b = (_on(sweep, found.comparison.rows) for sweep in (before, after))
    best = _best(a, b)
    was, now, whole = (_figures(sweep.curve, knobs) for sweep in (a, b, after))
    columns = {measure.value: values for measure, values in whole.items()}
    columns |= {f"{one.value}_change": values - was[one] for one, values in now.items()}
    quality, change = now[Measure.QUALITY], columns[f"{Measure.QUALITY.value}_change"]
    columns |= {Measure.QR.value: quality / best, f"{Measure.QR.value}_change": change / best}
    for name, sweep in (("before", before), ("after", after)):
        traffic = dict(zip(sweep.models, sweep.traffic(knobs).T, strict=True))
        for i, model in enumerate(found.shares):
            columns[f"{name}_{i}"] = traffic.get(model, np.zeros(knobs.size))
    narrow = {name: values.astype(np.float32) for name, values in columns.items()}
    return pd.DataFrame({"knob": knobs} | narrow)


def _on(sweep: Sweep, rows: IntArray) -> Sweep:
    """The sweep of these rows of the eval set alone."""
    if sweep.data.rows.size == rows.size:
        return sweep
    return replace(sweep, data=sweep.data.take(np.searchsorted(sweep.data.rows, rows)))


def _best(a: Sweep, b: Sweep) -> float:
    """Mean quality of the best model of either pool, query by query, as QR is measured here."""
    each: list[FloatArray] = [sweep.data.quality.max(axis=1) for sweep in (a, b)]
    return float(np.maximum(*each).mean()) or 1.0


def _figures(curve: StepCurve, knobs: FloatArray) -> dict[Measure, FloatArray]:
    rows = np.asarray([curve.row(float(knob)) for knob in knobs], dtype=np.intp)
    return {
        Measure.QUALITY: 100 * curve.quality[rows],
        Measure.COST: curve.mean_cost_usd[rows],
        Measure.MISROUTE: 100 * curve.misroute[rows],
    }


def decides_routes(name: str) -> bool:
    """Whether a field decides routes of single queries, so that a replay shows its effect."""
    return name in _ROUTES or name.startswith(f"{CAPS}.")


def value_of(policy: Policy, name: str) -> object:
    """The value of `tau`, `sticky.mode` and so on; None for what is not there."""
    found: object = policy
    for step in name.split("."):
        found = found.get(step) if isinstance(found, Mapping) else getattr(found, step, None)
    return found


def defences_text(policy: Policy) -> str:
    """The defences that are switched on, in a few words."""
    caps = [f"{name.replace('_', ' ')} {cap:g}" for name, cap in policy.defences.score_caps.items()]
    lines = [f"scores count up to {', '.join(caps)}"] if caps else []
    if policy.defences.budget_usd is not None:
        lines.append(f"${policy.defences.budget_usd:g} a conversation")
    return "; ".join(lines) or "none"


def alone(before: Catalog, after: Catalog, name: str) -> Catalog:
    """`before` with this one field of its policy as `after` has it."""
    head, _, tail = name.partition(".")
    given = getattr(after.policy, head)
    if name.startswith(f"{CAPS}."):
        dimension, caps = tail.partition(".")[2], dict(before.policy.defences.score_caps)
        caps.pop(dimension, None)
        if dimension in given.score_caps:
            caps[dimension] = given.score_caps[dimension]
        given = replace(before.policy.defences, score_caps=caps)
    changed = replace(before, policy=replace(before.policy, **{head: given}))
    if head in ("rule", "value_usd", "success_from"):  # needs what it predicts with
        policy = replace(changed.policy, success_from=after.policy.success_from)
        return replace(
            changed, policy=policy, outcome_model=after.outcome_model,
            success_profiles=after.success_profiles,
        )  # fmt: skip
    return changed


def with_field(text: str, name: str, value: Value) -> str:
    """The catalog text with one field of its policy written; None takes it out.

    Raises:
        CatalogError: It cannot be written there.
    """
    document = CatalogDocument.parse(text)
    steps = ["policy", *name.split(".")]
    if value is None:
        steps = steps[:2] if name == STALL else steps  # without it the section means nothing
        if _at(document.data(), steps) is not None:
            document.remove(*steps)
        return document.text()
    # Sections that are not there yet are written around the value.
    while len(steps) > 2 and not isinstance(_at(document.data(), steps[:-1]), dict):
        value = {steps.pop(): value}
    document.set(*steps, value)
    return document.text()


def _at(data: Data, steps: Sequence[str]) -> Data:
    for step in steps:
        data = data.get(step) if isinstance(data, dict) else None
    return data


def conversation_note(name: str, policy: Policy, evalset: EvalSet, requirements: FloatArray) -> str:
    """What a field on conversations or health would act on; replays route every query alone.

    Args:
        name: One of the fields that decide no route of a single query.
        policy: The policy worked on.
        evalset: The set in use.
        requirements: (n, K) of its queries.
    """
    if name == "health_floor":
        return "Eval sets carry no health, so no route here changes."
    if name == "defences.budget_usd":
        return (
            "Eval sets carry no spending, so no route here changes. A request says spent_usd; from "
            "the budget on only the cheapest model is left."
        )
    if name.startswith("stall."):
        return "Eval sets carry no tool results, so no route here changes."
    if name == "sticky.ttl_s":
        return "Eval sets carry no times, so no route here changes."
    if name == "sticky.threshold":
        below = float((requirements.max(axis=1) < policy.sticky.threshold).mean())
        return f"{100 * below:.0f} % of the queries ask for less than this on every dimension."
    later = 0
    if "conversation_id" in evalset.queries.columns:
        known = evalset.queries["conversation_id"].dropna()
        later = len(known) - known.nunique()
    if not later:
        return "No query of this set continues a conversation, so no route here changes."
    return (
        f"{later:,} of {evalset.n:,} queries continue a conversation: what the mode is about. "
        "A replay routes each by itself; play one on the page Conversation."
    )
