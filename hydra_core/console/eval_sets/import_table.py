"""The import wizard's source of tables: what the columns mean, and the first rows as read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hydra_core.base.currencies import CURRENCIES
from hydra_core.base.errors import HydraError
from hydra_core.catalog.identifiers import look_alikes, proposed_ids
from hydra_core.console import tables, widgets
from hydra_core.console.state import once
from hydra_core.console.widgets import literal
from hydra_core.evalsets.importers import table
from hydra_core.evalsets.importers.draft import About, ImportReport, write_draft
from hydra_core.evalsets.importers.mapping import TableMapping, suggest_mapping
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.cells import BLANK, FILE, LINE, WORDS, Form, among
from hydra_core.evalsets.importers.reading.notation import Measure, Notation, parse_notations
from hydra_core.evalsets.importers.reading.tables import columns_of
from hydra_core.evalsets.importers.table import measures

#: What an import runs: folder, facts on the set, whether to replace -> report.
Runner = Callable[[Path, About, bool], ImportReport]
#: How the wizard's remedies name its own fields.
FORM: Final = Form(to_read="Written: HOW", to_rate="USD per CURRENCY", to_join="Model names: PAIR")
#: What a column may be said to hold, by what a remedy calls it.
WRITTEN: Final[Mapping[str, str]] = {
    "percent": "percent: 83 is 0.83",
    "1/5": "1/5: 5 is 1",
    "1/10": "1/10: 10 is 1",
    "words": "words: pass is 1, fail is 0",
    "share": "share: 0.83 is 0.83",
    "comma": "comma: 1,234 is 1.234",
    "point": "point: 1,234 is 1234",
    "cents": "cents: 5 is $0.05",
    "1/1000": "1/1000: costs of 1,000 answers, 5 is $0.005",
    "percent,comma": "percent,comma: 83,5 is 0.835",
    "cents,comma": "cents,comma: 1,234 is $0.01234",
}
#: The grid's columns of one model, and what each is called.
SIDES: Final[Mapping[str, str]] = {
    "quality": "Quality",
    "cost_usd": "Cost",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
    "cached_input_tokens": "Cached tokens",
}
#: A message has this many words, in more than this share of its column's cells.
_WORDS, _MOST = 3, 0.5
_HOLDS: Final[Mapping[Measure, str]] = {
    Measure.QUALITY: "quality",
    Measure.COST: "cost",
    Measure.COUNT: "tokens",
    Measure.SECONDS: "time",
}


@dataclass(frozen=True, slots=True)
class Grid:
    """What an operator made of the grid: columns and ids by model's name; names without quality."""

    mapping: TableMapping
    ids: Mapping[str, str]
    lacking: tuple[str, ...]


def with_likely_text(suggested: TableMapping, heads: Sequence[pd.DataFrame]) -> TableMapping:
    """The suggestion; where no name tells the message, that is the column of the longest texts."""
    if "text" in suggested.fields:
        return suggested
    taken = {*suggested.all_columns().values(), FILE, LINE}
    lengths: dict[str, float] = {}
    for head in heads:
        for column in (str(name) for name in head if name not in taken):
            cells = head[column][~among(head[column], BLANK)]
            if len(cells) and (cells.str.count(r"\s") >= _WORDS - 1).mean() > _MOST:
                lengths[column] = max(lengths.get(column, 0.0), float(cells.str.len().mean()))
    if not lengths:
        return suggested
    longest = max(lengths, key=lambda column: lengths[column])
    return replace(suggested, fields={**suggested.fields, "text": longest})


def model_grid(suggested: TableMapping) -> pd.DataFrame:
    """One row a model: its name in the file, an id for it, and the columns of its figures."""
    ids = proposed_ids(list(suggested.quality))
    columns = [suggested.sides.get(side, {}) for side in SIDES]
    rows = [[name, ids[name], *(one.get(name) for one in columns)] for name in suggested.quality]
    return pd.DataFrame(rows, columns=["name", "id", *SIDES], dtype=object)


def read_grid(grid: pd.DataFrame, suggested: TableMapping) -> Grid:
    """The grid as an operator left it; what it does not show stays as suggested."""
    sides: dict[str, dict[str, str]] = {side: {} for side in SIDES}
    ids, lacking = {}, []
    for row in grid.to_dict("records"):
        model = _cell(row["id"])
        name = _cell(row["name"]) or model or _cell(row["quality"])
        if not _cell(row["quality"]):
            lacking += [name] if name else []
            continue
        ids[name] = model or proposed_ids([name])[name]
        for side in SIDES:
            if column := _cell(row[side]):
                sides[side][name] = column
    hidden = {
        figure: {name: column for name, column in columns.items() if name in ids}
        for figure, columns in suggested.sides.items()
        if figure not in SIDES
    }
    stated = {figure: columns for figure, columns in {**sides, **hidden}.items() if columns}
    mapping = TableMapping(suggested.query_fields, stated)
    return Grid(mapping, ids, tuple(lacking))


def _cell(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def number_columns(mapping: TableMapping, heads: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One row a column of numbers: what it holds, its first cell, how it is proposed to be read."""
    rows = []
    for column, measure in measures(mapping).items():
        cells = pd.concat([head[column] for head in heads if column in head] or [pd.Series([""])])
        filled = cells[~among(cells, BLANK)]
        words = measure is Measure.QUALITY and among(filled, WORDS).any()
        rows.append(
            {
                "column": column,
                "holds": _HOLDS[measure],
                "first": str(filled.iloc[0])[:40] if len(filled) else "",
                "written": "words" if words else None,
            }
        )
    return pd.DataFrame(rows, columns=["column", "holds", "first", "written"], dtype=object)


def notations_of(table: pd.DataFrame) -> dict[str, Notation]:
    """How columns are written, where an operator or a proposal says so."""
    stated = [
        f"{row['column']}={row['written']}"
        for row in table.to_dict("records")
        if isinstance(row["written"], str)
    ]
    return parse_notations(stated)


_QUERY = {
    "query_id": "Query id",
    "text": "Message text",
    "language": "Language",
    "group": "Group",
}
_LONG = {"model": "Model", "quality": "Quality", "cost_usd": "Cost"}
_REQUIRED = ("query_id", "text", "model", "quality")
_ROW_LONG, _ROW_WIDE = "A query and a model", "A query, with columns for each model"
#: Rows that are looked at before the import reads all, and those that are shown.
_LOOKED_AT, _SHOWN = 1_000, 5
_CURRENCIES = sorted(set(CURRENCIES.values()) - {"USD"})


def table_source(uploads: Sequence[UploadedFile]) -> tuple[Runner, str] | None:
    """Draw what a table asks for; the import to run and a name for it, None after a problem."""
    files = [cast(TableFile, file) for file in uploads]
    stamp = "-".join(file.file_id for file in uploads)[:200]
    shown = st.container()
    try:
        heads = [table.raw_rows(file, _LOOKED_AT) for file in files]
        columns = list(
            dict.fromkeys(name for file in files for name in columns_of(file, inside=True))
        )
        likely = table.without_answer_ids(suggest_mapping(columns), files)
        suggested = with_likely_text(likely, heads)
        mapping, ids = _meaning(columns, suggested, stamp, several=len(files) > 1)
        ids = ids if mapping.wide else _model_ids(_names(files, mapping, stamp))
    except HydraError as error:
        widgets.problem(error)
        return None
    rates = _rates(mapping, heads, stamp)
    notations = _notations(mapping, heads, stamp)
    usable = {name: rate for name, rate in rates.items() if rate}
    with shown:
        _first_rows(
            [
                table.read_rows(head, mapping, form=FORM, notations=notations, rates=usable)
                for head in heads
            ],
            uploads[0].name,
        )
    bare = "text" not in mapping.fields and st.checkbox(
        "These files hold no message texts", key="eval_sets.no_texts",
        help="Without texts the set cannot be scored, because requirements are read from texts.",
    )  # fmt: skip
    _, note = mapping.identified() if len(files) == 1 else (mapping, "")
    if note:
        st.caption(literal(f"{note[0].upper()}{note[1:]}."))
    wide = st.session_state[f"eval_sets.rows.{stamp}"] == _ROW_WIDE
    needed = set() if bare else {"text"}
    needed |= {"query_id"} if len(files) > 1 or (bare and not wide) else set()
    needed |= set() if wide else {"model", "quality"}
    if not _complete(mapping, needed, rates) or mapping.wide is not wide:
        return None

    def run(out: Path, about: About, force: bool) -> ImportReport:
        if not about.origin:
            about = replace(about, origin=", ".join(file.name for file in files))
        draft = table.read_table(
            files, mapping, need_cost=False, need_text=not bare, form=FORM,
            notations=notations, rates=usable, ids=ids, complete=False,
        )  # fmt: skip
        write_draft(draft, out, about, force=force)
        return draft.report

    return run, str(uploads[0].name).split(".")[0].replace("_", " ")


def _complete(mapping: TableMapping, needed: Set[str], rates: Mapping[str, float | None]) -> bool:
    """Whether every field that is needed has its column and every currency its rate; or say so."""
    labels = {**_QUERY, **_LONG}.items()
    lacking = [label for field, label in labels if field in needed - mapping.fields.keys()]
    unrated = [currency for currency, rate in rates.items() if not rate]
    if lacking:
        st.warning(f"Choose a column for: {', '.join(lacking)}.", icon=":material/view_column:")
    if unrated:
        st.warning(
            f"Say how many USD one {' and one '.join(unrated)} was.",
            icon=":material/currency_exchange:",
        )
    return not lacking and not unrated


def _first_rows(seen: Sequence[table.AsRead], name: str) -> None:
    """The first rows of the first file as they will be read, and what is odd in any file."""
    st.markdown("##### First rows, as they will be read")
    tables.kept(seen[0].rows.head(_SHOWN), "eval_sets.first_rows")
    if len(seen) > 1:
        st.caption(literal(f"From {name}, the first of {len(seen)} files."))
    for fault in dict.fromkeys(fault for one in seen for fault in one.faults):
        st.warning(literal(fault), icon=":material/warning:")
    if notes := list(dict.fromkeys(note for one in seen for note in one.notes)):
        with st.popover(f"Read otherwise than written: {len(notes)}", icon=":material/translate:"):
            st.markdown("\n".join(f"- {literal(note)}" for note in notes))


def _meaning(
    columns: Sequence[str], suggested: TableMapping, stamp: str, *, several: bool
) -> tuple[TableMapping, dict[str, str]]:
    """What the columns mean, filled with what is suggested; and ids of a wide table's models."""
    st.markdown("##### What the columns mean")
    rows = [_ROW_LONG, _ROW_WIDE]
    wide = st.segmented_control(
        "Each row is", rows, default=rows[suggested.wide], required=True,
        key=f"eval_sets.rows.{stamp}",
    ) == _ROW_WIDE  # fmt: skip
    labels = _QUERY if wide else {**_QUERY, **_LONG}
    needed = _REQUIRED if several else _REQUIRED[1:]
    fields = _fields(labels, columns, suggested.fields, stamp, needed)
    known = suggested.query_fields if wide else suggested.fields
    rest = {f: c for f, c in known.items() if f not in labels and c not in fields.values()}
    mapping = TableMapping({**rest, **fields})
    if not wide:
        return mapping, {}
    edited = st.data_editor(
        model_grid(suggested),
        key=f"eval_sets.grid.{stamp}",
        hide_index=True,
        num_rows="dynamic",
        height="content" if len(suggested.quality) <= 12 else 460,
        column_order=["id", *SIDES],
        placeholder="–",
        column_config={
            "id": st.column_config.TextColumn("Model id", required=True, width="medium"),
            **{
                side: st.column_config.SelectboxColumn(label, options=list(columns))
                for side, label in SIDES.items()
            },
        },
    )
    grid = read_grid(edited, suggested)
    if grid.lacking:
        left_out = ", ".join(grid.lacking)
        st.caption(literal(f"Left out, because no column holds their quality: {left_out}."))
    elif not grid.mapping.wide:
        st.caption("Add a row for each model, and choose the columns of its quality and cost.")
    return replace(grid.mapping, fields=mapping.fields), dict(grid.ids)


def _fields(
    labels: Mapping[str, str],
    columns: Sequence[str],
    found: Mapping[str, str],
    stamp: str,
    needed: Sequence[str],
) -> dict[str, str]:
    chosen: dict[str, str] = {}
    places = st.columns(4)
    for i, (field, label) in enumerate(labels.items()):
        guess = found.get(field)
        column = places[i % 4].selectbox(
            f"{label} *" if field in needed else label,
            columns,
            index=columns.index(guess) if guess in columns else None,
            placeholder="not in the file",
            format_func=lambda name: name if name.strip() else repr(name),
            key=f"eval_sets.map.{field}.{stamp}",
        )
        if column is not None:
            chosen[field] = column
    return chosen


def _names(files: Sequence[TableFile], mapping: TableMapping, stamp: str) -> tuple[str, ...]:
    """The models that a column names, read once per upload and column."""

    def read() -> tuple[str, ...]:
        with st.spinner("Reading the names of models", show_time=True):
            return table.model_names(files, mapping)

    return once("eval_sets.named", (stamp, mapping.fields.get("model")), read)


def _model_ids(names: Sequence[str]) -> dict[str, str]:
    """An id, editable, for each name that cannot be one or is spelled like another; name -> id."""
    proposed = proposed_ids(names)
    alike = {name for group in look_alikes(names) for name in group}
    strange = {name: model for name, model in proposed.items() if name != model or name in alike}
    if not strange:
        return {}
    st.markdown("##### Model names")
    new = sum(name != model for name, model in strange.items())
    if new:
        st.caption(
            f"{new} of {len(names)} names cannot be ids (letters, digits and . _ - / : @ +). "
            "These ids replace them; change any of them."
        )
    if alike:
        st.caption("Some names are spelled alike. Give them one id if they are one model.")
    places = st.columns(min(4, len(strange)))
    return {
        name: places[i % 4]
        .text_input(literal(name), model, key=f"eval_sets.id.{name}", max_chars=128)
        .strip()
        for i, (name, model) in enumerate(strange.items())
    }


def _notations(
    mapping: TableMapping, heads: Sequence[pd.DataFrame], stamp: str
) -> dict[str, Notation]:
    """How each column of numbers is written, where its cells leave that open."""
    listed = number_columns(mapping, heads)
    if listed.empty:
        return {}
    column = st.column_config
    with st.expander("How numbers are written", icon=":material/pin:"):
        edited = st.data_editor(
            listed,
            key=f"eval_sets.written.{stamp}.{hash(tuple(listed['column']))}",
            hide_index=True,
            disabled=["column", "holds", "first"],
            placeholder="as the cells show",
            height="content" if len(listed) <= 12 else 460,
            column_config={
                "column": column.TextColumn("Column", width="medium"),
                "holds": column.TextColumn("Holds"),
                "first": column.TextColumn("First cell"),
                "written": column.SelectboxColumn(
                    "Written",
                    options=list(WRITTEN),
                    format_func=lambda how: WRITTEN[str(how)],
                ),
            },
        )
    return notations_of(edited)


def _rates(
    mapping: TableMapping, heads: Sequence[pd.DataFrame], stamp: str
) -> dict[str, float | None]:
    """Currency -> USD of one unit, None until it is given."""
    seen = [table.read_rows(head, mapping) for head in heads]
    found = sorted({one for rows in seen for one in rows.currencies})
    if "cost_usd" not in mapping.fields and not mapping.cost:
        return {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.multiselect(
            "Currencies beside USD", _CURRENCIES, found, width=280, placeholder="none",
            key=f"eval_sets.currencies.{stamp}.{'-'.join(found)}",
        )  # fmt: skip
        return {
            one: st.number_input(
                f"USD per {one}",
                min_value=0.0,
                value=None,
                step=None,
                format="%g",
                width=160,
                placeholder="1.08",
                key=f"eval_sets.rate.{one}.{stamp}",
                help=f"What one {one} was worth when the costs were recorded.",
            )  # fmt: skip
            for one in chosen
        }
