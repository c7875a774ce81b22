"""A promise about quality as a catalog states it: the checked block `policy.promise`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promised:
    """At most so far below the best single model, with a confidence.

    Attributes:
        within: How far below it mean quality may lie, in units of quality, in (0, 1).
        confidence: In (0, 1).
        baseline: The best single model.
        floor: Mean quality that the promise allows: the baseline's on those queries less `within`.
        saving: Share of the baseline's cost that is saved.
        queries: Independent queries that it was calibrated on.
        evalset: Name of the eval set.
        calibrated_on: Which predictions the routes came from, in words.
        routes_by: Digest of all that decided the routes; it holds for these alone.
    """

    within: float
    confidence: float
    baseline: str
    floor: float
    saving: float
    queries: int
    evalset: str
    calibrated_on: str
    routes_by: str

    @property
    def claim(self) -> str:
        """What is promised, in words."""
        return (
            f"at most {100 * self.within:g} points below {self.baseline}, with "
            f"{100 * self.confidence:g} % confidence"
        )
