"""What Robustness shows of an attack, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import titled
from hydra_core.console.figures.intervals import IntervalsView, Series
from hydra_core.lab.robustness.attack import Attacked
from hydra_core.lab.robustness.findings import EVERYONE, AttackRow, Exchange, Findings, FlipRow
from hydra_core.predictor.languages import LANGUAGES

#: From this share of successful attacks or re-routed messages on, the page warns.
BOUND: Final = 0.05

_MOST = 2_000
_COLUMNS = ["message", "family", "wording", "ignored", "distance", "before", "after", "success"]
_FAMILIES = {
    "keywords": "Keywords of difficulty",
    "concerns": "Concerns",
    "role": "A claimed role",
    "jargon": "Jargon",
    "assertion": "A bare assertion",
    "authority": "An authority's word",
    "stakes": "High stakes",
    "effort": "A plea for effort",
}


def family_name(family: str) -> str:
    """A family of suffixes in words."""
    return _FAMILIES.get(family, titled(family))


def headline(found: Findings) -> tuple[str, str, str]:
    """(tone, title, text): success only where neither attacks nor harmless changes move a route."""
    own, flip = found.overall(localised=True), worst_change(found)
    moved = (
        f"The worst harmless change ({flip.change}) sends {_percent(flip.rate)} of the messages to "
        "another model."
        if flip.rate.value > 0
        else f"No harmless change moved any of the {flip.n:,} messages."
    )
    if not found.cheap:
        text = (
            f"All {found.n:,} messages go to the two most expensive models anyway. Turn the knob "
            "to see what a claim of difficulty would change."
        )
        return "info", "Nothing to attack here", f"{text} {moved}" if flip.rate.value > 0 else text
    text = (
        f"{_percent(own.success)} of {own.n:,} attacks on {found.cheap:,} messages led to one of "
        f"the two most expensive models. {moved}"
    )
    if own.success.lo > BOUND:
        return "warning", "Claims of difficulty lead to expensive models", text
    if flip.rate.lo > BOUND:
        return "warning", "Harmless changes of the text change the model", text
    if max(own.success.hi, flip.rate.hi) < BOUND:
        return "success", "Claims of difficulty and harmless changes rarely change the model", text
    return "info", "Too few messages to call this router robust", text


def worst_change(found: Findings) -> FlipRow:
    """The harmless change that moves most messages to another model."""
    return max(found.flips, key=lambda one: np.nan_to_num(one.rate.value))


def families_view(found: Findings) -> IntervalsView:
    """Share of attacks that succeed, by family; suffixes in the message's language and English."""
    return _attacks_view(
        [row for row in found.attacks if row.group == EVERYONE],
        lambda row: "All families" if row.family == EVERYONE else family_name(row.family),
        "Attacks that lead to an expensive model",
    )


def languages_view(found: Findings) -> IntervalsView:
    """The same by language, all families together."""
    return _attacks_view(
        found.languages,
        lambda row: f"{LANGUAGES[row.group].name} ({row.n:,})",
        "Attacks that lead to an expensive model, all families",
    )


def _attacks_view(
    rows: Sequence[AttackRow], name: Callable[[AttackRow], str], title: str
) -> IntervalsView:
    own, english = ([row for row in rows if row.localised == mine] for mine in (True, False))
    series = (
        Series.of(text, [row.success for row in some], tone, scale=100.0)
        for text, some, tone in (("Own language", own, "accent"), ("English", english, "ghost"))
    )
    return IntervalsView(tuple(map(name, own)), tuple(series), title, unit=" %")


def slips_view(found: Findings) -> IntervalsView:
    """Share of messages that a harmless change sends to another model."""
    rates = [flip.rate for flip in found.flips]
    return IntervalsView(
        tuple(flip.change.capitalize() for flip in found.flips),
        (Series.of("Another model", rates, scale=100.0),),
        "Messages sent to another model",
        unit=" %",
    )


def exchange_table(exchanges: Sequence[Exchange]) -> pd.DataFrame:
    """One row an attack: message with suffix, what was not scored, models before and after."""
    return pd.DataFrame(
        [
            {
                "message": one.text,
                "family": family_name(one.family),
                "wording": "own language" if one.localised else "English",
                "ignored": one.ignored,
                "distance": one.distance,
                "before": one.before,
                "after": one.after,
                "success": one.won,
            }
            for one in exchanges[:_MOST]
        ],
        columns=_COLUMNS,
    )


def unusual_text(found: Attacked) -> str:
    """How many messages are unlike the training messages; '' where the bundle cannot say."""
    reads = [attack.read for attack in found.attacks]
    distances = np.concatenate([read.distances for read in reads] or [np.empty(0)])
    if np.isnan(found.clean.distances).any() or not distances.size:
        return ""
    shares = ((far > 1.0).mean() for far in (found.clean.distances, distances))
    clean, attacked = (f"{100 * share:.1f} %" for share in shares)
    return (
        f"{clean} of these messages are unlike the predictor's training messages, and {attacked} "
        "of them with a suffix. The receipt records this; it changes no route."
    )


def _percent(rate: Interval) -> str:
    return f"{100 * rate.value:.1f} % ({100 * rate.lo:.1f} to {100 * rate.hi:.1f})"
