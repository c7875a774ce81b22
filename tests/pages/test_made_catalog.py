"""A catalog that `init` made routes at once by realised cost: the verb, Inspect, Conversation."""

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


PRICES = {
    "gpt-5.4": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-06,
                "output_cost_per_token": 1.5e-05},
    "small": {"litellm_provider": "x", "mode": "chat", "input_cost_per_token": 2e-09,
              "output_cost_per_token": 8e-09},
}  # fmt: skip


def test_a_near_entry_is_offered_and_a_price_that_costs_deny_is_confirmed(
    workspace, open_page, capsys
):
    header = "query_id,text,model,quality,cost_usd,input_tokens,output_tokens\n"
    rows = [
        f"q{i},{MESSAGE} {i},{model},1,{cost},1000,100\n"
        for i in range(3)
        for model, cost in (("openai/gpt-5.4", 0.004), ("small", 0.0028))
    ]
    (workspace / "x.csv").write_text(header + "".join(rows))
    out = workspace / "evalsets" / "mine"
    out.parent.mkdir(exist_ok=True)
    assert main(["import", "table", str(workspace / "x.csv"), "--out", str(out)]) == 0
    app = open_page("pages/configure/eval_sets.py?part=sets", set="my/mine")
    app.session_state["make_catalog.set"] = "my/mine"
    app.run()
    content = json.dumps(PRICES).encode()
    app.file_uploader(key="make_catalog.file.my/mine").set_value(
        ("list.json", content, "application/json")
    ).run()
    assert not app.exception
    (near,) = [box for box in app.checkbox if "take the price of" in box.label]
    assert "2.5 in, 15 out" in near.label.replace("\\", "")
    near.check().run()
    assert any("small: the price times the recorded tokens" in one.value.replace("\\", "")
               for one in app.error)  # fmt: skip
    (right,) = [box for box in app.checkbox if "is right" in box.label]
    right.check().run()
    assert not app.exception
    assert not [box for box in app.checkbox if "is right" in box.label and not box.value]
