"""The SWE-bench leaderboard source of the import wizard: two files, then which runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hydra_core.base.errors import HydraError
from hydra_core.console import widgets
from hydra_core.console.eval_sets.view import run_table
from hydra_core.evalsets.importers.draft import About, ImportReport
from hydra_core.evalsets.importers.reading.bounded import MAX_BYTES, TableFile
from hydra_core.evalsets.importers.swebench import Run, import_swebench, list_runs

Runner = Callable[[Path, About, bool], ImportReport]


def swebench_source() -> tuple[Runner, str] | None:
    """Draw the source; the import to run and a name for it, or None until all is chosen."""
    left, right = st.columns(2)
    boards = left.file_uploader(
        "Leaderboard", ["json", "gz", "zip"], key="eval_sets.boards",
        max_upload_size=MAX_BYTES >> 20,
        help="leaderboards.json with per-instance details",
    )  # fmt: skip
    problems = right.file_uploader(
        "Problem statements", ["jsonl", "csv", "parquet", "gz", "zip"], key="eval_sets.problems",
        max_upload_size=MAX_BYTES >> 20,
        help="A table with instance_id and problem_statement",
    )  # fmt: skip
    if boards is None:
        st.caption("Give both files; they are joined on the instance id.")
        return None
    if problems is None:
        st.caption("Without problem statements the set has no texts and cannot be scored here.")
    try:
        runs = _runs(boards)
    except HydraError as error:
        widgets.problem(error)
        return None
    models = _models([run for run in runs if not run.problem])
    if not models:
        return None

    def run(out: Path, about: About, force: bool) -> ImportReport:
        files = cast(TableFile, boards), cast(TableFile | None, problems)
        if not about.origin:
            told = ", ".join(f"{model} = {folder}" for model, folder in models.items())
            about = replace(about, origin=f"SWE-bench leaderboard: {told}")
        return import_swebench(*files, models, out, about, force=force)

    return run, "SWE-bench leaderboard"


def _runs(boards: UploadedFile) -> tuple[Run, ...]:
    """The runs of an uploaded leaderboard, read once per upload."""
    known: tuple[str, tuple[Run, ...]] = st.session_state.get("eval_sets.read", ("", ()))
    if known[0] != boards.file_id:
        known = (boards.file_id, list_runs(cast(TableFile, boards)))
        st.session_state["eval_sets.read"] = known
    return known[1]


def _models(runs: list[Run]) -> dict[str, str]:
    """Which runs to take and the model id each stands for."""
    by_folder = {run.folder: run for run in runs}
    chosen = st.multiselect(
        "Runs",
        list(by_folder),
        format_func=lambda folder: _run_label(by_folder[folder]),
        key="eval_sets.runs",
        placeholder="one run per model",
    )
    picked = [by_folder[folder] for folder in chosen]
    if not picked:
        st.caption(f"{len(runs)} runs have usable per-instance details.")
        return {}
    st.caption("Model ids as they stand in your catalog:")
    edited = st.data_editor(
        run_table(picked),
        hide_index=True,
        disabled=["run", "resolved"],
        key=f"eval_sets.ids.{hash(tuple(run.folder for run in picked))}",
    )
    return dict(zip(edited["model"].astype(str), [run.folder for run in picked], strict=True))


def _run_label(run: Run) -> str:
    return f"{run.name} · {run.headline:.1f} % · {run.folder}"
