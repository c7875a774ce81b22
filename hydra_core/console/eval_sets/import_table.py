"""The import wizard's source of tables: first rows, what the columns mean, names of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hydra_core.base.errors import HydraError
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.console import tables, widgets
from hydra_core.console.eval_sets.import_records import Runner
from hydra_core.console.widgets import literal
from hydra_core.evalsets.importers.draft import About, ImportReport
from hydra_core.evalsets.importers.mapping import TableMapping
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.cells import Form, in_words
from hydra_core.evalsets.importers.table import Preview, import_table, model_names, preview

_QUERY = {
    "query_id": "Query id",
    "text": "Message text",
    "language": "Language",
    "group": "Group",
}
_LONG = {"model": "Model", "quality": "Quality", "cost_usd": "Cost in USD"}
_REQUIRED = ("query_id", "text", "model", "quality")
_DECIMALS = {".": "0.5, with a point", ",": "0,5, with a comma"}
_SHARE, _PERCENT, _WORDS = "0 to 1 (or true/false)", "0 to 100", "Words: pass/fail, resolved/..."
_GIVEN, _WRITTEN = "Quality is given as", "Numbers are written"


def table_source(uploads: Sequence[UploadedFile]) -> tuple[Runner, str] | None:
    """Draw what a table asks for; the import to run and a name for it, None after a problem."""
    files = [cast(TableFile, file) for file in uploads]
    try:
        looks = [preview(file, 5) for file in files]
    except HydraError as error:
        widgets.problem(error)
        return None
    st.markdown("##### First rows")
    tables.kept(looks[0].rows, "eval_sets.first_rows", height="content")
    stamp = "-".join(file.file_id for file in uploads)[:200]
    mapping = _mapping(looks, stamp)
    try:
        ids = _model_ids(model_names(files, mapping))
    except HydraError as error:
        widgets.problem(error)
        return None
    with st.container(horizontal=True):
        given = [_SHARE, _PERCENT, _WORDS]
        quality = st.selectbox(
            _GIVEN, given, given.index(_quality(looks, mapping)), width=260,
            key=f"eval_sets.quality.{stamp}",
        )  # fmt: skip
        marks = list(_DECIMALS)
        decimal = st.selectbox(
            _WRITTEN, marks, marks.index(_decimal(looks, mapping)),
            format_func=_DECIMALS.__getitem__, width=260, key=f"eval_sets.decimal.{stamp}",
        )  # fmt: skip
    form = Form(
        decimal, 100.0 if quality == _PERCENT else 1.0, quality == _WORDS,
        f"{_GIVEN}: {_PERCENT}", f"{_WRITTEN}: {_DECIMALS[',']}", f"{_GIVEN}: {_WORDS}",
    )  # fmt: skip

    bare = "text" not in mapping.fields and st.checkbox(
        "These files hold no message texts", key="eval_sets.no_texts",
        help="Without texts the set cannot be scored, because requirements are read from texts.",
    )  # fmt: skip
    lacking = [
        label
        for field, label in {**_QUERY, **({} if mapping.wide else _LONG)}.items()
        if field in _REQUIRED and field not in mapping.fields and not (bare and field == "text")
    ]
    if lacking:
        st.warning(
            f"Choose a column for: {', '.join(lacking)}.", icon=":material/view_column:"
        )  # fmt: skip
        return None

    def run(out: Path, about: About, force: bool) -> ImportReport:
        if not about.origin:
            about = replace(about, origin=", ".join(file.name for file in files))
        return import_table(
            files, out, mapping, about,
            need_cost=False, need_text=not bare, form=form, ids=ids, force=force,
        )  # fmt: skip

    return run, _default_name(uploads)


def _quality(looks: Sequence[Preview], mapping: TableMapping) -> str:
    """How the first rows give quality: in words, or as a share of 1."""
    cells = _cells(looks, [mapping.fields.get("quality"), *mapping.quality.values()])
    return _WORDS if any(in_words(one).any() for one in cells) else _SHARE


def _decimal(looks: Sequence[Preview], mapping: TableMapping) -> str:
    """The decimal mark of the first rows: a comma where a quality or a cost is written with one."""
    named = [mapping.fields.get(field) for field in ("quality", "cost_usd")]
    cells = _cells(looks, [*named, *mapping.quality.values()])
    commas = any(one.str.fullmatch(r"\s*[0-9]+,[0-9]+\s*").any() for one in cells)
    return "," if commas else "."


def _cells(looks: Sequence[Preview], columns: Sequence[str | None]) -> list[pd.Series]:
    return [look.rows[name] for look in looks for name in columns if name in look.rows]


def _default_name(uploads: Sequence[UploadedFile]) -> str:
    return str(uploads[0].name).split(".")[0].replace("_", " ")


def _mapping(looks: Sequence[Preview], stamp: str) -> TableMapping:
    """Selectors of columns, filled with what their names suggest."""
    columns = list(dict.fromkeys(name for look in looks for name in look.columns))
    suggested = TableMapping()
    for look in looks:
        suggested = suggested.over(look.suggested) if suggested.fields else look.suggested
    st.markdown("##### What the columns mean")
    labels = _QUERY if suggested.wide else {**_QUERY, **_LONG}
    fields = _fields(labels, columns, suggested.fields, stamp)
    rest = {f: c for f, c in suggested.fields.items() if f not in labels and c in columns}
    if not suggested.wide:
        return TableMapping({**rest, **fields})
    return TableMapping({**rest, **fields}, *_per_model(suggested, columns, stamp))


def _fields(
    labels: Mapping[str, str], columns: Sequence[str], found: Mapping[str, str], stamp: str
) -> dict[str, str]:
    chosen: dict[str, str] = {}
    places = st.columns(4)
    for i, (field, label) in enumerate(labels.items()):
        guess = found.get(field)
        column = places[i % 4].selectbox(
            f"{label} *" if field in _REQUIRED else label,
            columns,
            index=columns.index(guess) if guess in columns else None,
            placeholder="not in the file",
            format_func=literal_option,
            key=f"eval_sets.map.{field}.{stamp}",
        )
        if column is not None:
            chosen[field] = column
    return chosen


def _model_ids(names: Sequence[str]) -> dict[str, str]:
    """A proposed id, editable, for each name that cannot be one; name -> id."""
    proposed = proposed_ids(names)
    strange = {name: model for name, model in proposed.items() if name != model}
    if not strange:
        return {}
    st.markdown("##### Model names")
    st.caption(
        f"{len(strange)} of {len(names)} names cannot be ids (letters, digits and . _ - / : @ +). "
        "These ids replace them; change any of them."
    )
    places = st.columns(min(4, len(strange)))
    return {
        name: places[i % 4]
        .text_input(literal(name), model, key=f"eval_sets.id.{name}", max_chars=128)
        .strip()
        for i, (name, model) in enumerate(strange.items())
    }


def _per_model(
    suggested: TableMapping, columns: Sequence[str], stamp: str
) -> tuple[dict[str, str], dict[str, str]]:
    quality: dict[str, str] = {}
    cost: dict[str, str] = {}
    st.caption(f"The file has columns of {len(suggested.quality)} models.")
    for model, column in suggested.quality.items():
        name, left, right = st.columns([2, 3, 3], vertical_alignment="bottom")
        name.markdown(f"**{literal(model)}**")
        for place, side, guess in (
            (left, quality, column),
            (right, cost, suggested.cost.get(model)),
        ):
            label = "Quality *" if side is quality else "Cost in USD"
            picked = place.selectbox(
                label,
                columns,
                index=columns.index(guess) if guess in columns else None,
                placeholder="not in the file",
                format_func=literal_option,
                key=f"eval_sets.map.{label}.{model}.{stamp}",
            )
            if picked is not None:
                side[model] = picked
    return quality, cost


def literal_option(column: str) -> str:
    """A column name as an option: as it stands, but never blank."""
    return column if column.strip() else repr(column)
