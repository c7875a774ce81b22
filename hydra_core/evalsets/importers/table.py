"""Import of plain tables: CSV, TSV, JSONL or Parquet, long or wide, one or several files.

Long: one row per query and model (query_id, text, model, quality, cost_usd). Wide: one row per
query, two columns per model (`quality:<model>`, `cost:<model>`). Files are joined on query_id: a
file may hold only the texts and another only the outcomes. An import reads at most 200 MiB of
data and 2,000,000 rows, compressed or not; more is refused before anything is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.assemble import Rows, assemble
from hydra_core.evalsets.importers.draft import About, Draft, ImportReport, write_draft
from hydra_core.evalsets.importers.mapping import TableMapping, suggest_mapping
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.cells import FILE, PLAIN, Form
from hydra_core.evalsets.importers.reading.tables import LINE, columns_of, head_of, read_columns


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """The first rows of a table as text, and what its columns seem to mean."""

    columns: tuple[str, ...]
    rows: pd.DataFrame
    suggested: TableMapping


def preview(file: TableFile, n: int = 20) -> Preview:
    """Look at a table without importing it.

    Raises:
        EvalSetError: It cannot be read.
    """
    columns = columns_of(file)
    return Preview(tuple(columns), head_of(file, n), suggest_mapping(columns))


def import_table(
    files: Sequence[TableFile],
    out: Path,
    mapping: TableMapping | None = None,
    about: About | None = None,
    *,
    need_cost: bool = True,
    need_text: bool = True,
    form: Form = PLAIN,
    ids: Mapping[str, str] | None = None,
    force: bool = False,
) -> ImportReport:
    """Import tables as an eval set folder; see `read_table` and `write_draft`.

    Raises:
        EvalSetError: With every problem found; nothing was changed on disk.
    """
    draft = read_table(
        files,
        mapping,
        need_cost=need_cost,
        need_text=need_text,
        form=form,
        ids=ids,
    )
    origin = ", ".join(file.name for file in files)
    write_draft(draft, out, about or About(origin=origin), force=force)
    return draft.report


def read_table(
    files: Sequence[TableFile],
    mapping: TableMapping | None = None,
    *,
    need_cost: bool = True,
    need_text: bool = True,
    form: Form = PLAIN,
    ids: Mapping[str, str] | None = None,
) -> Draft:
    """Read tables into an eval set in memory.

    Args:
        files: Paths or uploaded files.
        mapping: What the columns mean; the rest is suggested from their names.
        need_cost: A missing cost column is an error (single costs may be missing).
        need_text: A missing text column is an error; without, the set may be one without texts.
        form: How qualities, costs and tokens are written.
        ids: Model's name in the tables -> the id it gets; other names are ids as they stand.

    Raises:
        EvalSetError: With every problem found.
    """
    source = ", ".join(file.name for file in files[:3]) + (", ..." if len(files) > 3 else "")
    if not files:
        raise EvalSetError("import", [Problem("", "there are no files", "name at least one")])
    budget = Budget()
    budget.check_sizes(list(files))
    columns = {i: columns_of(file) for i, file in enumerate(files)}
    union = list(dict.fromkeys(name for names in columns.values() for name in names))
    full = (mapping or TableMapping()).over(suggest_mapping(union)).renamed(ids or {})
    problems = full.problems(union, need_cost=need_cost, need_text=need_text)
    for i, file in enumerate(files):
        problems += [] if problems else _file_problems(file.name, columns[i], full, need_cost)
    if problems:
        raise EvalSetError(source, problems)
    parts = [_read(file, columns[i], full, budget) for i, file in enumerate(files)]
    outcomes = _joined([part.outcomes for part in parts])
    if not full.wide:
        outcomes["model"] = _with_ids(outcomes["model"], ids or {})
    rows = Rows(
        _joined([part.queries for part in parts]),
        outcomes,
        tuple(text for part in parts for text in part.warnings),
    )
    draft = assemble(rows, source, form=form, need_text=need_text)
    used = {name: column for name, column in full.all_columns().items() if column in union}
    return replace(draft, report=replace(draft.report, columns=used))


def model_names(files: Sequence[TableFile], mapping: TableMapping | None = None) -> tuple[str, ...]:
    """The models that tables name, as they spell them; none where the column is not known.

    Raises:
        EvalSetError: A file cannot be read.
    """
    budget = Budget()
    union = list(dict.fromkeys(name for file in files for name in columns_of(file)))
    full = (mapping or TableMapping()).over(suggest_mapping(union))
    if full.wide:
        return tuple(full.quality)
    column = full.fields.get("model")
    found: dict[str, None] = {}
    for file in files:
        if column is not None and column in columns_of(file):
            cells = read_columns(file, [column], budget)[0][column]
            found |= dict.fromkeys(cells[cells != ""].unique())
    return tuple(found)


def _with_ids(names: pd.Series, ids: Mapping[str, str]) -> pd.Series:
    """Model names as ids; two names of one id are refused, their outcomes would mix."""
    present = [name for name in names.unique() if name]
    new = [ids.get(name, name) for name in present]
    twice = sorted({one for one in new if new.count(one) > 1})
    if twice:
        both = ", ".join(repr(name) for name in present if ids.get(name, name) == twice[0])
        problem = Problem(twice[0], f"would be the id of {both}", "give each its own id")
        raise EvalSetError("model ids", [problem])
    return names.map(lambda name: ids.get(name, name))


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all files; a column that a file does not have is empty there."""
    return pd.concat(frames, ignore_index=True).fillna("")


def _file_problems(
    name: str, columns: list[str], mapping: TableMapping, need_cost: bool
) -> list[Problem]:
    """Columns that one of several files lacks although it needs them."""
    needed = [mapping.fields["query_id"]]
    if mapping.wide:
        models = [model for model, column in mapping.quality.items() if column in columns]
        needed += [mapping.cost[model] for model in models if model in mapping.cost]
    elif _has_outcomes(columns, mapping):
        fields = ["model", "quality", *(["cost_usd"] if "cost_usd" in mapping.fields else [])]
        needed += [mapping.fields[field] for field in fields]
    elif "text" in mapping.fields:
        needed.append(mapping.fields["text"])
    missing = [column for column in needed if column not in columns]
    if not need_cost:
        missing = [c for c in missing if c not in (mapping.fields.get("cost_usd"), *mapping.cost)]
    return [Problem(name, f"there is no column {column!r}") for column in missing]


def _has_outcomes(columns: list[str], mapping: TableMapping) -> bool:
    return any(mapping.fields[field] in columns for field in ("model", "quality"))


def _read(file: TableFile, columns: list[str], mapping: TableMapping, budget: Budget) -> Rows:
    have = set(columns)
    chosen = [*mapping.fields.values(), *mapping.quality.values(), *mapping.cost.values()]
    wanted = [column for column in dict.fromkeys(chosen) if column in have]
    raw, warnings = read_columns(file, wanted, budget)
    if raw.empty:
        raise EvalSetError(file.name, [Problem("", "has no rows", "give a table with rows")])
    raw[FILE] = file.name
    queries = _renamed(raw, {f: c for f, c in mapping.query_fields.items() if c in have})
    if "text" not in queries.columns:
        queries["text"] = ""
    return Rows(queries, _outcome_rows(raw, mapping, have), warnings)


def _renamed(raw: pd.DataFrame, fields: dict[str, str]) -> pd.DataFrame:
    data = {field: raw[column] for field, column in fields.items()}
    return pd.DataFrame({**data, FILE: raw[FILE], LINE: raw[LINE]})


def _outcome_rows(raw: pd.DataFrame, mapping: TableMapping, have: set[str]) -> pd.DataFrame:
    """Outcome rows of one file, long whatever its form; none if it holds only texts."""
    query_id = mapping.fields["query_id"]
    layouts = (
        [
            (m, {"quality": c, "cost_usd": mapping.cost.get(m, "")})
            for m, c in mapping.quality.items()
        ]
        if mapping.wide
        else [(None, mapping.outcome_fields)]
    )
    frames = []
    for model, fields in layouts:
        if fields["quality"] not in have:
            continue
        present = {field: column for field, column in fields.items() if column in have}
        frame = _renamed(raw, {"query_id": query_id, **present})
        if model is not None:
            frame["model"] = model
        if "cost_usd" not in frame.columns:
            frame["cost_usd"] = ""
        frames.append(frame)
    if not frames:
        empty = _renamed(raw.iloc[:0], {"query_id": query_id})
        return empty.assign(model="", quality="", cost_usd="")
    return pd.concat(frames, ignore_index=True)
