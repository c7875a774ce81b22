"""A measurement in the background: offered, begun, waited for, and its result."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import streamlit as st

from hydra_core.console import replays, widgets
from hydra_core.console.tasks import Task

#: Up to this many queries a measurement begins by itself.
AT_ONCE = 1_000


def measured(
    key: Hashable,
    work: Callable[[Task], object],
    /,
    why: str,
    button: str,
    *,
    doing: str,
    at_once: bool = False,
    **shown: Any,  # noqa: ANN401 (Streamlit's own)
) -> Any:  # noqa: ANN401 (what `work` returns)
    """What was measured; None while it runs, or is offered: `why`, and a button as `st.button`."""
    task = replays.tasks().get(key)
    if task is None and at_once:
        task = replays.tasks().start(key, work)
    if task is not None and task.running:
        widgets.waiting(task, doing)
        return None
    if task is not None and task.failure is not None:
        widgets.problem(task.failure)
    if task is not None and task.result is not None:
        return task.result
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(why, width="stretch")
        if st.button(button, **shown):
            replays.tasks().start(key, work)
            st.rerun()
    return None
