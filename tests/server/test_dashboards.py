"""The written alert rules and dashboard are of the metrics that the service has."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from deploy import write_dashboards as made
from hydra_core.server.telemetry import _STATUSES


def test_the_written_files_are_those_of_now():
    for path, text in made.files().items():
        assert path.read_text(encoding="utf-8") == text, "python -m deploy.write_dashboards"


def test_every_metric_has_a_panel_and_every_expression_a_metric():
    board = json.loads(made.dashboard_text())
    shown = " ".join(t["expr"] for panel in board["panels"] for t in panel["targets"])
    rules = yaml.safe_load(made.rules_text())["groups"][0]["rules"]
    said = f"{shown} " + " ".join(rule["expr"] for rule in rules)
    known = set(made.metric_names())
    named = {one.removesuffix("_bucket") for one in re.findall(r"hydra_\w+", said)}
    assert named == known
    assert {one.removesuffix("_bucket") for one in re.findall(r"hydra_\w+", shown)} == known


def test_a_metric_that_the_service_lacks_is_refused():
    with pytest.raises(KeyError, match="no metric hydra_reqests_total"):
        made.m("reqests_total")


def test_the_alert_of_failures_is_of_all_requests_that_were_passed_on():
    (rule,) = (one for one in made.alerts() if one.name == "HydraRequestsFail")
    statuses = rule.expr.partition("=~")[2].split('"')[1].split("|")
    assert set(statuses) == set(_STATUSES) - {"decided", "refused"}


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_prometheus_takes_the_rules_and_they_fire(tmp_path):
    command = ["promtool", "check", "config", str(made.FOLDER / "prometheus" / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answered = 'hydra_requests_total{model="well",status="answered"}'
    failures = [
        f'hydra_upstream_failures_total{{kind="timeout",model="{n}"}}' for n in ("ill", "well")
    ]
    series = [
        {"series": one, "values": "0+1x20"}
        for one in (answered, *failures, "hydra_build_info", 'hydra_requests_total{status="x"}')
    ]
    series.append({"series": 'hydra_team_budget_used{team="build"}', "values": "0.85x20"})
    down = "ill does not answer; other models are asked."
    budget = "Team build has used 80 % of its budget."
    alerts = [
        {
            "labels": {"severity": "critical", "model": "ill"},
            "summary": down,
            "name": "UpstreamDown",
        },
        {"labels": {"severity": "warning", "team": "build"}, "summary": budget, "name": "Budget80"},
    ]
    expected = [
        {
            "eval_time": "15m", "alertname": f"Hydra{one['name']}",
            "exp_alerts": [{"exp_labels": one["labels"],
                            "exp_annotations": {"summary": one["summary"]}}],
        }
        for one in alerts
    ]  # fmt: skip
    expected.append({"eval_time": "15m", "alertname": "HydraAbsent", "exp_alerts": []})
    rules = str(made.FOLDER / "prometheus" / "alerts.yaml")
    case = {"interval": "1m", "input_series": series, "alert_rule_test": expected}
    path = tmp_path / "case.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [rules], "tests": [case]}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
