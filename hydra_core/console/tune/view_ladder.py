"""Tune, Learned: the sources of a route side by side, as plain values. No streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra_core.base.spelling import signed
from hydra_core.base.types import LEVEL_DIMENSION, Catalog, Rule, SuccessSource
from hydra_core.choosing.lift import ends
from hydra_core.choosing.sources.ladder import Ladder
from hydra_core.choosing.sources.rungs import COUPLING, NEEDS, Kind, Rung
from hydra_core.console.figures.intervals import IntervalsView, Series

NAMES: Final = {
    Kind.BENCHMARKS: "Benchmark profiles",
    Kind.PROFILES: "Fitted profiles",
    Kind.SUCCESS: "Success profiles",
    Kind.HEADS: "Success heads",
}
_RULES: Final = {
    Kind.BENCHMARKS: "shortfall rule, Algorithm 1",
    Kind.PROFILES: "shortfall rule, with a level",
    Kind.SUCCESS: "value rule, in the YAML",
    Kind.HEADS: "value rule, an outcome model",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One source of the table.

    Attributes:
        rule: How it routes, in a few words.
        lift: Mean lift with its interval; a dash where it is not known.
        advice: Whether to use it, in a few words.
        use: Whether it is the one to use.
    """

    kind: Kind
    name: str
    rule: str
    lift: str
    needs: str
    coupling: str
    advice: str
    use: bool


def rows(found: Ladder) -> tuple[Row, ...]:
    """Every source, the one that needs least first; heads also where they are not learned yet."""
    return tuple(_row(kind, found.rung(kind), found.recommended is kind) for kind in Kind)


def _row(kind: Kind, rung: Rung | None, use: bool) -> Row:
    advice = "Not learned yet" if rung is None else rung.reason.partition(":")[0].rstrip(".")
    return Row(
        kind, NAMES[kind], _RULES[kind], _lift(rung), _sentence(NEEDS[kind]),
        _sentence(COUPLING[kind].partition(": ")[2]), advice, use,
    )  # fmt: skip


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lift(rung: Rung | None) -> str:
    if rung is None or rung.lift is None:
        return "–"
    mean = rung.lift.mean.scaled(100.0)
    return f"{signed(mean.value)} pp [{signed(mean.lo)}, {signed(mean.hi)}]"


def headline(found: Ladder) -> tuple[bool, str, str]:
    """Whether a source is worth it, a title, a sentence."""
    title, _, sentence = found.reason.partition(": ")
    return found.recommended is not None, title, sentence[:1].upper() + sentence[1:]


def lifts_view(found: Ladder) -> IntervalsView:
    """The mean lift of every source with its interval."""
    known = [one for one in found.rungs if one.lift is not None]
    low, high = (np.array(values) for values in zip(*map(_ends, known), strict=True))
    value = np.array([0.0 if one.lift is None else 100 * one.lift.mean.value for one in known])
    return IntervalsView(
        tuple(NAMES[one.kind] for one in known),
        (Series("Lift", value, low, high),),
        "Quality above fixed mixes at equal cost, percentage points",
        format="+.1f",
        unit=" pp",
        lines=((0.0, "as a fixed mix"),),
    )


def _ends(rung: Rung) -> tuple[float, float]:
    assert rung.lift is not None
    low, high = (np.nan if end is None else 100.0 * end for end in ends(rung.lift.mean))
    return low, high


def in_force(catalog: Catalog) -> Kind:
    """The source that a catalog routes by."""
    if catalog.policy.rule is Rule.VALUE:
        by_heads = catalog.success_source is SuccessSource.OUTCOME_MODEL
        return Kind.HEADS if by_heads else Kind.SUCCESS
    return Kind.PROFILES if LEVEL_DIMENSION in catalog.dimensions else Kind.BENCHMARKS


def about_groups(found: Ladder) -> bool:
    """Whether some gain comes from telling the set's groups apart."""
    return any(one.check is not None and one.check.sentence for one in found.rungs)


def findings(found: Ladder, most: int = 5) -> Sequence[str]:
    """Outcomes of the set that look wrong, in words."""
    return [one.text for one in found.findings[:most]]
