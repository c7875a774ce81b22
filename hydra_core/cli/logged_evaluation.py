"""What evaluate says of a set in which each query has the outcome of one model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hydra_core.base.spelling import counted, usd
from hydra_core.cli.output import mix_table, percent, percent_range, quality_lines, value_and_ends

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.live.off_policy import LoggedEvaluation


def log_document(found: LoggedEvaluation) -> dict[str, Any]:
    """Return it JSON-ready."""
    value = found.value
    estimates = {} if value is None else value.estimates
    return {
        "schema": "hydra.logged_evaluation/v1",
        "n": found.n,
        "served": found.served,
        "chosen": found.chosen,
        "agreement": value_and_ends(found.agreement),
        "billed_usd": value_and_ends(found.billed_usd),
        "cost_change": value_and_ends(found.cost_change),
        "live_quality": value_and_ends(found.live),
        "quality": {name: value_and_ends(one) for name, one in estimates.items()},
        "unsupported": None if value is None else value.unsupported,
        "effective": None if value is None else value.effective,
        "no_quality_because": found.why or None,
    }


def log_text(found: LoggedEvaluation, catalog: Catalog, evalset: EvalSet) -> str:
    """Return it as the verb prints it."""
    lines = [
        f"{evalset.name}: {counted(found.n, 'query')} with the outcome of one model; not replayed",
        "",
        mix_table(["served", catalog.name], [found.served, found.chosen]),
        "",
        f"agreement: {percent_range(found.agreement)}",
    ]
    if found.billed_usd is not None:
        lines.append(f"billed: {usd(found.billed_usd.value)} per query")
    if found.cost_change is not None:
        change = f"{100 * found.cost_change.value:+.1f} %"
        lines.append(f"cost against what was served, both at the catalog's prices: {change}")
    lines.append(f"quality, as served: {percent_range(found.live)}")
    if found.value is None:
        return "\n".join([*lines, f"quality: not estimated, {found.why}"])
    lines += quality_lines(found.value)
    if found.value.unsupported:
        share = percent(found.value.unsupported)
        lines.append(f"  {share} would go to models that the log could not have served there")
    size = f"{found.value.n:,} queries are worth {found.value.effective:,.0f}"
    return "\n".join([*lines, f"  {size} (effective sample size)"])
