"""Alert rules for Prometheus and the Grafana dashboard, written from the metrics' own names.

    python -m deploy.write_dashboards

Every expression is built from a metric that the service really has, so a renamed metric stops this
command, and every metric has its panel. A test compares the written files with what this makes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from hydra_core.server.telemetry import Metrics

FOLDER = Path(__file__).parent
_HEAD = "# Written by `python -m deploy.write_dashboards`: change that, not this file.\n"
_SOURCE = {"type": "prometheus", "uid": "prometheus"}


def metric_names() -> dict[str, str]:
    """Every metric of the service with its kind: counter, gauge or histogram."""
    text = Metrics(["model"]).text(problem=False).decode()
    families = text_string_to_metric_families(text)
    known = {one.name + "_total" * (one.type == "counter"): one.type for one in families}
    return {name: kind for name, kind in known.items() if not name.endswith("_created")}


_KNOWN = metric_names()


def m(name: str) -> str:
    """A metric's full name.

    Raises:
        KeyError: The service has no such metric.
    """
    full = f"hydra_{name}"
    if full.removesuffix("_bucket") not in _KNOWN:
        raise KeyError(f"the service has no metric {full}; it has {', '.join(_KNOWN)}")
    return full


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule of Prometheus."""

    name: str
    expr: str
    summary: str
    severity: str = "warning"
    wait: str = "0m"


def alerts() -> list[Alert]:
    """What somebody should look at."""
    requests, failures = m("requests_total"), m("upstream_failures_total")
    by_model = "sum by (model)"
    passed_on = "answered|rejected|failed|cancelled"  # what Live's share is of
    label = "{{ $labels.model }}"
    slow = f"histogram_quantile(0.99, sum by (le) (rate({m('decide_seconds_bucket')}[10m])))"
    return [
        Alert("HydraCanaryStopped", f"{m('canary_stopped')} == 1",
              "The canary was worse than the main revision and gets no traffic."),
        Alert("HydraPromiseNotCovered", f"{m('promise_not_covered')} == 1",
              "The catalog's promise about quality no longer covers its traffic."),
        Alert("HydraTrafficShifted", f"max by (window) ({m('traffic_shifted')}) == 1",
              "Requests of the last {{ $labels.window }} ask for something else than before."),
        Alert("HydraCatalogProblem", f"{m('catalog_problem')} == 1",
              "The newest revision is not valid; the last good one serves.", wait="5m"),
        Alert("HydraUpstreamDown",
              f"{by_model} (increase({failures}[10m])) >= 5 unless "
              f'{by_model} (increase({requests}{{status="answered"}}[10m])) > 0',
              f"{label} does not answer; other models are asked.", "critical"),
        Alert("HydraRequestsFail",
              f'sum(rate({requests}{{status="failed"}}[10m])) > '
              f'0.05 * sum(rate({requests}{{status=~"{passed_on}"}}[10m]))',
              "More than 5 % of the requests get no answer.", "critical", "5m"),
        Alert("HydraUnknownUsage",
              f"{by_model} (increase({m('usage_uncounted_total')}"
              '{kind="unknown"}[1h])) > 0',
              f"{label} answers without counting its tokens: what it costs is not known."),
        Alert("HydraBudget80", f"{m('team_budget_used')} >= 0.8 < 1",
              "Team {{ $labels.team }} has used 80 % of its budget."),
        Alert("HydraBudgetSpent", f"{m('team_budget_used')} >= 1",
              "Team {{ $labels.team }} has used its budget.", "critical"),
        Alert("HydraOverloaded",
              f"sum(increase({m('queue_dropped_total')}" '{reason=~"full|late"}[5m])) > 0',
              "Requests are refused because too many wait to be decided."),
        Alert("HydraDecisionsSlow", f"{slow} > 0.25",
              "One decision in a hundred takes over 0.25 s.", wait="10m"),
        Alert("HydraLogGivenUp", f"{m('log_given_up')} > 0",
              "The decision log has lost records: is its disk full?", "critical"),
        Alert("HydraAlertsLost", f'increase({m("alerts_total")}{{end="lost"}}[1h]) > 0',
              "Alerts did not reach the webhook."),
        Alert("HydraAbsent", f"absent({m('build_info')})", "No router can be scraped.", "critical",
              "2m"),
    ]  # fmt: skip


def rules_text() -> str:
    """The file of rules."""
    rules = [
        {
            "alert": one.name, "expr": one.expr, "for": one.wait,
            "labels": {"severity": one.severity}, "annotations": {"summary": one.summary},
        }
        for one in alerts()
    ]  # fmt: skip
    groups = {"groups": [{"name": "hydra", "rules": rules}]}
    return _HEAD + yaml.safe_dump(groups, sort_keys=False, width=100, allow_unicode=True)


#: Title, unit, and for each line its expression and legend, by what an operator asks first.
def panels() -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Every metric once at least."""

    def rate(name: str, *labels: str) -> str:
        return f"sum by ({', '.join(labels)}) (rate({m(name)}[$__rate_interval]))"

    def quantiles(name: str) -> list[tuple[str, str]]:
        grouped = f"sum by (le) (rate({m(name)}_bucket[$__rate_interval]))"
        return [(f"histogram_quantile({q}, {grouped})", f"p{round(100 * q)}") for q in (0.5, 0.99)]

    def each(name: str, legend: str = "") -> list[tuple[str, str]]:
        return [(m(name), legend or name.replace("_", " "))]

    return [
        ("Requests by model", "reqps", [(rate("requests_total", "model"), "{{model}}")]),
        ("Requests by end", "reqps", [(rate("requests_total", "status"), "{{status}}")]),
        ("Cost", "currencyUSD", [
            (f"sum by (model) (increase({m('cost_usd_total')}[1h]))", "{{model}}, an hour")]),
        ("Tokens", "short", [(rate("tokens_total", "kind"), "{{kind}}")]),
        ("Time to a decision", "s", quantiles("decide_seconds")),
        ("Time to the first byte", "s", quantiles("first_byte_seconds")),
        ("Decisions by cause", "reqps", [(rate("decisions_total", "cause"), "{{cause}}")]),
        ("Models ruled out", "reqps", [(rate("vetoes_total", "reason"), "{{reason}}")]),
        ("Attempts without an answer", "reqps", [
            (rate("upstream_failures_total", "model", "kind"), "{{model}}: {{kind}}")]),
        ("Statuses of upstreams", "reqps", [
            (rate("upstream_responses_total", "code"), "{{code}}")]),
        ("Answers without counted tokens", "short", [
            (rate("usage_uncounted_total", "model", "kind"), "{{model}}: {{kind}}")]),
        ("About what those cost", "currencyUSD", [
            (f"sum by (kind) (increase({m('usage_uncounted_usd_total')}[1h]))",
             "{{kind}}, an hour")]),
        ("Waiting for a decision", "short", [
            *each("queue_depth"), (rate("queue_dropped_total", "reason"), "dropped: {{reason}}")]),
        ("Time in the queue", "s", quantiles("queue_wait_seconds")),
        ("Canary and main", "reqps", [
            (rate("canary_requests_total", "arm", "status"), "{{arm}}: {{status}}"),
            (rate("canary_first_failures_total", "arm"), "{{arm}}: first attempt failed")]),
        ("Budgets of teams", "percentunit", each("team_budget_used", "{{team}}")),
        ("Traffic of another kind", "short", [
            *each("traffic_psi", "PSI, {{window}}"),
            *each("traffic_shifted", "shifted, {{window}}")]),
        ("Should be 0", "short", [
            *each("catalog_problem"), *each("canary_stopped"), *each("promise_not_covered"),
            *each("log_given_up")]),
        ("Alerts to the webhook", "short", [(f"sum by (end) ({m('alerts_total')})", "{{end}}")]),
        ("What runs", "short", [
            *each("build_info", "version {{version}}"),
            *each("revision_info", "{{arm}}: {{catalog}} {{revision}}")]),
    ]  # fmt: skip


def dashboard_text() -> str:
    """The dashboard as Grafana imports it."""
    found: list[dict[str, Any]] = []
    for number, (title, unit, lines) in enumerate(panels()):
        targets = [
            {"datasource": _SOURCE, "expr": expr, "legendFormat": legend, "refId": chr(65 + i)}
            for i, (expr, legend) in enumerate(lines)
        ]
        place = {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)}
        found.append(
            {
                "id": number + 1, "type": "timeseries", "title": title, "gridPos": place,
                "datasource": _SOURCE, "targets": targets,
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            }
        )  # fmt: skip
    board = {
        "uid": "hydra", "title": "HyDRA router", "schemaVersion": 39, "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"}, "tags": ["hydra"], "panels": found,
    }  # fmt: skip
    return json.dumps(board, indent=1, ensure_ascii=False) + "\n"


def files() -> dict[Path, str]:
    """Path -> text of both files."""
    return {
        FOLDER / "prometheus" / "alerts.yaml": rules_text(),
        FOLDER / "grafana" / "hydra.json": dashboard_text(),
    }


def main() -> None:
    """Write both files."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
