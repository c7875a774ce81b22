"""What decides in a policy, how it came about, and on which queries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Chosen", "Rule", "Selection"]


class Rule(StrEnum):
    """What decides a route: profiles against requirements, or predicted success against cost."""

    SHORTFALL = "shortfall"
    VALUE = "value"


class Selection(StrEnum):
    """How the point that is judged came about; only the first two may use a pointwise interval."""

    FIXED = "fixed"
    CROSS_FITTED = "cross_fitted"
    LOOKED = "looked"


@dataclass(frozen=True, slots=True)
class Chosen:
    """On which queries a policy was chosen, and how.

    Attributes:
        queries: Digest of the queries (`EvalSet.queries_digest`): the same for the same queries
            under another name, with other models, prices or clusters.
        evalset: Name that the set had.
        how: Seen with its outcomes (looked), or chosen on one part and measured on another.
        knob_alone: Whether tau (or V) is all that was chosen there, not weights, profiles or pool.
        sample: Marks of some of the queries (`sameness.sample_of`), so that a renamed list or a
            part of it is known again; empty in a catalog from before there were marks.
    """

    queries: str
    evalset: str
    how: Selection
    knob_alone: bool
    sample: tuple[str, ...] = ()
