"""Flight from app.py: what it says is what the core says."""

import numpy as np

from hydra_core.console.live import cache
from hydra_core.live.flight.analysis import analyse
from tests.live.flight.test_teams import SETTINGS, requests
from tests.pages.store_steps import shown

PAGE = "pages/operate/live.py?part=experiments"


def test_the_sample_flight_opens_with_its_verdict(open_page):
    app = open_page(PAGE)
    assert not app.exception
    flight, rows = cache.opened(cache.flights()[0])
    said = [one.verdict() for one in analyse(rows, flight).results]
    assert f"{said.count('better')} metrics better" in app.success[0].value
    assert said.count("open") == 1
    assert "One guardrail is undecided; collect more users." in shown(app)
    assert app.metric[0].value == "48,000"


def test_a_flight_that_is_not_valid_says_what_to_mend(open_page, workspace):
    folder = workspace / "flights" / "broken"
    folder.mkdir(parents=True)
    (folder / "flight.yaml").write_text("schema: hydra.flight/v1\n")
    app = open_page(PAGE, **{"flight.chosen": "broken"})
    assert not app.exception
    assert "arms" in app.error[0].value


def test_the_address_restores_how_a_flight_is_read(open_page):
    link = {"flight.reading": "Once, at the end", "flight.view": "Plan", "flight.adjust": "false"}
    app = open_page(PAGE, **link)
    assert app.segmented_control(key="flight.reading").value == "fixed"
    assert app.segmented_control(key="flight.view").value == "Plan"
    assert app.toggle(key="flight.adjust").value is False


def test_the_address_restores_the_metric_followed_over_time(open_page):
    metrics = open_page(PAGE, **{"flight.view": "Over time"}).selectbox(key="flight.metric").options
    link = {"flight.view": "Over time", "flight.metric": metrics[-1]}
    app = open_page(PAGE, **link)
    assert app.selectbox(key="flight.metric").value == metrics[-1]
    strange = open_page(PAGE, **{**link, "flight.metric": "rubbish"})
    assert not strange.exception
    assert strange.selectbox(key="flight.metric").value == metrics[0]


def test_teams_are_compared_where_the_flight_names_them(open_page, workspace):
    folder = workspace / "flights" / "split"
    folder.mkdir(parents=True)
    (folder / "flight.yaml").write_text(SETTINGS)
    requests(np.random.default_rng(1), 100).to_csv(folder / "log.csv", index=False)
    app = open_page(PAGE, **{"flight.chosen": "split", "flight.view": "Teams"})
    assert not app.exception
    frame = app.dataframe[0].value
    assert frame["team"].tolist() == ["build", "chat", "search"]
    assert frame["control"].tolist() == [50, 50, 50]
    assert frame["guardrails"].str.match("1 (kept|undecided)").all()
    assert "hold in all 3 compared teams together with 95 %" in shown(app)


def test_a_change_from_nothing_has_no_percentage(open_page, workspace):
    folder = workspace / "flights" / "none"
    folder.mkdir(parents=True)
    (folder / "flight.yaml").write_text(SETTINGS)
    frame = requests(np.random.default_rng(1), 100)
    frame.loc[frame["arm"] == "old", "resolved"] = 0
    frame.to_csv(folder / "log.csv", index=False)
    app = open_page(PAGE, **{"flight.chosen": "none"})
    assert not app.exception
    told = app.dataframe[0].value.set_index("metric")["interval"]
    assert told["resolved"] == "no % of 0"
    assert "%" in told["cost per request"]


def test_a_flight_without_teams_says_how_to_name_them(open_page):
    app = open_page(PAGE, **{"flight.view": "Teams"})
    assert app.code[0].value == "team: team"
