"""Train the predictor with other numbers of dimensions, token limits and encoder sizes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from hydra_core.base.types import DIMENSIONS
from hydra_core.lab.training.network.model import predict
from hydra_core.lab.training.network.recipe import Material, Recipe, prepare, run
from hydra_core.lab.training.ship.release import metrics
from hydra_core.lab.training.texts.dataset import DataPaths, Splits


def settings(recipe: Recipe) -> Iterator[tuple[str, Recipe]]:
    """Named variations of one recipe."""
    for count in range(1, len(DIMENSIONS) + 1):
        encoder = replace(recipe.encoder, dimensions=DIMENSIONS[:count])
        fit = replace(recipe.fit, dimension_weights=(1.0,) * count)
        yield f"K = {count}", replace(recipe, encoder=encoder, fit=fit)
    modern = replace(
        recipe.encoder, kind="modernbert", pooling="cls", layers=4, width=256, heads=4,
        intermediate=384,
    )  # fmt: skip
    for cap in (512, 2048):
        encoder = replace(modern, max_tokens=cap)
        fit = replace(recipe.fit, max_tokens=cap)
        yield f"{cap} tokens", replace(recipe, encoder=encoder, fit=fit)
    for layers, width in ((2, 128), (4, 256), (6, 384)):
        encoder = replace(
            modern, layers=layers, width=width, heads=width // 64, intermediate=width * 3 // 2
        )
        yield f"{layers} layers, {width} wide", replace(recipe, encoder=encoder)


def table(paths: DataPaths, pack: Path, recipe: Recipe, out: Path, texts: int) -> str:
    """Train every setting on `texts` messages and give a Markdown table.

    A small budget ranks settings only roughly; raise `texts` and
    `fit.epochs` for figures to rely on.
    """
    lines = [
        "| setting | Pearson | MAE | ms / text | parameters |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, variation in settings(recipe):
        material = prepare(paths, pack, variation)
        kept = _first(material.splits, texts, recipe.fit.seed)
        material = Material(kept, material.tokenizer, material.model, material.digests)
        run(material, variation, out / name.replace(" ", "_").replace(",", ""))
        lines.append(_row(name, material))
    return "\n".join(lines)


def _first(splits: Splits, texts: int, seed: int) -> Splits:
    order = np.random.default_rng(seed).permutation(len(splits.train))[:texts]
    return replace(splits, train=tuple(splits.train[int(i)] for i in order), unlabelled=())


def _row(name: str, material: Material) -> str:
    test = [m for m in material.splits.validation if m.origin == "corpus"]
    started = time.perf_counter()
    scores = predict(material.model, material.tokenizer, [m.asked for m in test], batch=1)
    each = (time.perf_counter() - started) / max(1, len(test)) * 1e3
    found = metrics(test, scores)
    size = sum(p.numel() for p in material.model.parameters()) / 1e6
    return f"| {name} | {found['pearson']:.3f} | {found['mae']:.3f} | {each:.1f} | {size:.1f} M |"
