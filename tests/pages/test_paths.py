"""The paths of ARCHITECTURE.md from the hand to its effect, held to the calls of a real run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import streamlit

from hydra_core.console.tune.knob import PLOT
from tests.stacks import Stacks, documented

SHOWN = (PLOT, "tune.knob")
STREAMLIT = str(Path(streamlit.__file__).parent)
FIGURE = [
    ("ui/state.py", "turn"),
    ("evaluation/replay/step_curve.py", "StepCurve.at"),
    ("views/frontier.py", "frontier_view"),
    ("figures/frontier.py", "frontier_figure"),
    ("ui/widgets.py", "figure"),
]
ROUTES = [("ui/state.py", "turn"), ("routing/matcher.py", "choose")]
TILES = [
    *ROUTES,
    ("evaluation/replay/metrics.py", "evaluate_choice"),
    ("views/tune/operating_point.py", "tiles"),
    ("ui/live_knob/component.py", "live_knob"),
]
VERDICT = [
    *ROUTES,
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


def report(app, proto, **state):
    """What the browser reports of one widget: AppTest has no hand for a table or a component."""
    reported = app._tree.get_widget_states()
    for one in [one for one in reported.widgets if one.id == proto.id]:
        reported.widgets.remove(one)
    reported.widgets.add(id=proto.id, **state)
    app._run(reported)
    assert not app.exception


@pytest.fixture
def released(open_page):
    """The stacks of one release of the live knob."""
    app = open_page("pages/decide/tune.py?part=by-hand")
    (knob,) = (one.proto for one in app.get("bidi_component") if "knob" in one.proto.component_name)
    # No figure beside the one that is meant.
    meant = {"until": STREAMLIT, "about": lambda given: given.get("key", PLOT) in SHOWN}
    with Stacks([*FIGURE, *TILES, *VERDICT], **meant) as stacks:
        report(app, knob, json_value=json.dumps({"knob": 0.1234567}))
    assert app.number_input(key="tune.tau").value == 0.1234567
    return stacks


def test_tau_goes_to_figure_tiles_and_verdict_as_documented(released):
    entries = ("live_knob.<locals>.released", "tune")
    for title, stations in (("figure", FIGURE), ("tiles", TILES), ("verdict", VERDICT)):
        title = f"tau to the {title}"
        files = released.between(entries, stations)
        assert documented(title) == (len(files), files)


def test_a_cell_goes_to_the_stored_draft_as_documented(open_page):
    app = open_page("pages/configure/catalog.py?part=models")

    def price(value):
        cells = {"edited_rows": {"0": {"input_usd_per_mtok": value}}}
        report(app, app.data_editor[0].proto, string_value=json.dumps(cells))

    price(0.4321)  # starts a draft
    with Stacks(CELL, until=STREAMLIT) as stacks:
        price(0.1234)
    files = stacks.between(("_edited",), CELL)
    assert documented("A cell edit of the Catalog page") == (len(files), files)
