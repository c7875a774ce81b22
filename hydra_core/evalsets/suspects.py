"""Queries that belong together without saying so: duplicates, translations, repeated attempts.

Intervals count queries as independent unless the set declares clusters. What looks dependent is
offered to the operator as clusters; the answer is kept in the set's manifest, and a verdict on a
set without an accepted answer says so. Three signs are looked at:

- the same text up to case, spaces and punctuation;
- ids that differ by a language or an attempt only (`task12-de`, `task12_try2`);
- text vectors of a predictor bundle (`near_texts`).
"""

import re
import shutil
import unicodedata
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.digests import file_sha256
from hydra_core.base.errors import EvalSetError
from hydra_core.base.types import Float32Array, IntArray, Progress
from hydra_core.evalsets.evalset import (
    CLUSTER,
    EvalSet,
    Pairs,
    cluster_numbers,
    joined,
    load_evalset,
    same_key,
)
from hydra_core.evalsets.folders import (
    ACCEPTED,
    DECLINED,
    MANIFEST,
    NONE_FOUND,
    QUERIES,
    DependenceAnswer,
    dump_manifest,
    read_manifest,
    replace_folder,
    scored_by,
)
from hydra_core.evalsets.scores import (
    HalfArray,
    load_text_facts,
    query_contexts,
    query_turns,
)

#: Cosine from which two texts of one language are near-duplicates, and two of different languages
#: that are each other's nearest are translations (language means taken out).
SAME_LANGUAGE, OTHER_LANGUAGE = 0.95, 0.5
#: With fewer texts of a language their mean is not the language's own part: the mean of all texts
#: is taken out, and translations must be closer.
_FEWEST_FOR_A_MEAN, _OF_FEW = 10, 0.65
_ROWS_PER_BLOCK = 1_024


def near_texts(
    vectors: Float32Array,
    languages: np.typing.NDArray[np.object_],
    progress: Progress | None,
) -> Pairs:
    """Near-duplicates within a language, mutual nearest neighbours across two.

    Args:
        vectors: (n, d) text vectors.
        languages: (n,) language codes.
    """
    unit = _directions(vectors, languages)
    rows_of = {name: np.flatnonzero(languages == name) for name in np.unique(languages)}
    nearest = np.full((len(unit), len(rows_of)), -1)
    left: list[IntArray] = []
    right: list[IntArray] = []
    done = 0
    for own, mine in enumerate(rows_of.values()):
        for begin in range(0, mine.size, _ROWS_PER_BLOCK):
            block = mine[begin : begin + _ROWS_PER_BLOCK]
            for other, theirs in enumerate(rows_of.values()):
                cosine = unit[block] @ unit[theirs].T
                if own == other:
                    at, to = np.nonzero(cosine >= SAME_LANGUAGE)
                    left.append(block[at])
                    right.append(theirs[to])
                else:
                    best = cosine.argmax(axis=1)
                    few = min(mine.size, theirs.size) < _FEWEST_FOR_A_MEAN
                    least = _OF_FEW if few else OTHER_LANGUAGE
                    close = cosine[np.arange(block.size), best] >= least
                    nearest[block[close], other] = theirs[best[close]]
            done += block.size
            if progress is not None:
                progress(done, len(unit))
    own_column = np.searchsorted(list(rows_of), languages)
    across: list[Pairs] = []
    for column in range(len(rows_of)):
        rows = np.flatnonzero(nearest[:, column] >= 0)
        theirs = nearest[rows, column]
        mutual = nearest[theirs, own_column[rows]] == rows
        across.append((rows[mutual], theirs[mutual]))
    ends = [np.concatenate([pair[end] for pair in across]) for end in (0, 1)]
    backed = _backed(ends[0], ends[1], len(unit))
    left.append(backed[0])
    right.append(backed[1])
    return np.concatenate(left), np.concatenate(right)


def _backed(left: IntArray, right: IntArray, n: int) -> Pairs:
    """The pairs (each there in both directions) that a third text backs, or none could."""
    from scipy.sparse import csr_array  # slow to import, and only imports of sets come here

    links = csr_array((np.ones(left.size), (left, right)), shape=(n, n))
    degree = np.bincount(left, minlength=n)
    if not left.size:
        return left, right
    third: IntArray = np.asarray((links @ links)[left, right]).ravel()
    kept = (third > 0) | (np.minimum(degree[left], degree[right]) < 2)
    return left[kept], right[kept]


def _directions(vectors: Float32Array, languages: np.typing.NDArray[np.object_]) -> Float32Array:
    """(n, d) unit vectors with each language's mean taken out, to unit length again."""
    unit = _to_unit(np.asarray(vectors, dtype=np.float32))
    if len(unit) < _FEWEST_FOR_A_MEAN:
        return unit
    whole = unit.mean(axis=0)
    for name in np.unique(languages):
        rows = languages == name
        enough = rows.sum() >= _FEWEST_FOR_A_MEAN
        unit[rows] -= unit[rows].mean(axis=0) if enough else whole
    return _to_unit(unit)


def _to_unit(vectors: Float32Array) -> Float32Array:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Float32Array = vectors / np.maximum(length, 1e-12)
    return result


_ATTEMPT = re.compile(
    r"(?P<base>.+?)(?P<rest>)[-_.:/#@ ]*"
    r"(?:attempt|try|trial|run|sample|rep|repeat|seed|variant)[-_.:# ]?\d{1,3}"
)


class Sign(StrEnum):
    """Why queries are thought to belong together."""

    TEXT = "identical text"
    IDS = "ids that differ by a language or an attempt"
    VECTORS = "texts that mean nearly the same"


@dataclass(frozen=True, slots=True, eq=False)
class Suspects:
    """Groups of queries that look dependent and are not declared as one cluster.

    Attributes:
        groups: Row numbers of each group, the largest first; declared clusters are kept whole.
        signs: Number of groups that each sign has a part in.
        vectors: Whether text vectors were there to look at.
    """

    groups: tuple[IntArray, ...]
    signs: dict[Sign, int]
    vectors: bool

    @property
    def queries(self) -> int:
        return sum(len(rows) for rows in self.groups)

    def __str__(self) -> str:
        if not self.groups:
            return "no two queries look dependent"
        count = len(self.groups)
        found = f"{self.queries} queries form {count} group{'s' if count > 1 else ''}"
        if len(self.signs) == 1:
            return f"{found} of {next(iter(self.signs))}"
        return f"{found}: {', '.join(f'{sign} ({n})' for sign, n in self.signs.items())}"


def look(evalset: EvalSet, progress: Progress | None = None) -> Suspects:
    """Find what looks dependent in a set, with the vectors of a bundle that has scored it.

    Raises:
        EvalSetError: A file of scores is damaged.
    """
    vectors = _vectors_of(evalset)
    found = None if vectors is None else vectors.astype(np.float32)
    return suspects(evalset.queries, found, progress)


def _vectors_of(evalset: EvalSet) -> HalfArray | None:
    """(n, d) text vectors of a bundle that has scored the set, None where none has."""
    kept = (load_text_facts(evalset, name) for name in scored_by(evalset.path))
    facts = next((found for found in kept if found is not None), None)
    return None if facts is None else facts.vectors


def kept_together(evalset: EvalSet, vectors: HalfArray | None = None) -> IntArray:
    """(n,) what is learned from and judged as a whole, in order of appearance.

    The set's clusters, joined where the predictor reads two queries alike: the same text vector,
    or the same text after the same turns where no bundle with vectors has scored the set. Folds
    and intervals of all that is learned from outcomes read this.

    Args:
        vectors: (n, d) text vectors; default those of a bundle that has scored the set.

    Raises:
        EvalSetError: A file of scores is damaged.
    """
    known = _vectors_of(evalset) if vectors is None else vectors
    declared = evalset.clusters
    links = [] if declared is None else [same_key(pd.Series(declared))]
    if known is not None:
        links.append(same_key(pd.Series(vector_numbers(known))))
    elif evalset.texts is not None:
        texts = evalset.texts.fillna("").astype(str).str.strip()
        before = query_contexts(evalset) or [""] * evalset.n
        links.append(
            same_key(pd.Series(list(zip(texts, query_turns(evalset), before, strict=True))))
        )
    return joined(links, evalset.n) if links else np.arange(evalset.n)


def vector_numbers(vectors: HalfArray) -> IntArray:
    """(n, d) -> (n,) number of each vector among the different ones, in an order of their own."""
    width = vectors.dtype.itemsize * vectors.shape[1]
    whole = np.ascontiguousarray(vectors).view(f"V{width}").ravel()
    return np.unique(whole, return_inverse=True)[1].astype(np.intp)


def suspects(
    queries: pd.DataFrame,
    vectors: Float32Array | None = None,
    progress: Progress | None = None,
) -> Suspects:
    """Find what looks dependent.

    Args:
        queries: query_id, language, and where known text, cluster, conversation_id; n rows.
        vectors: (n, d) text vectors, None if the set is not scored by a bundle that has them.
        progress: Called with (done, n) rows while vectors are compared.
    """
    n = len(queries)
    texts = queries.get("text", pd.Series([], dtype=object)).map(normalised)
    found = {Sign.TEXT: same_key(texts), Sign.IDS: _by_id(queries)}
    if vectors is not None:
        found[Sign.VECTORS] = near_texts(vectors, queries["language"].to_numpy(), progress)
    numbers = cluster_numbers(queries)
    declared = np.arange(n) if numbers is None else numbers
    merged = joined([same_key(pd.Series(declared)), *found.values()], n)
    units = pd.Series(declared).groupby(merged).nunique()
    several = units.index[units > 1]
    members = pd.Series(np.arange(n)).groupby(merged)
    groups = [members.get_group(group).to_numpy() for group in several]
    signs = {
        sign: np.unique(merged[left[declared[left] != declared[right]]]).size
        for sign, (left, right) in found.items()
    }
    return Suspects(
        groups=tuple(sorted(groups, key=lambda rows: (-len(rows), rows[0]))),
        signs={sign: count for sign, count in signs.items() if count},
        vectors=vectors is not None,
    )


def answer(evalset: EvalSet, found: Suspects, *, accepted: bool) -> EvalSet:
    """Keep what the operator says to the suspects; accepted groups become declared clusters.

    The folder is replaced as a whole, scores included.

    Raises:
        EvalSetError: It cannot be written; nothing was changed.
    """
    said = (ACCEPTED if accepted else DECLINED) if found.groups else NONE_FOUND
    given = DependenceAnswer(said, len(found.groups), found.queries, found.vectors)

    def fill(folder: Path) -> None:
        shutil.copytree(evalset.path, folder, dirs_exist_ok=True)
        if said == ACCEPTED:
            with_clusters(evalset.queries, found).to_parquet(folder / QUERIES, index=False)
        manifest = read_manifest(folder)[0]
        parts = {**manifest.parts, QUERIES: file_sha256(folder / QUERIES)}
        text = dump_manifest(replace(manifest, parts=parts, dependence=given))
        (folder / MANIFEST).write_text(text, encoding="utf-8")
        load_evalset(folder)  # what we write must pass what we check

    try:
        replace_folder(evalset.path, fill)
    except OSError as error:
        message = f"cannot be written: {error}"
        raise EvalSetError.of(str(evalset.path), message, "nothing was changed") from error
    return load_evalset(evalset.path)


def with_clusters(queries: pd.DataFrame, found: Suspects) -> pd.DataFrame:
    """The query table with the suspected groups declared; each is named after its first query."""
    nothing = pd.Series(np.full(len(queries), None, dtype=object))
    cluster = queries.get(CLUSTER, nothing).reset_index(drop=True).astype(object)
    for rows in found.groups:
        cluster.iloc[rows] = str(queries["query_id"].iloc[rows[0]])
    return queries.assign(**{CLUSTER: cluster.where(cluster.notna(), None).to_numpy()})


def normalised(text: str) -> str:
    """A text without case, punctuation and runs of space (NFKC): equal ones are duplicates."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.translate(_BLANKS).split()) or " ".join(folded.split())


class _Blanks(dict[int, str]):
    """Punctuation, symbols, controls and format marks to a space each; looked up as they occur."""

    def __missing__(self, point: int) -> str:
        kind = unicodedata.category(chr(point))
        blank = kind in {"Cc", "Cf"} or kind[0] in "PSZ"
        self[point] = " " if blank else chr(point)
        return self[point]


_BLANKS: Final = _Blanks()


def _by_id(queries: pd.DataFrame) -> Pairs:
    """Ids with the query's own language at an end, or with a numbered attempt.

    Fewer different tasks than a single one has repeats means that the numbers name the tasks
    (`humaneval_sample_1` to `_164`): nothing is taken from such ids.
    """
    bases: list[str | None] = []
    for text, language in zip(
        queries["query_id"].astype(str), queries["language"].astype(str), strict=True
    ):
        match = _ATTEMPT.fullmatch(text) or _language_at_an_end(language).fullmatch(text)
        bases.append(match and (match["base"] or match["rest"]))
    keys = pd.Series(bases, dtype=object)
    repeats = keys.value_counts()
    return same_key(keys.where(pd.Series(repeats.max() <= repeats.size, index=keys.index)))


@lru_cache(maxsize=256)
def _language_at_an_end(language: str) -> re.Pattern[str]:
    """`task12-pt`, `task12_pt-BR`, `pt/task12`."""
    code, cut = rf"{re.escape(language)}(?:[-_][A-Za-z]{{2,4}})?", "[-_.:/#@ ]"
    return re.compile(rf"(?P<base>.+?){cut}{code}|{code}{cut}(?P<rest>.+)", re.IGNORECASE)
