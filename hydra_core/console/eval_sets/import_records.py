"""The import wizard's sources of records, logs and leaderboards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hydra_core.base.errors import HydraError
from hydra_core.base.list_price import ListPrice
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.console import widgets
from hydra_core.console.eval_sets.view import run_table
from hydra_core.console.state import once
from hydra_core.evalsets.importers.draft import About, ImportReport, write_draft
from hydra_core.evalsets.importers.formats import FORMATS, LOGS, Format, Kind, read
from hydra_core.evalsets.importers.given import AskNames, Given, ModelPrice, NamesKnown, PriceCard
from hydra_core.evalsets.importers.reading.bounded import MAX_BYTES, TableFile
from hydra_core.evalsets.importers.swebench import Run, list_runs, read_swebench
from hydra_core.evalsets.importers.traffic.served import likely_worth

#: What an import runs: folder, facts on the set, whether to replace -> report.
Runner = Callable[[Path, About, bool], ImportReport]

_AT_ONCE = 12
#: Megabytes that one import may hold.
MOST_MB = MAX_BYTES >> 20
#: Endings of the files that can be imported.
SUFFIXES = ["csv", "tsv", "json", "jsonl", "ndjson", "parquet", "gz", "zip", "eval"]


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
    except HydraError as error:
        widgets.problem(error)
        return None
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
            "quality": pd.Series([likely_worth(name) for name in names], dtype="float64"),
        }
    )
    edited = st.data_editor(
        frame, key=f"eval_sets.labels.{stamp}.{hash(tuple(names))}", hide_index=True,
        disabled=["label", "count"], height="content", placeholder="left out",
        column_config={
            "label": st.column_config.TextColumn("Label", width="medium"),
            "count": st.column_config.NumberColumn("Rows"),
            "quality": st.column_config.NumberColumn("Quality, 0 to 1", min_value=0, max_value=1),
        },
    )  # fmt: skip
    stated = edited.dropna(subset=["quality"])
    return dict(zip(stated["label"].astype(str), stated["quality"].astype(float), strict=True))


def _models(names: Sequence[str]) -> dict[str, str]:
    """Model id -> name in the files: which to take, and an id, editable, for each."""
    st.markdown("##### Models")
    start = list(names) if len(names) <= _AT_ONCE else []
    taken = st.multiselect(
        "Take", names, start, key=f"eval_sets.take.{hash(tuple(names))}",
        format_func=lambda name: name or "(no name)", placeholder="one or more models",
    )  # fmt: skip
    if not taken:
        st.caption(f"The files name {len(names)} models.")
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
        frame = pd.DataFrame({"id": ids, "input": None, "output": None, "answer": None})
        frame = frame.astype({"input": "float64", "output": "float64", "answer": "float64"})
        edited = st.data_editor(
            frame, key=f"eval_sets.prices.{hash(tuple(ids))}", hide_index=True, disabled=["id"],
            height="content", placeholder="–",
            column_config={
                "id": column.TextColumn("Model", width="medium"),
                "input": column.NumberColumn("Input, USD / Mtok", min_value=0.0),
                "output": column.NumberColumn("Output, USD / Mtok", min_value=0.0),
                "answer": column.NumberColumn("Tokens of an answer", min_value=0.0),
            },
        )  # fmt: skip
        st.caption(
            "Give the tokens of an answer only if the files have neither tokens nor answers. Such "
            "costs are marked as estimated."
        )
    known = edited.dropna(subset=["input", "output"])
    rows = zip(known["id"], known["input"], known["output"], known["answer"], strict=True)
    prices = {
        str(model): ModelPrice(
            ListPrice(float(a), float(b)), None if pd.isna(tokens) else float(tokens)
        )
        for model, a, b, tokens in rows
    }
    return PriceCard(prices)


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
    by_folder = {run.folder: run for run in runs}

    def label(folder: str) -> str:
        run = by_folder[folder]
        return f"{run.name} · {run.headline:.1f} % · {folder}"

    chosen = st.multiselect(
        "Runs",
        list(by_folder),
        format_func=label,
        key="eval_sets.runs",
        placeholder="one run per model",
    )
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
