"""The paths of ARCHITECTURE.md from the hand to its effect, held to the calls of a real run.

A path is the set of files on the call stack between what the browser reports and its stations: the
functions that make something of it. What a station asks on its way (an interval, a colour, the
store's roles) is none. Where a call is added or taken away between them, the list must follow.
"""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest
import streamlit

from hydra_core.ui.tune.knob import PLOT

ROOT = Path(__file__).resolve().parents[2]
STREAMLIT = str(Path(streamlit.__file__).parent)
CORE = "hydra_core"
OURS = (f"{ROOT}/{CORE}/", f"{ROOT}/pages/")
MADE = [
    ("routing/matcher.py", "choose"),
    ("evaluation/replay/metrics.py", "evaluate_choice"),
]
FIGURE = [
    ("ui/state.py", "turn"),
    *MADE,
    ("views/frontier.py", "frontier_view"),
    ("figures/frontier.py", "frontier_figure"),
    ("ui/widgets.py", "figure"),
]
VERDICT = [
    ("ui/state.py", "turn"),
    MADE[0],
    ("evaluation/replay/matched_cost.py", "MatchedCost.differences"),
    ("ui/widgets.py", "verdict_box"),
]
CELL = [
    ("catalog/editing/render.py", "flow"),
    ("catalog/reading/yaml_reader.py", "read_yaml"),
    ("ui/chosen_on.py", "looked_at"),
    ("store/drafts.py", "Drafts.save"),
    ("store/checks.py", "checked_unfinished"),
    ("store/database.py", "Database.writing"),
]


def documented(title):
    """(count, files) of a path in ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (told,) = re.findall(rf"^\*\*{title}\*\*, (\d+) files(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    return int(told[0]), set(re.findall(r"`([\w/]+\.py)`", told[1]))


def report(app, proto, **state):
    """What the browser reports of one widget: AppTest has no hand for a table or a component."""
    reported = app._tree.get_widget_states()
    for one in [one for one in reported.widgets if one.id == proto.id]:
        reported.widgets.remove(one)
    reported.widgets.add(id=proto.id, **state)
    app._run(reported)
    assert not app.exception


class Stacks:
    """The stacks on which the stations were called."""

    def __init__(self):
        self.calls = set()

    def __enter__(self):
        threading.setprofile(self._called)  # a page runs in a thread of its own
        return self

    def __exit__(self, *_):
        threading.setprofile(None)

    def _called(self, frame, event, _):
        if event != "call" or self._ours(frame) not in WATCHED:
            return
        if frame.f_locals.get("key", PLOT) == PLOT:  # no figure beside the one that is meant
            self.calls.add(tuple(self._stack(frame)))

    def _stack(self, frame):
        """Innermost first, up to where streamlit called us; past a library's own frames."""
        while frame is not None and not frame.f_code.co_filename.startswith(STREAMLIT):
            name = self._ours(frame)
            if name is not None:
                yield name
            frame = frame.f_back

    def _ours(self, frame):
        path = frame.f_code.co_filename
        inside = path.startswith(OURS)
        return (path[len(f"{ROOT}/") :], frame.f_code.co_qualname) if inside else None

    def between(self, entries, stations):
        """Files from these functions, which streamlit calls, to all of the stations."""
        wanted = {(f"{CORE}/{path}", name) for path, name in stations}
        found = [one for one in self.calls if one[0] in wanted and one[-1][1] in entries]
        assert {one[0] for one in found} == wanted
        return {path for one in found for path, _ in one}


WATCHED = {(f"{CORE}/{path}", name) for path, name in [*FIGURE, *VERDICT, *CELL]}


@pytest.fixture
def released(open_page):
    """The stacks of one release of the live knob."""
    app = open_page("pages/evaluate/tune.py")
    (knob,) = (one.proto for one in app.get("bidi_component") if "knob" in one.proto.component_name)
    with Stacks() as stacks:
        report(app, knob, json_value=json.dumps({"knob": 0.1234567}))
    assert app.number_input(key="tune.tau").value == 0.1234567
    return stacks


def test_tau_goes_to_the_figure_and_the_verdict_as_documented(released):
    entries = ("live_knob.<locals>.released", "tune")
    for title, stations in (("tau to the figure", FIGURE), ("tau to the verdict", VERDICT)):
        files = released.between(entries, stations)
        assert documented(title) == (len(files), files)


def test_a_cell_goes_to_the_stored_draft_as_documented(open_page):
    app = open_page("pages/configure/catalog.py")

    def price(value):
        cells = {"edited_rows": {"0": {"input_usd_per_mtok": value}}}
        report(app, app.data_editor[0].proto, string_value=json.dumps(cells))

    price(0.4321)  # starts a draft
    with Stacks() as stacks:
        price(0.1234)
    files = stacks.between(("_edited",), CELL)
    assert documented("A cell edit of the Catalog page") == (len(files), files)
