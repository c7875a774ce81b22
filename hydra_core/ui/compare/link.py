"""The address of the Compare page: both sides, and which view of them is looked at."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.types import IntArray
from hydra_core.ui.demo import address

__all__ = ["PAGE", "POLICIES", "base", "first_page", "follow", "query_shown", "write"]

POLICIES = "compare.table"
#: The number of the page shown, and the id of the query picked on it.
PAGE, PICKED = "compare.at_page", "compare.picked"
#: The query that a link names, until another is picked.
LINKED = "compare.linked"
_BASE, _FOLLOWED, _LINKED_PAGE = "compare.link", "compare.followed", "compare.linked_page"
#: Parameter -> where the session keeps it. What is not on screen is not in the address.
_VIEWS = {
    "Who moved": {"colour": "compare.measure"},
    "Languages and groups": {"by": "compare.by"},
    "Queries": {
        "list": "compare.which", "language": "compare.language", "from": "compare.before",
        "to": "compare.after", "notes": "compare.noted",
    },
    "Significance": {},
}  # fmt: skip


def follow(options: Mapping[str, tuple[str, ...]]) -> None:
    """Take the view from the address that a session was opened with; once.

    Args:
        options: What the choices of a fixed list may be, by parameter; anything else is ignored.
    """
    if st.session_state.get(_FOLLOWED):
        return
    st.session_state[_FOLLOWED] = True
    link = address.read()
    keys = {"view": "compare.part"} | {k: v for view in _VIEWS.values() for k, v in view.items()}
    for name, key in keys.items():
        # the choice itself, not its text: a widget knows its options by what they are
        known = [one for one in options.get(name, (link.get(name),)) if one == link.get(name)]
        if name in link and known:
            st.session_state.setdefault(key, known[0])
    if link.get("page", "").isdecimal():
        st.session_state[_LINKED_PAGE] = max(int(link["page"][:6]), 1)
    if link.get("query"):
        st.session_state[LINKED] = link["query"]
    if link.get("policies"):
        st.session_state.setdefault(POLICIES, link["policies"].split("|"))


def base(link: Mapping[str, str]) -> None:
    """Both sides, as the parameters that restore them."""
    st.session_state[_BASE] = dict(link)


def first_page(pages: int) -> int:
    """Where a list begins: at its first page, but for the one that the link opened."""
    return min(int(st.session_state.pop(_LINKED_PAGE, 1)), pages)


def query_shown(picked: int | None, ids: pd.Series[str], rows: IntArray) -> int | None:
    """The query picked in the list, else the one that a link names; kept for the address.

    Args:
        picked: Its row in the eval set.
        ids: Of every query of the set.
        rows: Those that both sides route.
    """
    if picked is not None:
        st.session_state.pop(LINKED, None)
    st.session_state[PICKED] = "" if picked is None else str(ids.iloc[picked])
    named = np.flatnonzero(ids.astype(str) == st.session_state.get(LINKED, ""))
    if picked is None and named.size and named[0] in rows:
        return int(named[0])
    return picked


def write() -> None:
    """Put what is on screen into the address."""
    now = st.session_state
    part = str(now.get("compare.part") or "")
    link = {"view": part}
    link |= {name: str(now.get(key) or "") for name, key in _VIEWS.get(part, {}).items()}
    if part == "Queries":
        link["page"] = str(now.get(PAGE, 1)) if now.get(PAGE, 1) > 1 else ""
        link["query"] = str(now.get(PICKED) or now.get(LINKED) or "")
    if part == "Significance":
        link["policies"] = "|".join(now.get(POLICIES) or ())
    address.write(now.get(_BASE, {}) | {name: text for name, text in link.items() if text})
