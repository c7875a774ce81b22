"""The capability requirement predictor at run time (paper section "Capability Requirement
Predictor"): message -> signal prefix + message -> tokens -> ONNX graph -> (K,) requirements.

Scoring many equals scoring one, to the last bit. A dynamically quantised graph takes one activation
scale per *batch*, so every message is its own run, unpadded, and messages are spread over the cores
(`benchmarks/speed/predictor.py` prints what padded batches would gain). The tokenizer is taken
directly: importing transformers alone costs 1.1 to 2.4 s of the 2.5 s that a cold start may take.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import numpy as np

from hydra_core.base.errors import BundleError, Problem
from hydra_core.base.types import BoolArray, Float32Array, FloatArray, IntArray, Progress
from hydra_core.predictor.bundle import Bundle, load_bundle
from hydra_core.predictor.graph import Graph, GraphRun
from hydra_core.predictor.languages import script_of
from hydra_core.predictor.reference import open_reference
from hydra_core.predictor.tokens import CHARS_PER_TOKEN, model_text, open_tokenizer, shorten

#: Claims taken off the end of one message, one after the other.
MOST_CLAIMS = 3

#: Mean logit from which a tail counts as a claim, and the fewest tokens that can be one. Of several
#: tails that count, the one with the largest sum is taken: the likeliest place where it begins.
_THRESHOLD = 0.0
_FEWEST_TOKENS = 6
_BOUND = 6.0

#: Mean logit below which the first words of a claim's sentence are taken for the request.
_REQUEST = -2.5

#: Where a claim may begin: after blanks or punctuation, or at a bracket.
_CUT = re.compile(r"(?<=[\s.。!！?？;；:：)\]】»\"”*>-])(?=\S)|(?=[\[(<])")
_SENTENCE = re.compile(r"(?:[.!?؟]+[\s\"”»)]*\s|[。！？]|\n)\s*")


def claim_start(text: str, offsets: Sequence[tuple[int, int]], logits: FloatArray) -> int | None:
    """Where a trailing claim of difficulty begins, None where there is none.

    Args:
        offsets: (t,) characters of each token in `text`; empty or negative ones are no part of it.
        logits: (t,) claim logit of each token.

    Returns:
        A position > 0 with something other than blanks before it.
    """
    ends = np.array([end if end > max(start, 0) else -1 for start, end in offsets])
    inside = ends > 0
    bounded = np.where(inside, np.clip(logits, -_BOUND, _BOUND), 0.0)
    if bounded.max(initial=0.0) <= _THRESHOLD:
        return None
    sums = np.cumsum(bounded[::-1])[::-1]
    counts = np.cumsum(inside[::-1], dtype=np.intp)[::-1]
    furthest = np.maximum.accumulate(ends)
    best, found = 0.0, None
    for match in _CUT.finditer(text):
        first = int(np.searchsorted(furthest, match.start(), side="right"))
        if first >= len(counts) or counts[first] < _FEWEST_TOKENS:
            break
        claimed = sums[first] > _THRESHOLD * counts[first]
        if claimed and sums[first] > best and text[: match.start()].strip():
            best, found = sums[first], match.start()
    return None if found is None else _sentence_start(text, found, furthest, sums, counts)


def _sentence_start(
    text: str, found: int, furthest: IntArray, sums: FloatArray, counts: IntArray
) -> int:
    """The start of the sentence that `found` stands in, unless its first words are the request."""
    starts = [match.end() for match in _SENTENCE.finditer(text, 0, found) if match.end() > 0]
    if not starts or not text[: starts[-1]].strip():
        return found
    here, there = np.searchsorted(furthest, [starts[-1], found], side="right")
    tokens = counts[here] - counts[there]
    between = sums[here] - sums[there]
    return starts[-1] if tokens and between > _REQUEST * tokens else found


_Row = tuple[FloatArray, int, bool, int, Float32Array, float]
_Run = tuple[GraphRun, int, bool, int | None]
#: Message, turn and context.
_Asked = tuple[str, int, str]
#: What was run of messages once a claim was cut off them.
Runs = dict[_Asked, _Run]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Scores of n messages; the arrays are read-only.

    Attributes:
        requirements: (n, K) in [0, 1], dimension order of the bundle.
        tokens: (n,) tokens seen by the model, special tokens and prefix included.
        truncated: (n,) whether a part of the message was not seen.
        ignored: (n,) characters at the end that were not scored because they only claim that the
            request is difficult; None where the bundle does not look for such claims.
        vectors: (n, d) text vectors of the same runs, d as in the bundle; None where it has none.
        distances: (n,) how far from the messages it was trained on, see `reference.py`: above 1 a
            message is unlike them; None where the bundle has nothing to compare with.
    """

    requirements: FloatArray
    tokens: IntArray
    truncated: BoolArray
    ignored: IntArray | None = None
    vectors: Float32Array | None = None
    distances: FloatArray | None = None


class Predictor:
    """A loaded bundle. Safe to share between threads; holds no state between calls.

    Args:
        threads: Threads inside one run; more than 1 shortens one long message's latency, and
            competes with the cores that `predict_batches` uses.
        prefix: False leaves the signal prefix out, to measure what it is worth.

    Raises:
        BundleError: The graph or the tokenizer cannot be opened, or they do not fit the bundle.
    """

    def __init__(self, bundle: Bundle, threads: int = 1, *, prefix: bool = True) -> None:
        self.bundle = bundle
        self._prefix = prefix
        self._tokenizer = open_tokenizer(bundle)
        self._graph = Graph(bundle, threads)
        self.reference = open_reference(bundle)
        self._score(("probe", 1, ""))

    def predict(
        self,
        texts: Sequence[str],
        turns: Sequence[int] | None = None,
        contexts: Sequence[str] | None = None,
    ) -> Prediction:
        """Score messages one after the other.

        Args:
            texts: (n,) current user messages, any strings; an empty one has scores too.
            turns: (n,) the number of each user turn in its conversation, from 1; None: all 1.
            contexts: (n,) what came before each, '' for nothing; None: nothing. A bundle that does
                not read it scores the message alone (`routing/conversations/context.py`).
        """
        return self._gather([self._score(one) for one in self._asked(texts, turns, contexts)])

    def predict_batches(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        progress: Progress | None = None,
        turns: Sequence[int] | None = None,
        workers: int | None = None,
        runs: Runs | None = None,
        contexts: Sequence[str] | None = None,
    ) -> Prediction:
        """Score many messages on all cores; the result is exactly that of `predict`.

        Args:
            texts: (n,) messages; equal ones are scored once.
            batch_size: Most messages of similar length that one worker takes at a time.
            progress: Called with (done, n) in the calling thread after each batch; what it raises
                stops the work.
            turns: As in `predict`.
            workers: Threads; None for one per core this process may use.
            runs: Filled and read: what is left of a message without its claim is run once over
                all calls that share it, for probes that attack the same messages many times.
            contexts: As in `predict`.
        """
        known: Runs = {} if runs is None else runs
        asked = self._asked(texts, turns, contexts)
        unique = sorted(set(asked), key=lambda one: (-len(one[0]), one))
        count = workers or cores()
        size = max(1, min(batch_size, -(-len(unique) // (count * 8))))
        batches = [unique[start : start + size] for start in range(0, len(unique), size)]
        pool = ThreadPoolExecutor(count, thread_name_prefix="predictor")
        try:
            score = partial(self._score, known=known)
            futures = {pool.submit(list, map(score, batch)): batch for batch in batches}
            rows: dict[_Asked, _Row] = {}
            for future in as_completed(futures):
                rows.update(zip(futures[future], future.result(), strict=True))
                if progress:
                    progress(len(rows) * len(asked) // len(unique), len(asked))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return self._gather([rows[one] for one in asked])

    def _asked(
        self, texts: Sequence[str], turns: Sequence[int] | None, contexts: Sequence[str] | None
    ) -> list[_Asked]:
        if isinstance(texts, str):
            raise TypeError("texts must be a sequence of messages, not one message")
        read = contexts if contexts and self.bundle.conversation else [""] * len(texts)
        return list(zip(texts, turns or [1] * len(texts), read, strict=True))

    def _score(self, asked: _Asked, known: Runs | None = None) -> _Row:
        """(K,) requirements, tokens, truncated, characters ignored, (d,) vector, its distance."""
        text, turn, context = asked
        shown, rest = text, {} if known is None else known
        found, tokens, truncated, start = rest.get(asked) or self._run(asked)
        for _ in range(MOST_CLAIMS):
            if start is None:
                break
            shown = shown[:start].rstrip()
            left = (shown, turn, context)
            if left not in rest:
                rest[left] = self._run(left)
            found, tokens, truncated, start = rest[left]
        ignored = len(text) - len(shown)
        # One by one, as in a route: a product over many rows may round otherwise.
        far = 0.0 if self.reference is None else self.reference.distance(found.vector)
        return self._calibrated(found.scores, shown), tokens, truncated, ignored, found.vector, far

    def _run(self, asked: _Asked) -> _Run:
        """What the graph says, tokens, truncated, and where a trailing claim begins."""
        (text, turn, context), cap = asked, self.bundle.max_tokens
        before = self.bundle.before
        whole = model_text(text, turn, cap, before, prefix=self._prefix, context=context)
        encoding = self._tokenizer.encode(whole)
        ids = shorten(encoding.ids, cap)
        found = self._graph.run(ids)
        start = None
        truncated = len(encoding.ids) > cap or len(text) > cap * CHARS_PER_TOKEN
        if found.claims is not None and whole.endswith(text):
            ahead = len(whole) - len(text)
            spans = shorten(encoding.offsets, cap)
            offsets = [(first - ahead, last - ahead) for first, last in spans]
            start = claim_start(text, offsets, found.claims)
        return found, len(ids), truncated, start

    def _calibrated(self, scores: FloatArray, shown: str) -> FloatArray:
        """Scores through the curves for what was scored: a claim cut off does not say which."""
        curves = self.bundle.calibration
        if self.bundle.calibration_by_script:
            curves = self.bundle.curves_of(script_of(shown))
        if curves is not None:
            pairs = zip(scores, curves, strict=True)
            scores = np.array([np.interp(score, curve.x, curve.y) for score, curve in pairs])
        return np.clip(scores, 0.0, 1.0)

    def _gather(self, rows: Sequence[_Row]) -> Prediction:
        shape = (len(rows), len(self.bundle.dimensions))
        requirements = np.array([row[0] for row in rows], dtype=np.float64).reshape(shape)
        tokens = np.array([row[1] for row in rows], dtype=np.intp)
        truncated = np.array([row[2] for row in rows], dtype=np.bool_)
        ignored = np.array([row[3] for row in rows], dtype=np.intp)
        width = self.bundle.vectors
        vectors = np.array([row[4] for row in rows], dtype=np.float32).reshape(len(rows), width)
        distances = np.array([row[5] for row in rows], dtype=np.float64)
        for array in (requirements, tokens, truncated, ignored, vectors, distances):
            array.setflags(write=False)
        return Prediction(
            requirements,
            tokens,
            truncated,
            ignored if self._graph.finds_claims else None,
            vectors if width else None,
            None if self.reference is None else distances,
        )


@lru_cache(maxsize=1)
def default_predictor() -> Predictor:
    """The predictor that comes with the console, loaded once.

    Raises:
        BundleError: The installation is damaged.
    """
    return Predictor(load_bundle())


def cores() -> int:
    """Cores this process may use; not every system can say, then those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


#: What a bundle of unknown origin may take to open.
MEMORY_BYTES: Final = 4 << 30
SECONDS: Final = 60


def open_apart(path: Path, *, seconds: int = SECONDS, memory_bytes: int = MEMORY_BYTES) -> str:
    """Name and version of a bundle of unknown origin, opened in a process of its own.

    Reading the file refuses what could run for ever by design; what is left can still ask for a
    tensor of a terabyte or for hours of honest work. That ends a child, not the program that asks.

    Args:
        seconds: Of computing; twice as long by the clock.
        memory_bytes: Of address space.

    Raises:
        BundleError: It is not valid, or goes over a limit.
    """
    words = [str(path), str(seconds), str(memory_bytes)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hydra_core.predictor.onnx_predictor", *words],
            capture_output=True,
            timeout=2 * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _over(path, seconds, memory_bytes) from error
    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        raise _over(path, seconds, memory_bytes) from error
    if "problems" in answer:
        raise BundleError(answer["source"], [Problem(*words) for words in answer["problems"]])
    return str(answer["opened"])


def _over(path: Path, seconds: int, memory_bytes: int) -> BundleError:
    message = f"does not open within {seconds} s of computing and {memory_bytes >> 20:,} MiB"
    return BundleError.of(str(path), message, "do not use it")


def _child(path: str, seconds: int, memory_bytes: int) -> None:
    import resource  # not on every system

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        bundle = Predictor(load_bundle(Path(path))).bundle
        answer: dict[str, object] = {"opened": f"{bundle.name} {bundle.version}"}
    except BundleError as error:
        problems = [(p.place, p.message, p.remedy) for p in error.problems]
        answer = {"source": error.source, "problems": problems}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
