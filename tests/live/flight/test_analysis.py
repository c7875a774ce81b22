"""A whole flight: settings, tables, verdicts, looks, retention, and what is refused."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import FlightError
from hydra_core.cli.main import main
from hydra_core.live.flight.analysis import analyse, looks, plans
from hydra_core.live.flight.effects import Reading
from hydra_core.live.flight.files import by_unit, load_flight, parse_flight, read_rows
from sample_data.paper_flight import EFFECTS

SAMPLE = Path(__file__).parents[3] / "sample_data" / "paper_flight" / "flight.yaml"
REQUESTS = """
schema: hydra.flight/v1
name: small
level: requests
unit: user
arm: arm
arms: {old: 0.5, new: 0.5}
day: day
retention: [1]
metrics:
  - {name: cost per request, numerator: usd, denominator: rows, better: lower}
"""


def table(text, name="t.csv"):
    file = io.BytesIO(text.encode())
    file.name = name
    return file


@pytest.fixture(scope="module")
def sample():
    flight = load_flight(SAMPLE)
    return flight, read_rows(SAMPLE.parent / flight.table, flight)


def test_the_sample_flight_shows_the_papers_effects(sample):
    report = analyse(sample[1], sample[0])
    found = {one.metric.name: one for one in report.results}
    expected = {
        "Median time to complete": EFFECTS["ttc"],
        "Time to first token": EFFECTS["ttft"],
        "Errors per turn": EFFECTS["errors"],
        "Turns per user": EFFECTS["turns"],
        "Cost per request": EFFECTS["cost"],
    }
    for name, change in expected.items():
        assert found[name].effect.relative_lo < change < found[name].effect.relative_hi
        assert found[name].verdict() == "better"
    for days in (2, 3, 4, 5):
        assert found[f"Back after {days} days"].p_holm > 0.45
    assert 0.07 < report.savings["hydra"].value < 0.20


def test_the_last_look_is_the_report(sample):
    rows, flight = sample[1], sample[0]
    turns = next(one for one in analyse(rows, flight).results if "Turns" in one.metric.name)
    path = looks(rows, flight, turns.metric, "hydra", reading=Reading.ALWAYS, adjust=True)
    assert len(path.relative) == len(rows.days) == 14
    assert path.relative[-1] == pytest.approx(float(turns.effect.relative))
    assert (np.diff(path.units) > 0).all()


def test_requests_are_summed_by_user_and_day():
    flight = parse_flight(REQUESTS)
    text = "user,arm,day,usd\na,old,2026-01-01,1\na,old,2026-01-02,3\nb,new,2026-01-02,2\n"
    rows = read_rows(table(text), flight)
    units = by_unit(rows, flight)
    assert units.values["usd"].tolist() == [4.0, 2.0]
    assert units.values["rows"].tolist() == [2.0, 1.0]
    first_day = by_unit(rows, flight, until=0)
    assert first_day.values["usd"].tolist() == [1.0]
    back = units.values["back after 1 days"]
    assert back[0] == 1.0
    assert np.isnan(back[1])  # its next day has not come


def test_three_arms_are_each_compared_with_the_first():
    rng = np.random.default_rng(1)
    rows = [f"u{i},{'abc'[i % 3]},{rng.normal(10 + (i % 3), 1):.4f}" for i in range(600)]
    flight = parse_flight("schema: hydra.flight/v1\nname: x\nunit: u\narm: arm\n"
                          "arms: {a: 0.4, b: 0.3, c: 0.3}\n"
                          "metrics: [{name: m, numerator: y, better: higher}]\n")  # fmt: skip
    report = analyse(read_rows(table("u,arm,y\n" + "\n".join(rows)), flight), flight)
    assert [one.arm for one in report.results] == ["b", "c"]
    assert [one.verdict() for one in report.results] == ["better", "better"]
    assert report.ratio.alarm.value == "yellow"  # a third each, not 40 %


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user,arm,day,usd\na,old,2026-01-01,x\n", "usd is not a number"),
        ("user,arm,day,usd\na,older,2026-01-01,1\n", "arm is none of old, new"),
        ("user,arm,day,usd\na,old,someday,1\n", "day is no day"),
        ("user,arm,day,usd\na,old,inf,1\nb,new,inf,1\n", "day is no day"),
        ("user,arm,usd\na,old,1\n", "column 'day': is missing"),
        ("user,arm,day,usd\na,old,1,1\na,new,1,1\n", "1 units are in more than one arm"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(text, message):
    with pytest.raises(FlightError, match=message):
        read_rows(table(text), parse_flight(REQUESTS))


def test_bad_settings_are_all_named():
    text = (
        REQUESTS.replace("new: 0.5", "new: 0.4")
        .replace("lower", "less")
        .replace("usd,", "usd, x: 1,")
    )
    with pytest.raises(FlightError) as caught:
        parse_flight(text)
    for part in ("shares sum to 0.9", "must be one of lower, higher", "x (line"):
        assert part in str(caught.value)


def test_an_arm_that_nobody_is_in_is_an_error(tmp_path):
    flight = parse_flight(REQUESTS)
    with pytest.raises(FlightError, match="arm 'new'.*has 0 units"):
        analyse(read_rows(table("user,arm,day,usd\na,old,1,1\nb,old,1,1\n"), flight), flight)


def test_a_plan_needs_more_for_less(sample):
    big, small = (plans(sample[1], sample[0], c, units_per_day=1000) for c in (0.05, 0.01))
    for one, other in zip(big, small, strict=True):
        assert one.need.units < other.need.units
    fixed = plans(sample[1], sample[0], 0.05, units_per_day=1000, reading=Reading.FIXED)
    assert fixed[0].need.units < big[0].need.units


def test_the_verb_prints_the_table_and_its_json(capsys):
    assert main(["flight", str(SAMPLE), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sample_ratio"]["alarm"] == "none"
    assert found["metrics"][0]["verdict"] == "better"
    assert main(["flight", str(SAMPLE)]) == 0
    assert "< 0.001" in capsys.readouterr().out
    assert main(["flight", str(SAMPLE), "--plan", "0.02", "--per-day", "3000"]) == 0
    assert "Turns per user" in capsys.readouterr().out


def test_the_sample_is_built_from_its_seed(tmp_path):
    from sample_data.paper_flight import build

    build(tmp_path)
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "users.parquet"),
        pd.read_parquet(SAMPLE.parent / "users.parquet"),
    )


def test_the_verb_has_a_dash_for_what_does_not_exist(tmp_path, capsys):
    rows = [
        f"u{i},{'old' if i % 2 else 'new'},1,{1 + i % 3},{'' if i % 2 else 2},0" for i in range(40)
    ]
    (tmp_path / "log.csv").write_text("\n".join(["user,arm,day,usd,big,ok", *rows]))
    metric = "  - {name: ok, numerator: ok, denominator: rows, better: higher}\n"
    settings = f"{REQUESTS.rstrip()}\n{metric}savings: {{cost: usd, flagship: big}}\n"
    (tmp_path / "flight.yaml").write_text(
        settings.replace("name: small", "name: s\ntable: log.csv")
    )
    assert main(["flight", str(tmp_path / "flight.yaml")]) == 0
    said = capsys.readouterr().out
    assert "nan" not in said
    assert "old: no cost beside the flagship's" in said
    assert "below the flagship" in said
