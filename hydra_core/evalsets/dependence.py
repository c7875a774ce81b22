"""Which queries belong together, and what the operator answered about undeclared dependence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hydra_core.base.errors import Problem
from hydra_core.base.types import IntArray

ACCEPTED, DECLINED, NONE_FOUND = "accepted", "declined", "none found"
_ANSWERS = (ACCEPTED, DECLINED, NONE_FOUND)

#: Row numbers of the two ends of every link.
Pairs = tuple[IntArray, IntArray]
#: The columns of a query table that declare rows to belong together.
CLUSTER, CONVERSATION = "cluster", "conversation_id"


def cluster_numbers(queries: pd.DataFrame) -> IntArray | None:
    """Number the clusters of a query table in order of appearance, (n,).

    Rows with one cluster or one conversation belong together; a row with neither stands alone.
    None where no row has either. Everything that counts or resamples whole clusters reads this.
    """
    n = len(queries)
    named = [queries[name] for name in (CLUSTER, CONVERSATION) if name in queries.columns]
    columns = [column for column in named if column.notna().any()]
    if not columns:
        return None
    if len(columns) == 1:
        codes = pd.factorize(columns[0])[0]
        numbers = np.where(codes < 0, n + np.arange(n), codes)
    else:
        numbers = joined(map(same_key, columns), n)
    clusters: IntArray = pd.factorize(numbers)[0]
    return clusters


def same_key(keys: pd.Series) -> Pairs:
    """Every row with its key's first row; rows without a key stand alone."""
    codes = pd.factorize(keys)[0]
    rows = np.flatnonzero(codes >= 0)
    first = np.full(codes.max(initial=-1) + 1, -1)
    first[codes[rows[::-1]]] = rows[::-1]
    return rows, first[codes[rows]]


def joined(links: Iterable[Pairs], n: int) -> IntArray:
    """(n,) number of the connected component of each row."""
    from scipy.sparse import coo_matrix  # slow to import, and few sets have both columns
    from scipy.sparse.csgraph import connected_components

    left, right = (np.concatenate(ends) for ends in zip(*links, strict=True))
    graph = coo_matrix((np.ones(left.size, dtype=bool), (left, right)), shape=(n, n))
    labels: IntArray = connected_components(graph, directed=False)[1].astype(np.intp)
    return labels


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
            "This set has not been checked for dependent queries (translations, near-duplicates). "
            "If it has any, the interval is too narrow."
        )
    if given.answer != DECLINED:
        return ""
    return (
        f"{given.queries:,} queries form {given.groups:,} groups of translations or "
        "near-duplicates, and the operator declined to count each group as one. If they belong "
        "together, the interval is too narrow."
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
