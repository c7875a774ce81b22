"""The probe as every place runs it: the verb, the page Robustness, the benchmark, the model card.

One way to draw, to score and to route, so that equal questions have equal figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Final

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.types import BoolArray, Catalog, Pool
from hydra_core.catalog.binding import rebind
from hydra_core.catalog.profiles import pool
from hydra_core.catalog.schema import load_catalog, parse_catalog, read_catalog_text
from hydra_core.lab.robustness.attack import (
    Attacked,
    Families,
    Read,
    attacked,
    load_probes,
    remembering,
    runs,
)
from hydra_core.lab.robustness.findings import EVERYONE, AttackRow, PoolRoutes, RoutedAttacks
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.onnx_predictor import Predictor, Runs
from hydra_core.routing.valuation import Valuer, valuer_of

_MOST_FAMILIES = 32
_MOST_CHARS = 2_000


def own_suffixes(path: Path) -> Families:
    """Suffixes of a file: YAML family -> language -> suffix, or plain text, one a line.

    Raises:
        EvalSetError: It is neither, or too much.
    """
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() not in (".yaml", ".yml"):
        return suffix_lines(text, path.name)
    remedy = "family: {en: suffix, de: suffix}"
    try:
        found = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:
        raise EvalSetError.of(path.name, f"is not YAML: {error}", remedy) from error
    good = isinstance(found, dict) and all(
        isinstance(one, dict) and isinstance(one.get("en"), str) for one in found.values()
    )
    if not good:
        raise EvalSetError.of(path.name, "each family needs at least en", remedy)
    families = {str(name): {str(k): str(v) for k, v in one.items()} for name, one in found.items()}
    return _bounded(families, path.name)


def suffix_lines(text: str, source: str) -> Families:
    """Suffixes typed one a line; each is a family of its own and the same in every language.

    Raises:
        EvalSetError: Too many, or one too long.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _bounded({f"own {number}": {"en": line} for number, line in enumerate(lines, 1)}, source)


def _bounded(families: Families, source: str) -> Families:
    problems = [
        Problem(name, f"{code} has {len(suffix):,} characters", f"at most {_MOST_CHARS:,}")
        for name, suffixes in families.items()
        for code, suffix in suffixes.items()
        if len(suffix) > _MOST_CHARS
    ]
    if len(families) > _MOST_FAMILIES:
        remedy = f"give at most {_MOST_FAMILIES} at a time"
        problems.append(Problem("", f"{len(families)} families of suffixes", remedy))
    if problems:
        raise EvalSetError(source, problems)
    return families


#: Thresholds that a model card and the benchmark show: a strict one and the paper's conservative.
TAUS: Final = (0.05, 0.24)
_SEED: Final = 5


def bound_catalog(path: Path, bundle: Bundle) -> Catalog:
    """The catalog, its bands moved to the bundle where it was made for another.

    Raises:
        CatalogError: It is not valid.
    """
    catalog = load_catalog(path)
    if catalog.predictor_fingerprint == bundle.fingerprint:
        return catalog
    text = rebind(read_catalog_text(path), bundle.name, bundle.fingerprint, bundle.bands)
    return parse_catalog(text, path.name)


def probed(
    predictor: Predictor,
    texts: Sequence[str],
    languages: Sequence[str],
    families: Families | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    wordings: Mapping[str, str] | None = None,
    targets: Callable[[Read], BoolArray] | None = None,
) -> Attacked:
    """Messages scored as they are, with every suffix and with every harmless change.

    Args:
        families: None for the eight that come with HyDRA.
        progress: Told (scored, expected); what it raises stops the work.
        wordings: Message -> the same request in other words (`other_wordings`).
        targets: Clean messages -> (n,) those to attack (`cheap_at`); None attacks all, for every
            knob.
    """
    chosen = load_probes() if families is None else families
    expected = runs(languages, languages, len(chosen))
    progress(0, expected)
    shared: Runs = {}  # an attack whose claim is found leaves the clean message: run once for all
    predict = partial(predictor.predict_batches, runs=shared)

    def aimed(clean: Read) -> BoolArray:
        nonlocal expected
        hit = np.ones(len(texts), dtype=bool) if targets is None else targets(clean)
        expected = runs(languages, list(compress(languages, hit)), len(chosen))
        return hit

    read = remembering(predict, lambda done: progress(done, max(done, expected)))
    rng = np.random.default_rng(_SEED)
    return attacked(read, texts, languages, chosen, rng=rng, wordings=wordings, targets=aimed)


def cheap_at(catalog: Catalog, knob: float) -> Callable[[Read], BoolArray]:
    """Those that a catalog routes below its frontier at one tau, or one V.

    All that `RoutedAttacks.at` counts at that knob; at another one it would lack attacks.

    Raises:
        HydraError: The outcome model cannot be had.
    """
    routes = PoolRoutes(*_pool_and_valuer(catalog))
    return lambda clean: routes.cheap(clean, knob)


def routed(found: Attacked, catalog: Catalog) -> RoutedAttacks:
    """Attacked messages under a catalog's pool of today and its rule.

    Raises:
        HydraError: The outcome model cannot be had.
    """
    return RoutedAttacks(found, *_pool_and_valuer(catalog))


def _pool_and_valuer(catalog: Catalog) -> tuple[Pool, Valuer | None]:
    models = pool(catalog, today=date.today())
    return models, valuer_of(catalog, models)


def family_rows(found: RoutedAttacks, taus: Sequence[float]) -> list[tuple[float, AttackRow]]:
    """(tau, row) of every family in either wording, over all languages, and of all families."""
    return [(tau, row) for tau in taus for row in found.at(tau).attacks if row.group == EVERYONE]


def attack_table(found: RoutedAttacks) -> str:
    """The attacks as a Markdown table, with the figures that `probe` prints."""
    lines = [
        "| tau | family | suffix | n | success | 95 % | cost ratio |",
        "|---:|---|---|---:|---:|---|---:|",
    ]
    for tau, row in family_rows(found, TAUS):
        wording = "own language" if row.localised else "English"
        share, ratio = "–", "–"
        interval = ""
        if row.n:
            share, ratio = f"{row.success.value:.1%}", f"{row.cost_ratio:.3f}"
            interval = f"{row.success.lo:.1%} to {row.success.hi:.1%}"
        lines.append(
            f"| {tau} | {row.family} | {wording} | {row.n} | {share} | {interval} | {ratio} |"
        )
    return "\n".join(lines)
