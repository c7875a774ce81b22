"""Eval sets: queries with what each model really achieved and cost on them.

On disk an eval set is a folder (schema `hydra.evalset/v1`):

    evalset.yaml        name, origin, licence, synthetic, models, SHA-256 of the parts
    queries.parquet     query_id, language [, text, has_image, conversation_id, turn, group,
                        label_<dimension>]
    outcomes.parquet    query_id, model, quality in [0, 1], cost_usd
                        [, latency_s, tokens, input_tokens, output_tokens, ...]
    scores/<fp>.parquet requirements by the predictor bundle with that fingerprint, text vectors

An outcome that is not known has no row; in memory it is NaN. It is counted and shown, never
imputed. A query counts as resolved by a model when its quality is at least `RESOLVED_AT`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.digests import file_sha256, text_sha256
from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.list_price import ListPrice
from hydra_core.base.types import BoolArray, FloatArray, IntArray
from hydra_core.evalsets.folders import (
    MANIFEST,
    OUTCOMES,
    PARTS,
    QUERIES,
    DependenceAnswer,
    Manifest,
    dump_manifest,
    load_part,
    read_manifest,
    replace_folder,
    require_free,
)
from hydra_core.evalsets.rules import (
    check_outcomes,
    check_queries,
    matrix_problems,
    outcome_matrices,
    outcome_rows,
)

#: How many marks are kept.
SAMPLE: Final = 16
_HEX: Final = 12


def digest_of(ids: Sequence[str], texts: Sequence[str] | None) -> str:
    """SHA-256 (hex) of the queries in any order: their ids, and texts where there are."""
    said = [""] * len(ids) if texts is None else texts
    parts = sorted(f"{name}\0{text}" for name, text in zip(ids, said, strict=True))
    return text_sha256("\0\0".join(parts))


def marks_of(ids: Sequence[str], texts: Sequence[str] | None) -> frozenset[str]:
    """The mark of every query: of its text, or of its id in a set without texts."""
    said = ids if texts is None else (" ".join(text.split()) for text in texts)
    return frozenset(text_sha256(text)[:_HEX] for text in said)


def sample_of(marks: Iterable[str]) -> tuple[str, ...]:
    """The smallest `SAMPLE` marks, in order."""
    return tuple(sorted(marks)[:SAMPLE])


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
    return pd.factorize(numbers)[0]


def clusters_among(
    clusters: Sequence[object] | IntArray | None, rows: IntArray | BoolArray
) -> IntArray | None:
    """The cluster numbers of some rows, in order of appearance; None where there are none."""
    if clusters is None:
        return None
    return pd.factorize(np.asarray(clusters)[rows])[0]


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


#: Quality from which on a query counts as resolved (binary sets: exactly the ones).
RESOLVED_AT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvalSet(Manifest):
    """A loaded eval set; arrays are read-only, rows in the order of `queries`.

    Attributes:
        queries: (n) rows: query_id, language and the optional columns, text among them.
        quality: (n, m) in [0, 1]; NaN where the outcome is missing.
        cost_usd: (n, m) USD per query, >= 0; NaN where it is missing.
        digest: SHA-256 (hex) of evalset.yaml, which holds the digests of the parts.
        extras: Optional (n, m) matrices by name: latency_s, tokens (their sum where that is all
            that is known), input_tokens, output_tokens, cached_input_tokens (part of the input).
    """

    path: Path
    queries: pd.DataFrame
    quality: FloatArray
    cost_usd: FloatArray
    digest: str
    extras: Mapping[str, FloatArray] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of queries."""
        return len(self.queries)

    @property
    def query_ids(self) -> tuple[str, ...]:
        """(n,) query ids."""
        return tuple(self.queries["query_id"])

    @property
    def queries_digest(self) -> str:
        """SHA-256 (hex) of the queries alone, in any order: their ids, and texts where there are.

        Unlike `digest` it stays when the set is renamed, repriced, or its clusters are declared.
        """
        return digest_of(self.query_ids, self._said)

    @property
    def query_marks(self) -> frozenset[str]:
        """A mark of every query, by which a catalog tells queries that it was chosen on."""
        return marks_of(self.query_ids, self._said)

    @property
    def _said(self) -> list[str] | None:
        return None if self.texts is None else self.texts.fillna("").astype(str).tolist()

    @property
    def clusters(self) -> IntArray | None:
        """(n,) cluster number of every query; None when all are independent."""
        return cluster_numbers(self.queries)

    def clusters_at(self, rows: IntArray) -> IntArray | None:
        """(len(rows),) the same for some rows, numbered without gaps."""
        return clusters_among(self.clusters, rows)

    @property
    def texts(self) -> pd.Series | None:
        """(n,) messages; None for a set that came without."""
        return self.queries.get("text")

    def require_texts(self, reader: str) -> pd.Series:
        """(n,) messages, for what cannot do without them.

        Args:
            reader: What reads them, such as "the probe".

        Raises:
            EvalSetError: The set came without texts.
        """
        if self.texts is None:
            raise EvalSetError.of(
                self.name, "this set has no texts", f"{reader} reads them", place="queries: text"
            )
        return self.texts.astype(str)

    def labels(self, dimensions: Sequence[str]) -> FloatArray | None:
        """(n, K) labels in [0, 1]; None where one is missing."""
        columns = [f"label_{name}" for name in dimensions]
        if not set(columns) <= set(self.queries.columns):
            return None
        found = self.queries[columns].to_numpy(np.float64)
        return found if np.isfinite(found).all() else None

    @property
    def resolved(self) -> Mapping[str, int]:
        """Queries resolved per model (quality >= `RESOLVED_AT`)."""
        return self._by_model(np.sum(self.quality >= RESOLVED_AT, axis=0))  # NaN compares false

    @property
    def is_log(self) -> bool:
        """Whether no query has outcomes of two models, so that no models can be compared."""
        return bool((np.isfinite(self.quality).sum(axis=1) < 2).all())

    @property
    def missing_quality(self) -> Mapping[str, int]:
        """Queries without an outcome, per model."""
        return self._by_model(np.isnan(self.quality).sum(axis=0))

    @property
    def missing_cost(self) -> Mapping[str, int]:
        """Queries without a cost, per model."""
        return self._by_model(np.isnan(self.cost_usd).sum(axis=0))

    def mean_cost(self) -> dict[str, float]:
        """Mean realised cost per model over the queries where it is known, USD; NaN if none is."""
        known = np.isfinite(self.cost_usd)
        total = np.where(known, self.cost_usd, 0.0).sum(axis=0)
        count = known.sum(axis=0)
        mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        return dict(zip(self.models, mean.tolist(), strict=True))

    @property
    def costed(self) -> bool:
        """Whether there are costs, or tokens from which costs follow."""
        return "output_tokens" in self.extras or bool(np.isfinite(self.cost_usd).any())

    def _by_model(self, counts: IntArray) -> dict[str, int]:
        return {model: int(count) for model, count in zip(self.models, counts, strict=True)}


def load_evalset(path: Path) -> EvalSet:
    """Load an eval set and check everything about it.

    Raises:
        EvalSetError: Missing or damaged files, broken rules; every problem found is listed.
    """
    manifest, digest = read_manifest(path)
    _verify_parts(path, manifest)
    queries = load_part(path / QUERIES)
    outcomes = load_part(path / OUTCOMES)
    problems = check_queries(queries)
    known = pd.Index(queries.get("query_id", default=[]))
    problems += check_outcomes(outcomes, known, manifest.models)
    EvalSetError.raise_any(str(path), problems)
    matrices = outcome_matrices(outcomes, known, manifest.models)
    return EvalSet(
        **{one.name: getattr(manifest, one.name) for one in fields(manifest)},
        path=path,
        queries=queries,
        quality=matrices.pop("quality"),
        cost_usd=matrices.pop("cost_usd"),
        digest=digest,
        extras=matrices,
    )


def _verify_parts(path: Path, manifest: Manifest) -> None:
    problems = []
    for part in PARTS:
        try:
            found = file_sha256(path / part)
        except OSError as error:
            problems.append(Problem(part, f"cannot be read: {error.strerror}", "import it again"))
            continue
        if found != manifest.parts[part]:
            problems.append(
                Problem(
                    part,
                    f"does not match {MANIFEST}: sha256 {found[:12]}…, "
                    f"expected {manifest.parts[part][:12]}…",
                    "the file was changed or cut off; import it again",
                )
            )
    EvalSetError.raise_any(str(path), problems)


def save_evalset(
    path: Path,
    *,
    name: str,
    queries: pd.DataFrame,
    models: Sequence[str],
    quality: FloatArray,
    cost_usd: FloatArray,
    origin: str = "",
    licence: str = "",
    synthetic: bool = False,
    cost_estimated: bool = False,
    price_notes: str = "",
    extras: Mapping[str, FloatArray] | None = None,
    dependence: DependenceAnswer | None = None,
    prices: Mapping[str, ListPrice] | None = None,
    force: bool = False,
) -> EvalSet:
    """Write an eval set as a whole folder and load it back.

    Args:
        queries: query_id, language and optional columns, text among them; one row per query.
        quality: (n, m) in [0, 1], NaN where missing.
        cost_usd: (n, m) USD >= 0, NaN where missing.
        extras: Further (n, m) matrices, names as in `EXTRA_OUTCOMES`.
        dependence: The answer about dependent queries; None leaves the question open.
        prices: Model id -> list price when the costs were recorded, where it is known.

    Raises:
        EvalSetError: The content breaks a rule, or `path` is taken; nothing was changed.
    """
    matrices = {"quality": quality, "cost_usd": cost_usd, **(extras or {})}
    problems = check_queries(queries) + matrix_problems(len(queries), tuple(models), matrices)
    EvalSetError.raise_any(name, problems)
    require_free(path, force=force)

    written: list[EvalSet] = []

    def fill(folder: Path) -> None:
        queries.reset_index(drop=True).to_parquet(folder / QUERIES, index=False)
        rows = outcome_rows(queries["query_id"], tuple(models), matrices)
        rows.to_parquet(folder / OUTCOMES, index=False)
        manifest = Manifest(
            name=name,
            origin=origin,
            licence=licence,
            synthetic=synthetic,
            cost_estimated=cost_estimated,
            price_notes=price_notes,
            models=tuple(models),
            parts={part: file_sha256(folder / part) for part in PARTS},
            dependence=dependence,
            prices=dict(prices or {}),
        )
        (folder / MANIFEST).write_text(dump_manifest(manifest), encoding="utf-8")
        written.append(load_evalset(folder))  # what we write must pass what we check

    try:
        replace_folder(path, fill, replace=force)
    except OSError as error:
        raise EvalSetError.of(
            str(path), f"cannot be written: {error}", "nothing was changed"
        ) from error
    return replace(written[0], path=path)
