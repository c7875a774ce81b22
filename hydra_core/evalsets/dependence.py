"""What an operator answered about queries that depend on each other without saying so."""

from __future__ import annotations

from dataclasses import dataclass

from hydra_core.base.errors import Problem

ACCEPTED, DECLINED, NONE_FOUND = "accepted", "declined", "none found"
_ANSWERS = (ACCEPTED, DECLINED, NONE_FOUND)


@dataclass(frozen=True, slots=True)
class DependenceAnswer:
    """What was found when dependent queries were looked for, and what the operator said to it.

    Attributes:
        answer: accepted (declared as clusters), declined, or none found.
        groups, queries: What was found, beyond the clusters declared before.
        vectors: Whether texts were compared by their vectors, not only by ids and wording.
    """

    answer: str
    groups: int = 0
    queries: int = 0
    vectors: bool = False


def dependence_note(given: DependenceAnswer | None) -> str:
    """What every verdict on a set must say; empty where nothing is left open."""
    if given is None:
        return (
            "Nobody has looked for dependent queries (translations, near-duplicates) in this set: "
            "if there are any, the interval is too narrow."
        )
    if given.answer != DECLINED:
        return ""
    return (
        f"{given.queries:,} queries look like {given.groups:,} groups of translations or "
        "near-duplicates and were declined as clusters: if they do belong together, the interval "
        "is too narrow."
    )


def dependence_problems(given: object) -> list[Problem]:
    """Every problem with the `dependence` of a manifest."""
    if given is None:
        return []
    remedy = "look for dependent queries again"
    if not isinstance(given, dict) or given.get("answer") not in _ANSWERS:
        return [Problem("dependence", f"must have an answer of {', '.join(_ANSWERS)}", remedy)]
    kinds = {"answer": str, "groups": int, "queries": int, "vectors": bool}
    return [
        Problem(f"dependence: {key}", f"is not valid: {value!r:.40}", remedy)
        for key, value in given.items()
        if type(value) is not kinds.get(key) or (isinstance(value, int) and value < 0)
    ]
