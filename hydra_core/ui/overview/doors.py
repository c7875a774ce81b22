"""The ways in that the Overview page offers as long as nothing but samples is loaded."""

from __future__ import annotations

import streamlit as st

from hydra_core.ui import cache, state
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.demo import session
from hydra_core.ui.widgets import literal

__all__ = ["doors"]

_EVAL_SETS = "pages/evaluate/eval_sets.py"
#: Icon, title, text, the format that the import begins with, and what the button says.
_DOORS = (
    (
        "upload_file", "Bring your own file",
        "A table of your messages with what each model achieved and cost, or a public benchmark's "
        "records. Columns are guessed from their names and shown before anything is imported.",
        "table", "Import a file",
    ),
    (
        "cable", "Connect to a log",
        "What you log already: HyDRA's decisions, LiteLLM's spend logs, Langfuse, OpenTelemetry "
        "spans. One query a served request, with its feedback.",
        "spend-logs", "Import a log",
    ),
)  # fmt: skip


def doors() -> None:
    """Three ways in, as long as nothing but samples is loaded; a demo has its own story."""
    sets = cache.evalsets()
    if session.demo() is not None or not all(entry.shipped for entry in sets):
        return
    st.subheader("Only samples are loaded: where to begin", anchor=False)
    places = st.columns(3)
    real = next((entry for entry in sets if not entry.info.synthetic), None)
    with places[0].container(border=True, height="stretch"):
        _real_data(real)
    for place, (icon, title, text, kind, label) in zip(places[1:], _DOORS, strict=True):
        with place.container(border=True, height="stretch"):
            st.markdown(f":material/{icon}: **{title}**")
            st.caption(text)
            if st.button(label, key=f"overview.door.{kind}", icon=":material/arrow_forward:"):
                _to_import(kind)


def _real_data(real: SetEntry | None) -> None:
    """The real set among the samples, or the public records that can be got."""
    st.markdown(":material/public: **Look at real data**")
    if real is None:
        st.caption(
            "Public records of what models achieved on the same tasks: SWE-bench, LiveCodeBench, "
            "LLMRouterBench, RouterArena, RouteLLM. Download one, give it here."
        )
        if st.button("Import public records", key="overview.door.real"):
            _to_import("swebench")
        return
    st.caption(
        f"{literal(real.info.name)}: {real.info.n:,} queries with what {len(real.info.models)} "
        "models really achieved and cost. See first whether routing can help there."
    )
    if st.button("Explore it", key="overview.door.real", icon=":material/arrow_forward:"):
        state.put(evalset=real.key, catalog="", tau=None, weights=None, pin=None)
        st.switch_page("pages/evaluate/explore.py")


def _to_import(kind: str) -> None:  # loads what a first visit would wait for
    from hydra_core.evaluation.importers.formats import Kind
    from hydra_core.ui.evalsets.import_wizard import KIND

    st.session_state["eval_sets.view"] = "Import"
    st.session_state[KIND] = Kind(kind)
    st.switch_page(_EVAL_SETS)
