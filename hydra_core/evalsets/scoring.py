"""Requirements of an eval set's queries by one predictor bundle: a job that can be resumed.

What it writes is described in `score_files.py`. While a job runs, finished rows are appended to
`scores/.<fingerprint>.partial`; a job that was stopped goes on from there.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hydra_core.base.errors import EvalSetError
from hydra_core.base.types import FloatArray, Progress
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.score_files import (
    TextFacts,
    load_scores,
    load_text_facts,
    query_contexts,
    query_turns,
    save_scores,
    score_path,
    texts_digest,
    unwritable,
)
from hydra_core.predictor.signals import COUNTS, surface_counts

if TYPE_CHECKING:
    from hydra_core.predictor.bundle import Bundle
    from hydra_core.predictor.onnx_predictor import Predictor

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
