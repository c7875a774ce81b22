"""Which queries belong together, and what the operator answered about undeclared dependence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hydra_core.base.errors import Problem
from hydra_core.base.types import IntArray

ACCEPTED, DECLINED, NONE_FOUND = "accepted", "declined", "none found"
_ANSWERS = (ACCEPTED, DECLINED, NONE_FOUND)

#: The columns of a query table that declare rows to belong together.
CLUSTER, CONVERSATION = "cluster", "conversation_id"


def cluster_numbers(queries: pd.DataFrame) -> IntArray | None:
    """Number the clusters of a query table in order of appearance, (n,).

    Rows with one cluster or one conversation belong together; a row with neither stands alone.
    None where no row has either. Everything that counts or resamples whole clusters reads this.
    """
    n = len(queries)
    columns = [queries[name] for name in (CLUSTER, CONVERSATION) if name in queries.columns]
    codes = [pd.factorize(column)[0] for column in columns if column.notna().any()]
    if not codes:
        return None
    if len(codes) == 1:
        numbers = np.where(codes[0] < 0, n + np.arange(n), codes[0])
    else:
        numbers = _joined(codes, n)
    clusters: IntArray = pd.factorize(numbers)[0]
    return clusters


def _joined(codes: list[IntArray], n: int) -> IntArray:
    """(n,) number of the connected component of each row; a code of -1 joins nothing."""
    from scipy.sparse import coo_matrix  # slow to import, and few sets have both columns
    from scipy.sparse.csgraph import connected_components

    rows, groups, size = [], [], n
    for one in codes:
        stated = np.flatnonzero(one >= 0)
        rows.append(stated)
        groups.append(size + one[stated])
        size += int(one.max()) + 1
    left, right = np.concatenate(rows), np.concatenate(groups)
    graph = coo_matrix((np.ones(left.size, dtype=bool), (left, right)), shape=(size, size))
    numbers: IntArray = connected_components(graph, directed=False)[1][:n]
    return numbers


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
