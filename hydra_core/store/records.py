"""What the store keeps, as frozen values, and the error that names who was first."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from hydra_core.base.errors import ConflictError
from hydra_core.base.types import Rule


@dataclass(frozen=True, slots=True)
class Revision:
    """One published state of a catalog; never changed afterwards.

    Attributes:
        catalog: The store's name for the catalog (not the `name` inside the YAML, which an
            operator may edit).
        number: 1, 2, 3, ... without a gap.
        digest: SHA-256 (hex) of `yaml`.
        parent: The revision it was edited from, None for the first.
        restores: The earlier revision whose text this one brings back, None otherwise.
        metrics: What the console showed at publish, as plain JSON values.
        bundle_fingerprint: The predictor bundle its bands belong to.
    """

    catalog: str
    number: int
    yaml: str
    digest: str
    parent: int | None
    restores: int | None
    author: str
    note: str
    created_at: datetime
    metrics: Mapping[str, Any]
    bundle_fingerprint: str


@dataclass(frozen=True, slots=True)
class Draft:
    """One person's unpublished edits of one catalog, with undo and redo.

    Attributes:
        base_revision: The revision it started from; 0: the catalog was never published.
        texts: The states that undo and redo walk through, oldest first, at least one.
        position: Index of the current state.
        version: Counts writes; a write with an older one is refused.
    """

    catalog: str
    author: str
    base_revision: int
    texts: tuple[str, ...]
    position: int
    version: int
    updated_at: datetime

    @property
    def text(self) -> str:
        """The current YAML text."""
        return self.texts[self.position]

    @property
    def can_undo(self) -> bool:
        """Whether there is an earlier state."""
        return self.position > 0

    @property
    def can_redo(self) -> bool:
        """Whether there is a later state."""
        return self.position + 1 < len(self.texts)


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A pinned policy on one revision, and what it measured.

    Attributes:
        weights: (K,) stored weights; with tau of no effect under the value rule.
        value_usd: V in USD; None where the policy had none.
    """

    catalog: str
    name: str
    revision: int
    evalset_digest: str
    tau: float
    weights: tuple[float, ...]
    metrics: Mapping[str, Any]
    author: str
    created_at: datetime
    rule: Rule = Rule.SHORTFALL
    value_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody wrote about one query of an eval set."""

    id: int
    evalset_digest: str
    query_id: str
    text: str
    author: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Sample:
    """Queries of an eval set drawn for people to rate.

    Attributes:
        evalset: Its key; `evalset_digest` is of the set they were drawn from.
        dimensions: (K,) what is rated.
    """

    name: str
    evalset: str
    evalset_digest: str
    dimensions: tuple[str, ...]
    query_ids: tuple[str, ...]
    author: str
    created_at: datetime


class RatingState(StrEnum):
    """Rated, passed over, or taken back."""

    RATED = "rated"
    SKIPPED = "skipped"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class Rating:
    """What one rater said of one query: a score from 1 to 5 for each dimension of the sample."""

    sample: str
    query_id: str
    rater: str
    state: RatingState
    scores: tuple[float, ...]
    note: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One write: who, when, what, why, from which revision, with which metrics.

    Attributes:
        metrics: What was measured, or `before` and `after` where something was replaced.
        previous: Digest of the record before, '' for the first.
        digest: SHA-256 (hex) of this record.
    """

    id: int
    at: datetime
    actor: str
    role: str
    action: str
    subject: str
    catalog: str | None
    revision: int | None
    from_revision: int | None
    reason: str
    metrics: Mapping[str, Any]
    previous: str
    digest: str


class NewerRevisionError(ConflictError):
    """Somebody published (`newest`) after the revision that was edited."""

    def __init__(self, newest: Revision, base_revision: int) -> None:
        self.newest = newest
        self.base_revision = base_revision
        when = f"{newest.created_at:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(
            f"{newest.catalog}: you edited revision {base_revision or '(none)'}, but "
            f"{newest.author} published revision {newest.number} at {when}. Nothing was changed; "
            "compare the two, merge and publish again"
        )
