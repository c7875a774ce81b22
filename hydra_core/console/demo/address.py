"""The query parameters of the address: a page writes its own; its part and a demo's step stay."""

from __future__ import annotations

import re
from collections.abc import Mapping

import streamlit as st

from hydra_core.console.demo.session import TOKEN

PARAMETER = "demo"
#: The parameter that names a part of a page, and where a session keeps it.
PART = "part"
_PART = "page.part"
#: Where a session keeps the number of the step that it is at.
STEP = "demo.step"
_FORM = re.compile(r"([1-7])(?:\.([\w-]{8,40}))?")


def read() -> dict[str, str]:
    """Return the page's own parameters."""
    given = st.query_params.to_dict()
    return {name: text for name, text in given.items() if name not in (PARAMETER, PART)}


def part() -> str:
    """Return the part that the address names, '' where it names none."""
    return st.query_params.get(PART, "")


def stay_in(part: str) -> None:
    """Name this part in every address that is written from now on."""
    st.session_state[_PART] = part


def write(link: Mapping[str, str]) -> None:
    """Put the page's link into the address, unless it says that already."""
    whole = {**link, **_ours()}
    if st.query_params.to_dict() != whole:
        st.query_params.from_dict(whole)


def keep() -> None:
    """Put part and step into the address where a page wrote none; its own parameters stay.

    Each alone: those that belong to a widget may not be written here.
    """
    ours = _ours()
    for name in (PART, PARAMETER):
        if name in ours and st.query_params.get(name) != ours[name]:
            st.query_params[name] = ours[name]
        elif name not in ours and name in st.query_params:
            del st.query_params[name]


def _ours() -> dict[str, str]:
    at = st.session_state.get(_PART, "")
    return {**({PART: at} if at else {}), **step_link()}


def asked() -> tuple[int, str] | None:
    """Return the step that the address asks for, and the token of a running demo or ''."""
    found = _FORM.fullmatch(st.query_params.get(PARAMETER, ""))
    return None if found is None else (int(found[1]), found[2] or "")


def step_link(step: int | None = None) -> dict[str, str]:
    """Return the parameter that opens this session's demo at a step, by default the current one."""
    token = st.session_state.get(TOKEN)
    at = step or st.session_state.get(STEP, 1)
    return {} if token is None else {PARAMETER: f"{at}.{token}"}
