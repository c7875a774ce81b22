"""The verbs score, score-texts and dependence, and the scores that other verbs need."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import EvalSetError
from hydra_core.base.spelling import counted
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import LINE_BYTES, print_json, progress_bar, say, show, stdin_lines
from hydra_core.cli.workspace import changes, existing, open_evalset

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog, FloatArray
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.predictor.onnx_predictor import Predictor

_CHUNK = 256
_GROUPS_SHOWN = 5
_SCORE = """score an eval set with a predictor bundle
Scores every query of an eval set with a predictor bundle. Progress on stderr. A run that was
stopped goes on where it was; scores that are there already are kept.

examples:
  hydra-router score mine
  hydra-router score mine --bundle bundles/compact-2
"""
_SCORE_TEXTS = """score messages from standard input (JSONL)
Scores messages. Standard input: one JSON object a line with "id", "text" and optionally "turn";
standard output: one JSON object a line with "id" and a score in [0, 1] for each dimension, in the
same order, and "truncated": true where a part of the message was not read.

example:
  echo '{"id": 1, "text": "Why does this loop never end?"}' | hydra-router score-texts
"""
_DEPENDENCE = """look for queries that depend on each other
Looks for queries that belong together although the set does not say so: the same text, ids that
differ by a language or an attempt, texts that mean nearly the same (by the vectors of a bundle that
has scored the set). They are printed with examples; --accept declares them as clusters, --decline
keeps them apart. The answer is kept in the set. Until there is one, every result says that the
question is open.

examples:
  hydra-router dependence mine
  hydra-router dependence mine --accept
"""


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "score", _score, _SCORE, "SCORE")
    parser.shared("evalset", "--bundle")
    verb(verbs, "score-texts", _score_texts, _SCORE_TEXTS).shared("--bundle")
    parser = verb(verbs, "dependence", _dependence, _DEPENDENCE)
    parser.shared("evalset")
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--accept", action="store_true", help="declare them as clusters")
    answers.add_argument("--decline", action="store_true", help="count them as independent")


def _score(options: argparse.Namespace) -> None:
    evalset = open_evalset(options.evalset)
    bundle = (predictor := open_predictor(options.bundle)).bundle
    scores = score_now(evalset, predictor)
    means = dict(zip(bundle.dimensions, scores.mean(axis=0).tolist(), strict=True))
    listed = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
    by = f"{bundle.name} ({bundle.fingerprint[:12]})"
    document = {"n": len(scores), "fingerprint": bundle.fingerprint, "mean": means}
    show(options, document, f"{counted(len(scores), 'query')} scored by {by}: {listed}")


def open_predictor(bundle: Path | None) -> Predictor:
    """The predictor of a bundle folder, or the shipped one.

    Raises:
        BundleError: It is damaged or foreign.
        CannotRunError: There is no such folder.
    """
    from hydra_core.predictor.bundle import load_bundle
    from hydra_core.predictor.onnx_predictor import Predictor, default_predictor

    return default_predictor() if bundle is None else Predictor(load_bundle(existing(bundle)))


def scores_for(evalset: EvalSet, catalog: Catalog, bundle: Path | None) -> FloatArray:
    """(n, K) requirements by the predictor that a catalog is bound to, scored now if missing.

    Args:
        bundle: Folder of that predictor; None: the shipped one.

    Raises:
        MismatchError: They are missing, and the catalog is bound to another predictor.
        EvalSetError: The set has no texts, or its folder cannot be written.
    """
    from hydra_core.evalsets.folders import scored_by
    from hydra_core.replay.replay import catalog_scores

    if catalog.predictor_fingerprint not in scored_by(evalset.path):
        predictor = open_predictor(bundle)
        if predictor.bundle.fingerprint == catalog.predictor_fingerprint:
            return scored(evalset, predictor)
    return catalog_scores(evalset, catalog)


def vectors_for(evalset: EvalSet, catalog: Catalog, bundle: Path | None) -> None:
    """Make the text vectors that success heads read, where a set with texts has none yet.

    Args:
        bundle: Folder of the predictor that the catalog is bound to; None: the shipped one.

    Raises:
        EvalSetError: The set's folder cannot be written.
    """
    from hydra_core.evalsets.folders import scored_by
    from hydra_core.evalsets.scores import load_text_facts

    known = catalog.predictor_fingerprint in scored_by(evalset.path)
    if known and load_text_facts(evalset, catalog.predictor_fingerprint) is not None:
        return
    predictor = open_predictor(bundle)
    if predictor.bundle.fingerprint == catalog.predictor_fingerprint:
        scored(evalset, predictor)


def scored(evalset: EvalSet, predictor: Predictor) -> FloatArray:
    """(n, K) requirements of an eval set's queries; scores and keeps them where they are missing.

    Raises:
        EvalSetError: The set has no texts, or its folder cannot be written.
    """
    from hydra_core.evalsets.scores import is_scored

    scores = is_scored(evalset, predictor.bundle)
    if scores is not None:
        return scores
    say(f"scoring the {counted(evalset.n, 'query')} of {evalset.name}")
    return score_now(evalset, predictor)


def score_now(evalset: EvalSet, predictor: Predictor) -> FloatArray:
    """(n, K) requirements, with progress on stderr also where they are there already.

    Raises:
        AccessError: The account may not score.
        EvalSetError: The folder cannot be written.
    """
    with progress_bar(evalset.name) as step:
        frame = changes(evalset.path).score(evalset, predictor, step)
    return frame.drop(columns="query_id").to_numpy()


def _score_texts(options: argparse.Namespace) -> None:
    """Score messages from standard input, in order, as they come."""
    predictor = open_predictor(options.bundle)
    messages, count = _messages(), 0
    while chunk := list(itertools.islice(messages, _CHUNK)):
        count += len(chunk)
        _score_chunk(predictor, chunk)
    if count == 0:
        say("note: there were no messages on standard input")


def _messages() -> Iterator[dict[str, Any]]:
    for number, raw in stdin_lines():
        if len(raw) > LINE_BYTES:
            raise _bad(number, "is longer than 16 MiB")
        try:
            entry = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
        except (ValueError, RecursionError) as error:
            raise _bad(number, f"is not JSON: {error}") from error
        if not isinstance(entry, dict):
            raise _bad(number, "is not an object")
        if "id" not in entry or not isinstance(entry.get("text"), str):
            raise _bad(number, 'needs "id" and "text", a string')
        turn = entry.get("turn", 1)
        if isinstance(turn, bool) or not isinstance(turn, int) or turn < 1:
            raise _bad(number, f'"turn" must be a whole number from 1, got {turn!r}')
        yield entry


def _bad(number: int, message: str) -> EvalSetError:
    remedy = 'one object a line, such as {"id": 1, "text": "Hello"}'
    return EvalSetError.of("standard input", message, remedy, place=f"line {number}")


def _score_chunk(predictor: Predictor, chunk: list[dict[str, Any]]) -> None:
    texts = [entry["text"] for entry in chunk]
    turns = [int(entry.get("turn", 1)) for entry in chunk]
    scored = predictor.predict_batches(texts, turns=turns)
    rows = zip(chunk, scored.requirements.tolist(), scored.truncated.tolist(), strict=True)
    for entry, scores, truncated in rows:
        named = dict(zip(predictor.bundle.dimensions, scores, strict=True))
        more = {"truncated": True} if truncated else {}
        print_json({"id": entry["id"], **named, **more}, indent=None)
    sys.stdout.flush()


def _dependence(options: argparse.Namespace) -> None:
    """Keep the answer if one is given or none is needed."""
    from hydra_core.evalsets.suspects import answer, look

    evalset = open_evalset(options.evalset)
    with progress_bar(evalset.name) as step:
        suspects = look(evalset, step)
    answered = options.accept or options.decline or not suspects.groups
    if answered:
        path, accepted = evalset.path, options.accept
        evalset = changes(path).write(path, lambda: answer(evalset, suspects, accepted=accepted))
    state = evalset.dependence.answer if answered and evalset.dependence else "open"
    ids = evalset.queries["query_id"]
    groups = [ids.iloc[rows].tolist() for rows in suspects.groups]
    if options.json:
        counts = {"queries": suspects.queries, "vectors": suspects.vectors}
        print_json({"answer": state, "groups": groups, **counts})
        return
    print(suspects)
    for members in groups[:_GROUPS_SHOWN]:
        more = ["..."] if len(members) > _GROUPS_SHOWN else []
        print("  " + ", ".join([*members[:_GROUPS_SHOWN], *more]))
    if not suspects.vectors:
        say("note: texts were not compared by meaning; score the set first for that")
    print(f"answer: {state}" if answered else "give --accept or --decline to settle it")
