"""A catalog that `init` made routes at once by realised cost: the verb, Inspect, Conversation."""

from __future__ import annotations

import io
import json
import sys

import pytest

from hydra_core.base.types import CostBasis
from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from tests.pages.conftest import ROOT

MESSAGE = "Fix the race condition in the reconnect code"


@pytest.fixture
def made(workspace, capsys):
    """The file, in the operator's own catalogs."""
    path = workspace / "catalogs" / "made.yaml"
    path.parent.mkdir()
    assert main(["init", str(ROOT / "sample_data" / "console_demo"), "--out", str(path)]) == 0
    capsys.readouterr()
    return path


def test_it_is_valid_and_goes_by_realised_cost(made, capsys):
    catalog = load_catalog(made)
    assert catalog.policy.cost_basis is CostBasis.REALISED
    assert set(catalog.realised_costs.usd_per_query) == {model.id for model in catalog.models}
    assert main(["validate", str(made)]) == 0


def test_the_verb_route_takes_it(made, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MESSAGE.encode())))
    assert main(["route", "--catalog", str(made), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] in {model.id for model in load_catalog(made).models}


def test_inspect_shows_its_receipt(made, open_page):
    app = open_page("pages/operate/inspect.py?part=message", catalog="my/made", text=MESSAGE)
    assert not app.exception
    assert not app.error
    receipt = json.loads(next(block.value for block in app.code if block.language == "json"))
    assert receipt["model"] in {model.id for model in load_catalog(made).models}


def test_conversation_plays_on_it(made, open_page):
    app = open_page("pages/operate/inspect.py?part=conversation", catalog="my/made")
    assert not app.exception
    assert not app.error
    assert any(metric.label == "Switches" for metric in app.metric)
