"""The import wizard: files, what their columns mean, and the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import cast

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hydra_core.base.errors import EvalSetError, HydraError, Problem
from hydra_core.choosing.initial_catalog import covered
from hydra_core.console import cache, replays, selectors, state, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.access.identity import stop_button
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
from hydra_core.console.tasks import Task, Write
from hydra_core.console.widgets import literal
from hydra_core.evalsets.changes import EvalSetChanges
from hydra_core.evalsets.folders import folder_name
from hydra_core.evalsets.importers.draft import About, ImportReport
from hydra_core.evalsets.importers.formats import FORMATS, Kind, looks_like
from hydra_core.evalsets.importers.reading.bounded import TableFile, size_of, watched
from hydra_core.store.roles import Action

_REPORT, _TASK = "eval_sets.report", "eval_sets.import_task"
_MB = 1_000_000
#: Bytes of files that are imported in the background.
_LARGE = 5 * _MB
#: Which format the operator has.
KIND = "eval_sets.format"


def wizard() -> None:
    """From files to an eval set in the workspace, with a report of what was left out."""
    if _REPORT in st.session_state:
        _report(*st.session_state[_REPORT])
        return
    if _TASK in st.session_state and _going_on(st.session_state[_TASK]):
        return
    kind = _kind()
    if kind is Kind.SWEBENCH:
        source = swebench_source()
        if source is not None:
            _finish(*source, [])
        return
    uploads = _files(kind)
    if not uploads:
        return
    if _fitting(kind, uploads):
        return
    table = kind is Kind.TABLE
    source = table_source(uploads) if table else records_source(kind, uploads)
    if source is not None:
        _finish(*source, [cast(TableFile, one) for one in uploads])


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
        what = FORMATS[kind].files
        if kind is Kind.TABLE:
            what += (
                " Needed: the message and the quality of each model (0 to 1), and a query id where "
                "several files belong together. Add the cost in USD, or the tokens read and "
                "written, to see what routing costs. With one row per query, columns are named "
                "like “quality:gpt-5” and “cost:gpt-5”."
            )
        st.caption(f"{what} Missing outcomes are not filled in.")
    return uploads


def _fitting(kind: Kind, uploads: Sequence[UploadedFile]) -> bool:
    """Offer the format that the files look like; whether the chosen one makes no sense."""
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
            f"Read it as {name}", type="primary", key="eval_sets.fitting",
            on_click=lambda: st.session_state.update({KIND: found}),
        )  # fmt: skip
    return kind is not Kind.TABLE or not uploads[0].name.lower().endswith((".csv", ".parquet"))


def _finish(run: Runner, name: str, files: Sequence[TableFile]) -> None:
    """Name, origin and flags, then the import itself; that of large files in the background."""
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
    changes = EvalSetChanges(identity.actor(), cache.store())

    def work(task: Task) -> tuple[ImportReport, str, str]:
        with watched(partial(_step, task), files):
            report = changes.write(root / folder, lambda: run(root / folder, about, force))
        return report, f"my/{folder}", about.name

    try:
        root.mkdir(parents=True, exist_ok=True)
        if size_of(files) > _LARGE:
            write = Write(cache.store(), identity.actor(), Action.IMPORT, f"eval set {folder}")
            key = ("import", root / folder, time.monotonic_ns())
            st.session_state[_TASK] = replays.tasks().start(key, work, write=write)
        else:
            with st.spinner("Importing"):
                st.session_state[_REPORT] = work(Task())
    except OSError as error:
        widgets.problem(
            EvalSetError(str(root), [Problem("", f"cannot be written: {error.strerror}")])
        )
    except HydraError as error:
        widgets.problem(error)
        st.caption("Nothing was changed.")
    else:
        st.rerun()


def _step(task: Task, done: int, total: int) -> None:
    """How far the reading is, in MB; what follows it is named."""
    task.stage = "Checking the rows" if total and done >= total else "Reading"
    task.step(done // _MB, total // _MB)


def _going_on(task: Task) -> bool:
    """Show an import in the background, and what became of it; whether nothing else is shown."""
    if task.running:
        widgets.waiting(task, "Importing", unit="MB")
        stop_button(task, "eval_sets.stop_import", help="Nothing is written.")
        return True
    widgets.forget(_TASK)
    if task.result is not None:
        st.session_state[_REPORT] = task.result
        st.rerun()
    if task.failure is not None:
        widgets.problem(task.failure)
    st.caption("Nothing was changed.")
    return False


def _report(report: ImportReport, key: str, name: str) -> None:
    st.success(
        f"Kept {report.kept:,} queries with {report.outcomes:,} outcomes of "
        f"{len(report.models)} models.",
        title=literal(f"{name} is imported"),
        icon=":material/check_circle:",
    )
    if report.warnings:
        text = "\n".join(f"- {literal(warning)}" for warning in report.warnings)
        st.warning(text, title="Know before you trust it", icon=":material/warning:")
    if report.dropped:
        st.markdown("##### Left out")
        tables.kept(
            dropped_table(report),
            "eval_sets.left_out",
            columns={one: one.capitalize() for one in ("why", "count", "examples")},
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
