"""What was learned or fitted, as it is kept: an outcome model's folder, or a catalog's text.

Fitted profiles make an ordinary catalog with one dimension more. Its `level` is required in full by
every query: `Pool.capped` appends it to what a predictor scores. Success profiles make the block
`success_profiles`. An outcome model's figures are plain JSON.
"""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from hydra_core.base.digests import file_sha256
from hydra_core.base.errors import OutcomeModelError
from hydra_core.base.intervals import Interval
from hydra_core.base.list_price import ListPrice, long_prices
from hydra_core.base.reading.plain_yaml import plain_text
from hydra_core.base.spelling import signed
from hydra_core.base.types import (
    LEVEL_DIMENSION,
    Band,
    Catalog,
    Chosen,
    FloatArray,
    Rule,
    Selection,
    SuccessSource,
)
from hydra_core.catalog.chosen_and_promised import record_choice
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.choosing.by_rate import rehearsal_of
from hydra_core.choosing.learn import Learning
from hydra_core.choosing.lift import Ranked, ends
from hydra_core.choosing.material import Material, Outcomes
from hydra_core.choosing.sources.ladder import Kind, Rung
from hydra_core.choosing.sources.profiles import FittedProfiles, FittedSuccess, Profiles, Start
from hydra_core.evalsets.evalset import EvalSet, sample_of
from hydra_core.evalsets.folders import replace_folder
from hydra_core.outcome_model.format import (
    FIGURES,
    HEADS,
    LEARNED,
    MANIFEST,
    SCHEMA,
    load_outcome_model,
)
from hydra_core.outcome_model.heads import Features, Forest, Linear, Raw
from hydra_core.outcome_model.model import Costs, OutcomeModel, text_digests
from hydra_core.replay.replay import ReplayData
from hydra_core.store import Action, Actor, Store, require

_COLLECT = 250
_MORE = (_COLLECT, 1000)


def require_free_folder(path: Path, *, force: bool) -> None:
    """Refuse a target that would overwrite something.

    Raises:
        OutcomeModelError: It is taken by something else than an outcome model, or `force` is off.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / MANIFEST).is_file():
        message = "exists and is not an outcome model"
        raise OutcomeModelError.of(str(path), message, "choose another folder")
    if not force:
        remedy = "choose another folder, or replace it with --force"
        raise OutcomeModelError.of(str(path), "exists already", remedy)


def audit_recorder(actor: Actor, store: Store | None, path: Path) -> Callable[[str], None]:
    """Return what records a new outcome model at `path` in the audit trail.

    Args:
        store: None where it belongs to no workspace; then nothing is recorded.

    Raises:
        AccessError: The actor may not learn one.
    """
    require(actor, Action.LEARN)
    manifest = path / MANIFEST
    before = file_sha256(manifest) if manifest.is_file() else ""

    def record(after: str) -> None:
        if store is not None:
            subject = f"outcome model {path.name}"
            store.record_event(actor, Action.LEARN, subject, before=before, after=after)

    return record


def write_outcome_model(
    path: Path,
    learning: Learning,
    *,
    fingerprint: str,
    force: bool = False,
    record: Callable[[str], None] | None = None,
) -> OutcomeModel:
    """Write what was learned, and load it back.

    Args:
        fingerprint: Of the predictor bundle whose vectors were read.
        record: Called with the SHA-256 of the manifest before it takes its place, so that no
            outcome model is there without its record.

    Raises:
        StoreError: From `record`; nothing was changed.
        OutcomeModelError: The folder is taken or cannot be written; nothing was changed.
    """
    require_free_folder(path, force=force)

    def fill(folder: Path) -> None:
        np.savez(folder / HEADS, allow_pickle=False, **_heads_arrays(learning))
        np.savez_compressed(folder / LEARNED, allow_pickle=False, **_learned_arrays(learning))
        figures = json.dumps(figures_of(learning), indent=1, allow_nan=False)
        (folder / FIGURES).write_text(figures, encoding="utf-8")
        (folder / MANIFEST).write_text(_manifest(folder, learning, fingerprint), encoding="utf-8")
        made = load_outcome_model(folder)  # what we write must pass what we check
        if record is not None:
            record(made.digest)

    try:
        replace_folder(path, fill, replace=force)
    except OSError as error:
        message = f"cannot be written: {error}"
        raise OutcomeModelError.of(str(path), message, "nothing was changed") from error
    return load_outcome_model(path)


def figures_of(learning: Learning) -> dict[str, Any]:
    """The figures, JSON-ready; qualities and lifts as fractions of 1."""
    material = learning.material
    rated = any(one.rate is not None for one in learning.newcomers)
    rehearsal = rehearsal_of(learning) if rated else None
    return {
        "recommend": learning.recommend,
        "reason": learning.reason,
        "n": material.n,
        "models": {
            name: {"outcomes": count, "newcomer": i >= material.together}
            for i, (name, count) in enumerate(zip(material.models, material.counted, strict=True))
        },
        "lift": None if learning.lift is None else learning.lift.numbers(),
        "features": list(learning.heads.features.blocks),
        "learner": learning.learner,
        "errors": {} if learning.choice is None else learning.choice.errors,
        "penalties": [] if learning.choice is None else list(learning.choice.penalties),
        "reliability": {
            name: [[int(n), said, achieved] for n, said, achieved in rows if n]
            for name, rows in zip(material.models, learning.reliability.tolist(), strict=True)
        },
        "learning_curve": [
            {"queries": step.queries, **_with_ends(step.lift)} for step in learning.curve
        ],
        "expected_gain": {str(more): learning.expected_gain(more) for more in _MORE},
        "slices": {
            kind: [
                {"name": one.name, "queries": one.queries, **_with_ends(one.lift)} for one in slices
            ]
            for kind, slices in learning.slices.items()
        },
        "folds": learning.folds,
        "seed": learning.seed,
        "logged": _logged(learning),
        "newcomers": [one.numbers() for one in learning.newcomers],
        "rehearsal": None if rehearsal is None else rehearsal.numbers(),
        "check": None if learning.check is None else learning.check.numbers(),
    }


def _logged(learning: Learning) -> dict[str, Any] | None:
    """What queries with outcomes of some models only added."""
    part, logged = learning.logged, learning.material.logged
    if part is None or logged is None:
        return None
    return {
        "queries": logged.n,
        "outcomes": int(np.isfinite(logged.quality).sum()),
        "used": part.used,
        "lift_without": None if part.without is None else _with_ends(part.without.mean),
        "added": None if part.added is None else _with_ends(part.added),
        "sentence": added_sentence(learning),
    }


def added_sentence(learning: Learning) -> str:
    """What the logged queries added to the lift, and what more complete ones would add."""
    part, logged = learning.logged, learning.material.logged
    assert part is not None
    assert logged is not None
    what = f"{logged.n:,} queries with outcomes of some models only"
    if part.added is not None and part.used and part.added.value > 0:
        return f"{what} added {part.added.scaled(100.0).text('pp')}."
    gain = learning.expected_gain(_COLLECT)
    more = f"about {_COLLECT} more, answered by every model (hydra-router collect)"
    expected = "" if gain is None else f": expected {signed(100 * gain)} pp"
    return f"{what} added nothing measurable. Collect {more}{expected}."


def _with_ends(lift: Interval) -> dict[str, Any]:
    return {"lift": lift.value, "interval": ends(lift)}


def _manifest(folder: Path, learning: Learning, fingerprint: str) -> str:
    material, heads = learning.material, learning.heads
    content = {
        "schema": SCHEMA,
        "predictor": {
            "fingerprint": fingerprint,
            "vectors": int(material.messages.vectors.shape[1]),
        },
        "evalset": {"name": material.evalset.name, "digest": material.evalset.digest},
        "models": [
            {"id": name, "outcomes": count}
            for name, count in zip(material.models, material.counted, strict=True)
        ],
        "learner": learning.learner,
        "blocks": list(heads.features.blocks),
        "parts": [
            {
                "kind": "trees" if isinstance(part.heads, Forest) else "linear",
                "share": float(part.share),
            }
            for part in heads.parts
        ],
        "files": {name: file_sha256(folder / name) for name in (HEADS, LEARNED, FIGURES)},
    }
    return plain_text(content)


def _heads_arrays(learning: Learning) -> dict[str, Any]:
    heads = learning.heads
    arrays: dict[str, Any] = {
        f"features.{name}": getattr(heads.features, name)
        for name in Features.__slots__
        if name != "blocks"
    }
    arrays |= {"mean_difference": heads.mean_difference, "reliability": learning.reliability}
    for i, part in enumerate(heads.parts):
        arrays |= _named(f"part{i}", part.heads)
    optional = {"newcomers": heads.newcomers} | {
        name: getattr(heads.costs, name) for name in Costs.__slots__
    }
    for name, head in optional.items():
        if head is not None:
            arrays |= _named(name, head)
    return arrays


def _named(name: str, part: Linear | Forest) -> dict[str, Any]:
    """Arrays of one head by name; positions in four bytes."""
    found = {one.name: np.asarray(getattr(part, one.name)) for one in fields(part)}
    return {
        f"{name}.{key}": value.astype(np.int32) if value.dtype.kind == "i" else value
        for key, value in found.items()
    }


def _learned_arrays(learning: Learning) -> dict[str, Any]:
    found = _rows_arrays(learning, learning.material, learning.raw)
    logged = learning.material.logged
    if logged is not None and learning.logged is not None:
        more = _rows_arrays(learning, logged, learning.logged.raw)
        found = {name: np.concatenate([values, more[name]]) for name, values in found.items()}
    return found


def _rows_arrays(learning: Learning, material: Material, raw: Raw) -> dict[str, Any]:
    ids = material.evalset.queries["query_id"].iloc[material.rows]
    texts = material.evalset.texts
    columns = learning.heads.features.columns(material.messages)
    return {
        "query_ids": np.array(ids.astype(str).tolist(), dtype=np.str_),
        "texts": text_digests([] if texts is None else texts.iloc[material.rows].tolist()),
        "columns": columns.astype(np.float16),
        "quality": material.quality,
        **{f"raw.{name}": getattr(raw, name) for name in Raw.__slots__},
    }


#: A level lies anywhere in [0, 1]; its band is that range.
_LEVEL_BAND: Final = Band(0.0, 1.0)
_LEVEL_OF_OTHERS: Final = 0.5
_DIGITS: Final = 4


def start_of(catalog: Catalog, data: ReplayData) -> Start:
    """Return what a catalog says already, for the models with outcomes.

    Args:
        catalog: Without a dimension `level`; see `unfitted`.
        data: Replayed under it.
    """
    data = data.with_outcomes
    return Start(
        catalog.bands,
        data.pool.capabilities,
        np.asarray(catalog.policy.weights, dtype=np.float64),
        data.pool.cost,
    )


def unfitted(text: str, catalog: Catalog) -> str:
    """Return the text of a catalog without its fitted profiles; others are returned as they are.

    Capabilities follow from benchmark rates again where a model has some, and weights are 1.

    Raises:
        CatalogError: The text cannot be edited so.
    """
    if LEVEL_DIMENSION not in catalog.dimensions:
        return text
    names = scored_dimensions(catalog)
    document = CatalogDocument.parse(text, catalog.source)
    document.set("dimensions", list(names))
    document.remove("bands", LEVEL_DIMENSION)
    document.set("policy", "weights", dict.fromkeys(names, 1))
    if LEVEL_DIMENSION in catalog.policy.defences.score_caps:
        document.remove("policy", "defences", "score_caps", LEVEL_DIMENSION)
    for model in catalog.models:
        cells = {name: model.overrides[name] for name in names if name in model.overrides}
        document.set("models", model.id, "capabilities", "derived" if model.scores else cells)
    return document.text()


def scored_dimensions(catalog: Catalog) -> tuple[str, ...]:
    return tuple(name for name in catalog.dimensions if name != LEVEL_DIMENSION)


def prices_of(catalog: Catalog, models: tuple[str, ...]) -> FloatArray:
    """Return (m, 2) list prices, USD per million tokens read and written."""
    specs = [catalog.model(name) for name in models]
    return np.array([[s.input_usd_per_mtok, s.output_usd_per_mtok] for s in specs])


def long_prices_of(catalog: Catalog, models: tuple[str, ...]) -> dict[int, ListPrice]:
    """Return place -> price of the models that charge long requests more."""
    return long_prices([catalog.model(name).price for name in models])


def with_source(
    text: str, catalog: Catalog, rung: Rung, outcomes: Outcomes, evalset: EvalSet
) -> str:
    """Return the catalog's text routed by one source that stands in YAML.

    Args:
        text: The catalog's YAML, without fitted profiles.
        rung: Fitted to `outcomes`.
        evalset: Whose outcomes they are; the catalog records that it was chosen on them.

    Raises:
        CatalogError: The text cannot be edited so.
    """
    match rung.profiles:
        case FittedSuccess() as success:
            return with_success_profiles(text, catalog, success, outcomes, evalset)
        case FittedProfiles() as fitted:
            document = CatalogDocument.parse(text, catalog.source)
            tau, own = _half_range_tau(fitted, outcomes), rung.kind is not Kind.PROFILES
            if not own:
                tau *= _set_profiles(document, catalog, fitted)
            document.set("policy", "rule", Rule.SHORTFALL.value)
            document.set("policy", "tau", round(tau, _DIGITS))
            return _recorded(document, evalset, knob_alone=own)
    raise ValueError(f"{rung.kind} do not stand in the catalog alone")


def _set_profiles(document: CatalogDocument, catalog: Catalog, fitted: FittedProfiles) -> float:
    """Write fitted profiles and weights; the factor of tau in the unit of the stored weights."""
    names = (*catalog.dimensions, LEVEL_DIMENSION)
    bands = (*catalog.bands, _LEVEL_BAND)
    stored = stored_weights(fitted.weights, bands)
    document.set("dimensions", list(names))
    document.set("bands", LEVEL_DIMENSION, [_LEVEL_BAND.lo, _LEVEL_BAND.hi])
    document.set("policy", "weights", dict(zip(names, stored.tolist(), strict=True)))
    cells = fitted.numbers(catalog.dimensions, _DIGITS)["capabilities"]
    for model in catalog.models:
        others = {**model.overrides, LEVEL_DIMENSION: _LEVEL_OF_OTHERS}
        document.set("models", model.id, "capabilities", cells.get(model.id, others))
    # the weights as they are compensated when the catalog is loaded
    return float(compensated_weights(stored, bands).sum() / fitted.weights.sum())


def stored_weights(compensated: FloatArray, bands: tuple[Band, ...]) -> FloatArray:
    """Return the stored weights w whose compensated weights are proportional to these (Eq. 4).

    Args:
        compensated: (K,) weights w~.
        bands: One per dimension.

    Returns:
        (K,) with sum K, four decimals.
    """
    stored = compensated * np.array([band.width for band in bands])
    result: FloatArray = np.round(stored / stored.sum() * len(stored), _DIGITS)
    return np.maximum(result, 10.0**-_DIGITS)


def with_success_profiles(
    text: str, catalog: Catalog, profiles: FittedSuccess, outcomes: Outcomes, evalset: EvalSet
) -> str:
    """Return the catalog's text with success profiles, and a V that spends half of the cost range.

    The policy routes by them from then on. A model without outcomes gets none: it is
    placed between the others when the catalog is loaded.

    Raises:
        CatalogError: The text cannot be edited so.
    """
    document = CatalogDocument.parse(text, catalog.source)
    block = {
        "evalset": {"name": evalset.name, "digest": evalset.digest},
        "queries": outcomes.n,
        **profiles.numbers(scored_dimensions(catalog)),
    }
    value_usd = 1.0 / max(_half_range_tau(profiles, outcomes), 1e-12)
    document.set("success_profiles", block)
    document.set("policy", "rule", Rule.VALUE.value)
    document.set("policy", "value_usd", float(f"{value_usd:.3g}"))
    if catalog.outcome_model is not None:
        document.set("policy", "success_from", SuccessSource.SUCCESS_PROFILES.value)
    return _recorded(document, evalset)


def _half_range_tau(profiles: Profiles, outcomes: Outcomes) -> float:
    ranked = Ranked(outcomes, *profiles.rank(outcomes.requirements, outcomes.closed))
    return float(ranked.taus_at(np.array([0.5]))[0])


def _recorded(document: CatalogDocument, evalset: EvalSet, *, knob_alone: bool = False) -> str:
    """The text with a record that profiles and knob were chosen while looking at these queries."""
    sample = sample_of(evalset.query_marks)
    chosen = Chosen(evalset.queries_digest, evalset.name, Selection.LOOKED, knob_alone, sample)
    return record_choice(document.text(), chosen)
