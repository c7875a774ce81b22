"""Data checks: missing outcomes, duplicates, and texts that other sets contain too."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console import cache, tables, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets.measuring import AT_ONCE, measured
from hydra_core.console.eval_sets.view_routing_help import duplicate_table
from hydra_core.evalsets.evalset import EvalSet, load_evalset
from hydra_core.replay.contents import DuplicateGroup, Overlap, duplicates, missing_data, overlaps

Found = tuple[tuple[DuplicateGroup, ...], tuple[Overlap, ...]]


def checks(entry: SetEntry, evalset: EvalSet) -> None:
    missing = missing_data(evalset)
    tone = "success" if missing.complete == missing.queries else "warning"
    said = str(missing)
    widgets.toned(tone, f"{said[:1].upper()}{said[1:]}.", "Missing data")
    if missing.by_model:
        rows = [
            {"Model": model, "Outcomes missing": quality, "Costs missing": cost}
            for model, (quality, cost) in missing.by_model.items()
        ]
        tables.kept(pd.DataFrame(rows), "explore.missing")
    if evalset.texts is None:
        widgets.toned(
            "info",
            "This set has no texts to compare. Learning treats queries with equal text vectors as "
            "one.",
            "Duplicates",
            "notes",
        )
        return
    sets = cache.evalsets()
    others = {
        one.info.name: one.info.path
        for one in sets
        if one.key != entry.key and not one.info.problem
    }
    found: Found | None = measured(
        ("duplicates", evalset.digest, tuple(one.info.digest for one in sets)),
        lambda task: (duplicates(evalset), overlaps(evalset, _texts(others))),
        "**Duplicates and leakage.** Compares every text with every other text here and in the "
        "other eval sets.",
        "Find duplicates",
        doing="Finding duplicates",
        at_once=evalset.n <= AT_ONCE,
        key="explore.duplicates",
    )
    if found is not None:
        _repeated(*found)


def _texts(others: dict[str, Path]) -> dict[str, list[str]]:
    found = {}
    for name, path in others.items():
        try:
            found[name] = load_evalset(path).require_texts("the search for overlaps").tolist()
        except HydraError:
            continue  # without texts, or the Eval sets page says what is wrong with it
    return found


def _repeated(groups: tuple[DuplicateGroup, ...], shared: tuple[Overlap, ...]) -> None:
    loose = [one for one in groups if not one.clustered]
    if not loose:
        widgets.toned("success", "No text occurs twice outside a declared cluster.", "Duplicates")
    else:
        extra = sum(len(one.query_ids) - 1 for one in loose)
        differ = sum(one.outcomes_differ for one in loose)
        widgets.toned(
            "warning",
            f"{len(loose):,} texts occur more than once ({extra:,} extra queries). The outcomes of "
            f"{differ:,} of them differ. This makes intervals too narrow: declare each group as "
            "one cluster, or remove the extra queries.",
            "Duplicates",
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
        widgets.toned(
            "warning",
            f"{one.queries:,} texts are also in {one.other}. A policy tuned on one set is "
            "not tested fairly on the other.",
            "Overlap with another eval set",
            "join_inner",
        )
