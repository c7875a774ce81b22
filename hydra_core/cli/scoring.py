"""Scores where a verb needs them: those there are, else made now, with progress."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.cli.account import changes
from hydra_core.cli.output import open_predictor, progress_bar, say

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog, FloatArray
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.predictor.onnx_predictor import Predictor


def scores_for(evalset: EvalSet, catalog: Catalog, bundle: Path | None) -> FloatArray:
    """(n, K) requirements by the predictor that a catalog is bound to, scored now if missing.

    Args:
        bundle: Folder of that predictor; None: the shipped one.

    Raises:
        MismatchError: They are missing, and the catalog is bound to another predictor.
        EvalSetError: The set has no texts, or its folder cannot be written.
    """
    from hydra_core.evalsets.format import scored_by
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
    from hydra_core.evalsets.format import scored_by
    from hydra_core.evalsets.score_files import load_text_facts

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
    from hydra_core.evalsets.scoring import is_scored

    found = is_scored(evalset, predictor.bundle)
    if found is not None:
        return found
    say(f"scoring the {evalset.n:,} queries of {evalset.name}")
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
