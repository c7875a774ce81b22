"""Live from app.py: an empty state that teaches, and every part says what the core says."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS
from hydra_core.base.workspace import workspace_folder
from hydra_core.catalog import load_catalog
from hydra_core.console.live.canary import canary_rows
from hydra_core.decision_log.canaries_and_alerts import (
    CanaryOrder,
    CanaryRecord,
    begin_canary,
    canaries,
    order_canary,
    ordered_canary,
    refuse_order,
)
from hydra_core.live.canary import canary_report
from tests.live.logs import decision, traffic

PAGE = "pages/operate/live.py?part=traffic"
PARTS = ("Traffic", "Cost", "Shadow", "Drift", "Unknown", "Feedback")
CANARY = "pages/operate/live.py?part=canary"


def decided(catalog):
    """What every decision of a catalog has in its record; the first model gets all."""
    ids = tuple(model.id for model in catalog.models)
    return {"catalog": catalog.name, "catalog_digest": catalog.digest, "arm": "main",
            "predictor": catalog.predictor_fingerprint, "candidates": ids,
            "propensities": (1.0,) + (0.0,) * (len(ids) - 1), "chosen": ids[0], "served": ids[0],
            "shortfalls": (0.0,) * len(ids)}  # fmt: skip


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The folder of a log by the shipped catalog: 60 answers now, every third rated."""
    facts = decided(load_catalog(CATALOGS / "paper_five.yaml"))
    rng = np.random.default_rng(0)
    now = datetime.now(UTC)
    rows = [decision(i, requirements=tuple(rng.uniform(0, 0.4, 4)),
                     at=now - timedelta(seconds=60 - i), **facts) for i in range(60)]  # fmt: skip
    folder = tmp_path / "decisions"
    traffic(folder, rows, {f"d{i}": 1.0 for i in range(0, 60, 3)})
    monkeypatch.setenv("HYDRA_LOG", str(folder))
    return folder


def test_without_a_log_the_page_teaches_how_to_get_one(open_page):
    app = open_page(PAGE)
    assert not app.exception
    (taught,) = (one.value for one in app.markdown if "hydra-router serve" in one.value)
    assert "--catalog store:mine " in taught
    assert f"--log {workspace_folder().resolve() / 'log'}\n" in taught


def test_a_link_that_names_a_view_and_no_part_opens(open_page, log):
    app = open_page("pages/operate/live.py?live.view=Feedback")
    assert not app.exception
    assert "Feedback" in app.query_params["live.view"]
    assert "traffic" in app.query_params["part"]


def test_an_empty_log_teaches_as_well(open_page, tmp_path, monkeypatch):
    (tmp_path / "decisions").mkdir()
    monkeypatch.setenv("HYDRA_LOG", str(tmp_path / "decisions"))
    app = open_page(PAGE)
    assert any("No decisions" in one.value for one in app.markdown)


def test_a_log_of_refusals_alone_says_so(open_page, tmp_path, monkeypatch):
    folder = tmp_path / "decisions"
    traffic(folder, [decision(i, at=datetime.now(UTC), status="refused") for i in range(2)])
    monkeypatch.setenv("HYDRA_LOG", str(folder))
    app = open_page(PAGE)
    assert not app.exception
    assert any("2 requests refused" in one.value for one in app.markdown)


def test_a_folder_that_is_not_there_is_named(open_page, tmp_path, monkeypatch):
    monkeypatch.setenv("HYDRA_LOG", str(tmp_path / "nowhere"))
    assert "no such log folder" in open_page(PAGE).error[0].value


@pytest.mark.parametrize("part", PARTS)
def test_every_part_opens(open_page, log, part):
    app = open_page(PAGE, **{"live.view": part})
    assert not app.exception
    assert not app.error
    assert app.metric[0].value == "60"
    assert app.segmented_control(key="live.view").value == part


def test_costs_are_signed_against_a_named_baseline(open_page, log):
    text = [one.value for one in open_page(PAGE, **{"live.view": "Cost"}).markdown]
    strong, cheap = (text.index(one) for one in text if one.startswith("Against always"))
    assert r"**gpt\-5\.4**" in text[strong]
    assert "\u2212" in text[strong + 1]
    assert "0\\.0 %" in text[cheap + 1]  # everything went to the cheapest


def test_without_exploration_no_quality_is_printed(open_page, log):
    app = open_page(PAGE, **{"live.view": "Shadow"})
    assert any("nothing was explored" in one.value for one in app.info)


def test_every_view_of_a_team_has_its_decisions_alone(open_page, tmp_path, monkeypatch):
    catalog = load_catalog(CATALOGS / "paper_five.yaml")
    facts, rng = decided(catalog), np.random.default_rng(0)
    rows = [decision(i, requirements=tuple(rng.uniform(0, 0.4, 4)), team="ab"[i % 3 == 0],
                     **facts) for i in range(60)]  # fmt: skip
    rows += [decision(60 + i, team="a", status="refused", **facts) for i in range(5)]
    traffic(tmp_path / "decisions", rows, {})
    monkeypatch.setenv("HYDRA_LOG", str(tmp_path / "decisions"))
    app = open_page(PAGE, **{"live.view": "Shadow", "live.time": "All"})
    same = next(one for one in app.metric if one.label == "Same model chosen")
    assert "On 60 decisions" in same.help
    assert any("5 requests refused" in one.value for one in app.caption)
    app.selectbox(key="live.team").set_value("b").run()
    same = next(one for one in app.metric if one.label == "Same model chosen")
    assert "On 20 decisions" in same.help
    assert not any("refused" in one.value for one in app.caption)


def test_a_stopped_canary_says_why_and_can_be_resumed_and_ended(open_page, log):
    record = CanaryRecord("0" * 64, "candidate", 0.1, "2026-11-22T12:00:00+00:00", "it failed")
    begin_canary(log, record)
    app = open_page(CANARY)
    assert "it failed" in app.error[0].value
    app.button(key="canary.play_arrow").click().run()
    assert [one.stopped for one in canaries(log)] == [""]
    app.button(key="canary.stop").click().run()
    assert "stopped by hand" in app.error[0].value
    app.button(key="canary.close").click().run()
    assert ordered_canary(log) == CanaryOrder("")
    assert app.button(key="canary.begin")


def test_a_canary_is_begun_with_what_is_on_screen(open_page, log):
    app = open_page(CANARY)
    app.selectbox(key="canary.catalog").set_value("paper_eight")
    app.number_input(key="canary.share").set_value(20.0)
    app.number_input(key="canary.limit").set_value(0.0).run()
    app.button(key="canary.begin").click().run()
    assert not app.error
    order = CanaryOrder(str(CATALOGS / "paper_eight.yaml"), 0.2, 0.0)
    assert ordered_canary(log) == order
    assert "no service has begun it yet" in app.info[0].value
    refuse_order(log, order, "gpt-x has no upstream")
    app.run()
    assert "gpt\\-x has no upstream" in app.error[0].value
    app.button(key="canary.undo").click().run()
    assert ordered_canary(log) == CanaryOrder("")


def test_a_canary_of_a_tiny_share_can_be_changed(open_page, log):
    """Its share and limit lie outside what the form offers to a new one."""
    catalog = load_catalog(CATALOGS / "paper_eight.yaml")
    order_canary(log, CanaryOrder(str(CATALOGS / "paper_eight.yaml"), 0.0005, 2000.0))
    began = "2026-11-22T12:00:00+00:00"
    begin_canary(log, CanaryRecord(catalog.digest, "candidate", 0.0005, began, limit=2000.0))
    app = open_page(CANARY)
    assert not app.exception
    assert app.number_input(key="canary.new.share").value == pytest.approx(0.05)
    assert app.number_input(key="canary.new.limit").value == 2000.0


def test_a_share_that_makes_no_sense_begins_nothing(open_page, log):
    app = open_page(CANARY)
    app.number_input(key="canary.limit").set_value(0.5).run()
    app.button(key="canary.begin").click().run()
    assert "limit: must be 0 or at least 1, got 0" in app.error[0].value.replace("\\", "")
    assert ordered_canary(log) is None


def test_an_editor_sees_the_canary_and_cannot_begin_it(open_page, log, workspace):
    (workspace / "roles.yaml").write_text("default: editor\n")
    app = open_page(CANARY)
    assert app.button(key="canary.begin").disabled


def test_without_a_log_there_is_nothing_to_make_a_set_of(open_page):
    app = open_page("pages/operate/live.py?part=log")
    assert not app.exception
    assert any("hydra-router serve" in one.value for one in app.markdown)


def test_every_form_says_how_it_is_asked_before_there_is_any_log(open_page):
    from hydra_core.console.live.traffic import ADDRESS, ways

    app = open_page(PAGE)
    assert not app.exception
    names = app.segmented_control(key="connect.form").options
    known = ways(ADDRESS, ("minimax-m3", "claude-fable-5"))  # the ends of the first catalog
    assert names == list(known)
    for name in names:
        app = open_page(PAGE, **{"connect.form": name})
        assert [one.value for one in app.code] == [known[name].curl, known[name].python]
    app.text_input(key="connect.address").set_value("https://router.example/").run()
    assert app.code[0].value.startswith("curl -sf https://router.example/v1/systemone ")


def test_how_to_connect_stays_in_view_beside_a_log(open_page, log):
    app = open_page(PAGE, **{"live.view": "Connect", "connect.form": "Messages"})
    assert not app.exception
    assert "does not speak the form of this request" in "".join(one.value for one in app.markdown)
    assert "/v1/messages" in app.code[0].value


def test_a_bill_that_nobody_knows_is_no_zero(open_page, tmp_path, monkeypatch):
    facts = decided(load_catalog(CATALOGS / "paper_five.yaml"))
    rows = [decision(i, cost_usd=None, usage="unknown", **facts) for i in range(3)]
    traffic(tmp_path / "decisions", rows)
    monkeypatch.setenv("HYDRA_LOG", str(tmp_path / "decisions"))
    app = open_page(PAGE, **{"live.time": "All"})
    cost = next(one for one in app.metric if one.label == "Cost")
    assert (cost.value, cost.delta) == ("–", "no tokens yet")


def test_a_canary_against_a_free_main_revision_has_no_change_in_percent(tmp_path):
    rows = [decision(i, arm=("main", "canary")[i % 2], cost_usd=0.002 * (i % 2),
                     catalog_digest=("old", "new")[i % 2]) for i in range(200)]  # fmt: skip
    found = {row[0]: row[-1] for row in canary_rows(canary_report(traffic(tmp_path, rows), "new"))}
    assert found["Cost of a request"] == "no % of 0"
    assert "nan" not in " ".join(map(str, found.values()))
