"""Import of plain tables: CSV, TSV, JSONL or Parquet, long or wide, one or several files.

Long: one row per query and model (query_id, text, model, quality, cost_usd). Wide: one row per
query, two columns per model (`quality:<model>`, `cost:<model>`). Files are joined on query_id: a
file may hold only the texts and another only the outcomes. An import reads at most 400 MiB of
data and 2,000,000 rows, compressed or not; more is refused before anything is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.catalog.identifiers import look_alikes, plain_name
from hydra_core.evalsets.importers.as_read import column_reader, measures
from hydra_core.evalsets.importers.assemble import Rows, assemble
from hydra_core.evalsets.importers.draft import About, Draft, ImportReport, write_draft
from hydra_core.evalsets.importers.mapping import TableMapping, suggest_mapping
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.cells import FILE, PLAIN, Form
from hydra_core.evalsets.importers.reading.columns import Columns
from hydra_core.evalsets.importers.reading.notation import Notation
from hydra_core.evalsets.importers.reading.tables import LINE, columns_of, read_columns
from hydra_core.evalsets.importers.reading.texts import unlisted
from hydra_core.evalsets.importers.traffic.messages import asked_in_cells


def import_table(
    files: Sequence[TableFile],
    out: Path,
    mapping: TableMapping | None = None,
    about: About | None = None,
    *,
    need_cost: bool = True,
    need_text: bool = True,
    form: Form = PLAIN,
    notations: Mapping[str, Notation] | None = None,
    rates: Mapping[str, float] | None = None,
    ids: Mapping[str, str] | None = None,
    complete: bool = True,
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
        notations=notations,
        rates=rates,
        ids=ids,
        complete=complete,
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
    notations: Mapping[str, Notation] | None = None,
    rates: Mapping[str, float] | None = None,
    ids: Mapping[str, str] | None = None,
    complete: bool = True,
) -> Draft:
    """Read tables into an eval set in memory.

    Args:
        files: Paths or uploaded files.
        mapping: What the columns mean.
        complete: Whether what the mapping leaves out is suggested from the columns' names.
        need_cost: A missing cost column is an error (single costs may be missing).
        need_text: A missing text column is an error; without, the set may be one without texts.
        form: How the table writes its numbers where a column does not show it.
        notations: Column -> how it is written; goes before `form` and the header.
        rates: Currency -> USD of one unit.
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
    full = mapping or TableMapping()
    full = (full.over(suggest_mapping(union)) if complete else full).renamed(ids or {})
    problems = full.problems(union, need_cost=need_cost, need_text=need_text)
    for i, file in enumerate(files):
        problems += [] if problems else _file_problems(file.name, columns[i], full, need_cost)
    if problems:
        raise EvalSetError(source, problems)
    reader = column_reader(union, full, form, notations, rates)
    parts = [_read(file, columns[i], full, budget, reader) for i, file in enumerate(files)]
    outcomes = _joined([part.outcomes for part in parts])
    notes = [*(note for part in parts for note in part.warnings), *reader.notes]
    if not full.wide:
        outcomes["model"] = _with_ids(outcomes["model"], ids or {})
        notes += [_joining(names, form) for names in look_alikes(outcomes["model"].unique())]
    rows = Rows(
        _joined([part.queries for part in parts]),
        outcomes,
        tuple(dict.fromkeys(notes)),
    )
    draft = assemble(rows, source, need_text=need_text, issues=reader.issues)
    used = {name: column for name, column in full.all_columns().items() if column in union}
    worth = ", ".join(f"1 {one} = {reader.rates[one]:g} USD" for one in sorted(reader.converted))
    return replace(
        draft,
        report=replace(draft.report, columns=used),
        price_notes=f"Costs were converted at {worth}" if worth else "",
    )


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


def _joining(names: Sequence[str], form: Form) -> str:
    """How to make one model of names that are spelled alike."""
    options = " ".join(
        form.to_join.replace("PAIR", quote(f"{names[0]}={name}")) for name in names[1:]
    )
    return f"to read {' and '.join(names)} as one model: {options}"


def _with_ids(names: pd.Series, ids: Mapping[str, str]) -> pd.Series:
    """Model names as ids; two names of one id are refused unless they are spelled alike."""
    sharing: dict[str, list[str]] = {}
    for name in filter(None, names.unique()):
        sharing.setdefault(ids.get(name, name), []).append(name)
    for model, both in sharing.items():
        if len({plain_name(name) for name in both}) > 1:
            listed = ", ".join(map(repr, both))
            problem = Problem(model, f"would be the id of {listed}", "give each its own id")
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


def _read(
    file: TableFile, columns: list[str], mapping: TableMapping, budget: Budget, reader: Columns
) -> Rows:
    have = set(columns)
    chosen = mapping.all_columns().values()
    wanted = [column for column in dict.fromkeys(chosen) if column in have]
    raw, warnings = read_columns(file, wanted, budget)
    if raw.empty:
        raise EvalSetError(file.name, [Problem("", "has no rows", "give a table with rows")])
    raw[FILE] = file.name
    queries = _renamed(raw, {f: c for f, c in mapping.query_fields.items() if c in have})
    if "text" not in queries.columns:
        queries["text"] = ""
    queries["text"], notes = unlisted(queries["text"])
    asked = asked_in_cells(queries["text"])
    if asked is not None:
        queries = queries.assign(**asked)
        notes = (*notes, "texts were read for the last user message of the conversations in them")
    for column, measure in measures(mapping).items():
        if column in have:
            raw[column] = reader.plain(raw, column, measure)
    return Rows(queries, _outcome_rows(raw, mapping, have), (*warnings, *notes))


def _renamed(raw: pd.DataFrame, fields: dict[str, str]) -> pd.DataFrame:
    data = {field: raw[column] for field, column in fields.items()}
    return pd.DataFrame({**data, FILE: raw[FILE], LINE: raw[LINE]})


def _outcome_rows(raw: pd.DataFrame, mapping: TableMapping, have: set[str]) -> pd.DataFrame:
    """Outcome rows of one file, long whatever its form; none if it holds only texts."""
    query_id = mapping.fields["query_id"]
    layouts: list[tuple[str | None, dict[str, str]]] = [(None, mapping.outcome_fields)]
    if mapping.wide:
        sides = {"quality": mapping.quality, "cost_usd": mapping.cost, **mapping.more}
        layouts = [
            (model, {field: side[model] for field, side in sides.items() if model in side})
            for model in mapping.quality
        ]
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
    return pd.concat(frames, ignore_index=True).fillna("")
