"""Rows pasted from a spreadsheet: columns recognised by their heading, models by their id."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.base.reading.fields import did_you_mean
from hydra_core.base.types import Catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.model_grid import FIELDS, edit_cells, model_rows
from hydra_core.catalog.editing.render import Value

MAX_ROWS: Final = 1000
_MAX_CHARS: Final = 2_000_000
_SOURCE: Final = "the pasted rows"
#: Other headings that people use, folded.
_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model": "id", "modelid": "id", "name": "id", "vendor": "provider",
        "input": "input_usd_per_mtok", "inputprice": "input_usd_per_mtok",
        "inputusdmtok": "input_usd_per_mtok", "inputusdpermtok": "input_usd_per_mtok",
        "output": "output_usd_per_mtok", "outputprice": "output_usd_per_mtok",
        "outputusdmtok": "output_usd_per_mtok", "outputusdpermtok": "output_usd_per_mtok",
        "cached": "cached_input_usd_per_mtok", "cachedinput": "cached_input_usd_per_mtok",
        "cachedinputprice": "cached_input_usd_per_mtok", "context": "context_window",
        "contexttokens": "context_window", "retireson": "retire_on", "source": "price_source",
        "date": "price_date", "pricedate": "price_date", "pricesource": "price_source",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pasted:
    """What was read: the catalog key of each column, and one mapping of cells per row.

    Attributes:
        columns: Heading as pasted -> key, ``scores.<benchmark>`` or ``capabilities.<dimension>``.
    """

    columns: Mapping[str, str]
    rows: tuple[Mapping[str, str], ...]


def read_pasted(text: str, catalog: Catalog) -> Pasted:
    """Read tab- or comma-separated rows with a heading.

    Raises:
        CatalogError: No heading, an unknown column, no id, too much; all problems are listed.
    """
    if len(text) > _MAX_CHARS:
        raise _refused([Problem("", f"has {len(text):,} characters, at most {_MAX_CHARS:,}")])
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        remedy = "copy the heading row too: Model, Input price, Output price, ..."
        raise _refused([Problem("", "needs a heading and at least one row", remedy)])
    delimiter = next((mark for mark in "\t;" if mark in lines[0]), ",")
    table = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter))
    columns, problems = _columns(table[0], catalog)
    problems += _shape(table, len(table[0]))
    if problems:
        raise _refused(problems)
    keys = list(columns.values())
    rows = [dict(zip(keys, map(str.strip, cells), strict=False)) for cells in table[1:]]
    unnamed = [i for i, row in enumerate(rows) if not row.get("id")]
    if unnamed:
        raise _refused([Problem(f"row {i + 1}", "has no model id") for i in unnamed[:20]])
    return Pasted(columns, tuple(rows))


def apply_pasted(text: str, pasted: Pasted) -> str:
    """The catalog text with the pasted cells: known ids are changed, unknown ones are added.

    Empty cells change nothing. The result need not be valid: parse it to see what is missing.

    Raises:
        CatalogError: A cell cannot be written.
    """
    document = CatalogDocument.parse(text)
    index = {str(row["id"]): i for i, row in enumerate(model_rows(document))}
    edits: dict[int, dict[str, object]] = {}
    nested: dict[int, dict[str, str]] = {}
    for row in pasted.rows:
        if row["id"] not in index:
            index[row["id"]] = len(index)
            document.append("models", {"id": row["id"], "capabilities": "derived"})
        at = index[row["id"]]
        given = {key: value for key, value in row.items() if value}
        edits.setdefault(at, {}).update({k: v for k, v in given.items() if k in FIELDS})
        nested.setdefault(at, {}).update({k: v for k, v in given.items() if k not in FIELDS})
    document = CatalogDocument.parse(edit_cells(document.text(), edits))
    for at, cells in nested.items():
        for path, value in cells.items():
            _set_nested(document, at, path, value)
    return document.text()


def _set_nested(document: CatalogDocument, row: int, path: str, value: str) -> None:
    section, _, name = path.partition(".")
    written: Value = FIELDS["input_usd_per_mtok"].read(value)
    model = document.get("models", row)
    inside = model.get(section) if isinstance(model, dict) else None
    if isinstance(inside, dict):
        document.set("models", row, section, name, written)
    else:
        document.set("models", row, section, {name: written})


def _columns(headings: list[str], catalog: Catalog) -> tuple[dict[str, str], list[Problem]]:
    known = _known(catalog)
    columns: dict[str, str] = {}
    problems = []
    for heading in headings:
        key = known.get(_folded(heading))
        if key is None:
            names = [field.label for field in FIELDS.values()]
            names += [*(b.id for b in catalog.benchmarks), *catalog.dimensions]
            hint = did_you_mean(heading.strip(), names)
            problems.append(Problem(f"column {heading.strip()[:60]!r}", "is not known", hint))
        elif key in columns.values():
            problems.append(Problem(f"column {heading.strip()[:60]!r}", "is given twice"))
        else:
            columns[heading] = key
    if "id" not in columns.values() and not problems:
        problems.append(Problem("", "has no column with the model id", "head it 'Model' or 'id'"))
    return columns, problems


def _known(catalog: Catalog) -> dict[str, str]:
    keys = dict(_ALIASES)
    keys |= {_folded(benchmark.id): f"scores.{benchmark.id}" for benchmark in catalog.benchmarks}
    keys |= {_folded(name): f"capabilities.{name}" for name in catalog.dimensions}
    for key, field in FIELDS.items():
        keys |= {_folded(key): key, _folded(field.label): key}
    return keys


def _shape(table: list[list[str]], width: int) -> list[Problem]:
    if len(table) > MAX_ROWS + 1:
        return [Problem("", f"has {len(table) - 1:,} rows, at most {MAX_ROWS:,}", "split it")]
    return [
        Problem(f"row {i}", f"has {len(cells)} cells, the heading {width}")
        for i, cells in enumerate(table)
        if len(cells) > width
    ][:20]


def _folded(heading: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*?\)|\$|usd|/m(tok)?$", "", heading.lower()))


def _refused(problems: list[Problem]) -> CatalogError:
    return CatalogError(_SOURCE, problems)
