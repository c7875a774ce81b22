"""What verbs that call models print about their cost: before the run, and while it goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hydra_core.cli.output import say

if TYPE_CHECKING:
    from hydra_core.lab.labeling.calls import Estimate
    from hydra_core.lab.labeling.ledger import Record
    from hydra_core.lab.labeling.run import Progress


def say_cost(estimate: Estimate, record: Record, budget_usd: float) -> None:
    """Print the calls to make, what they can cost at most, and what is spent."""
    calls = ", ".join(f"{count:,} {stage}" for stage, count in estimate.calls.items()) or "none"
    usd = estimate.about_usd
    about = "" if usd is None else f", about ${usd:.2f} judging by the calls so far"
    say(f"calls still to make: {calls}; at most ${estimate.most_usd:.2f}{about}; "
        f"committed ${record.committed_usd:.2f} of ${budget_usd:g}")  # fmt: skip


@contextmanager
def spending_bar(total: int, unit: str) -> Iterator[Callable[[Progress], None]]:
    """A progress bar on stderr with the money spent and what was set aside."""
    from tqdm import tqdm

    with tqdm(total=total, unit=unit, file=sys.stderr, mininterval=0.5) as bar:

        def step(progress: Progress) -> None:
            aside = f", {progress.aside} set aside" if progress.aside else ""
            bar.set_postfix_str(f"${progress.spent_usd:.2f}{aside}", refresh=False)
            bar.update(progress.done - bar.n)

        yield step
