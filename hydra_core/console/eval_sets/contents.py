"""Data checks: missing outcomes, duplicates, and texts that other sets contain too."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console import cache, replays, tables, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets.view_routing_help import duplicate_table
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import literal
from hydra_core.evalsets.evalset import EvalSet, load_evalset
from hydra_core.replay.contents import DuplicateGroup, Overlap, duplicates, missing_data, overlaps

#: Up to this many queries the search for duplicates begins by itself.
_AT_ONCE = 1_000

Found = tuple[tuple[DuplicateGroup, ...], tuple[Overlap, ...]]


def checks(entry: SetEntry, evalset: EvalSet) -> None:
    missing = missing_data(evalset)
    complete = missing.complete == missing.queries
    tone = "success" if complete else "warning"
    said = str(missing)
    widgets.toned(tone, f"{said[:1].upper()}{said[1:]}.", "Missing data")
    if missing.by_model:
        rows = [
            {"Model": model, "Outcomes missing": quality, "Costs missing": cost}
            for model, (quality, cost) in missing.by_model.items()
        ]
        tables.kept(pd.DataFrame(rows), "explore.missing", height="content")
    if evalset.texts is None:
        st.info(
            "This set has no texts to compare. Learning treats queries with equal text vectors as "
            "one.",
            title="Duplicates",
            icon=":material/notes:",
        )
        return
    key = ("duplicates", evalset.digest, tuple(one.info.digest for one in cache.evalsets()))
    task = replays.tasks().get(key)
    if task is None and evalset.n <= _AT_ONCE:
        task = _look(key, entry, evalset)
    if task is None:
        _offer_look(key, entry, evalset)
    elif task.running:
        widgets.waiting(task, "Finding duplicates")
    elif task.error:
        st.error(literal(task.error), icon=":material/error:")
    else:
        _repeated(task.result)  # type: ignore[arg-type]


def _look(key: Hashable, entry: SetEntry, evalset: EvalSet) -> Task:
    others = [(one.info.name, one.info.path, one.info.digest) for one in cache.evalsets()
              if one.key != entry.key and not one.info.problem]  # fmt: skip

    def work(task: Task) -> Found:
        return duplicates(evalset), overlaps(evalset, _texts(others))

    return replays.tasks().start(key, work)


def _texts(others: list[tuple[str, Path, str]]) -> dict[str, list[str]]:
    found = {}
    for name, path, _ in others:
        try:
            found[name] = load_evalset(path).require_texts("the search for overlaps").tolist()
        except HydraError:
            continue  # without texts, or the Eval sets page says what is wrong with it
    return found


def _offer_look(key: Hashable, entry: SetEntry, evalset: EvalSet) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            "**Duplicates and leakage.** Compares every text with every other text here and in the "
            "other eval sets.",
            width="stretch",
        )
        if st.button("Find duplicates", key="explore.duplicates"):
            _look(key, entry, evalset)
            st.rerun()


def _repeated(found: Found) -> None:
    groups, shared = found
    loose = [one for one in groups if not one.clustered]
    if not loose:
        st.success(
            "No text occurs twice outside a declared cluster.",
            title="Duplicates",
            icon=":material/check_circle:",
        )
    else:
        extra = sum(len(one.query_ids) - 1 for one in loose)
        differ = sum(one.outcomes_differ for one in loose)
        st.warning(
            f"{len(loose):,} texts occur more than once ({extra:,} extra queries). The outcomes of "
            f"{differ:,} of them differ. This makes intervals too narrow: declare each group as "
            "one cluster, or remove the extra queries.",
            title="Duplicates",
            icon=":material/warning:",
        )
        tables.kept(
            duplicate_table(loose),
            "explore.duplicates",
            height="content" if len(loose) <= 10 else 360,
            column_config={
                "queries": st.column_config.NumberColumn("Times", width="small"),
                "ids": st.column_config.TextColumn("Queries", width="large"),
                "clustered": "One cluster",
                "differ": "Outcomes differ",
            },
        )
    for one in shared:
        st.warning(
            f"{one.queries:,} texts are also in {literal(one.other)}. A policy tuned on one set is "
            "not tested fairly on the other.",
            title="Overlap with another eval set",
            icon=":material/join_inner:",
        )
