"""A flight inside each team: the parts' own figures, corrected for how many parts there are."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from hydra_core.cli.main import main
from hydra_core.live.flight.analysis import analyse, by_team
from hydra_core.live.flight.effects import Reading
from hydra_core.live.flight.files import parse_flight, read_rows

SETTINGS = """
schema: hydra.flight/v1
name: teams
level: requests
unit: conversation
arm: arm
arms: {old: 0.5, new: 0.5}
table: log.csv
team: team
metrics:
  - {name: cost per request, numerator: usd, denominator: rows, better: lower}
  - {name: resolved, numerator: resolved, denominator: rows, better: higher, guard: 0.2}
"""


def requests(rng, units, *, teams=("build", "chat", "search"), better_in=()):
    """Three requests a conversation; `new` costs 30 % less in the teams of `better_in`."""
    team = np.repeat(teams, units)
    arm = np.where(np.arange(len(team)) % 2, "new", "old")
    helped = (arm == "new") & np.isin(team, better_in)
    frame = pd.DataFrame({"conversation": [f"c{i}" for i in range(len(team))], "arm": arm,
                          "team": team})  # fmt: skip
    frame = frame.loc[frame.index.repeat(3)].reset_index(drop=True)
    frame["usd"] = rng.gamma(9.0, 1 / 9.0, len(frame)) * np.where(np.repeat(helped, 3), 0.7, 1.0)
    frame["resolved"] = rng.random(len(frame)) < 0.8
    frame["resolved"] = frame["resolved"].astype(int)
    return frame


def opened(frame, settings=SETTINGS):
    file = io.BytesIO(frame.to_csv(index=False).encode())
    file.name = "log.csv"
    flight = parse_flight(settings)
    return read_rows(file, flight), flight


def test_a_team_has_the_figures_of_its_own_rows():
    frame = requests(np.random.default_rng(1), 300, better_in=("chat",))
    teams = by_team(*opened(frame))
    assert teams.level == pytest.approx(1 - 0.05 / 3)
    alone = analyse(*opened(frame[frame["team"] == "chat"]), level=teams.level)
    chat = teams.parts[1]
    assert (chat.team, chat.units) == ("chat", {"old": 150, "new": 150})
    for mine, other in zip(chat.report.results, alone.results, strict=True):
        assert mine.effect == other.effect
        assert mine.p_holm >= other.p_holm  # over three teams instead of one
    verdicts = {part.team: part.report.results[0].verdict() for part in teams.parts}
    assert verdicts == {
        "build": "no difference shown", "chat": "better", "search": "no difference shown"
    }  # fmt: skip


def test_the_intervals_of_ten_equal_teams_hold_together():
    rng, names = np.random.default_rng(2), [f"t{i}" for i in range(10)]
    together = alone = 0
    for _ in range(25):
        rows, flight = opened(requests(rng, 40, teams=names))
        teams = by_team(rows, flight, reading=Reading.FIXED)
        effects = [part.report.results[0].effect for part in teams.parts]
        together += any(one.lo > 0 or one.hi < 0 for one in effects)
        alone += any(one.p_value < 0.05 for one in effects)
    assert together <= 4
    assert alone >= 7  # what reading each team by itself would have claimed


def test_a_small_team_is_named_and_not_compared():
    frame = requests(np.random.default_rng(3), 100, teams=("build", "chat"))
    small = requests(np.random.default_rng(4), 30, teams=("",)).replace(
        {"conversation": {f"c{i}": f"small{i}" for i in range(30)}}
    )
    teams = by_team(*opened(pd.concat([frame, small])))
    assert [part.team for part in teams.parts] == ["", "build", "chat"]
    assert teams.parts[0].units == {"old": 15, "new": 15}
    assert teams.parts[0].report is None
    assert (teams.compared, teams.level) == (2, pytest.approx(0.975))


def test_a_conversation_of_two_teams_counts_in_both():
    frame = requests(np.random.default_rng(5), 100, teams=("build", "chat"))
    frame.loc[0, "team"] = "chat"  # the first of three requests of c0
    teams = by_team(*opened(frame))
    assert teams.shared == 1
    assert [sum(part.units.values()) for part in teams.parts] == [100, 101]


def test_a_stratum_that_a_team_lacks_does_not_stop_it():
    frame = requests(np.random.default_rng(6), 100, teams=("build", "chat"))
    frame["plan"] = np.where(frame["team"] == "build", "pro", "free")
    rows, flight = opened(frame, SETTINGS.replace("team: team", "team: team\nstratum: plan"))
    assert [part.report.strata for part in by_team(rows, flight).parts] == [("pro",), ("free",)]


def test_a_flight_without_teams_is_not_split():
    frame = requests(np.random.default_rng(7), 20)
    assert by_team(*opened(frame, SETTINGS.replace("team: team\n", ""))) is None


def test_the_verb_prints_every_team(tmp_path, capsys):
    requests(np.random.default_rng(8), 100).to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "flight.yaml").write_text(SETTINGS)
    assert main(["flight", str(tmp_path / "flight.yaml")]) == 0
    text = capsys.readouterr().out
    assert "By team: each interval at 98.33 %" in text
    assert main(["flight", str(tmp_path / "flight.yaml"), "--json"]) == 0
    teams = json.loads(capsys.readouterr().out)["teams"]
    assert [one["team"] for one in teams["parts"]] == ["build", "chat", "search"]
    assert teams["parts"][0]["units"] == {"old": 50, "new": 50}
    assert [one["metric"] for one in teams["parts"][0]["metrics"]] == [
        "cost per request", "resolved"
    ]  # fmt: skip


def test_p_is_below_5_percent_only_where_the_interval_leaves_out_0():
    one_metric = SETTINGS.rsplit("  - {", 1)[0]
    frame = requests(np.random.default_rng(32), 120, better_in=("build", "chat"))
    frame.loc[(frame["team"] == "search") & (frame["arm"] == "new"), "usd"] *= 0.9
    parts = by_team(*opened(frame, one_metric), reading=Reading.FIXED).parts
    assert [part.report.results[0].verdict() for part in parts][:2] == ["better", "better"]
    search = parts[2].report.results[0]
    assert 0.05 / 3 < search.effect.p_value < 0.05
    assert search.verdict() == "no difference shown"
    assert search.p_holm == pytest.approx(3 * search.effect.p_value)


def test_the_verb_says_how_many_units_a_metric_leaves_out(tmp_path, capsys):
    frame = requests(np.random.default_rng(3), 60, teams=("build", "chat"))
    frame.loc[frame["conversation"] == "c0", "usd"] = np.nan
    frame.to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "flight.yaml").write_text(SETTINGS)
    assert main(["flight", str(tmp_path / "flight.yaml")]) == 0
    told = capsys.readouterr().out
    assert "\nunits left out because a cell of theirs is empty: cost per request 1\n" in told
    assert "\nbuild, units left out because a cell of theirs is empty: cost per request 1" in told
    assert "chat, units left out" not in told
