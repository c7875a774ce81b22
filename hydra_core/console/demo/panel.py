"""A demo as it is seen: the link to it, the story in the sidebar, its beginning and its end.

The story has seven steps, each with what to say, what to do and what that shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from hydra_core.base.errors import AccessError, HydraError
from hydra_core.base.workspace import workspace_folder
from hydra_core.console import browser, cache, frame, state, widgets
from hydra_core.console.access import identity
from hydra_core.console.compare import state as compare_state
from hydra_core.console.demo import session
from hydra_core.console.demo.copies import DEMOS, EVALSET
from hydra_core.console.demo.session import TOKEN
from hydra_core.console.frame import STEP
from hydra_core.store.roles import Action, require

_OVER = "demo.over"
_RADIO, _WANTED, _LINKED = "demo.radio", "demo.wanted", "demo.linked"
#: What stays in a session when it changes between a demo and the operator's workspace.
_KEPT = ("who.name",)
#: A message that the story's first policy sends to the cheapest of its models.
SIMPLE: Final = "Write a Python function that returns the median of a list."
#: The model whose price falls, and half of what it costs, USD per million tokens.
REPRICED: Final = "claude-3-5-sonnet-20240620"
HALF: Final = (1.5, 7.5)


def arrive() -> bool:
    """Find the demo of the session or of the address; return whether there is one."""
    asked, token = frame.demo_asked(), st.session_state.get(TOKEN)
    if token is not None and not _joined(str(token)):
        _clear_session()
        st.session_state[_OVER] = True
        return False
    if token is None and asked is not None and _joined(asked[1]):
        st.session_state[TOKEN] = asked[1]
        st.session_state[_LINKED] = True
    if TOKEN not in st.session_state:
        return False
    if asked is not None and asked[0] != st.session_state.get(STEP):
        _enter(asked[0])
    return True


def _joined(token: str) -> bool:
    context = get_script_run_ctx()
    try:
        person = identity.person()
        require(person, Action.DEMO)
    except AccessError:
        return False
    here = "" if context is None else context.session_id
    return bool(token) and DEMOS.join(token, here, person) is not None


def _enter(number: int) -> None:
    """Prepare a step: the story's data, and what its page begins with."""
    demo = session.demo()
    assert demo is not None
    st.session_state[STEP] = number
    if state.get().catalog != demo.catalog:
        state.put(
            evalset=EVALSET, catalog=demo.catalog, tau=None, weights=None, rule=None,
            value_usd=None, pin=None, aim=None,
        )  # fmt: skip
    for key, view in STEPS[number - 1].views.items():
        st.session_state[key] = view


def invitation() -> None:
    """Draw a link that opens a demo in a tab of its own; nothing inside a demo."""
    if session.demo() is None and identity.may(Action.DEMO):
        st.link_button(
            "Demo", "./?demo=1", icon=":material/slideshow:", type="tertiary",
            help="Seven steps that show what the console does, in a new tab, on a copy of this "
            "workspace that is deleted afterwards.",
        )  # fmt: skip


def offered() -> bool:
    """Offer to begin a demo, instead of the page, where the address asks for one and none runs."""
    asked, over = frame.demo_asked(), st.session_state.pop(_OVER, False)
    if session.demo() is not None or (asked is None and not over):
        return False
    number, token = asked or (1, "")
    ended = over or bool(token)
    around = st.container(horizontal_alignment="center")
    around.space(80)
    with around.container(border=True, width=520, gap="small"):
        st.subheader("This demo has ended" if ended else "A demo of this console", anchor=False)
        st.markdown(
            "Its copy is deleted. You can begin another one."
            if ended
            else "Seven steps, three to ten minutes, on **a throw-away copy** of this workspace. "
            "Try anything: your drafts, revisions and eval sets are not touched. Closing the tab "
            "ends it."
        )
        with st.container(horizontal=True):
            begin = st.button(
                "Begin", type="primary", icon=":material/play_arrow:", key="demo.begin",
                disabled=not identity.may(Action.DEMO),
            )  # fmt: skip
            if st.button("To the console", type="tertiary", key="demo.console"):
                frame.go(STEPS[0].place)
        if not identity.may(Action.DEMO):
            st.caption(":material/lock: A demo needs the role editor or publisher.")
        if begin:
            _begin(number)
    return True


def _begin(number: int) -> None:
    try:
        with st.spinner("Copying the workspace"):
            demo = DEMOS.begin(workspace_folder(), cache.store(), identity.person())
    except HydraError as error:
        widgets.problem(error)
        return
    _clear_session()
    st.session_state[TOKEN] = demo.token
    DEMOS.watch()
    _go(number)


def _go(number: int) -> None:
    _enter(number)
    step = STEPS[number - 1]
    frame.go(step.place, **step.link, **frame.step_link(number))


def _clear_session() -> None:
    """Drop what the session holds of one workspace before it turns to another."""
    kept = {key: st.session_state[key] for key in _KEPT if key in st.session_state}
    st.session_state.clear()
    st.session_state.update(kept)


def sidebar(where: str) -> None:
    """Draw the story beside the page of this name: all steps, and the current one in full."""
    wanted = st.session_state.pop(_WANTED, None)
    if wanted is not None:
        _go(int(wanted))
    now = int(st.session_state[STEP])
    if st.session_state.pop(_LINKED, False) and where == STEPS[0].where and now > 1:
        _go(now)  # a link to a step, without its page
    with st.sidebar.container(gap="small"):
        browser.one_entry()
        st.badge(
            "Demo copy", icon=":material/science:", color="orange",
            help="A throw-away copy of the workspace. Nothing that you do here reaches it.",
        )  # fmt: skip
        st.session_state[_RADIO] = now
        st.radio(
            "Step", range(1, len(STEPS) + 1), key=_RADIO, label_visibility="collapsed",
            format_func=lambda number: f"{number} · {STEPS[number - 1].title}",
            on_change=lambda: st.session_state.__setitem__(_WANTED, st.session_state[_RADIO]),
        )  # fmt: skip
        _step(now, STEPS[now - 1], where)
        with st.container(horizontal=True):
            if st.button(
                "Reset", icon=":material/restart_alt:", key="demo.reset",
                help="Delete this copy and begin again on a fresh one.",
            ):  # fmt: skip
                _leave()
                _begin(1)
            if st.button(
                "End", icon=":material/stop_circle:", key="demo.end",
                help="Delete the copy and go to the workspace.",
            ):  # fmt: skip
                _leave()
                frame.go(STEPS[0].place)


def _step(number: int, step: Step, where: str) -> None:
    """Draw the buttons above the text, so that a hurried click finds Next and not Reset."""
    with st.container(horizontal=True):
        if number < len(STEPS) and st.button(
            "Next", type="primary", icon=":material/arrow_forward:", key="demo.next",
        ):  # fmt: skip
            _go(number + 1)
        if where != step.where and st.button(f"To {step.where}", key="demo.there"):
            _go(number)
        if (
            step.also is not None
            and where != step.also[1]
            and st.button(f"To {step.also[1]}", key="demo.also")
        ):
            _compare(step.also[0])
    st.markdown(step.say)
    st.markdown(f":material/touch_app: **{step.do}**")
    st.markdown(f":material/check: {step.shows}")


def _compare(place: frame.Place) -> None:
    """Open Compare: what is published beside a fixed mix of the same cost."""
    demo = session.demo()
    assert demo is not None
    compare_state.put(a="mix", b=f"catalog:{demo.catalog}", knob_a=None, knob_b=None)
    frame.go(place, **frame.step_link())


def _leave() -> None:
    DEMOS.end(str(st.session_state[TOKEN]))
    _clear_session()


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it is about, what to say, the one thing to do, and what can be said then.

    Attributes:
        place: Part of the page it is played on, and `where` the name of the page.
        views: What the page begins with: key of the session -> value.
        link: Further parameters of its address.
        also: A second page that it needs, with its name.
    """

    title: str
    say: str
    do: str
    shows: str
    place: frame.Place
    where: str
    views: Mapping[str, str | float] = field(default_factory=dict)
    link: Mapping[str, str] = field(default_factory=dict)
    also: tuple[frame.Place, str] | None = None


STEPS: Final = (
    Step(
        "The question",
        "Five models, 4,074 public benchmark questions, and what each model achieved and cost on "
        "every one of them.",
        "Read the result: so far a fixed mix of two models does better.",
        "HyDRA compares itself with the strongest simple alternative, and says when that wins.",
        frame.HOME,
        "Home",
    ),
    Step(
        "A message",
        "A simple request goes to the cheapest of five models that can handle it.",
        "Open the receipt, then read what would change the choice.",
        "Every decision can be explained and checked: nothing is a black box.",
        frame.MESSAGE,
        "Inspect",
        link={"text": SIMPLE},
    ),
    Step(
        "The knob",
        "One knob trades quality for cost, and every figure follows your hand.",
        "Drag τ and let go: the result and its interval follow.",
        "Each setting is measured before any user sees it.",
        frame.BY_HAND,
        "Tune",
    ),
    Step(
        "Learn and win",
        "Outcomes teach the router what benchmarks cannot, and it is judged only on questions "
        "that it has not seen.",
        "Press Learn, wait under a minute, then take it into the catalog draft.",
        "The router now beats the best fixed mix of the same cost.",
        frame.LEARNED,
        "Tune",
    ),
    Step(
        "Publish",
        "A release shows before and after in one table: quality, cost, result and traffic.",
        "Publish your draft, then compare it with a fixed mix of the same cost.",
        "For the same money the release resolves more questions than any fixed mix.",
        frame.PUBLISH,
        "Releases",
        also=(frame.COMPARE, "Compare"),
    ),
    Step(
        "Models change",
        "Models are repriced and withdrawn all the time, and nothing has to be trained again.",
        "See what Sonnet at half its price changes, then choose that a model is removed.",
        "A lower price reaches your bill at once, and you know what a model is worth before it "
        "goes.",
        frame.WHAT_IF,
        "Catalog",
        {
            "catalog.event.kind": "reprice",
            "catalog.event.model": REPRICED,
            state.price_key("input", REPRICED, 2 * HALF[0]): HALF[0],
            state.price_key("output", REPRICED, 2 * HALF[1]): HALF[1],
        },
    ),
    Step(
        "Ship and undo",
        "The catalog is a text that a person can read and review; what was learned lies beside "
        "it in one zip file.",
        "Read the catalog from the top. Then open History and bring revision 1 back.",
        "Every release has an author, a date and figures, and one click takes it back.",
        frame.EXPORTS,
        "Releases",
        {"exports.view": "Export"},
    ),
)
