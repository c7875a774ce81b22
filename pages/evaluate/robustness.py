"""Robustness: can a claim of difficulty, or a slip of the keyboard, buy a dearer model?"""

from __future__ import annotations

import streamlit as st

from hydra_core.base.types import Catalog
from hydra_core.catalog.binding import require_bundle
from hydra_core.console import cache, selectors, widgets
from hydra_core.console.access.stopping import stop_button
from hydra_core.console.cache import SetEntry
from hydra_core.console.inspect import robustness
from hydra_core.console.inspect import robustness as panels
from hydra_core.console.inspect import robustness as work
from hydra_core.lab.robustness.attack import Attacked


def run(entry: SetEntry, catalog: Catalog) -> None:
    """The controls, then the work or what was found."""
    require_bundle(catalog, cache.bundle().fingerprint)
    texts = cache.evalset(entry.info.path, entry.info.digest).texts is not None
    with st.container(border=True):
        left, right = st.columns([9, 2], vertical_alignment="bottom", gap="small")
        with left:
            wanted = robustness.wanted(entry if texts else None)
        task = None if wanted is None else work.newest(wanted)
        running = task is not None and task.running
        with right:
            if task is not None and running:
                stop_button(task, "robustness.stop")
            elif st.button(
                "Attack", type="primary", icon=":material/gpp_maybe:", key="robustness.start",
                width="stretch",
                disabled=wanted is None or (task is not None and task.result is not None),
            ) and wanted is not None:  # fmt: skip
                work.start(wanted)
                st.rerun()
        if not texts:
            st.caption(
                ":material/info: This set has no texts: paste messages of your own, or open a set "
                "with texts below."
            )
    if wanted is not None and task is not None and isinstance(task.result, Attacked):
        result(wanted, task.result, catalog)
    elif task is not None and running:
        widgets.waiting(task, "Scoring attacked messages", unit="messages")
    else:
        if task is not None and task.failure is not None:
            widgets.problem(task.failure)
        nothing_yet()
        if not texts:
            selectors.offer_texts()


def nothing_yet() -> None:
    """What an attack will show, before it was run."""
    widgets.empty(
        "Can a user talk this router into a dearer model?",
        "Eight families of suffixes that only claim difficulty, in sixteen languages and in "
        "English, and three harmless changes of the text are tried on every message. Scored once "
        "(a hundred messages take about ten seconds), the result is shown for every knob and rule.",
    )


def result(wanted: work.Wanted, found: Attacked, catalog: Catalog) -> None:
    """The knob, the answer, and one question at a time."""
    left, right = st.columns([7, 3], gap="medium")
    with right:
        used = robustness.ruled(catalog)
        knob = robustness.knob(used)
    routed = work.routed(wanted, found, used)
    findings = routed.at(knob)
    with left:
        panels.answer(findings)
    panels.figures(findings)
    panels.questions(routed, findings)


selectors.page("Robustness", run, baseline=False, link=robustness.LINK)
