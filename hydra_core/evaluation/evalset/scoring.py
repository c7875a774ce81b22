"""Requirements of an eval set's queries by one predictor bundle: a job that can be resumed.

Scores lie in the eval set's folder under `scores/<fingerprint>.parquet` (query_id and one column
per dimension), tied to the texts by a digest in the file's metadata, so scores of other texts are
never used. While a job runs, finished rows are appended to `scores/.<fingerprint>.partial`; a job
that was stopped goes on from there.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hydra_core.errors import EvalSetError, Problem
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.evalset.format import read_arrow
from hydra_core.types import FloatArray

__all__ = [
    "ScoringPredictor",
    "load_scores",
    "save_scores",
    "score_evalset",
    "score_path",
    "texts_digest",
]

Progress = Callable[[int, int], None]

_DIGEST_KEY = b"hydra.texts"
_FINGERPRINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MAX_BYTES = 1 << 30
_DIGEST_ROWS = 4_096


class _Scored(Protocol):
    @property
    def requirements(self) -> FloatArray:
        """(n, K) in [0, 1]."""
        ...


class _BundleFacts(Protocol):
    @property
    def fingerprint(self) -> str:
        """What identifies the bundle."""
        ...

    @property
    def dimensions(self) -> tuple[str, ...]:
        """(K,) names."""
        ...


class ScoringPredictor(Protocol):
    """What scoring needs of a predictor."""

    @property
    def bundle(self) -> _BundleFacts:
        """The bundle's fingerprint and dimensions."""
        ...

    def predict_batches(
        self,
        texts: Sequence[str],
        batch_size: int = ...,
        progress: Progress | None = None,
        turns: Sequence[int] | None = None,
    ) -> _Scored:
        """Scores of many messages."""
        ...


def score_path(folder: Path, fingerprint: str) -> Path:
    """Where the scores of one bundle lie in an eval set folder.

    Raises:
        EvalSetError: The fingerprint is no plain name.
    """
    if not _FINGERPRINT.fullmatch(fingerprint):
        raise EvalSetError(str(folder), [Problem("fingerprint", f"{fingerprint!r} is not valid")])
    return folder / "scores" / f"{fingerprint}.parquet"


def texts_digest(evalset: EvalSet) -> str:
    """SHA-256 (hex) over all that scores depend on: query ids, texts and turns, in order."""
    digest, spelled = hashlib.sha256(), json.JSONEncoder().encode
    ids, texts = (evalset.queries[name].to_numpy(dtype=object) for name in ("query_id", "text"))
    turns = _turns(evalset)
    for start in range(0, evalset.n, _DIGEST_ROWS):
        part = slice(start, start + _DIGEST_ROWS)
        rows = zip(ids[part], texts[part], turns[part], strict=True)
        # [id, text, turn] of every row as JSON; one encoder for all: json.dumps makes one per call
        lines = [f"[{spelled(query)}, {spelled(text)}, {turn}]" for query, text, turn in rows]
        digest.update("".join(lines).encode())
    return digest.hexdigest()


def _turns(evalset: EvalSet) -> list[int]:
    if "turn" not in evalset.queries.columns:
        return [1] * evalset.n
    turns = evalset.queries["turn"].to_numpy(dtype=float, na_value=np.nan)
    return [1 if np.isnan(turn) else int(turn) for turn in turns]


def load_scores(evalset: EvalSet, fingerprint: str) -> FloatArray | None:
    """(n, K) read-only scores by one bundle, rows as in the eval set; None if not scored.

    Raises:
        EvalSetError: The file is damaged, or belongs to other texts.
    """
    path = score_path(evalset.path, fingerprint)
    if not path.is_file():
        return None
    remedy = "score the set again"
    try:
        table = read_arrow(path, _MAX_BYTES)
        metadata = table.schema.metadata or {}
        frame = table.to_pandas()
        scores: FloatArray = frame.drop(columns="query_id").to_numpy(dtype=np.float64)
    except (OSError, ValueError, KeyError, OverflowError, pa.ArrowException) as error:
        raise EvalSetError(str(path), [Problem("", f"cannot be read: {error}", remedy)]) from error
    if metadata.get(_DIGEST_KEY, b"").decode() != texts_digest(evalset):
        raise EvalSetError(str(path), [Problem("", "holds scores of other texts", remedy)])
    bad = ~((scores >= 0) & (scores <= 1))  # true for NaN as well
    if bad.any() or scores.shape[0] != evalset.n:
        raise EvalSetError(str(path), [Problem("", "holds scores outside [0, 1]", remedy)])
    scores.setflags(write=False)
    return scores


def save_scores(
    evalset: EvalSet, fingerprint: str, dimensions: Sequence[str], requirements: FloatArray
) -> pd.DataFrame:
    """Write the scores of one bundle in one step (temporary file, then rename).

    Args:
        dimensions: (K,) names.
        requirements: (n, K) in [0, 1], rows as in the eval set.

    Raises:
        EvalSetError: Wrong shape, values outside [0, 1], or the folder cannot be written.
    """
    values = np.asarray(requirements, dtype=np.float64)
    path = score_path(evalset.path, fingerprint)
    expected = (evalset.n, len(dimensions))
    if values.shape != expected or not ((values >= 0) & (values <= 1)).all():
        message = f"must be {expected} numbers in [0, 1], got shape {values.shape}"
        raise EvalSetError(str(path), [Problem("scores", message)])
    frame = pd.DataFrame(values, columns=list(dimensions))
    frame.insert(0, "query_id", evalset.queries["query_id"].to_numpy())
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _DIGEST_KEY: texts_digest(evalset).encode()}
    )
    try:
        path.parent.mkdir(exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        pq.write_table(table, fresh)
        os.replace(fresh, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    return frame


def score_evalset(
    evalset: EvalSet,
    predictor: ScoringPredictor,
    progress: Progress | None = None,
    chunk: int = 256,
) -> pd.DataFrame:
    """Score every query, or return the scores that are there already.

    Args:
        evalset: Loaded eval set; its folder must be writable unless it is scored.
        predictor: A loaded bundle.
        progress: Called with (done, n) now and then; an exception it raises stops the job, which
            the next call resumes.
        chunk: Queries between two writes to disk.

    Returns:
        query_id and one column per dimension, rows as in the eval set.

    Raises:
        EvalSetError: Another process is scoring the set, or the folder cannot be written.
    """
    facts = predictor.bundle
    try:
        found = load_scores(evalset, facts.fingerprint)
    except EvalSetError:
        found = None  # damaged or of other texts: made again
    if found is not None and found.shape[1] == len(facts.dimensions):
        if progress is not None:
            progress(evalset.n, evalset.n)
        frame = pd.DataFrame(found, columns=list(facts.dimensions))
        frame.insert(0, "query_id", evalset.queries["query_id"].to_numpy())
        return frame
    path = score_path(evalset.path, facts.fingerprint)
    try:
        with _partial(path, evalset, facts.dimensions) as (stream, done):
            scores = _run(evalset, predictor, stream, done, progress, chunk)
            frame = save_scores(evalset, facts.fingerprint, facts.dimensions, scores)
            _partial_path(path).unlink()
    except OSError as error:
        raise _unwritable(path, error) from error
    return frame


def _run(
    evalset: EvalSet,
    predictor: ScoringPredictor,
    stream: IO[bytes],
    done: FloatArray,
    progress: Progress | None,
    chunk: int,
) -> FloatArray:
    """Score what is not done yet, chunk by chunk, each appended to the partial file."""
    texts, turns = list(evalset.queries["text"]), _turns(evalset)
    parts = [done]
    for start in range(len(done), evalset.n, chunk):
        part = slice(start, min(start + chunk, evalset.n))

        def step(count: int, _: int, start: int = start) -> None:
            if progress is not None:
                progress(start + count, evalset.n)

        if progress is not None:
            progress(start, evalset.n)
        found = predictor.predict_batches(texts[part], progress=step, turns=turns[part])
        parts.append(np.asarray(found.requirements, dtype=np.float64))
        stream.write(parts[-1].astype("<f8").tobytes())
        stream.flush()
        os.fsync(stream.fileno())
    if progress is not None:
        progress(evalset.n, evalset.n)
    return np.concatenate(parts)


def _partial_path(path: Path) -> Path:
    return path.with_name(f".{path.stem}.partial")


@contextmanager
def _partial(
    path: Path, evalset: EvalSet, dimensions: Sequence[str]
) -> Iterator[tuple[IO[bytes], FloatArray]]:
    """The locked partial file, at its end, and the (rows, K) scores it holds already."""
    path.parent.mkdir(exist_ok=True)
    header = json.dumps({"texts": texts_digest(evalset), "dimensions": list(dimensions)})
    first = header.encode() + b"\n"
    with _partial_path(path).open("a+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = "another process is scoring this set with this bundle"
            raise EvalSetError(str(evalset.path), [Problem("", message, "wait for it")]) from error
        stream.seek(0)
        body = stream.read() if stream.readline() == first else None
        row = 8 * len(dimensions)
        whole = 0 if body is None else min(len(body) // row, evalset.n)  # a torn row is redone
        stream.truncate(len(first) + whole * row if body is not None else 0)
        if body is None:
            stream.write(first)
            stream.flush()
        values = np.frombuffer(body or b"", dtype="<f8", count=whole * len(dimensions))
        yield stream, values.astype(np.float64).reshape(whole, len(dimensions))


def _unwritable(path: Path, error: OSError) -> EvalSetError:
    reason = error.strerror or str(error)
    return EvalSetError(
        str(path), [Problem("", f"cannot be written: {reason}", "check space and permissions")]
    )
