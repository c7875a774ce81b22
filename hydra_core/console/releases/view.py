"""What a release changes in one table: quality, cost, result, traffic, and what is not measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import usd
from hydra_core.console.numbers import percent
from hydra_core.console.view_result import Tile, difference, short
from hydra_core.replay.compare import Replayed
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.verdict import Verdict

#: Traffic to models without outcomes from which on publishing asks first.
MOST_UNKNOWN = 0.01
_MOST_MODELS = 12


class Side(NamedTuple):
    """A catalog with its own policy on an eval set, and its result against the fixed mix."""

    replayed: Replayed
    evaluation: Evaluation

    @property
    def verdict(self) -> Verdict:
        return self.evaluation.verdict


class Row(NamedTuple):
    """One line of the table, as text."""

    label: str
    published: str
    new: str
    change: str = ""


def rows(before: Side | None, after: Side, changes: Sequence[Tile] = ()) -> tuple[Row, ...]:
    """Return every line, before and after; `published` is empty for a first revision.

    Beside a change with its interval, the two figures stand without theirs.

    Args:
        changes: The paired differences, as What-if has them.
    """
    alone = before is None
    change = {tile.measure.value: tile.interval for tile in changes}
    quality = "Resolved" if after.replayed.data.binary else "Mean quality"

    def row(label: str, text: Callable[[Side], str], measure: str = "") -> Row:
        first = "" if before is None else text(before)
        return Row(label, first, text(after), change.get(measure, ""))

    return (
        row(quality, lambda one: _share(one, "quality", alone), "quality"),
        row("Quality retention", lambda one: _share(one, "qr", alone), "qr"),
        row("Cost per query", lambda one: _cost(one, "mean_cost_usd", alone), "cost_usd"),
        row("Cost per resolved query", lambda one: _cost(one, "per_resolved_usd", alone)),
        row("Against the best fixed mix", lambda one: difference(one.verdict)),
        row("Result", lambda one: short(one.verdict)),
        *traffic(before, after),
    )


def traffic(before: Side | None, after: Side) -> tuple[Row, ...]:
    """Return the share of each model that gets any, cheapest first, and whether it has outcomes."""
    pools = [one.replayed.data for one in (after, before) if one is not None]
    cost = {i: c for data in pools for i, c in zip(data.pool.ids, data.pool.cost, strict=True)}
    unmeasured = {model for data in pools for model in data.unmeasured}
    shares = [{} if one is None else one.replayed.metrics.shares for one in (before, after)]
    models = sorted(
        (model for model in cost if any(mix.get(model, 0.0) for mix in shares)),
        key=cost.__getitem__,
    )
    lines = []
    for model in models[:_MOST_MODELS]:
        first, then = (mix.get(model, 0.0) for mix in shares)
        points = 100 * (then - first)
        lines.append(
            Row(
                f"Traffic to {model}" + (" (no outcomes)" if model in unmeasured else ""),
                "" if before is None else f"{100 * first:.1f} %",
                f"{100 * then:.1f} %",
                "" if before is None else f"{points:+.1f} points".replace("-", "−"),
            )
        )
    if len(models) > _MOST_MODELS:
        lines.append(Row(f"and {len(models) - _MOST_MODELS} more models", "", ""))
    return tuple(lines)


def unknown_text(after: Side) -> str:
    """Say what nobody has measured; '' where every model that gets traffic has outcomes."""
    shares = after.replayed.metrics.shares
    models = [model for model in after.replayed.data.unmeasured if shares.get(model)]
    if not models:
        return ""
    listed = ", ".join(f"{model} {100 * shares[model]:.1f} %" for model in models)
    return (
        f"{100 * after.replayed.metrics.unknown:.1f} % of the traffic goes to models without "
        f"outcomes on this set ({listed}). Their queries count as unresolved here."
    )


def _share(side: Side, name: str, with_interval: bool) -> str:
    value, interval = percent(getattr(side.replayed.metrics, name))
    if side.replayed.metrics.unknown:
        value = f"≥ {value}"
    return f"{value} ({interval})" if interval and with_interval else value


def _cost(side: Side, name: str, with_interval: bool) -> str:
    cost: Interval = getattr(side.replayed.metrics, name)
    each = name == "per_resolved_usd"
    if each and not cost.known:
        return "–"
    unknown = each and side.replayed.metrics.unknown
    interval = f" ({cost.bounds(usd, ' – ')})" if with_interval else ""
    return f"{'≤ ' if unknown else ''}{usd(cost.value)}{interval}"
