"""Where pages lie, how their parts are switched, and how one page leads to another.

The query parameters of the address: a page writes its own; its part and a demo's step stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.console.demo.session import TOKEN

_DEMO = "demo"
#: The parameter that names a part of a page, and where a session keeps it.
_PART = "part"
_PART_KEY = "page.part"
#: Where a session keeps the number of the step that it is at.
STEP = "demo.step"
_FORM = re.compile(r"([1-7])(?:\.([\w-]{8,40}))?")


class Place(NamedTuple):
    """A page, or one part of it."""

    page: str
    part: str = ""

    @property
    def query(self) -> dict[str, str]:
        """The parameters of its address."""
        return {_PART: self.part} if self.part else {}


HOME: Final = Place("pages/operate/home.py")
_LIVE = "pages/operate/live.py"
TRAFFIC, EXPERIMENTS = Place(_LIVE, "traffic"), Place(_LIVE, "experiments")
LOG, CANARY = Place(_LIVE, "log"), Place(_LIVE, "canary")
_INSPECT = "pages/operate/inspect.py"
MESSAGE, CONVERSATION = Place(_INSPECT, "message"), Place(_INSPECT, "conversation")
ROBUSTNESS = Place(_INSPECT, "robustness")
_CATALOG = "pages/configure/catalog.py"
MODELS, PROFILES = Place(_CATALOG, "models"), Place(_CATALOG, "profiles")
POLICY, WHAT_IF = Place(_CATALOG, "policy"), Place(_CATALOG, "what-if")
_EVAL_SETS = "pages/configure/eval_sets.py"
SETS, COLLECT = Place(_EVAL_SETS, "sets"), Place(_EVAL_SETS, "collect")
ROUTING_HELP = Place(_EVAL_SETS, "routing-help")
LABEL_QUALITY = Place(_EVAL_SETS, "label-quality")
_TUNE = "pages/decide/tune.py"
BY_HAND, SEARCH, LEARNED = Place(_TUNE, "by-hand"), Place(_TUNE, "search"), Place(_TUNE, "learned")
COMPARE: Final = Place("pages/decide/compare.py")
_RELEASES = "pages/decide/releases.py"
PUBLISH = Place(_RELEASES, "publish")
EXPORTS = Place(_RELEASES, "exports")

#: Addresses of former pages, and what each of them became.
MOVED: Final[Mapping[str, Place]] = {
    "overview": HOME,
    "flight": EXPERIMENTS,
    "conversation": CONVERSATION,
    "robustness": ROBUSTNESS,
    "profiles": PROFILES,
    "explore": ROUTING_HELP,
    "labels": LABEL_QUALITY,
    "audit": LABEL_QUALITY,
    "tuner": SEARCH,
    "learn": LEARNED,
    "export": PUBLISH,
}
#: What Label quality opens with, by the former page that a link names.
_VIEWS: Final = {"labels": "runs", "audit": "samples"}


class Head(NamedTuple):
    """The first row of a page: beside its title and parts, and the rest of the row."""

    left: DeltaGenerator
    right: DeltaGenerator


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a page.

    Attributes:
        draw: Draws it; it may put its selectors into the head of the page.
        widths: Of the title with the parts, and of the rest of the row.
    """

    title: str
    draw: Callable[[Head], None]
    widths: tuple[float, float] = (5.0, 7.0)


def show(title: str, parts: Mapping[str, Part]) -> None:
    """Draw a page: its title, the control of its parts, and the part that the address names."""
    key = f"{title.lower().replace(' ', '_')}.part"
    named, written = st.query_params.get(_PART, ""), f"{key}.written"
    if named in parts and named != st.session_state.get(written):
        st.session_state[key] = named
    if st.session_state.get(key) not in parts:
        st.session_state[key] = next(iter(parts))
    chosen: str = st.session_state[key]
    st.session_state[written] = chosen
    st.session_state[_PART_KEY] = chosen
    head = _head(title, parts[chosen].widths)
    head.left.segmented_control(
        f"Part of {title}", list(parts), format_func=lambda name: parts[name].title, key=key,
        required=True, persist_state="session", label_visibility="collapsed",
    )  # fmt: skip
    parts[chosen].draw(head)


def head(title: str, widths: Sequence[float] = (2.8, 7.2)) -> Head:
    """Draw the first row of a page without parts."""
    st.session_state[_PART_KEY] = ""
    return _head(title, widths)


def _head(title: str, widths: Sequence[float]) -> Head:
    left, right = st.columns(list(widths), vertical_alignment="bottom")
    row = left.container(horizontal=True, vertical_alignment="center", gap="small")
    row.title(title, anchor=False, width="content")
    return Head(row, right)


def go(place: Place, **further: str) -> NoReturn:
    """Open another place, with these parameters beside its part."""
    st.switch_page(place.page, query_params={**place.query, **further})


def link(place: Place, label: str, icon: str = ":material/arrow_forward:") -> None:
    """Draw a link to another place."""
    st.page_link(place.page, label=label, icon=icon, query_params=place.query or None)


def redirect(former: str) -> Callable[[], NoReturn]:
    """Return what leads a former page's address to what the page became.

    Its parameters come along; its former part is the view of the new part.
    """
    place = MOVED[former]

    def lead() -> NoReturn:
        given = read_address() | step_link()
        view = st.query_params.get(_PART, "") or _VIEWS.get(former, "")
        if view:
            given.setdefault("view", view)
        go(place, **given)

    return lead


def read_address() -> dict[str, str]:
    """Return the page's own parameters."""
    given = st.query_params.to_dict()
    return {name: text for name, text in given.items() if name not in (_DEMO, _PART)}


def write_address(link: Mapping[str, str]) -> None:
    """Put the page's link into the address, unless it says that already."""
    whole = {**link, **_ours()}
    if st.query_params.to_dict() != whole:
        st.query_params.from_dict(whole)


def keep_address() -> None:
    """Put part and step into the address where a page wrote none; its own parameters stay.

    Each alone: those that belong to a widget may not be written here.
    """
    ours = _ours()
    for name in (_PART, _DEMO):
        if name in ours and st.query_params.get(name) != ours[name]:
            st.query_params[name] = ours[name]
        elif name not in ours and name in st.query_params:
            del st.query_params[name]


def _ours() -> dict[str, str]:
    at = st.session_state.get(_PART_KEY, "")
    return {**({_PART: at} if at else {}), **step_link()}


def demo_asked() -> tuple[int, str] | None:
    """Return the step that the address asks for, and the token of a running demo or ''."""
    found = _FORM.fullmatch(st.query_params.get(_DEMO, ""))
    return None if found is None else (int(found[1]), found[2] or "")


def step_link(step: int | None = None) -> dict[str, str]:
    """Return the parameter that opens this session's demo at a step, by default the current one."""
    token = st.session_state.get(TOKEN)
    at = step or st.session_state.get(STEP, 1)
    return {} if token is None else {_DEMO: f"{at}.{token}"}
