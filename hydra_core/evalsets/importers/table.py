"""Import of plain tables: CSV, TSV, JSON, JSONL or Parquet, long or wide, one or several files.

Long: one row per query and model (query_id, text, model, quality, cost_usd). Wide: one row per
query, two columns per model (`quality:<model>`, `cost:<model>`). Files are joined on query_id: a
file may hold only the texts and another only the outcomes. An import reads at most 400 MiB of
data and 2,000,000 rows, compressed or not; more is refused before anything is kept.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.spelling import counted
from hydra_core.catalog.identifiers import look_alikes, plain_name, proposed_ids
from hydra_core.evalsets.importers.assemble import ATTEMPT, Rows, assemble
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.headers import holders, unit_columns
from hydra_core.evalsets.importers.mapping import TableMapping, header_notations, suggest_mapping
from hydra_core.evalsets.importers.reading.bounded import (
    Budget,
    TableFile,
    size_of,
    suffix_of,
)
from hydra_core.evalsets.importers.reading.cells import FILE, LINE, PLAIN, Form, Issues, unlisted
from hydra_core.evalsets.importers.reading.columns import Columns
from hydra_core.evalsets.importers.reading.json_document import EACH
from hydra_core.evalsets.importers.reading.notation import Measure, Notation
from hydra_core.evalsets.importers.reading.tables import columns_of, read_columns
from hydra_core.evalsets.importers.traffic.messages import asked_in_cells

_MEASURES = {
    "quality": Measure.QUALITY, "cost_usd": Measure.COST, "latency_s": Measure.SECONDS
}  # fmt: skip

#: Rows of a large file that tell whether ids are those of answers, and bytes of one that is not.
_HEAD, _SMALL = 1_000, 8 << 20
_EFFORT = re.compile(r"(?:(?:reasoning|thinking)[\s_.-]*)?effort(?:[\s_.-]*level)?", re.IGNORECASE)
#: What counts the attempts of a model at a query.
_ATTEMPT = re.compile(
    r"(?:trial|attempt|epoch|seed|repeat|repetition|replicate|iteration|run)"
    r"(?:[\s_.-]*(?:id|no|nr|number|index|idx))?|sample[\s_.-]*(?:no|nr|number|index|idx)",
    re.IGNORECASE,
)
#: What stands where the query would in a row that sums up the rows above it.
_SUMS = frozenset(
    {
        *("total", "totals", "grand total", "average", "averages", "avg", "mean", "sum", "overall"),
        *("gesamt", "summe", "durchschnitt", "mittelwert", "moyenne", "somme", "promedio", "suma"),
    }
)


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
        complete: Whether what the mapping leaves out is suggested from the columns' names.
        need_cost: A missing cost column is an error (single costs may be missing).
        need_text: A missing text column is an error; without, the set may be one without texts.
        form: How the table writes its numbers where a column does not show it.
        notations: Column -> how it is written; goes before `form` and the header.
        ids: Model's name in the tables -> the id it gets; other names are ids as they stand.

    Raises:
        EvalSetError: With every problem found.
    """
    source = ", ".join(file.name for file in files[:3]) + (", ..." if len(files) > 3 else "")
    if not files:
        raise EvalSetError.of("import", "there are no files", "name at least one")
    budget = Budget()
    budget.check_sizes(list(files))
    columns = {i: columns_of(file, inside=True) for i, file in enumerate(files)}
    union = list(dict.fromkeys(name for names in columns.values() for name in names))
    full = mapping or TableMapping()
    if complete:
        full = full.over(without_answer_ids(suggest_mapping(union), files))
    full = full.renamed(ids or {})
    full, identified = full.identified() if len(files) == 1 else (full, "")
    problems = full.problems(union, need_cost=need_cost, need_text=need_text)
    for i, file in enumerate(files):
        problems += [] if problems else _file_problems(file.name, columns[i], full, need_cost)
    EvalSetError.raise_any(source, problems)
    reader = column_reader(union, full, form, notations, rates)
    parts = [_read(file, columns[i], full, budget, reader) for i, file in enumerate(files)]
    outcomes = _joined([part.outcomes for part in parts])
    notes = [*(note for part in parts for note in part.warnings), *reader.notes]
    notes += [identified] if identified else []
    if not full.wide:
        named = outcomes["model"].str.strip()
        notes += _spaces_left_out(outcomes["model"], named)
        outcomes["model"] = _with_ids(named, ids or {})
        outcomes, several = _by_effort(outcomes)
        notes += several
        notes += [
            _joining(names, form)
            for names in look_alikes(named.unique())
            if len({(ids or {}).get(name, name) for name in names}) > 1
        ]
    rows = Rows(
        _joined([part.queries for part in parts]),
        outcomes,
        tuple(dict.fromkeys(notes)),
    )
    draft = assemble(rows, source, need_text=need_text, issues=reader.issues)
    used = {name: column for name, column in full.all_columns().items() if column in union}
    beside = _columns_beside(full, union)
    unread = _unread(union, [*used.values(), *beside])
    worth = ", ".join(f"1 {one} = {reader.rates[one]:g} USD" for one in sorted(reader.converted))
    return replace(
        draft,
        report=replace(draft.report, columns=used, unread=unread),
        price_notes=f"Costs were converted at {worth}" if worth else "",
    )


def _unit_columns(mapping: TableMapping, columns: Sequence[str]) -> list[str]:
    listed = (unit_columns(name, columns, measure) for name, measure in measures(mapping).items())
    return list(dict.fromkeys(one for some in listed for one in some))


def _effort_columns(mapping: TableMapping, columns: Iterable[str]) -> list[str]:
    """The column of a long table that says how much a model was asked to reason, if it has one."""
    free = set(columns) - set(mapping.all_columns().values())
    found = [] if mapping.wide else sorted(one for one in free if _EFFORT.fullmatch(one.strip()))
    return found[:1]


def _attempt_columns(mapping: TableMapping, columns: Iterable[str]) -> list[str]:
    names = list(columns)
    free = set(names) - set(mapping.all_columns().values()) - holders(names)
    return sorted(one for one in free if _ATTEMPT.fullmatch(one.strip()))[:1]


def _columns_beside(mapping: TableMapping, columns: Sequence[str]) -> list[str]:
    return [
        *_unit_columns(mapping, columns),
        *_effort_columns(mapping, columns),
        *_attempt_columns(mapping, columns),
    ]


def without_answer_ids(suggested: TableMapping, files: Sequence[TableFile]) -> TableMapping:
    """The suggestion, without an id that is one of answers: no two rows share it, and each text
    stands in a row of several models.
    """
    names = [suggested.fields.get(name, "") for name in ("query_id", "text", "model")]
    if len(files) != 1 or len(set(names) - {""}) < 3:
        return suggested
    stop = None if size_of(files) <= _SMALL else _HEAD
    frame = read_columns(files[0], names, Budget(), stop=stop, bad=Issues())[0]
    query, text, model = (frame[name].str.strip() for name in names)
    answers = frame.groupby(text).size()
    own = not query.duplicated().any() and not frame[names[1:]].duplicated().any()
    if not own or model.nunique() < 2 or (answers < 2).any() or frame.empty:
        return suggested
    return replace(suggested, fields={n: c for n, c in suggested.fields.items() if n != "query_id"})


def _by_effort(outcomes: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The outcomes, a model that answered at several efforts as one model for each; and a note."""
    if "effort" not in outcomes:
        return outcomes, []
    effort = outcomes["effort"].str.strip()
    several = effort.groupby(outcomes["model"]).transform("nunique") > 1
    names = outcomes["model"].mask(several & (effort != ""), outcomes["model"] + ":" + effort)
    listed = ", ".join(sorted(names[names != outcomes["model"]].unique()))
    notes = [f"each effort of a model was read as a model of its own: {listed}"] if listed else []
    return outcomes.assign(model=names).drop(columns="effort"), notes


def _unread(columns: Sequence[str], used: Iterable[str]) -> tuple[str, ...]:
    """Columns that mean nothing to the set; of an object, the columns inside it alone."""
    taken = {"", *used}
    outer = {name.rpartition(".")[0].removesuffix(EACH) for name in columns}
    return tuple(name for name in columns if name not in taken | outer)


def model_names(files: Sequence[TableFile], mapping: TableMapping | None = None) -> tuple[str, ...]:
    """The models that tables name, as they spell them; none where the column is not known.

    Raises:
        EvalSetError: A file cannot be read.
    """
    budget = Budget()
    columns = {i: columns_of(file, inside=True) for i, file in enumerate(files)}
    union = list(dict.fromkeys(name for names in columns.values() for name in names))
    full = (mapping or TableMapping()).over(suggest_mapping(union))
    if full.wide:
        return tuple(full.quality)
    column = full.fields.get("model")
    found: dict[str, None] = {}
    for i, file in enumerate(files):
        if column is not None and column in columns[i]:
            cells = read_columns(file, [column], budget)[0][column]
            found |= dict.fromkeys(filter(None, cells.str.strip().unique()))
    return tuple(found)


def _spaces_left_out(written: pd.Series, read: pd.Series) -> list[str]:
    """The note on names of models with spaces around them, if there are any."""
    count = written[written != read].nunique()
    return [f"spaces around {counted(count, 'name')} of models were left out"] if count else []


def _joining(names: Sequence[str], form: Form) -> str:
    """How to make one model of names that are spelled alike."""
    proposed = proposed_ids(names)
    model = next((name for name in names if proposed[name] == name), proposed[names[0]])
    options = " ".join(
        form.to_join.replace("PAIR", quote(f"{model}={name}")) for name in names if name != model
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
            raise EvalSetError.of(
                "model ids", f"would be the id of {listed}", "give each its own id", place=model
            )
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
    elif any(mapping.fields[field] in columns for field in ("model", "quality")):
        fields = ["model", "quality", *(["cost_usd"] if "cost_usd" in mapping.fields else [])]
        needed += [mapping.fields[field] for field in fields]
    elif "text" in mapping.fields:
        needed.append(mapping.fields["text"])
    missing = [column for column in needed if column not in columns and column != LINE]
    if not need_cost:
        costs = (mapping.fields.get("cost_usd"), *mapping.cost.values())
        missing = [column for column in missing if column not in costs]
    return [Problem(name, f"there is no column {column!r}") for column in missing]


def _read(
    file: TableFile, columns: list[str], mapping: TableMapping, budget: Budget, reader: Columns
) -> Rows:
    have = {*columns, LINE}
    chosen = mapping.all_columns().values()
    wanted = [column for column in dict.fromkeys(chosen) if column in columns]
    beside = _columns_beside(mapping, columns)
    wanted += [one for one in beside if one not in wanted]
    raw, warnings = read_columns(file, wanted, budget)
    if raw.empty:
        raise EvalSetError.of(file.name, "has no rows", "give a table with rows")
    raw[FILE] = file.name
    raw, summed = _without_sums(raw, mapping)
    warnings = (*warnings, *summed)
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


def _without_sums(raw: pd.DataFrame, mapping: TableMapping) -> tuple[pd.DataFrame, list[str]]:
    """The rows without those at the end that sum up the others, and what was left out."""
    cells = [
        raw[column].str.strip().str.lower().str.rstrip(":")
        for field in ("text", "query_id")
        if (column := mapping.fields.get(field)) in raw.columns and column != LINE
    ]
    sums, other = pd.Series(data=False, index=raw.index), pd.Series(data=False, index=raw.index)
    for one in cells:
        sums |= one.isin(_SUMS)
        other |= ~one.isin(_SUMS | {""})
    last = (sums & ~other)[::-1].cummin()[::-1]
    if not last.any() or last.all():
        return raw, []
    lines = ", ".join(str(line) for line in raw.loc[last, LINE])
    note = f"line {lines} was left out: it sums up the rows above it"
    return raw.loc[~last].reset_index(drop=True), [note]


def _renamed(raw: pd.DataFrame, fields: dict[str, str]) -> pd.DataFrame:
    data = {f: raw[c].astype(str) if c == LINE else raw[c] for f, c in fields.items()}
    return pd.DataFrame({**data, FILE: raw[FILE], LINE: raw[LINE]})


def _outcome_rows(raw: pd.DataFrame, mapping: TableMapping, have: set[str]) -> pd.DataFrame:
    """Outcome rows of one file, long whatever its form; none if it holds only texts."""
    query_id = mapping.fields["query_id"]
    layouts: list[tuple[str | None, dict[str, str]]] = [(None, mapping.outcome_fields)]
    if mapping.wide:
        sides = mapping.sides.items()
        layouts = [
            (model, {field: side[model] for field, side in sides if model in side})
            for model in mapping.quality
        ]
    frames = []
    for model, fields in layouts:
        if fields["quality"] not in have:
            continue
        present = {field: column for field, column in fields.items() if column in have}
        present |= zip(["effort"], _effort_columns(mapping, have), strict=False)
        present |= zip([ATTEMPT], _attempt_columns(mapping, have), strict=False)
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


def column_reader(
    union: Sequence[str],
    mapping: TableMapping,
    form: Form,
    notations: Mapping[str, Notation] | None,
    rates: Mapping[str, float] | None,
) -> Columns:
    """The reader of all columns; EvalSetError for a notation of a column that is not there."""
    unknown = [name for name in notations or {} if name not in union]
    remedy = f"columns: {', '.join(union[:20])}"
    EvalSetError.raise_any("--read", [Problem(repr(n), "is not a column", remedy) for n in unknown])
    return Columns(
        form,
        notations or {},
        header_notations(union),
        {"USD": 1.0, **(rates or {})},
        wide=len(mapping.quality) > 1,
    )


def raw_rows(file: TableFile, n: int) -> pd.DataFrame:
    """The first rows as they stand, each with its FILE and LINE; what is nested is left out.

    Raises:
        EvalSetError: The file cannot be read.
    """
    columns = columns_of(file, inside=True)
    nested = Issues() if suffix_of(file) in (".json", ".jsonl", ".ndjson") else None
    if len({name.partition(EACH)[0] for name in columns if EACH in name}) > 1:
        columns = [name for name in columns if EACH not in name]
    frame = read_columns(file, columns, Budget(), stop=n, bad=nested)[0]
    return frame.assign(**{FILE: file.name})


@dataclass(frozen=True, slots=True, eq=False)
class AsRead:
    """Rows as they will be read.

    Attributes:
        rows: Under the file's own headers; a cell that cannot be read is blank.
        notes: What is read otherwise than it stands, in words.
        faults: Cells that cannot be read, in words.
        currencies: Those that are met, with and without a rate.
    """

    rows: pd.DataFrame
    notes: tuple[str, ...]
    faults: tuple[str, ...]
    currencies: frozenset[str]


def read_rows(
    raw: pd.DataFrame,
    mapping: TableMapping,
    *,
    form: Form = PLAIN,
    notations: Mapping[str, Notation] | None = None,
    rates: Mapping[str, float] | None = None,
) -> AsRead:
    """Rows of one file as they will be read; `raw` has every cell as text, and FILE and LINE."""
    rows = raw.copy()
    columns = [name for name in raw.columns if name not in (FILE, LINE)]
    own = {name: how for name, how in (notations or {}).items() if name in columns}
    reader = column_reader(columns, mapping, form, own, rates)
    for column, measure in measures(mapping).items():
        if column in columns:
            rows[column] = reader.plain(rows, column, measure)
    text = mapping.fields.get("text")
    if text in columns:
        rows[text] = unlisted(rows[text])[0]
    return AsRead(
        rows.drop(columns=[FILE, LINE]),
        tuple(reader.notes),
        tuple(str(problem) for problem in reader.issues.problems()),
        frozenset(reader.converted | reader.unrated),
    )


def measures(mapping: TableMapping) -> dict[str, Measure]:
    """Column -> what its numbers are, of all outcomes."""
    sides = mapping.sides
    if not mapping.wide:
        sides = {field: {"": c} for field, c in mapping.outcome_fields.items() if field != "model"}
    return {
        c: _MEASURES.get(field, Measure.COUNT) for field, s in sides.items() for c in s.values()
    }
