"""Feedback on decisions: what is read of it, and whose it may be."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from hydra_core.base.errors import AccessError, HydraError, Problem
from hydra_core.decision_log.records import OutcomeRecord
from hydra_core.server.access.decision_ids import DecisionIds
from hydra_core.server.chat import RequestError
from hydra_core.store.roles import Actor, Role

#: Bytes of one outcome.
MOST_BYTES: Final = 100_000
#: Keys of it that are looked at.
_MOST_KEYS: Final = 20


class UnknownDecisionError(HydraError):
    """Feedback on a decision that this service did not make (404)."""


def require_rater(ids: DecisionIds, decision_id: str, actor: Actor, caller: str) -> None:
    """Make sure that a decision is known and that this actor may rate it.

    Args:
        caller: The actor as decisions know it.

    Raises:
        UnknownDecisionError: This service made no such decision.
        AccessError: Somebody else asked for it.
    """
    if not ids.is_ours(decision_id):
        raise UnknownDecisionError(
            "this service made no decision of this id; x-hydra-decision-id has it"
        )
    if actor.role is not Role.PUBLISHER and not ids.is_callers(decision_id, caller):
        raise AccessError("feedback is for whoever asked for the decision, or a publisher")


def read_outcome(found: dict[str, Any], author: str) -> OutcomeRecord:
    """The feedback in a decoded body.

    Raises:
        RequestError: It is not valid; lists what is wrong.
    """
    problems = [
        Problem(name[:60], "is not known", "known: decision_id, quality, source, comment")
        for name in islice(found, _MOST_KEYS)
        if name not in ("decision_id", "quality", "source", "comment")
    ]
    decision_id, quality = found.get("decision_id"), found.get("quality")
    if not isinstance(decision_id, str) or not 0 < len(decision_id) <= 100:
        problems.append(Problem("decision_id", "is missing", "x-hydra-decision-id has it"))
    if isinstance(quality, bool) or not isinstance(quality, int | float) or not 0 <= quality <= 1:
        problems.append(Problem("quality", f"must be a number in [0, 1], got {quality!r:.60}"))
        quality = 0.0
    texts = {name: found.get(name, "") for name in ("source", "comment")}
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > 10_000:
            problems.append(Problem(name, "must be a text of at most 10,000 characters"))
    if problems:
        raise RequestError("request", problems)
    return OutcomeRecord(
        str(decision_id), datetime.now(UTC), float(quality), **texts, author=author
    )
