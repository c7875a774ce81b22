"""What Home says beside the result: what HyDRA does, and the traffic of a day."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from hydra_core.base.spelling import usd

if TYPE_CHECKING:
    from hydra_core.live.traffic import Traffic

PURPOSE: Final = (
    "HyDRA sends each message to the cheapest model that can handle it, and measures whether "
    "that beats a fixed mix."
)


def day(traffic: Traffic) -> tuple[str, str]:
    """Requests, cost and failures in one line, the largest shares in another."""
    from hydra_core.live.traffic import uncounted

    n, cost = len(traffic), traffic.rows["cost_usd"].astype(float)
    spent, found = f" · {usd(float(cost.sum()))}" if cost.notna().any() else "", uncounted(traffic)
    if found.unknown:
        spent += f" · about {usd(found.unknown_usd)} more not counted by upstreams"
    failed = 100 * float(np.mean(traffic.rows["status"] == "failed"))
    counts = traffic.models.value_counts()
    mix = ", ".join(f"{name} {100 * k / n:.0f} %" for name, k in counts.head(3).items())
    more = f" and {len(counts) - 3} more" if len(counts) > 3 else ""
    return f"{n:,} requests{spent} · {failed:.1f} % failed", f"{mix}{more}"


def when(at: datetime) -> str:
    """A day, as it stands beside a name: 3 November 2026."""
    return f"{at.astimezone():%-d %B %Y}"
