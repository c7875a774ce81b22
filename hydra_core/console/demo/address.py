"""The query parameters of the address: each page writes its own, and a demo's step stays beside."""

from __future__ import annotations

import re
from collections.abc import Mapping

import streamlit as st

from hydra_core.console.demo.session import TOKEN

PARAMETER = "demo"
#: Where a session keeps the number of the step that it is at.
STEP = "demo.step"
_FORM = re.compile(r"([1-7])(?:\.([\w-]{8,40}))?")


def read() -> dict[str, str]:
    """What the page's own link says."""
    return {name: text for name, text in st.query_params.to_dict().items() if name != PARAMETER}


def write(link: Mapping[str, str]) -> None:
    """Put the page's link into the address, unless it says that already."""
    whole = {**link, **step_link()}
    if st.query_params.to_dict() != whole:
        st.query_params.from_dict(whole)


def keep() -> None:
    """Put the demo's step back into the address where a page wrote none of its own."""
    write(read())


def asked() -> tuple[int, str] | None:
    """The step that the address asks for, and the token of a running demo or ''."""
    found = _FORM.fullmatch(st.query_params.get(PARAMETER, ""))
    return None if found is None else (int(found[1]), found[2] or "")


def step_link(step: int | None = None) -> dict[str, str]:
    """The parameter that opens this session's demo at a step, at first the one it is at."""
    token = st.session_state.get(TOKEN)
    at = step or st.session_state.get(STEP, 1)
    return {} if token is None else {PARAMETER: f"{at}.{token}"}
