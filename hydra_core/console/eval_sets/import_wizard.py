"""The import wizard: files, what records, logs and leaderboards name, the import, its report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hydra_core.base.errors import EvalSetError, HydraError, Problem
from hydra_core.base.spelling import counted
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.catalog.prices.price_table import typed_price
from hydra_core.catalog.prices.quotes import FREE_WORD, price_number, share_number
from hydra_core.choosing.initial_catalog import covered
from hydra_core.console import cache, replays, selectors, state, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.access.identity import stop_button
from hydra_core.console.demo import session
from hydra_core.console.eval_sets import make_catalog
from hydra_core.console.eval_sets.import_table import Runner, table_source
from hydra_core.console.eval_sets.routing_help import ASKED
from hydra_core.console.eval_sets.view import dropped_table, run_table
from hydra_core.console.frame import ROUTING_HELP, go
from hydra_core.console.state import once
from hydra_core.console.tasks import Task, Write
from hydra_core.console.widgets import literal
from hydra_core.evalsets.changes import EvalSetChanges
from hydra_core.evalsets.folders import folder_name
from hydra_core.evalsets.importers.draft import About, ImportReport, write_draft
from hydra_core.evalsets.importers.formats import FORMATS, LOGS, Format, Kind, looks_like, read
from hydra_core.evalsets.importers.given import AskNames, Given, NamesKnown, PriceCard, price_card
from hydra_core.evalsets.importers.reading.bounded import MAX_BYTES, TableFile, size_of, watched
from hydra_core.evalsets.importers.swebench import Run, list_runs, read_swebench
from hydra_core.evalsets.importers.traffic.feedback import likely_worth
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
        help=f"Up to {MOST_MB} MB in all, also once unpacked. Several files join on the query id.",
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
        help=identity.why_not(Action.IMPORT),
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
        f"Kept {counted(report.kept, 'query')} with {counted(report.outcomes, 'outcome')} of "
        f"{counted(len(report.models), 'model')}.",
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
    if report.gaps:
        st.caption(literal("Missing (not filled in): " + "; ".join(report.gaps)))
    known = covered(report.models, [one.catalog for one in cache.catalogs()])
    entry = next((one for one in cache.evalsets() if one.key == key), None)
    make = not known and entry is not None and make_catalog.possible(entry)
    if make:
        st.caption("No catalog has all of these models yet. Make one, then tune it.")
    with st.container(horizontal=True):
        if make:
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


_AT_ONCE = 12
#: Megabytes that one import may hold.
MOST_MB = MAX_BYTES >> 20
#: Endings of the files that can be imported.
SUFFIXES = ["csv", "tsv", "md", "json", "jsonl", "ndjson", "parquet", "gz", "zip", "eval"]


def records_source(kind: Kind, uploads: Sequence[UploadedFile]) -> tuple[Runner, str] | None:
    """Draw what a format asks for; the import to run and a name for it, None until all is given."""
    form = FORMATS[kind]
    more, path = _beside(kind, form)
    if form.more and not more and not form.optional:
        st.caption(f"Also needed: {form.more[:1].lower()}{form.more[1:]}.")
        return None
    files, beside = (cast("Sequence[TableFile]", list(some)) for some in (uploads, more))
    stamp = "-".join(one.file_id for one in [*uploads, *more])
    given = Given(beside, text_path=path)
    try:
        asked = _asked(kind, files, replace(given, models=AskNames()), stamp)
        if asked.scores:
            score = _score(asked.scores, stamp)
            if score is None:
                return None
            given = replace(given, score=score)
            asked = _asked(kind, files, replace(given, models=AskNames()), stamp)
        models = _models(asked.names)
        if not models:
            return None
        if kind in LOGS:
            labels = _labels(asked.labels, stamp)
            scale = st.number_input(
                "Score that means 1", min_value=1e-9, value=1.0, step=None, format="%g", width=180,
                key="eval_sets.scale", help="5 where the best mark is 5.",
            )  # fmt: skip
            given = replace(given, labels=labels, scale=scale)
        given = replace(given, models=models, prices=_prices(form, list(models)))
    except HydraError as error:
        widgets.problem(error)
        return None

    def run(out: Path, about: About, force: bool) -> ImportReport:
        draft = read(kind, files, given)
        if not about.origin:
            about = replace(about, origin=form.name)
        write_draft(draft, out, about, force=force)
        return draft.report

    return run, form.name


def _beside(kind: Kind, form: Format) -> tuple[list[UploadedFile], str]:
    """The files that belong to a format, and the path of the message in a harness's rows."""
    if not form.more:
        return [], ""
    place = st.expander("If the messages stand elsewhere") if form.optional else st.container()
    with place:
        more = st.file_uploader(
            form.more, SUFFIXES, accept_multiple_files=True, max_upload_size=MOST_MB,
            key=f"eval_sets.more.{kind.value}",
        )  # fmt: skip
        if kind is not Kind.HARNESS:
            return more, ""
        path = st.text_input(
            "Path of the message in a row", key="eval_sets.text_path", width=320,
            placeholder="doc.question", help="A path inside the rows of a harness, with points.",
        )  # fmt: skip
        return more, path.strip()


def _asked(kind: Kind, files: Sequence[TableFile], given: Given, stamp: str) -> NamesKnown:
    """What the files name and ask for, read once per upload and choice of score."""

    def asked() -> NamesKnown:
        try:
            with st.spinner("Reading the files", show_time=True):
                read(kind, files, given)
        except NamesKnown as found:
            return found
        return NamesKnown(())

    return once("eval_sets.names", (kind.value, stamp, given.score, given.text_path), asked)


def _score(scores: Sequence[str], stamp: str) -> str | None:
    """Which of several scores is the quality."""
    score: str | None = st.selectbox(
        "Score that is the quality *", scores, index=None, width=420, placeholder="choose one",
        key=f"eval_sets.score.{stamp}",
    )  # fmt: skip
    if score is None:
        st.caption(f"The files hold {len(scores)} scores.")
    return score


def _labels(met: Mapping[str, int], stamp: str) -> dict[str, float]:
    """What each label is worth; those that say it plainly are filled in, to be confirmed."""
    if not met:
        return {}
    st.markdown("##### Feedback in words")
    names = list(met)
    frame = pd.DataFrame(
        {
            "label": names,
            "count": [met[name] for name in names],
            "quality": tables.number_texts(map(likely_worth, names)),
        }
    )
    edited = st.data_editor(
        frame, key=f"eval_sets.labels.{stamp}.{hash(tuple(names))}", hide_index=True,
        disabled=["label", "count"], height="content", placeholder="left out",
        column_config={
            "label": st.column_config.TextColumn("Label", width="medium"),
            "count": st.column_config.NumberColumn("Rows"),
            "quality": tables.number_column("Quality, 0 to 1"),
        },
    )  # fmt: skip
    return tables.read_numbers(edited, "label", "quality", share_number, 1.0)


def _models(names: Sequence[str]) -> dict[str, str]:
    """Model id -> name in the files: which to take, and an id, editable, for each."""
    st.markdown("##### Models")
    start = list(names) if len(names) <= _AT_ONCE else []
    taken = st.multiselect(
        "Take", names, start, key=f"eval_sets.take.{hash(tuple(names))}",
        format_func=lambda name: name or "(no name)", placeholder="one or more models",
    )  # fmt: skip
    if not taken:
        st.caption(f"The files name {counted(len(names), 'model')}.")
        return {}
    proposed = proposed_ids(taken)
    frame = pd.DataFrame({"name": taken, "id": [proposed[name] for name in taken]})
    edited = st.data_editor(
        frame, key=f"eval_sets.ids.{hash(tuple(taken))}", hide_index=True, disabled=["name"],
        height="content",
        column_config={
            "name": st.column_config.TextColumn("In the files", width="medium"),
            "id": st.column_config.TextColumn("Model id, as in your catalog", width="medium"),
        },
    )  # fmt: skip
    ids = edited["id"].astype(str).str.strip().tolist()
    if len(set(ids)) < len(ids):
        st.warning("Two models have the same id. Give each its own.")
        return {}
    return dict(zip(ids, taken, strict=True))


def _prices(form: Format, ids: Sequence[str]) -> PriceCard:
    """Prices where costs may have to be estimated; never filled in."""
    if not form.priced:
        return PriceCard()
    with st.expander("Prices, for costs that were not recorded", expanded=True):
        column = st.column_config
        empty = tables.number_texts([None] * len(ids))
        frame = pd.DataFrame({"id": ids, "input": empty, "output": empty, "answer": empty})
        edited = st.data_editor(
            frame, key=f"eval_sets.prices.{hash(tuple(ids))}", hide_index=True, disabled=["id"],
            height="content", placeholder="–",
            column_config={
                "id": column.TextColumn("Model", width="medium"),
                "input": tables.number_column("Input, USD / Mtok"),
                "output": tables.number_column("Output, USD / Mtok"),
                "answer": tables.number_column("Tokens of an answer"),
            },
        )  # fmt: skip
        st.caption(
            "Give an answer's tokens only if the files have neither these nor answers. Such costs "
            "are marked as estimated. Of a model that costs nothing write free for both prices."
        )
    sides = ("input", "output")
    read, written = (tables.read_numbers(edited, "id", one, typed_price) for one in sides)
    answer = tables.read_numbers(edited, "id", "answer", price_number)
    said = edited.set_index("id")[[*sides]].fillna("").astype(str).map(str.lower)
    free = [model for model in ids if {*said.loc[model]} == {FREE_WORD}]
    both = {model: (read[model], written[model]) for model in read.keys() & written.keys()}
    return price_card(both, answer, free)


def swebench_source() -> tuple[Runner, str] | None:
    """Draw the source; the import to run and a name for it, or None until all is chosen."""
    left, right = st.columns(2)
    boards = left.file_uploader(
        "Leaderboard", ["json", "gz", "zip"], key="eval_sets.boards", max_upload_size=MOST_MB,
        help="leaderboards.json with per-instance details",
    )  # fmt: skip
    problems = right.file_uploader(
        "Problem statements", ["jsonl", "csv", "parquet", "gz", "zip"], key="eval_sets.problems",
        max_upload_size=MOST_MB,
        help="A table with instance_id and problem_statement",
    )  # fmt: skip
    if boards is None:
        st.caption("Upload both files. They are joined on the instance id.")
        return None
    if problems is None:
        st.caption("Without problem statements the set has no texts and cannot be scored here.")
    try:
        file = cast(TableFile, boards)
        runs = once("eval_sets.read", boards.file_id, lambda: list_runs(file))
    except HydraError as error:
        widgets.problem(error)
        return None
    models = _leaderboard_models([run for run in runs if not run.problem])
    if not models:
        return None

    def run(out: Path, about: About, force: bool) -> ImportReport:
        if not about.origin:
            text = ", ".join(f"{model} = {folder}" for model, folder in models.items())
            about = replace(about, origin=f"SWE-bench leaderboard: {text}")
        draft = read_swebench(file, cast(TableFile | None, problems), models)
        write_draft(draft, out, about, force=force)
        return draft.report

    return run, "SWE-bench leaderboard"


def _leaderboard_models(runs: list[Run]) -> dict[str, str]:
    """Which runs to take and the model id each stands for."""
    labels = {run.folder: f"{run.name} · {run.headline:.1f} % · {run.folder}" for run in runs}
    chosen = st.multiselect(
        "Runs", list(labels), format_func=labels.__getitem__, key="eval_sets.runs",
        placeholder="one run per model",
    )  # fmt: skip
    by_folder = {run.folder: run for run in runs}
    picked = [by_folder[folder] for folder in chosen]
    if not picked:
        st.caption(f"{len(runs)} runs have usable per-instance details.")
        return {}
    st.caption("Model ids, as in your catalog:")
    edited = st.data_editor(
        run_table(picked),
        hide_index=True,
        disabled=["run", "resolved"],
        key=f"eval_sets.ids.{hash(tuple(run.folder for run in picked))}",
    )
    return dict(zip(edited["model"].astype(str), [run.folder for run in picked], strict=True))
