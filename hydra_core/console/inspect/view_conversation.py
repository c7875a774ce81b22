"""The conversations that ship with the console, and what is shown of a played one. No streamlit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from hydra_core.base.reading.plain_yaml import load_plain
from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.base.spelling import short_number, usd
from hydra_core.base.types import StickyMode
from hydra_core.console.inspect import view
from hydra_core.console.inspect.figures import Lane, Stop
from hydra_core.console.numbers import cost_change
from hydra_core.routing.conversations.conversation import Event, Simulation, TurnOutcome
from hydra_core.routing.conversations.messages import Conversation, read_messages

MODES: Mapping[StickyMode, str] = {
    StickyMode.PER_SESSION: "Per session",
    StickyMode.ADAPTIVE: "Adaptive",
    StickyMode.PER_CONTENT: "Per content",
    StickyMode.PER_REQUEST: "Per request",
}
#: What each mode does, in one sentence.
MODE_MEANINGS: Mapping[StickyMode, str] = {
    StickyMode.PER_SESSION: "Per session: the first turn chooses the model. It stays until it is "
    "ruled out or unhealthy, or the history is compacted.",
    StickyMode.ADAPTIVE: "Adaptive: the model stays while its shortfall is within τ plus the "
    "margin (under the value rule: while no other model is worth more than the prompt cache). A "
    "harder turn moves on and pays for the history again.",
    StickyMode.PER_CONTENT: "Per content: the model stays while the earlier messages are exactly "
    "those it has read. No conversation id is needed.",
    StickyMode.PER_REQUEST: "Per request: every turn is routed by itself; no model is kept.",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """A conversation to play, with what happens during it."""

    id: str
    title: str
    note: str
    conversation: Conversation
    images: tuple[int, ...]
    compacted: tuple[int, ...]


@lru_cache(maxsize=1)
def scenes() -> tuple[Scene, ...]:
    """The shipped conversations, in the order of the file."""
    rows: Any = load_plain((SAMPLE_DATA / "conversations.yaml").read_text(encoding="utf-8"))
    return tuple(
        Scene(
            row["id"],
            row["title"],
            row["note"],
            read_messages(row["messages"], row["id"]),
            tuple(row.get("images", ())),
            tuple(row.get("compacted", ())),
        )
        for row in rows
    )


def change(cost: float, afresh: float) -> str:
    """How a cost compares with that of routing every turn afresh, in words."""
    if afresh:
        return cost_change(100 * (cost / afresh - 1))
    return "instead of $0" if cost else "the same"


def lanes(played: Mapping[StickyMode, Simulation], selected: StickyMode) -> tuple[Lane, ...]:
    """One lane per mode."""
    return tuple(
        Lane(MODES[mode], tuple(_stop(turn) for turn in one.turns), mode is selected)
        for mode, one in played.items()
    )


def _stop(turn: TurnOutcome) -> Stop:
    cached = turn.cost is not None and turn.cost.cached
    price = "" if turn.cost is None else f", {usd(turn.cost.cost_usd)}"
    warm = ", history from the cache" if cached else ""
    return Stop(turn.model or "", f"turn {turn.number}: {turn.event.value}{price}{warm}", cached)


def marks(one: Simulation) -> tuple[str, ...]:
    """What happens on each turn: a compaction, an image from there on."""
    lines, before = [], False
    for turn in one.turns:
        parts = ["compacted"] if turn.compacted else []
        if turn.has_image and (not before or turn.compacted):
            parts.append("image")
        before = turn.has_image
        lines.append(", ".join(parts))
    return tuple(lines)


def mode_table(played: Mapping[StickyMode, Simulation]) -> pd.DataFrame:
    """One row per mode: cost, switches, cached share of the input, models, refused turns."""
    rows = []
    for mode, one in played.items():
        models = [turn.model for turn in one.turns if turn.model]
        used = Counter(models).most_common()  # equal ones in the order of their first turn
        rows.append(
            {
                "mode": MODES[mode],
                "cost": one.cost_usd,
                "switches": one.switches,
                "lost": one.lost_usd,
                "cached": 100 * one.cached_tokens / max(one.input_tokens, 1),
                "refused": sum(turn.event is Event.REFUSED for turn in one.turns),
                "models": ", ".join(f"{name} ({count})" for name, count in used),
            }
        )
    return pd.DataFrame(rows)


def alone(kept: TurnOutcome, routed: TurnOutcome) -> str:
    """The model that a kept turn would get by itself, and the shortfall of the kept one."""
    if kept.event is not Event.KEPT or routed.decision is None or not routed.decision.scored:
        return ""
    if routed.model == kept.model or kept.model not in routed.decision.pool.ids:
        return ""
    made = routed.decision
    if made.valuation is not None:
        net = made.valuation.net
        behind = 100 * float(net[made.index] - net[made.pool.ids.index(str(kept.model))])
        return (
            f"By itself this turn would go to {routed.model}; {kept.model} is worth "
            f"{behind:.1f} pp less here (value rule)."
        )
    short = float(made.shortfalls[made.pool.ids.index(str(kept.model))])
    tail = f"; {kept.model} has shortfall {short:.2f} here (τ {short_number(made.tau)})"
    return f"By itself this turn would go to {routed.model}{tail if short > made.tau else ''}."


def cost_order(sims: Sequence[Simulation]) -> tuple[str, ...]:
    """Model ids of the pool, cheapest first; empty when every turn was refused."""
    made = (turn.decision for one in sims for turn in one.turns if turn.decision is not None)
    first = next(made, None)
    return () if first is None else view.cost_order(first)
