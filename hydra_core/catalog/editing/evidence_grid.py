"""Edits of a catalog's evidence in the text: what Algorithm 1 reads, and success profiles."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeVar

from hydra_core.base.errors import CatalogError
from hydra_core.catalog.editing.document import CatalogDocument, Data, Value, entries, mapping
from hydra_core.catalog.editing.model_grid import read_rate

_BENCHMARKS = ("evidence", "benchmarks")
#: The first row: what a query costs compared with the mean query, as a logarithm.
COST_FACTOR: Final = "cost factor, log"
_BLOCK: Final = "success_profiles"
_Row = TypeVar("_Row")
_COSTS: Final = ("intercept", "input_tokens", "output_tokens", "cost_usd")


def evidence_rows(document: CatalogDocument) -> list[dict[str, Data]]:
    """One row per benchmark: `id`, `importance`, `w.<dimension>` and `s.<model>` columns.

    A variant shows the rates that it takes from its base.
    """
    data = mapping(document.data())
    dimensions = [str(name) for name in entries(data.get("dimensions"))]
    rates = _of_models(data, "scores")
    rows = []
    for entry in entries(mapping(data.get("evidence")).get("benchmarks")):
        benchmark = mapping(entry)
        name, omega = str(benchmark.get("id")), mapping(benchmark.get("weights"))
        row: dict[str, Data] = {"id": name, "importance": benchmark.get("importance")}
        row |= {f"w.{dimension}": omega.get(dimension, 0.0) for dimension in dimensions}
        row |= {f"s.{model}": of.get(name) for model, of in rates}
        rows.append(row)
    return rows


def _of_models(data: Mapping[str, Data], key: str) -> list[tuple[str, dict[str, Data]]]:
    """Each model's id and its mapping at `key`, with what a variant takes from its base."""
    models = [mapping(model) for model in entries(data.get("models"))]
    own = {str(model.get("id")): mapping(model.get(key)) for model in models}
    found = []
    for model in models:
        base = own.get(str(model.get("variant_of")), {})
        stands = key not in model or isinstance(model[key], dict)
        found.append((str(model.get("id")), (base if stands else {}) | mapping(model.get(key))))
    return found


def edit_evidence(text: str, edits: Mapping[int, Mapping[str, object]]) -> str:
    """The text with cells of `evidence_rows` written anew; an emptied cell is removed.

    Raises:
        CatalogError: A cell cannot be written.
    """
    document = CatalogDocument.parse(text)
    rows = evidence_rows(document)
    for at, cells in edits.items():
        for column, cell in cells.items():
            value = _read(cell)
            if 0 <= at < len(rows) and not _same(value, rows[at].get(column)):
                _write(document, at, str(rows[at]["id"]), column, value)
    return document.text()


def _write(document: CatalogDocument, at: int, name: str, column: str, value: Value) -> None:
    kind, _, of = column.partition(".")
    if column == "importance":
        document.set(*_BENCHMARKS, at, "importance", value)
    elif kind == "w":
        _put(document, (*_BENCHMARKS, at, "weights"), of, value)
    elif kind == "s":
        _put(document, ("models", of, "scores"), name, value)


def _put(document: CatalogDocument, path: Sequence[str | int], key: str, value: Value) -> None:
    """Set or remove one key of a mapping that may not be there yet."""
    parent = mapping(document.get(*path[:-1])).get(str(path[-1]))
    if value is None:
        if isinstance(parent, dict) and key in parent:
            document.remove(*path, key)
    elif isinstance(parent, dict):
        document.set(*path, key, value)
    else:
        document.set(*path, {key: value})


def add_benchmark(
    text: str,
    name: str,
    importance: float,
    weights: Mapping[str, float],
    scores: Mapping[str, object],
) -> str:
    """The text with one more benchmark: weights by dimension, cells of rates by model id.

    Raises:
        CatalogError: It cannot be written.
    """
    document = CatalogDocument.parse(text)
    omega = {key: value for key, value in weights.items() if value > 0}
    row: dict[str, Value] = {"id": name, "importance": importance, "weights": omega}
    document.append(*_BENCHMARKS, row)
    for model, cell in scores.items():
        if (rate := _read(cell)) is not None:
            _put(document, ("models", model, "scores"), name, rate)
    return document.text()


def remove_benchmarks(text: str, rows: Sequence[int]) -> str:
    """The text without these benchmarks and all rates on them; CatalogError for no such row."""
    document = CatalogDocument.parse(text)
    listed = evidence_rows(document)
    for at in sorted(set(rows), reverse=True):
        if not 0 <= at < len(listed):
            raise CatalogError.of("catalog", f"there is no benchmark {at + 1}")
        name = str(listed[at]["id"])
        document.remove(*_BENCHMARKS, at)
        for i, model in enumerate(entries(mapping(document.data()).get("models"))):
            if name in mapping(mapping(model).get("scores")):
                document.remove("models", i, "scores", name)
    return document.text()


def edit_capabilities(text: str, edits: Mapping[int, Mapping[str, object]]) -> str:
    """The text with capabilities set by hand: model row -> dimension -> value; None: derived.

    Raises:
        CatalogError: A value cannot be written.
    """
    document = CatalogDocument.parse(text)
    models = _of_models(mapping(document.data()), "capabilities")
    for row, cells in edits.items():
        _, held = _at(models, row)
        for dimension, cell in cells.items():
            value, before = _read(cell), held.get(dimension)
            if value is None and before not in (None, "derived"):
                _put(document, ("models", row, "capabilities"), dimension, "derived")
            elif value is not None and not _same(value, before):
                _put(document, ("models", row, "capabilities"), dimension, value)
        model = mapping(document.get("models", row))
        now = mapping(model.get("capabilities")).values()
        if "variant_of" not in model and set(map(str, now)) == {"derived"}:
            document.set("models", row, "capabilities", "derived")
    return document.text()


def _at(rows: Sequence[_Row], row: int) -> _Row:
    """The row that an edit is of; refused where others have taken it away."""
    if row >= len(rows):
        raise CatalogError.of("catalog", f"there is no row {row + 1}", "reload the page")
    return rows[row]


def edit_scales(text: str, edits: Mapping[str, Mapping[str, object]]) -> str:
    """The text with bands and weights: dimension -> `lo`, `hi` or `weight` -> value.

    Raises:
        CatalogError: A value cannot be written.
    """
    document = CatalogDocument.parse(text)
    for dimension, cells in edits.items():
        for key, value in cells.items():
            if key == "weight":
                document.set("policy", "weights", dimension, _read(value))
            else:
                document.set("bands", dimension, 0 if key == "lo" else 1, _read(value))
    return document.text()


def add_dimension(text: str, name: str, lo: float, hi: float, weight: float) -> str:
    """The text with one more dimension, its band and its weight; evidence on it comes next.

    Raises:
        CatalogError: There is one of this name already, or it cannot be written.
    """
    document = CatalogDocument.parse(text)
    if name in entries(mapping(document.data()).get("dimensions")):
        raise CatalogError.of("catalog", f"has a dimension {name} already", "give another name")
    document.append("dimensions", name)
    document.set("bands", name, [lo, hi])
    document.set("policy", "weights", name, weight)
    return document.text()


def _read(cell: object) -> Value:
    return None if cell is None or cell == "" else read_rate(cell)


def _same(value: Value, held: object) -> bool:
    if isinstance(value, int | float | Decimal) and isinstance(held, int | float):
        return float(value) == float(held)
    return value == held


def capability_rows(document: CatalogDocument) -> list[dict[str, Data]]:
    """One row per model: `model` and its capabilities set by hand; None for a derived one."""
    data = mapping(document.data())
    dimensions = [str(name) for name in entries(data.get("dimensions"))]
    rows = []
    for model, held in _of_models(data, "capabilities"):
        by_hand = {k: held.get(k) if held.get(k) != "derived" else None for k in dimensions}
        rows.append({"model": model, **by_hand})
    return rows


def scale_rows(document: CatalogDocument) -> list[dict[str, Data]]:
    """One row per dimension: `dimension`, `lo` and `hi` of its band, and its stored `weight`."""
    data = mapping(document.data())
    weights = mapping(mapping(data.get("policy")).get("weights"))
    rows = []
    for name in map(str, entries(data.get("dimensions"))):
        lo, hi = [*entries(mapping(data.get("bands")).get(name)), None, None][:2]
        rows.append({"dimension": name, "lo": lo, "hi": hi, "weight": weights.get(name)})
    return rows


def success_rows(document: CatalogDocument) -> list[dict[str, Data]]:
    """One row for the cost factor and one a model; cells are named `dimension@knot number`."""
    block = mapping(mapping(document.data()).get(_BLOCK))
    held = {COST_FACTOR: block.get("cost_factor"), **mapping(block.get("models"))} if block else {}
    rows = []
    for name, curve in held.items():
        cells: dict[str, Data] = {"model": name}
        cells |= {key: mapping(curve).get(key) for key in _COSTS}
        for dimension, adds in mapping(mapping(curve).get("adds")).items():
            cells |= {f"{dimension}@{i}": value for i, value in enumerate(entries(adds))}
        rows.append(cells)
    return rows


def edit_success(text: str, edits: Mapping[int, Mapping[str, object]]) -> str:
    """The text with edited cells: row of `success_rows` -> column -> value.

    Raises:
        CatalogError: There is no such cell, or a value cannot be written.
    """
    document = CatalogDocument.parse(text)
    names = list(mapping(document.get(_BLOCK, "models")))
    places = [(_BLOCK, "cost_factor"), *((_BLOCK, "models", name) for name in names)]
    for row, cells in edits.items():
        place = _at(places, row)
        for column, value in cells.items():
            number = _read(value)
            dimension, _, knot = column.partition("@")
            if knot:
                document.set(*place, "adds", dimension, int(knot), number)
            else:
                document.set(*place, dimension, number)
    return document.text()
