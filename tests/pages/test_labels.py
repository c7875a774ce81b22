"""Labels from app.py: no run, a run under way, a finished one, a damaged one."""

import json
import math
from base64 import b64decode
from datetime import UTC, datetime

import numpy as np
import pytest

from hydra_core.console.eval_sets.labels import answer
from hydra_core.lab.labeling.config import load_config
from hydra_core.lab.labeling.ledger import Call, Ledger
from hydra_core.lab.labeling.messages import read_messages
from hydra_core.lab.labeling.run_folder import LEDGER, keep_setup
from tests.lab.labeling.fake_server import messages, settings

PAGE = "pages/configure/eval_sets.py?part=label-quality&view=runs"
PARTS = ("What next", "Judge", "Labels", "Set aside")


@pytest.fixture
def run(workspace):
    """A run's folder, half done, and what is needed to go on with it."""
    folder = workspace / "labels" / "mine"
    folder.mkdir(parents=True)
    (workspace / "m.jsonl").write_text(messages(12))
    text = settings("http://127.0.0.1:9/v1", stability_share=1, budget=5)
    (workspace / "label.yaml").write_text(text)
    config = load_config(workspace / "label.yaml")
    found = read_messages(workspace / "m.jsonl")
    with Ledger(folder / LEDGER, config.recipe) as ledger:
        keep_setup(folder, config, found, ledger.record, source="m.jsonl", settings="label.yaml",
                   now=datetime.now(UTC))  # fmt: skip
        for at, message in enumerate(found[:8]):
            judged(ledger, message.id, at)
        ledger.add("aside", Call(found[8].id, "judge"), reason="judge: =cmd, asked 3 times")
    return folder, config


def judged(ledger, message, at):
    """Two answers and four verdicts that agree but for one point."""
    for stage in ("cheap", "strong"):
        ledger.add("answered", Call(message, stage), cost_usd=0.01, tokens=[], content="x")
    for again in range(2):
        for order in ("cheap_first", "strong_first"):
            strong = [2 + at % 4] * 3 + [5 if again else 1]
            content = {"cheap": [1.0] * 4, "strong": strong, "winner": "strong"}
            call = Call(message, "judge", order, again)
            ledger.add("answered", call, cost_usd=0.01, tokens=[], content=content)


def shown(app):
    return {one.label: one.value.replace("\\", "") for one in app.metric}


def test_without_a_run_the_page_says_how_to_begin_one(open_page, workspace):
    app = open_page(PAGE)
    assert not app.exception
    assert f"--out {workspace / 'labels' / 'first'} --dry-run" in app.code[0].value


def test_a_run_that_stands_still_is_shown_with_the_command_that_goes_on(open_page, run):
    app = open_page(PAGE)
    assert not app.exception
    assert shown(app) == {"Labelled by the judge": "8", "Set aside": "1",
                          "Calls still to make": "18", "Spent": "$0.480"}  # fmt: skip
    assert "These labels are noisy" in app.warning[0].proto.title
    assert "tool use" in app.warning[0].value
    command = f"hydra-router lab label m.jsonl --config label.yaml --out {run[0]}"
    assert [one.value for one in app.code] == [command, f"{command} --again"]


def test_a_run_under_way_says_so(open_page, run):
    with Ledger(run[0] / LEDGER, run[1].recipe):
        app = open_page(PAGE)
        assert not app.exception
        assert [one.key for one in app.button if one.key == "labels.refresh"]
        assert any("Wait, or stop it" in one.value for one in app.markdown)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_opens(open_page, run, part):
    app = open_page(PAGE)
    next(
        one
        for one in app.get("button_group")
        if one.proto.label == "View" and "Set aside" in str(one.options)
    ).set_value(part).run()
    assert not app.exception
    if part == "Set aside":
        assert app.dataframe[1].value["id"].tolist() == ["m00008"]
        assert app.dataframe[0].value["messages"].tolist() == [1]
    elif part == "Judge":
        figures = [json.loads(one.proto.spec) for one in app.get("plotly_chart")]
        alphas = np.frombuffer(b64decode(figures[0]["data"][0]["x"]["bdata"]))
        assert alphas[:3].tolist() == [1.0, 1.0, 1.0]
        assert alphas[3] < 0
    elif part == "Labels":
        assert app.dataframe[0].value["zero"].tolist()[:3] == [0.0, 0.0, 0.0]


def test_a_damaged_run_says_what_to_mend(open_page, run):
    (run[0] / "run.json").unlink()
    app = open_page(PAGE)
    assert not app.exception
    assert "--dry-run" in app.error[0].value.replace("\\", "")


def test_equal_labels_are_not_called_unchecked():
    nothing = {"value": math.nan, "lo": math.nan, "hi": math.nan}
    twice = {"n": 7, "reasoning": {"alpha": nothing, "mean_absolute_difference": 0.0}}
    said = answer({"labelled": 7, "stability": twice, "judges": {}})
    assert "All of the 7 messages judged twice have the same label" in said[2]
    never = answer({"labelled": 7, "stability": {}, "judges": {}})
    assert "No message was judged twice" in never[2]
