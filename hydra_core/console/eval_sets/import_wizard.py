"""The import wizard: files, what their columns mean, and the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hydra_core.base.errors import EvalSetError, HydraError, Problem
from hydra_core.choosing.new_catalog import covered
from hydra_core.console import cache, selectors, state, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.demo import session
from hydra_core.console.eval_sets import make_catalog
from hydra_core.console.eval_sets.import_records import (
    MOST_MB,
    SUFFIXES,
    Runner,
    records_source,
    swebench_source,
)
from hydra_core.console.eval_sets.import_table import table_source
from hydra_core.console.eval_sets.routing_help import ASKED
from hydra_core.console.eval_sets.view import dropped_table
from hydra_core.console.frame import ROUTING_HELP, go
from hydra_core.console.widgets import literal
from hydra_core.evalsets.changes import EvalSetChanges
from hydra_core.evalsets.folders import folder_name
from hydra_core.evalsets.importers.draft import About, ImportReport
from hydra_core.evalsets.importers.formats import FORMATS, Kind
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.recognise import looks_like
from hydra_core.store.roles import Action

_REPORT = "eval_sets.report"
#: Which format the operator has.
KIND = "eval_sets.format"


def wizard() -> None:
    """From files to an eval set in the workspace, with a report of what was left out."""
    if _REPORT in st.session_state:
        _report(*st.session_state[_REPORT])
        return
    kind = _kind()
    if kind is Kind.SWEBENCH:
        source = swebench_source()
        if source is not None:
            _finish(*source)
        return
    uploads = _files(kind)
    if not uploads:
        return
    if _fitting(kind, uploads):
        return
    table = kind is Kind.TABLE
    source = table_source(uploads) if table else records_source(kind, uploads)
    if source is not None:
        _finish(*source)


def _kind() -> Kind:
    """What the operator has, with an example of it at hand."""
    st.session_state.setdefault(KIND, Kind.TABLE)
    left, right = st.columns([5, 3], vertical_alignment="bottom")
    kind = left.selectbox(
        "What do you have?", list(FORMATS), format_func=lambda one: FORMATS[one].name, key=KIND,
        persist_state="session",
    )  # fmt: skip
    form = FORMATS[kind]
    with right.popover("What it looks like", icon=":material/data_object:"):
        st.markdown(form.files)
        st.code(form.example, language=None, wrap_lines=True)
        if form.more:
            st.caption(f"And: {form.more[:1].lower()}{form.more[1:]}.")
    return kind


def _files(kind: Kind) -> list[UploadedFile]:
    """The files, kept when another format is picked for them."""
    uploads = st.file_uploader(
        "Files",
        SUFFIXES,
        accept_multiple_files=True,
        key="eval_sets.files",
        max_upload_size=MOST_MB,
        help=f"Up to {MOST_MB} MB in all, also once unpacked. Several files are joined on the "
        "query id.",
    )
    if not uploads:
        told = FORMATS[kind].files
        if kind is Kind.TABLE:
            told += (
                " Needed: a query id, the message, and the quality of each model (0 to 1). Add the "
                "cost in USD, or the tokens read and written, to see what routing costs. With one "
                "row per query, columns are named like “quality:gpt-5” and “cost:gpt-5”."
            )
        st.caption(f"{told} Missing outcomes are not filled in.")
    return uploads


def _fitting(kind: Kind, uploads: Sequence[UploadedFile]) -> bool:
    """Say what the files look like where that is another format, and offer its importer.

    Returns:
        Whether reading them as `kind` makes no sense; columns can be mapped whatever they hold.
    """
    found = looks_like(cast(TableFile, uploads[0]))
    if found is None or found is kind:
        return False
    name = FORMATS[found].name
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            f":material/search: **{literal(uploads[0].name)}** looks like **{name}**, not like "
            f"{FORMATS[kind].name}.",
            width="stretch",
        )
        st.button(
            f"Read it as {name}", type="primary", key="eval_sets.fitting", on_click=_take,
            args=(found,),
        )  # fmt: skip
    return kind is not Kind.TABLE or not uploads[0].name.lower().endswith((".csv", ".parquet"))


def _take(kind: Kind) -> None:
    st.session_state[KIND] = kind


def _finish(run: Runner, name: str) -> None:
    """Name, origin and flags, then the import itself."""
    st.markdown("##### About the set")
    left, right = st.columns(2)
    name = left.text_input("Name", name, key=f"eval_sets.name.{name}", max_chars=120)
    origin = right.text_input("Origin", placeholder="Gateway log of May 2026")
    with st.container(horizontal=True, gap="medium"):
        synthetic = st.checkbox("Outcomes are simulated")
        estimated = st.checkbox("Costs are estimated from prices")
        force = st.checkbox("Replace a set of the same name")
    if not st.button(
        "Import", type="primary", icon=":material/upload:", key="eval_sets.import",
        disabled=not identity.may(Action.IMPORT),
        help=None if identity.may(Action.IMPORT) else "Importing needs the role editor.",
    ):  # fmt: skip
        return
    folder = folder_name(name)
    about = About(
        name=name.strip() or folder, origin=origin, synthetic=synthetic, cost_estimated=estimated
    )
    root = session.folder() / "evalsets"
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
        st.markdown("##### Left out")
        tables.kept(
            dropped_table(report),
            "eval_sets.left_out",
            height="content",
            column_config={one: one.capitalize() for one in ("why", "count", "examples")},
        )
    else:
        st.caption("Nothing was left out.")
    if report.missing:
        lines = [f"{m}: {q:,} outcomes, {c:,} costs" for m, (q, c) in report.missing.items()]
        st.caption(literal("Missing (not filled in): " + "; ".join(lines)))
    known = covered(report.models, [one.catalog for one in cache.catalogs()])
    if not known:
        st.caption("No catalog has all of these models yet. Make one, then tune it.")
    with st.container(horizontal=True):
        if not known:
            st.button(
                "Make a catalog", type="primary", on_click=_make, args=(key,),
                key="eval_sets.make", icon=":material/add_notes:",
            )  # fmt: skip
        elif st.button("Can routing help?", type="primary", key="eval_sets.help"):
            widgets.forget(_REPORT)
            state.put(evalset=key, catalog="", tau=None, weights=None, pin=None)
            st.session_state[ASKED] = key
            go(ROUTING_HELP)
        st.button("Open it", on_click=_open, args=(key,), key="eval_sets.open")
        st.button("Import another", on_click=lambda: widgets.forget(_REPORT))


def _make(key: str) -> None:
    widgets.forget(_REPORT)
    make_catalog.open_for(key)


def _open(key: str) -> None:
    widgets.forget(_REPORT)
    selectors.use_set(key)
    st.session_state["eval_sets.view"] = "All sets"
