"""The file of one bundle's scores in an eval set's folder, and what lies in it beside them.

`scores/<fingerprint>.parquet` holds query_id, one column per dimension and, from a bundle with text
vectors, `text.vector` (half precision) and `text.<count>` (`hydra_core/predictor/signals.py`): all
that success heads read of a message, so a set without texts can be learned on. A set that is to be
small holds the vectors' coordinates along their principal directions, which lie in the metadata.
The file is tied to the messages by a digest there: scores of other messages are never used.

Scoring is a job that can be resumed: while it runs, finished rows are appended to
`scores/.<fingerprint>.partial`, and a job that was stopped goes on from there.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hydra_core.base.arrays import read_only
from hydra_core.base.errors import EvalSetError
from hydra_core.base.types import FloatArray, Progress
from hydra_core.base.whole_file import whole_file
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.folders import read_arrow
from hydra_core.outcome_model.heads import Messages
from hydra_core.predictor.signals import COUNTS, CountArray, surface_counts

if TYPE_CHECKING:
    from hydra_core.predictor.bundle import Bundle
    from hydra_core.predictor.onnx_predictor import Predictor

HalfArray = npt.NDArray[np.float16]

_DIGEST_KEY = b"hydra.texts"
_DIRECTIONS_KEY = b"hydra.directions"
_FINGERPRINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MAX_BYTES = 1 << 30
_DIGEST_ROWS = 4_096
_VECTOR = "text.vector"
_COUNT_COLUMNS = tuple(f"text.{name}" for name in COUNTS)
_REMEDY = "score the set again"


@dataclass(frozen=True, slots=True, eq=False)
class TextFacts:
    """What success heads read of each message beside its requirements; read-only.

    Attributes:
        vectors: (n, d) text vectors in half precision.
        counts: (n, 6) what was counted, in the order of `surface.COUNTS`.
    """

    vectors: HalfArray
    counts: CountArray


def score_path(folder: Path, fingerprint: str) -> Path:
    """Where the scores of one bundle lie; EvalSetError where the fingerprint is no plain name."""
    if not _FINGERPRINT.fullmatch(fingerprint):
        raise EvalSetError.of(str(folder), f"{fingerprint!r} is not valid", place="fingerprint")
    return folder / "scores" / f"{fingerprint}.parquet"


def texts_digest(evalset: EvalSet) -> str:
    """SHA-256 (hex) over all that scores depend on: query ids, texts, turns and, where the set has
    them, contexts, in order.

    A set without texts has the ids and turns in it alone.
    """
    digest, spelled = hashlib.sha256(), json.JSONEncoder().encode
    ids = evalset.queries["query_id"].to_numpy(dtype=object)
    texts = evalset.texts
    shown = np.full(evalset.n, None) if texts is None else texts.to_numpy(dtype=object)
    turns, contexts = query_turns(evalset), query_contexts(evalset)
    for start in range(0, evalset.n, _DIGEST_ROWS):
        part = slice(start, start + _DIGEST_ROWS)
        rows = zip(ids[part], shown[part], turns[part], strict=True)
        # [id, text, turn] of every row as JSON; one encoder for all: json.dumps makes one per call
        lines = [f"[{spelled(query)}, {spelled(text)}, {turn}]" for query, text, turn in rows]
        if contexts is not None:
            lines += map(spelled, contexts[part])
        digest.update("".join(lines).encode())
    return digest.hexdigest()


def query_turns(evalset: EvalSet) -> list[int]:
    """(n,) number of each query's turn, 1 where the set does not say."""
    if "turn" not in evalset.queries.columns:
        return [1] * evalset.n
    turns = evalset.queries["turn"].to_numpy(dtype=float, na_value=np.nan)
    return [1 if np.isnan(turn) else int(turn) for turn in turns]


def query_contexts(evalset: EvalSet) -> list[str] | None:
    """(n,) what came before each query, '' for nothing; None where the set does not say."""
    if "context" not in evalset.queries.columns:
        return None
    return evalset.queries["context"].fillna("").astype(str).tolist()


def load_scores(evalset: EvalSet, fingerprint: str) -> FloatArray | None:
    """(n, K) read-only scores by one bundle, rows as in the eval set; None if not scored.

    Raises:
        EvalSetError: The file is damaged, or belongs to other texts.
    """
    path = score_path(evalset.path, fingerprint)
    if not path.is_file():
        return None
    try:
        names = [name for name in pq.read_schema(path).names if not name.startswith("text.")]
        table = _read(evalset, path, names)
        scores: FloatArray = table.to_pandas().drop(columns="query_id").to_numpy(np.float64)
    except (OSError, ValueError, KeyError, OverflowError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error
    bad = ~((scores >= 0) & (scores <= 1))  # true for NaN as well
    if bad.any() or scores.shape[0] != evalset.n:
        raise EvalSetError.of(str(path), "holds scores outside [0, 1]", _REMEDY)
    return read_only(scores)


def load_text_facts(evalset: EvalSet, fingerprint: str) -> TextFacts | None:
    """Text vectors and counts by one bundle, rows as in the eval set; None if there are none.

    Raises:
        EvalSetError: The file is damaged, or belongs to other texts.
    """
    path = score_path(evalset.path, fingerprint)
    if not path.is_file():
        return None
    try:
        if _VECTOR not in pq.read_schema(path).names:
            return None
        table = _read(evalset, path, [_VECTOR, *_COUNT_COLUMNS]).combine_chunks()
        column = table.column(_VECTOR).combine_chunks()
        flat = column.flatten().to_numpy(zero_copy_only=False)
        vectors: HalfArray = flat.astype(np.float16).reshape(len(column), -1)
        directions = (table.schema.metadata or {}).get(_DIRECTIONS_KEY)
        if directions is not None:
            vectors = _whole(vectors, np.frombuffer(directions, dtype="<f2"))
        counts = np.stack([table.column(name).to_numpy() for name in _COUNT_COLUMNS], axis=1)
    except (OSError, ValueError, KeyError, OverflowError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error
    if len(vectors) != evalset.n or not np.isfinite(vectors).all() or (counts < 0).any():
        raise EvalSetError.of(str(path), "holds vectors that are not finite", _REMEDY)
    return TextFacts(read_only(vectors), counts.astype(np.int32))


def messages_of(evalset: EvalSet, fingerprint: str, width: int) -> Messages:
    """What is known of every query of a set, as one bundle has scored it.

    Args:
        width: Of the bundle's text vectors.

    Raises:
        EvalSetError: The set has no vectors of this bundle, or the score file is damaged.
    """
    scores, facts = load_scores(evalset, fingerprint), load_text_facts(evalset, fingerprint)
    if scores is None or facts is None or facts.vectors.shape[1] != width:
        remedy = f"run: hydra-router score {quote(str(evalset.path))}"
        if evalset.texts is None:
            remedy = "this set has no texts: use the bundle that its vectors came from"
        message = f"has no text vectors of the bundle {fingerprint[:12]}"
        raise EvalSetError.of(evalset.name, message, remedy, place="scores")
    return Messages(scores, facts.vectors, facts.counts)


def save_scores(
    evalset: EvalSet,
    fingerprint: str,
    dimensions: Sequence[str],
    requirements: FloatArray,
    facts: TextFacts | None = None,
    *,
    coordinates: int | None = None,
) -> pd.DataFrame:
    """Write the scores of one bundle in one step (temporary file, then rename).

    Args:
        dimensions: (K,) names.
        requirements: (n, K) in [0, 1], rows as in the eval set.
        facts: Text vectors and counts of the same messages.
        coordinates: Keep only so many numbers of each vector, along the principal directions.

    Returns:
        query_id and one column per dimension.

    Raises:
        EvalSetError: Wrong shape, values outside [0, 1], or the folder cannot be written.
    """
    values = np.asarray(requirements, dtype=np.float64)
    path = score_path(evalset.path, fingerprint)
    expected = (evalset.n, len(dimensions))
    if values.shape != expected or not ((values >= 0) & (values <= 1)).all():
        message = f"must be {expected} numbers in [0, 1], got shape {values.shape}"
        raise EvalSetError.of(str(path), message, place="scores")
    frame = pd.DataFrame(values, columns=list(dimensions))
    frame.insert(0, "query_id", evalset.queries["query_id"].to_numpy())
    metadata = {_DIGEST_KEY: texts_digest(evalset).encode()}
    if facts is not None and coordinates is not None:
        kept, directions = _reduced(facts.vectors, coordinates)
        facts = TextFacts(kept, facts.counts)
        metadata[_DIRECTIONS_KEY] = directions.tobytes()
    table = _with_facts(pa.Table.from_pandas(frame, preserve_index=False), facts)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})
    try:
        path.parent.mkdir(exist_ok=True)
        with whole_file(path) as fresh:
            pq.write_table(table, fresh)
    except OSError as error:
        raise unwritable(path, error) from error
    return frame


def unwritable(path: Path, error: OSError) -> EvalSetError:
    reason = error.strerror or str(error)
    return EvalSetError.of(str(path), f"cannot be written: {reason}", "check space and permissions")


def _with_facts(table: pa.Table, facts: TextFacts | None) -> pa.Table:
    if facts is None:
        return table
    flat = pa.array(facts.vectors.astype(np.float16).reshape(-1))
    table = table.append_column(
        _VECTOR, pa.FixedSizeListArray.from_arrays(flat, facts.vectors.shape[1])
    )
    for name, values in zip(_COUNT_COLUMNS, facts.counts.T, strict=True):
        table = table.append_column(name, pa.array(values.astype(np.int32)))
    return table


def _reduced(vectors: HalfArray, count: int) -> tuple[HalfArray, HalfArray]:
    """(n, d) -> (n, count) coordinates, and (1 + count, d) the mean vector and the directions."""
    rows = vectors.astype(np.float64)
    mean = rows.mean(axis=0)
    moved = rows - mean
    directions = np.linalg.eigh(moved.T @ moved)[1][:, ::-1][:, :count]
    kept = (moved @ directions).astype(np.float16)
    return kept, np.concatenate([mean[None], directions.T]).astype(np.float16)


def _whole(kept: HalfArray, directions: HalfArray) -> HalfArray:
    """(n, count), (1 + count, d) flat -> (n, d); equal coordinates give equal vectors."""
    mean, *rest = directions.reshape(1 + kept.shape[1], -1).astype(np.float32)
    found, place = np.unique(kept, axis=0, return_inverse=True)
    vectors: HalfArray = (found.astype(np.float32) @ np.stack(rest) + mean).astype(np.float16)
    return vectors[place.reshape(-1)]


def _read(evalset: EvalSet, path: Path, names: list[str]) -> pa.Table:
    table = read_arrow(path, _MAX_BYTES, names)
    if (table.schema.metadata or {}).get(_DIGEST_KEY, b"").decode() != texts_digest(evalset):
        raise EvalSetError.of(str(path), "holds scores of other texts", _REMEDY)
    return table


def _unreadable(path: Path, error: Exception) -> EvalSetError:
    return EvalSetError.of(str(path), f"cannot be read: {error}", _REMEDY)


#: Queries between two writes to disk.
CHUNK: Final = 256
_Rows = npt.NDArray[np.void]


def is_scored(evalset: EvalSet, bundle: Bundle) -> FloatArray | None:
    """(n, K) scores, where all that this bundle gives lies in the folder already, else None.

    A set without texts counts as scored by what was shipped with it.

    Raises:
        EvalSetError: That is damaged; what a set with texts has is made again instead.
    """
    try:
        found = load_scores(evalset, bundle.fingerprint)
        facts = load_text_facts(evalset, bundle.fingerprint)
    except EvalSetError:
        if evalset.texts is None:
            raise
        return None  # damaged or of other texts: made again
    if found is None or found.shape[1] != len(bundle.dimensions):
        return None
    complete = facts is not None or not bundle.vectors or evalset.texts is None
    return found if complete else None


def score_evalset(
    evalset: EvalSet,
    predictor: Predictor,
    progress: Progress | None = None,
    chunk: int = CHUNK,
) -> pd.DataFrame:
    """Score every query, or return the scores that are there already.

    Text vectors and counts are kept beside the scores where the bundle gives vectors.

    Args:
        evalset: Its folder must be writable unless it is scored.
        progress: Called with (done, n) now and then; an exception it raises stops the job, which
            the next call resumes.

    Returns:
        query_id and one column per dimension, rows as in the eval set.

    Raises:
        EvalSetError: The set has no texts, another process is scoring it, or the folder cannot be
            written.
    """
    facts = predictor.bundle
    found = is_scored(evalset, facts)
    if found is not None:
        if progress is not None:
            progress(evalset.n, evalset.n)
        frame = pd.DataFrame(found, columns=list(facts.dimensions))
        frame.insert(0, "query_id", evalset.queries["query_id"].to_numpy())
        return frame
    if evalset.texts is None:
        remedy = "use the bundle that its scores were made with, or import it with texts"
        raise EvalSetError.of(
            str(evalset.path), "this set has no texts to score", remedy, place="queries: text"
        )
    path = score_path(evalset.path, facts.fingerprint)
    try:
        with _partial(path, evalset, facts) as (stream, done):
            rows = _run(evalset, predictor, stream, done, progress, chunk)
            kept = TextFacts(rows["vector"], rows["counts"]) if facts.vectors else None
            scores = rows["requirements"]
            frame = save_scores(evalset, facts.fingerprint, facts.dimensions, scores, kept)
            _partial_path(path).unlink()
    except OSError as error:
        raise unwritable(path, error) from error
    return frame


def _row_type(facts: Bundle) -> np.dtype[Any]:
    """One finished query in the partial file."""
    fields: list[tuple[str, str, tuple[int]]] = [("requirements", "<f8", (len(facts.dimensions),))]
    if facts.vectors:
        fields += [("vector", "<f2", (facts.vectors,)), ("counts", "<i4", (len(COUNTS),))]
    return np.dtype(fields)


def _run(
    evalset: EvalSet,
    predictor: Predictor,
    stream: IO[bytes],
    done: _Rows,
    progress: Progress | None,
    chunk: int,
) -> _Rows:
    """Score what is not done yet, chunk by chunk, each appended to the partial file."""
    texts, turns = list(evalset.queries["text"]), query_turns(evalset)
    contexts = query_contexts(evalset)
    parts = [done]
    for start in range(len(done), evalset.n, chunk):
        part = slice(start, min(start + chunk, evalset.n))

        def step(count: int, _: int, start: int = start) -> None:
            if progress is not None:
                progress(start + count, evalset.n)

        if progress is not None:
            progress(start, evalset.n)
        before = None if contexts is None else contexts[part]
        found = predictor.predict_batches(
            texts[part], progress=step, turns=turns[part], contexts=before
        )
        rows = np.empty(len(found.requirements), dtype=done.dtype)
        rows["requirements"] = found.requirements
        if found.vectors is not None:
            rows["vector"], rows["counts"] = found.vectors, surface_counts(texts[part])
        parts.append(rows)
        stream.write(rows.tobytes())
        stream.flush()
        os.fsync(stream.fileno())
    if progress is not None:
        progress(evalset.n, evalset.n)
    return np.concatenate(parts)


def _partial_path(path: Path) -> Path:
    return path.with_name(f".{path.stem}.partial")


@contextmanager
def _partial(path: Path, evalset: EvalSet, facts: Bundle) -> Iterator[tuple[IO[bytes], _Rows]]:
    """The locked partial file, at its end, and the rows it holds already."""
    path.parent.mkdir(exist_ok=True)
    kind = _row_type(facts)
    about = {"texts": texts_digest(evalset), "dimensions": list(facts.dimensions)}
    header = json.dumps({**about, "vectors": facts.vectors})
    first = header.encode() + b"\n"
    with _partial_path(path).open("a+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = "another process is scoring this set with this bundle"
            raise EvalSetError.of(str(evalset.path), message, "wait for it") from error
        stream.seek(0)
        body = stream.read() if stream.readline() == first else None
        # a torn row is redone
        whole = 0 if body is None else min(len(body) // kind.itemsize, evalset.n)
        stream.truncate(len(first) + whole * kind.itemsize if body is not None else 0)
        if body is None:
            stream.write(first)
            stream.flush()
        yield stream, np.frombuffer(body or b"", dtype=kind, count=whole).copy()
