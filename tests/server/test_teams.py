"""Teams through the service: their models, knob and budget, exact over workers, kept over loss."""

import concurrent.futures
import os
import signal
import subprocess
import sys

import httpx
import pytest
import yaml

from hydra_core.base.types import Rule, TeamBudget
from hydra_core.decision_log.reading import read_log
from hydra_core.server.callers import new_token
from hydra_core.server.teams import percent_used
from hydra_core.store.roles import Role
from tests.console.consoles import free_port
from tests.server.conftest import CATALOG, EASY, HARD, asked, upstreams_text, wait_for
from tests.server.fake_upstream import USAGE
from tests.server.test_workers import redis_url, wait_for_server  # noqa: F401

CHEAP = "gpt-5.4-mini"


def served(tmp_path, **teams):
    """Settings of a service with these teams, and the headers of a caller of each."""
    found = yaml.safe_load(CATALOG.read_text())
    found["policy"]["teams"] = teams
    path = tmp_path / "teams.yaml"
    path.write_text(yaml.safe_dump(found, sort_keys=False))
    tokens, lines = {}, []
    for team in (*teams, ""):
        tokens[team], line = new_token(f"caller of {team}", Role.EDITOR, team)
        lines.append(line)
    (tmp_path / "tokens.yaml").write_text("tokens:\n" + "\n".join(lines) + "\n")
    headers = {team: {"authorization": f"Bearer {token}"} for team, token in tokens.items()}
    settings = {"catalog": path, "tokens": str(tmp_path / "tokens.yaml")}
    return {**settings, "log": str(tmp_path / "log")}, headers


def price_of(model):
    spec = next(m for m in yaml.safe_load(CATALOG.read_text())["models"] if m["id"] == model)
    cached = USAGE["prompt_tokens_details"]["cached_tokens"]
    read = spec.get("cached_input_usd_per_mtok", spec["input_usd_per_mtok"])
    fresh = (USAGE["prompt_tokens"] - cached) * spec["input_usd_per_mtok"]
    written = USAGE["completion_tokens"] * spec["output_usd_per_mtok"]
    return 1e-6 * (fresh + cached * read + written)


def test_a_team_has_its_own_models_and_knob_and_the_log_says_so(make, tmp_path):
    settings, headers = served(tmp_path, search={"models": [CHEAP], "tau": 9.0})
    client = make(**settings)
    body = asked(HARD)
    free = client.post("/v1/decision", json=body, headers=headers[""]).json()
    bound = client.post("/v1/decision", json=body, headers=headers["search"]).json()
    assert free["model"] != CHEAP
    assert (bound["model"], bound["knob"], bound["fallbacks"]) == (CHEAP, 9.0, [])
    named = {**body, "model": free["model"]}
    assert client.post("/v1/decision", json=named, headers=headers["search"]).status_code == 400
    client.close()
    wait_for(lambda: len(read_log(tmp_path / "log").decisions) == 3)
    rows = read_log(tmp_path / "log").decisions
    assert set(rows["team"]) == {"", "search"}
    mine = rows[rows["team"] == "search"]
    assert mine["status"].tolist() == ["decided", "refused"]
    assert mine["knob"].tolist() == [9.0, 9.0]


def test_the_curve_is_the_stated_one():
    budget = TeamBudget(10.0, falls_from=0.5, cheapest_from=0.9, least=0.2)
    shares = (0.0, 0.5, 0.7, 0.9, 2.0)
    assert [budget.factor(s) for s in shares] == pytest.approx([1, 1, 0.6, 0.2, 0.2])
    assert budget.knob(Rule.VALUE, 0.02, 0.7) == pytest.approx(0.012)
    assert budget.knob(Rule.SHORTFALL, 0.3, 0.7) == pytest.approx(0.5)


def test_routes_get_cheaper_then_cheapest_then_the_budget_is_spent(make, tmp_path):
    cost = price_of("gpt-5.4")
    budget = {"usd": 40 * cost, "per": "day", "falls_from": 0.2, "cheapest_from": 0.6}
    settings, headers = served(tmp_path, search={"budget": budget})
    client = make(**settings)

    def ask():
        body = asked(HARD, max_tokens=20)
        return client.post("/v1/chat/completions", json=body, headers=headers["search"])

    answers = [ask()]
    while answers[-1].status_code == 200 and len(answers) < 3000:
        answers.append(ask())
    models = [one.headers.get("x-hydra-model") for one in answers[:-1]]
    assert models[0] != CHEAP
    assert models[-1] == CHEAP
    assert any("of its budget: tau is" in one.headers["x-hydra-reason"] for one in answers[:-1])
    refused = answers[-1]
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    assert "of the budget of" in refused.json()["error"]["message"]
    spent = sum(map(price_of, models))
    assert 0.9 * budget["usd"] < spent <= budget["usd"] + cost
    assert client.post("/v1/decision", json=asked(EASY), headers=headers[""]).status_code == 200
    again = make(**settings).post("/v1/chat/completions", json=asked(), headers=headers["search"])
    assert again.status_code == 429  # kept over a restart


def test_a_request_that_costs_more_than_is_left_says_so_and_a_later_one_goes_on(make, tmp_path):
    budget = {"usd": 0.5, "cheapest_from": 1.0}
    settings, headers = served(tmp_path, search={"budget": budget})
    client = make(**settings)

    def ask(**changes):
        body = asked(HARD, **changes)
        return client.post("/v1/chat/completions", json=body, headers=headers["search"])

    refused = ask(max_tokens=150_000)  # $0.675 of the cheapest model's answer
    assert refused.status_code == 429
    said = refused.json()["error"]["message"]
    assert "may cost $0.675, more than is left of the budget of $0.5 that team search has" in said
    assert ask(max_tokens=15_000, n=10).json()["error"]["message"] == said
    assert ask(max_tokens=20).status_code == 200


def test_a_team_is_shown_the_models_that_it_may_ask_for(make, tmp_path):
    settings, headers = served(tmp_path, search={"models": [CHEAP, "gpt-5.4"]})
    token, line = new_token("eu", Role.VIEWER, require=["eu"])
    with open(settings["tokens"], "a") as stream:
        stream.write(line + "\n")
    headers["eu"] = {"authorization": f"Bearer {token}"}
    client = make(**settings)

    def listed(team):
        data = client.get("/v1/models", headers=headers[team]).json()["data"]
        return [one["id"] for one in data]

    assert listed("search") == ["auto", CHEAP, "gpt-5.4"]
    names = ["gpt-5.4", "claude-sonnet-4.6", "gpt-9"]
    found = [client.get(f"/v1/models/{name}", headers=headers["search"]) for name in names]
    assert [one.status_code for one in found] == [200, 404, 404]
    assert found[1].text.replace(names[1], names[2]) == found[2].text
    assert listed("eu") == ["auto"]
    assert len(listed("")) == 6


@pytest.mark.parametrize("spent", [0.0, 0.9], ids=["a long answer", "nearly used"])
def test_who_gets_the_cheapest_model_for_a_budget_is_told_so(make, tmp_path, budgets, spent):
    budget = {"usd": 0.5, "least": 1}
    settings, headers = served(tmp_path, search={"budget": budget})
    ledger, whole = budgets(tmp_path / "log"), TeamBudget(0.5)
    ledger.settle(ledger.take("search", whole, 0.0), spent * 0.5)
    body = asked(HARD, max_tokens=20 if spent else 50_000)
    answer = make(**settings).post("/v1/chat/completions", json=body, headers=headers["search"])
    assert answer.headers["x-hydra-model"] == CHEAP
    assert answer.headers["x-hydra-reason"] == (
        "Team search has used 90 % of its budget of $0.5 a month: only the cheapest model is left."
        if spent
        else "Another model may cost more than is free of team search's budget of $0.5 a month: "
        "only the cheapest model is left."
    )


def test_a_request_that_the_upstream_calls_wrong_costs_its_team_nothing(
    make, tmp_path, upstream, budgets
):
    budget = {"usd": 10.0}
    settings, headers = served(tmp_path, search={"budget": budget})
    client, upstream.behaviour["*"] = make(**settings), "422"
    body = asked(HARD, max_tokens=50_000)
    answer = client.post("/v1/chat/completions", json=body, headers=headers["search"])
    assert answer.status_code == 422
    ledger = budgets(tmp_path / "log")
    wait_for(lambda: ledger.used("search", TeamBudget(10.0)) == 0.0)


def test_a_small_budget_is_written_out(make, tmp_path):
    settings, headers = served(tmp_path, search={"budget": {"usd": 0.00002}})
    answer = make(**settings).post(
        "/v1/chat/completions", json=asked(EASY), headers=headers["search"]
    )
    assert answer.status_code == 429
    assert "of the budget of $0.00002 that" in answer.json()["error"]["message"]


def test_when_spent_the_cheapest_model_may_go_on(make, tmp_path):
    budget = {"usd": 1e-9, "when_spent": "cheapest"}
    settings, headers = served(tmp_path, search={"budget": budget})
    client = make(**settings)
    for _ in range(3):
        answer = client.post("/v1/chat/completions", json=asked(HARD), headers=headers["search"])
        assert answer.headers["x-hydra-model"] == CHEAP


def test_when_spent_a_dearer_model_by_its_name_is_refused(make, tmp_path):
    """Whoever names a model goes past the rule, and must not go past the budget."""
    budget = {"usd": 1e-9, "when_spent": "cheapest"}
    settings, headers = served(tmp_path, search={"budget": budget})
    client = make(**settings)

    def ask(model):
        body = {**asked(HARD), "model": model}
        return client.post("/v1/chat/completions", json=body, headers=headers["search"])

    assert ask("auto").status_code == ask(CHEAP).status_code == 200
    refused = ask("gpt-5.4")
    assert refused.status_code == 429
    assert f"ask for 'auto' or '{CHEAP}'" in refused.json()["error"]["message"]


def test_budgets_need_a_log_and_teams_need_tokens(make, tmp_path):
    settings, _ = served(tmp_path, search={"budget": {"usd": 1.0}})
    with pytest.raises(Exception, match="need --log DIR"):
        make(**{**settings, "log": ""})
    with pytest.raises(Exception, match="tokens carry the team"):
        make(**{**settings, "tokens": ""})


def test_the_ledger_is_for_its_owner_alone(budgets, tmp_path):
    ledger = budgets(tmp_path)
    ledger.settle(ledger.take("build", TeamBudget(usd=1), 0.0, most=False), 0.1)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes


def test_what_was_never_settled_counts_as_reserved(budgets, tmp_path):
    from datetime import UTC, datetime, timedelta

    now = [datetime(2026, 11, 25, tzinfo=UTC)]
    ledger, budget = budgets(tmp_path, now=lambda: now[0]), TeamBudget(10.0)
    assert ledger.take("a", budget, 4.0)
    now[0] += timedelta(hours=1)
    other = budgets(tmp_path, now=lambda: now[0])
    held = other.take("a", budget, 1.0)
    assert held is not None
    assert held.used == pytest.approx(0.4)
    other.settle(held, 0.5)
    assert ledger.used("a", budget) == pytest.approx(0.45)
    assert ledger.take("a", budget, 5.6) is None
    now[0] = datetime(2026, 12, 1, tzinfo=UTC)
    assert ledger.used("a", budget) == 0.0


def test_two_hosts_share_a_budget_and_the_loss_of_redis_forgets_nothing(
    budgets,
    tmp_path,
    redis_url,  # noqa: F811
):
    from redis import Redis

    client, budget = Redis.from_url(redis_url), TeamBudget(10.0)
    one, two = (budgets(tmp_path / name, client) for name in "ab")
    for ledger in (one, two):
        held = ledger.take("a", budget, 3.0)
        ledger.settle(held, 2.0)
    assert one.take("a", budget, 6.5) is None
    client.flushall()  # what a kill leaves of a Redis that keeps nothing
    assert two.used("a", budget) == pytest.approx(0.2)
    assert one.used("a", budget) == pytest.approx(0.4)
    assert two.take("a", budget, 6.5) is None


@pytest.mark.slow
def test_four_workers_never_go_over_by_more_than_a_request_each(
    budgets,
    tmp_path,
    upstream,
    redis_url,  # noqa: F811
):
    """2,000 requests; Redis is killed half-way and nothing that was told is lost."""
    budget = {"usd": 1000 * price_of(CHEAP), "per": "month", "falls_from": 0.01, "least": 0.01}
    settings, headers = served(tmp_path, search={"budget": budget, "models": [CHEAP]})
    (tmp_path / "u.yaml").write_text(upstreams_text(upstream.url, connect_s=60, first_byte_s=60))
    port = free_port()
    words = ["serve", "--workers", "4", "--port", str(port), "--redis", redis_url, "--queue", "500"]
    words += ["--queue-wait", "60", "--upstreams", str(tmp_path / "u.yaml")]
    for name in ("catalog", "tokens", "log"):
        words += [f"--{name}", str(settings[name])]
    command, environ = [sys.executable, "-m", "hydra_core", *words], {**os.environ, "FAKE_KEY": "k"}
    process = subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for_server(url, process)
        with httpx.Client(timeout=120, headers=headers["search"]) as client:

            def ask(i):
                if i == 600:
                    _kill_redis(redis_url)
                body = asked(EASY, max_tokens=20)
                return client.post(f"{url}/v1/chat/completions", json=body).status_code

            with concurrent.futures.ThreadPoolExecutor(8) as threads:
                codes = list(threads.map(ask, range(2_000)))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=120)
    assert set(codes) == {200, 429}
    spent = codes.count(200) * price_of(CHEAP)
    assert spent <= budget["usd"] + 4 * price_of(CHEAP)
    assert spent >= 0.97 * budget["usd"]
    ledger = budgets(tmp_path / "log")
    assert ledger.used("search", TeamBudget(budget["usd"])) * budget["usd"] == pytest.approx(spent)


def _kill_redis(url):
    from redis import Redis

    client = Redis.from_url(url)
    os.kill(client.info()["process_id"], signal.SIGKILL)


@pytest.mark.parametrize(("used", "said"), [(0.58, 58), (0.9999, 99), (1.0, 100), (1.017, 101)])
def test_a_budget_of_which_something_is_left_is_not_used_up(used, said):
    assert percent_used(used) == said
