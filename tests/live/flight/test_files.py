"""A flight is kept whole, checked and told, by somebody who may."""

from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.errors import AccessError, FlightError
from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.live.flight.files import parse_flight, read_rows
from hydra_core.live.flight.kept import list_flights, save_flight
from hydra_core.store import Actor, Role, Store, open_store
from sample_data.paper_flight import users
from tests.live.logs import decision, traffic

SETTINGS = (SAMPLE_DATA / "paper_flight" / "flight.yaml").read_text()
EDITOR = Actor("eda", Role.EDITOR, proven=True)
VIEWER = Actor("vic", Role.VIEWER, proven=True)


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path)


@pytest.fixture(scope="module")
def table() -> bytes:
    frame = users(np.random.default_rng(3)).head(200)
    return frame.to_csv(index=False).encode()


def kept(root: Path, table: bytes, actor: Actor, store: Store) -> Path:
    return save_flight(root, "mine", SETTINGS, table, "users.csv", actor=actor, store=store)


def test_an_editor_keeps_a_flight_and_it_is_told(tmp_path, store, table):
    folder = kept(tmp_path / "flights", table, EDITOR, store)
    assert [found.path for found in list_flights(tmp_path / "flights")] == [folder]
    told = store.audit()[0]
    assert (told.actor, told.action, told.subject) == ("eda", "keep a flight", "flight mine")


def test_a_viewer_keeps_none_and_nothing_is_written(tmp_path, store, table):
    with pytest.raises(AccessError, match="keep a flight"):
        kept(tmp_path / "flights", table, VIEWER, store)
    assert not (tmp_path / "flights").exists()


def test_a_table_that_does_not_fit_leaves_nothing(tmp_path, store):
    with pytest.raises(FlightError):
        kept(tmp_path / "flights", b"user\na\n", EDITOR, store)
    assert list_flights(tmp_path / "flights") == ()
    assert not list((tmp_path / "flights").iterdir())


OF_A_LOG = (
    "schema: hydra.flight/v1\nname: n\ntable: log\nlevel: requests\nunit: conversation_id\n"
    "arm: arm\narms: {main: 0.5, canary: 0.5}\nday: at\nmetrics:\n"
    "  - {name: c, numerator: cost_usd, denominator: rows, better: lower}\n"
    "  - {name: q, numerator: quality, better: higher}\n"
)


def test_a_decision_log_is_a_flights_table(tmp_path):
    more = {"conversation_id": "c", "cost_usd": 0.5}
    rows = [decision(0, arm="main", **more), decision(1, arm="main", **more),
            decision(2, arm="canary", cost_usd=None), decision(3, arm=""),
            decision(4, arm="main", status="refused")]  # fmt: skip
    traffic(tmp_path / "log", rows, {"d0": 0.5})
    flight = parse_flight(OF_A_LOG)
    found = read_rows(tmp_path / "log", flight)
    assert (found.unit.tolist(), found.arm.tolist()) == ([0, 0, 1], [0, 0, 1])
    assert found.days == ("2026-11-22",)
    assert found.values["cost_usd"].tolist()[:2] == [0.5, 0.5]
    assert np.isnan(found.values["cost_usd"][2])
    assert found.values["quality"][0] == 0.5


def test_one_of_several_canaries_in_a_log_is_chosen_by_its_time(tmp_path):
    rows = [decision(number, arm=arm, conversation_id=conversation, cost_usd=0.5)
            for number, (arm, conversation) in enumerate(
                [("main", "a"), ("canary", "b"), ("canary", "a"), ("main", "b")])]  # fmt: skip
    traffic(tmp_path / "log", rows, {})
    flight, second = parse_flight(OF_A_LOG), rows[2].at
    with pytest.raises(FlightError, match="2 units are in more than one arm .* --since and"):
        read_rows(tmp_path / "log", flight)
    assert read_rows(tmp_path / "log", flight, until=second).arm.tolist() == [0, 1]
    assert read_rows(tmp_path / "log", flight, since=second).arm.tolist() == [1, 0]
    other = parse_flight(OF_A_LOG.replace("canary: 0.5", "x: 0.5").replace("main: 0.5", "y: 0.5"))
    with pytest.raises(FlightError, match=r"has one of the arms y, x \(there are: canary, main\)"):
        read_rows(tmp_path / "log", other)
    (tmp_path / "users.csv").write_text("conversation_id\na\n")
    with pytest.raises(FlightError, match="of a decision log only"):
        read_rows(tmp_path / "users.csv", flight, since=second)
