"""The import wizard of the Eval sets page: files, what the columns mean, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.errors import EvalSetError, HydraError, Problem
from hydra_core.evaluation.evalset.changes import EvalSetChanges
from hydra_core.evaluation.importers.draft import About, ImportReport
from hydra_core.evaluation.importers.mapping import TableMapping
from hydra_core.evaluation.importers.reading.bounded import MAX_BYTES, TableFile
from hydra_core.evaluation.importers.table import Preview, import_table, model_names, preview
from hydra_core.store.roles import Action
from hydra_core.ui import cache, widgets
from hydra_core.ui.access import identity
from hydra_core.ui.evalsets import make_catalog
from hydra_core.ui.evalsets.swebench import Runner, swebench_source
from hydra_core.ui.widgets import literal
from hydra_core.views.catalogs.new_catalog import covered
from hydra_core.views.evalsets import dropped_table, folder_name

__all__ = ["wizard"]

_REPORT = "eval_sets.report"
_KINDS = ("Table", "SWE-bench leaderboard")
_SUFFIXES = ["csv", "tsv", "jsonl", "ndjson", "parquet", "gz", "zip"]
_QUERY = {
    "query_id": "Query id",
    "text": "Message text",
    "language": "Language",
    "group": "Group",
}
_LONG = {"model": "Model", "quality": "Quality", "cost_usd": "Cost in USD"}
_REQUIRED = ("query_id", "text", "model", "quality")
_SCALES = {1.0: "0 to 1 (or true/false)", 100.0: "0 to 100"}


def wizard() -> None:
    """From files to an eval set in the workspace, with a report of what was left out."""
    if _REPORT in st.session_state:
        _report(*st.session_state[_REPORT])
        return
    kind = st.segmented_control(
        "What do you have?", _KINDS, default=_KINDS[0], required=True, key="eval_sets.kind"
    )
    if kind == _KINDS[1]:
        source = swebench_source()
        if source is not None:
            _finish(*source)
    else:
        _table()


def _table() -> None:
    uploads = st.file_uploader(
        "Files with queries, outcomes and costs",
        _SUFFIXES,
        accept_multiple_files=True,
        key="eval_sets.files",
        help=f"Long (one row per query and model) or wide (one row per query). Several files are "
        f"joined on the query id. Up to {MAX_BYTES >> 20} MiB of data.",
    )
    if not uploads:
        st.caption(
            "Needed: a query id, the message, and for every model its quality (0 to 1); the cost "
            "in USD or the tokens in and out, to know what routing would cost. One row per query "
            "and model, or one row per query with columns such as `quality:gpt-5` and "
            "`cost:gpt-5`. Nothing is imputed; missing outcomes stay missing."
        )
        return
    files = [cast(TableFile, file) for file in uploads]
    try:
        looks = [preview(file, 5) for file in files]
    except HydraError as error:
        widgets.problem(error)
        return
    st.markdown("##### First rows")
    st.dataframe(looks[0].rows, hide_index=True, height="content")
    mapping = _mapping(looks, "-".join(file.file_id for file in uploads)[:200])
    try:
        ids = _model_ids(model_names(files, mapping))
    except HydraError as error:
        widgets.problem(error)
        return
    scale = st.selectbox(
        "Quality is given as", list(_SCALES), format_func=_SCALES.__getitem__, width=260
    )

    def run(out: Path, about: About, force: bool) -> ImportReport:
        if not about.origin:
            about = replace(about, origin=", ".join(file.name for file in files))
        return import_table(
            files, out, mapping, about,
            need_cost=False, quality_scale=scale, ids=ids, force=force,
        )  # fmt: skip

    _finish(run, _default_name(uploads))


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
        "These would stand for them; change what you like."
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
    st.caption(f"Columns of {len(suggested.quality)} models were found.")
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


def _finish(run: Runner, name: str) -> None:
    """Name, origin and flags, then the import itself."""
    st.markdown("##### About the set")
    left, right = st.columns(2)
    name = left.text_input("Name", name, key=f"eval_sets.name.{name}", max_chars=120)
    origin = right.text_input("Origin", placeholder="where the outcomes come from")
    with st.container(horizontal=True, gap="medium"):
        synthetic = st.checkbox("Outcomes are simulated")
        estimated = st.checkbox("Costs are estimated from prices")
        force = st.checkbox("Replace a set of the same name")
    if not st.button(
        "Import", type="primary", icon=":material/upload:", key="eval_sets.import",
        disabled=not identity.may(Action.IMPORT),
        help=None if identity.may(Action.IMPORT) else "Importing takes the role editor.",
    ):  # fmt: skip
        return
    folder = folder_name(name)
    about = About(
        name=name.strip() or folder, origin=origin, synthetic=synthetic, cost_estimated=estimated
    )
    root = cache.workspace() / "evalsets"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with st.spinner("Importing"):
            changes = EvalSetChanges(identity.actor(), cache.store())
            report = changes.write(root / folder, lambda: run(root / folder, about, force))
    except OSError as error:
        widgets.problem(
            EvalSetError(str(root), [Problem("", f"cannot be written: {error.strerror}")])
        )
    except HydraError as error:
        widgets.problem(error)
        st.caption("Nothing was changed.")
    else:
        st.session_state[_REPORT] = (report, f"my/{folder}", about.name)
        st.rerun()


def _report(report: ImportReport, key: str, name: str) -> None:
    st.success(
        f"Kept {report.kept:,} queries with {report.outcomes:,} outcomes of "
        f"{len(report.models)} models.",
        title=literal(f"{name} is imported"),
        icon=":material/check_circle:",
    )
    for warning in report.warnings:
        st.warning(literal(warning), icon=":material/warning:")
    if report.dropped:
        st.markdown("##### What was left out, and why")
        st.dataframe(dropped_table(report), hide_index=True, height="content")
    else:
        st.caption("Nothing was left out.")
    if report.missing:
        lines = [f"{m}: {q:,} outcomes, {c:,} costs" for m, (q, c) in report.missing.items()]
        st.caption(literal("Missing, and left missing: " + "; ".join(lines)))
    known = covered(report.models, [one.catalog for one in cache.catalogs()])
    if not known:
        st.caption("No catalog knows all of these models yet: make one, then tune it.")
    with st.container(horizontal=True):
        if not known:
            st.button(
                "Make a catalog", type="primary", on_click=_make, args=(key,),
                key="eval_sets.make", icon=":material/add_notes:",
            )  # fmt: skip
        st.button(
            "Open it", type="primary" if known else "secondary", on_click=_open, args=(key,),
            key="eval_sets.open",
        )  # fmt: skip
        st.button("Import another", on_click=lambda: widgets.forget(_REPORT))


def _make(key: str) -> None:
    widgets.forget(_REPORT)
    make_catalog.open_for(key)


def _open(key: str) -> None:
    widgets.forget(_REPORT)
    st.session_state["eval_sets.chosen"] = key
    st.session_state["eval_sets.view"] = "Browse"
