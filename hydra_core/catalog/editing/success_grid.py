"""Success profiles as a table: the shared cost factor first, then one row a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra_core.base.types import LEVEL_DIMENSION, Catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.render import Value

#: The first row: what a query costs compared with the mean query, as a logarithm.
COST_FACTOR: Final = "cost factor, log"
_BLOCK: Final = "success_profiles"


def success_rows(catalog: Catalog) -> list[dict[str, object]]:
    """One row for the cost factor and one a model; cells are named `dimension@knot number`."""
    block = catalog.success_profiles
    if block is None:
        return []
    names = [name for name in catalog.dimensions if name != LEVEL_DIMENSION]

    def row(name: str, intercept: float, adds: tuple[tuple[float, ...], ...]) -> dict[str, object]:
        cells = {
            f"{dimension}@{i}": value
            for dimension, values in zip(names, adds, strict=True)
            for i, value in enumerate(values)
        }
        return {"model": name, "intercept": intercept, **cells}

    rows = [row(COST_FACTOR, block.cost_intercept, block.cost_adds)]
    for name, one in block.models.items():
        read, written = (None, None) if one.tokens is None else one.tokens
        costs = {"input_tokens": read, "output_tokens": written, "cost_usd": one.cost_usd}
        rows.append({**row(name, one.intercept, one.adds), **costs})
    return rows


def edit_success(text: str, edits: Mapping[int, Mapping[str, object]]) -> str:
    """The text with edited cells: row of `success_rows` -> column -> value.

    Raises:
        CatalogError: There is no such cell, or a value cannot be written.
    """
    document = CatalogDocument.parse(text)
    models = document.get(_BLOCK, "models")
    names = list(models) if isinstance(models, dict) else []
    for row, cells in edits.items():
        place = (_BLOCK, "cost_factor") if row == 0 else (_BLOCK, "models", names[row - 1])
        for column, value in cells.items():
            number: Value = float(value) if isinstance(value, int | float) else None
            dimension, _, knot = column.partition("@")
            if knot:
                document.set(*place, "adds", dimension, int(knot), number)
            else:
                document.set(*place, dimension, number)
    return document.text()
